//! `outrigger schema`: the contract as files, for editors, for clients and for generators of client code.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use super::{complain, exit_code, print};
use crate::arguments::SchemaArguments;
use crate::{config, packed};

/// Writes `protocol.schema.json`, `protocol.ts`, `asyncapi.json` and `config.schema.json` and prints their paths.
pub fn schema(arguments: &SchemaArguments) -> ExitCode {
    let is_well = match write(&arguments.out) {
        Ok(paths) => print(&paths).is_ok(),
        Err(error) => {
            let place = arguments.out.display();
            complain(&format!(
                "the schemas could not be written to {place}: {error}"
            ));
            false
        }
    };
    exit_code(is_well)
}

fn write(directory: &Path) -> io::Result<String> {
    fs::create_dir_all(directory)?;
    let mut paths = String::new();
    for (name, content) in [
        ("protocol.schema.json", packed::SCHEMA.text()),
        ("protocol.ts", packed::TYPESCRIPT.text()),
        ("asyncapi.json", packed::ASYNCAPI.text()),
        ("config.schema.json", format!("{:#}\n", config::schema())),
    ] {
        let path = directory.join(name);
        fs::write(&path, content)?;
        paths.push_str(&format!("{}\n", path.display()));
    }
    Ok(paths)
}
