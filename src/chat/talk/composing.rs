//! A person at a line editor, who may type at any time: what is sent while something runs waits for its turn, and long
//! output is shown when it is asked for. Pure.

use super::{Action, Talk, Typing};
use crate::plain_text::line::{COMMANDS, Line, first_word};
use crate::plain_text::style::Style;
use crate::plain_text::text::one_line;
use crate::protocol::Command;

/// Lines that wait until what runs is over: more than a person has in mind.
const WAITING: usize = 16;

/// Lines of a message that are shown when it is sent; who pasted more knows it.
const SHOWN_LINES: usize = 20;

/// Characters that are shown of what is dropped.
const SHOWN: usize = 60;

/// What `/help` says besides, where there is a line editor.
pub(super) const OUTPUT: &str =
    "/output [N]       the whole output of the last call that was folded, or of call N";

/// And after them.
pub(super) const KEYS: &str = "\
Enter sends, Alt-Enter or Ctrl-J begins a line; what is pasted stays one message.
The arrow up brings back what was sent and begins as the line does; Tab completes commands and paths.
What is sent while something runs waits until it is done.";

/// Returns the commands that can be typed, as the help lists them.
pub(in crate::chat) fn commands() -> Vec<String> {
    let lines = [COMMANDS, super::KEYS, OUTPUT]
        .map(str::lines)
        .into_iter()
        .flatten();
    let words = lines.filter_map(|line| line.split_whitespace().next());
    let mut commands: Vec<String> = words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect();
    commands.push("/help".to_owned());
    commands.sort();
    commands
}

impl Talk {
    /// Whether something runs that a Ctrl-C stops.
    pub(in crate::chat) fn is_busy(&self) -> bool {
        self.busy.is_some()
    }

    /// Notes that a person is there, who types.
    pub(in crate::chat) fn touched(&mut self, now: jiff::Timestamp) {
        self.typed = Some(now);
    }

    /// Returns the folder that the session works in.
    pub(in crate::chat) fn folder(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Shows a line that was ended as it stood on the screen.
    pub(in crate::chat) fn echo(&mut self, line: &str) -> Vec<Action> {
        let mut shown: Vec<&str> = line.lines().take(SHOWN_LINES).collect();
        let more = line.lines().count() - shown.len();
        let rest = format!("… {more} lines more");
        if more > 0 {
            shown.push(&rest);
        }
        self.say(Style::Bold, shown.join("\n"));
        self.done()
    }

    /// Says that what was typed for a question is dropped: it lapsed, or was settled elsewhere.
    pub(in crate::chat) fn dropped(&mut self, text: &str) -> Vec<Action> {
        let text = one_line(text, SHOWN);
        self.say(
            Style::Dim,
            format!("what was typed for it is dropped, not sent: {text}"),
        );
        self.done()
    }

    /// Takes a line that was ended while something runs.
    pub(super) fn meanwhile(&mut self, line: &str) {
        if let Some(asked) = self.came_late(line) {
            return self.say_late(&asked);
        }
        if let Some(which) = self.output_of(line) {
            return self.output(which);
        }
        match Line::read(line) {
            Line::Empty => {}
            Line::Help | Line::Quit => self.message(line),
            // What runs may wait for just that.
            Line::Ask(command @ (Command::McpAuth(_) | Command::McpSignOut(_))) => {
                self.request(command);
            }
            _ if self.waiting.len() == WAITING => {
                self.say(Style::Red, format!("{WAITING} lines wait already; this one is not sent, the arrow up brings it back"));
            }
            _ => {
                self.waiting.push_back(line.to_owned());
                self.say(Style::Dim, "sent when what runs is done; Ctrl-C drops it");
            }
        }
    }

    /// Takes the lines that wait up to one that something comes of, or goes on with the prompt.
    pub(super) fn go_on_typing(&mut self) {
        while let Some(line) = self.waiting.pop_front() {
            self.say(Style::Dim, format!("now: {}", one_line(&line, SHOWN)));
            self.message(&line);
            if self.busy.is_some() || self.way.is_some() {
                return;
            }
        }
        self.prompt();
    }

    /// Drops what waits, and says so.
    pub(super) fn drop_waiting(&mut self) {
        let text = match self.waiting.len() {
            0 => return,
            1 => "the line that waited is dropped; the arrow up brings it back".to_owned(),
            count => {
                format!("the {count} lines that waited are dropped; the arrow up brings them back")
            }
        };
        self.waiting.clear();
        self.say(Style::Dim, text);
    }

    /// Returns which output a line asks for; `None` of another line, where nothing is folded, and where there is no line editor.
    pub(super) fn output_of<'a>(&self, line: &'a str) -> Option<&'a str> {
        let (word, which) = first_word(line.trim());
        (self.options.composes && word == "/output").then_some(which)
    }

    /// Shows the whole output of a call.
    pub(super) fn output(&mut self, which: &str) {
        let pieces = self.screen.unfold(which);
        self.put(pieces);
    }

    /// Whether a line may wait for what runs, which is no answer to a question.
    pub(super) fn may_wait(&self, typing: &Typing) -> bool {
        let is_busy = self.busy.is_some() || self.way.is_some();
        self.options.composes && *typing == Typing::Message && is_busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_help() {
        let commands = commands();
        for command in ["/help", "/model", "/output", "/quit", "/sessions", "/trust"] {
            assert!(
                commands.iter().any(|known| known == command),
                "{command}: {commands:?}"
            );
        }
    }
}
