//! Words in which `{name}` stands for an input of a tool. Pure.

/// A piece of a word of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'t> {
    /// The operator's own text.
    Text(&'t str),
    /// The input of this name.
    Input(&'t str),
}

/// Returns the variable that an input is passed as: `INPUT_` and its name in capitals.
pub fn variable(input: &str) -> String {
    format!("INPUT_{}", input.to_ascii_uppercase().replace('-', "_"))
}

/// Takes a word apart: `--file={path}`. A brace that names nothing is text.
pub fn pieces(template: &str) -> Vec<Piece<'_>> {
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
    };
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        match after.split_once('}').filter(|(name, _)| is_name(name)) {
            Some((name, behind)) => {
                pieces.push(Piece::Text(before));
                pieces.push(Piece::Input(name));
                rest = behind;
            }
            None => {
                let end = template.len() - after.len();
                let start = template.len() - rest.len();
                pieces.push(Piece::Text(template.get(start..end).unwrap_or_default()));
                rest = after;
            }
        }
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_template_are_taken_apart() {
        use Piece::{Input, Text};
        for (word, expected) in [
            ("{path}", vec![Input("path")]),
            ("--file={path}", vec![Text("--file="), Input("path")]),
            ("{a}:{b}", vec![Input("a"), Text(":"), Input("b")]),
            ("plain", vec![Text("plain")]),
            ("{}", vec![Text("{"), Text("}")]),
            ("{not a name}", vec![Text("{"), Text("not a name}")]),
            (
                "awk {print}x{",
                vec![Text("awk "), Input("print"), Text("x{")],
            ),
            ("", vec![]),
        ] {
            assert_eq!(pieces(word), expected, "{word}");
        }
    }
}
