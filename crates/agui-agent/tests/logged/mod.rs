//! What is written to the log.

use std::sync::{Arc, Mutex, OnceLock};

use tracing::{Dispatch, Level};

/// What is logged of `act`, up to a level.
pub(crate) fn logged<Fut: Future>(level: Level, act: Fut) -> String {
    // While there is one subscriber, a line that another thread is the first to come by is judged by
    // the subscriber of that thread, which is none, and is off for all from then on. A second one,
    // that wants everything, keeps every line open.
    static SECOND: OnceLock<Dispatch> = OnceLock::new();
    SECOND.get_or_init(|| Dispatch::new(tracing_subscriber::registry()));
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(act);
    });
    String::from_utf8(log.0.lock().unwrap().clone()).unwrap()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
