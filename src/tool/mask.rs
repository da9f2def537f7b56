//! The mask that stands for a secret in what the model is shown, on its way back into a file. Pure.

use std::collections::HashMap;

use crate::telemetry::{MASK, Redactor};

/// Checks a change of a file's text for the mask. Returns a note for the model, where it is written.
///
/// A file whose secrets are shown masked must not lose them to the mask: each line with the mask is one that it had, and
/// as often. Where the file has nothing that is masked, the mask is the model's own text.
///
/// An error says which line would get the mask in the place of a secret, and what to do; reads after the file's name.
pub(super) fn check(redactor: &Redactor, old: &str, new: &str) -> Result<Option<String>, String> {
    let Some(line) = first_line(old, new) else {
        return Ok(None);
    };
    let (_, masked) = redactor.redact_counted(old);
    if masked == 0 {
        let is_more = new.matches(MASK).count() > old.matches(MASK).count();
        return Ok(is_more.then(|| written(line)));
    }
    Err(format!(
        "would get the text `{MASK}` in line {line}; nothing was written. `{MASK}` is what you are shown in the place \
         of a secret, and this file has {masked} of them: it would lose them. Use file_edit on the lines around a \
         secret and leave its own line out, or have the user change it"
    ))
}

pub(super) fn of_new_file(new: &str) -> Option<String> {
    first_line("", new).map(written)
}

/// Says why a text with the mask in it is not found in a file; `None` where the mask is not in it.
pub(super) fn not_found(wanted: &str) -> Option<String> {
    let index = wanted.lines().position(|line| line.contains(MASK))?;
    Some(format!(
        "does not have `oldText`: its line {} has the text `{MASK}`, which you are shown in the place of a secret that \
         the file has there; give `oldText` and `newText` without it, from the text before or after it",
        index + 1
    ))
}

fn written(line: usize) -> String {
    format!(
        "; line {line} has the text `{MASK}`, which was written as it is: where you were shown it in the place of a \
         secret, the secret is not in this file"
    )
}

/// The number of the first line with the mask that the old text does not have, or not as often.
fn first_line(old: &str, new: &str) -> Option<usize> {
    let has_mask = |line: &str| line.contains(MASK);
    let mut known: HashMap<&str, usize> = HashMap::new();
    for line in old.lines().filter(|line| has_mask(line)) {
        *known.entry(line).or_default() += 1;
    }
    let index = new.lines().position(|line| {
        has_mask(line)
            && match known.get_mut(line) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                Some(_) | None => true,
            }
    });
    index.map(|index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_lost_to_the_mask_and_ones_own_text_is_written() {
        let redactor = Redactor::default();
        redactor.add("hunter2-hunter2");
        let secret = "a\nkey = hunter2-hunter2\nz\n";
        for (old, new, refused) in [
            (secret, "a\nkey = [redacted]\nz\n", Some("line 2")),
            (secret, "b\na\nkey = [redacted]\n", Some("line 3")),
            (secret, "a\nz\n", None),
            (secret, "b\nkey = hunter2-hunter2\n", None),
            ("x = \"[redacted]\"\n", "y = \"[redacted]\"\n", None),
            ("plain\n", "log \"[redacted]\"\n", None),
            (
                "note: [redacted]\nkey = hunter2-hunter2\n",
                "key = [redacted]\n",
                Some("line 1"),
            ),
            (
                "k: [redacted]\nk: hunter2-hunter2\n- [redacted]\n",
                "k: [redacted]\nk: [redacted]\n",
                Some("line 2"),
            ),
            (
                "note: [redacted]\nkey = hunter2-hunter2\n",
                "more\nkey = hunter2-hunter2\nnote: [redacted]\n",
                None,
            ),
            (
                "[redacted] hunter2-hunter2\n",
                "[redacted] [redacted]\n",
                Some("line 1"),
            ),
            (
                "ghp_0123456789abcdefghijABCDEFGHIJ012345",
                "[redacted]",
                Some("line 1"),
            ),
        ] {
            let outcome = check(&redactor, old, new);
            match refused {
                Some(line) => {
                    let message = outcome.unwrap_err();
                    assert!(
                        message.contains(line) && message.contains("nothing was written"),
                        "{message}"
                    );
                }
                None => assert!(outcome.is_ok(), "{old} {new} {outcome:?}"),
            }
        }
        let message = check(&redactor, "plain\n", "log \"[redacted]\"\n").unwrap();
        assert!(message.unwrap().contains("line 1"));
    }

    #[test]
    fn a_new_file_says_that_it_has_the_mask() {
        assert_eq!(of_new_file("plain"), None);
        assert!(of_new_file("a\n[redacted]").unwrap().contains("line 2"));
        assert!(not_found("a\nb [redacted]").unwrap().contains("its line 2"));
        assert_eq!(not_found("a"), None);
    }
}
