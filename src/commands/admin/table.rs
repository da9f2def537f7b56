//! What a daemon tells its operator, as tables. Pure.

use crate::message::Money;
use crate::plain_text::exposed_line;
use crate::protocol::admin::{NodesReport, SessionsReport, UsersReport};
use crate::protocol::word;

/// Returns sessions one a line.
pub(super) fn sessions(report: &SessionsReport) -> String {
    let head = [
        "session",
        "state",
        "user",
        "node",
        "sockets",
        "tokens in",
        "out",
        "cost",
        "since (UTC)",
        "project",
    ];
    let rows = report.sessions.iter().map(|it| {
        [
            it.session_id.to_string(),
            word(&it.state),
            it.user.clone(),
            it.node.clone(),
            it.sockets.to_string(),
            it.input_tokens.to_string(),
            it.output_tokens.to_string(),
            dollars(it.spent_usd),
            minute(&it.since),
            it.project.clone().unwrap_or_else(|| "-".to_owned()),
        ]
    });
    let mut text = match report.sessions.is_empty() {
        true => "no session lives\n".to_owned(),
        false => table(head, rows.collect()),
    };
    if report.unanswered > 0 {
        text += &format!("{} more did not answer in time\n", report.unanswered);
    }
    text + &silent(&report.silent)
}

/// Names the nodes that did not answer.
fn silent(nodes: &[String]) -> String {
    let line = |node: &String| {
        format!(
            "{} did not answer: its sessions are not among these\n",
            exposed_line(node)
        )
    };
    nodes.iter().map(line).collect()
}

/// Returns users one a line.
pub(super) fn users(report: &UsersReport) -> String {
    if report.users.is_empty() {
        return "nobody has a session that lives\n".to_owned() + &silent(&report.silent);
    }
    let head = ["user", "sessions", "running", "tokens in", "out", "cost"];
    let rows = report.users.iter().map(|it| {
        [
            it.user.clone(),
            it.sessions.to_string(),
            it.running.to_string(),
            it.input_tokens.to_string(),
            it.output_tokens.to_string(),
            dollars(it.spent_usd),
        ]
    });
    table(head, rows.collect()) + &silent(&report.silent)
}

/// Returns nodes one a line.
pub(super) fn nodes(report: &NodesReport) -> String {
    let head = [
        "node",
        "state",
        "version",
        "sessions",
        "running",
        "since (UTC)",
        "renewed",
        "address",
    ];
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let has_others = report.nodes.len() > 1;
    let rows = report.nodes.iter().map(|it| {
        let mark = match it.here && has_others {
            true => " *",
            false => "",
        };
        [
            format!("{}{mark}", it.node),
            word(&it.state),
            or_none(it.version.clone()),
            it.sessions.to_string(),
            or_none(it.running.map(|it| it.to_string())),
            or_none(it.since.as_deref().map(minute)),
            or_none(it.renewed_ms.map(|ms| format!("{}s ago", ms / 1_000))),
            or_none(it.url.clone()),
        ]
    });
    let text = table(head, rows.collect());
    let mark = if has_others { "* answers\n" } else { "" };
    let silent = report.silent.iter();
    let silent = silent.map(|it| format!("{} did not answer\n", exposed_line(it)));
    text + mark + &silent.collect::<String>()
}

fn dollars(amount: Money) -> String {
    format!("${:.4}", amount.dollars())
}

/// Returns a time to the minute.
fn minute(time: &str) -> String {
    let time = time.replace('T', " ");
    time.get(..16).unwrap_or(&time).to_owned()
}

/// Returns rows below a head, each column as wide as it has to be. What others named must not steer the terminal.
fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows = rows.into_iter().map(|row| row.map(|it| exposed_line(&it)));
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned))
        .chain(rows)
        .collect();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(width).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::admin::{NodeRow, NodeState};

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let node = |name: &str, sessions| NodeRow {
            node: name.to_owned(),
            here: true,
            url: None,
            version: Some("0.1.0".to_owned()),
            state: NodeState::Draining,
            sessions,
            running: Some(1),
            since: Some("2026-11-27T04:56:54.123Z".to_owned()),
            renewed_ms: Some(3_999),
        };
        let silent = NodeRow {
            here: false,
            url: Some("http://10.0.0.6:4517".to_owned()),
            version: None,
            state: NodeState::Gone,
            running: None,
            since: None,
            renewed_ms: None,
            ..node("b\u{1b}[31m", 2)
        };
        let report = NodesReport {
            nodes: vec![node("outrigger-0", 1_000), silent],
            silent: Vec::new(),
        };
        assert_eq!(
            nodes(&report),
            "node           state     version  sessions  running  since (UTC)       renewed  address\n\
             outrigger-0 *  draining  0.1.0    1000      1        2026-11-27 04:56  3s ago   -\n\
             b\\u{1b}[31m    gone      -        2         -        -                 -        http://10.0.0.6:4517\n\
             * answers\n"
        );
        let alone = NodesReport {
            nodes: vec![node("outrigger-0", 1)],
            silent: vec!["the database".to_owned()],
        };
        let said = nodes(&alone);
        assert!(!said.contains('*'), "{said}");
        assert!(said.ends_with("\nthe database did not answer\n"), "{said}");
        let none = SessionsReport {
            unanswered: 2,
            silent: vec!["two\u{1b}".to_owned()],
            ..SessionsReport::default()
        };
        assert_eq!(
            sessions(&none),
            "no session lives\n2 more did not answer in time\ntwo\\u{1b} did not answer: its sessions are not among these\n"
        );
    }
}
