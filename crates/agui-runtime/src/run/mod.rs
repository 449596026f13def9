//! A run from its first event to its last: numbered, written, and only then shown.

pub(crate) mod ending;

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use agui_agent::panic::caught;
use agui_agent::{
    Agent, CancellationToken, Delivered, Delivery, DeliveryError, RunContext, deliver,
};
use agui_journal::{Journal, JournalError, Lease, Stop};
use agui_server::{WarningLog, detail, sentence};
use agui_stream::{RunState, Verifier};
use agui_types::event::{RunError, RunStarted};
use agui_types::{Event, RunAgentInput};
use futures_util::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::codes;
use crate::debug::DebugFeed;
use ending::{Unanswered, Why};

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
    /// How long the run may take.
    pub(crate) deadline: Option<Duration>,
    /// Cancelled when the process is to end.
    pub(crate) closing: CancellationToken,
    pub(crate) debug: DebugFeed,
}

/// How long an agent that was told to stop may take to end its run itself.
const STOP_GRACE: Duration = Duration::from_millis(500);

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
            deadline,
            closing,
            debug,
        } = self;
        let cancel = context.cancel.clone();
        let mut record = Record {
            verifier: Verifier::for_run(input.thread_id.clone(), input.run_id.clone()),
            unanswered: Unanswered::default(),
            started: RunStarted::new(input.thread_id.clone(), input.run_id.clone()),
            journal: Arc::clone(&journal),
            lease: lease.clone(),
            agent: agent_id,
            debug,
        };
        let mut stream = match caught(|| deliver(&*agent, input, context)) {
            Ok(stream) => Some(stream),
            Err(panic) => {
                record.end(panicked(&panic)).await;
                return;
            }
        };
        let mut warnings = WarningLog::about("the agent's stream");
        let mut stopped = journal.stopped(&lease);
        let mut stopping = false;
        let mut end_at = deadline.map(|deadline| Instant::now() + deadline);
        let mut renew_at = Instant::now() + lease_for / 3;
        let outcome = loop {
            let Some(running) = &mut stream else { break Outcome::Over };
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
                () = sleep_until(renew_at) => {
                    renew_at = Instant::now() + lease_for / 3;
                    match journal.renew(&lease).await {
                        Err(JournalError::LeaseLost { .. }) => break Outcome::LeaseLost,
                        Err(error) => tracing::error!(%error, "a lease could not be renewed"),
                        Ok(()) => {}
                    }
                }
                batch = next_batch(running, &mut warnings) => {
                    renew_at = Instant::now() + lease_for / 3;
                    match record.take(batch, stopping).await {
                        Ok(true) => {}
                        Ok(false) => break Outcome::Over,
                        Err(outcome) => break outcome,
                    }
                }
            }
        };
        // The agent goes first: nothing of it may run on once its run has ended.
        cancel.cancel();
        if let Err(panic) = caught(|| drop(stream.take())) {
            tracing::error!(panic, "the agent panicked while it was dropped");
        }
        match outcome {
            Outcome::Over => {}
            Outcome::End(why) => record.end(why).await,
            Outcome::LeaseLost => tracing::info!(run = %lease.run(), "a run lost its lease"),
        }
    }
}

/// Why the events of an agent are not read on.
enum Outcome {
    /// Its run has ended.
    Over,
    /// Its run is to be ended.
    End(Why),
    /// Its run was ended by somebody else.
    LeaseLost,
}

/// What has been written of a run.
struct Record {
    verifier: Verifier,
    unanswered: Unanswered,
    /// What a run begins with whose agent never began it.
    started: RunStarted,
    journal: Arc<dyn Journal>,
    lease: Lease,
    agent: String,
    debug: DebugFeed,
}

/// What an agent gave at once: events, and how its stream ended if it did.
struct Batch {
    events: Vec<Event>,
    end: Option<Why>,
}

/// The next events: one is waited for, and what is ready behind it comes along.
async fn next_batch(stream: &mut Delivery, log: &mut WarningLog) -> Batch {
    let mut batch = Batch { events: Vec::new(), end: None };
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
            Ok(None) => {
                let message = "the agent stopped before its run had ended".into();
                batch.end = Some(Why::Failed { code: codes::INCOMPLETE_STREAM, message });
            }
            Err(panic) => batch.end = Some(panicked(&panic)),
        }
        return batch;
    }
}

impl Record {
    /// Writes what an agent gave. `true` where the run goes on, `false` where it has ended.
    async fn take(&mut self, batch: Batch, stopping: bool) -> Result<bool, Outcome> {
        let Batch { events, end } = batch;
        let mut ready = Vec::with_capacity(events.len());
        let mut terminal = false;
        for event in events {
            let event = self.as_ours(event);
            terminal = event.is_terminal();
            if terminal {
                for event in self.settle(&event, stopping) {
                    // Made for this very state.
                    let _ = self.verifier.try_push(&event);
                    ready.push(event);
                }
            }
            if let Err(fault) = self.verifier.try_push(&event) {
                // What came before it was sound.
                self.write(ready).await?;
                return Err(Outcome::End(rule_broken(&fault.to_string())));
            }
            self.unanswered.see(&event);
            ready.push(event);
        }
        if terminal {
            self.finish(ready).await;
            return Ok(false);
        }
        self.write(ready).await?;
        match end {
            // An agent that breaks off because it was told to did as it was told.
            Some(Why::Failed { code, .. }) if stopping && code == codes::INCOMPLETE_STREAM => {
                Err(Outcome::End(Why::Stopped))
            }
            Some(why) => Err(Outcome::End(why)),
            None => Ok(true),
        }
    }

    /// The run is called what it was asked for, whatever its agent calls it: front ends and the log
    /// find it by that name.
    fn as_ours(&self, mut event: Event) -> Event {
        match &mut event {
            Event::RunStarted(started) if started.run_id != self.started.run_id => {
                let (ours, theirs) = (&self.started.run_id, &started.run_id);
                tracing::warn!(%ours, %theirs, "the agent gave its run another id (P-5)");
                started.run_id = self.started.run_id.clone();
            }
            Event::RunFinished(finished) => finished.run_id = self.started.run_id.clone(),
            _ => {}
        }
        event
    }

    /// What has to come before a terminal event: an error leaves nothing open, so that a replay may
    /// go on behind it, and a stop leaves no call without an answer, so that nobody carries it out
    /// afterwards.
    fn settle(&self, terminal: &Event, stopping: bool) -> Vec<Event> {
        if !matches!(self.verifier.run(), RunState::Active { .. }) {
            return Vec::new();
        }
        match terminal {
            Event::RunError(_) => self.verifier.closing_events(),
            _ if stopping => ending::close(&self.verifier, &self.unanswered, &Why::Stopped),
            _ => Vec::new(),
        }
    }

    /// Ends the run on the agent's behalf.
    async fn end(&mut self, why: Why) {
        let events = ending::end(&self.verifier, &self.unanswered, &self.started, &why);
        if !events.is_empty() {
            self.finish(events).await;
        }
    }

    async fn write(&mut self, events: Vec<Event>) -> Result<(), Outcome> {
        if events.is_empty() {
            return Ok(());
        }
        let shown = self.debug.is_watched().then(|| events.clone());
        match self.journal.append(&self.lease, events).await {
            Ok(_) => {
                self.debug.show(&self.agent, &self.lease, shown.as_deref().unwrap_or_default());
                Ok(())
            }
            Err(JournalError::LeaseLost { .. }) => Err(Outcome::LeaseLost),
            Err(JournalError::Rule { fault, .. }) => {
                Err(Outcome::End(rule_broken(&fault.to_string())))
            }
            Err(error) => Err(Outcome::End(not_written(&error))),
        }
    }

    async fn finish(&mut self, events: Vec<Event>) {
        let shown = self.debug.is_watched().then(|| events.clone());
        let Err(error) = self.journal.finish(&self.lease, events).await else {
            self.debug.show(&self.agent, &self.lease, shown.as_deref().unwrap_or_default());
            return;
        };
        if matches!(error, JournalError::LeaseLost { .. }) {
            tracing::info!(run = %self.lease.run(), "a run lost its lease before its end");
            return;
        }
        // Once more with the least there is to say. If that fails too the lease lapses, and whoever
        // looks next ends the run.
        let Why::Failed { code, message } = not_written(&error) else { return };
        let last = RunError::new(message).code(code).into();
        if let Err(error) = self.journal.finish(&self.lease, vec![last]).await {
            tracing::error!(%error, run = %self.lease.run(), "a run could not be ended");
        }
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
            tracing::error!(class = error.class(), detail = detail(error), "{message}");
            Why::Failed { code: codes::INCOMPLETE_STREAM, message }
        }
        DeliveryError::Fault(fault) if fault.class == agui_stream::Class::Truncated => {
            let message = "the agent stopped before its run had ended".into();
            Why::Failed { code: codes::INCOMPLETE_STREAM, message }
        }
        DeliveryError::Fault(fault) => rule_broken(&fault.to_string()),
    }
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
