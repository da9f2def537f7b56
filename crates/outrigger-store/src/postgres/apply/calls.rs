//! What is written of calls: how each stands, how many are kept, and their sums.

use std::borrow::Cow;

use super::super::op::Param;
use super::{Days, Ops, session};
use crate::bounds::{KEPT_CALLS, KEPT_DAYS, KEPT_OF_ALL, NAMES};
use crate::{CallFacts, CallStatus, OTHER, Sum, ToolCall};

/// Writes how a call stands. Once it is settled it counts in the sums, which is looked at before it is written.
pub(super) fn stands<'a>(
    ops: &mut Ops<'a>,
    call: &'a ToolCall,
    facts: &'a CallFacts,
    days: &mut Days,
) {
    if facts.status != CallStatus::Running {
        count(ops, &call.id, facts, call.began, days);
    }
    imported(ops, call, facts);
}

/// Writes how a call stands, in the place of what was written of it. One that was settled does not run again, whoever comes
/// late, and what it came to stays until a message says so. Calls of other sessions stay, however many there are.
///
/// First what is there, then where there is none: `ON CONFLICT` would use up a key each time, and keys say how many are kept.
pub(super) fn imported<'a>(ops: &mut Ops<'a>, call: &'a ToolCall, facts: &'a CallFacts) {
    let commands = || {
        Param::Text(Some(Cow::Owned(
            facts.commands.join("\n").replace('\0', ""),
        )))
    };
    ops.push(
        concat!(
            "UPDATE call SET status = $4::text, began = $5::bool, commands = $6::text, record = $7::text, \
             result = coalesce($8::text, result) WHERE id = $3::text AND (status = 'running' OR $4::text <> 'running') \
             AND session = ",
            session!()
        ),
        [
            (&call.id).into(),
            facts.status.as_str().into(),
            call.began.into(),
            commands(),
            (&call.record).into(),
            (&call.result).into(),
        ],
    );
    ops.push(
        "INSERT INTO call (session, id, conversation, tool, provider, status, at_ms, began, commands, record, result) \
         SELECT key, $3::text, $4::text, $5::text, $6::text, $7::text, $8::bigint, $9::bool, $10::text, $11::text, $12::text \
         FROM any_session WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool \
         AND NOT EXISTS (SELECT 1 FROM call WHERE call.session = any_session.key AND call.id = $3::text)",
        [
            (&call.id).into(),
            (&call.conversation).into(),
            (&facts.tool).into(),
            (&facts.provider).into(),
            facts.status.as_str().into(),
            facts.at_ms.into(),
            call.began.into(),
            commands(),
            (&call.record).into(),
            (&call.result).into(),
        ],
    );
}

/// Removes the oldest calls of the session, once there are more. What a call came to stays until a message says so.
pub(super) fn trim(ops: &mut Ops<'_>) {
    ops.push(
        concat!(
            "DELETE FROM call WHERE status <> 'running' AND result IS NULL AND session = ",
            session!(),
            " AND key <= (SELECT key FROM call WHERE session = ",
            session!(),
            " ORDER BY key DESC OFFSET $3::bigint LIMIT 1)"
        ),
        [KEPT_CALLS.into()],
    );
}

/// Removes the oldest calls of all sessions, once there are more.
pub(super) fn trim_all(ops: &mut Ops<'_>) {
    ops.of_all(
        "DELETE FROM call WHERE key <= (SELECT max(key) FROM call) - $1::bigint AND status <> 'running' AND result IS NULL",
        [KEPT_OF_ALL.into()],
    );
}

/// Adds a call that is settled to the sums of its day, unless it was before.
pub(in super::super) fn count<'a>(
    ops: &mut Ops<'a>,
    id: &'a str,
    facts: &CallFacts,
    began: bool,
    days: &mut Days,
) {
    let day = facts.day();
    add(ops, id, "tool", &facts.tool, facts, began);
    add(ops, id, "provider", &facts.provider, facts, began);
    for command in &facts.commands {
        add(ops, id, "command", command, facts, began);
    }
    for kind in ["tool", "provider", "command"] {
        if days.add(ops.user, kind, day) {
            // By number and not by date: a clock that is wrong for an hour costs a day, not all of them.
            ops.push_free(
                "DELETE FROM ran WHERE owner = $3::text AND kind = $1::text AND day <= (SELECT DISTINCT day FROM ran \
                 WHERE owner = $3::text AND kind = $1::text ORDER BY day DESC OFFSET $2::bigint LIMIT 1)",
                [kind.into(), KEPT_DAYS.into(), ops.user.as_str().into()],
            );
        }
    }
}

fn add<'a>(
    ops: &mut Ops<'a>,
    id: &'a str,
    kind: &'static str,
    name: &str,
    facts: &CallFacts,
    began: bool,
) {
    let mut sum = Sum::default();
    sum.add(facts, began);
    ops.push(
        "INSERT INTO ran (owner, kind, day, name, calls, failed, denied, cancelled, began, duration_ms, longest_ms, cpu_ms, memory, \
         input_bytes, output_bytes) SELECT any_session.owner, $4::text, $5::bigint, \
         CASE WHEN EXISTS (SELECT 1 FROM ran WHERE owner = any_session.owner AND kind = $4::text AND day = $5::bigint AND name = $6::text) \
         OR (SELECT count(*) FROM ran WHERE owner = any_session.owner AND kind = $4::text AND day = $5::bigint) < $7::bigint THEN $6::text ELSE $8::text END, \
         $9::bigint, $10::bigint, $11::bigint, $12::bigint, $13::bigint, $14::bigint, $14::bigint, $15::bigint, $16::bigint, \
         $17::bigint, $18::bigint FROM any_session WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool AND NOT EXISTS \
         (SELECT 1 FROM call WHERE call.session = any_session.key AND call.id = $3::text AND call.status <> 'running') \
         ON CONFLICT (owner, kind, day, name) DO UPDATE SET calls = ran.calls + excluded.calls, failed = ran.failed + excluded.failed, \
         denied = ran.denied + excluded.denied, cancelled = ran.cancelled + excluded.cancelled, \
         began = ran.began + excluded.began, duration_ms = ran.duration_ms + excluded.duration_ms, \
         longest_ms = greatest(ran.longest_ms, excluded.longest_ms), cpu_ms = ran.cpu_ms + excluded.cpu_ms, \
         memory = greatest(ran.memory, excluded.memory), input_bytes = ran.input_bytes + excluded.input_bytes, \
         output_bytes = ran.output_bytes + excluded.output_bytes",
        [
            id.into(),
            kind.into(),
            facts.day().into(),
            Param::Text(Some(Cow::Owned(name.replace('\0', "")))),
            NAMES.into(),
            OTHER.into(),
            Param::natural(sum.calls),
            Param::natural(sum.failed),
            Param::natural(sum.denied),
            Param::natural(sum.cancelled),
            Param::natural(sum.began),
            Param::natural(sum.duration_ms),
            Param::natural(sum.cpu_ms),
            Param::natural(sum.memory),
            Param::natural(sum.input_bytes),
            Param::natural(sum.output_bytes),
        ],
    );
}

/// Forgets what calls of a conversation came to: nobody asks for it any more.
pub(super) fn forget<'a>(ops: &mut Ops<'a>, conversation: &'a str) {
    ops.push(
        concat!(
            "UPDATE call SET result = NULL WHERE conversation = $3::text AND result IS NOT NULL AND session = ",
            session!()
        ),
        [conversation.into()],
    );
}
