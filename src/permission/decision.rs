//! One call, one decision: run, ask, or refuse, with the reason.

use super::rule::Said;
use super::{NetworkPolicy, Remember, Scope};
use crate::classifier::{Denial, SimpleCommand};
use crate::message::{Danger, DangerLevel, ToolCategory, ToolSpec, TrustLevel, WITH_BASH};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Run {
        /// How far the approval reaches without which it would be asked for.
        remembered: Option<Remember>,
    },
    /// The user is asked, for this reason.
    Ask(String),
    /// It does not run, for this reason, which the model reads.
    Refuse(String),
    /// It does not run, because the user said so before.
    Denied(Said),
}

/// What a decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The tool.
    pub tool: &'a ToolSpec,
    /// How much harm the call may do.
    pub danger: &'a Danger,
    /// Paths it names, relative to their root.
    pub paths: &'a [String],
    /// Whether these paths are folders, of which only what the scope shows is seen.
    pub walks: bool,
    /// The simple commands it runs; empty where it is no shell.
    pub commands: &'a [SimpleCommand],
    /// Whether these commands are all that runs.
    pub plain: bool,
    /// Whether it wants the network for a command.
    pub network: bool,
    /// What the user said before of calls like it.
    pub said: Option<&'a Said>,
    /// How many times in a row the model has made this very call, this one included.
    pub repeated: u32,
    /// What the operator's settings say of it, where it is a search of the web.
    pub search: Option<&'a Search>,
}

/// What the operator's settings say of one search, beyond the trust level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Search {
    /// Nothing.
    Free,
    /// It is asked for, for this reason, unless the user said not to be asked for it again.
    Asked(String),
    /// The exchange has made as many searches as may be made without asking.
    Spent(usize),
}

/// The operator's settings that a decision rests on.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How much is done without asking.
    pub trust: TrustLevel,
    /// Whether commands that are proven to read only run without asking under `guided`.
    pub auto_approve_safe_commands: bool,
    /// Whether commands may use the network.
    pub network: NetworkPolicy,
}

/// A call made this often in a row is asked for.
pub const REPEATED_CALLS: u32 = 3;

/// The same for a call that only reads, under `autonomous`: it harms nothing, and a model may well wait for something
/// by looking again, but not for ever.
pub const REPEATED_SAFE_CALLS: u32 = 25;

/// Decides about one call.
///
/// Refusals come first, the user's own among them, then what is asked at every trust level, then the trust level, unless the
/// user said before not to be asked for it, which counts for nothing under `supervised`: a milder rule never hides a
/// stricter one.
pub fn decide(subject: &Subject<'_>, scope: &Scope, rules: Rules) -> Decision {
    let name = &subject.tool.name;
    if subject.danger.level == DangerLevel::Blocked {
        return Decision::Refuse(format!(
            "this command is blocked at every trust level: {}",
            subject.danger.reasons.join("; ")
        ));
    }
    let approval = match subject.said {
        Some(said) if !said.allows => return Decision::Denied(said.clone()),
        approval => approval,
    };
    // A command is as harmful as its words say; elsewhere the tool's own level speaks for each call.
    let level = match subject.tool.category {
        ToolCategory::Exec => subject.tool.danger_level.max(subject.danger.level),
        _ => subject.tool.danger_level,
    };
    let Some(grant) = scope.grant(name, level) else {
        return Decision::Refuse(format!("the tool `{name}` is not allowed here"));
    };
    let denial = grant.denies_one(subject.commands);
    if denial == Denial::Certain {
        return Decision::Refuse("the permissions here deny this command".to_owned());
    }
    let outside = match subject.walks {
        true => grant.folder_outside(subject.paths),
        false => grant.path_outside(subject.paths),
    };
    if let Some(path) = outside {
        let reason = format!("`{path}` is outside the paths that `{name}` may use here");
        return match rules.trust {
            TrustLevel::Autonomous => Decision::Ask(reason),
            TrustLevel::Guided | TrustLevel::Supervised => Decision::Refuse(reason),
        };
    }
    if subject.network {
        match rules.network {
            // The operator's word: no scope, least of all a client's, takes it back.
            NetworkPolicy::Off => {
                return Decision::Refuse("the network is switched off for commands".to_owned());
            }
            NetworkPolicy::Ask if !grant.network() => {
                return Decision::Ask("the command asks for the network".to_owned());
            }
            NetworkPolicy::Ask | NetworkPolicy::On => {}
        }
    }
    if denial == Denial::Possible {
        return Decision::Ask(
            "it may be a command that the permissions here deny: which one it is is only known when it runs"
                .to_owned(),
        );
    }
    // Of a tool that runs no command, reasons name files that are asked for at every level.
    if subject.commands.is_empty() && !subject.danger.reasons.is_empty() {
        return Decision::Ask(subject.danger.reasons.join("; "));
    }
    // Looking again at a command in the background is how a model waits for it, at every trust level.
    let waits = rules.trust == TrustLevel::Autonomous || WITH_BASH.contains(&name.as_str());
    let harmless = waits && subject.danger.level == DangerLevel::Safe;
    let often = match harmless {
        true => REPEATED_SAFE_CALLS,
        false => REPEATED_CALLS,
    };
    if subject.repeated >= often {
        return Decision::Ask(format!(
            "the model made this very call {} times in a row",
            subject.repeated
        ));
    }
    match subject.search {
        Some(Search::Spent(limit)) => {
            return Decision::Ask(format!(
                "this exchange has made {limit} searches, which is the limit (tools.web_search.limit)"
            ));
        }
        Some(Search::Asked(reason)) if approval.is_none() => {
            return Decision::Ask(reason.clone());
        }
        Some(Search::Asked(_) | Search::Free) | None => {}
    }
    let dangerous = subject.danger.level == DangerLevel::Dangerous;
    let command = !subject.commands.is_empty();
    if command && dangerous && !grant.dangerous() && rules.trust == TrustLevel::Autonomous {
        return Decision::Ask("the command is classed dangerous".to_owned());
    }
    let allowed = !dangerous && subject.plain && grant.allows_all(subject.commands);
    match (by_trust(subject, rules, allowed), approval) {
        // What was said under another level is no answer where every call is asked for.
        (Decision::Ask(_), Some(said)) if rules.trust != TrustLevel::Supervised => Decision::Run {
            remembered: Some(said.reach),
        },
        (decision, _) => decision,
    }
}

/// What the trust level alone says; `allowed` where the scope names the command as one to run.
fn by_trust(subject: &Subject<'_>, rules: Rules, allowed: bool) -> Decision {
    // A tool that is offered where only reading is runs what only reads.
    let is_shell = !subject.commands.is_empty() && subject.tool.danger_level > DangerLevel::Safe;
    let is_safe = subject.danger.level == DangerLevel::Safe;
    match rules.trust {
        TrustLevel::Autonomous => Decision::Run { remembered: None },
        TrustLevel::Supervised => {
            Decision::Ask("every call is asked for at trust level `supervised`".to_owned())
        }
        TrustLevel::Guided if allowed => Decision::Run { remembered: None },
        TrustLevel::Guided if is_safe && is_shell && !rules.auto_approve_safe_commands => {
            Decision::Ask("commands are asked for at trust level `guided`".to_owned())
        }
        TrustLevel::Guided if is_safe => Decision::Run { remembered: None },
        TrustLevel::Guided => Decision::Ask(format!(
            "`{}` can change things and is asked for at trust level `guided`",
            subject.tool.name
        )),
    }
}

#[cfg(test)]
mod tests;
