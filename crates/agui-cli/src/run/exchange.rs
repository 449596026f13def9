//! One run, from its input to what it comes to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agui_agent::runtime::RuntimeError;
use agui_agent::{AgentError, CancellationToken, Delivered, Delivery, DeliveryError, RunContext};
use agui_stream::fold::{Applied, Change, Conversation};
use agui_stream::{Ending, Fault, Outgoing, PeerVersion, Pipeline, Warning};
use agui_types::json::Value;
use agui_types::{Event, FromJson, Json, RunAgentInput, Timestamp, ToJson};
use agui_wire::{DecodeErrorKind, Limit, LimitExceeded};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::remote::Remote;
use super::report::{Problem, Verdict};
use super::warnings::Warnings;
use crate::failure::chain;

/// Sees what a run delivers, in order.
pub(super) trait Witness {
    /// An event, with what it changed in the conversation.
    fn event(&mut self, event: &Event, changes: &[Change], conversation: &Conversation);

    /// Something of the stream that was dropped, stripped, translated or could not be applied.
    fn warning(&mut self, warning: &Warning);

    /// Something of the input that is not sent as it was given.
    fn input_warning(&mut self, warning: &Warning);

    /// There were more warnings of the stream, which nobody kept.
    fn omitted(&mut self, count: u64);

    /// Waits until what was seen is on its way to whoever reads it.
    async fn settle(&mut self);
}

/// How a run ended, beside what the conversation holds.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) verdict: Verdict,
    pub(super) problem: Option<Problem>,
    /// The body that was sent; `None` where nothing was.
    pub(super) request: Option<Json>,
    /// The status that the request was refused with.
    pub(super) refused: Option<u16>,
}

impl Ended {
    /// It ended with this error before anything was asked.
    pub(super) fn without_request(error: &DeliveryError) -> Self {
        let (verdict, problem) = (verdict(error), Some(problem(error)));
        Self { verdict, problem, request: None, refused: None }
    }
}

/// How to talk to an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// What is known of the agent's age.
    pub(super) peer: PeerVersion,
    /// How long a stream may stay open once its last run has ended (T-18).
    pub(super) linger: Duration,
}

/// Judges an input, runs the agent on it, and folds what it delivers into the conversation, whose
/// messages and state become the input's first. Everything before a fault is folded and seen before
/// it (C-12).
///
/// `cancel` closes the connection.
pub(super) async fn converse(
    agent: &Remote,
    manner: Manner,
    input: &Json,
    conversation: &mut Conversation,
    cancel: CancellationToken,
    witness: &mut impl Witness,
) -> Ended {
    let peer = manner.peer;
    let input = match prepare(peer, input, conversation, witness) {
        Ok(input) => input,
        Err(fault) => {
            let problem = Some(Problem::fault(&fault));
            return Ended { verdict: Verdict::Rejected, problem, request: None, refused: None };
        }
    };
    witness.settle().await;
    conversation.begin_exchange(&input.run_id, input.resume.as_deref().unwrap_or_default());
    let request = Json::parse(&input.to_json()).ok();
    let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone()).from_peer(peer);
    let stream = agent.run(input, RunContext::new().with_cancel(cancel.clone()));
    let delivery = Delivery::new(stream, pipeline);
    let folded = fold(agent, delivery, manner.linger, conversation, &cancel, witness).await;
    match folded {
        Ok((verdict, problem)) => Ended { verdict, problem, request, refused: None },
        Err(error) => {
            let refused = match &error {
                DeliveryError::Agent(AgentError::Status { status, .. }) => Some(*status),
                _ => None,
            };
            Ended { request, refused, ..Ended::without_request(&error) }
        }
    }
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
    warnings.iter().for_each(|warning| witness.input_warning(warning));
    ready
}

fn now() -> Option<Timestamp> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Timestamp::new(i64::try_from(since_epoch.as_millis()).ok()?)
}

async fn fold(
    agent: &Remote,
    mut delivery: Delivery,
    linger: Duration,
    conversation: &mut Conversation,
    cancel: &CancellationToken,
    witness: &mut impl Witness,
) -> Result<(Verdict, Option<Problem>), DeliveryError> {
    let (mut applied, mut reported) = (Applied::default(), None);
    // When a stream is closed from here, once its last run has ended.
    let mut open_until = None;
    loop {
        witness.settle().await;
        let delivered = next(&mut delivery, open_until, cancel).await;
        tell(&agent.take_warnings(), witness);
        let event = match delivered {
            Next::Delivered(Delivered::Event(event)) => event,
            Next::Delivered(Delivered::Warning(warning)) => {
                witness.warning(&warning);
                continue;
            }
            Next::End => break,
            Next::LeftOpen => {
                witness.warning(&left_open(linger));
                break;
            }
            // A run that has ended can no longer be cancelled.
            Next::Failed(DeliveryError::Agent(AgentError::Cancelled))
                if conversation.ending().is_some() =>
            {
                break;
            }
            Next::Failed(error) => return Err(error),
        };
        conversation.apply(&event, &mut applied);
        witness.event(&event, &applied.changes, conversation);
        applied.warnings.iter().for_each(|warning| witness.warning(warning));
        if let Event::RunError(error) = &event {
            reported = Some(Problem::reported(error));
        }
        open_until = match conversation.ending() {
            Some(_) => open_until.or_else(|| Instant::now().checked_add(linger)),
            None => None,
        };
    }
    Ok(match conversation.end_exchange() {
        Ending::Completed => (Verdict::Completed, None),
        Ending::Interrupted => (Verdict::Interrupted, None),
        Ending::Cancelled => (Verdict::Cancelled, None),
        Ending::Failed => (Verdict::Failed, reported),
        // The rules have said so before.
        Ending::Truncated => (Verdict::Truncated, None),
    })
}

/// What comes next of a stream.
enum Next {
    Delivered(Delivered),
    Failed(DeliveryError),
    End,
    /// The stream was still open when it should not have been any more.
    LeftOpen,
}

async fn next(
    delivery: &mut Delivery,
    open_until: Option<Instant>,
    cancel: &CancellationToken,
) -> Next {
    // Before what is ready: however much an agent sends, it can be stopped.
    if cancel.is_cancelled() {
        return Next::Failed(AgentError::Cancelled.into());
    }
    let delivered = match open_until {
        Some(until) if until <= Instant::now() => return Next::LeftOpen,
        Some(until) => match timeout_at(until, delivery.next()).await {
            Ok(delivered) => delivered,
            Err(_) => return Next::LeftOpen,
        },
        None => delivery.next().await,
    };
    match delivered {
        Some(Ok(delivered)) => Next::Delivered(delivered),
        Some(Err(error)) => Next::Failed(error),
        None => Next::End,
    }
}

fn tell(warnings: &Warnings, witness: &mut impl Witness) {
    warnings.kept().iter().for_each(|warning| witness.warning(warning));
    witness.omitted(warnings.omitted());
}

#[cold]
fn left_open(linger: Duration) -> Warning {
    let message = format!(
        "the agent left the stream open after its last run had ended; it was closed from here after \
         {} seconds (--linger)",
        linger.as_secs_f64()
    );
    Warning { rule: "T-18", event: None, path: String::new(), message }
}

fn verdict(error: &DeliveryError) -> Verdict {
    if let DeliveryError::Agent(AgentError::Decode(error)) = error
        && error.kind() == DecodeErrorKind::TruncatedFrame
    {
        // Also where the class is that of the text which was cut.
        return Verdict::Truncated;
    }
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
        AgentError::Status { status: 400 | 404 | 405, .. } => Some(
            "the URL has to be the agent's own, such as http://127.0.0.1:4100/agents/demo, or that \
             of a CopilotKit runtime, which --runtime says",
        ),
        AgentError::Runtime(error) => of_runtime(error),
        AgentError::Redirect { .. } => Some("give the URL that it leads to, if you trust it"),
        AgentError::NoAnswer { .. } => Some("is it an HTTP server that listens there?"),
        AgentError::Decode(error) if error.kind() == DecodeErrorKind::TruncatedFrame => {
            Some("the agent, or a proxy before it, ended the answer in the middle of an event")
        }
        _ => None,
    };
    let message = match agent {
        AgentError::Cancelled => "the run was stopped from here".into(),
        AgentError::Decode(error) => match error.limit() {
            // Who reads this cannot raise it.
            Some(passed) => format!("{error}: {}", limit(passed)),
            None => chain(error),
        },
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

/// What to do about what a runtime does not do.
fn of_runtime(error: &RuntimeError) -> Option<&'static str> {
    match error {
        RuntimeError::Busy { .. } => Some("wait for the end of the run, or stop it"),
        RuntimeError::UnknownAgent { .. } => {
            Some("--agent names one of the runtime's agents, which its /info lists")
        }
        RuntimeError::Discovery(_) => Some(
            "the URL has to be the runtime's own, such as http://127.0.0.1:4100/api/copilotkit; \
             without --runtime and --agent it is that of an agent",
        ),
        _ => None,
    }
}

/// A limit in words.
fn limit(passed: &LimitExceeded) -> String {
    let (max, what) = match passed.limit {
        Limit::ListItems => (passed.max, "elements in the lists of a frame"),
        Limit::FrameBytes => (passed.max, "bytes in a frame"),
        Limit::CommentBytes => (passed.max, "bytes in a comment"),
        Limit::IdBytes => (passed.max, "bytes in an id"),
        Limit::EventBytes => (passed.max, "bytes in an event name"),
        _ => (passed.max, "bytes in a line"),
    };
    format!("there are more than {max} {what}, and agui run takes no more")
}
