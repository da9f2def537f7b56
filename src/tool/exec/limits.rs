//! Tells the model which limit its command ran into: a killed process says nothing itself.

use crate::sandbox::{Exit, Limits, Reached};
use crate::units::format_size;

/// The signal of a process that wrote more than a file may have.
const XFSZ: i32 = 25;

/// Returns a line for each limit that was reached. That of a file's size is seen only where it ended the command, or the
/// last program of it: others read the system's "File too large".
pub(super) fn notes(reached: Reached, limits: &Limits, exit: &Exit) -> Vec<String> {
    let mut notes = Vec::new();
    if reached.memory {
        let most = match limits.memory {
            Some(bytes) => format!("the {} that it may have", format_size(bytes)),
            None => "three quarters of the machine's memory, which is its limit".to_owned(),
        };
        notes.push(format!(
            "\n[out of memory: its processes together reached {most}, and the kernel killed at least one of them; let it do less at once (fewer jobs, smaller pieces); the user can change the limit: tools.bash.limits.memory]"
        ));
    }
    if let (true, Some(most)) = (reached.processes, limits.processes) {
        notes.push(format!(
            "\n[it had the {most} processes and threads that it may have, and no further one was started; let it do less at once; the user can change the limit: tools.bash.limits.processes]"
        ));
    }
    // A shell adds 128 to the signal that ended a program.
    let is_too_large = exit.signal == Some(XFSZ) || exit.code == Some(128 + XFSZ);
    if let (true, Some(most)) = (is_too_large, limits.file_size) {
        notes.push(format!(
            "\n[a file may have {} at most; the user can change the limit: tools.bash.limits.file_size]",
            format_size(most)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_that_was_reached_is_named_with_its_amount_and_its_key() {
        let both = Reached {
            memory: true,
            processes: true,
        };
        let set = Limits {
            memory: Some(4 << 30),
            ..Limits::default()
        };
        let exit = |code| Exit {
            code: Some(code),
            signal: None,
            cpu_ms: 0,
            max_rss_bytes: 0,
        };
        let well = exit(0);
        let said = notes(both, &set, &well);
        assert_eq!(said.len(), 2);
        for (note, words) in said.iter().zip([
            ["4GiB", "killed", "tools.bash.limits.memory"],
            ["512", "no further one", "tools.bash.limits.processes"],
        ]) {
            assert!(words.iter().all(|word| note.contains(word)), "{note}");
        }
        assert!(notes(both, &Limits::default(), &well)[0].contains("three quarters"));
        assert!(notes(Reached::default(), &set, &well).is_empty());
        let said = notes(Reached::default(), &set, &exit(128 + XFSZ)).concat();
        assert!(said.contains("2GiB") && said.contains("tools.bash.limits.file_size"));
    }
}
