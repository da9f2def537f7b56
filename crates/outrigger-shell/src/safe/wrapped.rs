//! Wrappers that add nothing of their own around a command that is safe itself.

use super::super::peel::is_assignment;
use super::super::table::{TABLE, Wrapper, has};
use super::{Item, Proof, Prover};

impl Prover<'_> {
    pub(super) fn wrapper(&mut self, name: &str, first: &Item, rest: &[Item]) -> Proof {
        let wrapper = TABLE.wrappers.get(name).filter(|wrapper| wrapper.safe);
        let unknown = || first.unproven("unknown-program", "is not known to only read");
        let wrapper = wrapper.ok_or_else(unknown)?;
        let rest = self.own_options(wrapper, rest)?;
        let mut operands = rest.iter().take(wrapper.operands);
        operands.try_for_each(|operand| operand.literal().map(drop))?;
        let inner = rest.get(wrapper.operands..).unwrap_or_default();
        let Some(program) = inner.first() else {
            return match name {
                "xargs" | "time" => Ok(()),
                _ => Err(first.unproven("wrapper", "has no command")),
            };
        };
        inside(name, wrapper, program)?;
        self.command(inner)
    }

    fn own_options<'i>(&self, wrapper: &Wrapper, items: &'i [Item]) -> Proof<&'i [Item]> {
        let mut rest = items;
        while let Some((item, after)) = rest.split_first() {
            let text = item.literal()?;
            if !text.starts_with('-') {
                break;
            }
            rest = match allowed(wrapper, text) {
                Some(true) => {
                    if let Some(value) = after.first() {
                        value.literal()?;
                        self.each(value, Self::readable)?;
                    }
                    after.get(1..).unwrap_or_default()
                }
                Some(false) => {
                    self.each(item, Self::operand_readable)?;
                    after
                }
                None => return Err(item.not_allowed()),
            };
        }
        Ok(rest)
    }
}

/// Whether the option is allowed, and then whether its value is the next word.
fn allowed(wrapper: &Wrapper, text: &str) -> Option<bool> {
    let digits = text.strip_prefix('-').unwrap_or_default();
    if wrapper.number && !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit()) {
        return Some(false);
    }
    if has(&wrapper.plain, text) {
        return Some(has(&wrapper.values, text));
    }
    let joined = |option: &&String| {
        let value = text.strip_prefix(option.as_str());
        has(&wrapper.values, option)
            && value.is_some_and(|value| option.len() == 2 || value.starts_with('='))
    };
    wrapper.plain.iter().find(joined).map(|_| false)
}

fn inside(name: &str, wrapper: &Wrapper, program: &Item) -> Proof {
    let inner = program.literal()?;
    if wrapper.assignments && is_assignment(inner) {
        return Err(program.unproven("assignment", "changes the environment of a command"));
    }
    let agnostic = TABLE.safe.agnostic.get(inner);
    if name == "xargs" && agnostic.is_none_or(|program| !program.except.is_empty()) {
        return Err(program.unproven("xargs", "is given arguments that are not known"));
    }
    if name == "builtin" && !has(&TABLE.programs.builtins, inner) {
        return Err(program.unproven("builtin", "is not a builtin that only reads"));
    }
    Ok(())
}
