//! Runs a program in the strongest sandbox that works here; it may change a folder and nothing else:
//!
//!     cargo run -p outrigger-sandbox --example run -- FOLDER PROGRAM [ARGUMENT…]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use outrigger_sandbox::output::{TOTAL_BYTES, collect};
use outrigger_sandbox::{Command, Sandbox, Settings};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap_or_else(|| ".".to_owned());
    // Before anything else: the sandbox runs this program again, as its helper.
    #[cfg(target_os = "linux")]
    if first == outrigger_sandbox::HELPER_ARGUMENT {
        return Ok(outrigger_sandbox::helper::main());
    }
    let program = arguments.next().unwrap_or_else(|| "id".to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(run(Path::new(&first), program, arguments.collect()))
}

async fn run(
    folder: &Path,
    program: String,
    args: Vec<String>,
) -> Result<ExitCode, Box<dyn Error>> {
    let folder = folder.canonicalize()?;
    let sandbox = Sandbox::new(Settings::new(std::env::var_os("HOME").map(Into::into)));
    let mut command = Command::new(program, &folder);
    command.args = args;
    command.env = BTreeMap::from([("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())]);
    command.read_write = vec![folder];
    let mut process = sandbox.spawn(&command).await?;
    let mut text = String::new();
    let never = std::future::pending::<()>();
    let keep = |_, piece: &str| text.push_str(piece);
    let output = collect(&mut process, TOTAL_BYTES, never, keep).await;
    let mode = sandbox.report().await.mode;
    let code = output.exit.code.and_then(|code| u8::try_from(code).ok());
    let mut stdout = std::io::stdout().lock();
    write!(stdout, "{text}")?;
    writeln!(stdout, "[mode {mode}, exit code {code:?}]")?;
    Ok(ExitCode::from(code.unwrap_or(1)))
}
