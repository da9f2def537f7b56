//! What a release must not be made of is refused by its scripts.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::{Command, Output};

use super::support::root;

/// Runs Python in the folder of the scripts; `None`, said aloud, where there is none.
fn python(arguments: &[&OsStr]) -> Option<Output> {
    let run = Command::new("python3")
        .current_dir(root().join("release"))
        .arg("-B")
        .args(arguments)
        .output();
    match run {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("*** SKIPPED: the scripts of releases: there is no python3 ***");
            None
        }
        run => Some(run.unwrap()),
    }
}

const ARM: u32 = 0x0100_000C;
const INTEL: u32 = 0x0100_0007;
const ICONV: &str = "/usr/lib/libiconv.2.dylib";

/// A program of macOS as far as its head: what it asks for, no code.
fn program(processor: u32, oldest: [u8; 2], library: &str, is_signed: bool) -> Vec<u8> {
    let mut commands = Vec::new();
    let mut name = library.as_bytes().to_vec();
    name.resize((library.len() / 8 + 1) * 8, 0);
    let size = 24 + u32::try_from(name.len()).unwrap();
    commands.extend([0xC, size, 24, 0, 0, 0].map(u32::to_le_bytes).concat());
    commands.extend(name);
    let oldest = (u32::from(oldest[0]) << 16) | (u32::from(oldest[1]) << 8);
    commands.extend([0x32, 24, 1, oldest, 0, 0].map(u32::to_le_bytes).concat());
    if is_signed {
        let place = 32 + u32::try_from(commands.len()).unwrap() + 16;
        commands.extend([0x1D, 16, place, 4].map(u32::to_le_bytes).concat());
    }
    let count = 2 + u32::from(is_signed);
    let length = u32::try_from(commands.len()).unwrap();
    let head = [0xFEED_FACF, processor, 0, 2, count, length, 0, 0].map(u32::to_le_bytes);
    // What a signature begins with comes after the commands.
    let signature = 0xFADE_0CC0_u32.to_be_bytes();
    [&head.concat()[..], &commands, &signature].concat()
}

#[test]
fn a_program_that_would_start_on_no_mac_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let stubs = place.path().join("stubs");
    std::fs::create_dir(&stubs).unwrap();
    let stub = format!("--- !tapi-tbd\ninstall-name: '{ICONV}'\n");
    std::fs::write(stubs.join("libiconv.tbd"), stub).unwrap();
    let file = place.path().join("program");
    let system = "/usr/lib/libSystem.B.dylib";
    let unknown = "/usr/lib/libz.1.dylib";
    for (program, wrong) in [
        (program(ARM, [11, 0], ICONV, true), None),
        (program(INTEL, [10, 13], system, false), None),
        (program(ARM, [11, 0], ICONV, false), Some("not signed")),
        (program(INTEL, [11, 1], system, false), Some("macOS 11.1")),
        (program(ARM, [11, 0], unknown, true), Some(unknown)),
    ] {
        std::fs::write(&file, program).unwrap();
        let arguments = [
            "stubs.py".as_ref(),
            "--imports".as_ref(),
            file.as_os_str(),
            stubs.as_os_str(),
        ];
        let Some(run) = python(&arguments) else {
            return;
        };
        let said = String::from_utf8_lossy(&run.stderr);
        assert_eq!(run.status.success(), wrong.is_none(), "{said}");
        assert!(said.contains(wrong.unwrap_or_default()), "{said}");
    }
}

#[test]
fn licences_in_a_page_are_there_once_to_read() {
    let page = "<head><title>No</title></head><h3>\u{1F4E6} a-1</h3><p>By: A &#60;a@b&#62;</p>\
        <summary>LICENSE</summary><pre>\n  You may.\nOr not.\n </pre>\
        <h3>b-2</h3><summary>TERMS</summary><pre>\n  You may.\nOr not.\n</pre>";
    let program = "import sys; from readable import readable; print(*readable(sys.argv[1]))";
    let Some(run) = python(&["-c".as_ref(), program.as_ref(), page.as_ref()]) else {
        return;
    };
    assert_eq!(
        String::from_utf8_lossy(&run.stdout).replace('\r', ""),
        "\na-1\nBy: A <a@b>\nLICENSE\n\n  You may.\nOr not.\n\n\nb-2\nTERMS\n(as LICENSE of a-1) 1\n",
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
}
