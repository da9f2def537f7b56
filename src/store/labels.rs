//! The user's own words for sorting sessions.

/// The most labels of a session, and the longest, in characters.
const MAX_LABELS: usize = 16;
const MAX_LABEL: usize = 64;

/// Returns labels as they are kept: sorted, each once. An error says what is wrong with them.
pub(crate) fn labels(wanted: &[String]) -> Result<Vec<String>, String> {
    let mut labels: Vec<String> = wanted.iter().map(|it| it.trim().to_owned()).collect();
    labels.sort();
    labels.dedup();
    let fits = |label: &String| {
        (1..=MAX_LABEL).contains(&label.chars().count()) && !label.chars().any(char::is_control)
    };
    match labels.len() <= MAX_LABELS && labels.iter().all(fits) {
        true => Ok(labels),
        false => Err(format!(
            "field `labels` must have at most {MAX_LABELS} labels of 1 to {MAX_LABEL} characters, without line breaks"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_sorted_each_once_and_short() {
        let kept = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|&it| it.to_owned()).collect();
            labels(&wanted).ok()
        };
        assert_eq!(kept(&[]), Some(vec![]));
        let expected = vec!["a".to_owned(), "b c".to_owned()];
        assert_eq!(kept(&["b c", " a", "a "]), Some(expected));
        let (longest, longer) = ("ü".repeat(MAX_LABEL), "ü".repeat(MAX_LABEL + 1));
        assert!(kept(&[&longest]).is_some());
        let many: Vec<String> = (0..=MAX_LABELS).map(|it| it.to_string()).collect();
        assert!(labels(&many).is_err());
        for refused in [" ", "", "a\nb", &longer] {
            assert_eq!(kept(&["fine", refused]), None, "{refused:?}");
        }
    }
}
