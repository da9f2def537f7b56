//! Characters that are not seen for what they are.

pub(crate) use outrigger_shell::{is_hidden, is_invisible};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_page_has_the_same_list() {
        let list = include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/clients/console/src/visible.js"
        ));
        let (_, list) = list.split_once("const RANGES = [").unwrap();
        let (list, _) = list.split_once("];").unwrap();
        let numbers: Vec<u32> = list
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter_map(|word| u32::from_str_radix(word.strip_prefix("0x")?, 16).ok())
            .collect();
        let ranges: Vec<(u32, u32)> = numbers.chunks_exact(2).map(|it| (it[0], it[1])).collect();
        for c in '\0'..=char::MAX {
            let code = u32::from(c);
            let shown = ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&code));
            assert_eq!(shown, is_hidden(c), "U+{code:04X}");
        }
    }
}
