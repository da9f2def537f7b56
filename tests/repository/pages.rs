//! Man pages and completions, made of the command line by clap's own generators and checked in, so that packages are made
//! without cargo and the program does not grow by the generators.
//!
//! `OUTRIGGER_UPDATE=1 cargo test --test repository pages::` writes them.

use std::collections::BTreeMap;
use std::path::Path;

use clap::CommandFactory as _;
use clap_complete::Shell;
use outrigger::arguments::Arguments;

use super::support::root;

/// What clap does not know of.
const MORE: &str = r#".SH FILES
.TP
\fI~/.config/outrigger/config.toml\fR
The configuration; \fBoutrigger config show\fR prints what is in force and where it comes from. Each key can also be a variable, \fBOUTRIGGER_SERVER__PORT\fR for \fBserver.port\fR.
.TP
\fI~/.local/state/outrigger/outrigger.db\fR
The sessions.
.SH "EXIT STATUS"
0 when it was asked to stop, 1 when it failed while it ran, 2 for bad arguments or configuration, 3 when the port or the store is in use, 4 when \fBrun\fR or \fBchat\fR could ask nobody, 5 when a cap on money ended it, 6 when what was said last could not be kept.
.SH "SEE ALSO"
https://github.com/outrigger/outrigger
"#;

/// Every page by its path in the repository.
fn made() -> BTreeMap<String, String> {
    let place = tempfile::tempdir().unwrap();
    let pages = place.path().join("man");
    let completions = place.path().join("completions");
    std::fs::create_dir(&pages).unwrap();
    std::fs::create_dir(&completions).unwrap();
    clap_mangen::generate_to(Arguments::command(), &pages).unwrap();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        let mut command = Arguments::command();
        clap_complete::generate_to(shell, &mut command, "outrigger", &completions).unwrap();
    }
    let mut made = read(&pages, "docs/man");
    made.append(&mut read(&completions, "config/completions"));
    if let Some(first) = made.get_mut("docs/man/outrigger.1") {
        first.push_str(MORE);
    }
    made
}

fn read(folder: &Path, named: &str) -> BTreeMap<String, String> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            // Generators leave blanks at ends of lines.
            let text = text
                .lines()
                .fold(String::new(), |text, line| text + line.trim_end() + "\n");
            (format!("{named}/{name}"), text)
        })
        .collect()
}

#[test]
fn man_pages_and_completions_are_those_of_the_command_line() {
    let made = made();
    assert!(made.contains_key("docs/man/outrigger-sessions-list.1"));
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        for folder in ["docs/man", "config/completions"] {
            let folder = root().join(folder);
            drop(std::fs::remove_dir_all(&folder));
            std::fs::create_dir_all(&folder).unwrap();
        }
        for (path, text) in &made {
            std::fs::write(root().join(path), text).unwrap();
        }
    }
    let there = read(&root().join("docs/man"), "docs/man");
    let completions = read(&root().join("config/completions"), "config/completions");
    let there: BTreeMap<_, _> = there.into_iter().chain(completions).collect();
    let differ = made
        .iter()
        .find(|(path, text)| there.get(*path) != Some(text));
    assert!(
        differ.is_none() && there.len() == made.len(),
        "{:?} is out of date: OUTRIGGER_UPDATE=1 cargo test --test repository pages::",
        differ.map(|(path, _)| path)
    );
}

#[test]
fn a_package_has_what_each_shell_reads() {
    // cargo-deb and Homebrew take pages by pattern; of the shells each is named.
    let manifest = super::support::read("Cargo.toml");
    let formula = super::support::read("release/homebrew/outrigger.rb");
    let build = super::support::read("release/build");
    for shell in ["outrigger.bash", "_outrigger", "outrigger.fish"] {
        let completions = format!("completions/{shell}\"");
        assert!(
            manifest.contains(&format!("config/{completions}")),
            "{shell}"
        );
        assert!(formula.contains(&completions), "{shell}");
    }
    for packed in [
        "{outrigger.bash,_outrigger,outrigger.fish}",
        "_outrigger.ps1",
    ] {
        assert!(
            build.contains(&format!("config/completions/{packed} ")),
            "{packed}"
        );
    }
}
