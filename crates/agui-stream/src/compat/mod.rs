//! The compatibility boundary: retired shapes become current ones, before anything judges them.

mod binary;
mod nulls;
mod owner;
mod peer;
#[cfg(test)]
mod tests;
mod thinking;

use std::collections::HashSet;

use agui_types::read::{FindingKind, Reading};
use agui_types::{Event, ReadError};

use crate::{Fault, Frame, Warning};
pub(crate) use binary::{Binary, upgrade};
pub(crate) use nulls::in_input as retired_null;
pub(crate) use owner::{Disowner, disown_message};
pub use peer::PeerVersion;
use thinking::Thinking;

/// Translates what producers of the 0.x line send into the shapes of today (C-84).
///
/// - `THINKING_*` events become reasoning events. Their ids are invented: in the shape of a UUID,
///   derived from the thread, the run and a count, so that the same stream has the same ids on every
///   path (C-33).
/// - `binary` content parts become media parts.
/// - `null` in the positions where 0.x producers wrote it reads as absent.
///
/// Each kind of translation warns once on a stream; what loses something warns every time (P-93).
#[derive(Clone, Debug, Default)]
pub struct Boundary {
    peer: PeerVersion,
    taken: u64,
    thinking: Thinking,
    /// What was warned of already.
    told: HashSet<String>,
}

impl Boundary {
    /// A boundary to a peer of which nothing is known (C-83).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A boundary to a peer that is known to speak at most this version.
    #[must_use]
    pub fn to_peer(peer: PeerVersion) -> Self {
        Self { peer, ..Self::default() }
    }

    /// Takes the next event as it was read.
    ///
    /// Fails where a retired event holds a malformed value (C-28).
    pub fn push(
        &mut self,
        reading: Reading<Event>,
        warnings: &mut Vec<Warning>,
    ) -> Result<Frame, Fault> {
        let index = self.taken;
        self.taken += 1;
        let mut frame = Frame::new(reading, Some(index));
        let first = warnings.len();
        let translated = self.translate(&mut frame, warnings);
        for warning in &mut warnings[first..] {
            warning.event = Some(index);
        }
        match translated {
            Ok(()) => Ok(frame),
            Err(fault) => Err(fault.of_event(index)),
        }
    }

    /// Counts an event that could not be read, and says what is wrong with it.
    pub fn push_unreadable(&mut self, error: &ReadError) -> Fault {
        let index = self.taken;
        self.taken += 1;
        Fault::from(error).of_event(index)
    }

    fn translate(&mut self, frame: &mut Frame, warnings: &mut Vec<Warning>) -> Result<(), Fault> {
        match &frame.event {
            Event::RunStarted(event) => self.thinking.start_run(event),
            Event::Unknown(unknown) => {
                if let Some(translated) = self.thinking.translate(unknown, warnings) {
                    let reading = translated.map_err(|error| Fault::from(&error))?;
                    let (retired, now) = (unknown.tag().to_owned(), reading.value.type_name());
                    let message = || format!("{retired} is retired and read as {now}");
                    self.tell_once(&retired, "", message, warnings);
                    *frame = Frame::new(reading, frame.index);
                }
            }
            _ => {}
        }
        self.read_nulls_as_absent(frame, warnings);
        self.upgrade_parts(frame, warnings);
        if !self.peer.knows_subagents() {
            Self::ignore_null_owners(frame);
        }
        Ok(())
    }

    /// Section 12: positions in which 0.x producers wrote `null` for absent.
    fn read_nulls_as_absent(&mut self, frame: &mut Frame, warnings: &mut Vec<Warning>) {
        frame.remove_findings(|frame, finding| {
            let null = finding.kind == FindingKind::Null;
            let Some(shape) = nulls::retired(&frame.event, &finding.path).filter(|_| null) else {
                return false;
            };
            let shape = format!("{}.{shape}", frame.event.type_name());
            let message = || format!("{shape}: null is retired and read as absent");
            self.tell_once(&shape, &finding.path, message, warnings);
            true
        });
    }

    /// Section 12: `binary` parts of user and tool messages.
    fn upgrade_parts(&mut self, frame: &mut Frame, warnings: &mut Vec<Warning>) {
        let (at, messages) = match &mut frame.event {
            Event::MessagesSnapshot(event) => ("", &mut event.messages),
            Event::RunStarted(event) => match &mut event.input {
                Some(input) => ("/input", &mut input.messages),
                None => return,
            },
            _ => return,
        };
        let (mut upgraded, mut first) = (HashSet::new(), None);
        upgrade(messages, |message, part, binary| {
            let path = format!("{at}/messages/{message}/content/{part}");
            match binary {
                Binary::Upgraded => {
                    first.get_or_insert_with(|| path.clone());
                    upgraded.insert(path);
                }
                Binary::Empty => {
                    let message = "a binary part without data or url cannot become a media part";
                    warnings.push(Warning::new("C-84", path, message));
                }
                Binary::Restated => {}
            }
        });
        if let Some(path) = first {
            let message = || "binary content parts are retired and read as media parts".into();
            self.tell_once("binary", &path, message, warnings);
        }
        frame.remove_findings(|_, finding| upgraded.contains(&finding.path));
    }

    /// Section 12: what peers up to 0.0.57 cannot mean is taken away behind the expansion of chunks,
    /// which still needs to know whose they are. Spelled `null` it means nothing at all.
    fn ignore_null_owners(frame: &mut Frame) {
        frame.remove_findings(|_, finding| {
            finding.kind == FindingKind::Null && finding.path.ends_with("/subagentRunId")
        });
    }

    fn tell_once(
        &mut self,
        what: &str,
        path: &str,
        message: impl FnOnce() -> String,
        warnings: &mut Vec<Warning>,
    ) {
        if !self.told.contains(what) {
            self.told.insert(what.to_owned());
            warnings.push(Warning::new("C-84", path, message()));
        }
    }
}
