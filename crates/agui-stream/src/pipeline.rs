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
        Self { boundary: Boundary::new(), checks: Checks::for_run(thread_id, run_id) }
    }

    /// The same pipeline from a peer that is known to speak at most this version. To be said before
    /// the first event.
    #[must_use]
    pub fn from_peer(mut self, peer: PeerVersion) -> Self {
        self.boundary = Boundary::to_peer(peer);
        self.checks = self.checks.from_peer(peer);
        self
    }

    /// The same pipeline without verification, for whoever hands the events to something that verifies
    /// them itself: a run log. Nothing that such a pipeline gives has been held to the rules of order,
    /// and [`finish`](Self::finish) finds nothing missing. To be said before the first event.
    #[must_use]
    pub fn unverified(mut self) -> Self {
        self.checks.unverified = true;
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
    /// The order is somebody else's to check.
    unverified: bool,
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
        Self { verifier: Verifier::for_run(thread_id, run_id), ..Self::default() }
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
        expanded.map_err(|fault| self.fail(Fault { event: self.last, ..fault }))
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
        if self.unverified {
            return expanded;
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
            let kept = self.disowner.keep(&mut end, warnings);
            if kept && (self.unverified || self.verifier.push(&end).is_ok()) {
                out.push(end);
            }
        }
    }

    /// Takes the end of the stream. See [`Pipeline::finish`].
    pub fn finish(&mut self) -> Result<(), Fault> {
        self.unfailed()?;
        if self.unverified {
            return Ok(());
        }
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
    let theirs = event.protocol_version.as_ref().filter(|it| it.is_newer_or_unclear())?;
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

#[cfg(test)]
mod tests {
    use agui_types::event::TextMessageContent;
    use agui_types::{EventReader, ToJson};
    use proptest::prelude::*;

    use super::*;
    use crate::{Class, RunState};

    const START: &str = r#"{"type":"RUN_STARTED","threadId":"t","runId":"r"}"#;
    const FINISH: &str = r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#;

    #[derive(Default)]
    struct Stream {
        pipeline: Pipeline,
        out: Vec<Event>,
        warnings: Vec<Warning>,
    }

    impl Stream {
        fn push(&mut self, text: &str) -> Result<(), Fault> {
            match EventReader::new().tolerant(text) {
                Ok(reading) => self.pipeline.push(reading, &mut self.out, &mut self.warnings),
                Err(error) => Err(self.pipeline.push_unreadable(&error)),
            }
        }

        fn types(&self) -> Vec<&str> {
            self.out.iter().map(Event::type_name).collect()
        }
    }

    #[test]
    fn enforcement_comes_before_expansion_and_verification_after_it() {
        // C-32, C-43
        let mut stream = Stream::default();
        stream.push(START).unwrap();
        let chunk =
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"narrator","delta":"x"}"#;
        stream.push(chunk).unwrap();
        stream.push(r#"{"type":"NEW"}"#).unwrap();
        stream.push(FINISH).unwrap();
        stream.pipeline.finish().unwrap();
        let started = r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#;
        assert_eq!(stream.out[1].to_json(), started);
        assert_eq!(
            stream.types(),
            [
                "RUN_STARTED",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "RUN_FINISHED"
            ]
        );
        let warned: Vec<_> = stream.warnings.iter().map(|it| (it.rule, it.event)).collect();
        assert_eq!(warned, [("C-24", Some(1)), ("C-22", Some(2))]);
    }

    #[test]
    fn without_verification_everything_else_stays() {
        let pipeline = Pipeline::for_run("t".into(), "r".into()).unverified();
        let mut stream = Stream { pipeline, ..Stream::default() };
        stream
            .push(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x","mood":"good"}"#)
            .unwrap();
        stream.push(r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#).unwrap();
        assert_eq!(
            stream.types(),
            ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "TOOL_CALL_END"]
        );
        assert_eq!(stream.warnings.len(), 1);
        assert!(stream.push(r#"{"type":"TEXT_MESSAGE_CHUNK","delta":"x"}"#).is_err());
        let mut stream = Stream { pipeline: Pipeline::new().unverified(), ..Stream::default() };
        stream.push(START).unwrap();
        stream.pipeline.finish().unwrap();
    }

    #[test]
    fn what_came_before_a_fault_stays_delivered_and_the_fault_stays() {
        // C-12
        let mut stream = Stream::default();
        stream.push(START).unwrap();
        stream.push(r#"{"type":"NEW"}"#).unwrap();
        stream.push(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}"#).unwrap();
        // Ends the chunks, then breaks a rule itself: the end is delivered.
        let fault = stream.push(r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#).unwrap_err();
        assert_eq!((fault.rule, fault.event), ("C-38", Some(3)));
        assert_eq!(stream.types(), ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END"]);
        assert_eq!(stream.push(FINISH), Err(fault.clone()));
        assert_eq!(stream.push("{"), Err(fault.clone()));
        assert_eq!(stream.pipeline.finish(), Err(fault));
        assert_eq!(stream.out.len(), 3);
    }

    #[test]
    fn faults_and_warnings_count_what_arrived() {
        let mut stream = Stream::default();
        for text in [START, r#"{"type":"NEW"}"#, r#"{"type":"NEWER"}"#] {
            stream.push(text).unwrap();
        }
        let fault = stream.push(r#"{"type":"CUSTOM"}"#).unwrap_err();
        assert_eq!((fault.class, fault.event), (Class::Schema, Some(3)));
        assert_eq!(stream.warnings[1].event, Some(2));
    }

    #[test]
    fn a_stream_without_an_end_is_truncated_and_nothing_is_invented() {
        // C-14, C-15, T-9
        let mut stream = Stream::default();
        stream.push(START).unwrap();
        stream.push(r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#).unwrap();
        let fault = stream.pipeline.finish().unwrap_err();
        assert_eq!((fault.class, fault.event), (Class::Truncated, None));
        assert_eq!(stream.types().last(), Some(&"TEXT_MESSAGE_CONTENT"));
        assert!(matches!(stream.pipeline.verifier().run(), RunState::Active { .. }));
        assert_eq!(Stream::default().pipeline.finish().unwrap_err().class, Class::Truncated);
    }

    #[test]
    fn a_newer_or_unclear_version_is_warned_of_once_per_run() {
        // C-81, P-83
        for (version, warned) in [
            ("1.0", false),
            ("0.9", false),
            ("1.1", true),
            ("1.10", true),
            ("2.0", true),
            ("1", true),
            ("1.0.0", true),
            ("draft", true),
        ] {
            let mut stream = Stream::default();
            let text = format!(
                r#"{{"type":"RUN_STARTED","threadId":"t","runId":"r","protocolVersion":"{version}"}}"#
            );
            stream.push(&text).unwrap();
            let found: Vec<_> = stream.warnings.iter().map(|it| (it.rule, it.event)).collect();
            let expected = if warned { vec![("C-81", Some(0))] } else { Vec::new() };
            assert_eq!(found, expected, "{version}");
        }
    }

    #[test]
    fn middleware_sits_between_the_two_parts() {
        // C-32, C-34
        let (mut boundary, mut checks) = Pipeline::for_run("t".into(), "r".into()).split();
        let (mut out, mut warnings) = (Vec::new(), Vec::new());
        for text in [START, r#"{"type":"NEW"}"#, FINISH] {
            let reading = EventReader::new().tolerant(text).unwrap();
            let frame = boundary.push(reading, &mut warnings).unwrap();
            if frame.event.type_name() == "NEW" {
                // Middleware may know what the protocol does not.
                let known = TextMessageContent::new("m", "x");
                let fault = checks.clone().push(Event::from(known).into(), &mut out, &mut warnings);
                let fault = fault.unwrap_err();
                assert_eq!((fault.rule, fault.event), ("C-38", Some(0)));
                continue;
            }
            checks.push(frame, &mut out, &mut warnings).unwrap();
        }
        checks.finish().unwrap();
        assert!(warnings.is_empty());
        assert_eq!(out.len(), 2);
    }

    fn any_frame() -> impl Strategy<Value = String> {
        let member = prop::sample::select(vec![
            r#""messageId":"m""#,
            r#""messageId":"n""#,
            r#""toolCallId":"c""#,
            r#""toolCallName":"f""#,
            r#""delta":"x""#,
            r#""delta":[]"#,
            r#""subagentRunId":"a""#,
            r#""subagentRunId":null"#,
            r#""parentMessageId":"m""#,
            r#""role":"assistant""#,
            r#""role":"reasoning""#,
            r#""threadId":"t""#,
            r#""runId":"r""#,
            r#""stepName":"s""#,
            r#""name":"n""#,
            r#""content":"x""#,
            r#""content":[{"type":"binary"},{"type":"image","source":{"type":"x"}}]"#,
            r#""messages":[{"role":"robot"},{"role":"assistant","id":"m"}]"#,
            r#""outcome":{"type":"x"}"#,
            r#""input":{"threadId":"t","runId":"r","messages":[],"state":null}"#,
            r#""rawEvent":null"#,
            r#""metadata":{"k":null}"#,
            r#""extra":{}"#,
        ]);
        let known = agui_types::EventType::ALL.iter().map(|known| known.as_str());
        let types: Vec<&str> = known
            .chain(["THINKING_START", "THINKING_TEXT_MESSAGE_CONTENT", "THINKING_END", "NEW", ""])
            .collect();
        let members = prop::collection::btree_set(member, 0..12);
        (prop::sample::select(types), members).prop_map(|(name, members)| {
            let members: String = members.iter().map(|member| format!(",{member}")).collect();
            format!("{{\"type\":\"{name}\"{members}}}")
        })
    }

    proptest! {
        /// Whatever comes, nothing panics, what is delivered verifies by itself, holds nothing
        /// unknown, and can be closed in order (C-27, P-9).
        #[test]
        fn what_is_delivered_is_in_order(
            frames in prop::collection::vec(any_frame(), 0..40),
            old in any::<bool>(),
        ) {
            let mut stream = Stream::default();
            if old {
                stream.pipeline = stream.pipeline.from_peer("0.0.39".parse().unwrap());
            }
            stream.push(START).unwrap();
            for frame in &frames {
                let mut next = stream.pipeline.clone();
                let (mut out, mut warnings) = (Vec::new(), Vec::new());
                let verdict = match EventReader::new().tolerant(frame) {
                    Ok(reading) => next.push(reading, &mut out, &mut warnings),
                    Err(error) => Err(next.push_unreadable(&error)),
                };
                // A frame that is refused is left out, so that many come into play.
                if verdict.is_ok() {
                    stream.pipeline = next;
                    stream.out.append(&mut out);
                }
            }
            let mut verifier = Verifier::new();
            for event in &stream.out {
                let text = event.to_json();
                let exact = EventReader::new().exact(&text);
                prop_assert!(exact.is_ok(), "{}: {:?}", text, exact);
                prop_assert_eq!(verifier.push(event), Ok(()));
            }
            if let RunState::Active { thread_id, run_id } = verifier.run() {
                for event in verifier.closing_events() {
                    prop_assert_eq!(verifier.push(&event), Ok(()));
                }
                let finish = agui_types::event::RunFinished::new(thread_id, run_id);
                prop_assert_eq!(verifier.push(&finish.into()), Ok(()));
            }
            prop_assert_eq!(verifier.finish(), Ok(()));
        }
    }
}
