//! `frontend`: a call that the application answers.

use std::collections::HashSet;

use agui_agent::{AgentResult, Run};
use agui_types::message::ToolMessage;
use serde_json::{Map, Value};

use super::speech::say;

/// How deep a schema is followed when arguments are made up from it.
const MOST_DEPTH: usize = 8;

/// Calls the first tool that is advertised, and leaves the call open (P-30 to P-32, P-37).
pub(super) async fn show(run: &Run) -> AgentResult {
    let Some(tool) = run.input().tools.iter().flatten().next() else {
        let text = "You offer no tool. A front end lists its own in the input's tools.";
        say(run, text).await?;
        return Ok(());
    };
    let schema = tool.parameters.as_ref().and_then(|schema| schema.decode::<Value>().ok());
    let mut arguments = schema.as_ref().map_or(Value::Null, |schema| example(schema, 0));
    if !arguments.is_object() {
        arguments = Value::Object(Map::new());
    }
    let mut call = run.tool_call(&tool.name).await?;
    call.args_json(&arguments).await?;
    call.end().await?;
    Ok(())
}

/// Repeats what the application's tool answered (C-56: the text of it).
pub(super) async fn repeat(run: &Run, answer: &ToolMessage) -> AgentResult {
    let content = answer.content.text();
    let text = match &answer.error {
        Some(error) => format!("Your tool failed: {error}"),
        None if content.is_empty() => "Your tool answered without a text.".into(),
        None => format!("Your tool answered: {content}"),
    };
    say(run, &text).await?;
    Ok(())
}

/// A value that a JSON Schema would accept, as far as its plain keywords tell. Members that are not
/// required are left out where any is required.
fn example(schema: &Value, depth: usize) -> Value {
    if let Some(value) = schema.get("const").or_else(|| schema.get("default")) {
        return value.clone();
    }
    let listed = schema.get("enum").or_else(|| schema.get("examples"));
    if let Some(value) = listed.and_then(|values| values.get(0)) {
        return value.clone();
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first(),
        kind => kind,
    };
    match kind.and_then(Value::as_str) {
        Some("string") => "demo".into(),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") if depth < MOST_DEPTH => example_object(schema, depth),
        Some("object") => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

fn example_object(schema: &Value, depth: usize) -> Value {
    let required: HashSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let members = properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| required.is_empty() || required.contains(name.as_str()))
        .map(|(name, schema)| (name.clone(), example(schema, depth + 1)));
    Value::Object(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn arguments_are_made_up_from_the_schema() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "colour": { "enum": ["red", "green"] },
                "count": { "type": ["integer", "null"], "minimum": 3 },
                "deep": { "type": "object", "properties": { "yes": { "type": "boolean" } } },
                "extra": { "type": "string" },
            },
            "required": ["name", "colour", "count", "deep"],
        });
        assert_eq!(
            example(&schema, 0),
            json!({ "name": "demo", "colour": "red", "count": 3, "deep": { "yes": true } })
        );
        assert_eq!(example(&json!(true), 0), Value::Null);
        assert_eq!(example(&json!({ "type": 7, "enum": [] }), 0), Value::Null);
    }

    #[test]
    fn a_deep_schema_is_followed_so_far() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..100 {
            schema = json!({ "type": "object", "properties": { "a": schema } });
        }
        let text = example(&schema, 0).to_string();
        assert_eq!(text.matches("\"a\"").count(), MOST_DEPTH);
    }
}
