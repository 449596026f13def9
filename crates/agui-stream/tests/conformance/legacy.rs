//! The bridge to the protocol from before AG-UI: the vectors of kind `legacy`.

use agui_stream::legacy::LegacyBridge;
use agui_types::Event;
use serde_json::Value;

use crate::client::read;
use crate::compare::differences;
use crate::corpus::{Verdicts, vectors};

#[test]
fn bridge() {
    let Some(vectors) = vectors("legacy-bridge") else { return };
    let mut verdicts = Verdicts::new("legacy-bridge");
    for vector in vectors.iter().filter(|vector| vector.kind == "legacy") {
        let [thread, run, agent] =
            ["threadId", "runId", "agentName"].map(|name| vector.input[name].as_str().unwrap());
        let mut bridge = LegacyBridge::new(thread.into(), run.into(), agent);
        let mut warnings = Vec::new();
        let events = vector.input["events"].as_array().unwrap().iter().map(read::<Event>);
        let emitted = events.filter_map(|event| bridge.push(&event, &mut warnings));
        let emitted: Value = emitted.map(|event| serde_json::to_value(event).unwrap()).collect();
        let expected = vector.expected().remove(0);
        verdicts.note(
            &vector.id,
            &differences("emitted", &states_read(&expected["emitted"]), &states_read(&emitted)),
        );
    }
    verdicts.settle();
}

/// Events with their states as JSON and not as text.
fn states_read(events: &Value) -> Value {
    let mut events = events.clone();
    for event in events.as_array_mut().unwrap() {
        if let Some(state) = event.get_mut("state") {
            *state = serde_json::from_str(state.as_str().unwrap()).unwrap();
        }
    }
    events
}
