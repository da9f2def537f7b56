//! Downloads that are run, uploads of files and secrets, and shells that are connected to the network.

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::flow::taint_of;
use super::paths;
use super::scope::Scope;
use super::table::TABLE;
use super::walk::Walk;

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
    pub(super) fn network(&mut self, it: &Invocation<'_>, scope: &Scope) {
        if TABLE.programs.fetchers.contains(it.program) {
            for name in download_names(it) {
                scope.files.store(&name, true, false);
            }
        }
        if TABLE.programs.senders.contains(it.program) {
            self.upload(it, scope);
        }
    }

    fn upload(&mut self, it: &Invocation<'_>, scope: &Scope) {
        let file = |values: &[Arg]| values.iter().any(|value| names_file(&value.text));
        let sends = match it.program {
            "curl" | "wget" | "curlie" => {
                file(&it.values(&BODY_OPTIONS)) || !it.values(&FILE_OPTIONS).is_empty()
            }
            "http" | "https" | "xh" => file(it.rest),
            "nc" | "ncat" | "netcat" | "telnet" | "socat" | "ssh" | "mail" | "mailx"
            | "sendmail" | "mutt" | "msmtp" | "swaks" | "pastebinit" | "slackcat" | "croc"
            | "wormhole" => it.input.connected && it.input.text.is_none(),
            // Their commands are in what they read: `put`, `mirror -R`, `rm`.
            "sftp" | "ftp" | "lftp" | "tftp" => {
                it.input.connected || !it.values(&["-b", "-c", "-e", "-f"]).is_empty()
            }
            _ => false,
        };
        if sends {
            self.dangerous(it.args, "upload", "sends a file to another machine");
        }
        let keys = matches!(it.program, "ssh" | "scp" | "sftp" | "rsync" | "curl");
        let own = match it.program {
            "curl" => &["--key", "--cert", "--cacert"][..],
            _ => &["-i", "-F", "-o", "--key", "--cert", "--cacert"],
        };
        let before = [""].into_iter().chain(it.rest.iter().map(|arg| &*arg.text));
        let mut words = it.rest.iter().zip(before);
        let named = words.any(|(arg, option)| {
            let key = keys && own.contains(&option);
            !key && sends_secret(arg, scope)
        });
        if named || taint_of(it.rest).secret || it.input.taint.secret {
            self.dangerous(it.args, "upload", "sends a secret away");
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
fn download_names(it: &Invocation<'_>) -> Vec<String> {
    let named = it.values(&["-o", "--output", "-O", "--output-document", "--out"]);
    let named = named.into_iter().map(|value| value.text);
    let mut names: Vec<String> = named
        .filter(|name| name != "-" && !name.contains("://"))
        .collect();
    let copies = matches!(it.program, "scp" | "sftp");
    let stores = copies
        || matches!(
            it.program,
            "wget" | "wget2" | "aria2c" | "axel" | "ftp" | "lftp"
        );
    let remote = it.has("-O") || it.has("--remote-name") || it.has("--remote-name-all");
    if remote || stores && names.is_empty() {
        let words = it.rest.iter().filter(|arg| !arg.text.starts_with('-'));
        names.extend(words.map(|arg| {
            let path = arg.text.split(['?', '#']).next().unwrap_or_default();
            match path.rsplit(':').next() {
                _ if arg.unknown => UNKNOWN.to_string(),
                Some(path) if copies => path.to_owned(),
                _ => path.trim_end_matches('/').to_owned(),
            }
        }));
    }
    names
}
