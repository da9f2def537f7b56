//! `outrigger schema`: the contract as files, for editors, for clients and for generators of client code.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use super::{complain, print};
use crate::arguments::SchemaArguments;
use crate::ready::exit;
use crate::{config, protocol};

/// The contract as TypeScript, as the client in this repository has it.
const TYPESCRIPT: &str = include_str!("../../clients/typescript/src/protocol.ts");

/// Writes `protocol.schema.json`, `protocol.ts`, `asyncapi.json` and `config.schema.json` and prints their paths.
pub fn schema(arguments: &SchemaArguments) -> ExitCode {
    match write(&arguments.out) {
        Ok(paths) => match print(&paths) {
            Ok(()) => ExitCode::from(exit::OK),
            Err(_) => ExitCode::from(exit::FAILED),
        },
        Err(error) => {
            complain(&format!(
                "the schemas could not be written to {}: {error}",
                arguments.out.display()
            ));
            ExitCode::from(exit::FAILED)
        }
    }
}

fn write(directory: &Path) -> io::Result<String> {
    fs::create_dir_all(directory)?;
    let mut paths = String::new();
    let schema = protocol::schema::schema();
    for (name, content) in [
        ("protocol.schema.json", text(&schema)),
        ("protocol.ts", TYPESCRIPT.to_owned()),
        (
            "asyncapi.json",
            text(&protocol::asyncapi::asyncapi(&schema)),
        ),
        ("config.schema.json", text(&config::schema())),
    ] {
        let path = directory.join(name);
        fs::write(&path, content)?;
        paths.push_str(&format!("{}\n", path.display()));
    }
    Ok(paths)
}

fn text(schema: &Value) -> String {
    format!("{schema:#}\n")
}
