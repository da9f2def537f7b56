use super::ResponsesDecoder;
use crate::provider::recordings;

#[test]
fn recordings_of_responses() {
    let differences = recordings::differences("openai-responses", || {
        Box::new(ResponsesDecoder::new("p", "m"))
    });
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
