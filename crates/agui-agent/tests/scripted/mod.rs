//! An agent that answers run by run as a test says.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use agui_agent::{Agent, AgentError, EventStream, RunContext};
use agui_types::{Event, FromJson, Message, RunAgentInput};
use futures_util::stream;

pub(crate) struct Scripted {
    answers: Mutex<VecDeque<Answer>>,
    connecting: Option<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<RunAgentInput>>>,
}

/// What is sent for one request. `$thread` and `$run` in it are those of the request.
pub(crate) struct Answer {
    events: Vec<String>,
    error: Option<fn() -> AgentError>,
}

impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Mutex::new(answers.into_iter().collect());
        Self { answers, connecting: None, asked: Arc::default() }
    }

    /// The same agent, that can be connected to.
    pub(crate) fn connecting(mut self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.connecting = Some(Mutex::new(answers.into_iter().collect()));
        self
    }

    /// The inputs of its runs.
    pub(crate) fn asked(&self) -> Arc<Mutex<Vec<RunAgentInput>>> {
        Arc::clone(&self.asked)
    }
}

impl Agent for Scripted {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        let answer = self.answers.lock().unwrap().pop_front().expect("one run too many");
        self.asked.lock().unwrap().push(input.clone());
        answer.stream(&input)
    }

    fn connect(&self, input: RunAgentInput, _: RunContext) -> Option<EventStream> {
        let answer = self.connecting.as_ref()?.lock().unwrap().pop_front();
        Some(answer.expect("one connection too many").stream(&input))
    }
}

impl Answer {
    pub(crate) fn of(events: &[&str]) -> Self {
        Self { events: events.iter().map(ToString::to_string).collect(), error: None }
    }

    /// A run that completes after these events.
    pub(crate) fn completed(events: &[&str]) -> Self {
        Self::run(events, "")
    }

    /// A run that asks.
    pub(crate) fn interrupted(ids: &[&str]) -> Self {
        let asks: Vec<_> =
            ids.iter().map(|id| format!(r#"{{"id":"{id}","reason":"why"}}"#)).collect();
        let asks = asks.join(",");
        Self::run(&[], &format!(r#","outcome":{{"type":"interrupt","interrupts":[{asks}]}}"#))
    }

    /// A run that calls a tool and leaves the call open.
    pub(crate) fn calls(calls: &[(&str, &str, &str)]) -> Self {
        let mut events = Vec::new();
        for (id, name, arguments) in calls {
            let delta = serde_json::to_string(arguments).unwrap();
            events.push(format!(
                r#"{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"{name}","parentMessageId":"of $run"}}"#
            ));
            events.push(format!(
                r#"{{"type":"TOOL_CALL_ARGS","toolCallId":"{id}","delta":{delta}}}"#
            ));
            events.push(format!(r#"{{"type":"TOOL_CALL_END","toolCallId":"{id}"}}"#));
        }
        let events: Vec<_> = events.iter().map(String::as_str).collect();
        Self::completed(&events)
    }

    fn run(events: &[&str], outcome: &str) -> Self {
        let ids = r#""threadId":"$thread","runId":"$run""#;
        let started = format!(r#"{{"type":"RUN_STARTED",{ids}}}"#);
        let finished = format!(r#"{{"type":"RUN_FINISHED",{ids}{outcome}}}"#);
        Self::of(&[&[&*started], events, &[&*finished]].concat())
    }

    /// The same, and then an error.
    pub(crate) fn then(mut self, error: fn() -> AgentError) -> Self {
        self.error = Some(error);
        self
    }

    fn stream(self, input: &RunAgentInput) -> EventStream {
        let events: Vec<_> = self
            .events
            .iter()
            .map(|text| {
                let text = text.replace("$thread", input.thread_id.as_str());
                let text = text.replace("$run", input.run_id.as_str());
                Event::from_json_tolerant(&text).unwrap()
            })
            .collect();
        let error = self.error.map(|error| Err(error()));
        Box::pin(stream::iter(events.into_iter().map(Ok).chain(error)))
    }
}

pub(crate) fn ids(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.id().unwrap().to_string()).collect()
}

/// The text of a message.
pub(crate) fn said(message: &Message) -> String {
    match message {
        Message::User(message) => message.content.text().into_owned(),
        Message::Tool(message) => message.content.text().into_owned(),
        Message::Assistant(message) => message.content.clone().unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}
