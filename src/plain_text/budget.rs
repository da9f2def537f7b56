//! The question whether more may be spent, as lines. Pure.

use super::style::{Piece, Style};
use crate::message::{BudgetId, Money};
use crate::protocol::budget::{
    BudgetApprove, BudgetConfirm, BudgetOutcome, BudgetResolved, Extension,
};

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

/// Reads an answer; `None` where the line is none.
pub(crate) fn read(line: &str, request_id: &BudgetId) -> Option<BudgetApprove> {
    let mut words = line.split_whitespace();
    let (word, amount, more) = (words.next()?, words.next(), words.next());
    let answer = |approved, extend_usd, finish| BudgetApprove {
        request_id: request_id.clone(),
        approved,
        extend_usd,
        finish,
    };
    match (word.to_ascii_lowercase().as_str(), amount, more) {
        ("y" | "yes", None, None) => Some(answer(true, Extension::Offered, false)),
        ("y" | "yes", Some("all"), None) => Some(answer(true, Extension::Unlimited, false)),
        ("y" | "yes", Some(amount), None) => {
            let dollars = amount.trim_start_matches('$').parse().ok()?;
            let amount = Money::from_dollars(dollars)?;
            Some(answer(true, Extension::By(amount), false))
        }
        ("n" | "no", None, None) => Some(stop(request_id)),
        ("f" | "finish", None, None) => Some(answer(false, Extension::Offered, true)),
        _ => None,
    }
}

/// Returns the answer that ends the exchange.
pub(crate) fn stop(request_id: &BudgetId) -> BudgetApprove {
    BudgetApprove {
        request_id: request_id.clone(),
        approved: false,
        extend_usd: Extension::Offered,
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
        for (line, expected) in [
            ("y", Some((true, Extension::Offered, false))),
            ("YES ", Some((true, Extension::Offered, false))),
            ("y 2", Some((true, Extension::By(two), false))),
            ("y $2.00", Some((true, Extension::By(two), false))),
            ("y all", Some((true, Extension::Unlimited, false))),
            ("n", Some((false, Extension::Offered, false))),
            ("f", Some((false, Extension::Offered, true))),
            ("y two", None),
            ("y 1 2", None),
            ("y -1", None),
            ("no idea", None),
            ("", None),
        ] {
            let found = read(line, &id);
            let found = found.map(|it| (it.approved, it.extend_usd, it.finish));
            assert_eq!(found, expected, "{line}");
        }
    }
}
