//! Finds out what the machine can enforce, by running an empty script in each mode until one works.
//!
//! Versions and names of distributions say little: containers, security modules and system settings refuse what the
//! kernel could do.

use super::layers::Layers;
use super::{Command, Mode, NetworkReport, SandboxReport, Shared, process};

/// Tries the modes from the ceiling down.
pub(super) async fn probe(shared: &Shared) -> SandboxReport {
    let mut reasons = Vec::new();
    for mode in [Mode::Full, Mode::Fallback, Mode::Limits] {
        if mode > shared.settings.ceiling {
            reasons.push(format!("{mode}: switched off by the configuration"));
            continue;
        }
        match attempt(shared, mode).await {
            Ok(layers) => return report(mode, layers, &reasons),
            Err(reason) => {
                tracing::info!(%mode, reason, "sandbox mode does not work here");
                reasons.push(format!("{mode}: {reason}"));
            }
        }
    }
    report(Mode::None, Layers::default(), &reasons)
}

#[cfg(target_os = "linux")]
async fn attempt(shared: &Shared, mode: Mode) -> Result<Layers, String> {
    let mut command = Command::new("/bin/sh", "/");
    command.args = vec!["-c".to_owned(), "exit 7".to_owned()];
    let mut process = process::spawn(shared, &command, mode)
        .await
        .map_err(|error| error.to_string())?;
    let layers = process.layers();
    match process.wait().await.code {
        Some(7) => Ok(layers),
        code => Err(format!(
            "a shell that should exit with 7 ended with {code:?}"
        )),
    }
}

#[cfg(not(target_os = "linux"))]
async fn attempt(_shared: &Shared, _mode: Mode) -> Result<Layers, String> {
    Err("not implemented on this operating system".to_owned())
}

fn report(mode: Mode, layers: Layers, why_not: &[String]) -> SandboxReport {
    let commands = [
        ("namespaces", layers.namespaces),
        ("landlock", layers.landlock),
        ("seccomp", layers.seccomp),
        ("rlimits", layers.rlimits),
        ("cgroup", layers.cgroup),
    ];
    SandboxReport {
        mode,
        commands: commands
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| *name)
            .collect(),
        network: if layers.namespaces || layers.seccomp {
            NetworkReport::Off
        } else {
            NetworkReport::Unenforced
        },
        why_not_full: (!why_not.is_empty()).then(|| why_not.join("; ")),
    }
}
