//! What checks find, and how it is printed. Pure.

use serde::Serialize;
use serde_json::{Value, json};

use crate::protocol::word;

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    check: &'static str,
    pub(super) state: State,
    message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    Ok,
    /// It is not there and need not be.
    Absent,
    /// The daemon works without, or less well.
    Warning,
    Failed,
}

impl Finding {
    pub(super) fn new(check: &'static str, state: State, message: impl Into<String>) -> Self {
        Self {
            check,
            state,
            message: message.into(),
            advice: None,
        }
    }

    pub(super) fn remark(mut self, remark: &str) -> Self {
        self.message = format!("{}; {remark}", self.message);
        self
    }

    pub(super) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}

/// Whether nothing failed.
pub(super) fn is_well(findings: &[Finding]) -> bool {
    findings.iter().all(|found| found.state != State::Failed)
}

/// A line for each finding, with what to do at its end.
pub(super) fn text(findings: &[Finding]) -> String {
    let widest = findings.iter().map(|finding| finding.check.len()).max();
    let width = widest.unwrap_or_default();
    let mut text = String::new();
    for finding in findings {
        let (state, check) = (word(&finding.state), finding.check);
        let advice = finding.advice.iter().map(|advice| format!(" -> {advice}"));
        let message = finding.message.clone() + &advice.collect::<String>();
        // Other people's words may hold line ends.
        let line = message.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        text.push_str(&format!("{state:7}  {check:width$}  {line}\n"));
    }
    text
}

/// What it comes to, in one line.
pub(super) fn sum(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|found| found.state == state).count();
    let (failed, warnings) = (count(State::Failed), count(State::Warning));
    let warned = match warnings {
        0 => "no warnings".to_owned(),
        1 => "1 warning".to_owned(),
        more => format!("{more} warnings"),
    };
    match failed {
        0 => format!("{warned}, nothing stops it\n"),
        failed => format!("{failed} failed, {warned}: correct what failed first\n"),
    }
}

/// `{"ok": …, "checks": [{"check", "state", "message", "advice"?}]}`.
pub(super) fn json(findings: &[Finding]) -> Value {
    json!({ "ok": is_well(findings), "checks": findings })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings() -> Vec<Finding> {
        vec![
            Finding::new("port", State::Ok, "free"),
            Finding::new("sandbox", State::Warning, "mode limits").advise("run it elsewhere"),
        ]
    }

    #[test]
    fn findings_are_lines_that_end_with_advice() {
        assert_eq!(
            text(&findings()),
            "ok       port     free\n\
             warning  sandbox  mode limits -> run it elsewhere\n"
        );
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn the_last_line_says_what_it_comes_to() {
        let mut found = findings();
        assert_eq!(sum(&found), "1 warning, nothing stops it\n");
        found.extend(findings());
        assert_eq!(sum(&found), "2 warnings, nothing stops it\n");
        found.push(Finding::new("x", State::Failed, "y"));
        assert_eq!(
            sum(&found),
            "1 failed, 2 warnings: correct what failed first\n"
        );
        assert_eq!(sum(&[]), "no warnings, nothing stops it\n");
    }

    #[test]
    fn only_failures_make_it_unwell() {
        for (state, expected) in [
            (State::Ok, true),
            (State::Absent, true),
            (State::Warning, true),
            (State::Failed, false),
        ] {
            let mut all = findings();
            all.push(Finding::new("x", state, "y"));
            assert_eq!(is_well(&all), expected, "{state:?}");
            assert_eq!(json(&all)["ok"], expected);
        }
    }

    #[test]
    fn json_leaves_out_advice_that_is_not_there() {
        assert_eq!(
            json(&findings()),
            json!({"ok": true, "checks": [
                {"check": "port", "state": "ok", "message": "free"},
                {"check": "sandbox", "state": "warning", "message": "mode limits", "advice": "run it elsewhere"},
            ]})
        );
    }
}
