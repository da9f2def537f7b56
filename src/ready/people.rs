//! The start as a person reads it on a terminal, in the place of the ready line.

use super::{Fatal, ReadyLine, print};

/// What the daemon works with, as a person would ask.
#[derive(Debug)]
pub struct Surroundings {
    /// The project's folder, or why there is none.
    pub project: Result<String, String>,
    /// How commands are confined.
    pub sandbox: String,
    /// Who answers: the instance and its model; empty for the provider's own choice.
    pub provider: (String, String),
    /// Whether that is the built-in demonstration, because no model is configured.
    pub is_demo: bool,
}

impl ReadyLine {
    /// Prints what a person needs to know.
    ///
    /// # Errors
    ///
    /// [`Fatal`] where nobody reads stdout any more.
    pub fn print_for_people(&self, surroundings: &Surroundings) -> Result<(), Fatal> {
        print(&self.text(surroundings))
            .map_err(|error| Fatal::failed(format!("stdout could not be written: {error}")))
    }

    fn text(&self, surroundings: &Surroundings) -> String {
        let project = match &surroundings.project {
            Ok(folder) => folder.clone(),
            Err(why) => format!("none ({why})"),
        };
        let provider = match &surroundings.provider {
            _ if surroundings.is_demo => {
                "scripted, which plays a demonstration; set ANTHROPIC_API_KEY, OPENAI_API_KEY or another key for a model"
                    .to_owned()
            }
            (id, model) if model.is_empty() => id.clone(),
            (id, model) => format!("{id}, {model}"),
        };
        let socket = match &self.token {
            Some(token) => format!("{}?token={token}", self.url),
            None => format!("{} with your token", self.url),
        };
        let mut rows = vec![("socket", socket)];
        if let Some(page) = &self.console {
            rows.insert(0, ("page", page.clone()));
        }
        rows.extend([
            ("project", project),
            ("sandbox", surroundings.sandbox.clone()),
            ("provider", provider),
        ]);
        let rows = rows
            .iter()
            .map(|(name, value)| format!("  {name:<9} {value}\n"));
        format!(
            "Outrigger {} is ready.\n\n{}\nCtrl-C ends it. --ready json prints the line for programs.\n",
            self.version,
            rows.collect::<String>()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_where_it_is_and_what_it_works_with() {
        let address = "127.0.0.1:4517".parse().unwrap();
        let surroundings = Surroundings {
            project: Ok("/src/app".to_owned()),
            sandbox: "full".to_owned(),
            provider: ("claude".to_owned(), "claude-opus-5-5".to_owned()),
            is_demo: false,
        };
        let line = ReadyLine::new(address, Some("t0".to_owned()), true);
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            line.text(&surroundings),
            format!(
                "Outrigger {version} is ready.\n\n  \
                 page      http://127.0.0.1:4517/#token=t0\n  \
                 socket    ws://127.0.0.1:4517/ws?token=t0\n  \
                 project   /src/app\n  \
                 sandbox   full\n  \
                 provider  claude, claude-opus-5-5\n\n\
                 Ctrl-C ends it. --ready json prints the line for programs.\n"
            )
        );
        let line = ReadyLine::new(address, None, false);
        let none = Surroundings {
            project: Err("/etc is no project".to_owned()),
            provider: ("scripted".to_owned(), String::new()),
            is_demo: true,
            ..surroundings
        };
        let text = line.text(&none);
        assert!(
            text.contains("project   none (/etc is no project)"),
            "{text}"
        );
        assert!(
            text.contains("with your token") && !text.contains("page"),
            "{text}"
        );
        assert!(text.contains("provider  scripted, which"), "{text}");
    }
}
