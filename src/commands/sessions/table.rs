//! Sessions and figures as people and scripts read them.

use jiff::Timestamp;
use outrigger_store::{Listed, Page, Stats};
use serde_json::{Value, json};

use super::source::Source;
use crate::plain_text::exposed_line;
use crate::session::piece;
use crate::store::words_of;

/// The least characters of a title, on however narrow a terminal.
const TITLE: usize = 20;

/// The head of the ids.
const SESSION: &str = "session";

/// Returns sessions one a line below a head, as wide as the terminal; with a query, the words on a line of their own.
pub(super) fn text(page: &Page, query: Option<&str>) -> String {
    let Page { sessions, next } = page;
    if sessions.is_empty() {
        return "no session matches\n".to_owned();
    }
    let width = sessions.iter().map(|it| it.id.chars().count());
    let id = width.max().unwrap_or(0).max(SESSION.len());
    let mut text = format!("{SESSION:id$}  {:16}  messages  title\n", "changed (UTC)");
    let room = terminal_width().map(|all| all.saturating_sub(id + 30).max(TITLE));
    for session in sessions {
        let changed = Timestamp::from_millisecond(session.updated_ms).unwrap_or_default();
        let changed = format!("{changed:.0}").replace('T', " ");
        let changed = changed.get(..16).unwrap_or(&changed);
        let labels = session.labels.iter().map(|label| format!(" [{label}]"));
        let title = session.title.as_deref().unwrap_or("(no title)");
        let title = exposed_line(&format!("{title}{}", labels.collect::<String>()));
        let title = cut(&title, room);
        let messages = session.messages;
        text += &format!("{:id$}  {changed}  {messages:>8}  {title}\n", session.id);
        if let Some(found) = snippet(session, query) {
            let found = exposed_line(&found);
            let room = terminal_width().map(|all| all.saturating_sub(4).max(TITLE));
            text += &format!("    {}\n", cut(&found, room));
        }
    }
    if next.is_some() {
        text += &format!("there are more than these {}: --limit N\n", sessions.len());
    }
    text
}

/// Returns sessions as JSON.
pub(super) fn json(sessions: &[Listed], query: Option<&str>) -> String {
    let time = |ms| format!("{:.3}", Timestamp::from_millisecond(ms).unwrap_or_default());
    let sessions = sessions.iter().map(|session| {
        json!({
            "sessionId": session.id,
            "title": session.title,
            "project": session.project,
            "createdAt": time(session.created_ms),
            "updatedAt": time(session.updated_ms),
            "archived": session.archived_ms.is_some(),
            "labels": session.labels,
            "messages": session.messages,
            "snippet": snippet(session, query),
        })
    });
    format!("{:#}\n", Value::from_iter(sessions))
}

fn snippet(session: &Listed, query: Option<&str>) -> Option<String> {
    let found = session.snippet.as_ref()?;
    Some(piece(&words_of(&found.text), query?))
}

/// Returns how much is kept, and where: in a file, or in a database, which has no log of changes of its own.
pub(super) fn stats(source: &Source, stats: &Stats, is_json: bool) -> String {
    let Stats {
        sessions,
        messages,
        attachments,
        bytes,
        wal_bytes,
    } = stats;
    let place = source.place();
    let (label, log) = match source {
        Source::File(..) => ("file    ", Some(wal_bytes)),
        Source::Database(_) => ("kept in ", None),
    };
    if is_json {
        let kept = json!({
            "path": place,
            "sessions": sessions,
            "messages": messages,
            "attachments": attachments,
            "bytes": bytes,
            "walBytes": log.unwrap_or(&0),
        });
        return format!("{kept:#}\n");
    }
    let log = log.map(|bytes| format!("log bytes    {bytes}\n"));
    format!(
        "{label}     {place}\nsessions     {sessions}\nmessages     {messages}\nattachments  {attachments}\nbytes        {bytes}\n{}",
        log.unwrap_or_default()
    )
}

fn cut(text: &str, room: Option<usize>) -> String {
    match room.and_then(|room| text.char_indices().nth(room)) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

/// Returns how many characters a line of the terminal has, less one for what is cut; `None` where it is none.
fn terminal_width() -> Option<usize> {
    #[cfg(unix)]
    {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        Some(usize::from(size.ws_col).saturating_sub(1)).filter(|width| *width > 0)
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_cut_between_characters_and_steers_nothing() {
        assert_eq!(cut("éééé", Some(2)), "éé…");
        assert_eq!(cut("éé", Some(2)), "éé");
        assert_eq!(cut("éé", None), "éé");
        let session = Listed {
            id: "abc".to_owned(),
            title: Some("a\u{1b}[31mb".to_owned()),
            project: None,
            created_ms: 0,
            updated_ms: 60_000,
            archived_ms: None,
            labels: vec!["shop".to_owned()],
            messages: 3,
            snippet: None,
        };
        let mut page = Page {
            sessions: vec![session],
            next: None,
        };
        let head = "session  changed (UTC)     messages  title\n";
        let line = "abc      1970-01-01 00:01         3  a\\u{1b}[31mb [shop]\n";
        assert_eq!(text(&page, None), format!("{head}{line}"));
        page.sessions.clear();
        assert_eq!(text(&page, None), "no session matches\n");
    }
}
