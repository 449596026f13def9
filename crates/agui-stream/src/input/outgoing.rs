//! Preparing a run input for sending.

use std::collections::{HashMap, HashSet};

use agui_types::{
    ContentPart, Interrupt, Message, MessageContent, ProtocolVersion, Reading, ResumeStatus,
    RunAgentInput, Timestamp,
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
        let input = &mut reading.value;
        self.check_resume(input, open, warnings)?;
        // Quietly: the history may be older than the application that holds it.
        upgrade(&mut input.messages, |_, _, _| {});
        let mut reading = enforce_outgoing(reading, warnings).map(Reading::from)?;
        let input = &mut reading.value;
        input
            .messages
            .retain(|message| !matches!(message, Message::Activity(_)));
        if !self.peer.takes_parts() {
            flatten(input, warnings);
        }
        if !self.peer.knows_subagents() {
            for message in &mut input.messages {
                disown_message(message);
            }
        }
        input.protocol_version = self
            .peer
            .knows_versions()
            .then(|| ProtocolVersion::from(ProtocolVersion::DECLARED));
        Ok(reading.value)
    }

    fn check_resume(
        &self,
        input: &RunAgentInput,
        open: &[Interrupt],
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Fault> {
        let entries = input.resume.as_deref().unwrap_or_default();
        let answered: HashSet<_> = entries.iter().map(|entry| &entry.interrupt_id).collect();
        let missing: Vec<&str> = open
            .iter()
            .filter(|interrupt| !answered.contains(&interrupt.id))
            .map(|interrupt| interrupt.id.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(not_covered(&missing));
        }
        let open: HashMap<_, _> = open
            .iter()
            .map(|interrupt| (&interrupt.id, interrupt))
            .collect();
        for (at, entry) in entries.iter().enumerate() {
            let Some(interrupt) = open.get(&entry.interrupt_id) else {
                let id = quoted(entry.interrupt_id.as_str());
                let message =
                    format!("the resume entry {id} answers no open interrupt of the thread");
                warnings.push(Warning::new(
                    "C-86",
                    format!("/resume/{at}/interruptId"),
                    message,
                ));
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
        expires
            .zip(self.now)
            .is_some_and(|(expires, now)| expires <= now.get())
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
            warnings.push(Warning::new(
                "P-93",
                format!("/messages/{at}/content"),
                message,
            ));
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
    Fault::new(
        "C-85",
        Class::Interrupts,
        expected,
        format!("none for {listed}"),
        fix,
    )
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
