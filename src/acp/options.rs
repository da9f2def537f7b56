//! What a client may choose for a session: trust, model, thinking. Pure.

use serde_json::{Value, json};

use super::rpc::RpcError;
use crate::message::{Effort, Model, Thinking, TrustLevel};
use crate::protocol::answer::Configured;
use crate::protocol::command::Configure;

/// The most models that are offered: an editor shows them as one list.
const MAX_MODELS: usize = 500;

const TRUST: &str = "mode";
const MODEL: &str = "model";
const EFFORT: &str = "effort";

/// The word for the model's own way of thinking.
const DEFAULT: &str = "default";

const LEVELS: [(TrustLevel, &str, &str, &str); 3] = [
    (
        TrustLevel::Supervised,
        "supervised",
        "Supervised",
        "Asks before every call",
    ),
    (
        TrustLevel::Guided,
        "guided",
        "Guided",
        "Asks before what can change something",
    ),
    (
        TrustLevel::Autonomous,
        "autonomous",
        "Autonomous",
        "Asks only for what goes beyond the scope",
    ),
];

const EFFORTS: [(Effort, &str, &str); 3] = [
    (Effort::Low, "low", "Low"),
    (Effort::Medium, "medium", "Medium"),
    (Effort::High, "high", "High"),
];

/// What a slash command chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Model,
    Trust,
}

/// What is in force in a session, and what there is to choose from.
#[derive(Debug)]
pub(super) struct Options {
    pub in_force: Configured,
    pub models: Vec<Model>,
    pub effort: Option<Effort>,
    /// Which of them the operator locked.
    pub locked: Locked,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Locked {
    pub trust: bool,
    pub model: bool,
}

/// What a choice comes to.
#[derive(Debug, PartialEq)]
pub(super) enum Choice {
    Configure(Box<Configure>),
    Effort(Option<Effort>),
}

impl Options {
    /// Returns the trust levels as the protocol's modes.
    pub(super) fn modes(&self) -> Value {
        let modes = LEVELS.iter().map(|(_, id, name, description)| {
            json!({"id": id, "name": name, "description": description})
        });
        json!({"currentModeId": self.mode(), "availableModes": modes.collect::<Vec<_>>()})
    }

    pub(super) fn mode(&self) -> &'static str {
        let trust = self.in_force.trust_level;
        let level = LEVELS.iter().find(|(level, ..)| *level == trust);
        level.map_or("guided", |(_, id, ..)| id)
    }

    /// Returns all options, those that the operator locked left out.
    pub(super) fn config(&self) -> Value {
        let mut options = Vec::new();
        if !self.locked.trust {
            let levels = LEVELS.iter().map(|(_, id, name, description)| {
                json!({"value": id, "name": name, "description": description})
            });
            options.push(select(
                TRUST,
                "Trust",
                "mode",
                self.mode(),
                &levels.collect::<Vec<_>>(),
            ));
        }
        if !self.locked.model {
            let current = value_of(&self.in_force.provider, &self.in_force.model);
            options.push(select(
                MODEL,
                "Model",
                "model",
                &current,
                &self.choices(&current),
            ));
        }
        let efforts = EFFORTS
            .iter()
            .map(|(_, id, name)| json!({"value": id, "name": name}));
        let all = std::iter::once(json!({"value": DEFAULT, "name": "Default"})).chain(efforts);
        let current = EFFORTS
            .iter()
            .find(|(effort, ..)| Some(*effort) == self.effort);
        let current = current.map_or(DEFAULT, |(_, id, _)| id);
        options.push(select(
            EFFORT,
            "Thinking",
            "thought_level",
            current,
            &all.collect::<Vec<_>>(),
        ));
        Value::Array(options)
    }

    pub(super) fn model(&self) -> String {
        match self.in_force.model.as_str() {
            "" => self.in_force.provider.clone(),
            model => value_of(&self.in_force.provider, model),
        }
    }

    /// Returns what the user is told of a choice, in words.
    pub(super) fn told(&self, told: Told) -> String {
        let trust = self.in_force.trust_level;
        let level = LEVELS.iter().find(|(level, ..)| *level == trust);
        match (told, level) {
            (Told::Trust, Some((_, id, _, description))) => {
                let does = description.replacen("Asks", "asks", 1);
                format!("Trust is now {id}: {does}.")
            }
            (Told::Trust, None) => "Trust is changed.".to_owned(),
            (Told::Model, _) => format!("Model is now {}.", self.model()),
        }
    }

    /// Returns the models that are known, the one in force among them.
    fn choices(&self, current: &str) -> Vec<Value> {
        let known = self.models.iter().take(MAX_MODELS);
        let mut choices: Vec<Value> = known
            .map(|model| {
                json!({"value": value_of(&model.provider, &model.id), "name": model.display_name,
                    "description": model.provider})
            })
            .collect();
        if !choices.iter().any(|it| it["value"] == current) {
            let name = match self.in_force.model.as_str() {
                "" => format!("{} (its own choice)", self.in_force.provider),
                model => model.to_owned(),
            };
            choices.insert(0, json!({"value": current, "name": name}));
        }
        choices
    }

    /// Reads a trust level.
    pub(super) fn trust(&self, mode: &str) -> Result<Choice, RpcError> {
        let level = LEVELS.iter().find(|(_, id, ..)| *id == mode);
        let (level, ..) = level.ok_or_else(|| {
            RpcError::invalid_params(format!(
                "there is no mode {mode:?}; there are supervised, guided and autonomous"
            ))
        })?;
        Ok(Choice::Configure(Box::new(Configure {
            trust_level: Some(*level),
            ..Configure::default()
        })))
    }

    /// Reads a choice of an option.
    pub(super) fn choose(&self, option: &str, value: &Value) -> Result<Choice, RpcError> {
        let value = value
            .as_str()
            .ok_or_else(|| RpcError::invalid_params("`value` must be a string"))?;
        match option {
            TRUST => self.trust(value),
            MODEL => Ok(Choice::Configure(Box::new(model(value)))),
            EFFORT if value == DEFAULT => Ok(Choice::Effort(None)),
            EFFORT => {
                let effort = EFFORTS.iter().find(|(_, id, _)| *id == value);
                let (effort, ..) = effort.ok_or_else(|| {
                    RpcError::invalid_params(format!(
                        "there is no thinking {value:?}; there are default, low, medium and high"
                    ))
                })?;
                Ok(Choice::Effort(Some(*effort)))
            }
            _ => Err(RpcError::invalid_params(format!(
                "there is no option {option:?}; there are {TRUST}, {MODEL} and {EFFORT}"
            ))),
        }
    }

    /// Returns what a send says of thinking.
    pub(super) fn thinking(&self) -> Option<Thinking> {
        self.effort.map(|effort| Thinking {
            enabled: true,
            budget_tokens: None,
            effort: Some(effort),
        })
    }
}

/// Returns what a session is configured with for a model: `provider/model`, or the model of the provider in force.
pub(super) fn model(value: &str) -> Configure {
    match value.split_once('/') {
        Some((provider, model)) => Configure {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            ..Configure::default()
        },
        None => Configure {
            model: Some(value.to_owned()),
            ..Configure::default()
        },
    }
}

fn value_of(provider: &str, model: &str) -> String {
    format!("{provider}/{model}")
}

fn select(id: &str, name: &str, category: &str, current: &str, options: &[Value]) -> Value {
    json!({"id": id, "name": name, "category": category, "type": "select", "currentValue": current,
        "options": options})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        let in_force = json!({"trustLevel": "guided", "provider": "p", "model": "org/m", "workflow": "", "layers": []});
        Options {
            in_force: serde_json::from_value(in_force).unwrap(),
            models: Vec::new(),
            effort: None,
            locked: Locked::default(),
        }
    }

    #[test]
    fn what_is_chosen_is_among_what_there_is() {
        let mut options = options();
        options.effort = Some(Effort::High);
        for option in options.config().as_array().unwrap() {
            let choices = option["options"].as_array().unwrap();
            let current = &option["currentValue"];
            assert!(choices.iter().any(|it| it["value"] == *current), "{option}");
            let chosen = options.choose(option["id"].as_str().unwrap(), current);
            assert!(chosen.is_ok(), "{option}");
        }
        assert_eq!(options.modes()["currentModeId"], "guided");
        options.locked = Locked {
            trust: true,
            model: true,
        };
        assert_eq!(options.config().as_array().unwrap().len(), 1);
    }

    #[test]
    fn a_choice_is_read_or_refused() {
        let options = options();
        let model = options.choose(MODEL, &json!("q/org/n")).unwrap();
        let expected = Configure {
            provider: Some("q".to_owned()),
            model: Some("org/n".to_owned()),
            ..Configure::default()
        };
        assert_eq!(model, Choice::Configure(Box::new(expected)));
        assert_eq!(
            options.choose(EFFORT, &json!(DEFAULT)),
            Ok(Choice::Effort(None))
        );
        for (option, value) in [
            (TRUST, json!("x")),
            (EFFORT, json!("x")),
            ("x", json!("x")),
            (TRUST, json!(1)),
        ] {
            assert!(options.choose(option, &value).is_err(), "{option} {value}");
        }
    }
}
