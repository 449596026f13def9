//! The messages that events hold, as far as their fields are members one to one.

use agui_types::message::{
    AudioPart, DataSource, DocumentPart, FileSource, FunctionCall, ImagePart, TextPart, UrlSource,
    VideoPart,
};
use agui_types::{
    Context, Count, InterruptId, Json, Message, Metadata, PartSource, ProtocolVersion, ResumeEntry,
    ResumeStatus, RunAgentInput, RunId, ThreadId, TokenUsage, Tool, ToolCall, ToolCallId,
};

use super::fault::Fault;
use super::field::{Kind, Label, Message as _, Value};
use super::scan::Pieces;
use super::write::Writer;
use crate::encode_error::EncodeError;

message! {
    "ToolCall" ToolCall new(id, function) set(metadata, encrypted_value, encrypted_value_type) {
        1 id: ToolCallId,
        2 kind as "type" = "function",
        3 function: FunctionCall,
        4 metadata: Option<Metadata>,
        5 encrypted_value: Option<String>,
        6 encrypted_value_type: Option<String>,
    }
}
message! {
    "ToolCall.Function" FunctionCall new(name, arguments) set() {
        1 name: String,
        2 arguments: String,
    }
}

message! {
    "TextInputPart" TextPart new(text) set(id, metadata) {
        1 text: String,
        2 id: Option<String>,
        3 metadata: Option<Json>,
    }
}
message! {
    "ImageInputPart" ImagePart new(source) set(metadata, id) {
        1 source: PartSource,
        2 metadata: Option<Json>,
        3 id: Option<String>,
    }
}
message! {
    "AudioInputPart" AudioPart new(source) set(metadata, id) {
        1 source: PartSource,
        2 metadata: Option<Json>,
        3 id: Option<String>,
    }
}
message! {
    "VideoInputPart" VideoPart new(source) set(metadata, id) {
        1 source: PartSource,
        2 metadata: Option<Json>,
        3 id: Option<String>,
    }
}
message! {
    "DocumentInputPart" DocumentPart new(source) set(metadata, id) {
        1 source: PartSource,
        2 metadata: Option<Json>,
        3 id: Option<String>,
    }
}
message! {
    "InputContentDataSource" DataSource new(value, mime_type) set() {
        1 value: String,
        2 mime_type: String,
    }
}
message! {
    "InputContentUrlSource" UrlSource new(value) set(mime_type) {
        1 value: String,
        2 mime_type: Option<String>,
    }
}
message! {
    "InputContentFileSource" FileSource new(value) set(provider, mime_type) {
        1 value: String,
        2 provider: Option<String>,
        3 mime_type: Option<String>,
    }
}

message! {
    "RunAgentInput" RunAgentInput new(thread_id, run_id, messages)
    set(parent_run_id, state, tools, context, forwarded_props, resume, protocol_version) {
        1 thread_id: ThreadId,
        2 run_id: RunId,
        3 parent_run_id: Option<RunId>,
        4 state: Option<Json>,
        5 messages: Vec<Message>,
        6 tools: Option<Vec<Tool>>,
        7 context: Option<Vec<Context>>,
        8 forwarded_props: Option<Json>,
        9 resume: Option<Vec<ResumeEntry>>,
        10 protocol_version: Option<ProtocolVersion>,
    }
}
/// The request that a run echoes. All its lists are there once it was read (T-33).
impl Value for Box<RunAgentInput> {
    const KIND: Kind = Kind::Message(RunAgentInput::NAME);
    const LABEL: Label = Label::Optional;
    type Gathered<'b> = Pieces<'b>;

    fn read(
        pieces: Pieces<'_>,
        cx: &mut super::context::Context<'_>,
        name: &'static str,
    ) -> Result<Self, Fault> {
        let mut input = <RunAgentInput as Value>::read(pieces, cx, name)?;
        input.tools.get_or_insert_default();
        input.context.get_or_insert_default();
        input.resume.get_or_insert_default();
        Ok(Self::new(input))
    }

    fn absent(cx: &mut super::context::Context<'_>, name: &'static str) -> Result<Self, Fault> {
        Err(cx.missing(name))
    }

    fn is_default(&self) -> bool {
        false
    }

    fn write(
        &self,
        number: u32,
        name: &'static str,
        writer: &mut Writer<'_>,
    ) -> Result<(), EncodeError> {
        Value::write(&**self, number, name, writer)
    }
}
message! {
    "Tool" Tool new(name, description) set(parameters, metadata) {
        1 name: String,
        2 description: String,
        3 parameters: Option<Json>,
        4 metadata: Option<Metadata>,
    }
}
message! {
    "Context" Context new(description, value) set() {
        1 description: String,
        2 value: String,
    }
}
message! {
    "ResumeEntry" ResumeEntry new(interrupt_id, status) set(payload, metadata) {
        1 interrupt_id: InterruptId,
        2 status: ResumeStatus,
        3 payload: Option<Json>,
        4 metadata: Option<Metadata>,
    }
}

message! {
    "Usage" TokenUsage new()
    set(
        provider, model, input_tokens, output_tokens, total_tokens, reasoning_tokens,
        cached_input_tokens, cache_write_input_tokens
    ) {
        1 provider: Option<String>,
        2 model: Option<String>,
        3 input_tokens: Option<Count>,
        4 output_tokens: Option<Count>,
        5 total_tokens: Option<Count>,
        6 reasoning_tokens: Option<Count>,
        7 cached_input_tokens: Option<Count>,
        8 cache_write_input_tokens: Option<Count>,
    }
}
