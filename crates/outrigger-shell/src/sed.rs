//! Scripts of `sed`: the shell text they run and the files they write.

use std::iter::Peekable;
use std::str::Chars;

use super::expand::Arg;
use super::flow::Feed;
use super::scope::Scope;
use super::walk::Walk;

impl Walk<'_> {
    /// Judges what a script of `sed` runs and writes.
    pub(super) fn sed_script(&mut self, script: &str, scope: &Scope) {
        for effect in effects(script) {
            match effect {
                Effect::Runs(text) => self.text(&text, &mut scope.clone(), &Feed::default()),
                Effect::Writes(file) => self.written(&Arg::literal(file), script, scope),
            }
        }
    }
}

/// What a command of `sed` does beyond editing text.
#[derive(Debug, PartialEq, Eq)]
enum Effect {
    /// `e`, and `s` with that flag.
    Runs(String),
    /// `w`, `W`, and `s` with the flag `w`.
    Writes(String),
}

/// Returns every effect of the script.
fn effects(script: &str) -> Vec<Effect> {
    let mut chars = script.chars().peekable();
    let mut effects = Vec::new();
    while chars.peek().is_some() {
        skip_address(&mut chars);
        match chars.next() {
            Some('s') => substitution(&mut chars, &mut effects),
            Some('y') => {
                let delimiter = chars.next();
                part(&mut chars, delimiter);
                part(&mut chars, delimiter);
            }
            Some('e') => effects.push(Effect::Runs(line(&mut chars))),
            Some('w' | 'W') => effects.push(Effect::Writes(line(&mut chars))),
            Some('r' | 'R' | '#') => drop(line(&mut chars)),
            Some('a' | 'i' | 'c') => text(&mut chars),
            Some('b' | 't' | 'T' | ':' | 'q' | 'Q' | 'l' | 'L') => {
                while chars.next_if(|c| !matches!(c, ';' | '\n' | '}')).is_some() {}
            }
            _ => {}
        }
    }
    effects
}

/// Steps over separators, one or two addresses and `!`.
fn skip_address(chars: &mut Peekable<Chars<'_>>) {
    loop {
        let between = |c: &char| c.is_whitespace() || c.is_ascii_digit() || ";{},$!~+".contains(*c);
        while chars.next_if(between).is_some() {}
        let delimiter = match chars.peek() {
            Some('/') => chars.next(),
            Some('\\') => {
                chars.next();
                chars.next()
            }
            _ => return,
        };
        part(chars, delimiter);
        while chars.next_if(|c| matches!(c, 'I' | 'M')).is_some() {}
    }
}

/// Takes the text up to the delimiter, without the backslashes before it.
fn part(chars: &mut Peekable<Chars<'_>>, delimiter: Option<char>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next().filter(|c| Some(*c) != delimiter) {
        if c == '\\' && chars.peek().copied() != delimiter {
            text.push(c);
        }
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

/// Takes an expression, its replacement and the flags behind them.
fn substitution(chars: &mut Peekable<Chars<'_>>, effects: &mut Vec<Effect>) {
    let delimiter = chars.next();
    part(chars, delimiter);
    let replacement = part(chars, delimiter);
    while let Some(flag) = chars.next_if(|c| !matches!(c, ';' | '\n' | '}')) {
        match flag {
            'e' => effects.push(Effect::Runs(replacement.clone())),
            'w' => effects.push(Effect::Writes(line(chars))),
            _ => {}
        }
    }
}

/// Takes the rest of the line.
fn line(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut line = String::new();
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        line.push(c);
    }
    line.trim().to_owned()
}

/// Steps over the text of `a`, `i` and `c`, which goes on behind a backslash at the end of a line.
fn text(chars: &mut Peekable<Chars<'_>>) {
    let mut before = ' ';
    while let Some(c) = chars.next_if(|c| *c != '\n' || before == '\\') {
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_of_scripts() {
        let runs = |text: &str| Effect::Runs(text.to_owned());
        let writes = |file: &str| Effect::Writes(file.to_owned());
        for (script, wanted) in [
            ("s/a/b/g", vec![]),
            ("1r/etc/passwd", vec![]),
            ("/we/d;y/ew/we/", vec![]),
            ("a\\\nw x\ni e id", vec![]),
            ("b end; :end", vec![]),
            ("1e id", vec![runs("id")]),
            ("$!{e id\n}", vec![runs("id")]),
            ("1,+2w out", vec![writes("out")]),
            ("\\#a#I,/b/W out", vec![writes("out")]),
            ("s/a/b/w /etc/x", vec![writes("/etc/x")]),
            ("s|a|rm \\| x|2e;p", vec![runs("rm | x")]),
            ("s/a/\\/bin\\/id/e", vec![runs("/bin/id")]),
            ("/x/s,a,b,gw out\nd;e id", vec![writes("out"), runs("id")]),
        ] {
            assert_eq!(effects(script), wanted, "{script}");
        }
    }
}
