//! Rules of the configuration that decide how an exchange ends.

use super::Machine;
use super::finding::{Finding, State};
use crate::message::OnViolation;

/// What becomes of an exchange in which a path leaves the project or is denied.
pub(super) fn violations(machine: &Machine) -> Vec<Finding> {
    let config = &machine.loaded.config;
    let mut text = format!(
        "a path outside of the project or denied {} (tools.on_violation)",
        says(config.tools.on_violation)
    );
    for (name, workflow) in &config.workflows {
        if let Some(own) = workflow.on_violation
            && own != config.tools.on_violation
        {
            text.push_str(&format!("; in the workflow {name:?} it {}", says(own)));
        }
    }
    vec![Finding::new("violations", State::Ok, text)]
}

fn says(on_violation: OnViolation) -> &'static str {
    match on_violation {
        OnViolation::Stop => "stops the exchange",
        OnViolation::Error => {
            "is an error that the model reads, and the third one stops the exchange"
        }
    }
}
