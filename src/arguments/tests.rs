use clap::error::ErrorKind;

use super::*;

fn parsed(line: &str) -> Command {
    let words = std::iter::once("outrigger").chain(line.split_whitespace());
    let arguments = Arguments::try_parse_from(words);
    arguments
        .unwrap_or_else(|error| panic!("{line}: {error}"))
        .into_command()
}

fn unread(line: &str) -> Unread {
    let words = ["outrigger"].into_iter().chain(line.split_whitespace());
    let words: Vec<OsString> = words.map(OsString::from).collect();
    Arguments::read(&words).expect_err(line)
}

fn flags(line: &str) -> Vec<(String, &'static str, String)> {
    let mut sources = Sources::default();
    match parsed(line) {
        Command::Serve(serve) => serve.apply(&mut sources),
        other => panic!("{other:?} sets nothing here"),
    }
    let flags = sources.flags.into_iter();
    flags
        .map(|flag| (flag.flag, flag.key, format!("{:?}", flag.value)))
        .collect()
}

#[test]
fn the_definition_is_sound() {
    Arguments::command().debug_assert();
}

#[test]
fn a_command_says_the_same_of_itself_once_its_arguments_are_made() {
    fn check<T: Subcommand>() {
        let listed = T::augment_subcommands(clap::Command::new("all"));
        let mut built = listed.clone();
        built.build();
        for command in listed.get_subcommands() {
            let name = command.get_name();
            let made = built.find_subcommand(name).unwrap();
            assert!(command.get_about().is_some(), "{name}");
            assert_eq!(command.get_about(), made.get_about(), "{name}");
            for argument in made.get_arguments() {
                assert!(argument.get_help().is_some(), "{name}: {argument}");
            }
        }
    }
    check::<Command>();
    check::<ConfigCommand>();
    check::<SessionsCommand>();
    check::<AdminCommand>();
    check::<TokenCommand>();
}

#[test]
fn flags_set_the_keys_they_are_documented_for() {
    let cases = [
        ("", vec![]),
        (
            "serve --port 0",
            vec![("--port", "server.port", "Number(0)")],
        ),
        ("--port 1", vec![("--port", "server.port", "Number(1)")]),
        (
            "--host ::1",
            vec![("--host", "server.host", "String(\"::1\")")],
        ),
        (
            "--project-root /a --project-name b",
            vec![
                ("--project-root", "project.root", "String(\"/a\")"),
                ("--project-name", "project.name", "String(\"b\")"),
            ],
        ),
        (
            "--allow-origin null --allow-origin app://x",
            vec![(
                "--allow-origin",
                "server.allowed_origins",
                "Array [String(\"null\"), String(\"app://x\")]",
            )],
        ),
        (
            "--log-format json",
            vec![("--log-format", "log.format", "String(\"json\")")],
        ),
    ];
    for (line, expected) in cases {
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(flag, key, value)| (flag.to_owned(), key, value.to_owned()))
            .collect();
        assert_eq!(flags(line), expected, "{line}");
    }
}

#[test]
fn files_and_processes_are_no_keys() {
    let line = "serve --config c.toml --token-file t --ready-file r --parent-pid 7 \
                --require-sandbox fallback --record d";
    let Command::Serve(serve) = parsed(line) else {
        panic!("serve");
    };
    let mut sources = Sources::default();
    serve.apply(&mut sources);
    assert!(sources.flags.is_empty());
    assert_eq!(sources.config_file, Some("c.toml".into()));
    assert_eq!(sources.token_file, Some("t".into()));
    assert_eq!(sources.record, Some("d".into()));
    assert_eq!(serve.ready_file, Some("r".into()));
    assert_eq!(serve.parent_pid, Some(7));
    assert_eq!(serve.require_sandbox, Some(RequiredSandbox::Fallback));
}

#[test]
fn other_commands() {
    assert!(matches!(parsed("chat"), Command::Chat(chat) if chat.prompt.is_empty()));
    let Command::Chat(chat) = parsed("chat --trust-level guided --provider a --model b hello")
    else {
        panic!("chat");
    };
    assert_eq!(chat.client.trust_level, Some(TrustLevel::Guided));
    assert_eq!(chat.client.provider.as_deref(), Some("a"));
    assert_eq!(chat.client.model.as_deref(), Some("b"));
    assert_eq!(chat.prompt, ["hello"]);
    assert!(matches!(parsed("doctor --json"), Command::Doctor(doctor) if doctor.json));
    assert!(matches!(parsed("schema --out d"), Command::Schema(_)));
    let show = parsed("config show --json --config c.toml");
    assert!(matches!(show, Command::Config(ConfigCommand::Show(show)) if show.json));
    let health = parsed("healthcheck --url http://h:1");
    assert!(matches!(health, Command::Healthcheck(health) if health.url.is_some()));
}

#[test]
fn what_is_refused() {
    let cases = [
        ("--token x", ErrorKind::UnknownArgument),
        ("--token-stdin --token-file f", ErrorKind::ArgumentConflict),
        ("--port 65536", ErrorKind::ValueValidation),
        ("--parent-pid 0", ErrorKind::ValueValidation),
        ("--log-format xml", ErrorKind::InvalidValue),
        ("--require-sandbox none", ErrorKind::InvalidValue),
        ("--port 1 doctor", ErrorKind::ArgumentConflict),
        (
            "healthcheck --port 1 --url http://h:1",
            ErrorKind::ArgumentConflict,
        ),
        ("fly", ErrorKind::InvalidSubcommand),
    ];
    for (line, expected) in cases {
        let words = std::iter::once("outrigger").chain(line.split_whitespace());
        let error = Arguments::try_parse_from(words).expect_err(line);
        assert_eq!(error.kind(), expected, "{line}: {error}");
    }
}

#[test]
fn numbers_that_are_none_are_explained() {
    for (line, expected) in [
        (
            "--port abc",
            "'--port <PORT>': a port is a number from 0 to 65535",
        ),
        ("doctor --port 65536", "a port is a number from 0 to 65535"),
        (
            "--parent-pid x",
            "'--parent-pid <PID>': the id of a process is a number",
        ),
    ] {
        let words = std::iter::once("outrigger").chain(line.split_whitespace());
        let text = Arguments::try_parse_from(words)
            .expect_err(line)
            .to_string();
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn whose_arguments_they_were() {
    for (line, expected) in [
        ("--nope", true),
        ("serve --nope", true),
        ("fly", true),
        ("--port 1 --nope", true),
        ("--port 1 serve --nope", true),
        ("doctor --nope", false),
        ("--port 1 doctor --nope", false),
        ("chat --nope", false),
        ("help serve", false),
        ("config shw", false),
    ] {
        let unread = unread(line);
        assert_eq!(unread.is_serve, expected, "{line}");
    }
}

#[test]
fn flags_before_a_command_are_not_blamed_for_those_behind_it() {
    for (line, expected) in [
        ("--config f run --nope", "unexpected argument '--nope'"),
        ("--config run run --nope", "unexpected argument '--nope'"),
        ("--port x doctor", "a port is a number"),
        (
            "--ready-file f doctor",
            "unexpected argument '--ready-file'",
        ),
        ("--config f fly", "unrecognized subcommand 'fly'"),
        ("config shw", "a similar subcommand exists: 'show'"),
    ] {
        let text = unread(line).error.to_string();
        assert!(text.contains(expected), "{line}: {text}");
    }
}

#[test]
fn an_editor_has_time_to_read_a_change_unless_the_operator_says_how_much() {
    let mut sources = Sources::default();
    match parsed("acp") {
        Command::Acp(acp) => acp.apply(&mut sources),
        other => panic!("{other:?}"),
    }
    let defaults = sources.defaults.iter();
    let defaults: Vec<_> = defaults.map(|it| (it.key, it.value.clone())).collect();
    let expected = [
        ("mcp.allow_runtime_add", Value::from(true)),
        ("approval.timeout", Value::from("10m")),
    ];
    assert_eq!(defaults, expected);
}
