//! What commands cost: the time until it is known what is enforced, then from each `true` until nothing is left of it, in
//! a pod as the commands of a conversation are.
//!
//! `cargo run --release -p outrigger-sandbox --example turns -- [full|fallback|limits|none] [COMMANDS]`

#[cfg(target_os = "linux")]
fn main() -> Result<std::process::ExitCode, Box<dyn std::error::Error>> {
    use std::io::Write;
    use std::process::ExitCode;
    use std::time::{Duration, Instant};

    use outrigger_sandbox::output::{TOTAL_BYTES, collect};
    use outrigger_sandbox::{
        Command, HELPER_ARGUMENT, Mode, Network, Ports, Sandbox, Settings, helper,
    };

    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_else(|| "full".to_owned());
    if mode == HELPER_ARGUMENT {
        return Ok(helper::main());
    }
    let ceiling: Mode = serde_json::from_value(mode.into())?;
    let commands: usize = arguments.next().map_or(Ok(200), |number| number.parse())?;
    let project = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let began = Instant::now();
        let sandbox = Sandbox::new(Settings {
            ceiling,
            ..Settings::new(std::env::home_dir())
        });
        sandbox.expect_command(None);
        let mode = sandbox.report().await.mode;
        let mut stdout = std::io::stdout();
        writeln!(stdout, "{mode} known after {:.2?}", began.elapsed())?;
        let mut command = Command::new("/bin/bash", project.path());
        command.args = ["--noprofile", "--norc", "-c", "true"]
            .map(str::to_owned)
            .to_vec();
        command.env = [
            ("HOME", "/root"),
            ("SHELL", "/bin/bash"),
            ("PATH", "/usr/bin:/bin"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        command.read_write = vec![project.path().to_owned()];
        command.network = Network::Outgoing(Ports::Any);
        command.pod = Some(sandbox.pod());
        let mut times = Vec::new();
        for _ in 0..commands {
            let began = Instant::now();
            let mut process = sandbox.spawn(&command).await?;
            let never = std::future::pending::<()>();
            collect(&mut process, TOTAL_BYTES, never, |_, _| {}).await;
            times.push(began.elapsed());
            // The model's next turn.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times.sort_unstable();
        for (name, part) in [("least", 0), ("median", 50), ("95 of 100", 95)] {
            if let Some(time) = times.get(times.len() * part / 100) {
                writeln!(stdout, "{name}: {time:.2?}")?;
            }
        }
        drop(command);
        sandbox.pods_removed().await;
        Ok(ExitCode::SUCCESS)
    })
}

#[cfg(not(target_os = "linux"))]
fn main() {}
