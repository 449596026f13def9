//! A client made of the stages of this crate: pipeline and conversation.

use agui_stream::fold::Applied;
use agui_stream::{Conversation, Fault, Pipeline, Warning};
use agui_types::{Event, EventReader, FromJson, Message, ReadErrorKind, ToJson};
use serde_json::Value;

/// What came of a stream.
#[derive(Default)]
pub(crate) struct Consumed {
    pub(crate) fault: Option<Fault>,
    /// Why a frame was no event, as the recordings call it.
    pub(crate) class: Option<&'static str>,
    pub(crate) delivered: Vec<Event>,
    pub(crate) warnings: Vec<Warning>,
}

impl Consumed {
    pub(crate) fn types(&self) -> Vec<&str> {
        self.delivered.iter().map(Event::type_name).collect()
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.warnings.iter().map(ToString::to_string).collect()
    }
}

/// Reads frames to the end of the stream or to the first fault.
pub(crate) fn consume(
    frames: &Value,
    mut pipeline: Pipeline,
    conversation: &mut Conversation,
) -> Consumed {
    let mut consumed = Consumed::default();
    let (mut reader, mut applied) = (EventReader::new(), Applied::default());
    for frame in frames.as_array().unwrap() {
        let first = consumed.delivered.len();
        let verdict = match reader.tolerant(&frame.to_string()) {
            Ok(reading) => pipeline.push(reading, &mut consumed.delivered, &mut consumed.warnings),
            Err(error) => {
                consumed.class = match error.kind() {
                    ReadErrorKind::NotAnEvent => Some("frame-shape"),
                    ReadErrorKind::Syntax | ReadErrorKind::TooDeep => Some("sse-json"),
                    _ => None,
                };
                Err(pipeline.push_unreadable(&error))
            }
        };
        for event in &consumed.delivered[first..] {
            conversation.apply(event, &mut applied);
            consumed.warnings.append(&mut applied.warnings);
        }
        if let Err(fault) = verdict {
            consumed.fault = Some(fault);
            return consumed;
        }
    }
    consumed.fault = pipeline.finish().err();
    consumed
}

/// A thread with this history and state; `{}` is the state of one that has none.
pub(crate) fn conversation(history: &Value, state: Option<&Value>) -> Conversation {
    let state = state.map_or_else(|| "{}".into(), Value::to_string);
    Conversation::new(messages(history), agui_types::json::Value::parse(&state).unwrap())
}

pub(crate) fn state(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.state().to_string()).unwrap()
}

pub(crate) fn messages(list: &Value) -> Vec<Message> {
    list.as_array().into_iter().flatten().map(read).collect()
}

pub(crate) fn read<T: FromJson>(value: &Value) -> T {
    T::from_json_tolerant(&value.to_string()).unwrap().value
}

pub(crate) fn written<T: ToJson>(value: &T) -> Value {
    serde_json::from_str(&value.to_json()).unwrap()
}

pub(crate) fn all_written<'a, T: ToJson + 'a>(values: impl IntoIterator<Item = &'a T>) -> Value {
    values.into_iter().map(written).collect()
}
