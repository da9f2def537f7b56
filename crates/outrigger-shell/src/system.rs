//! Programs that change processes, modes and owners, or give away the machine, beyond what the tables say.

use super::Word;
use super::command::Invocation;
use super::paths;
use super::scope::Scope;
use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn system(&mut self, it: &Invocation<'_>, scope: &Scope) {
        match it.program {
            "kill" => self.kill(it),
            "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" => self.mode(it, scope),
            "mkfifo" | "mknod" => self.signs.named_pipe = true,
            "nc" | "ncat" | "netcat" | "telnet" | "socat" => self.signs.netcat = true,
            "openssl" if it.names(&["s_client"]) => self.signs.netcat = true,
            _ => {}
        }
        let service = it.first.text.contains("/init.d/");
        if service && it.names(&["stop", "restart", "force-stop"]) {
            let reason = "stops or changes services of the machine";
            self.dangerous(it.args, "service", reason);
        }
    }

    fn kill(&mut self, it: &Invocation<'_>) {
        let option = it.rest.first().map_or("", |first| &*first.text);
        let skipped = match option {
            "-s" | "-n" => 2,
            option => usize::from(option.starts_with('-')),
        };
        for target in it.rest.iter().skip(skipped) {
            // `01` and `+1` are the first process as well.
            let process = target.text.trim().parse::<i64>().ok();
            let substituted = target.word.as_ref().is_none_or(
                |word| matches!(word, Word::Dynamic(source) if source.contains(['(', '`'])),
            );
            if process == Some(1) {
                self.blocked(it.args, "power", "kills the first process");
            } else if process == Some(-1) || target.unknown && substituted {
                let reason = "kills processes by name or all of them";
                self.dangerous(it.args, "process", reason);
            }
        }
    }

    fn mode(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let recursive = it.has("-R") || it.has("--recursive");
        let mut operands = it.rest.iter().filter(|arg| !arg.text.starts_with('-'));
        let mode = operands.next().map_or("", |arg| arg.text.as_str());
        let protected = operands.any(|arg| paths::protected(arg, scope));
        if recursive && protected {
            let reason = "changes a system directory or a home";
            self.blocked(it.args, "protected-tree", reason);
        } else if it.program == "chmod" && opens_to_all(mode) {
            self.blocked(it.args, "mode", "lets everybody write and run it");
        } else if recursive {
            let reason = "changes the mode or owner of a whole tree";
            self.dangerous(it.args, "mode", reason);
        } else if protected || sets_identity(mode) {
            let reason = "changes a system file, or what identity a program runs with";
            self.dangerous(it.args, "mode", reason);
        }
    }
}

/// Whether a mode gives every right to everybody: `777`, `0777`, `a=rwx`, `+rwx`.
fn opens_to_all(mode: &str) -> bool {
    let octal = mode.chars().all(|c| c.is_digit(8));
    octal && mode.ends_with("777")
        || mode.split(',').any(|part| {
            let (who, rights) = part.split_once(['+', '=']).unwrap_or((part, ""));
            let everybody = who.is_empty() || who.contains('a') || who.contains('o');
            everybody && "rwx".chars().all(|right| rights.contains(right))
        })
}

/// Whether a mode sets the set-user-id or set-group-id bit.
fn sets_identity(mode: &str) -> bool {
    let octal = mode.len() >= 4 && mode.chars().all(|c| c.is_digit(8));
    let digit = mode.chars().rev().nth(3).unwrap_or('0');
    octal && matches!(digit, '2' | '4' | '6' | '3' | '5' | '7')
        || mode.contains('+') && mode.split('+').skip(1).any(|bits| bits.contains('s'))
}
