//! What each change writes, as statements of which none waits for what another one returns: they are sent together.
//!
//! A statement finds its session by its id (`$1`), by whether it is whole (`$2`) and by whose it is, which the first
//! statement of a job says (`sees.rs`), so that it does nothing where there is none. What is to be removed since there is too much of it is removed once, after all changes of a job.

pub(super) mod calls;
mod files;
pub(super) mod fork;
pub(super) mod remove;
mod usage;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use super::op::{Op, Param, clean, integer};
use super::sees;
use crate::bounds::{KEPT_EXCHANGES, KEPT_SENT};
use crate::deflated::deflated;
use crate::{
    Attachment, Change, Exchange, Message, Owner, Queued, Rule, Sent, TitleBy, User, words,
};

/// The key of the session.
macro_rules! session {
    () => {
        "(SELECT key FROM any_session WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool)"
    };
}
use session;

/// How many days of sums, of all users, are known to have been looked at, so that it is looked only once whether there are too many.
const KNOWN_DAYS: usize = 4_096;

/// The days of which sums were written, each of a user.
#[derive(Default)]
pub(super) struct Days(HashSet<(User, &'static str, i64)>);

impl Days {
    /// Returns whether it is a new one.
    fn add(&mut self, user: &User, kind: &'static str, day: i64) -> bool {
        if self.0.len() >= KNOWN_DAYS {
            self.0.clear();
        }
        self.0.insert((user.clone(), kind, day))
    }
}

/// What is removed after the changes of a job where there is too much of it, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Trim {
    Exchanges,
    Sent,
    Calls,
    CallsOfAll,
    Files,
    Usage,
    Gone,
}

/// The statements of a job.
pub(super) struct Ops<'a> {
    user: &'a User,
    session: &'a str,
    is_whole: bool,
    pub(super) list: Vec<Op<'a>>,
    trims: BTreeSet<Trim>,
}

impl<'a> Ops<'a> {
    pub(super) fn new((user, session): (&'a User, &'a str), is_whole: bool) -> Self {
        Self {
            user,
            session,
            is_whole,
            list: vec![sees::op(user.as_str(), false)],
            trims: BTreeSet::new(),
        }
    }

    /// Returns the statements of changes; `None` where one of them makes a session of another one, which is asked for first.
    pub(super) fn of(
        whose: (&'a User, &'a str),
        changes: &'a [Change],
        days: &mut Days,
    ) -> Option<Self> {
        let mut ops = Self::new(whose, true);
        for change in changes {
            if matches!(change, Change::Fork { .. }) {
                return None;
            }
            ops.change(change, days);
        }
        ops.finish();
        Some(ops)
    }

    fn push(&mut self, sql: &'static str, rest: impl IntoIterator<Item = Param<'a>>) {
        let mut parameters = vec![self.session.into(), self.is_whole.into()];
        parameters.extend(rest);
        self.list.push(Op { sql, parameters });
    }

    fn push_free(&mut self, sql: &'static str, parameters: impl IntoIterator<Item = Param<'a>>) {
        let parameters = parameters.into_iter().collect();
        self.list.push(Op { sql, parameters });
    }

    /// Adds a statement about rows of all users.
    fn of_all(&mut self, sql: &'static str, parameters: impl IntoIterator<Item = Param<'a>>) {
        self.list.push(sees::op(self.user.as_str(), true));
        self.push_free(sql, parameters);
        self.list.push(sees::op(self.user.as_str(), false));
    }

    /// Adds the statements of a change.
    pub(super) fn change(&mut self, change: &'a Change, days: &mut Days) {
        match change {
            Change::Create { project, at_ms } => self.push_free(
                "INSERT INTO any_session (id, project, created_ms, updated_ms, owner) \
                 VALUES ($1::text, $2::text, $3::bigint, $3::bigint, $4::text) ON CONFLICT DO NOTHING",
                [
                    self.session.into(),
                    project.into(),
                    (*at_ms).into(),
                    self.user.as_str().into(),
                ],
            ),
            // It is made by itself.
            Change::Fork { .. } => {}
            Change::Delete => remove::take_away(self),
            Change::Revoke { id } => {
                self.push_free(
                    "DELETE FROM rule WHERE id = $1::text AND owner = $2::text",
                    [id.into(), self.user.as_str().into()],
                );
            }
            Change::Used(it) => {
                usage::add(self, it);
                self.trims.insert(Trim::Usage);
            }
            Change::Reserve { seq, ids } => self.push(
                "UPDATE any_session SET seq = greatest(seq, $3::bigint), ids = greatest(ids, $4::bigint) \
                 WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
                [Param::natural(*seq), Param::natural(*ids)],
            ),
            Change::Settings(settings) => self.push(
                "UPDATE any_session SET settings = $3::text WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
                [settings.into()],
            ),
            Change::Project(project) => self.push(
                "UPDATE any_session SET project = $3::text WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
                [project.into()],
            ),
            Change::Title { title, by } => self.title(title, *by),
            Change::Archived { at_ms } => self.push(
                "UPDATE any_session SET archived_ms = $3::bigint WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
                [(*at_ms).into()],
            ),
            Change::Labels(labels) => {
                self.push(
                    concat!("DELETE FROM label WHERE session = ", session!()),
                    [],
                );
                let names = labels.iter().map(|it| clean(it)).collect();
                self.push(
                    "INSERT INTO label (session, name) SELECT key, unnest($3::text[]) FROM any_session \
                     WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool ON CONFLICT DO NOTHING",
                    [Param::Texts(names)],
                );
            }
            Change::Message {
                conversation,
                message,
            } => self.message(conversation, message),
            Change::Compacted {
                conversation,
                compacted,
            } => self.push(
                concat!(
                    "UPDATE conversation SET compacted = $4::text, compacted_at = next_place WHERE id = $3::text AND session = ",
                    session!()
                ),
                [conversation.into(), compacted.into()],
            ),
            Change::Truncate { conversation, from } => {
                calls::forget(self, conversation);
                self.truncate(conversation, integer(*from));
                self.count();
            }
            Change::Forget { conversation } => self.forget(conversation),
            Change::Began(exchange) => self.began(exchange),
            Change::Ended {
                id,
                conversation,
                at_ms,
                seq,
                end,
            } => {
                self.push(
                    "INSERT INTO exchange (session, id, conversation, began_ms, end_seq, ending) \
                     SELECT key, $3::text, $4::text, $5::bigint, $6::bigint, $7::text FROM any_session \
                     WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool \
                     ON CONFLICT (session, id) DO UPDATE SET end_seq = excluded.end_seq, ending = excluded.ending",
                    [
                        id.into(),
                        conversation.into(),
                        (*at_ms).into(),
                        Param::natural(*seq),
                        end.into(),
                    ],
                );
                self.trims.insert(Trim::Exchanges);
            }
            Change::Call { call, facts } => {
                calls::stands(self, call, facts, days);
                self.trims.extend([Trim::Calls, Trim::CallsOfAll]);
            }
            Change::Imported { call, facts } => {
                calls::imported(self, call, facts);
                self.trims.insert(Trim::Calls);
            }
            Change::Record { id, record } => self.push(
                concat!(
                    "UPDATE call SET record = $4::text WHERE id = $3::text AND session = ",
                    session!()
                ),
                [id.into(), record.into()],
            ),
            Change::Answered { id } => self.push(
                concat!(
                    "UPDATE call SET result = NULL WHERE id = $3::text AND session = ",
                    session!()
                ),
                [id.into()],
            ),
            Change::File(change) => {
                files::add(self, change);
                self.trims.extend([Trim::Files, Trim::Gone]);
            }
            Change::FileUnmade {
                exchange,
                call,
                root,
                path,
            } => {
                files::unmade(self, [exchange, call, root, path]);
                self.trims.insert(Trim::Gone);
            }
            Change::Queued(Queued {
                id,
                conversation,
                send,
            }) => self.push(
                "INSERT INTO queued (session, id, conversation, send) SELECT key, $3::text, $4::text, $5::text FROM any_session \
                 WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool ON CONFLICT (session, id) DO UPDATE SET send = excluded.send",
                [id.into(), conversation.into(), send.into()],
            ),
            Change::Unqueued { id } => self.push(
                concat!(
                    "DELETE FROM queued WHERE id = $3::text AND session = ",
                    session!()
                ),
                [id.into()],
            ),
            Change::Rule(rule) => self.rule(rule),
            Change::Sent(Sent { id, digest, answer }) => {
                self.push(
                    "INSERT INTO sent (session, id, digest, answer) SELECT key, $3::text, $4::bytea, $5::text FROM any_session \
                     WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
                    [id.into(), digest.as_slice().into(), answer.into()],
                );
                self.trims.insert(Trim::Sent);
            }
        }
    }

    /// Adds what comes after all changes.
    pub(super) fn finish(&mut self) {
        for trim in std::mem::take(&mut self.trims) {
            match trim {
                Trim::Exchanges => self.push(
                    concat!(
                        "DELETE FROM exchange WHERE session = ",
                        session!(),
                        " AND id IN (SELECT id FROM exchange WHERE session = ",
                        session!(),
                        " AND ending IS NOT NULL ORDER BY length(id) DESC, id DESC OFFSET $3::bigint)"
                    ),
                    [KEPT_EXCHANGES.into()],
                ),
                Trim::Sent => self.push(
                    concat!(
                        "DELETE FROM sent WHERE session = ",
                        session!(),
                        " AND key <= (SELECT key FROM sent WHERE session = ",
                        session!(),
                        " ORDER BY key DESC OFFSET $3::bigint LIMIT 1)"
                    ),
                    [KEPT_SENT.into()],
                ),
                Trim::Calls => calls::trim(self),
                Trim::CallsOfAll => calls::trim_all(self),
                Trim::Files => files::trim(self),
                Trim::Usage => usage::trim(self),
                Trim::Gone => remove::clear(self),
            }
        }
    }

    fn title(&mut self, title: &'a str, by: TitleBy) {
        let sql = match by {
            TitleBy::User => {
                "UPDATE any_session SET title = $3::text, title_small = $4::text, title_by = 'user' \
                 WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool"
            }
            TitleBy::Daemon => {
                "UPDATE any_session SET title = $3::text, title_small = $4::text \
                 WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool AND title_by = 'daemon'"
            }
        };
        let title = clean(title);
        let small = Cow::Owned(title.to_lowercase());
        self.push(sql, [Param::Text(Some(title)), Param::Text(Some(small))]);
    }

    /// Adds a message to the end of a conversation.
    fn message(&mut self, conversation: &'a str, message: &'a Message) {
        for attachment in &message.body.attachments {
            self.attachment(attachment);
        }
        let text = &message.body.text;
        let deflated = deflated(text);
        let is_deflated = deflated.is_some();
        let data = deflated.map_or(Cow::Borrowed(text.as_bytes()), Cow::Owned);
        let lexemes = words::lexemes(&message.body.words);
        let attached = message.body.attachments.iter();
        let attached = attached.map(|it| it.hash.as_slice()).collect();
        self.push(
            "WITH place AS (INSERT INTO conversation (session, id, next_place) SELECT key, $3::text, 1 FROM any_session \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool \
             ON CONFLICT (session, id) DO UPDATE SET next_place = conversation.next_place + 1 \
             RETURNING key, session, next_place - 1 AS place), \
             said AS (INSERT INTO body (deflated, data) SELECT $4::bool, $5::bytea FROM place RETURNING key), \
             indexed AS (INSERT INTO word (body, words) SELECT key, array_to_tsvector($6::text[]) FROM said \
             WHERE cardinality($6::text[]) > 0), \
             added AS (INSERT INTO message (conversation, place, body, exchange, at_ms) \
             SELECT place.key, place.place, said.key, $7::text, $8::bigint FROM place, said), \
             linked AS (INSERT INTO attached (body, attachment) SELECT said.key, attachment.key FROM said, attachment \
             WHERE attachment.hash = ANY($9::bytea[])) \
             UPDATE any_session SET messages = messages + 1, updated_ms = greatest(updated_ms, $8::bigint) FROM place \
             WHERE any_session.key = place.session",
            [
                conversation.into(),
                is_deflated.into(),
                Param::Bytes(data),
                Param::Texts(lexemes.into_iter().map(Cow::Owned).collect()),
                (&message.exchange).into(),
                message.at_ms.into(),
                Param::ManyBytes(attached),
            ],
        );
    }

    /// Keeps an attachment once. One that is there is locked by being changed into itself: nobody removes it meanwhile.
    fn attachment(&mut self, it: &'a Attachment) {
        self.push(
            "INSERT INTO attachment (hash, data) SELECT $3::bytea, $4::bytea FROM any_session \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool \
             ON CONFLICT (hash) DO UPDATE SET hash = excluded.hash",
            [it.hash.as_slice().into(), it.bytes.as_slice().into()],
        );
    }

    fn began(&mut self, exchange: &'a Exchange) {
        let (seq, end) = match &exchange.end {
            Some((seq, end)) => (Some(integer(*seq)), Some(end.as_str())),
            None => (None, None),
        };
        self.push(
            "INSERT INTO exchange (session, id, conversation, began_ms, end_seq, ending) \
             SELECT key, $3::text, $4::text, $5::bigint, $6::bigint, $7::text FROM any_session \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool \
             ON CONFLICT (session, id) DO UPDATE SET conversation = excluded.conversation, began_ms = excluded.began_ms, \
             end_seq = excluded.end_seq, ending = excluded.ending",
            [
                (&exchange.id).into(),
                (&exchange.conversation).into(),
                exchange.began_ms.into(),
                seq.into(),
                end.into(),
            ],
        );
    }

    fn rule(&mut self, Rule { id, owner, rule }: &'a Rule) {
        let (is_of_session, conversation) = match owner {
            Owner::Conversation(conversation) => (true, Some(conversation.as_str())),
            Owner::Session => (true, None),
            Owner::None => (false, None),
        };
        self.push(
            "INSERT INTO rule (id, session, conversation, rule, owner) \
             SELECT $3::text, CASE WHEN $4::bool THEN key END, $5::text, $6::text, owner FROM any_session \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
            [
                id.into(),
                is_of_session.into(),
                conversation.into(),
                rule.into(),
            ],
        );
    }

    fn forget(&mut self, conversation: &'a str) {
        for sql in [
            concat!(
                "DELETE FROM queued WHERE conversation = $3::text AND session = ",
                session!()
            ),
            concat!(
                "DELETE FROM rule WHERE conversation = $3::text AND session = ",
                session!()
            ),
        ] {
            self.push(sql, [conversation.into()]);
        }
        files::forget(self, conversation);
        usage::forget(self, Some(conversation));
        calls::forget(self, conversation);
        self.truncate(conversation, 0);
        self.push(
            concat!(
                "DELETE FROM conversation WHERE id = $3::text AND session = ",
                session!()
            ),
            [conversation.into()],
        );
        self.count();
    }

    /// Removes messages from a place on; their bodies go after the job where nothing names them any more.
    fn truncate(&mut self, conversation: &'a str, from: i64) {
        self.push(
            concat!(
                "WITH removed AS (DELETE FROM message USING conversation WHERE conversation.key = message.conversation \
                 AND conversation.id = $3::text AND message.place >= $4::bigint AND conversation.session = ",
                session!(),
                " RETURNING message.body) INSERT INTO gone SELECT DISTINCT body FROM removed ON CONFLICT DO NOTHING"
            ),
            [conversation.into(), from.into()],
        );
        self.push(
            concat!(
                "UPDATE conversation SET next_place = least(next_place, $4::bigint), \
                 compacted = CASE WHEN compacted_at <= $4::bigint THEN compacted END WHERE id = $3::text AND session = ",
                session!()
            ),
            [conversation.into(), from.into()],
        );
        self.trims.insert(Trim::Gone);
    }

    fn count(&mut self) {
        self.push(
            "UPDATE any_session SET messages = (SELECT count(*) FROM message JOIN conversation \
             ON conversation.key = message.conversation WHERE conversation.session = any_session.key) \
             WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND is_whole = $2::bool",
            [],
        );
    }
}

/// Returns the statement that notes that a session, where there is one, changed at this time or later.
pub(super) fn changed(session: &str, at_ms: i64) -> Op<'_> {
    Op {
        sql: "UPDATE any_session SET updated_ms = $2::bigint WHERE id = $1::text AND owner = current_setting('outrigger.owner') AND node = current_setting('outrigger.node')::bigint AND updated_ms < $2::bigint",
        parameters: vec![session.into(), at_ms.into()],
    }
}
