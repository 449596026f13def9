//! How a run is stopped from outside, and the program with it.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agui_agent::CancellationToken;

use crate::failure::Failure;
use crate::signals::Signals;

/// How long the program goes on after the first signal, at most, while it waits for others to take
/// what it writes. A file that is being saved is saved.
const GRACE: Duration = Duration::from_secs(1);

/// The will to stop, shared by all who may have to wait for something.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop {
    /// Cancelled by the first signal.
    pub(super) cancel: CancellationToken,
    saving: Arc<Mutex<Option<Saving>>>,
}

/// A file that is being saved.
#[derive(Debug)]
pub(super) enum Saving {
    /// Beside its place: it has to be gone when the program ends.
    Beside(PathBuf),
    /// Where it is: it has to be empty when the program ends.
    InPlace(PathBuf),
}

impl Stop {
    /// From here on the first SIGINT or SIGTERM cancels, and ends the program where it is still
    /// there [a second](GRACE) later; the next one ends it at once.
    pub(super) fn on_signals(&self) -> Result<(), Failure> {
        let no_thread =
            |error| Failure::new("the program's threads cannot be started").because(error);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(no_thread)?;
        let signals = {
            let _entered = runtime.enter();
            Signals::new().map_err(Failure::no_signals)?
        };
        let stop = self.clone();
        // A thread of its own: nothing that is held up elsewhere keeps it from ending the program.
        let thread = std::thread::Builder::new().name("signals".into());
        let watching = thread.spawn(move || runtime.block_on(stop.obey(signals)));
        watching.map(drop).map_err(no_thread)
    }

    async fn obey(self, mut signals: Signals) {
        let first = signals.next().await;
        self.cancel.cancel();
        let code = tokio::select! {
            second = signals.next() => second,
            () = self.patience() => first,
        };
        // What is half-written is of no use to anyone.
        let _ = match &*self.saving() {
            Some(Saving::Beside(path)) => fs::remove_file(path),
            Some(Saving::InPlace(path)) => fs::write(path, ""),
            None => Ok(()),
        };
        std::process::exit(code.into());
    }

    async fn patience(&self) {
        tokio::time::sleep(GRACE).await;
        while self.saving().is_some() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Names the file that is being saved, or says that none is any more.
    pub(super) fn set_saving(&self, saving: Option<Saving>) {
        *self.saving() = saving;
    }

    fn saving(&self) -> MutexGuard<'_, Option<Saving>> {
        self.saving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
