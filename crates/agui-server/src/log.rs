//! Warnings on their way into the log.

use agui_stream::Warning;

/// Logs the warnings about one input or one run: the first few each, the rest as a number, so that
/// no peer can fill a log.
pub struct WarningLog {
    about: &'static str,
    count: usize,
}

impl WarningLog {
    /// How many are logged each.
    const MOST: usize = 20;

    /// How many characters of a path, in which member names of the peer's choice may stand, and of
    /// a message are logged.
    const MOST_CHARS: usize = 200;

    /// Nothing was logged yet about what is named here.
    pub fn about(about: &'static str) -> Self {
        Self { about, count: 0 }
    }

    /// Logs these.
    pub fn take(&mut self, warnings: impl IntoIterator<Item = Warning>) {
        for Warning { rule, event, path, message } in warnings {
            self.count += 1;
            if self.count <= Self::MOST {
                let (path, message) = (shortened(&path), shortened(&message));
                tracing::warn!(rule, event, path, message, "{}", self.about);
            }
        }
    }
}

impl Drop for WarningLog {
    fn drop(&mut self) {
        if let Some(more @ 1..) = self.count.checked_sub(Self::MOST) {
            tracing::warn!(more, "{}: there were more warnings", self.about);
        }
    }
}

fn shortened(text: &str) -> &str {
    text.char_indices().nth(WarningLog::MOST_CHARS).map_or(text, |(end, _)| &text[..end])
}
