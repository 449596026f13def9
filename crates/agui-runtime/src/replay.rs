//! The entries of a log as one stream that every front end can follow.

use agui_journal::{Entry, EntryKind, ThreadKey};
use agui_types::event::{RunError, RunFinished};
use agui_types::{Event, ThreadId, ToJson};
use agui_wire::sse::Encoder;

use crate::codes;
use crate::dialect::Dialect;
use crate::position::{Name, Places};

/// Turns the entries of a thread into frames.
///
/// Many front ends take nothing behind a `RUN_ERROR`, not even the next run. So an error that
/// another run follows becomes a `RUN_FINISHED`: everything its run had open was closed before it
/// was written. Only as the very last event an error stays what it is.
#[derive(Debug)]
pub(crate) struct Replay {
    thread: ThreadId,
    places: Places,
    dialect: Dialect,
    /// An error of which it is not known yet whether anything follows.
    held: Option<Entry>,
}

impl Replay {
    pub(crate) fn new(thread: &ThreadKey, dialect: Dialect) -> Self {
        let places = Places::of(thread);
        Self { thread: thread.thread.clone(), places, dialect, held: None }
    }

    /// Takes the next entry and appends the frames it becomes.
    pub(crate) fn push(&mut self, entry: Entry, out: &mut Vec<u8>) {
        if let Some(error) = self.held.take() {
            let finished = Event::from(RunFinished::new(self.thread.clone(), error.run));
            self.frame(error.position, &finished.to_json(), out);
        }
        if entry.kind == EntryKind::Failed {
            self.held = Some(entry);
        } else if let Some(text) = self.dialect.say_entry(&entry) {
            self.frame(entry.position, &text, out);
        }
    }

    fn frame(&self, position: u64, text: &str, out: &mut Vec<u8>) {
        frame(Some(self.places.name(position)), text, out);
    }

    /// Takes that the run at hand has no end in the log, which cannot be written: its viewers are
    /// told all the same.
    pub(crate) fn unended(&mut self, out: &mut Vec<u8>) {
        let message = "the run could not be recorded";
        let error = Event::from(RunError::new(message).code(codes::NOT_RECORDED));
        frame(None, &error.to_json(), out);
    }

    /// Takes the end of the log.
    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
        if let Some(error) = self.held.take() {
            self.frame(error.position, error.text(), out);
        }
    }
}

/// One event as a frame, with the name of its place as the frame's id where it has one.
pub(crate) fn frame(id: Option<Name>, text: &str, out: &mut Vec<u8>) {
    let plain = Encoder::new();
    let named = id.as_ref().and_then(|id| plain.id(id.as_str()).ok());
    named.unwrap_or(plain).frame(out, text);
}

#[cfg(test)]
mod tests {
    use agui_journal::Tenant;
    use agui_types::RunId;
    use agui_types::event::RunStarted;

    use super::*;

    fn entry(position: u64, run: &str, event: &Event) -> Entry {
        let kind = EntryKind::of(event);
        Entry::new(position, kind, RunId::from(run), event.to_json().into())
    }

    fn replayed<const N: usize>(entries: [Entry; N]) -> String {
        let mut replay = Replay::new(&ThreadKey::new(Tenant::default(), "t"), Dialect::Current);
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
        let places = Places::of(&ThreadKey::new(Tenant::default(), "t"));
        let mark = places.name(0).as_str()[1..].to_owned();
        assert_eq!(out.replace(&mark, ""), expected.concat());
    }
}
