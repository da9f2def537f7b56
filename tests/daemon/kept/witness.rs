//! A database that looks for itself at who writes in it, and what was written: nothing of that relies on the daemons.

use std::collections::HashMap;

use serde_json::Value;

use super::database::servers::Server;

/// Notes each row that is written, changed or taken away by a process which does not have its session, or is not among the living.
const WATCH: &str = "
CREATE TABLE public.stale (row TEXT, writer BIGINT, holder BIGINT);
CREATE FUNCTION public.watch() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = outrigger AS $$
DECLARE
    writer BIGINT := nullif(current_setting('outrigger.node', true), '')::bigint;
    holder BIGINT;
    it RECORD := coalesce(NEW, OLD);
BEGIN
    IF TG_TABLE_NAME = 'any_session' THEN
        holder := NEW.node;
        -- Who has it may let go of it.
        IF TG_OP = 'UPDATE' AND NEW.node IS NULL THEN
            holder := OLD.node;
        END IF;
    ELSIF TG_TABLE_NAME = 'message' THEN
        SELECT node INTO holder FROM conversation JOIN any_session ON any_session.key = session
            WHERE conversation.key = it.conversation;
    ELSE
        SELECT node INTO holder FROM any_session WHERE key = it.session;
    END IF;
    -- What goes with its session.
    IF TG_OP = 'DELETE' AND NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF holder IS DISTINCT FROM writer OR NOT EXISTS (SELECT 1 FROM node WHERE id = writer) THEN
        INSERT INTO public.stale VALUES (TG_TABLE_NAME || ' ' || TG_OP, writer, holder);
    END IF;
    RETURN NULL;
END
$$;
";

/// The tables whose rows are looked at.
const TABLES: [&str; 7] = [
    "any_session",
    "conversation",
    "message",
    "exchange",
    "call",
    "queued",
    "sent",
];

/// Has a database look from now on.
pub(super) fn watch(server: &Server, database: &str) {
    let triggers = TABLES.map(|table| {
        format!(
            "CREATE TRIGGER watch AFTER INSERT OR UPDATE{} ON {table} FOR EACH ROW EXECUTE FUNCTION public.watch();",
            // Nobody deletes a session here.
            if table == "any_session" { "" } else { " OR DELETE" }
        )
    });
    server.sql(database, &format!("{WATCH}{}", triggers.concat()));
}

/// Returns what was written by whom it was not for, a line each; fails where the database does not look.
pub(super) fn stale(server: &Server, database: &str) -> String {
    let stale = "SELECT DISTINCT row, writer, holder FROM public.stale";
    let found = server.sql(database, stale);
    for write in [
        "UPDATE any_session SET updated_ms = updated_ms",
        "UPDATE message SET at_ms = at_ms",
        "UPDATE exchange SET began_ms = began_ms",
        "DELETE FROM message",
    ] {
        let count = "SELECT count(*) > 0 FROM public.stale";
        // A process of a number that none has.
        let sql = format!(
            "BEGIN; DELETE FROM public.stale; SET LOCAL outrigger.node = '0'; {write}; {count}; ROLLBACK"
        );
        assert_eq!(server.sql(database, &sql), "t", "{write} is not seen");
    }
    found
}

/// Returns who said what in each session, in order.
pub(super) fn said(server: &Server, database: &str) -> HashMap<String, Vec<(String, Value)>> {
    let sql = "SELECT any_session.id, convert_from(data, 'UTF8') FROM message \
               JOIN conversation ON conversation.key = conversation JOIN any_session ON any_session.key = session \
               JOIN body ON body.key = body WHERE NOT deflated ORDER BY any_session.id, place";
    let long = "SELECT count(*) FROM body WHERE deflated";
    assert_eq!(server.sql(database, long), "0", "only short ones are read");
    let mut said = HashMap::<_, Vec<_>>::new();
    for row in server.sql(database, sql).lines() {
        let (session, body) = row.split_once('|').unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        let message = &body["message"];
        let role = message["role"].as_str().unwrap().to_owned();
        let said = said.entry(session.to_owned()).or_default();
        said.push((role, message["content"].clone()));
    }
    said
}
