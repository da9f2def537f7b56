-- Schema 2.

-- What of a conversation its model does not see any more, and how many messages there were then: a fork up to
-- fewer messages sees all of them again.
ALTER TABLE conversation ADD COLUMN compacted TEXT;
ALTER TABLE conversation ADD COLUMN compacted_at INTEGER;

-- What requests to models took and cost: it outlives its session, whose name, and the name of its conversation,
-- are taken out when they go.
CREATE TABLE usage (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL DEFAULT '',
    at_ms INTEGER NOT NULL,
    session TEXT NOT NULL,
    conversation TEXT NOT NULL,
    exchange TEXT NOT NULL,
    kind TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input INTEGER NOT NULL,
    cache_read INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    output INTEGER NOT NULL,
    micros INTEGER,
    estimated INTEGER NOT NULL
) STRICT;
CREATE INDEX usage_by_time ON usage (at_ms);
CREATE INDEX usage_by_session ON usage (session, conversation) WHERE session <> '';
