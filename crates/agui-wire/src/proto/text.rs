//! Spells a piece of an event as JSON, for what the messages of this form cannot say as a type.
//!
//! A message whose fields do not go together (a role that is not known, a member that its role does
//! not have, an outcome with another outcome's list) means what the JSON of those fields means
//! (T-32). So it is read from that JSON: the two forms then give the same value, the same findings
//! and the same error.

use agui_types::json::write_string;
use agui_types::{Json, ToJson};

/// An object that is being spelled.
pub(super) struct ObjectText(String);

impl ObjectText {
    pub(super) fn new() -> Self {
        Self("{".into())
    }

    pub(super) fn string(&mut self, name: &str, value: &str) {
        self.member(name, &quoted(value));
    }

    pub(super) fn json(&mut self, name: &str, value: &Json) {
        self.member(name, value.as_str());
    }

    pub(super) fn list<T: ToJson>(&mut self, name: &str, values: &[T]) {
        self.member(name, &list_text(values));
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn member(&mut self, name: &str, text: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(text);
    }
}

/// The text of a list.
pub(super) fn list_text<T: ToJson>(values: &[T]) -> String {
    listed(values.iter().map(ToJson::to_json))
}

fn listed(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    format!("[{}]", items.join(","))
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    write_string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}
