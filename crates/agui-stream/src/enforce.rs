//! Enforcement: what the protocol does not describe never reaches application code, and what it does
//! describe must be well-formed.

use std::collections::HashSet;

use agui_types::event::{EncryptedValueSubtype, TextRole};
use agui_types::read::{Finding, FindingKind, Findings, ReadErrorKind};
use agui_types::{
    ContentPart, Event, JsonPatch, Message, MessageContent, PartSource, PatchOp, ReadError,
    ResumeStatus, RunAgentInput, RunFinishedOutcome, SubagentFinishedOutcome,
};

use crate::report::{quoted, shortened};
use crate::{Class, Fault, Frame, Warning};

/// Drops and strips what the protocol does not describe (C-22 to C-27), each with a warning, and
/// refuses `null` in an optional position (C-28). `None` where the whole event is dropped.
///
/// Fails with [`Class::Schema`]. Malformed values of described members never get this far: they fail
/// in the reader, and `Fault::from` makes a fault of that.
pub fn enforce(frame: Frame, warnings: &mut Vec<Warning>) -> Result<Option<Event>, Fault> {
    let Frame {
        event,
        findings,
        omitted,
        index,
    } = frame;
    let mut found = Found {
        findings,
        omitted,
        removed: Vec::new(),
    };
    let first = warnings.len();
    let enforced = found.event(event, warnings);
    for warning in &mut warnings[first..] {
        warning.event = index;
    }
    enforced.map_err(|fault| Fault {
        event: index,
        ..fault
    })
}

/// Drops and strips what the protocol does not describe from a run input (C-37, P-74), and refuses
/// the `null`s among the findings.
pub(crate) fn enforce_input(
    mut input: RunAgentInput,
    findings: Vec<Finding>,
    omitted: usize,
    warnings: &mut Vec<Warning>,
) -> Result<RunAgentInput, Fault> {
    let mut found = Found {
        findings,
        omitted,
        removed: Vec::new(),
    };
    found.input(&mut input, "");
    found.settle("the input", warnings)?;
    Ok(input)
}

/// What is found on one event or input.
struct Found {
    findings: Vec<Finding>,
    omitted: usize,
    removed: Vec<Removed>,
}

/// Something removed because a union or a closed set has no such value.
struct Removed {
    rule: &'static str,
    path: String,
    why: String,
}

impl Found {
    fn event(
        &mut self,
        mut event: Event,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Event>, Fault> {
        let mut kept = true;
        match &mut event {
            Event::Unknown(unknown) => {
                let message = format!("dropped an event of unknown type {}", quoted(unknown.tag()));
                warnings.push(Warning::new("C-22", "", message));
                return Ok(None);
            }
            Event::TextMessageStart(event) => self.role(&mut event.role),
            Event::TextMessageChunk(event) => self.role(&mut event.role),
            Event::ToolCallResult(event) => self.content(&mut event.content, "/content"),
            Event::StateDelta(event) => self.patch(&mut event.delta, "/delta"),
            Event::ActivityDelta(event) => self.patch(&mut event.patch, "/patch"),
            Event::MessagesSnapshot(event) => self.messages(&mut event.messages, "/messages"),
            Event::RunStarted(event) => {
                if let Some(input) = &mut event.input {
                    self.input(input, "/input");
                }
            }
            Event::RunFinished(event) => {
                if let Some(RunFinishedOutcome::Unknown(unknown)) = &event.outcome {
                    self.remove("C-24", "/outcome", "kind", unknown.tag());
                    event.outcome = None;
                }
            }
            Event::SubagentFinished(event) => {
                if let Some(SubagentFinishedOutcome::Unknown(unknown)) = &event.outcome {
                    self.remove("C-24", "/outcome", "kind", unknown.tag());
                    event.outcome = None;
                }
            }
            Event::ReasoningEncryptedValue(event) => {
                if let EncryptedValueSubtype::Unknown(subtype) = &event.subtype {
                    self.remove("C-63", "", "subtype", subtype);
                    kept = false;
                }
            }
            _ => {}
        }
        if !self.findings.is_empty() || !self.removed.is_empty() || self.omitted > 0 {
            self.settle(event.type_name(), warnings)?;
        }
        Ok(kept.then_some(event))
    }

    fn role(&mut self, role: &mut Option<TextRole>) {
        if let Some(TextRole::Unknown(unknown)) = role {
            self.remove("C-24", "/role", "role", unknown);
            *role = None;
        }
    }

    fn input(&mut self, input: &mut RunAgentInput, at: &str) {
        self.messages(&mut input.messages, &format!("{at}/messages"));
        if let Some(resume) = &mut input.resume {
            self.list(
                resume,
                &format!("{at}/resume"),
                |_, entry, _| match &entry.status {
                    ResumeStatus::Unknown(status) => Some(("status", status.clone())),
                    _ => None,
                },
            );
        }
        // P-75: missing equals empty, and 0.x readers expect the lists.
        input.tools.get_or_insert_default();
        input.context.get_or_insert_default();
    }

    fn messages(&mut self, messages: &mut Vec<Message>, at: &str) {
        self.list(messages, at, |found, message, path| {
            let content = match message {
                Message::Unknown(unknown) => return Some(("role", unknown.tag().into())),
                Message::User(message) => &mut message.content,
                Message::Tool(message) => &mut message.content,
                _ => return None,
            };
            if let MessageContent::Parts(_) = content {
                found.content(content, &format!("{path}/content"));
            }
            None
        });
    }

    fn content(&mut self, content: &mut MessageContent, at: &str) {
        let MessageContent::Parts(parts) = content else {
            return;
        };
        self.list(parts, at, |_, part, _| {
            let source = match part {
                ContentPart::Unknown(unknown) => return Some(("type", unknown.tag().into())),
                ContentPart::Image(part) => &part.source,
                ContentPart::Audio(part) => &part.source,
                ContentPart::Video(part) => &part.source,
                ContentPart::Document(part) => &part.source,
                _ => return None,
            };
            // The source is required, so the part goes with it (C-25).
            match source {
                PartSource::Unknown(unknown) => Some(("source type", unknown.tag().into())),
                _ => None,
            }
        });
    }

    fn patch(&mut self, patch: &mut JsonPatch, at: &str) {
        self.list(&mut patch.0, at, |_, operation, _| match &operation.op {
            PatchOp::Unknown(unknown) => Some(("op", unknown.tag().into())),
            _ => None,
        });
    }

    /// Removes the elements of which `unknown` names what is unknown about them (C-26).
    fn list<T>(
        &mut self,
        list: &mut Vec<T>,
        at: &str,
        mut unknown: impl FnMut(&mut Self, &mut T, &str) -> Option<(&'static str, Box<str>)>,
    ) {
        let mut index = 0;
        list.retain_mut(|element| {
            let path = format!("{at}/{index}");
            index += 1;
            let Some((what, value)) = unknown(self, element, &path) else {
                return true;
            };
            self.remove("C-26", path, what, &value);
            false
        });
    }

    fn remove(&mut self, rule: &'static str, path: impl Into<String>, what: &str, value: &str) {
        let why = format!("unknown {what} {}", quoted(value));
        self.removed.push(Removed {
            rule,
            path: path.into(),
            why,
        });
    }

    /// Reports everything found that is not part of something removed.
    fn settle(&mut self, on: &str, warnings: &mut Vec<Warning>) -> Result<(), Fault> {
        const MOST: usize = Findings::MOST;
        let removed: HashSet<&str> = self
            .removed
            .iter()
            .map(|removed| removed.path.as_str())
            .collect();
        let gone = |path: &str| {
            !removed.is_empty()
                && (removed.contains("")
                    || path
                        .match_indices('/')
                        .any(|(at, _)| removed.contains(&path[..at]))
                    || removed.contains(path))
        };
        let left = || self.findings.iter().filter(|finding| !gone(&finding.path));
        if let Some(null) = left().find(|finding| finding.kind == FindingKind::Null) {
            return Err(null_found(&null.path));
        }
        for removed in self.removed.iter().take(MOST) {
            let Removed { rule, path, why } = removed;
            let message = match path.as_str() {
                "" => format!("dropped {on}: {why}"),
                path => format!("removed {} from {on}: {why}", shortened(path)),
            };
            warnings.push(Warning::new(rule, path.as_str(), message));
        }
        for finding in left() {
            if let FindingKind::UnknownMember(_) = finding.kind {
                let path = shortened(&finding.path);
                let message = format!("stripped the undescribed member {path} from {on}");
                warnings.push(Warning::new("C-23", finding.path.as_str(), message));
            }
        }
        let more = self.omitted + self.removed.len().saturating_sub(MOST);
        if more > 0 {
            let message = format!("removed {more} more things that are not described from {on}");
            warnings.push(Warning::new("C-23", "", message));
        }
        Ok(())
    }
}

#[cold]
fn null_found(path: &str) -> Fault {
    let (expected, fix) = (
        "a value, or the member left out",
        "leave a member without a value out",
    );
    Fault::new("C-28", Class::Schema, expected, "null", fix).at(path)
}

/// What is wrong with an event that cannot be read: malformed described members are
/// [`Class::Schema`] (C-28), a text that is no event at all is [`Class::Frame`] (T-22).
impl From<&ReadError> for Fault {
    #[cold]
    fn from(error: &ReadError) -> Self {
        let not_an_event = matches!(
            error.kind(),
            ReadErrorKind::Syntax | ReadErrorKind::TooDeep | ReadErrorKind::NotAnEvent
        );
        let (rule, class, fix) = if not_an_event {
            let fix = "send one JSON object with a string member \"type\" per event";
            ("T-22", Class::Frame, fix)
        } else {
            (
                "C-28",
                Class::Schema,
                "send the member as the protocol's schema describes it",
            )
        };
        let found = if error.found().is_empty() {
            "nothing"
        } else {
            error.found()
        };
        let fault = Self::new(rule, class, error.expected(), found, fix).at(error.path());
        match error.kind() {
            ReadErrorKind::Syntax | ReadErrorKind::TooDeep => fault.message(error.to_string()),
            _ => fault,
        }
    }
}
