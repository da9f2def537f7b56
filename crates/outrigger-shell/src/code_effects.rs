//! What program text in other languages does to files: trees it removes, paths it writes.

use super::command::{Setting, shown};
use super::expand::Arg;
use super::flow::Feed;
use super::paths;
use super::scope::Scope;
use super::table::TABLE;
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

/// Calls that remove a whole tree.
const TREE_CALLS: [&str; 12] = [
    "rmtree",
    "rmsync",
    "rmdirsync",
    "rm_rf",
    "rm_r",
    "remove_tree",
    "remove_entry",
    "fs.rm(",
    "rimraf",
    "delete_folder",
    "remove-item",
    "deno.remove",
];

/// What stands for the home directory.
const HOMES: [&str; 8] = [
    "expanduser",
    "path.home()",
    "env.home",
    "homedir(",
    "env{home}",
    "env['home']",
    "env[\"home\"]",
    "dir.home",
];

/// Calls that write, move or link files.
const WRITING_CALLS: [&str; 24] = [
    "write_text",
    "write_bytes",
    "writefile",
    "appendfile",
    "createwritestream",
    "file.write",
    "file_put_contents",
    "copyfile",
    "shutil.copy",
    "shutil.move",
    "os.rename",
    "os.replace",
    "symlink",
    "os.link",
    "fs.rename",
    "fs.copy",
    "fs.cp",
    "fs.link",
    "fs.chmod",
    "os.chmod",
    "os.truncate",
    "fileutils.",
    "deno.write",
    "outfile",
];

/// Modes in which `open` writes.
const WRITING_MODES: [&str; 6] = ["w", "a", "x", "r+", ">", "+<"];

impl Walk<'_> {
    /// Judges the paths in the strings of a program text by the calls beside them.
    pub(super) fn file_calls(
        &mut self,
        lower: &str,
        strings: &[String],
        args: &[Arg],
        scope: &Scope,
    ) {
        let mentions = |words: &[&str]| words.iter().any(|word| lower.contains(word));
        let named = |text: &String| {
            let text = match text.strip_prefix('~') {
                Some(rest) => format!("{}{rest}", scope.home),
                None => text.trim().to_owned(),
            };
            let path = Arg::literal(text);
            let glob = path.text.contains('*');
            Arg { glob, ..path }
        };
        let is_path = |text: &String| text.starts_with(['/', '~', '.']);
        let paths_named: Vec<Arg> = strings
            .iter()
            .filter(|text| is_path(text))
            .map(named)
            .collect();
        if mentions(&TREE_CALLS)
            && (paths_named.iter().any(|path| paths::protected(path, scope)) || mentions(&HOMES))
        {
            let reason = "removes or moves a system directory or a home";
            self.find(Blocked, "protected-tree", &shown(args), reason);
        }
        let opens = lower.contains("open")
            && strings.iter().any(|text| {
                WRITING_MODES
                    .iter()
                    .any(|mode| text.trim().starts_with(mode) && text.trim().len() <= 3)
            })
            || lower.contains("'>")
            || lower.contains("\">")
            || lower.contains("> \"")
            || lower.contains(">\"");
        if opens || mentions(&WRITING_CALLS) {
            let words = shown(args);
            for path in strings
                .iter()
                .map(|text| text.trim_start_matches(['>', '+', '<', ' ']).to_owned())
            {
                if path.contains('/') || path.starts_with('.') || path.starts_with('~') {
                    self.written(&named(&path), &words, scope);
                }
            }
        }
    }

    /// A client that is given statements which only come to be known when it runs.
    pub(super) fn unknown_statements(&mut self, args: &[Arg], rest: &[Arg]) {
        if rest.iter().any(|arg| arg.made) {
            let reason = "runs statements that are only known when it runs";
            self.find(Dangerous, "database", &shown(args), reason);
        }
    }

    /// What a client's own commands run in a shell: `!…`, `\! …`, `.shell …`, `COPY … PROGRAM '…'`.
    pub(super) fn escapes(
        &mut self,
        program: &str,
        rest: &[Arg],
        setting: &Setting,
        scope: &Scope,
    ) {
        let client = TABLE.programs.databases.contains(program) || ESCAPING.contains(&program);
        if !client {
            return;
        }
        let given = rest.iter().map(|arg| arg.text.as_str());
        let lines: Vec<String> = given
            .chain(setting.input.texts().map(String::as_str))
            .flat_map(str::lines)
            .map(|line| line.trim().trim_start_matches([':', '\\', '+']).to_owned())
            .collect();
        for line in lines {
            let lower = line.to_ascii_lowercase();
            let writes = WRITING_MARKS.iter().find(|mark| lower.starts_with(**mark));
            if let Some(file) = writes.and_then(|mark| line.get(mark.len()..)) {
                let file = file.trim();
                let home = file
                    .strip_prefix('~')
                    .map(|rest| format!("{}{rest}", scope.home));
                let file = Arg::literal(home.unwrap_or_else(|| file.to_owned()));
                self.written(&file, &line, scope);
            }
            let shell = [
                "!", ".shell ", ".system ", "system ", "shell ", "sh ", "r !", "w !",
            ]
            .iter()
            .find(|mark| lower.starts_with(**mark));
            let program = lower
                .split_once("program ")
                .map(|(before, _)| before.len() + 8);
            let starts = shell.map(|mark| mark.len()).into_iter().chain(program);
            for command in starts.filter_map(|at| line.get(at..)) {
                let text = command.trim().trim_matches('\'');
                self.text(text, &mut scope.clone(), &Feed::default());
            }
        }
    }

    /// A table of `cron`: what follows the times is run by a shell.
    pub(super) fn schedule(&mut self, rest: &[Arg], setting: &Setting, scope: &Scope) {
        let files = rest.iter().map(|arg| super::flow::file_taint(arg, scope));
        if files
            .fold(setting.input.taint, super::scope::Taint::join)
            .hidden()
        {
            self.hidden(rest);
        }
        let tables = rest
            .iter()
            .filter_map(|arg| super::stored::text(arg, scope))
            .chain(setting.input.texts().cloned());
        for table in tables.collect::<Vec<_>>() {
            for line in table.lines() {
                let times = if line.trim_start().starts_with('@') {
                    1
                } else {
                    5
                };
                let command: Vec<&str> = line.split_whitespace().skip(times).collect();
                self.text(&command.join(" "), &mut scope.clone(), &Feed::default());
            }
        }
    }
}

/// Commands of editors and clients that write a file.
const WRITING_MARKS: [&str; 11] = [
    "w ", "w! ", "wq ", "wq! ", "write ", "saveas ", "sav ", ".output ", ".once ", ".backup ", "o ",
];

/// Programs besides database clients that run a shell's text from their own commands.
const ESCAPING: [&str; 16] = [
    "ed", "ex", "red", "vi", "vim", "nvim", "gdb", "lldb", "mail", "mailx", "gnuplot", "octave",
    "bc", "less", "more", "ftp",
];
