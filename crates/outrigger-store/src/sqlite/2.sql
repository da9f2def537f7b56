-- Schema 2. What of a conversation its model does not see any more, and how many messages there were then: a fork up to
-- fewer messages sees all of them again.
ALTER TABLE conversation ADD COLUMN compacted TEXT;
ALTER TABLE conversation ADD COLUMN compacted_at INTEGER;
