//! Packs the list of addresses that the loader adjusts at each start of a release build, where the linker can.
//!
//! That is 0.6 MB of which all was read, in 20 KB (RELR; loaders know it since glibc 2.36).

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let packed = "-Wl,-z,pack-relative-relocs";
    if takes(&variable, packed) {
        println!("cargo::rustc-link-arg-bins={packed}");
    }
}

/// Whether the linker takes the argument, and this machine runs what comes of it where it is built for this machine: an
/// empty program is linked with it.
fn takes(variable: &dyn Fn(&'static str) -> String, argument: &str) -> bool {
    let folder = variable("OUT_DIR");
    let source = Path::new(&folder).join("empty.rs");
    if std::fs::write(&source, "fn main() {}\n").is_err() {
        return false;
    }
    let mut compiler = Command::new(variable("RUSTC"));
    compiler
        .arg(&source)
        .args(["--out-dir", &folder, "--target", &variable("TARGET")]);
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    compiler.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        compiler.arg(format!("-Clinker={linker}"));
    }
    compiler.arg(format!("-Clink-arg={argument}"));
    let succeeds =
        |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    succeeds(&mut compiler)
        && (variable("HOST") != variable("TARGET")
            || succeeds(&mut Command::new(Path::new(&folder).join("empty"))))
}
