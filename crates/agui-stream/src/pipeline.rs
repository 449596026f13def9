//! The stages in their order.

use agui_types::event::RunStarted;
use agui_types::{Event, ProtocolVersion, ReadError, Reading, RunId, ThreadId};

use crate::compat::Disowner;
use crate::enforce::enforce;
use crate::report::quoted;
use crate::{Boundary, ChunkExpander, Fault, Frame, PeerVersion, Verifier, Warning};

/// Everything between the reader and the application: compatibility, enforcement, chunk expansion,
/// verification, in this order (C-32) and on every path the same (C-33).
///
/// Middleware belongs between the first two; [`Pipeline::split`] makes room for it.
///
/// ```
/// use agui_stream::Pipeline;
/// use agui_types::EventReader;
///
/// let (mut reader, mut pipeline) = (EventReader::new(), Pipeline::new());
/// let (mut events, mut warnings) = (Vec::new(), Vec::new());
/// for text in [
///     r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#,
///     r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m1","delta":"Hello","mood":"good"}"#,
///     r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
/// ] {
///     pipeline.push(reader.tolerant(text)?, &mut events, &mut warnings)?;
/// }
/// pipeline.finish()?;
/// assert_eq!(events.len(), 5);
/// assert_eq!(warnings[0].path, "/mood");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    boundary: Boundary,
    checks: Checks,
}

impl Pipeline {
    /// A pipeline for a stream nobody asked for: a capture, a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A pipeline for the answer to a run input: see [`Verifier::for_run`].
    #[must_use]
    pub fn for_run(thread_id: ThreadId, run_id: RunId) -> Self {
        Self {
            boundary: Boundary::new(),
            checks: Checks::for_run(thread_id, run_id),
        }
    }

    /// The same pipeline from a peer that is known to speak at most this version. To be said before
    /// the first event.
    #[must_use]
    pub fn from_peer(mut self, peer: PeerVersion) -> Self {
        self.boundary = Boundary::to_peer(peer);
        self.checks = self.checks.from_peer(peer);
        self
    }

    /// Takes the next event as it was read, and appends to `out` what it becomes for the application
    /// and to `warnings` what was dropped, stripped or translated on the way.
    ///
    /// Fails where the stream breaks a rule. Everything before that is in `out` then (C-12), and
    /// every further call fails with the same fault. Faults and warnings count events as they
    /// arrive here.
    pub fn push(
        &mut self,
        reading: Reading<Event>,
        out: &mut Vec<Event>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        self.checks.unfailed()?;
        match self.boundary.push(reading, warnings) {
            Ok(frame) => self.checks.push(frame, out, warnings),
            Err(fault) => Err(self.checks.fail(fault)),
        }
    }

    /// Takes an event that could not be read, which ends the stream (C-28).
    pub fn push_unreadable(&mut self, error: &ReadError) -> Fault {
        match self.checks.unfailed() {
            Ok(()) => {
                let fault = self.boundary.push_unreadable(error);
                self.checks.fail(fault)
            }
            Err(earlier) => earlier,
        }
    }

    /// Takes the end of the stream. Nothing is closed and no event invented (C-14).
    ///
    /// Fails with [`Class::Truncated`](crate::Class::Truncated) where a terminal event is missing,
    /// and with the fault of an earlier event where there was one.
    pub fn finish(&mut self) -> Result<(), Fault> {
        self.checks.finish()
    }

    /// What is known of the stream's order so far.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        self.checks.verifier()
    }

    /// The part before middleware and the part behind it.
    #[must_use]
    pub fn split(self) -> (Boundary, Checks) {
        (self.boundary, self.checks)
    }
}

/// The stages behind middleware: enforcement, chunk expansion, verification; and the look at the
/// producer's version (C-81).
#[derive(Clone, Debug, Default)]
pub struct Checks {
    expander: ChunkExpander,
    disowner: Disowner,
    verifier: Verifier,
    /// The number of the last event that came from the stream.
    last: Option<u64>,
    fault: Option<Box<Fault>>,
}

impl Checks {
    /// For a stream nobody asked for.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// For the answer to a run input: see [`Verifier::for_run`].
    #[must_use]
    pub fn for_run(thread_id: ThreadId, run_id: RunId) -> Self {
        Self {
            verifier: Verifier::for_run(thread_id, run_id),
            ..Self::default()
        }
    }

    /// The same checks on a peer that is known to speak at most this version: what it cannot mean
    /// (up to 0.0.57, subagents) is left out. To be said before the first event.
    #[must_use]
    pub fn from_peer(mut self, peer: PeerVersion) -> Self {
        self.disowner = Disowner::new(peer);
        self
    }

    /// Takes the next event from the [`Boundary`] or from middleware. See [`Pipeline::push`].
    pub fn push(
        &mut self,
        frame: Frame,
        out: &mut Vec<Event>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        self.unfailed()?;
        let index = frame.index();
        self.last = index.or(self.last);
        let refused = self.disowner.is_active().then(|| frame.event.clone());
        let event = match enforce(frame, warnings) {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(()),
            Err(fault) => {
                if let Some(refused) = refused {
                    self.close_before(refused, out, warnings);
                }
                return Err(self.fail(fault));
            }
        };
        let first = warnings.len();
        if let Event::RunStarted(event) = &event {
            warnings.extend(version_warning(event));
        }
        let expanded = self.expand(event, out, warnings);
        for warning in &mut warnings[first..] {
            warning.event = index;
        }
        expanded.map_err(|fault| {
            self.fail(Fault {
                event: self.last,
                ..fault
            })
        })
    }

    /// Expansion and verification. What was verified before a fault stays in `out`.
    fn expand(
        &mut self,
        event: Event,
        out: &mut Vec<Event>,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        let first = out.len();
        let expanded = self.expander.push(event, out);
        if self.disowner.is_active() {
            let disowned = out
                .split_off(first)
                .into_iter()
                .filter_map(|mut event| self.disowner.keep(&mut event, warnings).then_some(event));
            out.extend(disowned);
        }
        for at in first..out.len() {
            if let Err(fault) = self.verifier.push(&out[at]) {
                out.truncate(at);
                return Err(fault);
            }
        }
        expanded
    }

    /// An old peer's chunks are expanded as they arrive: an event that is refused has still ended the
    /// shorthand before it.
    fn close_before(&mut self, refused: Event, out: &mut Vec<Event>, warnings: &mut Vec<Warning>) {
        let mut expanded = Vec::new();
        // Whatever the fault here, the event is refused already.
        let _ = self.expander.push(refused, &mut expanded);
        expanded.pop();
        let ends = expanded.into_iter().take_while(|event| {
            matches!(
                event,
                Event::TextMessageEnd(_) | Event::ToolCallEnd(_) | Event::ReasoningMessageEnd(_)
            )
        });
        for mut end in ends {
            if self.disowner.keep(&mut end, warnings) && self.verifier.push(&end).is_ok() {
                out.push(end);
            }
        }
    }

    /// Takes the end of the stream. See [`Pipeline::finish`].
    pub fn finish(&mut self) -> Result<(), Fault> {
        self.unfailed()?;
        self.verifier.finish().map_err(|fault| self.fail(fault))
    }

    /// What is known of the stream's order so far.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    fn unfailed(&self) -> Result<(), Fault> {
        match &self.fault {
            Some(fault) => Err(Fault::clone(fault)),
            None => Ok(()),
        }
    }

    fn fail(&mut self, fault: Fault) -> Fault {
        self.fault = Some(Box::new(fault.clone()));
        fault
    }
}

/// C-81: a newer or unclear version is gone along with.
fn version_warning(event: &RunStarted) -> Option<Warning> {
    let theirs = event
        .protocol_version
        .as_ref()
        .filter(|it| it.is_newer_or_unclear())?;
    let (ours, shown) = (ProtocolVersion::DECLARED, quoted(theirs.as_str()));
    let message = match theirs.version() {
        Some(_) => format!(
            "the producer speaks protocol version {shown}, which is newer than {ours}: what {ours} \
             does not describe is dropped; upgrade to see it"
        ),
        None => format!(
            "the producer declares protocol version {shown}, which is no version such as {ours}"
        ),
    };
    Some(Warning::new("C-81", "/protocolVersion", message))
}
