//! Downloads that are run, uploads of files and secrets, and shells that are connected to the network.

use super::command::Invocation;
use super::expand::{Arg, UNKNOWN};
use super::flow::taint_of;
use super::paths;
use super::scope::Scope;
use super::table::{TABLE, has};
use super::walk::Walk;

impl Walk<'_> {
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
        let table = &TABLE.sends;
        let file = |values: &[Arg]| values.iter().any(|value| names_file(&value.text));
        let sends = match it.program {
            "curl" | "wget" | "curlie" => {
                file(&it.values(&table.body)) || !it.values(&table.files).is_empty()
            }
            "http" | "https" | "xh" => file(it.rest),
            program if has(&table.input, program) => it.input.connected && it.input.text.is_none(),
            program if has(&table.scripted, program) => {
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
    let pieces = pieces.filter(|piece| !piece.is_empty() && !piece.contains(' '));
    let mut args = pieces.map(Arg::literal).chain([arg.clone()]);
    args.any(|arg| paths::denied(&arg, scope).is_some())
}

/// Returns the names under which a download is stored.
fn download_names(it: &Invocation<'_>) -> Vec<String> {
    let named = it.values(&["-o", "--output", "-O", "--output-document", "--out"]);
    let named = named.into_iter().map(|value| value.text);
    let named = named.filter(|name| name != "-" && !name.contains("://"));
    let mut names: Vec<String> = named.collect();
    let copies = matches!(it.program, "scp" | "sftp");
    let stores = has(&TABLE.sends.stores, it.program);
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
