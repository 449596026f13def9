//! A run from its first event to its last: numbered, written, and only then shown.
//!
//! What an agent sends is held to the rules of order once, where it enters the log: the journal
//! verifies what it is given and refuses what breaks a rule. On the way there retired shapes are
//! translated, what is not recognised is stripped, and chunks are expanded.

pub(crate) mod ending;
pub(crate) mod going;
mod requested;
pub(crate) mod unended;

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agui_agent::panic::caught;
use agui_agent::{
    Agent, AgentError, CancellationToken, Delivered, Delivery, DeliveryError, RunContext,
};
use agui_journal::{Batch, Journal, JournalError, Lease, Stop};
use agui_server::{WarningLog, detail, sentence};
use agui_stream::Pipeline;
use agui_types::event::RunError;
use agui_types::{Event, RunAgentInput};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::codes;
use crate::debug::DebugFeed;
use ending::Why;
use going::Earlier;
use requested::{Requested, Taken};
use unended::Unended;

/// One run, ready to go.
pub(crate) struct Job {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) lease: Lease,
    /// How often the lease has to be renewed at least.
    pub(crate) lease_for: Duration,
    pub(crate) agent_id: String,
    pub(crate) agent: Arc<dyn Agent>,
    pub(crate) input: RunAgentInput,
    pub(crate) context: RunContext,
    /// The runs of the thread that may not be gone yet: their agents are, before this one begins.
    pub(crate) earlier: Earlier,
    pub(crate) unended: Unended,
    pub(crate) limits: RunLimits,
    /// Cancelled when the process is to end.
    pub(crate) closing: CancellationToken,
    pub(crate) debug: DebugFeed,
}

/// How much a run may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunLimits {
    /// How long it may take.
    pub(crate) deadline: Option<Duration>,
    /// How many events its agent may send.
    pub(crate) events: u64,
    /// How many bytes of JSON text they may be.
    pub(crate) bytes: u64,
}

/// How long an agent that was told to stop may take to end its run itself.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// How long is waited for another run behind one that the agent has not called as it was asked to.
const NEXT_RUN: Duration = Duration::from_secs(1);

/// How long is waited until the agent of an earlier run on the thread is gone. It is dropped at
/// once; only one that blocks its thread takes longer, and nothing can end that.
const GONE: Duration = Duration::from_secs(5);

/// How many events are written at once, at most.
const BATCH: usize = 128;

impl Job {
    /// Runs it to its end. Whatever the agent does, the log gets one terminal event, as long as the
    /// log can be written at all.
    pub(crate) async fn run(self) {
        let Self {
            journal,
            lease,
            lease_for,
            agent_id,
            agent,
            input,
            context,
            earlier,
            unended,
            limits,
            closing,
            debug,
        } = self;
        let cancel = context.cancel.clone();
        let mut record = Record {
            runs: Requested::new(input.run_id.clone()),
            left: limits,
            limits,
            journal: Arc::clone(&journal),
            lease: lease.clone(),
            agent: agent_id,
            unended,
            debug,
        };
        let pipeline = Pipeline::for_run(input.thread_id.clone(), input.run_id.clone());
        let started = caught(|| Delivery::new(agent.run(input, context), pipeline.unverified()));
        let mut stream = match started {
            Ok(stream) => stream,
            Err(panic) => return record.end(panicked(&panic)).await,
        };
        let mut warnings = WarningLog::about("the agent's stream");
        let mut stopped = journal.stopped(&lease);
        let mut earlier = Box::pin(tokio::time::timeout(GONE, earlier.gone()));
        let (mut waiting, mut stopping) = (true, false);
        let mut end_at = limits.deadline.map(|deadline| Instant::now() + deadline);
        let mut held_until = None;
        let mut renew_at = Instant::now() + lease_for / 3;
        let outcome = loop {
            tokio::select! {
                biased;
                stop = &mut stopped, if !stopping => match stop {
                    Stop::Requested => {
                        stopping = true;
                        cancel.cancel();
                        end_at = Some(Instant::now() + STOP_GRACE);
                    }
                    _ => break Outcome::LeaseLost,
                },
                () = closing.cancelled(), if !stopping => {
                    stopping = true;
                    cancel.cancel();
                    end_at = Some(Instant::now() + STOP_GRACE);
                }
                () = until(end_at) => break Outcome::End(if stopping {
                    Why::Stopped
                } else {
                    let message = "the run took longer than it may".into();
                    Why::Failed { code: codes::DEADLINE_EXCEEDED, message }
                }),
                () = until(held_until) => break Outcome::End(incomplete()),
                () = sleep_until(renew_at) => {
                    renew_at = Instant::now() + lease_for / 3;
                    match journal.renew(&lease).await {
                        Err(JournalError::LeaseLost { .. }) => break Outcome::LeaseLost,
                        Err(error) => tracing::error!(%error, "a lease could not be renewed"),
                        Ok(()) => {}
                    }
                }
                gone = &mut earlier, if waiting => {
                    waiting = false;
                    if gone.is_err() {
                        tracing::error!("an earlier run's agent on this thread does not end");
                    }
                }
                batch = next_batch(&mut stream, &mut warnings), if !waiting => {
                    renew_at = Instant::now() + lease_for / 3;
                    if let Err(outcome) = record.take(batch, stopping).await {
                        break outcome;
                    }
                    held_until = record.runs.is_held().then(|| Instant::now() + NEXT_RUN);
                }
            }
        };
        // The agent goes first: nothing of it may run on once its run has ended.
        cancel.cancel();
        if let Err(panic) = caught(move || drop(stream)) {
            tracing::error!(panic, "the agent panicked while it was dropped");
        }
        match outcome {
            Outcome::Last(batch) => record.finish(batch).await,
            Outcome::End(why) => record.end(why).await,
            Outcome::LeaseLost => tracing::info!(run = %lease.run(), "a run lost its lease"),
        }
    }
}

/// Why the events of an agent are not read on.
enum Outcome {
    /// Its run ends with the last of these.
    Last(Batch),
    /// Its run is to be ended.
    End(Why),
    /// Its run was ended by somebody else.
    LeaseLost,
}

/// What has been written of a run.
struct Record {
    runs: Requested,
    limits: RunLimits,
    /// What the agent may still send.
    left: RunLimits,
    journal: Arc<dyn Journal>,
    lease: Lease,
    agent: String,
    unended: Unended,
    debug: DebugFeed,
}

/// What an agent gave at once: events, and how its stream ended if it did.
struct Given {
    events: Vec<Event>,
    end: Option<Why>,
}

/// The next events: one is waited for, and what is ready behind it comes along.
async fn next_batch(stream: &mut Delivery, log: &mut WarningLog) -> Given {
    let mut batch = Given { events: Vec::new(), end: None };
    loop {
        let next = poll_fn(|cx| match caught(|| stream.poll_next_unpin(cx)) {
            Ok(next) => next.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        });
        let next = if batch.events.is_empty() {
            next.await
        } else {
            match next.now_or_never() {
                Some(next) => next,
                None => return batch,
            }
        };
        match next {
            Ok(Some(Ok(Delivered::Event(event)))) => {
                let terminal = event.is_terminal();
                batch.events.push(event);
                if terminal || batch.events.len() == BATCH {
                    return batch;
                }
                continue;
            }
            Ok(Some(Ok(Delivered::Warning(warning)))) => {
                log.take([warning]);
                continue;
            }
            Ok(Some(Err(error))) => batch.end = Some(failed(&error)),
            Ok(None) => batch.end = Some(incomplete()),
            Err(panic) => batch.end = Some(panicked(&panic)),
        }
        return batch;
    }
}

impl Record {
    /// Writes what an agent gave, but for what ends the run.
    async fn take(&mut self, given: Given, stopping: bool) -> Result<(), Outcome> {
        let Given { events, end } = given;
        let mut batch = Batch::default();
        for event in events {
            match self.runs.take(event) {
                Taken::Event(event) => self.put(event, &mut batch).await?,
                Taken::Next(events) => {
                    for event in events {
                        self.put(event, &mut batch).await?;
                    }
                }
                Taken::Last(event) if stopping => return Err(self.stopped(event, batch).await?),
                Taken::Last(event) => {
                    self.put(event, &mut batch).await?;
                    return Err(Outcome::Last(batch));
                }
                Taken::Held => {}
                Taken::Over(event) => {
                    tracing::warn!("the agent sent something behind the end of its run (P-3)");
                    batch.push(event);
                    return Err(Outcome::Last(batch));
                }
                Taken::Broken(why) => {
                    self.write(batch).await?;
                    return Err(Outcome::End(rule_broken(&why)));
                }
            }
        }
        self.write(batch).await?;
        match end {
            // An agent that breaks off because it was told to did as it was told.
            Some(Why::Failed { code, .. }) if stopping && code == codes::INCOMPLETE_STREAM => {
                Err(Outcome::End(Why::Stopped))
            }
            Some(why) => Err(Outcome::End(why)),
            None => Ok(()),
        }
    }

    /// Adds an event to a batch, unless the run would be larger than it may.
    async fn put(&mut self, event: Event, batch: &mut Batch) -> Result<(), Outcome> {
        let bytes = batch.push(event);
        if self.left.events > 0 && bytes <= self.left.bytes {
            self.left.events -= 1;
            self.left.bytes -= bytes;
            return Ok(());
        }
        batch.pop();
        self.write(std::mem::take(batch)).await?;
        let RunLimits { events, bytes, .. } = self.limits;
        let message = if self.left.events == 0 {
            format!("the agent sent more than {events} events in one run")
        } else {
            format!("the agent sent more than {bytes} bytes of events in one run")
        };
        tracing::error!("{message}");
        Err(Outcome::End(Why::Failed { code: codes::RUN_TOO_LARGE, message }))
    }

    /// The end of a run that was asked to stop. An agent that fails because it was stopped was stopped
    /// (P-11); the log answers its calls, so that nobody carries them out afterwards.
    async fn stopped(&mut self, last: Event, batch: Batch) -> Result<Outcome, Outcome> {
        self.write(batch).await?;
        Ok(match last {
            Event::RunFinished(finished) => {
                Outcome::Last(Batch::new(vec![ending::cancelled(*finished)]))
            }
            _ => Outcome::End(Why::Stopped),
        })
    }

    /// Ends the run on the agent's behalf.
    async fn end(&mut self, why: Why) {
        let last = match (self.runs.held(), &why) {
            // It had ended, as far as its agent knew.
            (Some(Event::RunFinished(finished)), Why::Stopped) => ending::cancelled(*finished),
            (Some(held), Why::Failed { .. }) => held,
            (_, why) => ending::end(&self.lease, why),
        };
        match self.last(Batch::new(vec![last.clone()])).await {
            Ok(()) => {}
            Err(JournalError::Rule { fault, .. }) => {
                tracing::error!(%fault, "the log does not take the end of a run");
                self.least(last).await;
            }
            Err(error) => self.unwritten(&error).await,
        }
    }

    /// Ends the run as its agent did, if that is an end.
    async fn finish(&mut self, batch: Batch) {
        match self.last(batch).await {
            Ok(()) => {}
            Err(JournalError::Rule { fault, .. }) => {
                self.end(rule_broken(&fault.to_string())).await;
            }
            Err(error) => self.unwritten(&error).await,
        }
    }

    /// Says that the run could not be recorded, which is the least there is to say.
    async fn unwritten(&mut self, error: &JournalError) {
        let Why::Failed { code, message } = not_written(error) else { return };
        self.least(RunError::new(message).code(code).into()).await;
    }

    /// Tries to end the run for the last time. If that fails too its lease is given back, so that
    /// whoever looks next ends the run, and its viewers are told.
    async fn least(&mut self, last: Event) {
        let Err(error) = self.last(Batch::new(vec![last])).await else { return };
        tracing::error!(%error, run = %self.lease.run(), "a run could not be ended");
        let thread = self.lease.thread();
        // In this order: once the lease is given back another run may begin, and takes the mark away.
        self.unended.mark(thread);
        match self.journal.release(&self.lease).await {
            Ok(()) => {}
            Err(JournalError::LeaseLost { .. }) => self.unended.clear(thread),
            Err(error) => tracing::error!(%error, "a lease could not be given back"),
        }
    }

    async fn write(&mut self, batch: Batch) -> Result<(), Outcome> {
        if batch.is_empty() {
            return Ok(());
        }
        let shown = self.shown(&batch);
        let written = self.journal.append_batch(&self.lease, batch).await;
        self.show(&written, &shown);
        match written {
            Ok(_) => Ok(()),
            Err(JournalError::LeaseLost { .. }) => Err(Outcome::LeaseLost),
            Err(JournalError::Rule { fault, .. }) => {
                Err(Outcome::End(rule_broken(&fault.to_string())))
            }
            Err(error) => Err(Outcome::End(not_written(&error))),
        }
    }

    /// Writes the end of the run. That the lease is lost is no failure: then somebody else has.
    async fn last(&mut self, batch: Batch) -> Result<(), JournalError> {
        let shown = self.shown(&batch);
        let written = self.journal.finish_batch(&self.lease, batch).await;
        self.show(&written, &shown);
        match written {
            Ok(_) => Ok(()),
            Err(JournalError::LeaseLost { .. }) => {
                tracing::info!(run = %self.lease.run(), "a run lost its lease before its end");
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Shows developers what the log has taken of a batch.
    fn show(&self, written: &Result<u64, JournalError>, shown: &[Bytes]) {
        let taken = match written {
            Ok(_) => usize::MAX,
            Err(JournalError::Rule { accepted, .. }) => *accepted,
            Err(_) => 0,
        };
        self.debug.show(&self.agent, &self.lease, &shown[..shown.len().min(taken)]);
    }

    /// What developers are shown of a batch, where any watch.
    fn shown(&self, batch: &Batch) -> Vec<Bytes> {
        if self.debug.is_watched() { batch.texts().cloned().collect() } else { Vec::new() }
    }
}

/// Waits for a moment; forever, where there is none.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

fn failed(error: &DeliveryError) -> Why {
    match error {
        DeliveryError::Agent(error) => {
            let message = sentence(error).into_owned();
            // Somebody asked for it.
            if !matches!(error, AgentError::Cancelled) {
                tracing::error!(class = error.class(), detail = detail(error), "{message}");
            }
            Why::Failed { code: codes::INCOMPLETE_STREAM, message }
        }
        DeliveryError::Fault(fault) if fault.class == agui_stream::Class::Truncated => incomplete(),
        DeliveryError::Fault(fault) => rule_broken(&fault.to_string()),
    }
}

fn incomplete() -> Why {
    let message = "the agent stopped before its run had ended".into();
    Why::Failed { code: codes::INCOMPLETE_STREAM, message }
}

fn rule_broken(fault: &str) -> Why {
    tracing::error!(fault, "the agent broke a rule of the protocol");
    let message = format!("the agent broke a rule of the protocol: {fault}");
    Why::Failed { code: codes::RULE_BROKEN, message }
}

fn panicked(panic: &str) -> Why {
    tracing::error!(panic, "the agent panicked");
    Why::Failed { code: codes::AGENT_PANIC, message: "the agent panicked".into() }
}

fn not_written(error: &JournalError) -> Why {
    tracing::error!(%error, "events could not be written");
    let message = "the run could not be recorded".into();
    Why::Failed { code: codes::NOT_RECORDED, message }
}
