-- Schema 4 on PostgreSQL: what users do at each process, so that the limits of a user count for all processes together.

-- It is told again and again while its process lives, and is gone with it: nothing of it has to outlive a crash of the server.
CREATE UNLOGGED TABLE activity (
    node BIGINT NOT NULL REFERENCES node ON DELETE CASCADE,
    owner TEXT COLLATE "C" NOT NULL DEFAULT coalesce(current_setting('outrigger.owner', true), ''),
    sessions BIGINT NOT NULL,
    exchanges BIGINT NOT NULL,
    -- Of the last minute, and when the first of them was.
    sends BIGINT NOT NULL,
    first_send TIMESTAMPTZ,
    -- Goes up each time that the process tells it: what comes late does not count.
    version BIGINT NOT NULL,
    PRIMARY KEY (owner, node)
);
CREATE INDEX activity_of_node ON activity (node);
ALTER TABLE activity ENABLE ROW LEVEL SECURITY;
ALTER TABLE activity FORCE ROW LEVEL SECURITY;
CREATE POLICY its_owners ON activity USING (owner = current_setting('outrigger.owner', true)
    OR current_setting('outrigger.everyone', true) = 'on');
