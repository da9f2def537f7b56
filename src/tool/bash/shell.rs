//! Which shell runs the lines of `bash`, and whether its language is one that the classifier reads.

use std::collections::BTreeMap;

use crate::classifier::Classification;

/// The shells of Unix, the first there is.
const UNIX: [(&str, Kind); 2] = [("/bin/bash", Kind::Bash), ("/bin/sh", Kind::Sh)];

/// Where Git for Windows has its bash, below its own folder.
const GIT_BASH: &str = r"bin\bash.exe";

/// How many folders above `git.exe` its own folder is: it is in `cmd` or `bin`, or in `mingw64\bin`.
const ABOVE_GIT: [usize; 2] = [2, 3];

/// Variables of folders, with what is between them and Git's where it was installed without a place of its own in `PATH`.
const GIT_PLACES: [(&str, &str); 3] = [
    ("ProgramFiles", r"\Git"),
    ("ProgramFiles(x86)", r"\Git"),
    ("LOCALAPPDATA", r"\Programs\Git"),
];

/// What has PowerShell write what the daemon reads.
const POWERSHELL_UTF8: &str = "[Console]::OutputEncoding=[Text.Encoding]::UTF8; ";

/// The same for `cmd.exe`.
/// By its place: a program of this name in the project is another one.
const CMD_UTF8: &str = r"%SystemRoot%\System32\chcp.com 65001>nul 2>nul&";

/// A shell that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shell {
    kind: Kind,
    program: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bash,
    Sh,
    /// That of Git for Windows.
    GitBash,
    PowerShell,
    Cmd,
}

/// A line with what was judged of it: for the shell that runs it, and for no other.
pub(super) struct Judged<'a> {
    shell: &'a Shell,
    line: String,
    classified: Classification,
}

impl Shell {
    /// Returns the shell of this machine; `path` finds a program, `is_file` says whether a file is there.
    pub(super) fn here(
        environment: &BTreeMap<String, String>,
        find: impl Fn(&str) -> Option<String>,
        is_file: impl Fn(&str) -> bool,
    ) -> Self {
        match cfg!(windows) {
            true => Self::of_windows(environment, find, is_file),
            false => Self::of_unix(is_file),
        }
    }

    fn of_unix(is_file: impl Fn(&str) -> bool) -> Self {
        let [.., last] = UNIX;
        let found = UNIX.into_iter().find(|(program, _)| is_file(program));
        let (program, kind) = found.unwrap_or(last);
        Self {
            kind,
            program: program.to_owned(),
        }
    }

    /// Git's bash, in whose language models write best and which nearly every developer has; else PowerShell, the newer one
    /// first; else `cmd.exe`. The `bash.exe` of the system is none of them: it starts a Linux machine, with other paths.
    fn of_windows(
        environment: &BTreeMap<String, String>,
        find: impl Fn(&str) -> Option<String>,
        is_file: impl Fn(&str) -> bool,
    ) -> Self {
        let of_git = find("git").into_iter().flat_map(|git| {
            let above = ABOVE_GIT.map(|count| {
                let names: Vec<&str> = git.split('\\').collect();
                let kept = names.len().checked_sub(count)?;
                names.get(..kept).map(|names| names.join("\\"))
            });
            above.into_iter().flatten()
        });
        let of_places = GIT_PLACES.iter().filter_map(|(variable, below)| {
            let mut variables = environment.iter();
            let (_, place) = variables.find(|(name, _)| name.eq_ignore_ascii_case(variable))?;
            Some(format!("{place}{below}"))
        });
        let mut bashes = of_git
            .chain(of_places)
            .map(|folder| format!("{folder}\\{GIT_BASH}"));
        if let Some(program) = bashes.find(|bash| is_file(bash)) {
            let kind = Kind::GitBash;
            return Self { kind, program };
        }
        let mut others = [("pwsh", Kind::PowerShell), ("powershell", Kind::PowerShell)]
            .into_iter()
            .filter_map(|(name, kind)| Some((find(name)?, kind)));
        let (program, kind) = others.next().unwrap_or_else(|| {
            let cmd = find("cmd").unwrap_or_else(|| r"C:\Windows\System32\cmd.exe".to_owned());
            (cmd, Kind::Cmd)
        });
        Self { kind, program }
    }

    /// Returns its name, as it stands in a sentence for the model.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Bash => "bash",
            Kind::Sh => "sh",
            Kind::GitBash => "the bash of Git for Windows",
            Kind::PowerShell => "PowerShell (this machine runs Windows)",
            Kind::Cmd => "cmd.exe (this machine runs Windows)",
        }
    }

    /// Judges a line for this shell. `classify` reads bash; of a line in another language nothing is known, so that each of
    /// them is asked for and none is remembered.
    pub(super) fn judge(
        &self,
        line: String,
        classify: impl FnOnce(&str) -> Classification,
    ) -> Judged<'_> {
        let classified = match self.kind {
            Kind::Bash | Kind::Sh => classify(&line),
            // Also a builtin that only reads opens `//host/share` there, and with it shows the user's proof of the password.
            Kind::GitBash => classify(&line).unproven(),
            Kind::PowerShell | Kind::Cmd => Classification::unread(self.language()),
        };
        Judged {
            shell: self,
            line,
            classified,
        }
    }

    /// Returns why it cannot be given a line.
    pub(super) fn refuses(&self, line: &str) -> Option<&'static str> {
        // It would run the first one and say nothing of the others.
        (self.kind == Kind::Cmd && line.trim().contains(['\n', '\r'])).then_some(
            "`command` has more than one line, of which cmd.exe runs the first only; join them with `&&`, or write a .cmd file and run that",
        )
    }

    fn language(&self) -> &'static str {
        match self.kind {
            Kind::Bash | Kind::Sh | Kind::GitBash => "bash",
            Kind::PowerShell => "PowerShell",
            Kind::Cmd => "cmd.exe",
        }
    }

    /// Options, and what is put before each line.
    fn options(&self) -> (&'static [&'static str], &'static str) {
        match self.kind {
            Kind::Bash | Kind::GitBash => (&["--noprofile", "--norc", "-c"], ""),
            Kind::Sh => (&["-c"], ""),
            Kind::PowerShell => (
                &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"],
                POWERSHELL_UTF8,
            ),
            Kind::Cmd => (&["/d", "/c"], CMD_UTF8),
        }
    }
}

impl Judged<'_> {
    pub(super) fn classified(&self) -> &Classification {
        &self.classified
    }

    pub(super) fn classified_mut(&mut self) -> &mut Classification {
        &mut self.classified
    }

    /// Returns the program that runs the line, and its arguments.
    pub(super) fn program(&self) -> (&str, Vec<String>) {
        let (options, before) = self.shell.options();
        let options = options.iter().map(|option| (*option).to_owned());
        let line = match self.shell.kind {
            Kind::Cmd => self.line.trim(),
            _ => &self.line,
        };
        let line = format!("{before}{line}");
        (&self.shell.program, options.chain([line]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::DangerLevel;

    const GIT: &str = r"C:\Program Files\Git";
    const POWERSHELL: &str = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";

    fn of_windows(there: &[&str]) -> Shell {
        let environment = [
            ("PROGRAMFILES", r"C:\Program Files"),
            ("LOCALAPPDATA", r"C:\Users\u\AppData\Local"),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let find = |name: &str| {
            let name = format!("\\{name}.exe");
            let mut found = there.iter().filter(|program| program.ends_with(&name));
            found.next().map(|program| (*program).to_owned())
        };
        let is_file = |path: &str| there.contains(&path);
        Shell::of_windows(&environment.into(), find, is_file)
    }

    #[test]
    fn windows_has_the_first_shell_that_is_there() {
        let bash = format!(r"{GIT}\bin\bash.exe");
        let cmd = r"C:\Windows\System32\cmd.exe";
        let wsl = r"C:\Windows\System32\bash.exe";
        let own = r"D:\git\bin\bash.exe";
        let users = r"C:\Users\u\AppData\Local\Programs\Git\bin\bash.exe";
        for (there, kind, program) in [
            (
                &[bash.as_str(), POWERSHELL, cmd][..],
                Kind::GitBash,
                bash.as_str(),
            ),
            (&[own, r"D:\git\cmd\git.exe"], Kind::GitBash, own),
            (&[own, r"D:\git\mingw64\bin\git.exe"], Kind::GitBash, own),
            (&[users, cmd], Kind::GitBash, users),
            (&[POWERSHELL, cmd, wsl], Kind::PowerShell, POWERSHELL),
            (
                &[POWERSHELL, r"C:\p\pwsh.exe"],
                Kind::PowerShell,
                r"C:\p\pwsh.exe",
            ),
            (&[cmd, wsl, r"C:\git.exe"], Kind::Cmd, cmd),
            (&[], Kind::Cmd, cmd),
        ] {
            let shell = of_windows(there);
            assert_eq!(
                (shell.kind, shell.program.as_str()),
                (kind, program),
                "{there:?}"
            );
        }
    }

    #[test]
    fn only_bash_is_judged() {
        for (kind, is_read) in [
            (Kind::Bash, true),
            (Kind::Sh, true),
            (Kind::GitBash, true),
            (Kind::PowerShell, false),
            (Kind::Cmd, false),
        ] {
            let shell = Shell {
                kind,
                program: "x".to_owned(),
            };
            let mut read = false;
            let judged = shell.judge("dir".to_owned(), |_| {
                read = true;
                Classification::unread("a test's words")
            });
            assert_eq!(read, is_read, "{kind:?}");
            // What only reads need not be asked for, but for Git's bash.
            let safe = Classification {
                level: DangerLevel::Safe,
                findings: Vec::new(),
                ..Classification::unread("")
            };
            let level = shell.judge("pwd".to_owned(), |_| safe).classified().level;
            let expected = match kind {
                Kind::Bash | Kind::Sh => DangerLevel::Safe,
                Kind::GitBash => DangerLevel::Warning,
                Kind::PowerShell | Kind::Cmd => DangerLevel::Dangerous,
            };
            assert_eq!(level, expected, "{kind:?}");
            let classified = judged.classified();
            assert_eq!(classified.level, DangerLevel::Dangerous);
            assert!(classified.remembered.is_none() && !classified.plain);
        }
    }

    #[test]
    fn each_shell_is_given_a_line_in_its_own_way() {
        for (kind, given) in [
            (Kind::Bash, &["--noprofile", "--norc", "-c", " a\nb "][..]),
            (Kind::Sh, &["-c", " a\nb "]),
            (
                Kind::PowerShell,
                &[
                    "-NoLogo",
                    "-NoProfile",
                    "-NonInteractive",
                    "-Command",
                    "[Console]::OutputEncoding=[Text.Encoding]::UTF8;  a\nb ",
                ],
            ),
            (
                Kind::Cmd,
                &[
                    "/d",
                    "/c",
                    "%SystemRoot%\\System32\\chcp.com 65001>nul 2>nul&a\nb",
                ],
            ),
        ] {
            let shell = Shell {
                kind,
                program: "x".to_owned(),
            };
            let line = " a\nb ";
            let judged = shell.judge(line.to_owned(), |_| Classification::unread(""));
            let (program, arguments) = judged.program();
            assert_eq!(
                (program, arguments),
                ("x", given.iter().map(ToString::to_string).collect())
            );
            assert_eq!(shell.refuses(line).is_some(), kind == Kind::Cmd);
            assert_eq!(shell.refuses("one line\n"), None);
        }
    }
}
