//! Chunks: the shorthand for start, content and end, spelled out.

use std::collections::HashMap;
use std::mem;

use agui_types::event::{
    Event, EventType, ReasoningMessageChunk, ReasoningMessageContent, ReasoningMessageEnd,
    ReasoningMessageStart, TextMessageChunk, TextMessageContent, TextMessageEnd, TextMessageStart,
    TextRole, ToolCallArgs, ToolCallChunk, ToolCallEnd, ToolCallStart,
};
use agui_types::{MessageId, SubagentRunId, ToolCallId};

use crate::report::quoted;
use crate::{Class, Fault};

/// Turns chunks into the events they are shorthand for (C-43 to C-48), and passes everything else
/// through.
///
/// Each owner (the parent agent, every subagent invocation) has one lane with at most one item being
/// assembled. Holds the openers of these items, nothing else; what is passed through allocates
/// nothing.
///
/// ```
/// use agui_stream::ChunkExpander;
/// use agui_types::Event;
/// use agui_types::event::TextMessageChunk;
///
/// let mut expander = ChunkExpander::new();
/// let mut out = Vec::new();
/// expander.push(TextMessageChunk::new().message_id("m1").delta("Hel").into(), &mut out)?;
/// expander.push(TextMessageChunk::new().delta("lo").into(), &mut out)?;
/// let types: Vec<&str> = out.iter().map(Event::type_name).collect();
/// assert_eq!(types, ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT"]);
/// # Ok::<(), agui_stream::Fault>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ChunkExpander {
    lanes: HashMap<Owner, Pending>,
    /// The lane in which an id is pending, by kind.
    texts: HashMap<MessageId, Owner>,
    calls: HashMap<ToolCallId, Owner>,
    reasoning: HashMap<MessageId, Owner>,
    /// How many items were opened.
    opened: u64,
    /// How many events were taken.
    taken: u64,
    fault: Option<Box<Fault>>,
}

/// Whose lane it is: a subagent invocation's, or the parent agent's.
type Owner = Option<SubagentRunId>;

/// An item being assembled, with what its opener said.
#[derive(Clone, Debug)]
struct Pending {
    opened: u64,
    item: Item,
}

#[derive(Clone, Debug)]
enum Item {
    Text { id: MessageId, role: TextRole, name: Option<String> },
    Call { id: ToolCallId, name: String, parent: Option<MessageId> },
    Reasoning { id: MessageId },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Call,
    Reasoning,
}

impl ChunkExpander {
    /// An expander with nothing pending.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event and appends to `out` what it stands for, behind the ends of what it
    /// closes (C-47).
    ///
    /// Fails with [`Class::Chunk`] where a chunk opens an item without what that needs (C-44), says
    /// something else than the opener (C-45), or could continue several items (C-46). Nothing is
    /// appended then, and every further call fails with the same fault.
    pub fn push(&mut self, event: Event, out: &mut Vec<Event>) -> Result<(), Fault> {
        if let Some(fault) = &self.fault {
            return Err(Fault::clone(fault));
        }
        let result = match event {
            Event::TextMessageChunk(chunk) => self.text(*chunk, out),
            Event::ToolCallChunk(chunk) => self.call(*chunk, out),
            Event::ReasoningMessageChunk(chunk) => self.reasoning(chunk, out),
            other => {
                if !self.lanes.is_empty() {
                    self.close_for(&other, out);
                }
                out.push(other);
                Ok(())
            }
        };
        if let Err(fault) = result {
            let fault = fault.of_event(self.taken);
            self.fault = Some(Box::new(fault.clone()));
            return Err(fault);
        }
        self.taken += 1;
        Ok(())
    }

    fn text(&mut self, mut chunk: TextMessageChunk, out: &mut Vec<Event>) -> Result<(), Fault> {
        let tag = &chunk.subagent_run_id;
        let owner = self.lane(Kind::Text, chunk.message_id.as_ref().map(|id| id.as_str()), tag)?;
        chunk.base.timestamp = None;
        let pending = self.lanes.get(&owner).map(|pending| &pending.item);
        let (id, wanted) = match (pending, chunk.message_id) {
            (Some(Item::Text { id, role, name }), named)
                if named.as_ref().is_none_or(|it| it == id) =>
            {
                let noun = "text message";
                let said = chunk.role.as_ref().map(TextRole::as_str);
                same(noun, id.as_str(), "role", said, Some(role.as_str()))?;
                same(noun, id.as_str(), "name", chunk.name.as_deref(), name.as_deref())?;
                (id.clone(), chunk.delta.is_some() || !chunk.base.is_empty())
            }
            (_, Some(id)) => {
                let role = chunk.role.unwrap_or(TextRole::Assistant);
                let mut start = TextMessageStart::new(&id).role(role.clone());
                start.name.clone_from(&chunk.name);
                start.subagent_run_id.clone_from(&owner);
                start.base.set_metadata(chunk.base.metadata().cloned());
                let item = Item::Text { id: id.clone(), role, name: chunk.name };
                self.open(&owner, item, start.into(), out);
                (id, chunk.delta.is_some() || chunk.base.raw_event().is_some())
            }
            (_, None) => return Err(missing(EventType::TextMessageChunk, "messageId")),
        };
        if wanted {
            let mut content = TextMessageContent::new(id, chunk.delta.unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base;
            out.push(content.into());
        }
        Ok(())
    }

    fn call(&mut self, mut chunk: ToolCallChunk, out: &mut Vec<Event>) -> Result<(), Fault> {
        let tag = &chunk.subagent_run_id;
        let owner =
            self.lane(Kind::Call, chunk.tool_call_id.as_ref().map(|id| id.as_str()), tag)?;
        chunk.base.timestamp = None;
        let pending = self.lanes.get(&owner).map(|pending| &pending.item);
        let (id, wanted) = match (pending, chunk.tool_call_id) {
            (Some(Item::Call { id, name, parent }), named)
                if named.as_ref().is_none_or(|it| it == id) =>
            {
                let noun = "tool call";
                let said = chunk.tool_call_name.as_deref();
                same(noun, id.as_str(), "toolCallName", said, Some(name))?;
                let said = chunk.parent_message_id.as_ref().map(MessageId::as_str);
                let held = parent.as_ref().map(MessageId::as_str);
                same(noun, id.as_str(), "parentMessageId", said, held)?;
                (id.clone(), chunk.delta.is_some() || !chunk.base.is_empty())
            }
            (_, Some(id)) => {
                let Some(name) = chunk.tool_call_name else {
                    return Err(missing(EventType::ToolCallChunk, "toolCallName"));
                };
                let parent = chunk.parent_message_id;
                let mut start = ToolCallStart::new(&id, name.as_str());
                start.parent_message_id.clone_from(&parent);
                start.subagent_run_id.clone_from(&owner);
                start.base.set_metadata(chunk.base.metadata().cloned());
                self.open(&owner, Item::Call { id: id.clone(), name, parent }, start.into(), out);
                (id, chunk.delta.is_some() || chunk.base.raw_event().is_some())
            }
            (_, None) => return Err(missing(EventType::ToolCallChunk, "toolCallId")),
        };
        if wanted {
            let mut args = ToolCallArgs::new(id, chunk.delta.unwrap_or_default());
            args.subagent_run_id = owner;
            args.base = chunk.base;
            out.push(args.into());
        }
        Ok(())
    }

    fn reasoning(
        &mut self,
        mut chunk: ReasoningMessageChunk,
        out: &mut Vec<Event>,
    ) -> Result<(), Fault> {
        let tag = &chunk.subagent_run_id;
        let named = chunk.message_id.as_ref().map(|id| id.as_str());
        let owner = self.lane(Kind::Reasoning, named, tag)?;
        chunk.base.timestamp = None;
        let pending = self.lanes.get(&owner).map(|pending| &pending.item);
        let (id, wanted) = match (pending, chunk.message_id) {
            (Some(Item::Reasoning { id }), named) if named.as_ref().is_none_or(|it| it == id) => {
                (id.clone(), chunk.delta.is_some() || !chunk.base.is_empty())
            }
            (_, Some(id)) => {
                let mut start = ReasoningMessageStart::new(&id);
                start.subagent_run_id.clone_from(&owner);
                start.base.set_metadata(chunk.base.metadata().cloned());
                self.open(&owner, Item::Reasoning { id: id.clone() }, start.into(), out);
                (id, chunk.delta.is_some() || chunk.base.raw_event().is_some())
            }
            (_, None) => return Err(missing(EventType::ReasoningMessageChunk, "messageId")),
        };
        if wanted {
            let mut content = ReasoningMessageContent::new(id, chunk.delta.unwrap_or_default());
            content.subagent_run_id = owner;
            content.base = chunk.base;
            out.push(content.into());
        }
        Ok(())
    }

    /// Whose lane a chunk belongs to.
    fn lane(&self, kind: Kind, id: Option<&str>, tag: &Owner) -> Result<Owner, Fault> {
        let parents = || self.lanes.get(&None).is_some_and(|pending| pending.item.kind() == kind);
        match id {
            Some(id) => match self.holder(kind, id) {
                Some(owner) if tag.is_some() && tag != owner => {
                    let name = |owner: &Owner| match owner {
                        Some(id) => format!("subagent {}", quoted(id.as_str())),
                        None => "the parent agent".into(),
                    };
                    let (found, expected) = (name(tag), name(owner));
                    Err(conflict(kind.noun(), id, "subagentRunId", found, expected))
                }
                Some(owner) => Ok(owner.clone()),
                None => Ok(tag.clone()),
            },
            None if tag.is_some() || parents() => Ok(tag.clone()),
            None => match kind {
                Kind::Text => sole(kind, &self.texts),
                Kind::Call => sole(kind, &self.calls),
                Kind::Reasoning => sole(kind, &self.reasoning),
            },
        }
    }

    /// The lane in which an item of this kind and id is pending.
    fn holder(&self, kind: Kind, id: &str) -> Option<&Owner> {
        match kind {
            Kind::Text => self.texts.get(id),
            Kind::Call => self.calls.get(id),
            Kind::Reasoning => self.reasoning.get(id),
        }
    }

    /// Opens an item in a lane, behind the end of what is pending there.
    fn open(&mut self, owner: &Owner, item: Item, start: Event, out: &mut Vec<Event>) {
        self.close(owner, out);
        match &item {
            Item::Text { id, .. } => drop(self.texts.insert(id.clone(), owner.clone())),
            Item::Call { id, .. } => drop(self.calls.insert(id.clone(), owner.clone())),
            Item::Reasoning { id } => drop(self.reasoning.insert(id.clone(), owner.clone())),
        }
        self.opened += 1;
        self.lanes.insert(owner.clone(), Pending { opened: self.opened, item });
        out.push(start);
    }

    /// Ends what an event that is no chunk ends.
    fn close_for(&mut self, event: &Event, out: &mut Vec<Event>) {
        match event {
            Event::RunStarted(_)
            | Event::RunFinished(_)
            | Event::RunError(_)
            | Event::MessagesSnapshot(_) => self.close_all(out),
            Event::SubagentFinished(event) => self.close(&Some(event.subagent_run_id.clone()), out),
            Event::SubagentError(event) => self.close(&Some(event.subagent_run_id.clone()), out),
            Event::Raw(_)
            | Event::ActivitySnapshot(_)
            | Event::ActivityDelta(_)
            | Event::ReasoningEncryptedValue(_)
            | Event::SubagentStarted(_)
            | Event::Unknown(_) => {}
            own => self.close(&own.attribution().cloned(), out),
        }
    }

    fn close(&mut self, owner: &Owner, out: &mut Vec<Event>) {
        if let Some(pending) = self.lanes.remove(owner) {
            match &pending.item {
                Item::Text { id, .. } => drop(self.texts.remove(id)),
                Item::Call { id, .. } => drop(self.calls.remove(id)),
                Item::Reasoning { id } => drop(self.reasoning.remove(id)),
            }
            out.push(pending.item.end(owner.clone()));
        }
    }

    fn close_all(&mut self, out: &mut Vec<Event>) {
        let lanes = mem::take(&mut self.lanes);
        (self.texts, self.calls, self.reasoning) = Default::default();
        let mut pending: Vec<(Owner, Pending)> = lanes.into_iter().collect();
        pending.sort_unstable_by_key(|(_, pending)| pending.opened);
        out.extend(pending.into_iter().map(|(owner, pending)| pending.item.end(owner)));
    }
}

impl Item {
    fn kind(&self) -> Kind {
        match self {
            Self::Text { .. } => Kind::Text,
            Self::Call { .. } => Kind::Call,
            Self::Reasoning { .. } => Kind::Reasoning,
        }
    }

    fn end(self, owner: Owner) -> Event {
        let mut end = match self {
            Self::Text { id, .. } => TextMessageEnd::new(id).into(),
            Self::Call { id, .. } => ToolCallEnd::new(id).into(),
            Self::Reasoning { id } => ReasoningMessageEnd::new(id).into(),
        };
        if let Some(owner) = owner {
            Event::attribute(&mut end, &owner);
        }
        end
    }
}

impl Kind {
    fn noun(self) -> &'static str {
        match self {
            Self::Text => "text message",
            Self::Call => "tool call",
            Self::Reasoning => "reasoning message",
        }
    }

    fn chunk(self) -> EventType {
        match self {
            Self::Text => EventType::TextMessageChunk,
            Self::Call => EventType::ToolCallChunk,
            Self::Reasoning => EventType::ReasoningMessageChunk,
        }
    }

    fn id(self) -> &'static str {
        if self == Self::Call { "toolCallId" } else { "messageId" }
    }
}

/// The lane of the only pending item of a kind; the parent agent's where there is none (C-46).
fn sole<K>(kind: Kind, pending: &HashMap<K, Owner>) -> Result<Owner, Fault> {
    if pending.len() > 1 {
        return Err(ambiguous(kind, pending.len()));
    }
    Ok(pending.values().next().cloned().flatten())
}

/// Checks a repeated member of an opener (C-45).
fn same(
    noun: &str,
    id: &str,
    member: &str,
    said: Option<&str>,
    held: Option<&str>,
) -> Result<(), Fault> {
    match said {
        Some(found) if Some(found) != held => {
            let expected = held.map_or_else(|| "(absent)".into(), quoted);
            Err(conflict(noun, id, member, quoted(found), expected))
        }
        _ => Ok(()),
    }
}

#[cold]
fn conflict(noun: &str, id: &str, member: &str, found: String, expected: String) -> Fault {
    let message = format!(
        "Cannot continue {noun} {}: chunk {member} {found} does not match the open stream's {member} \
         {expected}",
        quoted(id)
    );
    let fix = "repeat what the opener said, or leave it out after the first chunk";
    Fault::new("C-45", Class::Chunk, expected, found, fix).message(message).at(format!("/{member}"))
}

#[cold]
fn missing(chunk: EventType, member: &str) -> Fault {
    let message = format!("First {chunk} must have a {member}");
    let fix = format!("give the chunk that opens an item its {member}");
    Fault::new("C-44", Class::Chunk, format!("a {member}"), "none", fix)
        .message(message)
        .at(format!("/{member}"))
}

#[cold]
fn ambiguous(kind: Kind, lanes: usize) -> Fault {
    let (chunk, id, noun) = (kind.chunk(), kind.id(), kind.noun());
    let message = format!(
        "Ambiguous {chunk}: it carries neither {id} nor subagentRunId, and {lanes} lanes have an open \
         {noun}"
    );
    let fix = "attribute the chunk to the subagent it belongs to";
    Fault::new("C-46", Class::Chunk, format!("{id} or subagentRunId"), "neither", fix)
        .message(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use agui_types::{FromJson, ToJson};

    /// Reads shorthand such as `TEXT_MESSAGE_CHUNK messageId=m delta=a`.
    fn event(line: &str) -> Event {
        let (kind, members) = line.split_once(' ').unwrap_or((line, ""));
        let members: String = members
            .split_whitespace()
            .filter_map(|member| member.split_once('='))
            .map(|(name, value)| match value.starts_with(['{', '[']) {
                true => format!(",{name:?}:{value}"),
                false => format!(",{name:?}:{value:?}"),
            })
            .collect();
        Event::from_json_tolerant(&format!("{{\"type\":{kind:?}{members}}}")).unwrap().value
    }

    /// Expands lines and compares with lines; both say events as [`event`] reads them.
    #[track_caller]
    fn expands(lines: &[&str], expected: &[&str]) -> ChunkExpander {
        let (mut expander, mut out) = (ChunkExpander::new(), Vec::new());
        for line in lines {
            expander.push(event(line), &mut out).unwrap();
        }
        let texts = |events: Vec<Event>| events.iter().map(ToJson::to_json).collect::<Vec<_>>();
        assert_eq!(texts(out), texts(expected.iter().map(|line| event(line)).collect()));
        expander
    }

    /// Lines of which the last is refused, and nothing is emitted for it.
    #[track_caller]
    fn refuses(rule: &str, lines: &[&str]) -> Fault {
        let (mut expander, mut out) = (ChunkExpander::new(), Vec::new());
        let (last, before) = lines.split_last().unwrap();
        for line in before {
            expander.push(event(line), &mut out).unwrap();
        }
        let emitted = out.len();
        let fault = expander.push(event(last), &mut out).unwrap_err();
        assert_eq!((fault.rule, fault.class), (rule, Class::Chunk), "{fault}");
        assert_eq!(fault.event, Some(before.len() as u64));
        assert_eq!(out.len(), emitted);
        assert_eq!(expander.push(event("RAW event={}"), &mut out), Err(fault.clone()));
        fault
    }

    #[test]
    fn chunks_of_each_kind_are_spelled_out() {
        // C-43, C-49
        expands(
            &[
                "TEXT_MESSAGE_CHUNK messageId=m delta=a",
                "TEXT_MESSAGE_CHUNK delta=b",
                "TOOL_CALL_CHUNK toolCallId=c toolCallName=f parentMessageId=m",
                "TOOL_CALL_CHUNK toolCallId=c delta=x",
                "REASONING_MESSAGE_CHUNK messageId=r delta=",
                "RUN_FINISHED threadId=t runId=r",
            ],
            &[
                "TEXT_MESSAGE_START messageId=m role=assistant",
                "TEXT_MESSAGE_CONTENT messageId=m delta=a",
                "TEXT_MESSAGE_CONTENT messageId=m delta=b",
                "TEXT_MESSAGE_END messageId=m",
                "TOOL_CALL_START toolCallId=c toolCallName=f parentMessageId=m",
                "TOOL_CALL_ARGS toolCallId=c delta=x",
                "TOOL_CALL_END toolCallId=c",
                "REASONING_MESSAGE_START messageId=r role=reasoning",
                "REASONING_MESSAGE_CONTENT messageId=r delta=",
                "REASONING_MESSAGE_END messageId=r",
                "RUN_FINISHED threadId=t runId=r",
            ],
        );
    }

    #[test]
    fn an_opener_needs_its_ids() {
        // C-44, P-22
        refuses("C-44", &["TEXT_MESSAGE_CHUNK delta=a"]);
        refuses("C-44", &["REASONING_MESSAGE_CHUNK"]);
        refuses("C-44", &["TOOL_CALL_CHUNK toolCallName=f"]);
        let fault = refuses("C-44", &["TOOL_CALL_CHUNK toolCallId=c"]);
        assert_eq!(&*fault.message, "First TOOL_CALL_CHUNK must have a toolCallName");
        assert_eq!(&*fault.path, "/toolCallName");
        // What was pending in the lane is of another kind, so this would open an item.
        refuses("C-44", &["TEXT_MESSAGE_CHUNK messageId=m", "REASONING_MESSAGE_CHUNK delta=a"]);
    }

    #[test]
    fn a_repeat_says_what_the_opener_said() {
        // C-45, P-23
        let opener = "TEXT_MESSAGE_CHUNK messageId=m name=n";
        expands(
            &[opener, "TEXT_MESSAGE_CHUNK messageId=m name=n role=assistant"],
            &["TEXT_MESSAGE_START messageId=m role=assistant name=n"],
        );
        let fault = refuses("C-45", &[opener, "TEXT_MESSAGE_CHUNK role=user"]);
        assert!(fault.message.contains("does not match the open stream's role 'assistant'"));
        refuses("C-45", &[opener, "TEXT_MESSAGE_CHUNK name=other"]);
        refuses("C-45", &["TEXT_MESSAGE_CHUNK messageId=m", "TEXT_MESSAGE_CHUNK name=n"]);
        let call = "TOOL_CALL_CHUNK toolCallId=c toolCallName=f";
        refuses("C-45", &[call, "TOOL_CALL_CHUNK toolCallName=g"]);
        refuses("C-45", &[call, "TOOL_CALL_CHUNK parentMessageId=m"]);
        let fault = refuses("C-45", &[opener, "TEXT_MESSAGE_CHUNK messageId=m subagentRunId=a"]);
        assert_eq!(&*fault.path, "/subagentRunId");
        let tagged = "REASONING_MESSAGE_CHUNK messageId=r subagentRunId=a";
        refuses("C-45", &[tagged, "REASONING_MESSAGE_CHUNK messageId=r subagentRunId=b"]);
    }

    #[test]
    fn an_untagged_continuation_finds_its_lane() {
        // C-46, P-25
        let (a, b) = (
            "TEXT_MESSAGE_CHUNK messageId=m subagentRunId=a",
            "TEXT_MESSAGE_CHUNK messageId=n subagentRunId=b",
        );
        let opened = [
            "TEXT_MESSAGE_START messageId=m role=assistant subagentRunId=a",
            "TEXT_MESSAGE_START messageId=n role=assistant subagentRunId=b",
        ];
        // By its id, by the only candidate, by the parent agent's.
        expands(
            &[a, b, "TEXT_MESSAGE_CHUNK messageId=n delta=x"],
            &[opened[0], opened[1], "TEXT_MESSAGE_CONTENT messageId=n delta=x subagentRunId=b"],
        );
        expands(
            &[a, "REASONING_MESSAGE_CHUNK messageId=r", "TEXT_MESSAGE_CHUNK delta=x"],
            &[
                opened[0],
                "REASONING_MESSAGE_START messageId=r role=reasoning",
                "TEXT_MESSAGE_CONTENT messageId=m delta=x subagentRunId=a",
            ],
        );
        expands(
            &[a, b, "TEXT_MESSAGE_CHUNK messageId=p", "TEXT_MESSAGE_CHUNK delta=x"],
            &[
                opened[0],
                opened[1],
                "TEXT_MESSAGE_START messageId=p role=assistant",
                "TEXT_MESSAGE_CONTENT messageId=p delta=x",
            ],
        );
        let fault = refuses("C-46", &[a, b, "TEXT_MESSAGE_CHUNK delta=x"]);
        assert!(fault.message.contains("2 lanes"), "{fault}");
        refuses("C-44", &[a, b, "TEXT_MESSAGE_CHUNK delta=x subagentRunId=c"]);
    }

    #[test]
    fn the_closing_table_holds() {
        // C-47, P-26, C-31
        let open = [
            "TEXT_MESSAGE_CHUNK messageId=m",
            "TEXT_MESSAGE_CHUNK messageId=n subagentRunId=a",
            "TOOL_CALL_CHUNK toolCallId=c toolCallName=f subagentRunId=b",
        ];
        let ends = [
            ("", "TEXT_MESSAGE_END messageId=m"),
            ("a", "TEXT_MESSAGE_END messageId=n subagentRunId=a"),
            ("b", "TOOL_CALL_END toolCallId=c subagentRunId=b"),
        ];
        let closes = |line: &str, owners: &[&str]| {
            let (mut expander, mut out) = (ChunkExpander::new(), Vec::new());
            for line in open {
                expander.push(event(line), &mut out).unwrap();
            }
            out.clear();
            expander.push(event(line), &mut out).unwrap();
            let mut expected: Vec<Event> = ends
                .iter()
                .filter(|(owner, _)| owners.contains(owner))
                .map(|(_, end)| event(end))
                .collect();
            expected.push(event(line));
            assert_eq!(out, expected, "{line}");
        };
        for line in [
            "TEXT_MESSAGE_START messageId=x",
            "TEXT_MESSAGE_CONTENT messageId=m delta=",
            "TEXT_MESSAGE_END messageId=m",
            "TOOL_CALL_START toolCallId=x toolCallName=f",
            "TOOL_CALL_ARGS toolCallId=x delta=",
            "TOOL_CALL_END toolCallId=x",
            "TOOL_CALL_RESULT messageId=x toolCallId=c content=",
            "REASONING_START messageId=x",
            "REASONING_END messageId=x",
            "REASONING_MESSAGE_START messageId=x role=reasoning",
            "REASONING_MESSAGE_CONTENT messageId=x delta=",
            "REASONING_MESSAGE_END messageId=x",
            "STEP_STARTED stepName=s",
            "STEP_FINISHED stepName=s",
            "STATE_SNAPSHOT snapshot={}",
            "STATE_DELTA delta=[]",
            "CUSTOM name=n value={}",
        ] {
            closes(line, &[""]);
            closes(&format!("{line} subagentRunId=a"), &["a"]);
            closes(&format!("{line} subagentRunId=elsewhere"), &[]);
        }
        for line in [
            "RUN_STARTED threadId=t runId=r",
            "RUN_FINISHED threadId=t runId=r",
            "RUN_ERROR message=m",
            "MESSAGES_SNAPSHOT messages=[]",
        ] {
            closes(line, &["", "a", "b"]);
        }
        closes("SUBAGENT_FINISHED subagentRunId=a", &["a"]);
        closes("SUBAGENT_ERROR subagentRunId=b message=m", &["b"]);
        for line in [
            "RAW event={}",
            "ACTIVITY_SNAPSHOT messageId=x activityType=p content={}",
            "ACTIVITY_DELTA messageId=x activityType=p patch=[]",
            "REASONING_ENCRYPTED_VALUE subtype=message entityId=m encryptedValue=v",
            "SUBAGENT_STARTED subagentRunId=x name=n",
            "FUTURE_EVENT",
        ] {
            closes(line, &[]);
        }
    }

    #[test]
    fn metadata_and_the_raw_event_reach_the_item() {
        // C-48
        expands(
            &[
                "TEXT_MESSAGE_CHUNK messageId=m metadata={\"a\":1}",
                "TEXT_MESSAGE_CHUNK metadata={\"b\":1}",
                "TEXT_MESSAGE_CHUNK rawEvent={}",
                "TEXT_MESSAGE_CHUNK",
                "TOOL_CALL_CHUNK toolCallId=c toolCallName=f rawEvent={} metadata={\"a\":1}",
            ],
            &[
                "TEXT_MESSAGE_START messageId=m role=assistant metadata={\"a\":1}",
                "TEXT_MESSAGE_CONTENT messageId=m delta= metadata={\"b\":1}",
                "TEXT_MESSAGE_CONTENT messageId=m delta= rawEvent={}",
                "TEXT_MESSAGE_END messageId=m",
                "TOOL_CALL_START toolCallId=c toolCallName=f metadata={\"a\":1}",
                "TOOL_CALL_ARGS toolCallId=c delta= rawEvent={} metadata={\"a\":1}",
            ],
        );
    }

    #[test]
    fn the_timestamp_of_a_chunk_is_not_carried() {
        let timestamp = agui_types::Timestamp::new(1).unwrap();
        let chunk = TextMessageChunk::new().message_id("m").delta("a").timestamp(timestamp);
        let mut out = Vec::new();
        ChunkExpander::new().push(chunk.into(), &mut out).unwrap();
        assert!(out.iter().all(|event| event.base().unwrap().timestamp.is_none()));
    }

    #[test]
    fn the_end_of_the_stream_closes_nothing() {
        // C-14
        let expander = expands(
            &["TEXT_MESSAGE_CHUNK messageId=m"],
            &["TEXT_MESSAGE_START messageId=m role=assistant"],
        );
        assert_eq!(expander.lanes.len(), 1);
    }

    #[test]
    fn lanes_that_are_done_hold_nothing() {
        let (mut expander, mut out) = (ChunkExpander::new(), Vec::new());
        for at in 0..1_000 {
            let chunk = TextMessageChunk::new().message_id(at.to_string());
            expander.push(chunk.subagent_run_id(at.to_string()).into(), &mut out).unwrap();
        }
        assert_eq!(expander.lanes.len(), 1_000);
        expander.push(event("RUN_ERROR message=m"), &mut out).unwrap();
        assert!(expander.lanes.is_empty() && expander.texts.is_empty());
        let ends: Vec<&str> = out[1_000..2_000]
            .iter()
            .map(|end| end.attribution().map_or("", SubagentRunId::as_str))
            .collect();
        assert_eq!(ends, (0..1_000).map(|at| at.to_string()).collect::<Vec<_>>());
    }
}
