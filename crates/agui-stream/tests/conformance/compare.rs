//! Comparing as the collection asks: objects without regard to order, numbers as doubles.

use serde_json::Value;

/// Where two values differ, each place with both sides.
pub(crate) fn differences(what: &str, expected: &Value, found: &Value) -> Vec<String> {
    let mut all = Vec::new();
    compare(what, expected, found, &mut all);
    all
}

/// What a value lacks of what is asked for: arrays of the same length, objects on the named keys.
#[allow(dead_code)]
pub(crate) fn lacking(what: &str, asked: &Value, found: &Value) -> Vec<String> {
    match (asked, found) {
        (Value::Array(asked), Value::Array(found)) if found.len() == asked.len() => {
            let pairs = asked.iter().zip(found).enumerate();
            pairs
                .flat_map(|(at, (asked, found))| lacking(&format!("{what}[{at}]"), asked, found))
                .collect()
        }
        (Value::Object(asked), Value::Object(found)) => asked
            .iter()
            .flat_map(|(key, asked)| match found.get(key) {
                Some(found) => lacking(&format!("{what}.{key}"), asked, found),
                None => vec![format!("{what}.{key}: expected {asked}, found nothing")],
            })
            .collect(),
        (asked, found) => differences(what, asked, found),
    }
}

fn compare(path: &str, expected: &Value, found: &Value, all: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let path = format!("{path}.{key}");
                match b.get(key) {
                    Some(other) => compare(&path, value, other, all),
                    None => all.push(format!("{path}: expected {value}, found nothing")),
                }
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                all.push(format!("{path}.{key}: expected nothing, found {value}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{at}]"), a, b, all);
            }
            if a.len() != b.len() {
                all.push(format!("{path}: expected {} entries, found {}", a.len(), b.len()));
                let (longer, from) = if a.len() > b.len() { (a, b.len()) } else { (b, a.len()) };
                all.extend(longer[from..].iter().take(3).map(|value| format!("{path}: {value}")));
            }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        (a, b) if a == b => {}
        (a, b) => all.push(format!("{path}: expected {a}, found {b}")),
    }
}
