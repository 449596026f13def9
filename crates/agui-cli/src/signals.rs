//! The signals that ask the program to stop.

use std::io;

/// Receives SIGINT (Ctrl-C) and SIGTERM, which then no longer end the program by themselves.
pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Fails where the system has no room for another receiver. Needs a `tokio` runtime.
    pub(crate) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate })
    }

    /// Waits for the next one and gives the exit code of a program that it ends.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.interrupt.recv() => 128 + 2,
            _ = self.terminate.recv() => 128 + 15,
        }
    }
}

#[cfg(not(unix))]
impl Signals {
    /// Never fails. Needs a `tokio` runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next Ctrl-C and gives the exit code of a program that it ends.
    pub(crate) async fn next(&mut self) -> u8 {
        // Fails where there is no console to interrupt from.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        128 + 2
    }
}
