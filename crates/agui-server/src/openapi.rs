//! A description of agents as OpenAPI.

use agui_types::{AgentCapabilities, Event, RunAgentInput};
use agui_wire::WireForm;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// Describes agents as an OpenAPI 3.1 document: at each of these paths a `POST` that starts a run, and
/// beside it `GET …/capabilities`, as [`AgentService::into_router`](crate::AgentService::into_router)
/// has them.
///
/// The schemas are those of the protocol, under the names of its types. OpenAPI has no word for a
/// stream: the schema of the answer is that of one event, many of which follow each other. What is
/// sent should fit the schemas exactly; what is read may be more, as the [crate](crate) says.
///
/// ```
/// let document = agui_server::openapi("Greetings", "1.0.0", &["/agents/greeter"]);
/// assert_eq!(document["openapi"], "3.1.0");
/// assert!(document["components"]["schemas"]["RunAgentInput"].is_object());
/// ```
#[must_use]
pub fn openapi(title: &str, version: &str, agents: &[&str]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let input = generator.subschema_for::<RunAgentInput>().to_value();
    let event = generator.subschema_for::<Event>().to_value();
    let capabilities = generator.subschema_for::<AgentCapabilities>().to_value();
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Refusal".into(), refusal());

    let mut paths = Map::new();
    for path in agents {
        paths.insert((*path).into(), run(path, &input, &event));
        let path = format!("{}/capabilities", path.trim_end_matches('/'));
        let declaration = declaration(&path, &capabilities);
        paths.insert(path, declaration);
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": version },
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn run(path: &str, input: &Value, event: &Value) -> Value {
    let forms = [WireForm::Sse, WireForm::Proto].map(|form| (form.media_type(), form));
    let content: Map<String, Value> = forms
        .into_iter()
        .map(|(media_type, form)| {
            let schema = match form {
                WireForm::Sse => event.clone(),
                _ => json!({ "type": "string", "format": "binary" }),
            };
            (media_type.to_owned(), json!({ "schema": schema }))
        })
        .collect();
    let mut responses = Map::new();
    let about = "The events of the run, as they come, up to RUN_FINISHED or RUN_ERROR";
    responses.insert("200".into(), json!({ "description": about, "content": content }));
    for (status, about) in [
        ("400", "The body is not JSON, not UTF-8, nested too deep, or broke off"),
        ("401", "Who asks is not known"),
        ("403", "Who asks may not"),
        ("408", "The body came too slowly"),
        ("413", "The body is too large"),
        ("415", "The body is of another type than JSON"),
        ("422", "A member of the input is missing or malformed"),
        ("503", "The server stops, or has too many clients"),
    ] {
        responses.insert(status.into(), refused(about));
    }
    json!({
        "post": {
            "operationId": operation("run", path),
            "summary": "Start a run",
            "requestBody": {
                "required": true,
                "content": { "application/json": { "schema": input } },
            },
            "responses": responses,
        },
    })
}

fn declaration(path: &str, capabilities: &Value) -> Value {
    let about = "What the agent declares; what it does not declare it may do all the same";
    let content = json!({ "application/json": { "schema": capabilities } });
    json!({
        "get": {
            "operationId": operation("get", path),
            "summary": "What the agent declares about itself",
            "responses": {
                "200": { "description": about, "content": content },
                "401": refused("Who asks is not known"),
                "403": refused("Who asks may not"),
                "404": refused("The agent declares nothing"),
            },
        },
    })
}

/// A name for an operation, of letters, digits and underscores: `run_agents_greeter`.
fn operation(verb: &str, path: &str) -> String {
    let mut name = verb.to_owned();
    for part in path.split(|char: char| !char.is_ascii_alphanumeric()).filter(|it| !it.is_empty()) {
        name = name + "_" + part;
    }
    name
}

fn refused(about: &str) -> Value {
    let schema = json!({ "$ref": "#/components/schemas/Refusal" });
    json!({ "description": about, "content": { "application/json": { "schema": schema } } })
}

fn refusal() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": { "type": "string", "description": "For a program" },
                    "message": { "type": "string", "description": "For a person" },
                    "path": { "type": "string", "description": "The place in the body, as a JSON Pointer" },
                    "hint": { "type": "string", "description": "What to do about it" },
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    match member {
                        Value::String(target) if name == "$ref" => found.push(target),
                        _ => references(member, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = openapi("Agents", "1", &["/agents/demo", "/"]);
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for reference in found {
            let pointer = reference.strip_prefix('#').expect(reference);
            assert!(document.pointer(pointer).is_some_and(Value::is_object), "{reference}");
        }
        let schemas = &document["components"]["schemas"];
        for name in ["RunAgentInput", "Event", "AgentCapabilities", "Refusal"] {
            assert!(schemas[name].is_object(), "{name}");
        }
    }

    #[test]
    fn each_agent_has_its_paths_and_names() {
        let document = openapi("Agents", "1", &["/agents/demo", "/"]);
        let paths = document["paths"].as_object().unwrap();
        let mut names: Vec<&str> = paths.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["/", "/agents/demo", "/agents/demo/capabilities", "/capabilities"]);
        assert_eq!(paths["/agents/demo"]["post"]["operationId"], "run_agents_demo");
        assert_eq!(paths["/capabilities"]["get"]["operationId"], "get_capabilities");
        let answer = &paths["/"]["post"]["responses"]["200"]["content"];
        assert_eq!(answer["text/event-stream"]["schema"]["$ref"], "#/components/schemas/Event");
        assert!(answer["application/vnd.ag-ui.event+proto"].is_object());
    }
}
