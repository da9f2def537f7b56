use super::*;
use crate::provider::testing::{documents, documents_as_text};

fn content(case: &Case) -> (Value, Vec<String>) {
    let prepared = case.prepare();
    let codes = prepared.notices.into_iter().map(|notice| notice.code);
    (
        prepared.body.whole()["messages"][0]["content"].clone(),
        codes.collect(),
    )
}

#[test]
fn documents_are_blocks_for_models_that_take_them() {
    let case = Case::new(vec![documents()]);
    assert!(case.prepare().has_documents);
    let (content, codes) = content(&case);
    let pdf = |name: &str, data: &str| {
        json!({"type": "document", "title": name,
            "source": {"type": "base64", "media_type": "application/pdf", "data": data}})
    };
    let expected = json!([
        pdf("a.pdf", "JVBERi0x"),
        pdf("scan.pdf", "JVBERi0y"),
        {"type": "document", "title": "b.csv",
            "source": {"type": "text", "media_type": "text/plain", "data": "x,y"}},
        {"type": "text", "text": "Compare them.", "cache_control": {"type": "ephemeral"}},
    ]);
    assert_eq!((content, codes), (expected, Vec::new()));
}

#[test]
fn documents_are_text_for_other_models_and_after_a_refusal() {
    let no_documents = Amends {
        no_documents: true,
        ..Amends::default()
    };
    for (model, amends) in [
        (MODEL, no_documents),
        ("claude-3-haiku", Amends::default()),
        ("glm-5", Amends::default()),
    ] {
        let case = Case {
            model,
            amends,
            ..Case::new(vec![documents()])
        };
        assert!(!case.prepare().has_documents);
        let (content, codes) = content(&case);
        let texts = content.as_array().unwrap().iter();
        let texts: Vec<_> = texts.map(|block| block["text"].as_str().unwrap()).collect();
        assert_eq!(texts, documents_as_text(), "{model}");
        assert_eq!(codes, ["documents_left_out"]);
    }
}
