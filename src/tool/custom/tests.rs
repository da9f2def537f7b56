use serde_json::json;

use super::*;

fn program(args: &[&str]) -> CustomCommand {
    CustomCommand::Program {
        program: "lint".to_owned(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
    }
}

fn filled(args: &[&str], input: &Value) -> Result<Vec<String>, String> {
    command(&program(args), input.as_object().unwrap()).map(|filled| filled.args)
}

#[test]
fn hostile_inputs_stay_one_argument_each() {
    for hostile in [
        "a b",
        "'; rm -rf / #",
        "\"quoted\" `id` $(id) $HOME",
        "line\nbreak",
        "{other}",
        "*",
        "",
        "日本",
    ] {
        let input = json!({"path": hostile, "other": "x"});
        let args = filled(&["--file={path}", "{path}", "end"], &input).unwrap();
        assert_eq!(args, [&format!("--file={hostile}"), hostile, "end"]);
    }
}

#[test]
fn an_input_is_never_an_option() {
    for value in [
        json!("-rf"),
        json!("--output=/x"),
        json!(-1),
        json!(["a", "-b"]),
    ] {
        let error = filled(&["{path}"], &json!({"path": value})).unwrap_err();
        assert!(error.contains("begins with `-`"), "{error}");
    }
    let error = filled(&["{path}.txt"], &json!({"path": "-x"})).unwrap_err();
    assert!(error.contains("begins with `-`"), "{error}");
    // Behind `--`, and behind the operator's own text, it cannot be one.
    let after = filled(&["--", "{path}", "-n{path}"], &json!({"path": "-x"}));
    assert_eq!(after.unwrap(), ["--", "-x", "-n-x"]);
}

#[test]
fn what_no_program_can_be_given_is_refused() {
    for (value, expected) in [
        (json!("a\u{0}b"), "NUL"),
        (json!("x".repeat(MAX_INPUT + 1)), "more than 102400 bytes"),
        (json!(vec!["x"; MAX_ITEMS + 1]), "more than 1000 items"),
    ] {
        let error = filled(&["{path}"], &json!({"path": value})).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn lists_become_arguments_and_what_is_absent_none() {
    let input = json!({"files": ["a", "b c"], "count": 3, "deep": true});
    let args = filled(
        &["-n{count}", "--{deep}", "{gone}", "--x={gone}", "{files}"],
        &input,
    );
    assert_eq!(args.unwrap(), ["-n3", "--true", "a", "b c"]);
}

#[test]
fn a_shell_reads_the_operators_line_alone() {
    let line = "grep -rn -- \"$INPUT_WORD\" . | head".to_owned();
    let input = json!({"word": "$(touch made)", "max-count": 2});
    let filled = command(
        &CustomCommand::Shell(line.clone()),
        input.as_object().unwrap(),
    )
    .unwrap();
    assert_eq!(filled.args.last(), Some(&line));
    assert_eq!(filled.variables["INPUT_WORD"], "$(touch made)");
    assert_eq!(filled.variables["INPUT_MAX_COUNT"], "2");
}
