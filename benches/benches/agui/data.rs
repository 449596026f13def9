//! What is worked on: the standard workloads, and streams of other sizes made from them.

use std::rc::Rc;

use agui_types::{Event, FromJson, Message, MessageId};
use serde_json::value::RawValue;

/// How much a read brings: what an HTTP client usually hands out at most.
pub(crate) const READ: usize = 16 * 1024;

/// The standard workloads.
pub(crate) struct Data {
    w1: Stream,
    w2: Stream,
    w3: Stream,
    w4: Stream,
    history: Vec<Message>,
}

/// The events of a stream, one JSON text each, and the body they make.
#[derive(Clone)]
pub(crate) struct Stream {
    pub(crate) texts: Rc<[String]>,
    pub(crate) body: Rc<[u8]>,
}

impl Data {
    /// `None` where the workloads are not there.
    pub(crate) fn load() -> Option<Self> {
        let stream = |name| agui_bench::workload(name).map(Stream::new);
        let history = agui_bench::history()?;
        let history: Vec<&RawValue> = serde_json::from_str(&history).expect("a JSON array");
        let message = |text: &&RawValue| Message::from_json_exact(text.get()).expect("a message");
        Some(Self {
            w1: stream("w1-token-stream")?,
            w2: stream("w2-mixed")?,
            w3: stream("w3-long-thread")?,
            w4: stream("w4-big-state")?,
            history: history.iter().map(message).collect(),
        })
    }

    /// A workload by its number, such as `W1`.
    pub(crate) fn stream(&self, name: &str) -> Option<&Stream> {
        Some(match name {
            "W1" => &self.w1,
            "W2" => &self.w2,
            "W3" => &self.w3,
            "W4" => &self.w4,
            _ => return None,
        })
    }

    /// A token stream as W1, of any length: it takes W1's deltas in turn.
    pub(crate) fn tokens(&self, tokens: usize) -> Stream {
        let texts = &self.w1.texts;
        let ([head @ .., _, _], [.., end, finished]) = (&texts[..], &texts[..]) else {
            panic!("W1 has events");
        };
        let (start, deltas) = head.split_at(2);
        let deltas = deltas.iter().cycle().take(tokens);
        Stream::new(start.iter().chain(deltas).chain([end, finished]).cloned().collect())
    }

    /// So many messages from before W3: its own history as often as needed, under new ids.
    pub(crate) fn history(&self, messages: usize) -> Vec<Message> {
        let again = self.history.iter().cycle().take(messages).cloned().enumerate();
        again
            .map(|(at, mut message)| {
                let id = MessageId::from(format!("h-{at}"));
                match &mut message {
                    Message::User(message) => message.id = id,
                    Message::Assistant(message) => message.id = id,
                    other => panic!("the history has a message of role {}", other.tag()),
                }
                message
            })
            .collect()
    }
}

impl Stream {
    pub(crate) fn new(texts: Vec<String>) -> Self {
        let body = agui_bench::body(&texts).into();
        Self { texts: texts.into(), body }
    }

    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.parsed(|text| Event::from_json_exact(text).expect("an event"))
    }

    pub(crate) fn parsed<T>(&self, parse: impl Fn(&str) -> T) -> Vec<T> {
        self.texts.iter().map(|text| parse(text)).collect()
    }
}

/// `5,000` as a number.
pub(crate) fn number(text: &str) -> Option<usize> {
    text.replace(',', "").parse().ok()
}
