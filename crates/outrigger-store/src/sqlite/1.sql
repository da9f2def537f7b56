-- Schema 1. A session's rows go with it (ON DELETE CASCADE); bodies and attachments go when nothing names them any more.

-- All sessions, those included that an import has not written to its end; `session` has those that are whole. What writes
-- finds a session in the view first, so that only an import writes to one that is not.
CREATE TABLE any_session (
    key INTEGER PRIMARY KEY,
    is_whole INTEGER NOT NULL DEFAULT 1,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL DEFAULT '',
    project TEXT,
    title TEXT,
    title_by TEXT NOT NULL DEFAULT 'daemon',
    settings TEXT,
    created_ms INTEGER NOT NULL,
    updated_ms INTEGER NOT NULL,
    archived_ms INTEGER,
    parent TEXT,
    seq INTEGER NOT NULL DEFAULT 0,
    ids INTEGER NOT NULL DEFAULT 0,
    epoch INTEGER NOT NULL DEFAULT 1,
    messages INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX session_by_change ON any_session (updated_ms);
CREATE INDEX session_by_time ON any_session (archived_ms IS NULL, updated_ms DESC, key DESC);
CREATE INDEX session_in_part ON any_session (key) WHERE NOT is_whole;
CREATE VIEW session AS SELECT * FROM any_session WHERE is_whole;

-- The user's own words for sorting sessions; without control characters.
CREATE TABLE label (
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE conversation (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    id TEXT NOT NULL,
    next_place INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session, id)
) STRICT;

-- What a message says. Forks share it.
CREATE TABLE body (
    key INTEGER PRIMARY KEY,
    deflated INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE TABLE message (
    conversation INTEGER NOT NULL REFERENCES conversation ON DELETE CASCADE,
    place INTEGER NOT NULL,
    body INTEGER NOT NULL REFERENCES body,
    exchange TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (conversation, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX message_by_body ON message (body);

-- Pictures and long texts, each once.
CREATE TABLE attachment (
    key INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE attached (
    body INTEGER NOT NULL REFERENCES body ON DELETE CASCADE,
    attachment INTEGER NOT NULL REFERENCES attachment,
    PRIMARY KEY (body, attachment)
) STRICT, WITHOUT ROWID;
CREATE INDEX attached_by_attachment ON attached (attachment);

CREATE TABLE exchange (
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    began_ms INTEGER NOT NULL,
    end_seq INTEGER,
    end TEXT,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;

-- What is long stands last: a row is passed over without it.
CREATE TABLE call (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    tool TEXT NOT NULL,
    provider TEXT NOT NULL,
    status TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    began INTEGER NOT NULL,
    commands TEXT NOT NULL,
    record TEXT NOT NULL,
    result TEXT,
    UNIQUE (session, id)
) STRICT;
CREATE INDEX call_by_session ON call (session, key);
CREATE INDEX call_that_runs ON call (key) WHERE status = 'running';

-- What ran, summed by day (since 1970, UTC) and by name: of a tool, a provider or a command. It names no session, and
-- outlives the calls and their sessions.
CREATE TABLE ran (
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
    PRIMARY KEY (kind, day, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE queued (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    send TEXT NOT NULL,
    UNIQUE (session, id)
) STRICT;

CREATE TABLE sent (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    id TEXT NOT NULL,
    digest BLOB NOT NULL,
    answer TEXT NOT NULL
) STRICT;
CREATE INDEX sent_by_session ON sent (session, key);

-- Answers that count for later calls. Those of no session stay until they are revoked.
CREATE TABLE rule (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    session INTEGER REFERENCES any_session ON DELETE CASCADE,
    conversation TEXT,
    rule TEXT NOT NULL
) STRICT;
CREATE INDEX rule_by_session ON rule (session, key);

-- What calls did to files, the last ones of each session: `before` is the content that a change replaced, as long as it is
-- kept, and `path` empty where a command changed them.
CREATE TABLE file_change (
    key INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES any_session ON DELETE CASCADE,
    conversation TEXT NOT NULL,
    exchange TEXT NOT NULL,
    call TEXT NOT NULL,
    root TEXT NOT NULL,
    path TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    before INTEGER REFERENCES attachment,
    bytes INTEGER NOT NULL,
    about TEXT NOT NULL,
    deflated INTEGER NOT NULL,
    diff BLOB NOT NULL
) STRICT;
CREATE INDEX file_change_by_session ON file_change (session);
CREATE INDEX file_change_kept ON file_change (session, key, bytes) WHERE before IS NOT NULL;
CREATE INDEX file_change_by_attachment ON file_change (before);

-- The latest time that was believed, see `writer/clock.rs`.
CREATE TABLE clock (
    key INTEGER PRIMARY KEY CHECK (key = 1),
    at_ms INTEGER NOT NULL
) STRICT;

-- Where words are said: the row number is the body's key.
CREATE VIRTUAL TABLE words USING fts5 (
    said, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
