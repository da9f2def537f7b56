//! Has the linker lay the functions that every run needs beside each other.
//!
//! The kernel maps sixteen pages around each page of the program that is touched, and a start touches a function here and
//! one there: of 11 MB of code 7.8 were in memory for 1.2 that had run. `config/link-order.txt` names what runs in a start,
//! an answer and a tool call; `benches/link_order.py` makes it. A name that is not there, after a change or with another
//! compiler, is passed over, and with a linker that does not know the option all is as it was.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=config/link-order.txt");
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let order = Path::new(&variable("CARGO_MANIFEST_DIR")).join("config/link-order.txt");
    let arguments = [
        format!("-Wl,--symbol-ordering-file={}", order.display()),
        "-Wl,--no-warn-symbol-ordering".to_owned(),
    ];
    if takes(&variable, &arguments) {
        for argument in &arguments {
            println!("cargo::rustc-link-arg-bins={argument}");
        }
    }
}

/// Whether the linker takes the arguments: an empty program is linked with them.
fn takes(variable: &dyn Fn(&'static str) -> String, arguments: &[String]) -> bool {
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
    compiler.args(
        arguments
            .iter()
            .map(|argument| format!("-Clink-arg={argument}")),
    );
    compiler
        .output()
        .is_ok_and(|output| output.status.success())
}
