-- Schema 3 on PostgreSQL: several processes at once, each with sessions of its own.

-- One that knows an older schema has all of them: it has to end first.
DO $$
DECLARE
    it TEXT;
BEGIN
    SELECT node INTO it FROM lease WHERE expires > clock_timestamp();
    IF FOUND THEN
        RAISE EXCEPTION '% has it, which is of an older version: end it first', it;
    END IF;
END
$$;
DROP TABLE lease;

-- The processes that write. Each transaction of one begins by changing its row. Where that is gone, the process was taken for
-- dead, and nothing of it is written any more: whoever wants one of its sessions removes the row first, once `expires` is
-- over. No number is given twice. `batch` is the last transaction that was committed, so that whoever lost the connection
-- while one was knows whether it was.
CREATE TABLE node (
    id BIGINT PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL,
    url TEXT,
    batch BIGINT NOT NULL DEFAULT 0,
    expires TIMESTAMPTZ NOT NULL
);

-- Which process has a session: nobody, where that is NULL or has no row. Every statement that writes names its own.
ALTER TABLE any_session ADD COLUMN node BIGINT;
ALTER TABLE any_session ALTER node SET DEFAULT nullif(current_setting('outrigger.node', true), '')::bigint;
-- What ran when the last process ended is noted as failed by the next one, as that of one that is gone: none has this number.
UPDATE any_session SET node = 0 WHERE key IN (SELECT session FROM call WHERE status = 'running');
CREATE INDEX session_of_node ON any_session (node) WHERE node IS NOT NULL;
CREATE OR REPLACE VIEW session AS SELECT * FROM any_session WHERE is_whole;
