//! Subcommands of git that only read.

use super::super::allowed::operands;
use super::super::expand::Arg;
use super::super::table::TABLE;
use super::{Harmless, Item, Proof, Prover};

impl Prover<'_> {
    pub(super) fn git(&self, first: &Item, rest: &[Item]) -> Proof {
        let Some((subcommand, rest)) = rest.split_first() else {
            return Err(first.unproven("git", "has no subcommand"));
        };
        let name = subcommand.literal()?;
        let alone = TABLE.safe.git_alone.get(name).filter(|_| self.alone);
        let Some(options) = alone.or_else(|| TABLE.safe.git.get(name)) else {
            let reason = if name.starts_with('-') {
                "is an option for all of git"
            } else {
                "is not a subcommand that only reads"
            };
            return Err(subcommand.unproven("git", reason));
        };
        for item in rest {
            // `%G…` and `%(signature)` in a format have signatures checked, which runs a program.
            let text = item.literal()?;
            if text.contains("%G") || text.contains("%(") && text.contains("signature") {
                return Err(item.unproven("git", "runs the signature checker"));
            }
        }
        for item in operands(rest, options, subcommand)? {
            // What the caller excludes by its path has another one in `HEAD:folder`.
            if alone.is_some() && item.literal()?.find(':') > Some(0) {
                return Err(item.unproven("git", "may name a folder of a revision"));
            }
            self.each(item, Self::pathspec)?;
        }
        // `-L1,5:file` names a file as well.
        for (item, before) in rest.iter().zip([subcommand].into_iter().chain(rest)) {
            if item.source.starts_with("-L") || before.source == "-L" {
                self.each(item, Self::pathspec)?;
            }
        }
        Ok(())
    }

    /// What git may take for a path: `rev:path`, `:(magic)path`, and `*` matches hidden names, too.
    fn pathspec(&self, arg: &Arg) -> Harmless {
        self.harmless(arg)?;
        for piece in arg.text.split([':', '(', ')', ',', '!', '^']) {
            let name = piece.trim_start_matches(['*', '?', '/']);
            let hidden = format!(".{}", name.trim_start_matches('.'));
            for text in [piece, name, hidden.as_str()] {
                let dotted = text.len() > 1 && (text != hidden || piece.len() > name.len());
                if dotted || text == piece {
                    self.harmless(&Arg::literal(text))?;
                }
            }
        }
        Ok(())
    }
}
