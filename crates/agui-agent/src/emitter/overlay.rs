//! Taking a change over into a value that holds more than the one who changes it knows of.

use agui_types::json::Value;
use indexmap::IndexMap;

/// `held`, with what differs between `before` and `after` changed to what it is in `after`.
///
/// What `before` and `after` do not mention stays, as does what is the same in both. Elements of an
/// array that stay as many as they were are changed in place, else the changed stretch is replaced.
pub(super) fn overlay(held: &Value, before: &Value, after: &Value) -> Value {
    match (held, before, after) {
        _ if before == after => held.clone(),
        (Value::Object(held), Value::Object(before), Value::Object(after)) => {
            Value::Object(members(held, before, after))
        }
        (Value::Array(held), Value::Array(before), Value::Array(after))
            if held.len() == before.len() =>
        {
            Value::Array(elements(held, before, after))
        }
        _ => after.clone(),
    }
}

type Members = IndexMap<String, Value>;

fn members(held: &Members, before: &Members, after: &Members) -> Members {
    let mut merged = Members::with_capacity(held.len());
    for (name, value) in held {
        let value = match (before.get(name), after.get(name)) {
            (Some(before), Some(after)) => overlay(value, before, after),
            (None, Some(after)) => after.clone(),
            (Some(_), None) => continue,
            (None, None) => value.clone(),
        };
        merged.insert(name.clone(), value);
    }
    for (name, value) in after {
        // What was not held, and is still what it was, is a default that nobody wrote down.
        if !held.contains_key(name) && before.get(name) != Some(value) {
            merged.insert(name.clone(), value.clone());
        }
    }
    merged
}

fn elements(held: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let start = before.iter().zip(after).take_while(|(before, after)| before == after).count();
    let most = before.len().min(after.len()) - start;
    let end = before.iter().rev().zip(after.iter().rev()).take(most);
    let end = end.take_while(|(before, after)| before == after).count();
    let middle = &after[start..after.len() - end];
    let mut merged = held[..start].to_vec();
    if before.len() == after.len() {
        let places = held[start..].iter().zip(&before[start..]).zip(middle);
        merged.extend(places.map(|((held, before), after)| overlay(held, before, after)));
    } else {
        merged.extend_from_slice(middle);
    }
    merged.extend_from_slice(&held[held.len() - end..]);
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(held: &str, before: &str, after: &str, expected: &str) {
        let [held, before, after] = [held, before, after].map(|text| Value::parse(text).unwrap());
        assert_eq!(overlay(&held, &before, &after).to_string(), expected);
    }

    #[test]
    fn what_the_changer_does_not_know_stays() {
        check(
            r#"{"theirs":1,"ours":{"a":1,"b":2}}"#,
            r#"{"ours":{"a":1}}"#,
            r#"{"ours":{"a":3}}"#,
            r#"{"theirs":1,"ours":{"a":3,"b":2}}"#,
        );
        check(r#"{"theirs":1,"gone":2}"#, r#"{"gone":2}"#, "{}", r#"{"theirs":1}"#);
        check("{}", r#"{"default":0}"#, r#"{"default":0,"set":1}"#, r#"{"set":1}"#);
        check("{}", r#"{"default":0}"#, r#"{"default":1}"#, r#"{"default":1}"#);
    }

    #[test]
    fn elements_change_in_place_and_come_and_go_at_their_place() {
        let held = r#"[{"n":1,"x":true},{"n":2,"x":true},{"n":3,"x":true}]"#;
        let before = r#"[{"n":1},{"n":2},{"n":3}]"#;
        check(
            held,
            before,
            r#"[{"n":1},{"n":5},{"n":3}]"#,
            r#"[{"n":1,"x":true},{"n":5,"x":true},{"n":3,"x":true}]"#,
        );
        check(held, before, r#"[{"n":1},{"n":3}]"#, r#"[{"n":1,"x":true},{"n":3,"x":true}]"#);
        check(
            held,
            before,
            r#"[{"n":0},{"n":1},{"n":2},{"n":3}]"#,
            r#"[{"n":0},{"n":1,"x":true},{"n":2,"x":true},{"n":3,"x":true}]"#,
        );
        check("[1,1]", "[1,1]", "[1,1,1]", "[1,1,1]");
        check("[1,2]", "[1]", "[3]", "[3]");
    }

    #[test]
    fn values_of_another_kind_are_replaced() {
        check("null", "{}", r#"{"a":1}"#, r#"{"a":1}"#);
        check("[1]", "[1]", r#""text""#, r#""text""#);
    }
}
