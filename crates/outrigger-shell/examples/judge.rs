//! Judges each line of its standard input:
//!
//!     echo 'ls; sudo reboot' | cargo run -p outrigger-shell --example judge

use std::io::{self, BufRead as _, Write as _};
use std::path::Path;

use outrigger_shell::{Secrets, Surroundings, classify};

fn main() -> io::Result<()> {
    let secrets = Secrets::default();
    let surroundings = Surroundings {
        project_root: Path::new("/home/ada/project"),
        central_root: Path::new("/home/ada/.local/share/app"),
        home: Some(Path::new("/home/ada")),
        // A real caller looks the name up in its PATH, and trusts files of root outside of the project.
        trusted_program: &|_| true,
        unhidden: None,
        secrets: &secrets,
    };
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let verdict = classify(&line?, &surroundings);
        writeln!(output, "{:?}", verdict.level)?;
        for reason in verdict.reasons() {
            writeln!(output, "  {reason}")?;
        }
    }
    Ok(())
}
