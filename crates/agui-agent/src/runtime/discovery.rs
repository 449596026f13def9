//! Finding out over which transport a runtime is reached, once for all who want to know.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agui_types::Json;
use tokio::sync::{Mutex as Turn, watch};

use super::info::Via;
use super::{DiscoveryError, RuntimeError, RuntimeInfo};

/// How a runtime is reached, as far as that is known. Before anything was asked, a client is
/// disconnected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionStatus {
    /// Nothing was asked yet.
    #[default]
    Disconnected,
    /// The runtime is being asked for its information.
    Connecting,
    /// The runtime gave it.
    Connected,
    /// The runtime gave none when it was last asked.
    Error,
}

/// What is known of a runtime.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    known: Mutex<Known>,
    /// Held by the one who asks.
    turn: Turn<()>,
    status: watch::Sender<ConnectionStatus>,
}

#[derive(Debug, Default)]
struct Known {
    /// How many attempts came to an end.
    attempts: u64,
    /// What the last one came to.
    last: Option<Result<Found, Arc<DiscoveryError>>>,
}

/// What an attempt found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) via: Via,
    pub(super) info: Arc<RuntimeInfo>,
}

impl Found {
    /// Fails where what the runtime said is no information.
    pub(super) fn read(said: &Json, via: Via) -> Result<Self, RuntimeError> {
        let info = Arc::new(RuntimeInfo::read(said.as_str(), via)?);
        Ok(Self { via, info })
    }
}

impl Discovery {
    pub(super) fn found(&self) -> Option<Found> {
        self.known().last.as_ref()?.as_ref().ok().cloned()
    }

    pub(super) fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.status.subscribe()
    }

    /// What is known, unless it is to be known afresh; else what `attempt` finds. Whoever comes while
    /// another one asks gets what that one is told.
    pub(super) async fn find(
        &self,
        afresh: bool,
        attempt: impl Future<Output = Result<Found, DiscoveryError>>,
    ) -> Result<Found, Arc<DiscoveryError>> {
        if let Some(found) = self.found().filter(|_| !afresh) {
            return Ok(found);
        }
        let before = self.known().attempts;
        let _turn = self.turn.lock().await;
        if let Some(last) = self.since(before) {
            return last;
        }
        let connecting = Connecting::begin(&self.status);
        let last = attempt.await.map_err(Arc::new);
        let mut known = self.known();
        known.attempts += 1;
        known.last = Some(last.clone());
        drop(known);
        connecting.end(last.is_ok());
        last
    }

    /// What the last attempt came to, where it ended after so many.
    fn since(&self, attempts: u64) -> Option<Result<Found, Arc<DiscoveryError>>> {
        let known = self.known();
        known.last.clone().filter(|_| known.attempts != attempts)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that goes on. One that is dropped was none.
struct Connecting<'d> {
    status: &'d watch::Sender<ConnectionStatus>,
    then: ConnectionStatus,
}

impl<'d> Connecting<'d> {
    fn begin(status: &'d watch::Sender<ConnectionStatus>) -> Self {
        let then = status.send_replace(ConnectionStatus::Connecting);
        Self { status, then }
    }

    fn end(mut self, found: bool) {
        self.then = if found { ConnectionStatus::Connected } else { ConnectionStatus::Error };
    }
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        self.status.send_replace(self.then);
    }
}
