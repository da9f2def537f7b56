//! What a client says of a tool, checked: its author is there to mend it, so what does not fit is refused.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use data_encoding::HEXLOWER;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::{ClientTool, ORIGIN, PREFIX};
use crate::config::{ClientToolsConfig, SkipApproval};
use crate::json_schema::ObjectSchema;
use crate::message::{DangerLevel, ToolCategory, ToolSpec};

/// The longest name: with what stands before it, as long as every provider takes.
const MAX_NAME: usize = 56;

/// The longest description, in bytes.
const MAX_DESCRIPTION: usize = 4 * 1024;

/// The most bytes of names, descriptions and schemas of a session's tools together.
pub const MAX_DECLARED: usize = 256 * 1024;

/// How long a call may wait where nobody says.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The least that a tool may ask for.
const LEAST_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the user is asked before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// As the trust level says.
    Trust,
    /// For each call.
    Always,
    /// Not but under `supervised`.
    Never,
}

/// A tool as a client declares it.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Its name, without what stands before it for the model.
    pub name: String,
    /// For the model.
    pub description: String,
    /// JSON schema of the input.
    pub input_schema: Map<String, Value>,
    /// Whether it changes nothing.
    pub read_only: bool,
    /// Whether the user is asked.
    pub approval: Approval,
    /// How long a call may wait.
    pub timeout: Option<Duration>,
    /// Whether a person is part of the call.
    pub interactive: bool,
}

/// Why there is no such tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// A field does not fit.
    Invalid(&'static str, String),
    /// The operator does not allow it.
    Forbidden(&'static str, String),
}

impl Declared {
    /// Returns how much it counts towards [`MAX_DECLARED`].
    pub fn bytes(&self) -> usize {
        let schema = Value::Object(self.input_schema.clone()).to_string();
        self.name.len() + self.description.len() + schema.len()
    }

    /// Makes the tool; `output_cap` is in bytes of text.
    ///
    /// # Errors
    ///
    /// Which field does not fit or is not allowed, and what to do.
    pub fn define(
        self,
        config: &ClientToolsConfig,
        output_cap: usize,
    ) -> Result<ClientTool, Undefined> {
        let invalid = |field| move |problem| Undefined::Invalid(field, problem);
        name(&self.name).map_err(invalid("name"))?;
        if self.description.trim().is_empty() || self.description.len() > MAX_DESCRIPTION {
            let problem = format!("1 to {MAX_DESCRIPTION} bytes that say what it does");
            return Err(Undefined::Invalid("description", problem));
        }
        if self.timeout.is_some_and(|it| it < LEAST_TIMEOUT) {
            let problem = format!("{} at least", LEAST_TIMEOUT.as_millis());
            return Err(Undefined::Invalid("timeoutMs", problem));
        }
        let may_skip = match config.skip_approval {
            SkipApproval::None => false,
            SkipApproval::ReadOnly => self.read_only,
            SkipApproval::All => true,
        };
        if self.approval == Approval::Never && !may_skip {
            let problem = "the operator does not allow \"never\" for this tool (tools.client.skip_approval); use \"trust\"";
            return Err(Undefined::Forbidden("approval", problem.to_owned()));
        }
        let input = ObjectSchema::new(self.input_schema).map_err(invalid("inputSchema"))?;
        let timeout = self.timeout.unwrap_or(TIMEOUT).min(config.timeout_max);
        let flags = format!(
            "{:?} {} {} {}",
            self.approval,
            self.read_only,
            self.interactive,
            timeout.as_millis()
        );
        // In whatever order its keys came, it is the same.
        let mut sorted = input.value().clone();
        sorted.sort_all_objects();
        let mut digest = Sha256::new();
        for piece in [&self.name, &self.description, &sorted.to_string(), &flags] {
            digest.update((piece.len() as u64).to_le_bytes());
            digest.update(piece.as_bytes());
        }
        let is_mild = self.read_only || self.approval == Approval::Never;
        Ok(ClientTool {
            spec: ToolSpec {
                name: format!("{PREFIX}{}", self.name),
                description: self.description,
                input_schema: input.value().clone().into(),
                category: ToolCategory::Client,
                // Never safe: an empty map of permissions offers what the operator knows to only read.
                danger_level: match is_mild {
                    true => DangerLevel::Warning,
                    false => DangerLevel::Dangerous,
                },
                origin: ORIGIN.to_owned(),
            },
            name: self.name,
            digest: HEXLOWER.encode(&digest.finalize()),
            input,
            approval: self.approval,
            timeout,
            interactive: self.interactive,
            output_cap,
            is_gone: AtomicBool::new(false),
        })
    }
}

fn name(name: &str) -> Result<(), String> {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let fits = (1..=MAX_NAME).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(is_letter)
        && !name.contains("__");
    match fits {
        true => Ok(()),
        false => Err(format!(
            "a letter, then letters, digits, _ and -, no __, {MAX_NAME} characters at most"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CONFIG: ClientToolsConfig = ClientToolsConfig {
        enabled: true,
        skip_approval: SkipApproval::ReadOnly,
        timeout_max: Duration::from_secs(600),
    };

    fn declared(name: &str, schema: Value) -> Declared {
        let Value::Object(input_schema) = schema else {
            panic!("no object");
        };
        Declared {
            name: name.to_owned(),
            description: "Opens a file.".to_owned(),
            input_schema,
            read_only: false,
            approval: Approval::Trust,
            timeout: None,
            interactive: false,
        }
    }

    fn refusal(declared: Declared) -> Undefined {
        declared.define(&CONFIG, 1_000).err().unwrap()
    }

    #[test]
    fn a_tool_is_offered_as_it_was_declared() {
        let tool = declared(
            "open_file",
            json!({"properties": {"line": {"type": "integer"}}}),
        );
        let tool = tool.define(&CONFIG, 1_000).unwrap();
        assert_eq!(tool.full_name(), "client__open_file");
        assert_eq!(tool.spec.input_schema["type"], "object");
        assert_eq!(tool.timeout(), TIMEOUT);
        let input = json!({"line": "x"});
        let error = tool.input.check(&input).unwrap_err();
        assert!(error.starts_with("`line`: \"x\" is not of type"), "{error}");
        let longest = "a".repeat(MAX_NAME);
        let tool = declared(&longest, json!({}))
            .define(&CONFIG, 1_000)
            .unwrap();
        assert_eq!(tool.full_name().len(), 64);
    }

    #[test]
    fn names_that_a_provider_or_a_person_could_take_for_another_are_refused() {
        let longer = "a".repeat(MAX_NAME + 1);
        for wrong in ["", "1a", "a__b", "a b", "ä", "_a", &longer] {
            let refused = refusal(declared(wrong, json!({})));
            assert!(matches!(refused, Undefined::Invalid("name", _)), "{wrong}");
        }
    }

    #[test]
    fn the_operator_says_what_runs_without_a_question() {
        let never = |read_only| Declared {
            approval: Approval::Never,
            read_only,
            ..declared("a", json!({}))
        };
        assert!(matches!(
            refusal(never(false)),
            Undefined::Forbidden("approval", _)
        ));
        let tool = never(true).define(&CONFIG, 1_000).unwrap();
        assert_eq!(tool.spec.danger_level, DangerLevel::Warning);
    }

    #[test]
    fn another_tool_is_told_from_the_same_one() {
        let one = |schema| declared("a", schema).define(&CONFIG, 1_000).unwrap();
        let a = one(json!({"properties": {"a": {}, "b": {"type": "string"}}}));
        let b = one(json!({"properties": {"b": {"type": "string"}, "a": {}}, "type": "object"}));
        assert!(a.is_same(&b));
        assert!(!a.is_same(&one(json!({"properties": {"a": {}}}))));
        let longer = Declared {
            timeout: Some(Duration::from_secs(3_600)),
            ..declared("a", json!({}))
        };
        let longer = longer.define(&CONFIG, 1_000).unwrap();
        assert_eq!(longer.timeout(), CONFIG.timeout_max);
    }
}
