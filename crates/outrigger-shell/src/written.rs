//! The commands of a line as they stand in it, for whoever names what ran: of what an argument may be made to run, the
//! other commands of a [`Classification`](super::Classification), a name may be a piece of a secret.

use super::types::{Script, Stage, Token};
use super::{MAX_COMMANDS, SimpleCommand};

/// Returns the commands of a script, those of groups, loops and functions among them, up to [`MAX_COMMANDS`]; none of
/// those within words.
pub(super) fn of(script: &Script) -> Vec<SimpleCommand> {
    let mut found = Vec::new();
    collect(script, &mut found);
    found
}

fn collect(script: &Script, found: &mut Vec<SimpleCommand>) {
    for stage in script.iter().flat_map(|it| &it.stages) {
        if let Some(compound) = &stage.compound {
            collect(&compound.body, found);
        }
        if !stage.words.is_empty() && found.len() < MAX_COMMANDS {
            found.push(words(stage));
        }
    }
}

fn words(stage: &Stage) -> SimpleCommand {
    stage.words.iter().map(Token::word).collect()
}
