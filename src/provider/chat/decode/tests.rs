use super::ChatDecoder;
use crate::provider::recordings;

#[test]
fn recordings_of_chat_completions() {
    let differences =
        recordings::differences("openai-chat", || Box::new(ChatDecoder::new("p", "m")));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
