//! Messages: one message of the `.proto` for all roles.

use std::borrow::Cow;

use agui_types::message::{
    ActivityMessage, AssistantMessage, DeveloperMessage, ReasoningMessage, SystemMessage,
    ToolMessage, UserMessage,
};
use agui_types::{
    ContentPart, FromJson, JsonObject, Message, MessageContent, MessageId, Metadata, SubagentRunId,
    ToolCall, ToolCallId, Unknown,
};

use super::content::{Parts, write_parts};
use super::context::{Context, text};
use super::fault::{Fault, Problem};
use super::field::{self, Field, FieldType, Gather, write_list};
use super::scan::Pieces;
use super::text::ObjectText;
use super::write::Writer;
use crate::encode_error::EncodeError;

/// The fields of a message, whatever its role.
#[derive(Default)]
struct Fields<'m> {
    id: Cow<'m, str>,
    role: Cow<'m, str>,
    content: Option<Cow<'m, str>>,
    name: Option<Cow<'m, str>>,
    tool_calls: Cow<'m, [ToolCall]>,
    tool_call_id: Option<Cow<'m, str>>,
    error: Option<Cow<'m, str>>,
    content_parts: Cow<'m, [ContentPart]>,
    metadata: Option<Cow<'m, Metadata>>,
    subagent_run_id: Option<Cow<'m, str>>,
    encrypted_value: Option<Cow<'m, str>>,
    activity_type: Option<Cow<'m, str>>,
    activity_content: Option<Cow<'m, JsonObject>>,
    encrypted_value_type: Option<Cow<'m, str>>,
}

impl field::Message for Message {
    const NAME: &'static str = "Message";
    const FIELDS: &'static [Field] = &[
        Field::string(1, "id"),
        Field::string(2, "role"),
        Field::new::<Option<String>>(3, "content"),
        Field::new::<Option<String>>(4, "name"),
        Field::new::<Vec<ToolCall>>(5, "tool_calls"),
        Field::new::<Option<String>>(6, "tool_call_id"),
        Field::new::<Option<String>>(7, "error"),
        Field::message(8, "content_parts", "InputContent").repeated(),
        Field::new::<Option<JsonObject>>(9, "metadata"),
        Field::new::<Option<String>>(10, "subagent_run_id"),
        Field::new::<Option<String>>(11, "encrypted_value"),
        Field::new::<Option<String>>(12, "activity_type"),
        Field::new::<Option<JsonObject>>(13, "activity_content"),
        Field::new::<Option<String>>(14, "encrypted_value_type"),
    ];

    fn read_fields(pieces: &Pieces<'_>, cx: &mut Context<'_>) -> Result<Self, Fault> {
        let mut strings = [None::<&[u8]>; 15];
        let (mut metadata, mut activity_content) = (None, None);
        let mut tool_calls = Vec::new();
        let mut parts = Parts::default();
        let mut fields = pieces.fields();
        while let Some((number, raw)) = fields.next()? {
            match number {
                5 => Vec::<ToolCall>::occur(&mut tool_calls, raw, cx, "tool_calls")?,
                8 => parts.take(raw, cx)?,
                9 => Gather::gather(&mut metadata, raw, cx)?,
                13 => Gather::gather(&mut activity_content, raw, cx)?,
                1..=14 => Gather::gather(&mut strings[number as usize], raw, cx)?,
                _ => {}
            }
        }
        let mut object = |pieces: Option<Pieces<'_>>, name| {
            let object = Option::<JsonObject>::finish(pieces, cx, name)?;
            Ok::<_, Fault>(object.map(Cow::Owned))
        };
        let metadata = object(metadata, "metadata")?;
        let activity_content = object(activity_content, "content")?;
        let string = |number: usize| -> Result<_, Fault> {
            strings[number].map(|bytes| text(bytes).map(Cow::Borrowed)).transpose()
        };
        let fields = Fields {
            id: string(1)?.unwrap_or_default(),
            role: string(2)?.unwrap_or_default(),
            content: string(3)?,
            name: string(4)?,
            tool_calls: tool_calls.into(),
            tool_call_id: string(6)?,
            error: string(7)?,
            content_parts: parts.known.into(),
            metadata,
            subagent_run_id: string(10)?,
            encrypted_value: string(11)?,
            activity_type: string(12)?,
            activity_content,
            encrypted_value_type: string(14)?,
        };
        if !fields.carriers_fit(parts.count > 0) {
            return Err(Fault::malformed(Problem::Content, pieces.start()));
        }
        if fields.fit_the_role() {
            return fields.into_message(cx);
        }
        cx.adopt(Self::from_json_tolerant(&fields.to_json()))
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        match self {
            Self::Unknown(unknown) => Fields::of_unknown(unknown, writer).write(writer),
            known => Fields::of(known).write(writer),
        }
    }
}

/// Sets of fields, by number.
mod set {
    pub(super) const CONTENT: u16 = 1 << 3;
    pub(super) const NAME: u16 = 1 << 4;
    pub(super) const TOOL_CALLS: u16 = 1 << 5;
    pub(super) const TOOL_CALL_ID: u16 = 1 << 6;
    pub(super) const ERROR: u16 = 1 << 7;
    pub(super) const PARTS: u16 = 1 << 8;
    pub(super) const METADATA: u16 = 1 << 9;
    pub(super) const SUBAGENT: u16 = 1 << 10;
    pub(super) const ENCRYPTED: u16 = 1 << 11 | 1 << 14;
    pub(super) const ACTIVITY_TYPE: u16 = 1 << 12;
    pub(super) const ACTIVITY: u16 = 1 << 13;
    /// What developer, system, assistant and user messages share.
    pub(super) const COMMON: u16 = CONTENT | NAME | METADATA | SUBAGENT | ENCRYPTED;
}

impl<'m> Fields<'m> {
    /// Whether content came in one way at most, and in one that the role has.
    fn carriers_fit(&self, parts: bool) -> bool {
        let (text, activity) = (self.content.is_some(), self.activity_content.is_some());
        match &*self.role {
            "user" | "tool" => !(activity || text && parts),
            "developer" | "system" | "assistant" | "reasoning" => !activity && !parts,
            "activity" => !text && !parts,
            _ => u8::from(text) + u8::from(parts) + u8::from(activity) < 2,
        }
    }

    /// Whether the role is known, has all the fields that came, and lacks none that it requires.
    fn fit_the_role(&self) -> bool {
        use set::{
            ACTIVITY, ACTIVITY_TYPE, COMMON, CONTENT, ENCRYPTED, ERROR, METADATA, PARTS, SUBAGENT,
            TOOL_CALL_ID, TOOL_CALLS,
        };
        let (required, allowed) = match &*self.role {
            "developer" | "system" => (CONTENT, COMMON),
            "assistant" => (0, COMMON | TOOL_CALLS),
            "user" => (0, COMMON | PARTS),
            "tool" => {
                let rest = METADATA | SUBAGENT | ENCRYPTED;
                (TOOL_CALL_ID, CONTENT | PARTS | TOOL_CALL_ID | ERROR | rest)
            }
            "activity" => {
                let required = ACTIVITY | ACTIVITY_TYPE;
                (required, required | METADATA | SUBAGENT)
            }
            "reasoning" => (CONTENT, CONTENT | METADATA | SUBAGENT | ENCRYPTED),
            _ => return false,
        };
        let present = self.present();
        present & required == required && present & !allowed == 0
    }

    fn present(&self) -> u16 {
        let bits = [
            (3, self.content.is_some()),
            (4, self.name.is_some()),
            (5, !self.tool_calls.is_empty()),
            (6, self.tool_call_id.is_some()),
            (7, self.error.is_some()),
            (8, !self.content_parts.is_empty()),
            (9, self.metadata.is_some()),
            (10, self.subagent_run_id.is_some()),
            (11, self.encrypted_value.is_some()),
            (12, self.activity_type.is_some()),
            (13, self.activity_content.is_some()),
            (14, self.encrypted_value_type.is_some()),
        ];
        bits.iter().fold(0, |set, (number, is_set)| set | u16::from(*is_set) << number)
    }

    /// The message; the fields fit the role.
    fn into_message(self, cx: &mut Context<'_>) -> Result<Message, Fault> {
        let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
        let id = MessageId::new(cx.intern(self.id.as_bytes())?);
        let metadata = self.metadata.map(Cow::into_owned);
        let subagent_run_id = self.subagent_run_id.as_deref();
        let subagent_run_id = match subagent_run_id {
            Some(id) => Some(SubagentRunId::new(cx.intern(id.as_bytes())?)),
            None => None,
        };
        let encrypted_value = owned(self.encrypted_value);
        let encrypted_value_type = owned(self.encrypted_value_type);
        let name = owned(self.name);
        let content = owned(self.content);
        let mixed = |content: Option<String>, parts: Cow<'_, [ContentPart]>| match content {
            Some(text) => MessageContent::Text(text),
            None => MessageContent::Parts(parts.into_owned()),
        };
        macro_rules! message {
            ($make:expr; $($member:ident),*) => {{
                let mut message = $make;
                $(message.$member = $member;)*
                message.metadata = metadata;
                message.subagent_run_id = subagent_run_id;
                message.into()
            }};
        }
        Ok(match &*self.role {
            "developer" => message!(
                DeveloperMessage::new(id, content.unwrap_or_default());
                name, encrypted_value, encrypted_value_type
            ),
            "system" => message!(
                SystemMessage::new(id, content.unwrap_or_default());
                name, encrypted_value, encrypted_value_type
            ),
            "user" => message!(
                UserMessage::new(id, mixed(content, self.content_parts));
                name, encrypted_value, encrypted_value_type
            ),
            "tool" => {
                let call = self.tool_call_id.unwrap_or_default();
                let call = ToolCallId::new(cx.intern(call.as_bytes())?);
                let error = owned(self.error);
                message!(
                    ToolMessage::new(id, mixed(content, self.content_parts), call);
                    error, encrypted_value, encrypted_value_type
                )
            }
            "activity" => {
                let kind = owned(self.activity_type).unwrap_or_default();
                let content = self.activity_content.map_or_else(JsonObject::empty, Cow::into_owned);
                message!(ActivityMessage::new(id, kind, content);)
            }
            "reasoning" => message!(
                ReasoningMessage::new(id, content.unwrap_or_default());
                encrypted_value, encrypted_value_type
            ),
            _ => {
                let tool_calls = Some(self.tool_calls.into_owned());
                let tool_calls = tool_calls.filter(|calls| !calls.is_empty());
                message!(
                    AssistantMessage::new(id);
                    content, tool_calls, name, encrypted_value, encrypted_value_type
                )
            }
        })
    }

    /// The message's JSON, for fields that do not fit the role.
    fn to_json(&self) -> String {
        let mut json = ObjectText::new();
        json.string("id", &self.id);
        json.string("role", &self.role);
        let takes_parts = matches!(&*self.role, "user" | "tool");
        match (&self.content, &self.activity_content) {
            (Some(content), _) => json.string("content", content),
            (None, Some(content)) => json.json("content", content),
            (None, None) if takes_parts || !self.content_parts.is_empty() => {
                json.list("content", &self.content_parts);
            }
            (None, None) => {}
        }
        if !self.tool_calls.is_empty() {
            json.list("toolCalls", &self.tool_calls);
        }
        for (name, value) in [
            ("name", &self.name),
            ("toolCallId", &self.tool_call_id),
            ("error", &self.error),
            ("subagentRunId", &self.subagent_run_id),
            ("encryptedValue", &self.encrypted_value),
            ("activityType", &self.activity_type),
            ("encryptedValueType", &self.encrypted_value_type),
        ] {
            if let Some(value) = value {
                json.string(name, value);
            }
        }
        if let Some(metadata) = &self.metadata {
            json.json("metadata", metadata);
        }
        json.finish()
    }

    /// The fields of a message whose role is known.
    fn of(message: &'m Message) -> Self {
        let mut fields = Self { role: message.tag().into(), ..Self::default() };
        macro_rules! set {
            ($message:ident: $($member:ident),*) => {{
                fields.id = $message.id.as_str().into();
                fields.metadata = $message.metadata.as_ref().map(Cow::Borrowed);
                let owner = $message.subagent_run_id.as_ref();
                fields.subagent_run_id = owner.map(|id| id.as_str().into());
                $(fields.$member = $message.$member.as_deref().map(Cow::Borrowed);)*
            }};
        }
        let mixed = |fields: &mut Self, content: &'m MessageContent| match content {
            MessageContent::Text(text) => fields.content = Some(text.into()),
            MessageContent::Parts(parts) => fields.content_parts = parts.into(),
        };
        match message {
            Message::Developer(it) => {
                set!(it: name, encrypted_value, encrypted_value_type);
                fields.content = Some((&it.content).into());
            }
            Message::System(it) => {
                set!(it: name, encrypted_value, encrypted_value_type);
                fields.content = Some((&it.content).into());
            }
            Message::Assistant(it) => {
                set!(it: content, name, encrypted_value, encrypted_value_type);
                fields.tool_calls = it.tool_calls.as_deref().unwrap_or_default().into();
            }
            Message::User(it) => {
                set!(it: name, encrypted_value, encrypted_value_type);
                mixed(&mut fields, &it.content);
            }
            Message::Tool(it) => {
                set!(it: error, encrypted_value, encrypted_value_type);
                fields.tool_call_id = Some(it.tool_call_id.as_str().into());
                mixed(&mut fields, &it.content);
            }
            Message::Activity(it) => {
                set!(it:);
                fields.activity_type = Some((&it.activity_type).into());
                fields.activity_content = Some(Cow::Borrowed(&it.content));
            }
            Message::Reasoning(it) => {
                set!(it: encrypted_value, encrypted_value_type);
                fields.content = Some((&it.content).into());
            }
            _ => {}
        }
        fields
    }

    /// What can be said here of a message whose role is not known; the rest is noted.
    fn of_unknown(message: &Unknown, writer: &mut Writer<'_>) -> Fields<'static> {
        let mut fields = Fields { role: Cow::Owned(message.tag().into()), ..Fields::default() };
        let object = JsonObject::try_from(message.json().clone());
        let object = object.unwrap_or_else(|_| JsonObject::empty());
        for (name, value) in object.members() {
            if fields.set(&name, value).is_none() {
                writer.omit(format!("the member {name:?} of a message of an unknown role"));
            }
        }
        fields
    }

    /// Sets a field by its name in the JSON form; `None` where there is none for such a member.
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        let string = || serde_json::from_str::<String>(value).ok().map(Cow::Owned);
        let object = || JsonObject::parse(value).ok().map(Cow::Owned);
        if name == "content" {
            // The last one of a name counts.
            (self.content, self.activity_content) = (None, None);
            self.content_parts = Cow::default();
        }
        match name {
            "role" => {}
            "id" => self.id = string()?,
            "content" if value.starts_with('[') => {
                self.content_parts = serde_json::from_str::<Vec<_>>(value).ok()?.into();
            }
            "content" if value.starts_with('{') => self.activity_content = Some(object()?),
            "content" => self.content = Some(string()?),
            "name" => self.name = Some(string()?),
            "toolCalls" => self.tool_calls = serde_json::from_str::<Vec<_>>(value).ok()?.into(),
            "toolCallId" => self.tool_call_id = Some(string()?),
            "error" => self.error = Some(string()?),
            "metadata" => self.metadata = Some(object()?),
            "subagentRunId" => self.subagent_run_id = Some(string()?),
            "encryptedValue" => self.encrypted_value = Some(string()?),
            "activityType" => self.activity_type = Some(string()?),
            "encryptedValueType" => self.encrypted_value_type = Some(string()?),
            _ => return None,
        }
        Some(())
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), EncodeError> {
        let optional = |number, value: &Option<Cow<'_, str>>, writer: &mut Writer<'_>| {
            if let Some(value) = value {
                writer.string(number, value);
            }
        };
        for (number, value) in [(1, &self.id), (2, &self.role)] {
            if !value.is_empty() {
                writer.string(number, value);
            }
        }
        optional(3, &self.content, writer);
        optional(4, &self.name, writer);
        write_list(&self.tool_calls, 5, "tool_calls", writer)?;
        optional(6, &self.tool_call_id, writer);
        optional(7, &self.error, writer);
        write_parts(8, &self.content_parts, writer)?;
        if let Some(metadata) = &self.metadata {
            FieldType::write(&**metadata, 9, "metadata", writer)?;
        }
        optional(10, &self.subagent_run_id, writer);
        optional(11, &self.encrypted_value, writer);
        optional(12, &self.activity_type, writer);
        if let Some(content) = &self.activity_content {
            FieldType::write(&**content, 13, "content", writer)?;
        }
        optional(14, &self.encrypted_value_type, writer);
        Ok(())
    }
}
