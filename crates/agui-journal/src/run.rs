//! Runs, and who may write them.

use std::time::Duration;

use agui_stream::Ending;
use agui_types::{RunAgentInput, RunId};

use crate::entry::Cursor;
use crate::thread::{Tenant, ThreadInfo, ThreadKey};

/// The run that somebody wants to begin.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NewRun {
    /// Whose thread it is.
    pub tenant: Tenant,
    /// The agent that runs.
    pub agent: String,
    /// Who the thread belongs to, should this run be its first. Later runs change nothing about
    /// that.
    pub owner: Option<String>,
    /// What the agent is asked, complete: thread, run, the whole history, state, tools.
    pub input: RunAgentInput,
    /// For how long the lease is good without being renewed. 30 seconds unless set.
    pub lease: Duration,
    /// What to do where the thread has a run. Unless set: refuse.
    pub busy: BusyPolicy,
}

impl NewRun {
    /// A run of this agent, for this input.
    #[must_use]
    pub fn new(tenant: Tenant, agent: impl Into<String>, input: RunAgentInput) -> Self {
        Self {
            tenant,
            agent: agent.into(),
            owner: None,
            input,
            lease: Duration::from_secs(30),
            busy: BusyPolicy::Refuse,
        }
    }

    /// Sets who the thread belongs to, should this run be its first.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets for how long the lease is good without being renewed.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets what to do where the thread has a run.
    #[must_use]
    pub fn busy(mut self, busy: BusyPolicy) -> Self {
        self.busy = busy;
        self
    }

    /// The thread it belongs to.
    #[must_use]
    pub fn thread(&self) -> ThreadKey {
        ThreadKey::new(self.tenant.clone(), self.input.thread_id.clone())
    }
}

/// What to do where the thread has a run already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyPolicy {
    /// Refuse the new one.
    #[default]
    Refuse,
    /// End the old one as cancelled, after closing what it has open, and take its place.
    Supersede,
}

/// The right to write one run, for as long as it is renewed. Whoever holds a copy may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    thread: ThreadKey,
    run: RunId,
    number: u64,
}

impl Lease {
    /// A lease, for journals. `number` tells the runs of a journal apart: run ids may come twice.
    #[must_use]
    pub fn new(thread: ThreadKey, run: RunId, number: u64) -> Self {
        Self { thread, run, number }
    }

    /// The thread.
    #[must_use]
    pub fn thread(&self) -> &ThreadKey {
        &self.thread
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The run's number, unique in its journal.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// A run that has begun.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Begun {
    /// The right to write it.
    pub lease: Lease,
    /// Before its first event: where its viewers read from.
    pub from: Cursor,
    /// The thread, this run counted.
    pub thread: ThreadInfo,
    /// The run that had to end for it: superseded, or abandoned by whoever ran it.
    pub ended: Option<EndedRun>,
}

impl Begun {
    /// A run that has begun, for journals.
    #[must_use]
    pub fn new(lease: Lease, from: Cursor, thread: ThreadInfo, ended: Option<EndedRun>) -> Self {
        Self { lease, from, thread, ended }
    }
}

/// A run that the journal itself has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndedRun {
    /// Its thread.
    pub thread: ThreadKey,
    /// The run.
    pub run: RunId,
    /// How it ended: cancelled where it was superseded, failed where its lease lapsed.
    pub ending: Ending,
    /// The position of its terminal event.
    pub position: u64,
}

impl EndedRun {
    /// A run that was ended, for journals.
    #[must_use]
    pub fn new(thread: ThreadKey, run: RunId, ending: Ending, position: u64) -> Self {
        Self { thread, run, ending, position }
    }
}

/// What is known of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RunInfo {
    /// Its id, as the input named it. Not unique: an interrupt is answered by a run with the id of
    /// the one that asked.
    pub run: RunId,
    /// The agent that ran, or runs.
    pub agent: String,
    /// When it began, in milliseconds since 1970 (UTC).
    pub began_at: u64,
    /// When it ended; `None` while it goes on.
    pub ended_at: Option<u64>,
    /// How it ended; `None` while it goes on.
    pub ending: Option<Ending>,
}

impl RunInfo {
    /// A run that goes on, for journals.
    #[must_use]
    pub fn new(run: RunId, agent: impl Into<String>, began_at: u64) -> Self {
        Self { run, agent: agent.into(), began_at, ended_at: None, ending: None }
    }
}

/// What became of the request to stop a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopOutcome {
    /// Whoever runs it is told now.
    Requested,
    /// It was asked to stop before.
    AlreadyRequested,
    /// There is nothing to stop: no such thread, no run going on, or another run than the one named.
    NotRunning,
}

/// Why whoever runs a run should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// Somebody asked for it: close what is open and finish as cancelled.
    Requested,
    /// The run is over already, for one of the reasons of
    /// [`JournalError::LeaseLost`](crate::JournalError::LeaseLost): nothing more can be written.
    LeaseLost,
}
