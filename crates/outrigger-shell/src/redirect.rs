//! Reads redirections and the starts of here-documents.

use std::cell::OnceCell;
use std::rc::Rc;

use super::grammar::Read;
use super::reader::{Pending, Reader, Unreadable};
use super::script::{Redirect, Token};

impl Reader {
    /// Reads one redirection, if one comes next.
    pub(super) fn redirect(&mut self) -> Read<Option<Redirect>> {
        let from = self.position();
        let mut descriptor = String::new();
        while let Some(digit) = self.peek().filter(char::is_ascii_digit) {
            self.next();
            descriptor.push(digit);
        }
        match (self.peek(), self.peek_second()) {
            (Some('<' | '>'), Some('(')) | (None, _) => {}
            (Some('&'), Some('>')) if descriptor.is_empty() => {
                self.next();
                self.next();
                self.take('>');
                return self.writes(&descriptor).map(Some);
            }
            (Some('<'), _) => {
                self.next();
                return self.reads(&descriptor).map(Some);
            }
            (Some('>'), second) => {
                self.next();
                if second == Some('&') {
                    self.next();
                    return self.duplicates().map(Some);
                }
                if matches!(second, Some('>' | '|')) {
                    self.next();
                }
                return self.writes(&descriptor).map(Some);
            }
            _ => {}
        }
        self.rewind(from);
        Ok(None)
    }

    fn target(&mut self) -> Read<Token> {
        self.skip_blanks();
        self.word()?
            .ok_or(Unreadable::Syntax("a redirection without its file"))
    }

    fn writes(&mut self, descriptor: &str) -> Read<Redirect> {
        let target = self.target()?;
        let discards = target.literal().as_deref() == Some("/dev/null");
        if !discards || !matches!(descriptor, "" | "1" | "2") {
            self.note("a redirection that writes");
        }
        Ok(Redirect::Write(target))
    }

    fn duplicates(&mut self) -> Read<Redirect> {
        let target = self.target()?;
        let text = target.literal().unwrap_or_default();
        let digits = text.trim_end_matches('-');
        if !digits.chars().all(|c| c.is_ascii_digit()) || text.is_empty() {
            self.note("a redirection that writes");
            return Ok(Redirect::Write(target));
        }
        if text.ends_with('-') {
            self.note("a change of descriptors");
        }
        Ok(Redirect::Duplicate)
    }

    fn reads(&mut self, descriptor: &str) -> Read<Redirect> {
        match self.peek() {
            Some('<') => {
                self.next();
                self.here()
            }
            Some('&') => {
                self.next();
                self.note("a change of descriptors");
                Ok(Redirect::Descriptor(self.target()?))
            }
            Some('>') => {
                self.next();
                self.note("a redirection that writes");
                Ok(Redirect::Write(self.target()?))
            }
            _ => {
                let target = self.target()?;
                if target.literal().is_none() || !matches!(descriptor, "" | "0") {
                    self.note("a redirection that expands");
                }
                Ok(Redirect::Read(target))
            }
        }
    }

    /// Reads a here-string, or the start of a here-document after `<<`.
    fn here(&mut self) -> Read<Redirect> {
        if self.take('<') {
            self.note("a here-string");
            return Ok(Redirect::Text(Rc::new(OnceCell::from(self.target()?))));
        }
        let strip_tabs = self.take('-');
        let token = self.target()?;
        let quoted = token.bare().is_none();
        let delimiter = token
            .literal()
            .ok_or(Unreadable::Syntax("a here-document with a dynamic end"))?;
        let body = Rc::new(OnceCell::new());
        self.pending.push(Pending {
            delimiter,
            quoted,
            strip_tabs,
            body: Rc::clone(&body),
        });
        Ok(Redirect::Text(body))
    }
}
