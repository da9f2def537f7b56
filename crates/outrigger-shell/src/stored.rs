//! Files that a line writes and then runs: what is in them counts as if it stood in the line.

use super::command::{Setting, shown};
use std::rc::Rc;

use super::expand::{Arg, expand_text};
use super::flow::{Feed, command_output, output_of};
use super::peel;
use super::scope::Scope;
use super::script::{Redirect, Script};
use super::table::TABLE;
use super::walk::Walk;
use crate::DangerLevel::{Blocked, Dangerous};

/// Programs that unpack archives into trees.
const UNPACKERS: [&str; 12] = [
    "tar", "bsdtar", "gtar", "unzip", "7z", "7za", "7zr", "cpio", "unar", "bsdunzip", "jar",
    "dpkg-deb",
];

/// Programs that copy whole trees from elsewhere, with the words that ask for it.
const CLONERS: [(&str, &[&str]); 10] = [
    ("git", &["clone"]),
    ("hg", &["clone"]),
    ("jj", &["clone"]),
    ("svn", &["checkout", "co", "export"]),
    ("gh", &["clone", "download"]),
    ("glab", &["clone"]),
    ("aws", &["cp", "sync"]),
    ("rclone", &["copy", "sync", "copyto"]),
    ("degit", &[]),
    ("tiged", &[]),
];

/// Returns what the line wrote to the file, or what a `<(…)` holds, where that is known.
pub(super) fn text(arg: &Arg, scope: &Scope) -> Option<String> {
    if arg.content.is_some() {
        return arg.content.clone();
    }
    let texts: Vec<Rc<str>> = scope
        .files
        .texts(&arg.text)
        .into_iter()
        .collect::<Option<_>>()?;
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Whether the line writes the file.
fn is_written(arg: &Arg, scope: &Scope) -> bool {
    !scope.files.texts(&arg.text).is_empty()
}

/// Whether the file may be of a tree that the line downloaded.
pub(super) fn unpacked(arg: &Arg, scope: &Scope) -> bool {
    let system = ["/bin/", "/usr/", "/sbin/", "/dev/", "/opt/", "/lib"];
    scope.files.has_tree()
        && !arg.text.starts_with('-')
        && !system.iter().any(|prefix| arg.text.starts_with(prefix))
        && (arg.text.contains('/') || scope.moved)
}

/// Returns what is written where a command or a group is redirected.
fn output(args: &[Arg], body: Option<&Script>, input: &Feed, scope: &Scope) -> Option<String> {
    match body {
        Some(body) => output_of(body, scope).text,
        None if args.is_empty() => None,
        None => command_output(args, input, scope).text,
    }
}

impl Walk<'_> {
    /// Keeps in mind what the redirections of a command or a group write.
    pub(super) fn stores(
        &mut self,
        redirects: &[Redirect],
        args: &[Arg],
        body: Option<&Script>,
        input: &Feed,
        scope: &mut Scope,
    ) {
        for redirect in redirects {
            if let Redirect::Write(token) = redirect {
                let target = expand_text(token, scope);
                let text = output(args, body, input, scope);
                scope.files.store(&target.text, text);
            }
        }
    }

    /// Programs that bring whole trees or copy what the line wrote.
    pub(super) fn brings(
        &mut self,
        program: &str,
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        let clones = CLONERS.iter().any(|(name, words)| {
            *name == program
                && (words.is_empty() || rest.iter().any(|arg| words.contains(&arg.text.as_str())))
        });
        let unpacks = UNPACKERS.contains(&program)
            && (setting.input.taint.fetched
                || rest
                    .iter()
                    .any(|arg| arg.taint.fetched || super::flow::file_taint(arg, scope).fetched));
        let remote = program == "rsync"
            && rest
                .iter()
                .any(|arg| arg.text.contains(':') && !arg.text.starts_with('-'));
        let mirrors = TABLE.programs.fetchers.contains(program)
            && rest.iter().any(|arg| {
                matches!(
                    arg.text.as_str(),
                    "-r" | "-m" | "--recursive" | "--mirror" | "-P" | "-x"
                ) || arg.text.starts_with("--directory-prefix")
                    || arg.text.starts_with("--output-dir")
            });
        scope
            .files
            .bring_tree(clones || unpacks || remote || mirrors);
        if matches!(program, "tee" | "sponge") {
            let targets = rest.iter().filter(|arg| !arg.text.starts_with('-'));
            for target in targets {
                scope.files.store(&target.text, setting.input.text.clone());
            }
        }
        if matches!(program, "cp" | "mv" | "ln" | "install") {
            let (sources, targets) = super::removal::sources_and_targets(rest);
            for source in &sources {
                let name = source.text.rsplit('/').next().unwrap_or_default();
                let found = matches!(&source.word, Some(super::Word::Dynamic(_)));
                if (found || source.text.contains("bin/"))
                    && TABLE.refused.iter().any(|refused| refused == name)
                {
                    let reason = "gives a refused program another name";
                    self.find(Blocked, "hidden-program", &source.text, reason);
                }
                if is_written(source, scope) || source.content.is_some() {
                    let copied = text(source, scope);
                    for target in &targets {
                        scope.files.store(&target.text, copied.clone());
                    }
                }
            }
        }
    }

    /// A file that the line wrote is run, as a program or by a shell or interpreter.
    pub(super) fn stored(
        &mut self,
        file: &Arg,
        program: Option<&str>,
        args: &[Arg],
        scope: &mut Scope,
    ) {
        if file.content.is_none() && !is_written(file, scope) {
            return;
        }
        match (text(file, scope), program) {
            (Some(text), Some(program)) => self.foreign(program, &text, args, scope),
            (Some(text), None) => {
                self.text(&text, &mut scope.clone(), &Feed::default());
                // A first line `#!` may name another language.
                if text.starts_with("#!") && !text.lines().next().unwrap_or_default().contains("sh")
                {
                    self.foreign("", &text, args, scope);
                }
            }
            (None, _) => self.find(
                Dangerous,
                "stored-code",
                &shown(args),
                "runs a file that the same line writes",
            ),
        }
    }

    /// A build tool that is given its rules on its input, or in a file of the line.
    pub(super) fn recipe(
        &mut self,
        program: &str,
        args: &[Arg],
        rest: &[Arg],
        setting: &Setting,
        scope: &mut Scope,
    ) {
        if !matches!(
            program,
            "make" | "gmake" | "bmake" | "just" | "task" | "ninja" | "rake"
        ) {
            return;
        }
        let mut files: Vec<Arg> = [
            "-f",
            "--file",
            "--makefile",
            "--justfile",
            "--taskfile",
            "-t",
            "--rakefile",
        ]
        .iter()
        .flat_map(|option| peel::option_values(rest, option))
        .collect();
        if files.is_empty() {
            let usual = [
                "Makefile",
                "makefile",
                "GNUmakefile",
                "justfile",
                "Taskfile.yml",
                "build.ninja",
                "Rakefile",
            ];
            files.extend(usual.iter().map(|name| Arg::literal(*name)));
        }
        for file in files {
            let input = file.text == "-" || file.text.starts_with("/dev/");
            let taint = if input {
                setting.input.taint
            } else {
                super::flow::file_taint(&file, scope)
            };
            if taint.hidden() || file.taint.hidden() {
                self.hidden(args);
            }
            let rules = if input {
                setting.input.text.clone()
            } else {
                text(&file, scope)
            };
            match rules {
                Some(rules) => self.fragments(&recipe_lines(&rules), scope),
                None if input || is_written(&file, scope) => {
                    let reason = "runs rules that are only known when it runs";
                    self.find(Dangerous, "stored-code", &shown(args), reason);
                }
                None => {}
            }
        }
    }
}

/// Drops what stands before the command in a line of a recipe, and cuts behind `target:`.
fn recipe_lines(rules: &str) -> String {
    let mut lines = String::new();
    for line in rules.lines() {
        let command = line.trim_start().trim_start_matches(['@', '-', '+']);
        lines.push_str(
            &command
                .replace("; ", ";\n")
                .replace("\n@", "\n")
                .replace("shell ", "\n"),
        );
        lines.push('\n');
    }
    lines
}
