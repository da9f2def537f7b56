//! A helper that cannot do all of its work.

use std::fs;

use outrigger_sandbox::{LANDLOCK, Mode, Sandbox, Settings};

use crate::support::{World, eventually, kill, processes_with, write_program};

/// A supervisor that fails after it has started the program puts things back when the program is dead, not before.
#[tokio::test]
async fn one_that_cannot_supervise_leaves_nothing_running() {
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None] {
        let world = World::new();
        let mark = format!("failing-helper-{mode}-{}", std::process::id());
        let fail = world.temporary().join("fail");
        // With a filter that refuses `signalfd4`, by which a supervisor knows of its program's end.
        let helper = world.temporary().join("helper");
        let text = format!(
            "#!/usr/bin/perl\nif (-e '{fail}') {{\n\
             my $steps = pack('S C C L' x 4, 0x20, 0, 0, 0, 0x15, 0, 1, {0}, 6, 0, 0, 0x50001, 6, 0, 0, 0x7fff0000);\n\
             my $filter = pack('S x6 P', 4, $steps);\n\
             syscall({1}, 38, 1, 0, 0, 0) == 0 and syscall({1}, 22, 2, $filter) == 0 or die;\n}}\n\
             exec('{helper}', @ARGV, '{mark}');\n",
            libc::SYS_signalfd4,
            libc::SYS_prctl,
            fail = fail.display(),
            helper = crate::HELPER,
        );
        write_program(&helper, &text);
        let sandbox = Sandbox::new(Settings {
            helper,
            ceiling: mode,
            unverified: false,
            landlock: LANDLOCK,
            home: Some(world.home()),
            temporary: world.temporary(),
            private_bytes: outrigger_sandbox::PRIVATE_BYTES,
            pod_bytes: outrigger_sandbox::POD_BYTES,
            caches: Vec::new(),
            user_ids: None,
        });
        assert_eq!(sandbox.report().await.mode, mode);
        // What helpers are forks of, and the one that waits. Without a mode there is no probe, and nothing yet.
        let begun = if mode == Mode::None { 0 } else { 2 };
        eventually("the end of the probe", || {
            processes_with(&mark).len() == begun
        });
        fs::write(fail, "").unwrap();
        processes_with(&mark).into_iter().for_each(kill);
        // Not the mark itself, which all helpers bear.
        let program = format!("program-of-{mark}");
        let line = format!("setsid bash -c 'exec -a {program} sleep 600' & wait");
        let error = sandbox.spawn(&world.bash(&line)).await.unwrap_err();
        let error = error.to_string();
        assert!(error.contains("listening to the kernel"), "{error}");
        assert_eq!(processes_with(&program), [0; 0], "{mode}");
    }
}
