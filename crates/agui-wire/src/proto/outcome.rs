//! How runs and subagents end: their outcomes are flattened into the event.

use std::borrow::Cow;

use agui_types::event::{RunFinished, SubagentFinished};
use agui_types::read::FindingKind;
use agui_types::{
    CancelledOutcome, FromJson, Interrupt, InterruptId, InterruptOutcome, Interrupts, Json,
    JsonObject, Metadata, ReadErrorKind, RunFinishedOutcome, RunId, SubagentFinishedOutcome,
    SubagentRunId, SubagentSuccessOutcome, SuccessOutcome, SuspendedOutcome, ThreadId, ToJson,
    TokenUsage, ToolCallId, Unknown,
};

use super::base;
use super::context::{Context, text};
use super::fault::Fault;
use super::field::{Field, FieldType, Gather, Message, Value, write_list};
use super::path::Step;
use super::scan::Pieces;
use super::text::{ObjectText, list_text};
use super::write::Writer;
use crate::encode_error::EncodeError;

impl Message for RunFinished {
    const NAME: &'static str = "RunFinishedEvent";
    const FIELDS: &'static [Field] = &[
        Field::message(1, "base_event", "BaseEvent"),
        Field::string(2, "thread_id"),
        Field::string(3, "run_id"),
        Field::new::<Option<Json>>(4, "result"),
        Field::string(5, "outcome"),
        Field::new::<Vec<Interrupt>>(6, "interrupts"),
        Field::new::<Vec<TokenUsage>>(7, "usage"),
        Field::new::<Vec<ToolCallId>>(8, "pending_tool_call_ids"),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut base = None;
        let mut thread_id = <ThreadId as FieldType>::Slot::default();
        let mut run_id = <RunId as FieldType>::Slot::default();
        let mut result = <Option<Json> as FieldType>::Slot::default();
        let mut outcome: Option<&[u8]> = None;
        let mut interrupts = Vec::new();
        let mut usage = Vec::new();
        let mut pending = Vec::new();
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                1 => Gather::gather(&mut base, raw, cx)?,
                2 => ThreadId::occur(&mut thread_id, raw, cx, "thread_id")?,
                3 => RunId::occur(&mut run_id, raw, cx, "run_id")?,
                4 => Option::<Json>::occur(&mut result, raw, cx, "result")?,
                5 => Gather::gather(&mut outcome, raw, cx)?,
                6 => cx.inside(Step::Member("outcome"), |cx| {
                    Vec::<Interrupt>::occur(&mut interrupts, raw, cx, "interrupts")
                })?,
                7 => Vec::<TokenUsage>::occur(&mut usage, raw, cx, "usage")?,
                8 => cx.inside(Step::Member("outcome"), |cx| {
                    Vec::<ToolCallId>::occur(&mut pending, raw, cx, "pending_tool_call_ids")
                })?,
                _ => {}
            }
        }
        let base = base::read(base.as_ref(), Self::TYPE, pieces, cx)?;
        let mut event = Self::new(
            ThreadId::finish(thread_id, cx, "thread_id")?,
            RunId::finish(run_id, cx, "run_id")?,
        );
        event.result = Option::<Json>::finish(result, cx, "result")?;
        event.outcome = run_outcome(text(outcome.unwrap_or_default())?, interrupts, pending, cx)?;
        event.usage = Some(usage).filter(|usage: &Vec<_>| !usage.is_empty());
        event.base = base;
        Ok(event)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let mut interrupts: Cow<'_, [Interrupt]> = Cow::default();
        let mut pending: Cow<'_, [ToolCallId]> = Cow::default();
        match &self.outcome {
            Some(RunFinishedOutcome::Success(success)) => {
                pending = success.pending_tool_call_ids.as_deref().unwrap_or_default().into();
            }
            Some(RunFinishedOutcome::Interrupt(interrupt)) => {
                interrupts = (&*interrupt.interrupts).into();
            }
            Some(RunFinishedOutcome::Unknown(unknown)) => {
                let mut members = Members::of(unknown);
                interrupts = members.take_list("interrupts").into();
                pending = members.take_list("pendingToolCallIds").into();
                members.omit(writer);
            }
            _ => {}
        }
        base::write(&self.base, Self::TYPE, writer)?;
        FieldType::write(&self.thread_id, 2, "thread_id", writer)?;
        FieldType::write(&self.run_id, 3, "run_id", writer)?;
        self.result.write(4, "result", writer)?;
        if let Some(outcome) = &self.outcome {
            writer.string(5, outcome.tag());
        }
        write_list(&interrupts, 6, "interrupts", writer)?;
        self.usage.write(7, "usage", writer)?;
        write_list(&pending, 8, "pending_tool_call_ids", writer)
    }
}

/// Puts an outcome together. No outcome is none, and a list without one is a member of the event
/// that the protocol does not describe.
fn run_outcome(
    tag: &str,
    interrupts: Vec<Interrupt>,
    pending: Vec<ToolCallId>,
    cx: &mut Context<'_>,
) -> Result<Option<RunFinishedOutcome>, Fault> {
    let nothing = interrupts.is_empty() && pending.is_empty();
    match (tag, Interrupts::try_from(interrupts)) {
        ("", _) if nothing => Ok(None),
        ("", interrupts) => {
            if let Ok(interrupts) = interrupts {
                stray("interrupts", &interrupts, cx)?;
            }
            if !pending.is_empty() {
                stray("pending_tool_call_ids", &pending, cx)?;
            }
            Ok(None)
        }
        ("success", Err(_)) => {
            let mut success = SuccessOutcome::new();
            success.pending_tool_call_ids = Some(pending).filter(|ids| !ids.is_empty());
            Ok(Some(success.into()))
        }
        ("interrupt", Ok(interrupts)) if pending.is_empty() => {
            Ok(Some(InterruptOutcome::new(interrupts).into()))
        }
        ("cancelled", _) if nothing => Ok(Some(CancelledOutcome::new().into())),
        (tag, interrupts) => {
            let mut json = ObjectText::new();
            json.string("type", tag);
            match &interrupts {
                Ok(interrupts) => json.list("interrupts", interrupts),
                // Without any, so that it is refused as on the JSON form.
                Err(_) if tag == "interrupt" => json.list::<Interrupt>("interrupts", &[]),
                Err(_) => {}
            }
            if !pending.is_empty() {
                json.list("pendingToolCallIds", &pending);
            }
            let read = RunFinishedOutcome::from_json_tolerant(&json.finish());
            cx.inside(Step::Member("outcome"), |cx| cx.adopt(read)).map(Some)
        }
    }
}

impl Message for SubagentFinished {
    const NAME: &'static str = "SubagentFinishedEvent";
    const FIELDS: &'static [Field] = &[
        Field::message(1, "base_event", "BaseEvent"),
        Field::string(2, "subagent_run_id"),
        Field::new::<Option<Json>>(3, "result"),
        Field::string(4, "outcome"),
        Field::new::<Vec<InterruptId>>(5, "interrupt_ids"),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut base = None;
        let mut subagent_run_id = <SubagentRunId as FieldType>::Slot::default();
        let mut result = <Option<Json> as FieldType>::Slot::default();
        let mut outcome: Option<&[u8]> = None;
        let mut interrupt_ids = Vec::new();
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                1 => Gather::gather(&mut base, raw, cx)?,
                2 => SubagentRunId::occur(&mut subagent_run_id, raw, cx, "subagent_run_id")?,
                3 => Option::<Json>::occur(&mut result, raw, cx, "result")?,
                4 => Gather::gather(&mut outcome, raw, cx)?,
                5 => cx.inside(Step::Member("outcome"), |cx| {
                    Vec::<InterruptId>::occur(&mut interrupt_ids, raw, cx, "interrupt_ids")
                })?,
                _ => {}
            }
        }
        let base = base::read(base.as_ref(), Self::TYPE, pieces, cx)?;
        let id = SubagentRunId::finish(subagent_run_id, cx, "subagent_run_id")?;
        let mut event = Self::new(id);
        event.result = Option::<Json>::finish(result, cx, "result")?;
        event.outcome = subagent_outcome(text(outcome.unwrap_or_default())?, interrupt_ids, cx)?;
        event.base = base;
        Ok(event)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let interrupt_ids: Cow<'_, [InterruptId]> = match &self.outcome {
            Some(SubagentFinishedOutcome::Suspended(suspended)) => {
                suspended.interrupt_ids.as_deref().unwrap_or_default().into()
            }
            Some(SubagentFinishedOutcome::Unknown(unknown)) => {
                let mut members = Members::of(unknown);
                let interrupt_ids = members.take_list("interruptIds");
                members.omit(writer);
                interrupt_ids.into()
            }
            _ => Cow::default(),
        };
        base::write(&self.base, Self::TYPE, writer)?;
        FieldType::write(&self.subagent_run_id, 2, "subagent_run_id", writer)?;
        self.result.write(3, "result", writer)?;
        if let Some(outcome) = &self.outcome {
            writer.string(4, outcome.tag());
        }
        write_list(&interrupt_ids, 5, "interrupt_ids", writer)
    }
}

fn subagent_outcome(
    tag: &str,
    interrupt_ids: Vec<InterruptId>,
    cx: &mut Context<'_>,
) -> Result<Option<SubagentFinishedOutcome>, Fault> {
    match tag {
        "" if interrupt_ids.is_empty() => Ok(None),
        "" => {
            stray("interrupt_ids", &interrupt_ids, cx)?;
            Ok(None)
        }
        "success" if interrupt_ids.is_empty() => Ok(Some(SubagentSuccessOutcome::new().into())),
        "suspended" => {
            let mut suspended = SuspendedOutcome::new();
            suspended.interrupt_ids = Some(interrupt_ids).filter(|ids| !ids.is_empty());
            Ok(Some(suspended.into()))
        }
        tag => {
            let mut json = ObjectText::new();
            json.string("type", tag);
            if !interrupt_ids.is_empty() {
                json.list("interruptIds", &interrupt_ids);
            }
            let read = SubagentFinishedOutcome::from_json_tolerant(&json.finish());
            cx.inside(Step::Member("outcome"), |cx| cx.adopt(read)).map(Some)
        }
    }
}

/// Reports a list that belongs to no outcome.
fn stray<T: ToJson>(member: &'static str, list: &[T], cx: &mut Context<'_>) -> Result<(), Fault> {
    let json = Json::try_from(list_text(list)).map_err(super::value::not_json)?;
    cx.find(Some(member), FindingKind::UnknownMember(json));
    Ok(())
}

/// The members of an outcome of an unknown kind that are not written yet.
struct Members(Vec<(String, String)>);

impl Members {
    fn of(outcome: &Unknown) -> Self {
        let object = JsonObject::try_from(outcome.json().clone());
        let object = object.unwrap_or_else(|_| JsonObject::empty());
        let members = object.members().map(|(name, text)| (name.into_owned(), text.to_owned()));
        Self(members.filter(|(name, _)| name != "type").collect())
    }

    /// A list that has a field; empty where it does not read as one.
    fn take_list<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Vec<T> {
        let at = self.0.iter().position(|(other, _)| other == name);
        let Some((at, list)) =
            at.and_then(|at| Some((at, serde_json::from_str(&self.0[at].1).ok()?)))
        else {
            return Vec::new();
        };
        self.0.remove(at);
        list
    }

    /// Notes what is left.
    fn omit(self, writer: &mut Writer<'_>) {
        writer.inside(Step::Member("outcome"), |writer| {
            for (name, _) in self.0 {
                writer.omit(format!("the member {name:?} of an outcome of an unknown kind"));
            }
        });
    }
}

/// By hand, as two of its objects are `Value`s here and not `Struct`s.
impl Message for Interrupt {
    const NAME: &'static str = "Interrupt";
    const FIELDS: &'static [Field] = &[
        Field::string(1, "id"),
        Field::string(2, "reason"),
        Field::new::<Option<String>>(3, "message"),
        Field::new::<Option<String>>(4, "tool_call_id"),
        Field::new::<Option<Json>>(5, "response_schema"),
        Field::new::<Option<String>>(6, "expires_at"),
        Field::new::<Option<Json>>(7, "metadata"),
        Field::new::<Option<String>>(8, "subagent_run_id"),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut id = <InterruptId as FieldType>::Slot::default();
        let mut reason = <String as FieldType>::Slot::default();
        let mut message = <Option<String> as FieldType>::Slot::default();
        let mut tool_call_id = <Option<ToolCallId> as FieldType>::Slot::default();
        let mut response_schema = <Option<Json> as FieldType>::Slot::default();
        let mut expires_at = <Option<String> as FieldType>::Slot::default();
        let mut metadata = <Option<Json> as FieldType>::Slot::default();
        let mut subagent_run_id = <Option<SubagentRunId> as FieldType>::Slot::default();
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                1 => Gather::gather(&mut id, raw, cx)?,
                2 => Gather::gather(&mut reason, raw, cx)?,
                3 => Gather::gather(&mut message, raw, cx)?,
                4 => Gather::gather(&mut tool_call_id, raw, cx)?,
                5 => Gather::gather(&mut response_schema, raw, cx)?,
                6 => Gather::gather(&mut expires_at, raw, cx)?,
                7 => Gather::gather(&mut metadata, raw, cx)?,
                8 => Gather::gather(&mut subagent_run_id, raw, cx)?,
                _ => {}
            }
        }
        let mut interrupt =
            Self::new(InterruptId::finish(id, cx, "id")?, String::finish(reason, cx, "reason")?);
        interrupt.message = Option::<String>::finish(message, cx, "message")?;
        interrupt.tool_call_id = Option::<ToolCallId>::finish(tool_call_id, cx, "tool_call_id")?;
        interrupt.response_schema = object(response_schema, cx, "response_schema")?;
        interrupt.expires_at = Option::<String>::finish(expires_at, cx, "expires_at")?;
        interrupt.metadata = object(metadata, cx, "metadata")?;
        interrupt.subagent_run_id =
            Option::<SubagentRunId>::finish(subagent_run_id, cx, "subagent_run_id")?;
        Ok(interrupt)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        FieldType::write(&self.id, 1, "id", writer)?;
        FieldType::write(&self.reason, 2, "reason", writer)?;
        self.message.write(3, "message", writer)?;
        self.tool_call_id.write(4, "tool_call_id", writer)?;
        if let Some(schema) = &self.response_schema {
            Value::write(&**schema, 5, "response_schema", writer)?;
        }
        self.expires_at.write(6, "expires_at", writer)?;
        if let Some(metadata) = &self.metadata {
            Value::write(&**metadata, 7, "metadata", writer)?;
        }
        self.subagent_run_id.write(8, "subagent_run_id", writer)
    }
}

/// An object that travels as a `google.protobuf.Value`.
fn object(
    slot: <Option<Json> as FieldType>::Slot<'_>,
    cx: &mut Context<'_>,
    name: &'static str,
) -> Result<Option<Metadata>, Fault> {
    let Some(json) = Option::<Json>::finish(slot, cx, name)? else {
        return Ok(None);
    };
    let found = json.as_str().to_owned();
    JsonObject::try_from(json)
        .map(Some)
        .map_err(|_| cx.error(name, ReadErrorKind::WrongType, "an object", &found))
}
