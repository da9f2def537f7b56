//! Programs that change processes, modes and owners, or give away the machine, beyond what the tables say.

use super::Word;
use super::command::shown;
use super::expand::Arg;
use super::paths;
use super::removal::abbreviates;
use super::scope::Scope;
use super::table::cluster;
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

impl Walk<'_> {
    /// Programs that change processes, modes or the machine, beyond what the tables say.
    pub(super) fn system(&mut self, program: &str, args: &[Arg], rest: &[Arg], scope: &Scope) {
        match program {
            "kill" => self.kill(args, rest),
            "chmod" | "chown" | "chgrp" | "chattr" | "setfacl" | "xattr" => {
                self.mode(args, rest, scope);
            }
            "mkfifo" | "mknod" => self.signs.named_pipe = true,
            "nc" | "ncat" | "netcat" | "telnet" | "socat" => self.signs.netcat = true,
            "openssl" if rest.first().is_some_and(|arg| arg.text == "s_client") => {
                self.signs.netcat = true;
            }
            "crontab" => {
                let lists = rest.iter().any(|arg| arg.text == "-l" || arg.text == "-e");
                if !lists {
                    let reason = "replaces the schedule of the user";
                    self.find(Dangerous, "schedule", &shown(args), reason);
                }
            }
            "docker" | "podman" | "nerdctl" => {
                let mounts = |arg: &Arg| {
                    arg.text
                        .trim_start_matches("-v")
                        .trim_start_matches("--volume=")
                        .starts_with("/:")
                        || arg.text.contains("docker.sock")
                        || arg.text.contains("source=/,")
                        || arg.text.contains("src=/,")
                };
                if rest.iter().any(mounts) {
                    let reason = "gives a container the whole machine";
                    self.find(Dangerous, "container", &shown(args), reason);
                }
            }
            _ => {}
        }
        let script = args
            .first()
            .is_some_and(|arg| arg.text.contains("/init.d/"));
        let stops = |arg: &Arg| matches!(arg.text.as_str(), "stop" | "restart" | "force-stop");
        if script && rest.iter().any(stops) {
            let reason = "stops or changes services of the machine";
            self.find(Dangerous, "service", &shown(args), reason);
        }
    }

    fn kill(&mut self, args: &[Arg], rest: &[Arg]) {
        let mut targets = rest;
        if let Some((first, after)) = rest.split_first()
            && first.text.starts_with('-')
        {
            targets = match first.text.as_str() {
                "-s" | "-n" => after.get(1..).unwrap_or_default(),
                _ => after,
            };
        }
        for target in targets {
            // `01` and `+1` are the first process as well.
            let process = target.text.trim().parse::<i64>().ok();
            let substituted = target.word.as_ref().is_none_or(
                |word| matches!(word, Word::Dynamic(source) if source.contains(['(', '`'])),
            );
            if process == Some(1) {
                self.find(Blocked, "power", &shown(args), "kills the first process");
            } else if process == Some(-1) || (target.unknown && substituted) {
                let reason = "kills processes by name or all of them";
                self.find(Dangerous, "process", &shown(args), reason);
            }
        }
    }

    fn mode(&mut self, args: &[Arg], rest: &[Arg], scope: &Scope) {
        let recursive = rest.iter().any(|arg| {
            cluster(&arg.text).is_some_and(|letters| letters.contains('R'))
                || abbreviates(&arg.text, "--recursive")
        });
        let mut operands = rest.iter().filter(|arg| !arg.text.starts_with('-'));
        let mode = operands.next();
        let protected = operands.any(|arg| paths::protected(arg, scope));
        let special = mode.is_some_and(|mode| sets_identity(&mode.text));
        match (recursive, protected) {
            (true, true) => self.find(
                Blocked,
                "protected-tree",
                &shown(args),
                "changes a system directory or a home",
            ),
            (false, false) if !special => {}
            (true, false) => self.find(
                Dangerous,
                "mode",
                &shown(args),
                "changes the mode or owner of a whole tree",
            ),
            _ => self.find(
                Dangerous,
                "mode",
                &shown(args),
                "changes a system file, or what identity a program runs with",
            ),
        }
    }
}

/// Whether a mode sets the set-user-id or set-group-id bit.
fn sets_identity(mode: &str) -> bool {
    let octal = mode.len() >= 4 && mode.chars().all(|c| c.is_digit(8));
    let digit = mode.chars().rev().nth(3).unwrap_or('0');
    octal && matches!(digit, '2' | '4' | '6' | '3' | '5' | '7')
        || mode.contains('+') && mode.split('+').skip(1).any(|bits| bits.contains('s'))
}
