//! Taking attributions away, for peers from before subagents.

use agui_types::{Event, Message, RunFinishedOutcome};

use super::PeerVersion;
use crate::Warning;

/// For a peer from before subagents: leaves `SUBAGENT_*` events out and takes attributions away, with
/// a warning (P-93). For any other peer it does nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disowner {
    pub(crate) peer: PeerVersion,
    told: bool,
}

impl Disowner {
    pub(crate) fn new(peer: PeerVersion) -> Self {
        Self { peer, told: false }
    }

    /// Whether there is anything to do.
    pub(crate) fn is_active(&self) -> bool {
        !self.peer.knows_subagents()
    }

    /// `false` where the event is left out.
    pub(crate) fn keep(&mut self, event: &mut Event, warnings: &mut Vec<Warning>) -> bool {
        let why = |what: &str| {
            let peer = self.peer;
            format!(
                "{what}: the peer speaks at most {peer}, which has no subagents; upgrade the peer"
            )
        };
        if let Event::SubagentStarted(_) | Event::SubagentFinished(_) | Event::SubagentError(_) =
            event
        {
            let message = why(&format!("dropped {}", event.type_name()));
            warnings.push(Warning::new("P-93", "", message));
            return false;
        }
        if disown(event) && !self.told {
            warnings.push(Warning::new("P-93", "", why("stripped every subagentRunId")));
            self.told = true;
        }
        true
    }
}

/// Lists the events that can be attributed, so that their owner can be taken away.
macro_rules! disown_events {
    ($event:expr, $($name:ident)*) => {
        match $event {
            $(Event::$name(event) => event.subagent_run_id.take().is_some(),)*
            Event::MessagesSnapshot(event) => disown_messages(&mut event.messages),
            Event::RunStarted(event) => event
                .input
                .as_mut()
                .is_some_and(|input| disown_messages(&mut input.messages)),
            Event::RunFinished(event) => event.outcome.as_mut().is_some_and(disown_outcome),
            _ => false,
        }
    };
}

/// Takes the attribution from an event and from what it holds. `false` where there was none.
fn disown(event: &mut Event) -> bool {
    disown_events!(
        event,
        TextMessageStart TextMessageContent TextMessageEnd TextMessageChunk
        ToolCallStart ToolCallArgs ToolCallEnd ToolCallChunk ToolCallResult
        StateSnapshot StateDelta ActivitySnapshot ActivityDelta Raw Custom StepStarted StepFinished
        ReasoningStart ReasoningMessageStart ReasoningMessageContent ReasoningMessageEnd
        ReasoningMessageChunk ReasoningEnd ReasoningEncryptedValue
    )
}

fn disown_messages(messages: &mut [Message]) -> bool {
    messages.iter_mut().fold(false, |any, message| disown_message(message) | any)
}

/// Takes the attribution from a message.
pub(crate) fn disown_message(message: &mut Message) -> bool {
    let owner = match message {
        Message::Developer(message) => &mut message.subagent_run_id,
        Message::System(message) => &mut message.subagent_run_id,
        Message::Assistant(message) => &mut message.subagent_run_id,
        Message::User(message) => &mut message.subagent_run_id,
        Message::Tool(message) => &mut message.subagent_run_id,
        Message::Activity(message) => &mut message.subagent_run_id,
        Message::Reasoning(message) => &mut message.subagent_run_id,
        _ => return false,
    };
    owner.take().is_some()
}

/// Takes the attribution from the interrupts of an outcome.
fn disown_outcome(outcome: &mut RunFinishedOutcome) -> bool {
    let RunFinishedOutcome::Interrupt(outcome) = outcome else {
        return false;
    };
    if outcome.interrupts.iter().all(|interrupt| interrupt.subagent_run_id.is_none()) {
        return false;
    }
    let interrupts: Vec<_> = outcome
        .interrupts
        .iter()
        .cloned()
        .map(|mut interrupt| {
            interrupt.subagent_run_id = None;
            interrupt
        })
        .collect();
    if let Ok(interrupts) = interrupts.try_into() {
        outcome.interrupts = interrupts;
    }
    true
}
