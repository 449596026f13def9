//! The entries of a log as one stream that every front end can follow.

use agui_journal::{Entry, EntryKind};
use agui_types::event::RunFinished;
use agui_types::{Event, ThreadId, ToJson};
use agui_wire::sse::Encoder;

use crate::dialect::Dialect;

/// Turns the entries of a thread into frames.
///
/// Many front ends take nothing behind a `RUN_ERROR`, not even the next run. So an error that
/// another run follows becomes a `RUN_FINISHED`: everything its run had open was closed before it
/// was written. Only as the very last event an error stays what it is.
#[derive(Debug)]
pub(crate) struct Replay {
    thread: ThreadId,
    dialect: Dialect,
    /// An error of which it is not known yet whether anything follows.
    held: Option<Entry>,
}

impl Replay {
    pub(crate) fn new(thread: ThreadId, dialect: Dialect) -> Self {
        Self { thread, dialect, held: None }
    }

    /// Takes the next entry and appends the frames it becomes.
    pub(crate) fn push(&mut self, entry: Entry, out: &mut Vec<u8>) {
        if let Some(error) = self.held.take() {
            let finished = Event::from(RunFinished::new(self.thread.clone(), error.run));
            frame(error.position, &finished.to_json(), out);
        }
        if entry.kind == EntryKind::Failed {
            self.held = Some(entry);
        } else if let Some(text) = self.dialect.say_entry(&entry) {
            frame(entry.position, &text, out);
        }
    }

    /// Takes the end of the log.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(error) = self.held.take() {
            frame(error.position, error.text(), out);
        }
    }
}

/// One event as a frame, with its position as the frame's id.
pub(crate) fn frame(position: u64, text: &str, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let id = decimal(position, &mut digits);
    let encoder = Encoder::new();
    encoder.id(id).unwrap_or(encoder).frame(out, text);
}

fn decimal(mut number: u64, digits: &mut [u8; 20]) -> &str {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return std::str::from_utf8(&digits[at..]).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_types::RunId;
    use agui_types::event::{RunError, RunStarted};

    use super::*;

    fn entry(position: u64, run: &str, event: &Event) -> Entry {
        let kind = EntryKind::of(event);
        Entry::new(position, kind, RunId::from(run), event.to_json().into())
    }

    fn replayed<const N: usize>(entries: [Entry; N]) -> String {
        let mut replay = Replay::new(ThreadId::from("t"), Dialect::Current);
        let mut out = Vec::new();
        for entry in entries {
            replay.push(entry, &mut out);
        }
        replay.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_error_that_a_run_follows_becomes_the_end_of_its_run() {
        let started = |run: &str| Event::from(RunStarted::new("t", run));
        let error = || Event::from(RunError::new("no"));
        let out = replayed([
            entry(1, "r1", &started("r1")),
            entry(2, "r1", &error()),
            entry(7, "r2", &started("r2")),
            entry(18, "r2", &error()),
        ]);
        let expected = [
            r#"id: 1
data: {"type":"RUN_STARTED","threadId":"t","runId":"r1"}

"#,
            r#"id: 2
data: {"type":"RUN_FINISHED","threadId":"t","runId":"r1"}

"#,
            r#"id: 7
data: {"type":"RUN_STARTED","threadId":"t","runId":"r2"}

"#,
            r#"id: 18
data: {"type":"RUN_ERROR","message":"no"}

"#,
        ];
        assert_eq!(out, expected.concat());
    }

    #[test]
    fn positions_are_decimal() {
        for number in [0, 9, 10, 1_234_567_890, u64::MAX] {
            assert_eq!(decimal(number, &mut [0; 20]), number.to_string());
        }
    }
}
