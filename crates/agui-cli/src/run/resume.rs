//! Answers to the questions of an earlier run: `--resume ID=JSON`.

use std::collections::HashSet;

use agui_types::json::Value;
use agui_types::{Interrupt, Json};

use crate::failure::Failure;

/// A resume entry, from `ID=JSON`, `ID=@FILE` or `ID`; without a value it is cancelled.
///
/// An id may hold `=` itself: where one of the open interrupts has a beginning of `argument` as its
/// id, that is the id, else what stands before the first `=`.
///
/// Fails where the value is not JSON, which `value_of` reads.
pub(super) fn entry(
    argument: &str,
    open: &[Interrupt],
    value_of: impl FnOnce(&str) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let ids: HashSet<&str> = open.iter().map(|interrupt| interrupt.id.as_str()).collect();
    let (id, value) = if ids.contains(argument) {
        (argument, None)
    } else {
        let ends = || argument.match_indices('=').map(|(at, _)| at);
        let end = ends().find(|at| ids.contains(&argument[..*at])).or_else(|| ends().next());
        end.map_or((argument, None), |at| (&argument[..at], Some(&argument[at + 1..])))
    };
    if id.is_empty() {
        return Err(Failure::usage("a --resume names no interrupt")
            .hint("give the id of the interrupt and the answer: --resume 'ID=true'"));
    }
    let text = |text: &str| Value::String(text.into());
    let mut entry = vec![("interruptId".into(), text(id))];
    match value {
        None => entry.push(("status".into(), text("cancelled"))),
        Some(value) => {
            entry.push(("status".into(), text("resolved")));
            // An answer without a value is one as well; JSON has no empty text.
            if !value.is_empty() {
                match value_of(value)? {
                    // P-17
                    Value::Null => {
                        return Err(Failure::usage("a --resume answers null, which is no answer")
                            .hint("to cancel give the id alone, to answer without a value ID="));
                    }
                    value => entry.push(("payload".into(), value)),
                }
            }
        }
    }
    Ok(Value::Object(entry.into_iter().collect()))
}

/// An answer of the form that an interrupt asks for, as a place to put the real one; `true` where it
/// asks for none.
pub(super) fn example(interrupt: &Interrupt) -> Json {
    let schema = interrupt.response_schema.as_ref();
    let schema = schema.and_then(|schema| Value::parse(schema.as_str()).ok());
    schema.map_or(Value::Bool(true), |schema| of_schema(&schema, 0)).to_json()
}

fn of_schema(schema: &Value, depth: usize) -> Value {
    /// Deeper, or with more members, an example is no help any more.
    const MOST_DEEP: usize = 3;
    const MOST_MEMBERS: usize = 10;
    let anything = || Value::String("...".into());
    if let Some(Value::Array(choices)) = schema.get("enum")
        && let Some(first) = choices.first()
    {
        return first.clone();
    }
    if let Some(value) = schema.get("const") {
        return value.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first(),
        kind => kind,
    };
    let kind = match kind {
        Some(Value::String(kind)) => kind.as_str(),
        _ => "",
    };
    match kind {
        "boolean" => Value::Bool(true),
        "integer" | "number" => Value::Number(0.into()),
        "array" => Value::Array(Vec::new()),
        "object" if depth < MOST_DEEP => {
            let Some(Value::Object(members)) = schema.get("properties") else {
                return Value::Object(Default::default());
            };
            let of_member =
                |(name, schema): (&_, &_)| (Clone::clone(name), of_schema(schema, depth + 1));
            Value::Object(members.iter().take(MOST_MEMBERS).map(of_member).collect())
        }
        _ => anything(),
    }
}

/// An argument as a POSIX shell reads it back; `None` where it holds what had better not be pasted.
pub(super) fn quoted(argument: &str) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
    if argument != crate::terminal::line(argument) {
        return None;
    }
    if !argument.is_empty() && argument.chars().all(plain) {
        return Some(argument.into());
    }
    Some(format!("'{}'", argument.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_types::JsonObject;

    fn parsed(argument: &str, open: &[&str]) -> Result<String, String> {
        let open: Vec<_> = open.iter().map(|id| Interrupt::new(*id, "why")).collect();
        let value_of = |text: &str| Value::parse(text).map_err(|_| Failure::usage("no JSON"));
        let entry = entry(argument, &open, value_of).map_err(|failure| failure.to_string())?;
        Ok(entry.to_json().as_str().into())
    }

    #[test]
    fn an_answer_is_resolved_with_a_value_and_cancelled_without() {
        let resolved = |id: &str, payload: &str| {
            Ok(format!(r#"{{"interruptId":"{id}","status":"resolved"{payload}}}"#))
        };
        assert_eq!(parsed("a=true", &[]), resolved("a", r#","payload":true"#));
        assert_eq!(parsed(r#"a={"b":"="}"#, &[]), resolved("a", r#","payload":{"b":"="}"#));
        assert_eq!(parsed("a=", &[]), resolved("a", ""));
        let cancelled = |id: &str| Ok(format!(r#"{{"interruptId":"{id}","status":"cancelled"}}"#));
        assert_eq!(parsed("a", &[]), cancelled("a"));
        // Ids are opaque.
        assert_eq!(parsed("YQ==", &["YQ=="]), cancelled("YQ=="));
        assert_eq!(parsed("YQ===1", &["YQ=="]), resolved("YQ==", r#","payload":1"#));
        for wrong in ["", "=1", "a=yes", "a=null"] {
            assert!(parsed(wrong, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_example_has_the_form_that_is_asked_for() {
        let schema = r#"{"type":"object","properties":{"yes":{"type":"boolean"},
            "why":{"type":["string","null"]},"n":{"type":"integer"},"l":{"type":"array"},
            "e":{"enum":["low","high"]},"c":{"const":null},"o":{"type":"object"},"x":true}}"#;
        let interrupt =
            Interrupt::new("i", "why").response_schema(JsonObject::parse(schema).unwrap());
        assert_eq!(
            example(&interrupt).as_str(),
            r#"{"yes":true,"why":"...","n":0,"l":[],"e":"low","c":null,"o":{},"x":"..."}"#
        );
        assert_eq!(example(&Interrupt::new("i", "why")).as_str(), "true");
    }

    #[test]
    fn what_is_pasted_is_one_word() {
        assert_eq!(quoted("http://x/a").unwrap(), "http://x/a");
        assert_eq!(quoted("it's $HOME").unwrap(), r"'it'\''s $HOME'");
        assert_eq!(quoted("").unwrap(), "''");
        assert_eq!(quoted("a\nb"), None);
        assert_eq!(quoted("a\u{202e}b"), None);
    }
}
