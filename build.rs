//! Prepares what no start should have to do, and has the linker do what it can.
//!
//! - The texts that `src/packed.rs` has are packed.
//! - Tables of `config` become JSON, which takes less to read than TOML.
//!
//! For the memory and the start of a release build, where the linker knows how:
//!
//! - It packs the list of addresses that the loader adjusts at each start: 0.6 MB of which all was read, in 20 KB
//!   (RELR; loaders know it since glibc 2.36).
//! - It lays the functions that `OUTRIGGER_LINK_ORDER` lists beside each other (`.ci/dist` makes the list). The kernel
//!   maps sixteen pages around each page of the program that is touched, and a start touches a function here and there.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Texts that are a part of the program, deflated.
const PACKED: [&str; 7] = [
    "fixtures/schema/protocol.schema.json",
    "docs/asyncapi.json",
    "clients/typescript/src/protocol.ts",
    "clients/console/index.html",
    "clients/console/dist/style.css",
    "clients/console/dist/app.js",
    "clients/console/dist/THIRD-PARTY.txt",
];

/// What is read at a start, or at the first message.
const TABLES: [&str; 3] = ["default", "presets", "models"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    for path in PACKED {
        println!("cargo::rerun-if-changed={path}");
        pack(Path::new(path))?;
    }
    for name in TABLES {
        as_json(name)?;
    }
    link();
    Ok(())
}

/// Writes a file of this repository, deflated, to where `src/packed.rs` includes it from.
fn pack(path: &Path) -> io::Result<()> {
    let text = fs::read(path)?;
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&text)?;
    let folder = env::var_os("OUT_DIR").unwrap_or_default();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packed = Path::new(&folder).join(format!("{name}.deflated"));
    fs::write(packed, encoder.finish()?)
}

/// Writes a table of `config` as JSON to where the module that has it includes it from.
fn as_json(name: &str) -> io::Result<()> {
    let path = format!("config/{name}.toml");
    println!("cargo::rerun-if-changed={path}");
    let values: serde_json::Value =
        toml::from_str(&fs::read_to_string(path)?).map_err(io::Error::other)?;
    let folder = env::var_os("OUT_DIR").unwrap_or_default();
    fs::write(
        Path::new(&folder).join(format!("{name}.json")),
        values.to_string(),
    )
}

fn link() {
    println!("cargo::rerun-if-env-changed=OUTRIGGER_LINK_ORDER");
    let variable = |name| env::var(name).unwrap_or_default();
    if variable("PROFILE") != "release" || variable("CARGO_CFG_TARGET_OS") != "linux" {
        return;
    }
    let mut wanted = vec![vec!["-Wl,-z,pack-relative-relocs".to_owned()]];
    let order = variable("OUTRIGGER_LINK_ORDER");
    if !order.is_empty() {
        println!("cargo::rerun-if-changed={order}");
        wanted.push(vec![
            format!("-Wl,--symbol-ordering-file={order}"),
            "-Wl,--no-warn-symbol-ordering".to_owned(),
        ]);
    }
    for arguments in wanted {
        if takes(&variable, &arguments) {
            for argument in arguments {
                println!("cargo::rustc-link-arg-bins={argument}");
            }
        }
    }
}

/// Whether the linker takes the arguments, and this machine runs what comes of it where it is built for this machine: an
/// empty program is linked with them.
fn takes(variable: &dyn Fn(&'static str) -> String, arguments: &[String]) -> bool {
    let folder = variable("OUT_DIR");
    let source = Path::new(&folder).join("empty.rs");
    if fs::write(&source, "fn main() {}\n").is_err() {
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
    let succeeds =
        |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    succeeds(&mut compiler)
        && (variable("HOST") != variable("TARGET")
            || succeeds(&mut Command::new(Path::new(&folder).join("empty"))))
}
