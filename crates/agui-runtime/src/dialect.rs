//! What the entries of a log become for the front end that reads them.

use std::borrow::Cow;
use std::future::ready;
use std::sync::Arc;

use agui_agent::{Agent, EventStream, RunContext};
use agui_journal::{Entry, EntryKind};
use agui_types::{
    Event, FromJson, Reading, RunAgentInput, RunFinishedOutcome, SuccessOutcome, ToJson,
};
use futures_util::StreamExt;

/// Which version of the protocol a reader understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Everything of today's protocol.
    Current,
    /// What front ends knew before the protocol had versions: they end a stream, silently, at the
    /// first event type or outcome that they do not know.
    Early,
}

impl Dialect {
    /// The dialect of who sent this input: whoever says a version knows what came with it (C-80).
    pub(crate) fn of(input: &RunAgentInput) -> Self {
        if input.protocol_version.is_some() { Self::Current } else { Self::Early }
    }

    /// The event as it goes out; `None` where there is no way to say it.
    pub(crate) fn say(self, event: Event) -> Option<Event> {
        match (self, event) {
            (
                Self::Early,
                Event::SubagentStarted(_) | Event::SubagentFinished(_) | Event::SubagentError(_),
            ) => None,
            // Cancelled is no outcome there, and success has no members.
            (Self::Early, Event::RunFinished(mut finished)) => {
                finished.outcome = match finished.outcome {
                    Some(RunFinishedOutcome::Success(_)) => Some(SuccessOutcome::new().into()),
                    Some(RunFinishedOutcome::Interrupt(asks)) => Some(asks.into()),
                    _ => None,
                };
                Some(Event::RunFinished(finished))
            }
            (_, event) => Some(event),
        }
    }

    /// The JSON text of an entry as it goes out; `None` where there is no way to say it. What is the
    /// same in every dialect is not read.
    pub(crate) fn say_entry(self, entry: &Entry) -> Option<Cow<'_, str>> {
        let text = entry.text();
        // Events are written with their type first.
        let concerned = self == Self::Early
            && (entry.kind == EntryKind::Finished || text.starts_with("{\"type\":\"SUBAGENT_"));
        if !concerned {
            return Some(Cow::Borrowed(text));
        }
        match Event::from_json_exact(text) {
            Ok(event) => Some(Cow::Owned(self.say(event)?.to_json())),
            Err(_) => Some(Cow::Borrowed(text)),
        }
    }
}

/// An agent whose events go straight to a reader of this dialect.
pub(crate) struct Spoken {
    agent: Arc<dyn Agent>,
    dialect: Dialect,
}

impl Spoken {
    pub(crate) fn new(agent: Arc<dyn Agent>, dialect: Dialect) -> Self {
        Self { agent, dialect }
    }
}

impl Agent for Spoken {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let dialect = self.dialect;
        Box::pin(self.agent.run(input, context).filter_map(move |item| {
            ready(match item {
                Ok(Reading { value, findings }) => {
                    dialect.say(value).map(|value| Ok(Reading { value, findings }))
                }
                Err(error) => Some(Err(error)),
            })
        }))
    }
}

#[cfg(test)]
mod tests {
    use agui_types::RunId;

    use super::*;

    fn said(text: &str) -> Option<String> {
        let kind = EntryKind::of(&Event::from_json_exact(text).unwrap());
        let entry = Entry::new(1, kind, RunId::from("r"), text.to_owned().into());
        assert_eq!(Dialect::Current.say_entry(&entry).unwrap(), text);
        Dialect::Early.say_entry(&entry).map(Cow::into_owned)
    }

    #[test]
    fn early_readers_get_what_their_schema_admits() {
        let finished = |outcome: &str| {
            let plain = r#""type":"RUN_FINISHED","threadId":"t","runId":"r","result":1"#;
            format!("{{{plain}{outcome}}}")
        };
        for (outcome, shown) in [
            (r#","outcome":{"type":"cancelled"}"#, ""),
            (r#","outcome":{"type":"success"}"#, r#","outcome":{"type":"success"}"#),
            (
                r#","outcome":{"type":"success","pendingToolCallIds":["c"]}"#,
                r#","outcome":{"type":"success"}"#,
            ),
        ] {
            assert_eq!(said(&finished(outcome)), Some(finished(shown)));
        }
        let interrupt = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval"}]}}"#;
        assert_eq!(said(interrupt).as_deref(), Some(interrupt));
        let subagent = r#"{"type":"SUBAGENT_STARTED","subagentRunId":"s","name":"n"}"#;
        assert_eq!(said(subagent), None);
    }
}
