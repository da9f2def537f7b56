//! What the requests of several wire formats share: tools, settings, and the conversation on its way to a model.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::quirks::Quirks;
use super::{Request, ToolChoice};
use crate::message::{Document, Part, Reply, ToolId, ToolSpec};

/// What stands for an image that the model cannot see.
pub(super) const IMAGE_OMITTED: &str = "[image omitted: the model does not see images]";

/// The name of the list of tools, in all wire formats.
const TOOLS: &str = "tools";

/// The body of a request. Its tools are texts, which are the same from request to request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// All fields; where there are tools, with an empty list in their place.
    pub(super) fields: Value,
    pub(super) tools: Vec<Arc<RawValue>>,
}

impl Body {
    /// Returns a body of these fields, but for those that are null. `tools` stands where the field of this name does.
    pub(super) fn new(mut fields: Value, tools: Vec<Arc<RawValue>>) -> Self {
        if !tools.is_empty() {
            set(&mut fields, TOOLS, json!([]));
        }
        Self {
            fields: without_nulls(fields),
            tools,
        }
    }

    /// Returns it as one value.
    #[cfg(test)]
    pub(super) fn whole(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields.as_object().into_iter().flatten() {
            match name.as_str() {
                TOOLS if !self.tools.is_empty() => map.serialize_entry(TOOLS, &self.tools)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// Writes a value down.
pub(super) fn raw(value: &Value) -> Arc<RawValue> {
    // Nothing in a value cannot be written.
    to_raw_value(value).unwrap_or_default().into()
}

/// The tools that go with a request; none where none do.
///
/// A server that passes over `tool_choice` can only be kept from calls by showing it no tools.
pub(super) fn offered_tools(
    request: &Request<'_>,
    quirks: &Quirks,
    tool: impl FnMut(&ToolSpec) -> Arc<RawValue>,
) -> Vec<Arc<RawValue>> {
    let may_call = request.tool_choice == ToolChoice::Auto || quirks.tool_choice;
    match quirks.tools && may_call {
        true => request.tools.iter().map(tool).collect(),
        false => Vec::new(),
    }
}

pub(super) fn temperature(request: &Request<'_>, quirks: &Quirks) -> Option<f64> {
    let thinks = request.thinking.is_none_or(|thinking| thinking.enabled);
    request
        .temperature
        .filter(|_| quirks.temperature || !thinks)
}

pub(super) fn cache_key<'a>(request: &Request<'a>, quirks: &Quirks) -> Option<&'a str> {
    (quirks.prompt_cache_key && !request.cache_key.is_empty()).then_some(request.cache_key)
}

/// Returns the items of a reply that the same provider instance and model made in the same format.
pub(super) fn own_items<'a>(
    reply: &'a Reply,
    wire: &str,
    provider: &str,
    request: &Request<'_>,
) -> Option<&'a Vec<Value>> {
    let native = reply.native.as_ref()?;
    let is_own =
        native.wire == wire && native.provider == provider && native.model == request.model;
    native.items.as_array().filter(|_| is_own)
}

/// The ids of calls that a request has so far: a client's own history may have an id of ours twice.
///
/// A function of the calls before alone, so that a history keeps its ids from request to request.
#[derive(Debug, Default)]
pub(super) struct CallIds(BTreeSet<String>);

impl CallIds {
    pub(super) fn take(&mut self, id: &str) {
        self.0.insert(id.to_owned());
    }

    /// Returns the provider's own id where no earlier call has it, else one made from the daemon's; `fit`
    /// brings them into the wire's form.
    pub(super) fn assign(
        &mut self,
        own: Option<&str>,
        id: &ToolId,
        fit: impl Fn(&str) -> String,
    ) -> String {
        let own = own.filter(|own| !own.is_empty()).map(&fit);
        let base = format!("call_{id}");
        let copies = (2_u64..).map(|copy| fit(&format!("{base}_{copy}")));
        let id = own
            .into_iter()
            .chain([fit(&base)])
            .chain(copies)
            .find(|id| !self.0.contains(id))
            .unwrap_or(base);
        self.take(&id);
        id
    }
}

/// Writes a document as its wire has them; `None` where that sort is sent as text.
pub(super) type WriteDocument = fn(&Document) -> Option<Value>;

/// Returns a document as text, for models that do not take it as it is.
pub(super) fn document_text(document: &Document) -> String {
    let text = document.as_text();
    match text.is_empty() {
        true => format!(
            "[{} omitted: no text could be read of it, and the model takes no PDF files]",
            document.label()
        ),
        false => text,
    }
}

/// Writes parts; blank text, which servers refuse, is left out. `omitted` stands for each image, where they are not
/// shown; `document` is absent where the wire, or the model, takes none.
pub(super) fn parts(
    parts: &[Part],
    omitted: Option<&str>,
    text: fn(&str) -> Value,
    image: fn(&str, &str) -> Value,
    document: Option<WriteDocument>,
) -> Vec<Value> {
    let parts = parts.iter().filter_map(|part| match part {
        Part::Text { text: blank } if blank.trim().is_empty() => None,
        Part::Text { text: words } => Some(text(words)),
        Part::Image { media_type, data } => {
            Some(omitted.map_or_else(|| image(media_type, data), text))
        }
        Part::Document(it) => {
            let written = document.and_then(|write| write(it));
            Some(written.unwrap_or_else(|| text(&document_text(it))))
        }
    });
    parts.collect()
}

/// Sorts parts into texts, documents among them, and images (media type, base64); of images that the model does not see
/// there is a word.
pub(super) fn split(parts: &[Part], sees_images: bool) -> (Vec<Cow<'_, str>>, Vec<(&str, &str)>) {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text { text } => texts.push(Cow::from(text)),
            Part::Image { .. } if !sees_images => texts.push(Cow::from(IMAGE_OMITTED)),
            Part::Image { media_type, data } => images.push((media_type.as_str(), data.as_str())),
            Part::Document(document) => texts.push(Cow::from(document_text(document))),
        }
    }
    (texts, images)
}

/// The text of a tool result, for formats that have no flag for errors: the text says it.
pub(super) fn result_text(texts: &[Cow<'_, str>], is_error: bool, has_images: bool) -> String {
    let joined = texts.join("\n");
    let text = match (joined.trim().is_empty(), has_images) {
        (false, _) => joined,
        (true, true) => "(an image)".to_owned(),
        (true, false) => "(no output)".to_owned(),
    };
    if is_error {
        format!("Error: {text}")
    } else {
        text
    }
}

/// Sets a field of an object; unlike `json!` it takes a large value over and does not copy it.
pub(super) fn set(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value);
    }
}

pub(super) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_of_a_request_has_its_own_id() {
        let mut ids = CallIds::default();
        for (id, own, expected) in [
            ("t1", Some("a"), "a"),
            ("t2", Some("a"), "call_t2"),
            ("t3", None, "call_t3"),
            ("t3", None, "call_t3_2"),
            ("t4", Some(""), "call_t4"),
        ] {
            assert_eq!(ids.assign(own, &ToolId::new(id), str::to_owned), expected);
        }
    }
}
