//! How Windows passes arguments and an environment: as one text each. Pure.
//!
//! A program takes its line apart by itself. Nearly all do it as Microsoft's C library does; `cmd.exe` and what it runs,
//! files of commands (`.bat`, `.cmd`), do it by rules of their own.

use std::collections::BTreeMap;

/// Longest command line, in units of UTF-16 with the zero at its end: the system's own limit.
const MAX_LINE: usize = 32_767;

/// Longest line of `cmd.exe`.
const MAX_CMD_LINE: usize = 8_191;

/// Characters besides letters and digits that mean nothing to `cmd.exe`.
const PLAIN_TO_CMD: &str = r"#$*+-./:?@\_";

/// Why arguments or variables cannot be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritable {
    #[error("its arguments hold a NUL character")]
    Nul,
    #[error("a file of commands can be given no argument of several lines")]
    Lines,
    #[error("its arguments are longer than the {0} characters that Windows takes")]
    Long(usize),
    #[error("a variable of its environment has no usable name or holds a NUL character")]
    Variable,
}

/// Returns the line for a program, which is named by its whole path; `interpreter` is `cmd.exe`, for files of commands.
pub(crate) fn command_line(
    program: &str,
    args: &[String],
    interpreter: &str,
) -> Result<(String, String), Unwritable> {
    if program.contains('\0') || args.iter().any(|it| it.contains('\0')) {
        return Err(Unwritable::Nul);
    }
    let (application, line, most) = if is_batch(program) {
        let line = batch_line(interpreter, program, args)?;
        (interpreter, line, MAX_CMD_LINE)
    } else if let Some(line) = cmd_line(program, args) {
        (program, line, MAX_CMD_LINE)
    } else {
        let mut line = format!("\"{program}\"");
        for argument in args {
            line.push(' ');
            quote(argument, &mut line);
        }
        (program, line, MAX_LINE)
    };
    match line.encode_utf16().count() < most {
        true => Ok((application.to_owned(), line)),
        false => Err(Unwritable::Long(most)),
    }
}

fn is_batch(program: &str) -> bool {
    let program = program.to_ascii_lowercase();
    program.ends_with(".bat") || program.ends_with(".cmd")
}

/// The line for `cmd.exe` itself: what follows `/c` is one line in its own language and goes to it as it is. With `/s` it
/// takes the first and the last quote away, and nothing else.
fn cmd_line(program: &str, args: &[String]) -> Option<String> {
    let name = program.rsplit(['\\', '/']).next()?;
    if !name.eq_ignore_ascii_case("cmd.exe") {
        return None;
    }
    let [options @ .., run, line] = args else {
        return None;
    };
    let options = options.iter().map(|option| format!("{option} "));
    let options = options.collect::<String>();
    run.eq_ignore_ascii_case("/c")
        .then(|| format!("\"{program}\" {options}/s /c \"{line}\""))
}

/// Quotes an argument so that Microsoft's C library gives it to the program as it is.
fn quote(argument: &str, line: &mut String) {
    let is_plain = !argument.is_empty() && !argument.contains([' ', '\t', '\n', '\r', '\x0b', '"']);
    if is_plain {
        line.push_str(argument);
        return;
    }
    line.push('"');
    let mut backslashes = 0;
    for letter in argument.chars() {
        match letter {
            '\\' => backslashes += 1,
            '"' => {
                // Those before a quote count double, and the quote takes one more.
                line.extend(std::iter::repeat_n('\\', backslashes + 1));
                backslashes = 0;
            }
            _ => backslashes = 0,
        }
        line.push(letter);
    }
    line.extend(std::iter::repeat_n('\\', backslashes));
    line.push('"');
}

/// The line for a file of commands. Its arguments pass through `cmd.exe`, which would run what stands behind a `&` or
/// between two `%`: all are quoted, quotes are doubled, and a `%` is kept from being the begin of a variable's name.
///
/// As Rust's standard library does it since CVE-2024-24576.
fn batch_line(interpreter: &str, program: &str, args: &[String]) -> Result<String, Unwritable> {
    let mut line = format!("\"{interpreter}\" /e:ON /v:OFF /d /c \"\"{program}\"");
    for argument in args {
        if argument.contains(['\r', '\n']) {
            return Err(Unwritable::Lines);
        }
        line.push(' ');
        let is_plain = !argument.is_empty()
            && !argument.ends_with('\\')
            && argument
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || PLAIN_TO_CMD.contains(it));
        if is_plain {
            line.push_str(argument);
            continue;
        }
        line.push('"');
        let mut backslashes = 0;
        for letter in argument.chars() {
            match letter {
                '\\' => backslashes += 1,
                '"' => {
                    line.extend(std::iter::repeat_n('\\', backslashes));
                    line.push('"');
                    backslashes = 0;
                }
                '%' => {
                    // An empty piece of a variable that always is: the next `%` begins no name.
                    line.push_str("%%cd:~,");
                    backslashes = 0;
                }
                _ => backslashes = 0,
            }
            line.push(letter);
        }
        line.extend(std::iter::repeat_n('\\', backslashes));
        line.push('"');
    }
    line.push('"');
    Ok(line)
}

/// Returns the environment as one block: `NAME=VALUE`, each ended by a zero, sorted by name without regard to case, of
/// which Windows takes no notice.
pub(crate) fn block(environment: &BTreeMap<String, String>) -> Result<Vec<u16>, Unwritable> {
    let mut sorted = BTreeMap::new();
    for (name, value) in environment {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(Unwritable::Variable);
        }
        sorted.insert(name.to_uppercase(), (name, value));
    }
    let mut block: Vec<u16> = Vec::new();
    for (name, value) in sorted.values() {
        block.extend(format!("{name}={value}\0").encode_utf16());
    }
    if block.is_empty() {
        block.push(0);
    }
    block.push(0);
    Ok(block)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CMD: &str = r"C:\Windows\System32\cmd.exe";

    fn line(program: &str, args: &[&str]) -> Result<(String, String), Unwritable> {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        command_line(program, &args, CMD)
    }

    #[test]
    fn arguments_arrive_as_they_are() {
        for (argument, quoted) in [
            ("plain", "plain"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            (r#"say "hi""#, r#""say \"hi\"""#),
            (r"C:\dir\", r"C:\dir\"),
            (r"C:\my dir\", r#""C:\my dir\\""#),
            (r#"a\"b c"#, r#""a\\\"b c""#),
            (r"a\b c", r#""a\b c""#),
            ("a&b|c>d%PATH%", "a&b|c>d%PATH%"),
            ("two\nlines", "\"two\nlines\""),
            ("\u{e9} \u{1f600}", "\"\u{e9} \u{1f600}\""),
        ] {
            let expected = format!("\"C:\\x y\\p.exe\" {quoted}");
            let (application, line) = line(r"C:\x y\p.exe", &[argument]).unwrap();
            assert_eq!((application.as_str(), line), (r"C:\x y\p.exe", expected));
        }
        assert_eq!(line(r"C:\p.exe", &["a\0b"]), Err(Unwritable::Nul));
        let long = "x".repeat(MAX_LINE);
        assert_eq!(line(r"C:\p.exe", &[&long]), Err(Unwritable::Long(MAX_LINE)));
    }

    #[test]
    fn a_line_for_cmd_goes_to_it_as_it_is() {
        let (application, line) = line(CMD, &["/d", "/c", r#"echo "a b" & dir "C:\x""#]).unwrap();
        assert_eq!(application, CMD);
        assert_eq!(
            line,
            r#""C:\Windows\System32\cmd.exe" /d /s /c "echo "a b" & dir "C:\x"""#
        );
    }

    #[test]
    fn arguments_of_a_file_of_commands_run_nothing() {
        for (argument, quoted) in [
            ("plain", "plain"),
            ("-y", "-y"),
            ("", "\"\""),
            ("a&calc", "\"a&calc\""),
            ("\"&calc", "\"\"\"&calc\""),
            ("%PATH%", "\"%%cd:~,%PATH%%cd:~,%\""),
            (r"end\", r#""end\\""#),
            (r#"a\"b"#, r#""a\\""b""#),
        ] {
            let (application, line) = line(r"C:\n\npx.CMD", &[argument]).unwrap();
            assert_eq!(application, CMD);
            let expected = format!("\"{CMD}\" /e:ON /v:OFF /d /c \"\"C:\\n\\npx.CMD\" {quoted}\"");
            assert_eq!(line, expected, "{argument}");
        }
        assert_eq!(line(r"C:\a.bat", &["a\nb"]), Err(Unwritable::Lines));
        let long = "x".repeat(MAX_CMD_LINE);
        assert_eq!(
            line(r"C:\a.bat", &[&long]),
            Err(Unwritable::Long(MAX_CMD_LINE))
        );
    }

    #[test]
    fn an_environment_is_one_block() {
        let block = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            let pairs = pairs.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            block(&pairs.collect()).map(|block| String::from_utf16(&block).unwrap())
        };
        assert_eq!(
            block(&[("b", "2"), ("A", "1")]),
            Ok("A=1\0b=2\0\0".to_owned())
        );
        assert_eq!(block(&[]), Ok("\0\0".to_owned()));
        assert_eq!(block(&[("a=b", "1")]), Err(Unwritable::Variable));
        assert_eq!(block(&[("", "1")]), Err(Unwritable::Variable));
        assert_eq!(block(&[("a", "1\0b=2")]), Err(Unwritable::Variable));
    }
}
