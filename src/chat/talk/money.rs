//! The question whether more may be spent.

use super::{Action, Talk, Typing};
use crate::plain_text::budget;
use crate::plain_text::style::Style;
use crate::protocol::Command;
use crate::protocol::budget::{BudgetConfirm, BudgetResolved};

impl Talk {
    pub(super) fn asked_for_money(&mut self, confirm: &BudgetConfirm) {
        let pieces = self.screen.block(budget::show(confirm));
        self.put(pieces);
        self.typing = Typing::Money(confirm.clone());
        self.actions.push(Action::Read {
            prompt: budget::prompt(confirm),
            fresh: true,
        });
    }

    /// Takes an answer; at the end of the input nobody is there to be asked.
    pub(super) fn money(&mut self, confirm: &BudgetConfirm, line: Option<&str>) {
        let id = &confirm.request_id;
        let answer = line.map_or_else(|| Some(budget::stop(id)), |line| budget::read(line, id));
        match answer {
            Some(answer) => drop(self.request(Command::ChatBudgetApprove(answer))),
            None => self.asked_for_money(confirm),
        }
    }

    pub(super) fn money_settled(&mut self, resolved: &BudgetResolved) {
        let is_open =
            matches!(&self.typing, Typing::Money(open) if open.request_id == resolved.request_id);
        if is_open {
            self.typing = Typing::Message;
            self.actions.push(Action::Forget);
        }
        self.say(Style::Dim, budget::settled(resolved));
    }
}
