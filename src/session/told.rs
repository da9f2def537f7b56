//! Which notices of the daemon a user is told, where there are several. Pure.

use crate::message::Notice;
use crate::notices::News;
use crate::users::Grant;

/// The store does not take what is said, and takes it again.
pub(super) const STORE_FAILED: &str = "store_failed";
const STORE_HEALED: &str = "store_healed";

/// Returns what somebody is told of news: a sign-in is for operators, since whoever does it does it for all.
pub(super) fn news(grant: &Grant, news: News) -> Option<News> {
    match news {
        News::Notice(notice) => to(grant, notice).map(News::Notice),
        News::SignIn(asked) => grant.is_operator.then_some(News::SignIn(asked)),
    }
}

/// Returns what somebody is told of a notice: an operator all of it, others what is about their own sessions, without the names
/// of files and servers.
pub(super) fn to(grant: &Grant, notice: Notice) -> Option<Notice> {
    if grant.is_operator {
        return Some(notice);
    }
    let message = match notice.code.as_str() {
        STORE_FAILED => {
            "what is said from now on is not safe: it goes on in memory, and is lost if the daemon ends before it is written"
        }
        STORE_HEALED => "what is said is safe again",
        _ => return None,
    };
    Some(Notice {
        message: message.to_owned(),
        ..notice
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Severity;

    #[test]
    fn a_user_is_told_what_is_about_its_own_sessions() {
        let operator = Grant::default();
        let user = Grant {
            is_operator: false,
            ..Grant::default()
        };
        for (code, is_told) in [
            (STORE_FAILED, true),
            (STORE_HEALED, true),
            ("store_full", false),
            ("mcp_server_down", false),
            ("config_reloaded", false),
            ("provider_found", false),
        ] {
            let notice = Notice {
                severity: Severity::Error,
                code: code.to_owned(),
                message: "/secret/path".to_owned(),
            };
            assert_eq!(to(&operator, notice.clone()), Some(notice.clone()));
            let told = to(&user, notice);
            assert_eq!(told.is_some(), is_told, "{code}");
            assert!(told.is_none_or(|it| !it.message.contains("/secret")));
        }
    }
}
