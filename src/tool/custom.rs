//! Tools of the operator's own: a command each, whose inputs never become a part of a shell's line.
//!
//! An input reaches the command as a whole argument, or a part of one, where the operator wrote `{name}`, and as the
//! variable `INPUT_NAME`. A shell that the operator asks for reads the operator's line alone.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::exec::Exec;
use super::program::{Effect, ProgramCall};
use super::typed::Typed;
use super::{Facts, Refusal, Tool};
use crate::config::template::{Piece, pieces, variable};
use crate::config::{BashConfig, CustomCommand, CustomToolConfig};
use crate::message::{ToolCategory, ToolSpec};
use crate::permission::rule::Key;
use crate::sandbox::Network;

/// The longest text of one input, in bytes: the system takes no longer argument or variable.
const MAX_INPUT: usize = 100 * 1024;

/// The most arguments that a list becomes.
const MAX_ITEMS: usize = 1_000;

/// What reads the operator's line.
const SHELL: [&str; 3] = ["/bin/sh", "-c", "--"];

/// Makes the tool of a checked configuration; `bash` says what holds for all commands.
pub fn custom(exec: Exec, config: CustomToolConfig, bash: &BashConfig) -> impl Tool + use<> {
    let (ports, parallel) = (bash.ports.of_commands(), bash.parallel);
    let spec = ToolSpec {
        name: config.name.clone(),
        description: config.description.clone(),
        input_schema: config.input_schema.clone().into(),
        category: ToolCategory::Exec,
        danger_level: config.danger,
        origin: "custom".to_owned(),
    };
    // One that runs something else after a restart is another tool.
    let definition = format!("{:?} {}", config.command, config.network);
    let version = HEXLOWER.encode(&Sha256::digest(definition.as_bytes()));
    Typed::with(spec, move |input: Map<String, Value>| {
        let name = &config.name;
        let filled = command(&config.command, &input).map_err(|problem| {
            Refusal::Invalid(format!("the input of `{name}` does not fit: {problem}"))
        })?;
        let remember = Some(Key::Tool {
            tool: name.clone(),
            version: Some(version.clone()),
        });
        let network = match config.network {
            true => Network::Outgoing(ports.clone()),
            false => Network::Off,
        };
        let mut command = exec.command(&filled.program, filled.args, network);
        command.env.extend(filled.variables);
        Ok(ProgramCall {
            exec: exec.clone(),
            facts: Facts {
                // The operator gave the network to this very tool.
                network: false,
                timeout: config.timeout,
                ..Facts::new(config.danger, remember)
            },
            command,
            hosts: None,
            registries: None,
            // `safe` is the operator's word that it only reads, as for whoever decides.
            effect: Effect::of_command(config.danger, parallel),
            background: None,
        })
    })
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Filled {
    program: String,
    args: Vec<String>,
    variables: BTreeMap<String, String>,
}

/// Fills a template; the error is for the model.
fn command(template: &CustomCommand, input: &Map<String, Value>) -> Result<Filled, String> {
    let mut variables = BTreeMap::new();
    for (name, value) in input {
        variables.insert(variable(name), text(name, value)?);
    }
    let mut args = Vec::new();
    let program = match template {
        CustomCommand::Shell(line) => {
            let [shell, options @ ..] = SHELL;
            args.extend(options.map(str::to_owned));
            args.push(line.clone());
            shell.to_owned()
        }
        CustomCommand::Program {
            program,
            args: templates,
        } => {
            let mut options_ended = false;
            for template in templates {
                fill(template, input, options_ended, &mut args)?;
                options_ended |= template == "--";
            }
            program.clone()
        }
    };
    Ok(Filled {
        program,
        args,
        variables,
    })
}

/// Adds what one word of the template comes to: one argument, none, or one for each item of a list.
fn fill(
    template: &str,
    input: &Map<String, Value>,
    options_ended: bool,
    args: &mut Vec<String>,
) -> Result<(), String> {
    let pieces = pieces(template);
    if let [Piece::Input(name)] = pieces.as_slice() {
        let values = match input.get(*name) {
            None => return Ok(()),
            Some(Value::Array(items)) if items.len() > MAX_ITEMS => {
                return Err(format!("`{name}` has more than {MAX_ITEMS} items"));
            }
            Some(Value::Array(items)) => items.iter().collect(),
            Some(value) => vec![value],
        };
        for value in values {
            args.push(whole(name, value, options_ended)?);
        }
        return Ok(());
    }
    let mut word = String::new();
    for (place, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => word.push_str(text),
            Piece::Input(name) => match input.get(*name) {
                // An option whose input is not given is not given.
                None => return Ok(()),
                Some(value) if place == 0 => word.push_str(&whole(name, value, options_ended)?),
                Some(value) => word.push_str(&text(name, value)?),
            },
        }
    }
    args.push(word);
    Ok(())
}

/// The text of an input that begins an argument: it must not be taken for an option.
fn whole(name: &str, value: &Value, options_ended: bool) -> Result<String, String> {
    let text = text(name, value)?;
    if text.starts_with('-') && !options_ended {
        return Err(format!(
            "`{name}` begins with `-`, which the command would take for an option; write ./- for a file of that name"
        ));
    }
    Ok(text)
}

fn text(name: &str, value: &Value) -> Result<String, String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if text.contains('\0') {
        return Err(format!(
            "`{name}` holds a NUL character, which no program can be given"
        ));
    }
    if text.len() > MAX_INPUT {
        return Err(format!("`{name}` has more than {MAX_INPUT} bytes"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
