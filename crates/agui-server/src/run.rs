//! The events of one run as they go out: checked, and ended whatever happens to the agent.

use std::any::Any;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll};

use agui_agent::{Agent, AgentError, EventStream, RunContext};
use agui_stream::{Fault, RunState, Verifier};
use agui_types::event::{RunError, RunFinished, SubagentError};
use agui_types::{CancelledOutcome, Event, Reading, RunAgentInput};

use crate::codes;

/// An agent's stream, behind the rules of the protocol.
///
/// What comes out keeps the rules: each event was verified, and every run that was started has its
/// terminal event. Where the agent's stream fails, panics, stops early or breaks a rule, it is
/// dropped, what it left open is closed, and one `RUN_ERROR` follows (T-20).
pub(crate) struct GuardedRun {
    /// `None` once nothing more can come from it.
    agent: Option<EventStream>,
    verifier: Verifier,
    /// What is to go out before the agent is asked again.
    ready: VecDeque<Event>,
}

/// Why a run is ended by this crate.
struct Failure {
    code: &'static str,
    message: Cow<'static, str>,
}

impl GuardedRun {
    /// Starts a run; the agent is polled with [`poll_event`](Self::poll_event) and dropped with
    /// this.
    pub(crate) fn start(agent: &dyn Agent, input: RunAgentInput) -> Self {
        let verifier = Verifier::for_run(input.thread_id.clone(), input.run_id.clone());
        let mut run = Self {
            agent: None,
            verifier,
            ready: VecDeque::new(),
        };
        match catch_unwind(AssertUnwindSafe(|| agent.run(input, RunContext::new()))) {
            Ok(stream) => run.agent = Some(stream),
            Err(panic) => run.fail(panicked(&*panic)),
        }
        run
    }

    /// The next event, or `None` when the stream is over; then again `None`.
    pub(crate) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(event));
            }
            let Some(agent) = &mut self.agent else {
                return Poll::Ready(None);
            };
            match catch_unwind(AssertUnwindSafe(|| agent.as_mut().poll_next(cx))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(Some(Ok(reading)))) => self.take(reading),
                Ok(Poll::Ready(Some(Err(error)))) => self.broke_off(&error),
                Ok(Poll::Ready(None)) => self.stopped(),
                Err(panic) => self.fail(panicked(&*panic)),
            }
        }
    }

    fn take(&mut self, reading: Reading<Event>) {
        let event = reading.value;
        match self.verifier.push(&event) {
            Ok(()) => self.ready.push_back(event),
            Err(fault) => self.fail(rule_broken(&fault)),
        }
    }

    /// The agent's stream ended.
    fn stopped(&mut self) {
        match self.verifier.finish() {
            Ok(()) => self.drop_agent(),
            Err(fault) => {
                tracing::error!(%fault, "the agent's stream was cut short");
                let message = "the agent stopped before its run had ended".into();
                self.fail(Failure {
                    code: codes::RUN_TRUNCATED,
                    message,
                });
            }
        }
    }

    /// The agent's stream yielded an error.
    fn broke_off(&mut self, error: &AgentError) {
        let (class, detail) = (error.class(), detail(error));
        tracing::error!(class, detail, "the agent's stream broke off");
        match (error, self.verifier.run()) {
            // P-11: a run that was stopped on purpose did not fail.
            (AgentError::Cancelled, RunState::Active { thread_id, run_id }) => {
                self.ready.extend(self.verifier.closing_events());
                let cancelled =
                    RunFinished::new(thread_id, run_id).outcome(CancelledOutcome::new());
                self.ready.push_back(cancelled.into());
                self.drop_agent();
            }
            _ => self.fail(Failure {
                code: codes::AGENT_FAILED,
                message: sentence(error),
            }),
        }
    }

    /// Ends the run, unless it has ended already: a run has one terminal event.
    fn fail(&mut self, Failure { code, message }: Failure) {
        self.drop_agent();
        if matches!(self.verifier.run(), RunState::Finished | RunState::Failed) {
            tracing::warn!(code, "the agent failed after its run had ended");
            return;
        }
        // A subagent that was cut off did not finish, it failed.
        self.ready
            .extend(self.verifier.closing_events().into_iter().map(|event| {
                match event {
                    Event::SubagentFinished(ended) => {
                        SubagentError::new(ended.subagent_run_id, &*message)
                            .code(code)
                            .into()
                    }
                    other => other,
                }
            }));
        self.ready
            .push_back(RunError::new(message).code(code).into());
    }

    fn drop_agent(&mut self) {
        let agent = self.agent.take();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| drop(agent))) {
            let panic = panic_text(&*panic);
            tracing::error!(panic, "the agent's stream panicked while it was dropped");
        }
    }
}

impl Drop for GuardedRun {
    fn drop(&mut self) {
        self.drop_agent();
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Failure {
    tracing::error!(panic = panic_text(panic), "the agent's stream panicked");
    Failure {
        code: codes::AGENT_PANIC,
        message: "the agent panicked".into(),
    }
}

fn rule_broken(fault: &Fault) -> Failure {
    tracing::error!(%fault, fix = %fault.fix, "the agent broke a rule of the protocol");
    let message = format!("the agent broke a rule of the protocol: {fault}").into();
    Failure {
        code: codes::RULE_BROKEN,
        message,
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}

/// What whoever started the run is told about an error. What a remote agent answers is passed on
/// (a client has to learn that its token expired); where that agent is, and what its stream held,
/// is not.
fn sentence(error: &AgentError) -> Cow<'static, str> {
    /// How much of a remote agent's refusal is passed on, in characters.
    const MOST: usize = 500;
    match error {
        AgentError::Connect { .. } => "the agent cannot be reached".into(),
        AgentError::Status { .. } => {
            let answer: String = error.to_string().chars().take(MOST).collect();
            format!("the agent refused the run: {answer}").into()
        }
        AgentError::Transport { .. } => "the connection to the agent failed".into(),
        AgentError::Cancelled => "the run was cancelled".into(),
        _ => "the agent's answer cannot be read".into(),
    }
}

/// What the log is told about an error: where it happened and why, without the contents of a stream
/// or an answer.
fn detail(error: &AgentError) -> String {
    match error {
        AgentError::Status { status, .. } => format!("HTTP {status}"),
        AgentError::Decode {
            index,
            offset,
            source,
            ..
        } => {
            let (path, expected) = (source.path(), source.expected());
            format!("event {index} at byte {offset}{path}: expected {expected}")
        }
        other => {
            let mut detail = other.to_string();
            let mut cause = other.source();
            while let Some(error) = cause {
                detail.push_str(": ");
                detail.push_str(&error.to_string());
                cause = error.source();
            }
            detail
        }
    }
}
