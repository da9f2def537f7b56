//! Program text in other languages: commands in its strings, statements that destroy, connected shells.
//!
//! Nothing here understands those languages. Strings are taken out and read as shell text, and a few
//! words are looked for: enough to see what is written openly.

use super::command::{Setting, all_text, shown};
use super::expand::Arg;
use super::flow::{Feed, file_taint};
use super::peel::option_values;
use super::scope::Scope;
use super::table::{TABLE, cluster};
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

/// Most letters of options that are written together with a value.
const MAX_CLUSTER: usize = 6;

/// Calls that remove trees or files without a shell.
const REMOVING_CALLS: [&str; 28] = [
    "rmtree",
    "rmsync",
    "rmdirsync",
    "rm_rf",
    "rm_r",
    "remove_tree",
    "removedirs",
    "remove_entry",
    "fs.rm(",
    "unlinksync",
    "unlink(",
    "os.remove(",
    "file.delete",
    "fileutils.rm",
    "dir.delete",
    "rimraf",
    "remove-item",
    "send2trash",
    "deno.remove",
    "delete_folder",
    "del /",
    "rd /s",
    "os.unlink",
    "fs.unlink",
    // Languages in which a call needs no brackets.
    "unlink ",
    "unlink<",
    "unlink@",
    "unlink$",
];

/// What opens a connection, in several languages.
const CONNECTING: [&str; 6] = [
    "socket",
    "/inet/tcp",
    "fsockopen",
    "net.connect",
    "tcpsocket",
    "net.createconnection",
];

/// What names or starts a shell.
const SHELLS: [&str; 10] = [
    "/bin/sh",
    "/bin/bash",
    "/bin/zsh",
    "cmd.exe",
    "powershell",
    "pty.spawn",
    "exec(",
    "|&",
    "\"sh\"",
    "'sh'",
];

/// What fetches or decodes text.
const REVEALING: [&str; 25] = [
    "urlopen",
    "requests.get",
    "urllib",
    "http.get",
    "open-uri",
    "lwp::simple",
    "file_get_contents('http",
    "fetch(",
    "b64decode",
    "base64_decode",
    "decode64",
    "decode_base64",
    "decodebytes",
    "frombase64string",
    "unhexlify",
    "codecs.decode",
    "decompress",
    "gzinflate",
    "str_rot13",
    "marshal.loads",
    "fromhex",
    "'base64'",
    "\"base64\"",
    "atob(",
    "unpack(",
];

/// What runs text.
const RUNNING: [&str; 8] = [
    "exec(",
    "exec ",
    "eval(",
    "eval ",
    "os.system",
    "system(",
    "popen",
    "subprocess",
];

/// Words of SQL and its kin after which data is gone, and what must follow them.
const DESTROYING: [(&str, &[&str]); 14] = [
    (
        "drop",
        &[
            "table",
            "database",
            "schema",
            "index",
            "view",
            "user",
            "role",
            "column",
            "keyspace",
            "collection",
            "materialized",
            "function",
            "procedure",
            "trigger",
            "type",
            "owned",
            "tablespace",
            "sequence",
            "extension",
            "policy",
            "graph",
            "constraint",
            "temporary",
            "foreign",
            "publication",
            "subscription",
            "partition",
            "measurement",
            "series",
            "bucket",
            "retention",
            "stream",
            "topic",
        ],
    ),
    ("delete", &["from", "n", "r", "series", "where"]),
    ("detach", &["delete"]),
    ("truncate", &[]),
    ("flushall", &[]),
    ("flushdb", &[]),
    ("dropdatabase", &[]),
    ("dropcollection", &[]),
    ("deletemany", &[]),
    ("deleteone", &[]),
    ("dropindexes", &[]),
    ("dropuser", &[]),
    ("findoneanddelete", &[]),
    ("purge", &[]),
];

impl Walk<'_> {
    /// Interpreters and clients that are given a program.
    pub(super) fn interpreter(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        if let Some(options) = TABLE.interpreter(program) {
            let texts = program_texts(program, options, rest);
            let given = !texts.is_empty();
            for text in texts {
                if text.taint.hidden() {
                    self.hidden(args);
                }
                self.foreign(program, &text.text, args, scope);
            }
            let script = rest.iter().find(|arg| !arg.text.starts_with('-'));
            if let Some(script) = script.filter(|_| !given) {
                self.stored(script, Some(program), args, scope);
            }
            if script.is_some_and(|arg| arg.taint.hidden() || file_taint(arg, scope).fetched) {
                self.hidden(args);
            }
            let module = rest.iter().any(|arg| arg.text.starts_with("-m"));
            let reads = script.is_none_or(|arg| arg.text.starts_with("/dev/"))
                || rest.iter().any(|arg| arg.text == "-");
            if !given && !module && reads {
                if setting.input.taint.hidden() {
                    self.hidden(args);
                }
                for text in setting.input.texts() {
                    self.foreign(program, text, args, scope);
                }
            }
        }
        if program == "python" {
            self.module(rest, setting, scope);
        }
        self.escapes(program, rest, setting, scope);
        if program == "crontab" {
            self.schedule(rest, setting, scope);
        }
        if TABLE.programs.databases.contains(program) {
            self.statements(args, rest, setting);
        }
    }

    /// `python -m module` is the module's own program.
    fn module(&mut self, rest: &[Arg], setting: &Setting, scope: &mut Scope) {
        let at = rest.iter().position(|arg| arg.text == "-m");
        if let Some(inner) = at.and_then(|at| rest.get(at + 1..)) {
            self.command(inner, setting, scope);
        }
    }

    /// Judges program text of another language.
    pub(super) fn foreign(&mut self, program: &str, text: &str, args: &[Arg], scope: &mut Scope) {
        let lower = text.to_ascii_lowercase();
        if program == "sed" || program == "gsed" {
            return self.sed_script(text, scope);
        }
        let strings = strings_of(text);
        for string in &strings {
            self.text(string, &mut scope.clone(), &Feed::default());
        }
        self.file_calls(&lower, &strings, args, scope);
        let mentions = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        if mentions(&REMOVING_CALLS) {
            self.find(Dangerous, "removal", &shown(args), "removes files or trees");
        }
        if mentions(&CONNECTING) && mentions(&SHELLS) {
            let reason = "connects a shell to the network";
            self.find(Blocked, "reverse-shell", &shown(args), reason);
        }
        if lower.contains("fork") && mentions(&["while", "for", "loop", "until"]) {
            let reason = "starts itself again and again";
            self.find(Blocked, "fork-bomb", &shown(args), reason);
        }
        if mentions(&REVEALING) && mentions(&RUNNING) {
            self.hidden(args);
        }
    }

    /// Judges what a database client is told.
    fn statements(&mut self, args: &[Arg], rest: &[Arg], setting: &Setting) {
        let mut text = all_text(rest);
        for arg in rest {
            // `-tAcDROP …`: where the letters of the options end is not known.
            let letters = cluster(&arg.text).unwrap_or_default();
            for (at, _) in letters.char_indices().skip(1).take(MAX_CLUSTER) {
                text.push('\n');
                text.push_str(letters.get(at..).unwrap_or_default());
            }
        }
        for input in setting.input.texts() {
            text.push('\n');
            text.push_str(input);
        }
        if destroys_data(&text) {
            self.find(Dangerous, "database", &shown(args), "destroys data");
        }
        self.unknown_statements(args, rest);
    }
}

/// Returns the program texts among the arguments.
fn program_texts(program: &str, options: &[String], rest: &[Arg]) -> Vec<Arg> {
    let mut texts: Vec<Arg> = options
        .iter()
        .filter(|option| !option.is_empty())
        .flat_map(|option| option_values(rest, option))
        .collect();
    let from_file = rest
        .iter()
        .any(|arg| arg.text.starts_with("-f") || arg.text.starts_with("--file"));
    if options.iter().any(String::is_empty) && texts.is_empty() && !from_file {
        let mut operands = rest.iter();
        let mut first = operands.next();
        while first.is_some_and(|arg| arg.text.starts_with('-') && arg.text.len() > 1) {
            let value = matches!(
                first.map(|arg| arg.text.as_str()),
                Some("-F" | "-v" | "-l" | "-E")
            ) && program != "sed";
            first = operands.next();
            if value {
                first = operands.next();
            }
        }
        texts.extend(first.cloned());
    }
    texts
}

/// Returns the string literals of a program text, and runs of them as one command line each.
///
/// `["rm", "-rf", "/"]` is returned as its three strings and as `rm -rf /`.
fn strings_of(text: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let mut run = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(['"', '\'', '`']) {
        let (between, quoted) = rest.split_at_checked(start).unwrap_or((rest, ""));
        let mut chars = quoted.chars();
        let quote = chars.next();
        let mut string = String::new();
        while let Some(c) = chars.next().filter(|c| Some(*c) != quote) {
            match c {
                '\\' => string.extend(chars.next()),
                c => string.push(c),
            }
        }
        if !between
            .chars()
            .all(|c| c.is_whitespace() || "[](),+.=>".contains(c))
        {
            strings.push(std::mem::take(&mut run));
        }
        run.push_str(&string);
        run.push(' ');
        strings.push(string);
        rest = chars.as_str();
    }
    strings.push(run);
    // `%x(…)`, `qx{…}` and the like need no quotes.
    for mark in ["%x", "qx", "system", "exec", "spawn ", "syscmd("] {
        if let Some((_, after)) = text.split_once(mark) {
            strings.push(
                after
                    .trim_matches(|c: char| "(){}[]/!|;' \"".contains(c))
                    .to_owned(),
            );
        }
    }
    strings.retain(|string| {
        string.contains(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '~' | '.' | '|'))
    });
    strings.sort();
    strings.dedup();
    strings
}

/// Whether the text holds a statement after which data is gone.
pub(super) fn destroys_data(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| !word.is_empty())
        .collect();
    let called = lower.contains(".drop(") || lower.contains(".remove(");
    let updates_all =
        words.contains(&"update") && words.contains(&"set") && !words.contains(&"where");
    called
        || updates_all
        || words.iter().enumerate().any(|(index, word)| {
            DESTROYING.iter().any(|(verb, objects)| {
                verb == word
                    && (objects.is_empty()
                        || words
                            .get(index + 1)
                            .is_some_and(|next| objects.contains(next)))
            })
        })
}
