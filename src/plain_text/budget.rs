//! The question whether more may be spent, as lines. Pure.

use super::style::{Piece, Style};
use crate::message::{BudgetId, Money};
use crate::protocol::budget::{BudgetApprove, BudgetConfirm, BudgetOutcome, BudgetResolved};

/// Shows what is spent of what, and what waits.
pub(crate) fn show(confirm: &BudgetConfirm) -> Vec<Piece> {
    let text = format!(
        "? {} of {} are spent of what {} may cost, and the next request takes about {}",
        confirm.spent_usd,
        confirm.limit_usd,
        confirm.scope.words(),
        confirm.next_usd
    );
    vec![Piece::line(Style::Bold, text)]
}

/// Returns what may be typed.
pub(crate) fn prompt(confirm: &BudgetConfirm) -> String {
    let mut choices = confirm.choices.iter();
    let first = choices.find_map(|choice| choice.extend_usd);
    let first = first.map_or_else(|| "no cap".to_owned(), |more| format!("{more} more"));
    format!("y {first}, y AMOUNT, y all, n stop, f stop after a last answer > ")
}

pub(crate) fn settled(resolved: &BudgetResolved) -> String {
    let outcome = match (resolved.outcome, resolved.limit_usd) {
        (BudgetOutcome::Extended, Some(limit)) => format!("the cap is {limit} now"),
        (BudgetOutcome::Extended, None) => "there is no cap any more".to_owned(),
        (BudgetOutcome::Stopped, _) => "stopped".to_owned(),
        (BudgetOutcome::Expired, _) => "nobody answered in time".to_owned(),
        (BudgetOutcome::Cancelled, _) => "the question is void".to_owned(),
    };
    format!("{}: {outcome}", resolved.request_id)
}

/// Reads an answer, for which the question's id may stand as it may for other questions; `None` where the line is none.
pub(crate) fn read(line: &str, request_id: &BudgetId) -> Option<BudgetApprove> {
    let mut words = line
        .split_whitespace()
        .filter(|it| *it != request_id.as_str());
    let (word, amount, more) = (words.next()?, words.next(), words.next());
    let approve = BudgetApprove {
        approved: true,
        ..stop(request_id)
    };
    match (word.to_ascii_lowercase().as_str(), amount, more) {
        ("y" | "yes", None, None) => Some(approve),
        ("y" | "yes", Some("all"), None) => Some(BudgetApprove {
            unlimited: true,
            ..approve
        }),
        ("y" | "yes", Some(amount), None) => {
            let dollars = amount.trim_start_matches('$').parse().ok()?;
            Some(BudgetApprove {
                extend_usd: Some(Money::from_dollars(dollars)?),
                ..approve
            })
        }
        ("n" | "no", None, None) => Some(stop(request_id)),
        ("f" | "finish", None, None) => Some(BudgetApprove {
            finish: true,
            ..stop(request_id)
        }),
        _ => None,
    }
}

/// Returns the answer that ends the exchange.
pub(crate) fn stop(request_id: &BudgetId) -> BudgetApprove {
    BudgetApprove {
        request_id: request_id.clone(),
        approved: false,
        extend_usd: None,
        unlimited: false,
        finish: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_yes_with_an_amount_or_a_way_to_stop() {
        let id = BudgetId::new("c1");
        let two = Money::from_dollars(2.0).unwrap();
        let yes = BudgetApprove {
            approved: true,
            ..stop(&id)
        };
        let by_two = BudgetApprove {
            extend_usd: Some(two),
            ..yes.clone()
        };
        let all = BudgetApprove {
            unlimited: true,
            ..yes.clone()
        };
        let last = BudgetApprove {
            finish: true,
            ..stop(&id)
        };
        for (line, expected) in [
            ("y", Some(&yes)),
            ("YES ", Some(&yes)),
            ("y 2", Some(&by_two)),
            ("y $2.00", Some(&by_two)),
            ("y all", Some(&all)),
            ("n", Some(&stop(&id))),
            ("f", Some(&last)),
            ("y two", None),
            ("y 1 2", None),
            ("y -1", None),
            ("no idea", None),
            ("", None),
        ] {
            assert_eq!(read(line, &id).as_ref(), expected, "{line}");
        }
    }
}
