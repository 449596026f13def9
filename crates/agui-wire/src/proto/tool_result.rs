//! `TOOL_CALL_RESULT`, whose content is text or parts.

use agui_types::event::{ToolCallResult, ToolRole};
use agui_types::{MessageContent, MessageId, SubagentRunId, ToolCallId};

use super::base;
use super::content::{Parts, write_parts};
use super::context::{Context, text};
use super::fault::{Fault, Problem};
use super::field::{Field, FieldType, Gather, Message};
use super::scan::Pieces;
use super::write::Writer;
use crate::encode_error::EncodeError;

impl Message for ToolCallResult {
    const NAME: &'static str = "ToolCallResultEvent";
    const FIELDS: &'static [Field] = &[
        Field::message(1, "base_event", "BaseEvent"),
        Field::new::<Option<SubagentRunId>>(2, "subagent_run_id"),
        Field::string(3, "message_id"),
        Field::string(4, "tool_call_id"),
        Field::new::<Option<String>>(5, "content"),
        Field::new::<Option<String>>(6, "role"),
        Field::message(7, "content_parts", "InputContent").repeated(),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut base = None;
        let mut subagent_run_id = <Option<SubagentRunId> as FieldType>::Slot::default();
        let mut message_id = <MessageId as FieldType>::Slot::default();
        let mut tool_call_id = <ToolCallId as FieldType>::Slot::default();
        let mut content: Option<&[u8]> = None;
        let mut role = <Option<ToolRole> as FieldType>::Slot::default();
        let mut parts = Parts::default();
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                1 => Gather::gather(&mut base, raw, cx)?,
                2 => Gather::gather(&mut subagent_run_id, raw, cx)?,
                3 => Gather::gather(&mut message_id, raw, cx)?,
                4 => Gather::gather(&mut tool_call_id, raw, cx)?,
                5 => Gather::gather(&mut content, raw, cx)?,
                6 => Gather::gather(&mut role, raw, cx)?,
                7 => parts.take(raw, cx)?,
                _ => {}
            }
        }
        let base = base::read(base.as_ref(), Self::TYPE, pieces, cx)?;
        let content = match content {
            Some(_) if parts.count > 0 => {
                return Err(Fault::malformed(Problem::Content, pieces.start()));
            }
            Some(bytes) => MessageContent::Text(text(bytes)?.into()),
            None => MessageContent::Parts(parts.known),
        };
        let mut event = Self::new(
            MessageId::finish(message_id, cx, "message_id")?,
            ToolCallId::finish(tool_call_id, cx, "tool_call_id")?,
            content,
        );
        event.role = Option::<ToolRole>::finish(role, cx, "role")?;
        event.subagent_run_id =
            Option::<SubagentRunId>::finish(subagent_run_id, cx, "subagent_run_id")?;
        event.base = base;
        Ok(event)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        base::write(&self.base, Self::TYPE, writer)?;
        self.subagent_run_id.write(2, "subagent_run_id", writer)?;
        FieldType::write(&self.message_id, 3, "message_id", writer)?;
        FieldType::write(&self.tool_call_id, 4, "tool_call_id", writer)?;
        if let MessageContent::Text(text) = &self.content {
            writer.string(5, text);
        }
        self.role.write(6, "role", writer)?;
        match &self.content {
            MessageContent::Parts(parts) => write_parts(7, parts, writer),
            MessageContent::Text(_) => Ok(()),
        }
    }
}
