//! What compaction keeps, for every stream.

use std::collections::{BTreeMap, BTreeSet};

use agui_stream::fold::Applied;
use agui_stream::{ChunkExpander, Compactor, Conversation, Fault, Verifier, compact};
use agui_types::json::Value;
use agui_types::{Event, EventReader, FromJson, Message, ToJson};
use proptest::collection::vec;
use proptest::prelude::*;

/// One event, with ids from so small a pool that everything meets everything.
fn event() -> impl Strategy<Value = Event> {
    let id = || prop_oneof![4 => Just("a"), 3 => Just("b"), 2 => Just("c")];
    let text = || prop_oneof![Just(""), Just("x"), Just("yz"), Just("é")];
    let item = |names: &'static [(&'static str, &'static str)], more: &'static str| {
        (prop::sample::select(names), id(), text()).prop_map(move |((event, key), id, delta)| {
            let more = if event.ends_with("_START") { more } else { "" };
            let delta = if event.ends_with("_CONTENT") || event.ends_with("_ARGS") {
                format!(r#","delta":"{delta}""#)
            } else {
                String::new()
            };
            format!(r#""type":"{event}","{key}":"{id}"{delta}{more}"#)
        })
    };
    let texts: &[_] = &[
        ("TEXT_MESSAGE_START", "messageId"),
        ("TEXT_MESSAGE_CONTENT", "messageId"),
        ("TEXT_MESSAGE_CONTENT", "messageId"),
        ("TEXT_MESSAGE_CONTENT", "messageId"),
        ("TEXT_MESSAGE_END", "messageId"),
    ];
    let calls: &[_] = &[
        ("TOOL_CALL_START", "toolCallId"),
        ("TOOL_CALL_ARGS", "toolCallId"),
        ("TOOL_CALL_ARGS", "toolCallId"),
        ("TOOL_CALL_END", "toolCallId"),
    ];
    let reasoning: &[_] = &[
        ("REASONING_MESSAGE_START", "messageId"),
        ("REASONING_MESSAGE_CONTENT", "messageId"),
        ("REASONING_MESSAGE_CONTENT", "messageId"),
        ("REASONING_MESSAGE_END", "messageId"),
    ];
    let chunk = (0..3usize, prop::option::of(id()), prop::option::of(text())).prop_map(
        |(kind, id, delta)| {
            let (event, key, more) = [
                ("TEXT_MESSAGE_CHUNK", "messageId", ""),
                ("TOOL_CALL_CHUNK", "toolCallId", r#","toolCallName":"f""#),
                ("REASONING_MESSAGE_CHUNK", "messageId", ""),
            ][kind];
            let id = id.map_or(String::new(), |id| format!(r#","{key}":"{id}"{more}"#));
            let delta = delta.map_or(String::new(), |delta| format!(r#","delta":"{delta}""#));
            format!(r#""type":"{event}"{id}{delta}"#)
        },
    );
    let state = prop_oneof![
        Just(r#""type":"STATE_SNAPSHOT","snapshot":{"n":1,"l":[1]}"#.to_owned()),
        Just(r#""type":"STATE_SNAPSHOT","snapshot":null"#.to_owned()),
        (prop::sample::select(vec!["/n", "/l/-", "/l/0", ""]), 0..9u8).prop_map(|(path, value)| {
            let patch = format!(r#"[{{"op":"add","path":"{path}","value":{value}}}]"#);
            format!(r#""type":"STATE_DELTA","delta":{patch}"#)
        }),
        Just(r#""type":"STATE_DELTA","delta":[{"op":"remove","path":"/n"}]"#.to_owned()),
    ];
    let restated = vec((0..6usize, id()), 0..3).prop_map(|messages| {
        let messages = messages.iter().map(|(role, id)| {
            [
                format!(r#"{{"id":"{id}","role":"user","content":"u"}}"#),
                format!(r#"{{"id":"{id}","role":"assistant","content":"r"}}"#),
                format!(r#"{{"id":"{id}","role":"reasoning","content":"t"}}"#),
                format!(r#"{{"id":"{id}","role":"tool","toolCallId":"b","content":"r"}}"#),
                format!(
                    r#"{{"id":"{id}","role":"activity","activityType":"k","content":{{"n":0}}}}"#
                ),
                format!(
                    r#"{{"id":"{id}","role":"assistant","toolCalls":[{{"id":"a","type":"function","function":{{"name":"f","arguments":"0"}}}}]}}"#
                ),
            ][*role]
                .clone()
        });
        let messages = messages.collect::<Vec<_>>().join(",");
        format!(r#""type":"MESSAGES_SNAPSHOT","messages":[{messages}]"#)
    });
    let other = (id(), id(), 0..11usize).prop_map(|(id, other, kind)| {
        [
            format!(
                r#""type":"TOOL_CALL_RESULT","messageId":"{id}","toolCallId":"{other}","content":"r""#
            ),
            format!(
                r#""type":"ACTIVITY_SNAPSHOT","messageId":"{id}","activityType":"k","content":{{"n":1}}"#
            ),
            format!(
                r#""type":"ACTIVITY_DELTA","messageId":"{id}","activityType":"l","patch":[{{"op":"replace","path":"/n","value":2}}]"#
            ),
            format!(
                r#""type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"{id}","encryptedValue":"v""#
            ),
            format!(
                r#""type":"REASONING_ENCRYPTED_VALUE","subtype":"tool-call","entityId":"{id}","encryptedValue":"w""#
            ),
            format!(
                r#""type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"f","parentMessageId":"{other}""#
            ),
            r#""type":"STEP_STARTED","stepName":"s""#.into(),
            r#""type":"STEP_FINISHED","stepName":"s""#.into(),
            format!(r#""type":"SUBAGENT_STARTED","subagentRunId":"{id}","name":"n""#),
            format!(r#""type":"SUBAGENT_FINISHED","subagentRunId":"{id}""#),
            r#""type":"CUSTOM","name":"n","value":null"#.into(),
        ][kind]
            .clone()
    });
    let run = prop::sample::select(vec![
        r#""type":"RUN_STARTED","threadId":"t","runId":"r""#,
        r#""type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[{"id":"b","role":"assistant"}]}"#,
        r#""type":"RUN_FINISHED","threadId":"t","runId":"r""#,
        r#""type":"RUN_ERROR","message":"m""#,
    ]);
    let members = prop_oneof![
        8 => item(texts, ""),
        2 => item(texts, r#","role":"user""#),
        8 => item(calls, r#","toolCallName":"f""#),
        6 => item(reasoning, r#","role":"reasoning""#),
        2 => chunk,
        4 => state,
        1 => restated,
        6 => other,
        2 => run.prop_map(str::to_owned),
    ];
    let tag = prop_oneof![
        6 => Just(""),
        1 => Just(r#","subagentRunId":"a""#),
        1 => Just(r#","subagentRunId":"b""#)
    ];
    let metadata = prop_oneof![
        6 => Just(""),
        1 => Just(r#","metadata":{"k":1}"#),
        1 => Just(r#","metadata":{"l":null,"k":[2]},"timestamp":7"#)
    ];
    (members, tag, metadata).prop_map(|(members, tag, metadata)| {
        let runs = ["RUN_", "SUBAGENT_", "MESSAGES_"];
        let tag =
            if runs.iter().any(|run| members.contains(&format!(r#":"{run}"#))) { "" } else { tag };
        let text = format!("{{{members}{tag}{metadata}}}");
        EventReader::new().exact(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

/// A stream that shows as its text.
#[derive(Clone)]
struct Stream(Vec<Event>);

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lines = self.0.iter().map(ToJson::to_json);
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

fn compacted(events: &[Event]) -> Vec<Event> {
    compact(events.iter().cloned())
}

fn compacted_by(mut compactor: Compactor, events: &[Event]) -> Vec<Event> {
    events.iter().cloned().for_each(|event| compactor.push(event));
    compactor.finish()
}

/// What a thread may hold before a stream begins.
fn history() -> impl Strategy<Value = Conversation> {
    let message = prop::sample::select(vec![
        r#"{"id":"a","role":"user","content":"h"}"#,
        r#"{"id":"a","role":"assistant","content":"h"}"#,
        r#"{"id":"b","role":"reasoning","content":"h"}"#,
        r#"{"id":"b","role":"tool","toolCallId":"c","content":"h"}"#,
        r#"{"id":"c","role":"activity","activityType":"h","content":{"n":7}}"#,
        r#"{"id":"c","role":"assistant","toolCalls":[{"id":"a","type":"function","function":{"name":"f","arguments":"7"}}]}"#,
    ]);
    vec(message, 0..4).prop_map(|messages| {
        let messages = messages.iter().map(|text| Message::from_json_exact(text).unwrap());
        let state = Value::parse(r#"{"n":0,"l":[]}"#).unwrap();
        Conversation::new(messages.collect(), state)
    })
}

/// A stream that keeps the rules: of the events drawn, those that may come where they come.
fn lawful() -> impl Strategy<Value = Stream> {
    vec(event(), 0..120).prop_map(|drawn| {
        let started = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
        let mut reader = Reader::default();
        let mut stream = Vec::new();
        let first = EventReader::new().exact(started).unwrap();
        for event in std::iter::once(first).chain(drawn) {
            let before = reader.clone();
            match reader.push(&event, |_| ()) {
                Ok(()) => stream.push(event),
                Err(_) => reader = before,
            }
        }
        Stream(stream)
    })
}

#[derive(Clone, Default)]
struct Reader {
    expander: ChunkExpander,
    verifier: Verifier,
}

impl Reader {
    fn push(&mut self, event: &Event, mut deliver: impl FnMut(&Event)) -> Result<(), Fault> {
        let mut expanded = Vec::new();
        self.expander.push(event.clone(), &mut expanded)?;
        expanded.iter().try_for_each(|event| {
            self.verifier.push(event)?;
            deliver(event);
            Ok(())
        })
    }
}

/// What a stream comes to: messages, state, what it leaves open.
fn fold(
    before: &Conversation,
    events: &[Event],
) -> Result<impl PartialEq + std::fmt::Debug + use<>, Fault> {
    let mut conversation = before.clone();
    let mut reader = Reader::default();
    let mut applied = Applied::default();
    for event in events {
        reader.push(event, |event| conversation.apply(event, &mut applied))?;
    }
    // A chunk item that nothing has ended yet is no matter of the conversation.
    let mut open = BTreeSet::new();
    if !events.iter().any(is_chunk) {
        let ends = reader.verifier.closing_events();
        open.extend(ends.iter().map(ToJson::to_json));
    }
    Ok((
        conversation.messages().to_vec(),
        conversation.state().clone(),
        conversation.open_interrupts().to_vec(),
        conversation.ending(),
        open,
    ))
}

/// Whether no two messages come to share an id, which P-28 forbids: what a later event means by it
/// is then anyone's guess.
fn ids_are_unique(before: &Conversation, events: &[Event]) -> bool {
    let mut conversation = before.clone();
    let mut reader = Reader::default();
    let mut applied = Applied::default();
    events.iter().all(|event| {
        let folded = reader.push(event, |event| conversation.apply(event, &mut applied));
        let ids: Vec<_> = conversation.messages().iter().map(Message::id).collect();
        folded.is_ok() && ids.iter().collect::<BTreeSet<_>>().len() == ids.len()
    })
}

fn is_chunk(event: &Event) -> bool {
    event.type_name().ends_with("_CHUNK")
}

/// Everything that has to be there still: the text of each item, and each event that is neither a
/// delta nor of the state.
fn content(events: &[Event]) -> (BTreeMap<String, String>, Vec<String>) {
    let mut texts = BTreeMap::<String, String>::new();
    let mut rest = Vec::new();
    for event in events {
        let (id, delta) = match event {
            Event::TextMessageContent(event) => (format!("m {}", event.message_id), &event.delta),
            Event::ToolCallArgs(event) => (format!("c {}", event.tool_call_id), &event.delta),
            Event::StateSnapshot(_) | Event::StateDelta(_) => continue,
            other => {
                rest.push(other.to_json());
                continue;
            }
        };
        texts.entry(id).or_default().push_str(delta);
    }
    rest.sort();
    (texts, rest)
}

proptest! {
    #[test]
    fn a_lawful_stream_folds_to_the_same(stream in lawful()) {
        let once = compacted(&stream.0);
        let nothing = Conversation::new(Vec::new(), Value::parse("{}").unwrap());
        if !ids_are_unique(&nothing, &stream.0) {
            return Ok(());
        }
        prop_assert!(once.len() <= stream.0.len());
        prop_assert_eq!(fold(&nothing, &once).unwrap(), fold(&nothing, &stream.0).unwrap());
        prop_assert_eq!(Stream(compacted(&once)), Stream(once), "twice");
    }

    #[test]
    fn so_does_one_that_continues_a_conversation(before in history(), stream in lawful()) {
        if !ids_are_unique(&before, &stream.0) {
            return Ok(());
        }
        let compacted = |events: &[Event]| compacted_by(Compactor::after(before.clone()), events);
        let once = compacted(&stream.0);
        prop_assert_eq!(fold(&before, &once).unwrap(), fold(&before, &stream.0).unwrap());
        prop_assert_eq!(Stream(compacted(&once)), Stream(once), "twice");
    }

    #[test]
    fn so_does_one_with_its_reasoning_merged(before in history(), stream in lawful()) {
        if !ids_are_unique(&before, &stream.0) {
            return Ok(());
        }
        let compactor = Compactor::after(before.clone());
        let merged = |events: &[Event]| compacted_by(compactor.clone().merge_reasoning(), events);
        let once = merged(&stream.0);
        prop_assert!(once.len() <= stream.0.len());
        prop_assert_eq!(fold(&before, &once).unwrap(), fold(&before, &stream.0).unwrap());
        // A second time may find more to merge, where something in between has moved away.
        let twice = merged(&once);
        prop_assert!(twice.len() <= once.len());
        prop_assert_eq!(fold(&before, &twice).unwrap(), fold(&before, &once).unwrap());
    }

    #[test]
    fn of_any_stream_nothing_is_lost(stream in vec(event(), 0..80).prop_map(Stream)) {
        let once = compacted(&stream.0);
        prop_assert!(once.len() <= stream.0.len());
        prop_assert_eq!(content(&once), content(&stream.0));
        prop_assert_eq!(Stream(compacted(&once)), Stream(once), "twice");
    }
}
