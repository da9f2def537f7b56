//! Downloads that are run, uploads of files and secrets, and shells that are connected to the network.

use super::command::{Setting, all_text, shown};
use super::expand::{Arg, UNKNOWN};
use super::flow::taint_of;
use super::paths;
use super::peel::option_values;
use super::scope::Scope;
use super::table::TABLE;
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

/// Options whose value is sent as the body of a request.
const BODY_OPTIONS: [&str; 12] = [
    "-d",
    "--data",
    "--data-binary",
    "--data-ascii",
    "--data-urlencode",
    "--data-raw",
    "--json",
    "-F",
    "--form",
    "--post-data",
    "--url-query",
    "-H",
];

/// Options whose value is a file that is sent.
const FILE_OPTIONS: [&str; 5] = [
    "-T",
    "--upload-file",
    "--post-file",
    "--body-file",
    "--attach",
];

impl Walk<'_> {
    /// Programs that talk to other machines.
    pub(super) fn network(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        self.connects_shell(program, args, rest);
        if TABLE.programs.fetchers.contains(program) {
            for name in download_names(program, rest) {
                scope.files.download(&name);
            }
        }
        if TABLE.programs.senders.contains(program) {
            self.upload(program, args, rest, setting, scope);
        }
    }

    fn connects_shell(&mut self, program: &str, args: &[Arg], rest: &[Arg]) {
        let runs = match program {
            "nc" | "ncat" | "netcat" | "nc.traditional" | "nc.openbsd" => {
                rest.iter().any(|arg| {
                    super::table::is_option(&arg.text, "-e")
                        || super::table::is_option(&arg.text, "-c")
                        || matches!(arg.text.as_str(), "--exec" | "--sh-exec" | "--lua-exec")
                }) || all_text(rest).contains("-exec")
            }
            "socat" => {
                let text = all_text(rest).to_ascii_lowercase();
                ["exec:", "system:", "shell:"]
                    .iter()
                    .any(|kind| text.contains(kind))
            }
            _ => false,
        };
        if runs {
            self.find(
                Blocked,
                "reverse-shell",
                &shown(args),
                "connects a program to the network",
            );
        }
    }

    fn upload(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &Scope,
    ) {
        let body_file = BODY_OPTIONS
            .iter()
            .any(|option| option_values(rest, option).any(|value| names_file(&value.text)));
        let whole_file = FILE_OPTIONS
            .iter()
            .any(|option| option_values(rest, option).next().is_some());
        let http = matches!(program, "curl" | "wget" | "curlie");
        let sends_input = matches!(
            program,
            "nc" | "ncat"
                | "netcat"
                | "telnet"
                | "socat"
                | "ssh"
                | "mail"
                | "mailx"
                | "sendmail"
                | "mutt"
                | "msmtp"
                | "swaks"
                | "pastebinit"
                | "slackcat"
                | "croc"
                | "wormhole"
        );
        let pipes = sends_input && setting.input.connected && setting.input.text.is_none();
        if http && (body_file || whole_file)
            || pipes
            || matches!(program, "http" | "https" | "xh")
                && rest.iter().any(|arg| names_file(&arg.text))
        {
            self.find(
                Dangerous,
                "upload",
                &shown(args),
                "sends a file to another machine",
            );
        }
        if matches!(program, "sftp" | "ftp" | "lftp" | "tftp") {
            self.transfers(args, rest, setting, scope);
        }
        let keys = matches!(program, "ssh" | "scp" | "sftp" | "rsync" | "curl");
        let mut skip = false;
        let mut secret = taint_of(rest).secret || setting.input.taint.secret;
        for arg in rest {
            let key = skip;
            skip =
                keys && matches!(
                    arg.text.as_str(),
                    "-i" | "-F" | "--key" | "--cert" | "--cacert" | "-o"
                ) && !(program == "curl" && matches!(arg.text.as_str(), "-F" | "-o" | "-i"));
            secret |= !key && sends_secret(arg, scope);
        }
        if secret {
            self.find(Dangerous, "upload", &shown(args), "sends a secret away");
        }
        let deletes = ["-X", "--request", "--method"].iter().any(|option| {
            option_values(rest, option).any(|value| value.text.eq_ignore_ascii_case("delete"))
        });
        if deletes || (program.starts_with("http") && rest.iter().any(|arg| arg.text == "DELETE")) {
            self.find(
                Dangerous,
                "remote-deletion",
                &shown(args),
                "deletes on another machine",
            );
        }
    }
}

impl Walk<'_> {
    /// Clients that are told by text what to send; text that is not known may tell them to.
    fn transfers(&mut self, args: &[Arg], rest: &[Arg], setting: &Setting, scope: &Scope) {
        let mut text = String::new();
        for option in ["-c", "-e"] {
            option_values(rest, option).for_each(|value| text.push_str(&value.text));
        }
        let batch = option_values(rest, "-b").chain(option_values(rest, "-f"));
        let mut unknown = false;
        for file in batch {
            match super::stored::text(&file, scope) {
                Some(known) => text.push_str(&known),
                None => unknown |= !file.text.starts_with('-'),
            }
        }
        match &setting.input.text {
            Some(input) => text.push_str(input),
            None => unknown |= setting.input.connected,
        }
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '!');
        let sends = |word: &str| {
            let word = word.to_ascii_lowercase();
            [
                "put", "mput", "reput", "send", "append", "mirror", "rm", "mrm", "delete",
                "mdelete", "rmdir",
            ]
            .contains(&word.as_str())
        };
        if unknown || words.any(sends) {
            let reason = "sends files to another machine, or deletes there";
            self.find(Dangerous, "upload", &shown(args), reason);
        }
        for line in text
            .lines()
            .filter_map(|line| line.trim().strip_prefix('!'))
        {
            let mut inner = scope.clone();
            self.text(line, &mut inner, &super::flow::Feed::default());
        }
    }
}

/// Whether a request's body is read from a file: `@file`, `name=@file`, `name@file`.
fn names_file(text: &str) -> bool {
    text.starts_with('@')
        || text.contains("=@")
        || text.contains("=<")
        || text.split_once('@').is_some_and(|(name, file)| {
            !name.contains(['=', '/', ':', ' ', '.']) && !file.is_empty()
        })
}

fn sends_secret(arg: &Arg, scope: &Scope) -> bool {
    if arg.text.contains("://") {
        return false;
    }
    let pieces = arg.text.split(['@', '=', '<', ',', ';']);
    pieces
        .filter(|piece| !piece.is_empty() && !piece.contains(' '))
        .any(|piece| paths::denied(&Arg::literal(piece), scope).is_some())
        || paths::denied(arg, scope).is_some()
}

/// Returns the names under which a download is stored.
fn download_names(program: &str, rest: &[Arg]) -> Vec<String> {
    let mut names: Vec<String> = ["-o", "--output", "-O", "--output-document", "--out"]
        .iter()
        .flat_map(|option| option_values(rest, option))
        .map(|value| value.text)
        .filter(|name| name != "-" && !name.contains("://"))
        .collect();
    let remote = rest.iter().any(|arg| {
        super::table::is_option(&arg.text, "-O") || arg.text.starts_with("--remote-name")
    });
    let stored = matches!(
        program,
        "wget" | "wget2" | "aria2c" | "axel" | "ftp" | "lftp" | "scp" | "sftp"
    );
    if remote || (stored && names.is_empty()) {
        let from_address = rest
            .iter()
            .filter(|arg| !arg.text.starts_with('-'))
            .map(|arg| {
                let path = arg.text.split(['?', '#']).next().unwrap_or_default();
                if arg.unknown {
                    UNKNOWN.to_string()
                } else if matches!(program, "scp" | "sftp") {
                    path.rsplit(':').next().unwrap_or_default().to_owned()
                } else {
                    path.trim_end_matches('/').to_owned()
                }
            });
        names.extend(from_address);
    }
    names
}
