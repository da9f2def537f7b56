//! Pieces of what is shown, and their colours. Pure.

/// A piece of what is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The model's answer, to standard output.
    Answer(String),
    /// Everything else.
    Aside(Style, String),
}

impl Piece {
    /// A line in a style.
    pub(crate) fn line(style: Style, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.push('\n');
        Self::Aside(style, text)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// Less important.
    Dim,
    Bold,
    /// Something failed, or would be removed.
    Red,
    /// Something worked, or would be added.
    Green,
    /// Take care.
    Yellow,
    /// What the model does.
    Cyan,
}

impl Style {
    /// Returns the text in this style; each line by itself, so that a prompt below is not coloured.
    pub(crate) fn paint(self, text: &str, colours: bool) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            _ if !colours => return text.to_owned(),
            Self::Dim => "2",
            Self::Bold => "1",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        };
        let painted = text.split('\n').map(|line| match line {
            "" => String::new(),
            line => format!("\u{1b}[{code}m{line}\u{1b}[0m"),
        });
        painted.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_end_with_their_line() {
        let cases = [
            (Style::Red, "a", true, "\u{1b}[31ma\u{1b}[0m"),
            (
                Style::Dim,
                "a\n\nb\n",
                true,
                "\u{1b}[2ma\u{1b}[0m\n\n\u{1b}[2mb\u{1b}[0m\n",
            ),
            (Style::Plain, "a\n", true, "a\n"),
            (Style::Red, "a\n", false, "a\n"),
        ];
        for (style, text, colours, expected) in cases {
            assert_eq!(style.paint(text, colours), expected);
        }
    }
}
