//! `skill`: the instructions of a skill, as the user let the model be told them, and files beside those of the user's own.

use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;

use super::typed::Typed;
use super::{Facts, Output, Prepared, Refusal, Run, Tool, Violation};
use crate::instructions::skills::{Skill, beside};
use crate::message::{DangerLevel, Metadata, SKILL, ToolCategory};

/// Reads a skill: instructions for a kind of task, which you follow when you do such a task. The user's message has the names and
/// what each is for.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Input {
    /// The name of the skill.
    name: String,
    /// Of a skill of the user's own: a file in its folder, in the place of its instructions.
    path: Option<String>,
}

/// Makes the tool of a conversation that has these skills.
pub(crate) fn skill(skills: Arc<Vec<Skill>>) -> impl Tool {
    let (category, level) = (ToolCategory::File, DangerLevel::Safe);
    let mut tool = Typed::new(SKILL, category, level, move |input: Input| {
        let name = input.name.trim();
        let found = skills.iter().find(|skill| skill.name == name);
        let Some(skill) = found.cloned() else {
            let names: Vec<&str> = skills.iter().map(|it| it.name.as_str()).collect();
            return Err(Refusal::Invalid(format!(
                "there is no skill {name:?}; there are: {}",
                names.join(", ")
            )));
        };
        let path = input.path.filter(|path| !path.trim().is_empty());
        if let Some(path) = path.as_ref().filter(|_| !skill.words.is_users) {
            return Err(Refusal::Invalid(format!(
                "the skill {name:?} is the project's: read \"{}/{path}\" with file_read",
                skill.folder
            )));
        }
        Ok(Call { skill, path })
    });
    tool.looks_at_files = false;
    tool
}

struct Call {
    skill: Skill,
    path: Option<String>,
}

impl Prepared for Call {
    fn facts(&self) -> Facts {
        Facts::new(DangerLevel::Safe, None)
    }

    fn run<'a>(self: Box<Self>, run: Run<'a>) -> BoxFuture<'a, Result<Output, Violation>> {
        Box::pin(async move {
            let Self { skill, path } = *self;
            let Some(path) = path else {
                return Ok(told(&skill));
            };
            let redactor = run.redactor.clone();
            let read = move || beside(&skill, &path, &redactor);
            let read = run
                .cancel
                .run_until_cancelled(tokio::task::spawn_blocking(read));
            Ok(match read.await {
                Some(Ok(Ok(words))) => Output::text(words.text),
                Some(Ok(Err(why))) => Output::error(why),
                Some(Err(_)) => Output::error("reading the file ended early; see the log"),
                None => Output::error("cancelled"),
            })
        })
    }
}

/// Returns the instructions, and how the rest of the skill is reached.
fn told(skill: &Skill) -> Output {
    let Skill { name, words, .. } = skill;
    let folder = words.folder();
    let is_named = std::path::Path::new(&folder).is_absolute();
    let beside = match words.is_users {
        true if is_named => {
            let commands = match skill.is_given {
                true => "commands can read that folder",
                false => {
                    "commands are given that folder only once the daemon is started again, so do not count on it in them"
                }
            };
            format!(
                "The skill `{name}`, in {folder}. Its other files are read with `path`; {commands}."
            )
        }
        true => format!("The skill `{name}`. Its other files are read with `path`."),
        false => {
            format!("The skill `{name}`, in {folder}. Its other files are read with file_read.")
        }
    };
    let allowed = match &skill.allowed_tools {
        Some(tools) => format!(
            " Its author has these tools in mind: {tools}; what runs and what is asked first is as without it."
        ),
        None => String::new(),
    };
    Output::text(format!("{beside}{allowed}\n\n{}", words.text)).with(Metadata {
        total_bytes: Some(words.bytes as u64),
        ..Metadata::default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::instructions::Words;
    use crate::tool::testing::Surroundings;

    fn a_skill(is_users: bool) -> Skill {
        Skill {
            name: "pdf".to_owned(),
            description: "d".to_owned(),
            allowed_tools: Some("Bash".to_owned()),
            folder: ".agents/skills/pdf".to_owned(),
            is_given: false,
            words: Words {
                path: ".agents/skills/pdf/SKILL.md".to_owned(),
                absolute: String::new(),
                is_users,
                sha256: String::new(),
                bytes: 4,
                text: "BODY".to_owned(),
            },
        }
    }

    fn input(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[tokio::test]
    async fn a_skill_is_read_as_it_was_shown_and_what_is_beside_it_where_it_is_the_users() {
        let tool = skill(Arc::new(vec![a_skill(false)]));
        let surroundings = Surroundings::default();
        let call = tool.prepare(&input(&json!({"name": "pdf"}))).unwrap();
        let output = call.run(surroundings.run()).await.unwrap();
        let text = format!("{:?}", output.content);
        assert!(
            text.contains("BODY") && text.contains("file_read") && text.contains("Bash"),
            "{text}"
        );
        for (wrong, why) in [
            (json!({"name": "other"}), "there are: pdf"),
            (
                json!({"name": "pdf", "path": "a.sh"}),
                ".agents/skills/pdf/a.sh",
            ),
        ] {
            let Err(Refusal::Invalid(problem)) = tool.prepare(&input(&wrong)) else {
                panic!("{wrong}");
            };
            assert!(problem.contains(why), "{problem}");
        }
        for (is_given, words) in [
            (true, "commands can read that folder."),
            (false, "only once the daemon is started again"),
        ] {
            let mut own = a_skill(true);
            (own.is_given, own.words.path) = (is_given, "/home/me/skills/pdf/SKILL.md".to_owned());
            let text = format!("{:?}", told(&own).content);
            assert!(text.contains(words), "{text}");
        }
        let own = skill(Arc::new(vec![a_skill(true)]));
        let call = own
            .prepare(&input(&json!({"name": "pdf", "path": "a.sh"})))
            .unwrap();
        assert!(call.run(surroundings.run()).await.unwrap().is_error);
    }
}
