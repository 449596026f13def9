//! Preparing a run input for sending.

use std::collections::{HashMap, HashSet};

use agui_types::{
    ContentPart, Interrupt, Message, MessageContent, ProtocolVersion, Reading, ResumeEntry,
    ResumeStatus, RunAgentInput, Timestamp,
};

use super::date::milliseconds;
use super::enforce_outgoing;
use crate::compat::{disown_message, upgrade};
use crate::report::quoted;
use crate::{Class, Fault, PeerVersion, Warning};

/// Makes a run input fit for its peer.
///
/// ```
/// use agui_stream::Outgoing;
/// use agui_types::{Interrupt, RunAgentInput};
///
/// let input = RunAgentInput::new("thread", "run", Vec::new());
/// let open = [Interrupt::new("i1", "approval")];
/// let fault = Outgoing::new().prepare(input.clone(), &open, &mut Vec::new()).unwrap_err();
/// assert_eq!(fault.rule, "C-85");
///
/// let ready = Outgoing::new().prepare(input, &[], &mut Vec::new())?;
/// assert_eq!(ready.protocol_version.unwrap().as_str(), "1.0");
/// # Ok::<(), agui_stream::Fault>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Outgoing {
    peer: PeerVersion,
    now: Option<Timestamp>,
}

impl Outgoing {
    /// To a peer of which nothing is known (C-83), at a time nobody knows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// To a peer that is known to speak at most this version.
    #[must_use]
    pub fn to_peer(mut self, peer: PeerVersion) -> Self {
        self.peer = peer;
        self
    }

    /// At this time, in milliseconds since the Unix epoch. Without one no interrupt ever expires;
    /// nor does one whose `expiresAt` is no ISO 8601 date.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Self {
        self.now = Some(now);
        self
    }

    /// Checks the answers to the thread's open interrupts (C-85 to C-87), leaves activity out (C-75),
    /// upgrades retired parts (C-84), reshapes for an old peer (P-92), declares the version (C-80) and
    /// removes what the protocol does not describe (C-37). What is lost is warned of.
    ///
    /// Fails with [`Class::Interrupts`] where an open interrupt is not answered, or an expired one is
    /// resolved. The input must not be sent then.
    pub fn prepare(
        &self,
        input: impl Into<Reading<RunAgentInput>>,
        open: &[Interrupt],
        warnings: &mut Vec<Warning>,
    ) -> Result<RunAgentInput, Fault> {
        let mut reading = input.into();
        self.check_resume(&reading.value, open, warnings)?;
        // Quietly: the history may be older than the application that holds it.
        upgrade(&mut reading.value.messages, |_, _, _| {});
        let mut input = enforce_outgoing(reading, warnings);
        input.messages.retain(|message| !matches!(message, Message::Activity(_)));
        if !self.peer.takes_parts() {
            flatten(&mut input, warnings);
        }
        if !self.peer.knows_subagents() {
            for message in &mut input.messages {
                disown_message(message);
            }
        }
        input.protocol_version =
            self.peer.knows_versions().then(|| ProtocolVersion::from(ProtocolVersion::DECLARED));
        Ok(input)
    }

    fn check_resume(
        &self,
        input: &RunAgentInput,
        open: &[Interrupt],
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        let entries = input.resume.as_deref().unwrap_or_default();
        // An entry of a status that is not described is about to be removed: it answers nothing.
        let known = |entry: &&ResumeEntry| !matches!(entry.status, ResumeStatus::Unknown(_));
        let answered: HashSet<_> =
            entries.iter().filter(known).map(|entry| &entry.interrupt_id).collect();
        let missing: Vec<&str> = open
            .iter()
            .filter(|interrupt| !answered.contains(&interrupt.id))
            .map(|interrupt| interrupt.id.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(not_covered(&missing));
        }
        let open: HashMap<_, _> = open.iter().map(|interrupt| (&interrupt.id, interrupt)).collect();
        for (at, entry) in entries.iter().enumerate() {
            let Some(interrupt) = open.get(&entry.interrupt_id) else {
                let id = quoted(entry.interrupt_id.as_str());
                let message =
                    format!("the resume entry {id} answers no open interrupt of the thread");
                warnings.push(Warning::new("C-86", format!("/resume/{at}/interruptId"), message));
                continue;
            };
            if entry.status == ResumeStatus::Resolved && self.is_expired(interrupt) {
                return Err(expired(at, interrupt));
            }
        }
        Ok(())
    }

    fn is_expired(&self, interrupt: &Interrupt) -> bool {
        let expires = interrupt.expires_at.as_deref().and_then(milliseconds);
        expires.zip(self.now).is_some_and(|(expires, now)| expires <= now.get())
    }
}

/// Section 12: peers up to 0.0.39 take text, and messages that have some.
fn flatten(input: &mut RunAgentInput, warnings: &mut Vec<Warning>) {
    input.parent_run_id = None;
    for (at, message) in input.messages.iter_mut().enumerate() {
        let content = match message {
            Message::User(message) => &mut message.content,
            Message::Tool(message) => &mut message.content,
            Message::Assistant(message) => {
                message.content.get_or_insert_default();
                continue;
            }
            _ => continue,
        };
        let MessageContent::Parts(parts) = &*content else {
            continue;
        };
        let mut lost: Vec<&str> = parts
            .iter()
            .filter(|part| !matches!(part, ContentPart::Text(_)))
            .map(ContentPart::tag)
            .collect();
        lost.sort_unstable();
        lost.dedup();
        if !lost.is_empty() {
            let message = format!(
                "flattening content for a peer up to 0.0.39 DROPS non-text parts ({}): it cannot take \
                 them; upgrade it to keep them",
                lost.join(", ")
            );
            warnings.push(Warning::new("P-93", format!("/messages/{at}/content"), message));
        }
        *content = MessageContent::Text(content.text().into_owned());
    }
}

#[cold]
fn not_covered(missing: &[&str]) -> Fault {
    let listed = crate::report::listed(missing);
    let message = format!(
        "the thread has {} open interrupts that resume does not answer: {listed}",
        missing.len()
    );
    let fix = "add a resume entry, resolved or cancelled, for every open interrupt";
    let expected = "an entry for every open interrupt";
    Fault::new("C-85", Class::Interrupts, expected, format!("none for {listed}"), fix)
        .message(message)
        .at("/resume")
}

#[cold]
fn expired(at: usize, interrupt: &Interrupt) -> Fault {
    let id = quoted(interrupt.id.as_str());
    let when = quoted(interrupt.expires_at.as_deref().unwrap_or_default());
    let message = format!("interrupt {id} expired at {when} and can only be cancelled");
    let fix = "cancel the expired interrupt instead of resolving it";
    Fault::new("C-87", Class::Interrupts, "cancelled", "resolved", fix)
        .message(message)
        .at(format!("/resume/{at}/status"))
}

#[cfg(test)]
mod tests {
    use agui_types::{FromJson, ToJson};

    use super::*;

    fn input(text: &str) -> Reading<RunAgentInput> {
        let text = format!(r#"{{"threadId":"t","runId":"r",{text}}}"#);
        RunAgentInput::from_json_tolerant(&text).unwrap()
    }

    fn prepare(peer: &str, text: &str) -> (String, Vec<Warning>) {
        let mut warnings = Vec::new();
        let outgoing = Outgoing::new().to_peer(peer.parse().unwrap());
        let input = outgoing.prepare(input(text), &[], &mut warnings).unwrap();
        (input.to_json(), warnings)
    }

    fn answers(entries: &str, open: &[Interrupt]) -> Result<Vec<Warning>, Fault> {
        let text = format!(r#""messages":[],"resume":[{entries}]"#);
        let mut warnings = Vec::new();
        let now = Timestamp::new(milliseconds("2026-09-17").unwrap()).unwrap();
        let outgoing = Outgoing::new().at(now);
        outgoing.prepare(input(&text), open, &mut warnings).map(|_| warnings)
    }

    #[test]
    fn every_open_interrupt_is_answered() {
        // C-85
        let open = [Interrupt::new("i", "why"), Interrupt::new("j", "why")];
        let i = r#"{"interruptId":"i","status":"resolved","payload":false}"#;
        let j = r#"{"interruptId":"j","status":"cancelled"}"#;
        assert_eq!(answers(&format!("{i},{j}"), &open), Ok(Vec::new()));
        let fault = answers(i, &open).unwrap_err();
        assert_eq!((fault.rule, fault.class), ("C-85", Class::Interrupts));
        assert!(fault.message.ends_with(": j"), "{fault}");
        assert_eq!(answers("", &open).unwrap_err().rule, "C-85");
        // What is removed before sending answers nothing.
        let misspelt = r#"{"interruptId":"j","status":"accepted"}"#;
        let fault = answers(&format!("{i},{misspelt}"), &open).unwrap_err();
        assert!(fault.message.ends_with(": j"), "{fault}");
        assert_eq!(answers("", &[]), Ok(Vec::new()));
    }

    #[test]
    fn an_answer_to_nothing_is_warned_of() {
        // C-86
        let warnings = answers(r#"{"interruptId":"x","status":"resolved"}"#, &[]).unwrap();
        assert_eq!((warnings.len(), warnings[0].rule), (1, "C-86"));
        assert_eq!(warnings[0].path, "/resume/0/interruptId");
    }

    #[test]
    fn an_expired_interrupt_is_only_cancelled() {
        // C-87
        let resolved = r#"{"interruptId":"i","status":"resolved"}"#;
        let cancelled = r#"{"interruptId":"i","status":"cancelled"}"#;
        let open = |expires: &str| [Interrupt::new("i", "why").expires_at(expires)];
        for expires in ["2001-01-01T00:00:00Z", "2026-09-17T00:00:00Z", "2026-09-17"] {
            let fault = answers(resolved, &open(expires)).unwrap_err();
            assert_eq!((fault.rule, &*fault.path), ("C-87", "/resume/0/status"));
            assert_eq!(answers(cancelled, &open(expires)), Ok(Vec::new()));
        }
        // Not yet, or at a time that is none.
        for expires in ["2026-09-17T00:00:00.001Z", "2999-01-01", "soon", ""] {
            assert_eq!(answers(resolved, &open(expires)), Ok(Vec::new()), "{expires}");
        }
        let mut warnings = Vec::new();
        let text = format!(r#""messages":[],"resume":[{resolved}]"#);
        let timeless = Outgoing::new().prepare(input(&text), &open("2001-01-01"), &mut warnings);
        assert!(timeless.is_ok());
    }

    #[test]
    fn activity_is_not_sent() {
        // C-75
        let activity = r#"{"id":"a","role":"activity","activityType":"plan","content":{}}"#;
        let user = r#"{"role":"user","id":"u","content":"x"}"#;
        let (sent, warnings) = prepare("1.0", &format!(r#""messages":[{activity},{user}]"#));
        assert!(sent.contains(&format!(r#""messages":[{user}]"#)), "{sent}");
        assert!(warnings.is_empty());
    }

    #[test]
    fn the_version_is_declared_to_those_who_know_versions() {
        // C-80, C-83
        let declared = |peer| prepare(peer, r#""messages":[],"protocolVersion":"9.9""#).0;
        for peer in ["1.0", "2.0.0"] {
            assert!(declared(peer).contains(r#""protocolVersion":"1.0""#));
        }
        for peer in ["0.0.30", "0.0.58", "0.1.0"] {
            assert!(!declared(peer).contains("protocolVersion"), "{peer}");
        }
        let sent = Outgoing::new().prepare(input(r#""messages":[]"#), &[], &mut Vec::new());
        assert_eq!(sent.unwrap().protocol_version.unwrap().as_str(), "1.0");
    }

    #[test]
    fn unknown_material_is_removed() {
        // C-37, C-23, C-25, C-26
        let (sent, warnings) = prepare(
            "1.0",
            r#""x":1,"messages":[{"role":"robot"},{"role":"user","id":"u","content":[{"type":"image","source":{"type":"ftp"}}]}],"resume":[{"interruptId":"i","status":"later"}]"#,
        );
        assert!(sent.contains(r#""messages":[{"role":"user","id":"u","content":[]}]"#), "{sent}");
        assert!(sent.contains(r#""resume":[]"#));
        let paths: Vec<_> = warnings.iter().map(|it| it.path.as_str()).collect();
        assert_eq!(
            paths,
            ["/resume/0/interruptId", "/messages/0", "/messages/1/content/0", "/resume/0", "/x"]
        );
    }

    #[test]
    fn a_null_is_never_sent() {
        // P-17
        let (sent, _) = prepare(
            "1.0",
            r#""messages":[],"state":null,"tools":null,"forwardedProps":null,"parentRunId":null"#,
        );
        assert!(!sent.contains("null"), "{sent}");
        let null = || agui_types::Json::parse("null").unwrap();
        let input = RunAgentInput::new("t", "r", Vec::new()).state(null()).forwarded_props(null());
        let sent = Outgoing::new().prepare(input, &[], &mut Vec::new()).unwrap();
        assert!(!sent.to_json().contains("null"));
    }

    #[test]
    fn retired_parts_are_upgraded_for_everyone() {
        // C-84
        let (sent, warnings) = prepare(
            "1.0",
            r#""messages":[{"role":"user","id":"u","content":[{"type":"binary","mimeType":"image/png","url":"u"}]}]"#,
        );
        assert!(sent.contains(r#"{"type":"image","source":{"type":"url","value":"u","#), "{sent}");
        assert!(warnings.is_empty());
    }

    #[test]
    fn an_old_peer_gets_text() {
        // P-36, P-92, P-93
        let text = r#""parentRunId":"p","messages":[
            {"role":"user","id":"u","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"u"}},{"type":"text","text":"b"}]},
            {"role":"tool","id":"t","toolCallId":"c","content":[]},
            {"role":"assistant","id":"a","subagentRunId":"s"}]"#;
        let (sent, warnings) = prepare("0.0.39", text);
        assert!(
            sent.contains(
                r#""messages":[{"role":"user","id":"u","content":"ab"},{"role":"tool","id":"t","content":"","toolCallId":"c"},{"role":"assistant","id":"a","content":""}]"#
            ),
            "{sent}"
        );
        assert!(!sent.contains("parentRunId"));
        assert_eq!((warnings.len(), &*warnings[0].path), (1, "/messages/0/content"));
        assert!(warnings[0].message.contains("DROPS non-text parts (image)"), "{warnings:?}");

        let (sent, warnings) = prepare("0.0.40", text);
        assert!(sent.contains(r#""type":"image""#) && !sent.contains("subagentRunId"), "{sent}");
        assert!(warnings.is_empty());
        let (sent, _) = prepare("0.0.58", text);
        assert!(sent.contains(r#""subagentRunId":"s""#));
    }
}
