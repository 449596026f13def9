//! One run, from its input to what it comes to.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use agui_agent::{AgentError, CancellationToken, Delivered, Delivery, DeliveryError, RunContext};
use agui_stream::fold::{Applied, Change, Conversation};
use agui_stream::{Ending, Fault, Outgoing, PeerVersion, Pipeline, Warning};
use agui_types::json::Value;
use agui_types::{Event, FromJson, Json, RunAgentInput, Timestamp, ToJson};
use futures_util::StreamExt;

use super::remote::Remote;
use super::report::{Problem, Verdict};
use crate::failure::chain;

/// Sees what a run delivers, in order.
pub(super) trait Witness {
    /// An event, with what it changed in the conversation. An error ends the run.
    fn event(
        &mut self,
        event: &Event,
        changes: &[Change],
        conversation: &Conversation,
    ) -> io::Result<()>;

    /// Something that was dropped, stripped, translated or could not be applied.
    fn warning(&mut self, warning: &Warning);
}

/// How a run ended, beside what the conversation holds.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    pub(super) problem: Option<Problem>,
    /// The body that was sent; `None` where nothing was.
    pub(super) request: Option<Json>,
}

/// Judges an input, runs the agent on it, and folds what it delivers into the conversation, whose
/// messages and state become the input's first. Everything before a fault is folded and seen before
/// it (C-12).
///
/// `peer` is what is known of the agent's age; `cancel` closes the connection.
pub(super) async fn converse(
    agent: &Remote,
    peer: PeerVersion,
    input: &Json,
    conversation: &mut Conversation,
    cancel: CancellationToken,
    witness: &mut impl Witness,
) -> Ended {
    let input = match prepare(peer, input, conversation, witness) {
        Ok(input) => input,
        Err(fault) => {
            let problem = Some(Problem::fault(&fault));
            return Ended { verdict: Verdict::Rejected, problem, request: None };
        }
    };
    conversation.begin_exchange(&input.run_id, input.resume.as_deref().unwrap_or_default());
    let request = Json::parse(&input.to_json()).ok();
    let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone()).from_peer(peer);
    let stream = agent.run(input, RunContext::new().with_cancel(cancel));
    let delivery = Delivery::new(stream, pipeline);
    let (verdict, problem) = fold(agent, delivery, conversation, witness).await;
    Ended { verdict, problem, request }
}

/// Reads an input, has the conversation hold what it says, and makes it fit to be sent.
fn prepare(
    peer: PeerVersion,
    input: &Json,
    conversation: &mut Conversation,
    witness: &mut impl Witness,
) -> Result<RunAgentInput, Fault> {
    let reading = RunAgentInput::from_json_tolerant(input.as_str()).map_err(|e| Fault::from(&e))?;
    conversation.set_messages(reading.value.messages.clone());
    // A state that is read nests no deeper than a tree may.
    let state = reading.value.state.as_ref().and_then(|state| Value::try_from(state).ok());
    conversation.set_state(state.unwrap_or_else(|| Value::Object(Default::default())));
    let mut warnings = Vec::new();
    let mut outgoing = Outgoing::new().to_peer(peer);
    if let Some(now) = now() {
        outgoing = outgoing.at(now);
    }
    let ready = outgoing.prepare(reading, conversation.open_interrupts(), &mut warnings);
    warnings.iter().for_each(|warning| witness.warning(warning));
    ready
}

fn now() -> Option<Timestamp> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Timestamp::new(i64::try_from(since_epoch.as_millis()).ok()?)
}

async fn fold(
    agent: &Remote,
    mut delivery: Delivery,
    conversation: &mut Conversation,
    witness: &mut impl Witness,
) -> (Verdict, Option<Problem>) {
    let (mut applied, mut reported) = (Applied::default(), None);
    loop {
        let delivered = delivery.next().await;
        agent.take_warnings().iter().for_each(|warning| witness.warning(warning));
        let Some(delivered) = delivered else { break };
        let event = match delivered {
            Ok(Delivered::Event(event)) => event,
            Ok(Delivered::Warning(warning)) => {
                witness.warning(&warning);
                continue;
            }
            // A run that has ended can no longer be cancelled.
            Err(DeliveryError::Agent(AgentError::Cancelled)) if conversation.ending().is_some() => {
                break;
            }
            Err(error) => return (verdict(&error), Some(problem(&error))),
        };
        conversation.apply(&event, &mut applied);
        let seen = witness.event(&event, &applied.changes, conversation);
        applied.warnings.iter().for_each(|warning| witness.warning(warning));
        if let Err(error) = seen {
            return (Verdict::Cancelled, Some(Problem::output(&error)));
        }
        if let Event::RunError(error) = &event {
            reported = Some(Problem::reported(error));
        }
    }
    match conversation.end_exchange() {
        Ending::Completed => (Verdict::Completed, None),
        Ending::Interrupted => (Verdict::Interrupted, None),
        Ending::Cancelled => (Verdict::Cancelled, None),
        Ending::Failed => (Verdict::Failed, reported),
        // The rules have said so before.
        Ending::Truncated => (Verdict::Truncated, None),
    }
}

fn verdict(error: &DeliveryError) -> Verdict {
    match error.class() {
        "abort" => Verdict::Cancelled,
        "http" | "transport" => Verdict::NoStream,
        "truncated" => Verdict::Truncated,
        _ => Verdict::Rejected,
    }
}

fn problem(error: &DeliveryError) -> Problem {
    let agent = match error {
        DeliveryError::Fault(fault) => return Problem::fault(fault),
        DeliveryError::Agent(agent) => agent,
    };
    let hint = match agent {
        AgentError::Connect { .. } => Some("is the agent running, and is that its address?"),
        AgentError::Status { status: 401 | 403, .. } => {
            Some("credentials go into a header: --header \"Authorization: Bearer ...\"")
        }
        AgentError::Status { status: 404 | 405, .. } => {
            Some("the URL has to be the agent's own, such as http://127.0.0.1:4100/agents/demo")
        }
        _ => None,
    };
    let message = match agent {
        AgentError::Cancelled => "the run was stopped from here".into(),
        _ => chain(agent),
    };
    Problem {
        class: error.class().into(),
        message,
        path: error.path().into(),
        code: None,
        hint: hint.map(Into::into),
    }
}
