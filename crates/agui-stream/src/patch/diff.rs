//! Finding the patch that leads from one value to another.

use agui_types::json::Value;
use agui_types::{JsonPatch, JsonPointer, PatchOp, PatchOperation};
use indexmap::IndexMap;

use super::extent;

/// A patch that turns `from` into `to`: applied to `from`, it gives a value equal to `to` (P-49).
///
/// Small rather than minimal. Objects are compared member by member, without regard to their order.
/// Arrays are compared at their beginning and their end; what differs in between is compared place
/// by place. Where that takes more room than the value itself, the value is replaced as a whole.
/// Numbers of equal value are equal, however they are written.
///
/// What serialises is compared by [`Value::encode`]:
///
/// ```
/// use agui_stream::patch;
/// use agui_types::{ToJson, json::Value};
///
/// let (before, after) = (("look", [1, 2]), ("look", [1, 3]));
/// let patch = patch::diff(&Value::encode(&before)?, &Value::encode(&after)?);
/// assert_eq!(patch.to_json(), r#"[{"op":"replace","path":"/1/1","value":3}]"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[must_use]
pub fn diff(from: &Value, to: &Value) -> JsonPatch {
    let mut difference = Difference { path: Vec::new(), operations: Vec::new(), size: 0 };
    difference.values(from, to);
    difference.operations.into()
}

struct Difference<'v> {
    /// Where the values at hand are.
    path: Vec<Step<'v>>,
    operations: Vec<PatchOperation>,
    /// About how long the operations are as text.
    size: usize,
}

#[derive(Clone, Copy)]
enum Step<'v> {
    Member(&'v str),
    Element(usize),
    /// Behind the last element.
    End,
}

impl<'v> Difference<'v> {
    fn values(&mut self, from: &'v Value, to: &'v Value) {
        let (count, size) = (self.operations.len(), self.size);
        match (from, to) {
            (Value::Object(old), Value::Object(new)) => self.members(old, new),
            (Value::Array(old), Value::Array(new)) => self.elements(old, new),
            _ if from == to => {}
            _ => self.replace(to),
        }
        // One operation further in is always shorter than a value with all that is in it.
        let several = self.operations.len() > count + 1;
        if several && extent::fits(to, (self.size - size).saturating_sub(self.overhead())) {
            self.operations.truncate(count);
            self.size = size;
            self.replace(to);
        }
    }

    fn members(&mut self, old: &'v IndexMap<String, Value>, new: &'v IndexMap<String, Value>) {
        for (name, value) in old {
            self.path.push(Step::Member(name));
            match new.get(name) {
                Some(next) => self.values(value, next),
                None => self.remove(),
            }
            self.path.pop();
        }
        for (name, value) in new {
            if !old.contains_key(name) {
                self.path.push(Step::Member(name));
                self.add(value);
                self.path.pop();
            }
        }
    }

    fn elements(&mut self, old: &'v [Value], new: &'v [Value]) {
        let start = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[start..], &new[start..]);
        let end = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new);
        let end = end.count();
        let (old, new) = (&old[..old.len() - end], &new[..new.len() - end]);
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            self.path.push(Step::Element(start + at));
            self.values(old, new);
            self.path.pop();
        }
        // The last one first, so that the others keep their places.
        for at in (new.len()..old.len()).rev() {
            self.path.push(Step::Element(start + at));
            self.remove();
            self.path.pop();
        }
        for (at, value) in new.iter().enumerate().skip(old.len()) {
            self.path.push(if end == 0 { Step::End } else { Step::Element(start + at) });
            self.add(value);
            self.path.pop();
        }
    }

    fn add(&mut self, value: &Value) {
        let (path, value) = (self.pointer(), value.to_json());
        self.push(PatchOp::Add { path, value });
    }

    fn replace(&mut self, value: &Value) {
        let (path, value) = (self.pointer(), value.to_json());
        self.push(PatchOp::Replace { path, value });
    }

    fn remove(&mut self) {
        let path = self.pointer();
        self.push(PatchOp::Remove { path });
    }

    fn push(&mut self, op: PatchOp) {
        self.size += self.overhead() + op.value().map_or(0, |value| value.as_str().len());
        self.operations.push(op.into());
    }

    /// About how long an operation here is without its value.
    fn overhead(&self) -> usize {
        const FRAME: usize = r#"{"op":"replace","path":"","value":},"#.len();
        let steps = self.path.iter().map(|step| match step {
            Step::Member(name) => name.len() + 1,
            Step::Element(_) | Step::End => 2,
        });
        FRAME + steps.sum::<usize>()
    }

    fn pointer(&self) -> JsonPointer {
        self.path.iter().fold(JsonPointer::default(), |pointer, step| match step {
            Step::Member(name) => pointer.join(name),
            Step::Element(at) => pointer.join(&at.to_string()),
            Step::End => pointer.join("-"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_types::ToJson;

    fn patch(from: &str, to: &str) -> String {
        diff(&Value::parse(from).unwrap(), &Value::parse(to).unwrap()).to_json()
    }

    #[test]
    fn equal_values_need_no_operation() {
        assert_eq!(patch(r#"{"a":1,"b":[1.0]}"#, r#"{"b":[1],"a":1e0}"#), "[]");
    }

    #[test]
    fn a_change_far_inside_is_one_operation() {
        let from = r#"{"plan":{"steps":[{"name":"look","done":false},{"name":"leap"}]},"n":1}"#;
        let to = r#"{"plan":{"steps":[{"name":"look","done":true},{"name":"leap"}]},"n":1}"#;
        let expected = r#"[{"op":"replace","path":"/plan/steps/0/done","value":true}]"#;
        assert_eq!(patch(from, to), expected);
    }

    #[test]
    fn names_are_escaped() {
        let expected = r#"[{"op":"remove","path":"/a~1b~0c"}]"#;
        assert_eq!(patch(r#"{"a/b~c":1,"d":"a longer one"}"#, r#"{"d":"a longer one"}"#), expected);
    }

    #[test]
    fn an_element_comes_or_goes_where_it_is() {
        let long = r#""one of the elements","another of the elements""#;
        for (from, to, expected) in [
            (format!("[{long},1,2]"), format!("[{long},2]"), r#"[{"op":"remove","path":"/2"}]"#),
            (
                format!("[1,{long}]"),
                format!("[0,1,{long}]"),
                r#"[{"op":"add","path":"/0","value":0}]"#,
            ),
            (format!("[{long}]"), format!("[{long},1]"), r#"[{"op":"add","path":"/-","value":1}]"#),
            (
                format!("[{long},1,2,3,{long}]"),
                format!("[{long},4,{long}]"),
                r#"[{"op":"replace","path":"/2","value":4},{"op":"remove","path":"/4"},{"op":"remove","path":"/3"}]"#,
            ),
        ] {
            assert_eq!(patch(&from, &to), expected);
        }
    }

    #[test]
    fn a_value_that_differs_throughout_is_replaced() {
        let expected = r#"[{"op":"replace","path":"/p","value":{"x":3,"y":4}}]"#;
        let rest = r#""rest":"of the document, which stays as it is""#;
        let from = format!(r#"{{"p":{{"x":1,"y":2}},{rest}}}"#);
        let to = format!(r#"{{"p":{{"x":3,"y":4}},{rest}}}"#);
        assert_eq!(patch(&from, &to), expected);
        assert_eq!(patch("[1,2]", "{}"), r#"[{"op":"replace","path":"","value":{}}]"#);
        assert_eq!(patch("null", "0"), r#"[{"op":"replace","path":"","value":0}]"#);
    }
}
