//! Older kernels: what their Landlock does not see is refused by the filter, or said in the report.

use std::fs;

use outrigger_sandbox::{Mode, Network, Ports, Sandbox};

use crate::attempts::Targets;
use crate::support::{World, run};

#[tokio::test]
async fn the_report_says_what_the_kernel_lacks() {
    let world = World::new();
    for (mode, landlock, missing) in [
        (Mode::Fallback, 2, &["ports", "devices", "signals"][..]),
        (Mode::Fallback, 4, &["devices", "signals"]),
        (Mode::Full, 4, &["devices"]),
    ] {
        let report = world.sandbox_with(mode, landlock).report().await;
        assert_eq!(report.mode, mode);
        let found = report.landlock.unwrap();
        assert_eq!(
            (found.abi, found.missing.as_slice()),
            (landlock, missing),
            "{mode}"
        );
    }
    assert_eq!(world.sandbox(Mode::Limits).report().await.landlock, None);
}

/// Emptying a file is no writing to a Landlock before its third version.
#[tokio::test]
async fn nothing_outside_is_emptied() {
    const WAYS: [&str; 4] = [
        "syscall(76, $p, 0)",
        "sysopen(F, $p, O_RDONLY | O_TRUNC)",
        "syscall(2, $p, 3 | O_TRUNC, 0)",
        "syscall(257, -100, $p, 3 | O_TRUNC, 0)",
    ];
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let world = World::new();
    let file = world.outside().join("file");
    let empties = async |sandbox: &Sandbox, way: &str| {
        fs::write(&file, "full").unwrap();
        let line = format!("perl -e 'use Fcntl; my $p = \"{}\"; {way}'", file.display());
        let mut command = world.bash(&line);
        // Readable, as a toolchain in the home is.
        command.read_only = vec![world.outside()];
        let output = run(sandbox, &command).await;
        (fs::read(&file).unwrap().is_empty(), output)
    };
    for way in WAYS {
        let (emptied, output) = empties(&world.sandbox(Mode::None), way).await;
        assert!(emptied, "{way} fails without a sandbox: {output:?}");
        for (mode, landlock) in [
            (Mode::Fallback, 1),
            (Mode::Fallback, 2),
            (Mode::Fallback, 3),
            (Mode::Full, 2),
        ] {
            let (emptied, output) = empties(&world.sandbox_with(mode, landlock), way).await;
            assert!(!emptied, "{way} in {mode} {landlock}: {output:?}");
        }
    }
    // What is the command's own is emptied as ever, but by its path alone.
    let line = "echo x > f; truncate -s 0 f; echo y > g; : > g; stat -c %s f g";
    let output = run(&world.sandbox_with(Mode::Fallback, 2), &world.bash(line)).await;
    assert_eq!(output.stdout.text, "0\n0\n", "{output:?}");
}

/// In full mode, what uses the machine's network (an MCP server) is in it with its sockets by abstract name.
#[tokio::test]
async fn no_abstract_socket_is_reached_with_the_network_on() {
    for (mode, landlock, free) in [
        (Mode::None, 9, true),
        (Mode::Full, 5, false),
        (Mode::Full, 9, false),
        (Mode::Fallback, 5, false),
        (Mode::Fallback, 9, false),
    ] {
        let mut targets = Targets::new();
        let sandbox = targets.world.sandbox_with(mode, landlock);
        let mut command = targets.world.bash(&targets.abstract_socket());
        command.network = Network::Host(Ports::Only(vec![443]));
        let output = run(&sandbox, &command).await;
        assert_eq!(
            targets.abstract_is_reached(),
            free,
            "{mode} {landlock}: {output:?}"
        );
    }
}
