-- Schema 2 on PostgreSQL: whose each row is, and a wall behind the WHERE of each statement (row-level security). A connection
-- sees the rows of the user in `outrigger.owner`, and all of them where `outrigger.everyone` is on; without either, none. What is
-- written without a name gets that one. What was there is the one user's, whose name is empty.

-- Words are found by an index that the server does not use behind that wall, so they are in a table of their own, before it.
CREATE TABLE word (
    body BIGINT PRIMARY KEY REFERENCES body ON DELETE CASCADE,
    owner TEXT NOT NULL DEFAULT coalesce(current_setting('outrigger.owner', true), ''),
    words TSVECTOR NOT NULL
);
INSERT INTO word SELECT key, '', words FROM body WHERE words IS NOT NULL;
CREATE INDEX word_by_words ON word USING gin (words);
ALTER TABLE body DROP COLUMN words;

ALTER TABLE ran ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE ran DROP CONSTRAINT ran_pkey;
ALTER TABLE ran ADD PRIMARY KEY (owner, kind, day, name);

CREATE INDEX session_of_owner ON any_session (owner, (archived_ms IS NULL), updated_ms DESC, key DESC);
CREATE INDEX usage_of_owner ON usage (owner, at_ms);

DO $$
DECLARE
    it TEXT;
BEGIN
    FOREACH it IN ARRAY ARRAY['label', 'conversation', 'body', 'message', 'attached', 'exchange', 'call', 'queued', 'sent',
                              'file_change'] LOOP
        EXECUTE format('ALTER TABLE %I ADD COLUMN owner TEXT NOT NULL DEFAULT ''''', it);
    END LOOP;
    -- Bytes that are attached are kept once for all users, and are found by the rows that name them alone.
    FOREACH it IN ARRAY ARRAY['any_session', 'label', 'conversation', 'body', 'message', 'attached', 'exchange', 'call', 'ran',
                              'queued', 'sent', 'rule', 'file_change', 'usage'] LOOP
        EXECUTE format('ALTER TABLE %I ALTER owner SET DEFAULT coalesce(current_setting(''outrigger.owner'', true), '''')', it);
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', it);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', it);
        EXECUTE format('CREATE POLICY its_owners ON %I USING (owner = current_setting(''outrigger.owner'', true) '
                       'OR current_setting(''outrigger.everyone'', true) = ''on'')', it);
    END LOOP;
END
$$;
