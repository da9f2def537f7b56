use super::*;
use crate::protocol::schema::schema;

/// Every `$ref` in a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(target) if name == "$ref" => found.push(target.clone()),
                    field => references(field, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = asyncapi(&schema());
    let mut found = Vec::new();
    references(&document, &mut found);
    assert!(found.len() > 200, "{}", found.len());
    for target in found {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
}

#[test]
fn requests_have_their_answers_and_events_stand_alone() {
    let document = asyncapi(&schema());
    let send = &document["operations"]["chat.send"];
    assert_eq!(send["action"], "receive");
    assert_eq!(
        send["reply"]["messages"],
        json!([message("chat:send-result"), message(ERROR)])
    );
    let delta = &document["operations"]["chat.text-delta"];
    assert_eq!(delta["action"], "send");
    assert_eq!(delta.get("reply"), None);
    assert_eq!(document["operations"].get("chat.send-result"), None);
    // A resume is answered by `session:ready`, which is an event.
    assert_eq!(
        document["operations"]["session.resume"]["reply"]["messages"],
        json!([message(ERROR)])
    );
    let message = &document["components"]["messages"]["chat.text-delta"];
    assert_eq!(message["name"], "chat:text-delta");
    assert_eq!(
        message["payload"]["properties"]["type"]["const"],
        "chat:text-delta"
    );
}

#[test]
fn what_is_checked_in_is_current() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/asyncapi.json");
    let text = format!("{:#}\n", asyncapi(&schema()));
    if std::env::var_os("OUTRIGGER_UPDATE").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&path).unwrap_or_default() == text,
        "{} is out of date; run with OUTRIGGER_UPDATE=1",
        path.display()
    );
}
