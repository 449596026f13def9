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
#[inline]
pub fn enforce(frame: Frame, warnings: &mut Vec<Warning>) -> Result<Option<Event>, Fault> {
    // What comes by the token holds no union and no closed set.
    if frame.findings.is_empty()
        && let Event::TextMessageContent(_)
        | Event::ToolCallArgs(_)
        | Event::ReasoningMessageContent(_) = frame.event
    {
        return Ok(Some(frame.event));
    }
    enforce_rare(frame, warnings)
}

fn enforce_rare(frame: Frame, warnings: &mut Vec<Warning>) -> Result<Option<Event>, Fault> {
    let Frame { event, findings, omitted, index } = frame;
    let mut found = Found { findings, omitted, removed: Vec::new() };
    let first = warnings.len();
    let enforced = found.event(event, warnings);
    for warning in &mut warnings[first..] {
        warning.event = index;
    }
    enforced.map_err(|fault| Fault { event: index, ..fault })
}

/// Strips a run input (P-74) and fails at the first `null` among the findings.
pub(crate) fn enforce_input(
    input: &mut RunAgentInput,
    findings: Vec<Finding>,
    omitted: usize,
    warnings: &mut Vec<Warning>,
) -> Result<(), Fault> {
    strip_input(input, findings, omitted, warnings).refuse_null()
}

/// Removes what the protocol does not describe from a run input, with warnings (C-37).
pub(crate) fn strip_input(
    input: &mut RunAgentInput,
    findings: Vec<Finding>,
    omitted: usize,
    warnings: &mut Vec<Warning>,
) -> Found {
    let mut found = Found { findings, omitted, removed: Vec::new() };
    found.input(input, "");
    found.report("the input", warnings);
    found
}

/// What is found on one event or input.
pub(crate) struct Found {
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
            self.refuse_null()?;
            self.report(event.type_name(), warnings);
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
            self.list(resume, &format!("{at}/resume"), |_, entry, _| match &entry.status {
                ResumeStatus::Unknown(status) => Some(("status", status.clone())),
                _ => None,
            });
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
            if let ContentPart::Unknown(unknown) = part {
                return Some(("type", unknown.tag().into()));
            }
            // The source is required, so the part goes with it (C-25).
            match part.source() {
                Some(PartSource::Unknown(unknown)) => Some(("source type", unknown.tag().into())),
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
        self.removed.push(Removed { rule, path: path.into(), why });
    }

    /// Fails at the first `null` that is not part of something removed (C-28).
    fn refuse_null(&self) -> Result<(), Fault> {
        let mut left = self.left();
        match left.find(|finding| finding.kind == FindingKind::Null) {
            Some(null) => Err(null_found(&null.path)),
            None => Ok(()),
        }
    }

    /// Warns of what was removed and what the reader stripped.
    fn report(&self, on: &str, warnings: &mut Vec<Warning>) {
        const MOST: usize = Findings::MOST;
        for Removed { rule, path, why } in self.removed.iter().take(MOST) {
            let message = match path.as_str() {
                "" => format!("dropped {on}: {why}"),
                path => format!("removed {} from {on}: {why}", shortened(path)),
            };
            warnings.push(Warning::new(rule, path.as_str(), message));
        }
        for finding in self.left() {
            if let FindingKind::UnknownMember(_) = finding.kind {
                let path = shortened(&finding.path);
                let message = format!("stripped the undescribed member {path} from {on}");
                warnings.push(Warning::new("C-23", finding.path.as_str(), message));
            }
        }
        // The reader counts unknown kinds too, which are among those removed.
        let more = self.omitted.max(self.removed.len().saturating_sub(MOST));
        if more > 0 {
            let message = format!("removed at least {more} more things not described from {on}");
            warnings.push(Warning::new("C-23", "", message));
        }
    }

    /// The findings that are not part of something removed, which is reported as a whole.
    fn left(&self) -> impl Iterator<Item = &Finding> {
        let removed: HashSet<&str> =
            self.removed.iter().map(|removed| removed.path.as_str()).collect();
        let gone = move |path: &str| {
            let mut ancestors = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
            !removed.is_empty() && ancestors.any(|ancestor| removed.contains(ancestor))
        };
        self.findings.iter().filter(move |finding| !gone(&finding.path))
    }
}

#[cold]
fn null_found(path: &str) -> Fault {
    let (expected, fix) = ("a value, or the member left out", "leave a member without a value out");
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
            ("C-28", Class::Schema, "send the member as the protocol's schema describes it")
        };
        let found = if error.found().is_empty() { "nothing" } else { error.found() };
        let fault = Self::new(rule, class, error.expected(), found, fix).at(error.path());
        match error.kind() {
            ReadErrorKind::Syntax | ReadErrorKind::TooDeep => fault.message(error.to_string()),
            _ => fault,
        }
    }
}

#[cfg(test)]
mod tests {
    use agui_types::{EventReader, FromJson, ToJson};

    use super::*;

    /// What enforcement makes of an event: `None` where it is dropped, and the warnings.
    fn enforced(text: &str) -> (Option<String>, Vec<Warning>) {
        let (verdict, warnings) = verdict(text);
        (verdict.unwrap().map(|event| event.to_json()), warnings)
    }

    fn verdict(text: &str) -> (Result<Option<Event>, Fault>, Vec<Warning>) {
        let reading = EventReader::new().tolerant(text).unwrap();
        let mut warnings = Vec::new();
        (enforce(Frame::new(reading, Some(7)), &mut warnings), warnings)
    }

    /// Checks what is left of an event, and the rule and path of each warning.
    #[track_caller]
    fn leaves(text: &str, left: &str, warned: &[(&str, &str)]) {
        let (event, warnings) = enforced(text);
        assert_eq!(event.as_deref(), Some(left));
        let found: Vec<_> = warnings.iter().map(|it| (it.rule, it.path.as_str())).collect();
        assert_eq!(found, warned);
        assert!(warnings.iter().all(|warning| warning.event == Some(7)));
    }

    #[test]
    fn an_unknown_event_is_dropped() {
        // C-22, C-27
        let (event, warnings) = enforced(r#"{"type":"FUTURE_EVENT","x":null}"#);
        assert_eq!(event, None);
        assert_eq!((warnings[0].rule, warnings[0].event), ("C-22", Some(7)));
        assert!(warnings[0].to_string().contains("FUTURE_EVENT"));
    }

    #[test]
    fn undescribed_members_are_stripped_at_any_depth() {
        // C-23
        leaves(
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m","constructor":1,"a/b":{"deep":null}}"#,
            r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            &[("C-23", "/constructor"), ("C-23", "/a~1b")],
        );
        leaves(
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"","x":1}}]}]}"#,
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"assistant","id":"m","toolCalls":[{"type":"function","id":"c","function":{"name":"f","arguments":""}}]}]}"#,
            &[("C-23", "/messages/0/toolCalls/0/function/x")],
        );
    }

    #[test]
    fn an_unknown_kind_in_an_optional_member_takes_the_member() {
        // C-24, C-16
        leaves(
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{"type":"paused","x":null}}"#,
            r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
            &[("C-24", "/outcome")],
        );
        leaves(
            r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"a","outcome":{"type":"paused"}}"#,
            r#"{"type":"SUBAGENT_FINISHED","subagentRunId":"a"}"#,
            &[("C-24", "/outcome")],
        );
        // The same for a value of a closed set (C-49 then says assistant).
        leaves(
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"narrator"}"#,
            r#"{"type":"TEXT_MESSAGE_START","messageId":"m"}"#,
            &[("C-24", "/role")],
        );
        leaves(
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","role":"narrator"}"#,
            r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m"}"#,
            &[("C-24", "/role")],
        );
    }

    #[test]
    fn an_unknown_kind_in_a_list_takes_the_element() {
        // C-26, C-69
        leaves(
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"hologram"},{"type":"text","text":"x"}]}"#,
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"text","text":"x"}]}"#,
            &[("C-26", "/content/0")],
        );
        leaves(
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"robot"},{"role":"system","id":"m","content":""}]}"#,
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"system","id":"m","content":""}]}"#,
            &[("C-26", "/messages/0")],
        );
        leaves(
            r#"{"type":"STATE_DELTA","delta":[{"op":"merge"},{"op":"add","path":"/a","value":1,"note":"kept"},{"op":"x"}]}"#,
            r#"{"type":"STATE_DELTA","delta":[{"op":"add","path":"/a","value":1,"note":"kept"}]}"#,
            &[("C-26", "/delta/0"), ("C-26", "/delta/2")],
        );
        leaves(
            r#"{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"p","patch":[{"op":"merge"}]}"#,
            r#"{"type":"ACTIVITY_DELTA","messageId":"m","activityType":"p","patch":[]}"#,
            &[("C-26", "/patch/0")],
        );
        leaves(
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"resume":[{"interruptId":"i","status":"postponed"}]}}"#,
            r#"{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[],"resume":[]}}"#,
            &[("C-26", "/input/resume/0")],
        );
    }

    #[test]
    fn an_unknown_kind_in_a_required_member_takes_what_holds_it() {
        // C-25: up to the part, which the list absorbs; the outer path is reported once, also where
        // more was wrong inside.
        leaves(
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user","id":"m","content":[{"type":"image","x":1,"metadata":null,"source":{"type":"ftp"}},{"type":"text","text":"x","y":1}]}]}"#,
            r#"{"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user","id":"m","content":[{"type":"text","text":"x"}]}]}"#,
            &[("C-26", "/messages/0/content/0"), ("C-23", "/messages/0/content/1/y")],
        );
        // C-63: up to the event.
        let (event, warnings) = enforced(
            r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"thread","entityId":"e","encryptedValue":"v","x":1}"#,
        );
        assert_eq!(event, None);
        assert_eq!((warnings.len(), warnings[0].rule), (1, "C-63"));
    }

    #[test]
    fn a_null_nobody_translated_is_malformed() {
        // C-28, P-17
        let (verdict, warnings) =
            verdict(r#"{"type":"TEXT_MESSAGE_START","messageId":"m","x":1,"name":null}"#);
        let fault = verdict.unwrap_err();
        assert_eq!((fault.rule, fault.class), ("C-28", Class::Schema));
        assert_eq!((&*fault.path, fault.event), ("/name", Some(7)));
        assert!(warnings.is_empty());
    }

    #[test]
    fn open_objects_and_passthrough_are_kept_without_a_word() {
        // C-30, C-31
        for text in [
            r#"{"type":"CUSTOM","name":"anything","value":{"x":null},"metadata":{"k":null}}"#,
            r#"{"type":"RAW","event":{"type":"unknown"},"source":"provider"}"#,
            r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"m","activityType":"new","content":{"type":"new"}}"#,
        ] {
            let (event, warnings) = enforced(text);
            assert_eq!(event.as_deref(), Some(text));
            assert!(warnings.is_empty());
        }
    }

    #[test]
    fn what_middleware_adds_is_enforced_too() {
        // C-32
        let event = Event::from_json_tolerant(
            r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{"type":"hologram"}]}"#,
        );
        let (frame, mut warnings) = (Frame::from(event.unwrap().value), Vec::new());
        let event = enforce(frame, &mut warnings).unwrap().unwrap();
        assert!(event.to_json().contains(r#""content":[]"#));
        assert_eq!((warnings.len(), warnings[0].event), (1, None));
    }

    #[test]
    fn a_thousand_removals_are_told_and_the_rest_is_counted() {
        let parts = vec![r#"{"type":"hologram"}"#; Findings::MOST + 1].join(",");
        let (event, warnings) = enforced(&format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{parts}]}}"#
        ));
        assert!(event.unwrap().contains(r#""content":[]"#));
        assert_eq!(warnings.len(), Findings::MOST + 1);
        assert!(warnings.last().unwrap().message.contains("1 more"), "{:?}", warnings.last());
        let parts = vec![r#"{"type":"hologram"}"#; Findings::MOST].join(",");
        let (_, warnings) = enforced(&format!(
            r#"{{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":[{parts}]}}"#
        ));
        assert_eq!(warnings.len(), Findings::MOST);
    }

    #[test]
    fn what_cannot_be_read_is_a_fault() {
        // C-28, C-29, T-22
        for (text, rule, class, path) in [
            (r#"{"type":"STEP_STARTED"}"#, "C-28", Class::Schema, "/stepName"),
            (r#"{"type":"STEP_STARTED","stepName":7}"#, "C-28", Class::Schema, "/stepName"),
            (
                r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":[]}"#,
                "C-28",
                Class::Schema,
                "/outcome",
            ),
            (r#"{"kind":"x"}"#, "T-22", Class::Frame, "/type"),
            ("[]", "T-22", Class::Frame, ""),
            ("{", "T-22", Class::Frame, ""),
        ] {
            let error = EventReader::new().tolerant(text).unwrap_err();
            let fault = Fault::from(&error);
            assert_eq!((fault.rule, fault.class, &*fault.path), (rule, class, path), "{fault}");
            assert!(!fault.fix.is_empty() && !fault.message.is_empty());
        }
    }
}
