//! Nothing outlives its command, and nothing holds the daemon up.

use outrigger::sandbox::Mode;

use crate::support::{World, run};

const MODES: [Mode; 4] = [Mode::Full, Mode::Fallback, Mode::Limits, Mode::None];

#[tokio::test]
async fn output_and_exit_code_come_back_in_every_mode() {
    let world = World::new();
    for mode in MODES {
        let sandbox = world.sandbox(mode);
        let report = sandbox.report().await;
        assert_eq!(report.mode, mode, "{report:?}");
        let output = run(&sandbox, &world.bash("echo out; echo err >&2; pwd; exit 3")).await;
        assert_eq!(
            output.stdout.text,
            format!("out\n{}\n", world.project().display()),
            "{mode:?} {output:?}"
        );
        assert_eq!(output.stderr.text, "err\n");
        assert_eq!(output.exit.code, Some(3));
    }
}
