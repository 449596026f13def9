//! What a runtime says of itself.

use agui_types::json::read_string;
use agui_types::{AgentCapabilities, FromJson, JsonObject};
use indexmap::IndexMap;

use super::RuntimeError;

/// What a runtime says of itself. Members that are not known, and optional ones of another type than
/// they should have, are passed over.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RuntimeInfo {
    /// Its version, for people.
    pub version: Option<String>,
    /// How runs are answered: `sse`, which is the default, or `intelligence`, which is that of the
    /// vendor's cloud and cannot be read here.
    pub mode: String,
    /// Its agents by their ids, in its order.
    pub agents: IndexMap<String, AgentInfo>,
    /// Whether it turns audio into text.
    pub transcription: bool,
    /// Whether it has runs that nothing is kept of ([`RuntimeAgent::suggest`](super::RuntimeAgent::suggest)).
    pub suggestions: bool,
    /// What can be done with its threads, asked over the transport that is used.
    pub threads: ThreadEndpoints,
    /// Whether agents may draw with A2UI.
    pub a2ui: bool,
    /// Whether agents may draw interfaces of their own.
    pub open_generative_ui: bool,
}

/// An agent of a runtime.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct AgentInfo {
    /// What it is for; empty where nobody said.
    pub description: String,
    /// What it declares about itself; `None` where it declares nothing, or what cannot be read.
    pub capabilities: Option<AgentCapabilities>,
}

/// What can be done with the threads of a runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadEndpoints {
    /// They are listed, and can be cleared.
    pub list: bool,
    /// Their messages, events and state can be read.
    pub inspect: bool,
    /// They can be named, archived and deleted.
    pub mutations: bool,
}

/// How the information was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Rest,
    Single,
}

impl RuntimeInfo {
    /// Fails where it is no object, or lists no agents.
    pub(super) fn read(text: &str, via: Via) -> Result<Self, RuntimeError> {
        let info = JsonObject::parse(text)?;
        let listed = object(&info, "agents").ok_or_else(|| {
            RuntimeError::unreadable(
                "\"agents\"",
                "it is missing, or no object: is this a runtime?",
            )
        })?;
        let agents = listed.members().map(|(id, text)| (id.into_owned(), AgentInfo::read(text)));
        let a2ui = object(&info, "a2ui").is_some_and(|a2ui| flag(&a2ui, "enabled") == Some(true));
        let on = |name| flag(&info, name).unwrap_or(false);
        Ok(Self {
            version: string(&info, "version"),
            mode: string(&info, "mode").unwrap_or_else(|| "sse".into()),
            agents: agents.collect(),
            transcription: on("audioFileTranscriptionEnabled"),
            suggestions: on("suggestions"),
            threads: match via {
                Via::Rest => ThreadEndpoints::read(object(&info, "threadEndpoints").as_ref()),
                Via::Single => match object(&info, "singleRoute") {
                    Some(single) if flag(&single, "resourceOperations") == Some(true) => {
                        ThreadEndpoints::read(object(&single, "threadEndpoints").as_ref())
                    }
                    _ => ThreadEndpoints::default(),
                },
            },
            a2ui: a2ui || on("a2uiEnabled"),
            open_generative_ui: on("openGenerativeUIEnabled"),
        })
    }
}

impl AgentInfo {
    fn read(text: &str) -> Self {
        let Ok(agent) = JsonObject::parse(text) else { return Self::default() };
        let capabilities = agent.get("capabilities").and_then(|text| {
            match AgentCapabilities::from_json_tolerant(text) {
                Ok(reading) => Some(reading.value),
                Err(error) => {
                    tracing::warn!(%error, "the capabilities of one of the runtime's agents cannot be read");
                    None
                }
            }
        });
        Self { description: string(&agent, "description").unwrap_or_default(), capabilities }
    }
}

impl ThreadEndpoints {
    /// What is not said is there.
    fn read(endpoints: Option<&JsonObject>) -> Self {
        let on = |name| endpoints.and_then(|endpoints| flag(endpoints, name)).unwrap_or(true);
        Self { list: on("list"), inspect: on("inspect"), mutations: on("mutations") }
    }
}

fn object(of: &JsonObject, name: &str) -> Option<JsonObject> {
    JsonObject::parse(of.get(name)?).ok()
}

pub(super) fn string(of: &JsonObject, name: &str) -> Option<String> {
    read_string(of.get(name)?).map(|text| text.into_owned())
}

pub(super) fn flag(of: &JsonObject, name: &str) -> Option<bool> {
    of.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_information_will_do() {
        let info = r#"{"version":"x","agents":{"default":{"description":""}}}"#;
        let info = RuntimeInfo::read(info, Via::Rest).unwrap();
        assert_eq!((info.mode.as_str(), info.agents.len()), ("sse", 1));
        assert_eq!((info.suggestions, info.transcription, info.a2ui), (false, false, false));
        // Front ends take what is not said for there.
        let all = ThreadEndpoints { list: true, inspect: true, mutations: true };
        assert_eq!(info.threads, all);
        for bad in ["", "[]", "null", "{}", r#"{"agents":[]}"#, r#"{"agents":null}"#] {
            let error = RuntimeInfo::read(bad, Via::Rest).unwrap_err();
            assert!(matches!(error, RuntimeError::Unreadable { .. }), "{bad}: {error:?}");
        }
    }

    #[test]
    fn what_is_not_known_or_of_another_type_is_passed_over() {
        let info = r#"{"agents":{"b":{"description":7,"capabilities":{"tools":{"supported":true},
            "new":1},"more":{}},"a":null,"c":{"description":"C","capabilities":7}},"mode":null,
            "suggestions":"yes","audioFileTranscriptionEnabled":true,"a2ui":{"enabled":true},
            "threadEndpoints":{"list":false,"inspect":"no"},"new":[]}"#;
        let info = RuntimeInfo::read(info, Via::Rest).unwrap();
        assert_eq!(info.agents.keys().collect::<Vec<_>>(), ["b", "a", "c"]);
        let tools = info.agents["b"].capabilities.as_ref().unwrap().tools.as_ref().unwrap();
        assert_eq!(tools.supported, Some(true));
        assert_eq!(info.agents["c"].capabilities, None);
        assert_eq!(info.agents["c"].description, "C");
        assert_eq!((info.suggestions, info.transcription, info.a2ui), (false, true, true));
        let threads = ThreadEndpoints { list: false, inspect: true, mutations: true };
        assert_eq!(info.threads, threads);
    }

    #[test]
    fn by_envelope_threads_are_there_where_the_tunnel_is() {
        let threads = |single: &str| {
            let info = format!(r#"{{"agents":{{}},"threadEndpoints":{{}}{single}}}"#);
            RuntimeInfo::read(&info, Via::Single).unwrap().threads
        };
        assert_eq!(threads(""), ThreadEndpoints::default());
        let off = r#","singleRoute":{"resourceOperations":false,"threadEndpoints":{"list":true}}"#;
        assert_eq!(threads(off), ThreadEndpoints::default());
        let on = r#","singleRoute":{"resourceOperations":true,"threadEndpoints":{"inspect":true,"list":true,"mutations":false}}"#;
        let expected = ThreadEndpoints { list: true, inspect: true, mutations: false };
        assert_eq!(threads(on), expected);
    }
}
