//! A helper that cannot do all of its work.

use std::fs;

use outrigger_sandbox::{LANDLOCK, Mode, Sandbox, Settings};

use crate::support::{World, eventually, processes_with, write_program};

/// A supervisor that fails after it has started the program puts things back when the program is dead, not before.
#[tokio::test]
async fn one_that_cannot_supervise_leaves_nothing_running() {
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let world = World::new();
        let mark = format!("failing-helper-{mode}-{}", std::process::id());
        let lead = world.temporary().join("lead");
        // The leader of a group can start no session.
        let helper = world.temporary().join("helper");
        let text = format!(
            "#!/usr/bin/perl\n-e '{}' and setpgrp(0, 0); exec('{}', @ARGV, '{mark}');\n",
            lead.display(),
            crate::HELPER,
        );
        write_program(&helper, &text);
        let sandbox = Sandbox::new(Settings {
            helper,
            ceiling: mode,
            landlock: LANDLOCK,
            home: Some(world.home()),
            temporary: world.temporary(),
            private_bytes: outrigger_sandbox::PRIVATE_BYTES,
            pod_bytes: outrigger_sandbox::POD_BYTES,
            caches: Vec::new(),
        });
        assert_eq!(sandbox.report().await.mode, mode);
        eventually("the end of the probe", || processes_with(&mark).is_empty());
        fs::write(lead, "").unwrap();
        // Not the mark itself, which the next command's helper bears that waits already.
        let program = format!("program-of-{mark}");
        let line = format!("setsid bash -c 'exec -a {program} sleep 600' & wait");
        match sandbox.spawn(&world.bash(&line)).await {
            Err(error) => assert!(error.to_string().contains("stepping aside"), "{error}"),
            // The one that fails there is the parent of the supervisor, which may have started the program before.
            Ok(mut process) if mode == Mode::Full => {
                let exit = process.wait().await;
                assert_eq!((exit.code, exit.signal), (None, Some(9)));
            }
            Ok(_) => panic!("{mode}: it started, and nobody supervises it"),
        }
        assert_eq!(processes_with(&program), [0; 0], "{mode}");
    }
}
