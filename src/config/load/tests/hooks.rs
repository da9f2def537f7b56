use super::errors::check;
use super::*;
use crate::config::HookPoint;

#[test]
fn hooks_are_checked_and_come_in_the_order_of_their_names() {
    let file = "[hooks.b]\non = 'stop'\ncommand = 'true'\n\
                [hooks.a]\non = 'before_tool'\ntools = ['file_*']\nurl = 'http://127.0.0.1:9/hook'\n\
                [hooks.c]\nenabled = false\n";
    let hooks = toml(file).load().config.hooks;
    let names: Vec<&str> = hooks.iter().map(|hook| hook.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    for (on, tool, expected) in [
        (HookPoint::BeforeTool, Some("file_read"), true),
        (HookPoint::BeforeTool, Some("bash"), false),
        (HookPoint::AfterTool, Some("file_read"), false),
    ] {
        assert_eq!(hooks[0].is_asked(on, tool), expected, "{on:?} {tool:?}");
    }
    assert!(hooks[1].is_asked(HookPoint::Stop, None));
    check(&[
        (
            "[hooks.x]\ncommand = 'true'",
            &["hooks.x", "`on` is missing"],
        ),
        ("[hooks.x]\non = 'stop'", &["hooks.x", "needs `command`"]),
        (
            "[hooks.x]\non = 'before_run'\ncommand = 'true'",
            &["hooks.x.on", "before_run"],
        ),
        (
            "[hooks.x]\non = 'stop'\ncommand = 'scripts/check.sh'",
            &["hooks.x.command", "a file of each project"],
        ),
        (
            "[hooks.x]\non = 'stop'\ncommand = './check.sh'",
            &["hooks.x.command", "a file of each project"],
        ),
        (
            "[hooks.x]\non = 'stop'\ncommand = 'true'\nurl = 'https://h/'",
            &["hooks.x", "not both"],
        ),
        (
            "[hooks.x]\non = 'stop'\nurl = 'http://example.org/hook'",
            &["hooks.x.url", "must be https"],
        ),
        (
            "[hooks.x]\non = 'stop'\ncommand = 'true'\ntools = ['bash']",
            &["hooks.x.tools", "before_tool and after_tool alone"],
        ),
        (
            "[hooks.x]\non = 'before_tool'\ncommand = 'true'\ntools = ['[']",
            &["hooks.x.tools", "cannot be used"],
        ),
        (
            "[hooks.x]\non = 'stop'\ncommand = 'true'\ntimeout = '1h'",
            &["hooks.x.timeout"],
        ),
    ]);
}

#[test]
fn a_tool_that_there_is_not_is_a_warning_with_the_nearest() {
    let file = "[mcp.servers.docs]\ncommand = 'true'\n[tools.custom.deploy]\ndescription = 'd'\ncommand = 'true'\n\
                [hooks.x]\non = 'before_tool'\ncommand = 'true'\n\
                tools = ['bsh', 'bash', 'bash_output', 'file_*', 'mcp__docs__ask', 'mcp__dosc__ask', 'mcp__*', 'b[ai]sh', 'deploy', 'client__open', 'desk_open']\n";
    let warnings = toml(file).load().warnings;
    let [near, server, other] = warnings.as_slice() else {
        panic!("three warnings: {warnings:?}");
    };
    assert!(
        server.contains("no MCP server is named \"dosc\""),
        "{server}"
    );
    let begins = "hooks.x.tools: no tool is named \"bsh\"; did you mean \"bash\"?";
    assert!(near.starts_with(begins), "{near}");
    assert!(
        other.contains("\"desk_open\"") && !other.contains("mean"),
        "{other}"
    );
}

#[test]
fn a_key_in_the_address_of_an_endpoint_is_a_secret() {
    let url = |url: &str| toml(&format!("[hooks.x]\non = 'stop'\nurl = '{url}'"));
    let config = url("https://guard.example/check?team=platform&key=Kk8deadhookkey99")
        .load()
        .config;
    let secrets = config.secrets();
    let secrets: Vec<&str> = secrets.iter().map(|it| it.expose_secret()).collect();
    assert!(secrets.contains(&"Kk8deadhookkey99"), "{secrets:?}");
    assert!(
        !secrets.iter().any(|it| it.contains("platform")),
        "{secrets:?}"
    );
    for wrong in [
        "ftp://guard.example/Kk8deadhookkey99",
        "https://h:99999/Kk8deadhookkey99",
        "Kk8deadhookkey99",
        "http://user:pw@guard.example/?key=Kk8deadhookkey99",
    ] {
        let errors = url(wrong).errors();
        assert!(errors.contains("hooks.x.url"), "{errors}");
        assert!(!errors.contains("Kk8dead"), "{errors}");
    }
}
