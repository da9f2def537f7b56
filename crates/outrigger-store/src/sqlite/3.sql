-- Schema 3: whose each row is, for a daemon with several users. What was there is the one user's, whose name is empty.

CREATE INDEX session_of_owner ON any_session (owner, archived_ms IS NULL, updated_ms DESC, key DESC);

ALTER TABLE rule ADD COLUMN owner TEXT NOT NULL DEFAULT '';

ALTER TABLE ran RENAME TO ran_of_all;
CREATE TABLE ran (
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    day INTEGER NOT NULL,
    name TEXT NOT NULL,
    calls INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    denied INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    began INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    longest_ms INTEGER NOT NULL,
    cpu_ms INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    input_bytes INTEGER NOT NULL,
    output_bytes INTEGER NOT NULL,
    PRIMARY KEY (owner, kind, day, name)
) STRICT, WITHOUT ROWID;
INSERT INTO ran SELECT '', kind, day, name, calls, failed, denied, cancelled, began, duration_ms, longest_ms, cpu_ms, memory,
    input_bytes, output_bytes FROM ran_of_all;
DROP TABLE ran_of_all;

CREATE INDEX usage_of_owner ON usage (owner, at_ms);
