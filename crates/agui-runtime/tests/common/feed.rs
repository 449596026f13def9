//! An agent whose events a test sends one by one.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use agui_agent::{Agent, EventStream, RunContext};
use agui_types::{Event, FromJson, Reading, RunAgentInput};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The agent. Each run takes the next of the streams that [`next`](Self::next) has made.
#[derive(Clone, Default)]
pub(crate) struct Feed(Arc<Mutex<VecDeque<UnboundedReceiver<Event>>>>);

impl Feed {
    /// Where the events of the next run come from; its stream ends when this is dropped.
    pub(crate) fn next(&self) -> UnboundedSender<Event> {
        let (sender, receiver) = unbounded_channel();
        self.0.lock().unwrap().push_back(receiver);
        sender
    }

    /// The whole of the next run.
    pub(crate) fn say(&self, events: impl IntoIterator<Item = Event>) {
        let sender = self.next();
        events.into_iter().for_each(|event| sender.send(event).unwrap());
    }
}

impl Agent for Feed {
    fn run(&self, _: RunAgentInput, _: RunContext) -> EventStream {
        let events = self.0.lock().unwrap().pop_front().expect("one run too many");
        let next = async |mut events: UnboundedReceiver<Event>| {
            let event = events.recv().await?;
            Some((event, events))
        };
        Box::pin(unfold(events, next).map(|event| Ok(Reading::from(event))))
    }
}

/// One event a line.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| Event::from_json_exact(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// A run on the thread `t` with something of everything, around an end.
pub(crate) fn everything(run: &str, end: &str) -> Vec<Event> {
    let text = r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"$"}
        {"type":"STATE_SNAPSHOT","snapshot":{"n":0,"of":"$"}}
        {"type":"STEP_STARTED","stepName":"plan"}
        {"type":"REASONING_START","messageId":"$-span"}
        {"type":"REASONING_MESSAGE_START","messageId":"$-thought","role":"reasoning"}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"$-thought","delta":"Let me "}
        {"type":"REASONING_MESSAGE_CONTENT","messageId":"$-thought","delta":"think"}
        {"type":"REASONING_MESSAGE_END","messageId":"$-thought"}
        {"type":"REASONING_END","messageId":"$-span"}
        {"type":"TEXT_MESSAGE_START","messageId":"$-text","role":"assistant"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"$-text","delta":"Hel"}
        {"type":"STATE_DELTA","delta":[{"op":"replace","path":"/n","value":1}]}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"$-text","delta":"lo <&> é\n"}
        {"type":"TOOL_CALL_START","toolCallId":"$-call","toolCallName":"look","parentMessageId":"$-text"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"$-call","delta":"{\"q\""}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"$-text","delta":" and"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"$-call","delta":":1}"}
        {"type":"TOOL_CALL_END","toolCallId":"$-call"}
        {"type":"TEXT_MESSAGE_END","messageId":"$-text"}
        {"type":"TOOL_CALL_RESULT","messageId":"$-result","toolCallId":"$-call","content":"found"}
        {"type":"STEP_FINISHED","stepName":"plan"}
        {"type":"ACTIVITY_SNAPSHOT","messageId":"$-activity","activityType":"plan","content":{"done":[]}}
        {"type":"ACTIVITY_DELTA","messageId":"$-activity","activityType":"plan","patch":[{"op":"add","path":"/done/-","value":"a"}]}
        {"type":"SUBAGENT_STARTED","subagentRunId":"$-sub","name":"helper"}
        {"type":"TEXT_MESSAGE_START","messageId":"$-help","role":"assistant","subagentRunId":"$-sub"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"$-help","delta":"On it","subagentRunId":"$-sub"}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/by","value":"helper"}],"subagentRunId":"$-sub"}
        {"type":"TEXT_MESSAGE_END","messageId":"$-help","subagentRunId":"$-sub"}
        {"type":"SUBAGENT_FINISHED","subagentRunId":"$-sub","outcome":{"type":"success"}}
        {"type":"CUSTOM","name":"note","value":{"a":[1,2.0]}}
    "#;
    events(&format!("{text}\n{end}").replace('$', run))
}

/// How [`everything`] may end.
pub(crate) const SUCCESS: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"$"}"#;
pub(crate) const FAILURE: &str = r#"{"type":"RUN_ERROR","message":"it broke"}"#;
pub(crate) const INTERRUPT: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"$","outcome":{"type":"interrupt","interrupts":[{"id":"$-ask","reason":"approval"}]}}"#;
