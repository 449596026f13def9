//! Whether the runtime can be used, and what keeps it usable.

use std::time::Duration;

use agui_journal::{JournalError, Retention, Tenant, ThreadKey};
use agui_types::{RunId, ThreadId};
use tokio::time::timeout;

use crate::{LONGEST_ID, Runtime};

/// What is kept of the past; see [`Runtime::upkeep`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Upkeep {
    /// How long lies between two rounds. Default: a minute; at least a millisecond.
    pub every: Duration,
    /// Which threads are removed. Default: none.
    pub retention: Retention,
    /// For how long runs have to be over to be compacted: fewer events that fold to the same.
    /// Default, `None`: they are not.
    pub compact_after: Option<Duration>,
}

impl Default for Upkeep {
    fn default() -> Self {
        Self { every: Duration::from_secs(60), retention: Retention::new(), compact_after: None }
    }
}

impl Upkeep {
    /// How often one round asks the journal for more of the same at most: 100 times 500 threads, or
    /// 100 runs.
    pub const MOST_CALLS: usize = 100;
}

/// What a round of upkeep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// How many threads were removed.
    pub removed: u64,
    /// How many runs were compacted.
    pub compacted: u64,
    /// By how many bytes of JSON text those are shorter.
    pub shorter: u64,
    /// Whether something was left for the next round.
    pub more: bool,
}

/// Why a runtime cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// It [ends](Runtime::shutdown).
    #[error("the runtime is shutting down")]
    ShuttingDown,
    /// The run log does not answer in time.
    #[error("the run log has not answered for {0:?}")]
    Silent(Duration),
    /// The run log fails.
    #[error("the run log fails")]
    Journal(#[source] JournalError),
}

impl Runtime {
    /// How long the run log may take to answer before the runtime is not [ready](Self::ready): 2
    /// seconds.
    pub const READY_WITHIN: Duration = Duration::from_secs(2);

    /// Whether runs can begin: the runtime is not shutting down, and who writes the run log answers.
    pub async fn ready(&self) -> Result<(), NotReady> {
        if self.0.closing.is_cancelled() {
            return Err(NotReady::ShuttingDown);
        }
        // Goes through the one who writes, and finds nothing: an empty id is an id, but none is as long
        // as this.
        let longer = "-".repeat(LONGEST_ID + 1);
        let nobody = ThreadKey::new(Tenant::default(), ThreadId::from(longer.as_str()));
        let nothing = RunId::from(longer.as_str());
        let asked = self.journal().request_stop(&nobody, Some(&nothing));
        match timeout(Self::READY_WITHIN, asked).await {
            Ok(Ok(_) | Err(JournalError::ThreadNotFound)) => Ok(()),
            Ok(Err(error)) => Err(NotReady::Journal(error)),
            Err(_) => Err(NotReady::Silent(Self::READY_WITHIN)),
        }
    }

    /// Removes and compacts what the policy says, at once and then from time to time, until the
    /// runtime [ends](Self::shutdown). To be spawned, beside [`recover`](Self::recover).
    ///
    /// A round is bounded: what it leaves is for the next one. A journal that fails is told of in the
    /// log, and asked again.
    pub async fn upkeep(self, policy: Upkeep) {
        let every = policy.every.max(Duration::from_millis(1));
        loop {
            match self.keep_up(&policy).await {
                Ok(Kept { removed: 0, compacted: 0, .. }) => {}
                Ok(Kept { removed, compacted, shorter, more }) => {
                    tracing::info!(removed, compacted, shorter, more, "the run log was tidied");
                }
                Err(error) => tracing::error!(%error, "the run log cannot be tidied"),
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.0.closing.cancelled() => return,
            }
        }
    }

    /// One round of [`upkeep`](Self::upkeep), now. Ends early where the runtime ends.
    pub async fn keep_up(&self, policy: &Upkeep) -> Result<Kept, JournalError> {
        let (journal, closing) = (self.journal(), &self.0.closing);
        let mut kept = Kept::default();
        let Upkeep { retention, compact_after, .. } = policy;
        if *retention != Retention::new() {
            for call in 1..=Upkeep::MOST_CALLS {
                let removed = journal.retain(retention).await?;
                kept.removed += removed.threads.len() as u64;
                if !removed.more || closing.is_cancelled() {
                    break;
                }
                kept.more |= call == Upkeep::MOST_CALLS;
            }
        }
        if let Some(ended_for) = *compact_after {
            for call in 1..=Upkeep::MOST_CALLS {
                let compacted = journal.compact(ended_for).await?;
                kept.compacted += compacted.runs;
                kept.shorter += compacted.bytes;
                if !compacted.more || closing.is_cancelled() {
                    break;
                }
                kept.more |= call == Upkeep::MOST_CALLS;
            }
        }
        Ok(kept)
    }
}
