//! Subcommands of git that only read.

use super::super::allowed::operands;
use super::super::expand::Arg;
use super::super::table::TABLE;
use super::{Item, Proof, Prover};

impl Prover<'_> {
    pub(super) fn git(&self, first: &Item, rest: &[Item]) -> Proof {
        let Some((subcommand, rest)) = rest.split_first() else {
            return Err(first.unproven("git", "has no subcommand"));
        };
        let name = subcommand.literal()?;
        let Some(options) = TABLE.safe.git.get(name) else {
            let reason = if name.starts_with('-') {
                "is an option for all of git"
            } else {
                "is not a subcommand that only reads"
            };
            return Err(subcommand.unproven("git", reason));
        };
        for item in rest {
            // `%G…` in a format has signatures checked, which runs a program.
            if item.literal()?.contains("%G") {
                return Err(item.unproven("git", "runs the signature checker"));
            }
        }
        let operands = operands(rest, options, subcommand)?;
        for item in &operands {
            self.pathspec(item)?;
        }
        // `-L1,5:file` names a file as well.
        let ranged = rest.windows(2).filter_map(|pair| match pair {
            [option, value] if option.source == "-L" => Some(value),
            _ => None,
        });
        for item in rest
            .iter()
            .filter(|item| item.source.starts_with("-L"))
            .chain(ranged)
        {
            self.pathspec(item)?;
        }
        Ok(())
    }

    /// What git may take for a path: `rev:path`, `:(magic)path`, and `*` matches hidden names, too.
    fn pathspec(&self, item: &Item) -> Proof {
        for arg in &item.args {
            self.harmless(arg, &item.source)?;
            for piece in arg.text.split([':', '(', ')', ',', '!', '^']) {
                let name = piece.trim_start_matches(['*', '?', '/']);
                let hidden = format!(".{}", name.trim_start_matches('.'));
                for text in [piece, name, hidden.as_str()] {
                    let part = Arg::literal(text);
                    let glob = text.contains(['*', '?', '[']);
                    let dotted = text.len() > 1 && (text != hidden || piece.len() > name.len());
                    if dotted || text == piece {
                        self.harmless(&Arg { glob, ..part }, &item.source)?;
                    }
                }
            }
        }
        Ok(())
    }
}
