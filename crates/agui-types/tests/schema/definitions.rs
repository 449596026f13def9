//! Every definition of the published schema beside the type that reads and writes it.

use std::any::Any;
use std::fmt::Debug;

use agui_types::event::{self, EventType};
use agui_types::read::Findings;
use agui_types::{
    FromJson, Json, JsonError, JsonObject, JsonPatch, JsonPointer, Message, PatchOperation,
    ReadError, ReadErrorKind, ToJson, capabilities, message,
};

/// A value that was read, whatever its type.
pub(crate) trait Held {
    /// What the value writes.
    fn json(&self) -> String;
    /// Whether the other is an equal value of the same type.
    fn same(&self, other: &dyn Held) -> bool;
    /// The value as a programmer sees it.
    fn debug(&self) -> String;
    fn any(&self) -> &dyn Any;
}

/// Why a value could not be read.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// `None` where the type reads without the protocol's reader.
    pub(crate) kind: Option<ReadErrorKind>,
    pub(crate) path: String,
    pub(crate) offset: usize,
    pub(crate) text: String,
}

type Exact = fn(&str) -> Result<Box<dyn Held>, Refusal>;
type Tolerant = fn(&str) -> Result<(Box<dyn Held>, Findings), Refusal>;

/// How a definition's instances are read.
#[derive(Clone, Copy)]
pub(crate) struct Readings {
    pub(crate) exact: Exact,
    /// `None` where there is only one reading.
    pub(crate) tolerant: Option<Tolerant>,
}

/// A definition of the published schema.
pub(crate) struct Definition {
    /// Its name in the schema.
    pub(crate) name: &'static str,
    /// `None` for a fragment that only ever occurs composed into other definitions.
    pub(crate) readings: Option<Readings>,
}

/// Every definition of the schema.
pub(crate) fn definitions() -> Vec<Definition> {
    macro_rules! table {
        ($($name:literal => $type:ty,)*) => {
            vec![$(Definition { name: $name, readings: Some(readings::<$type>()) },)*]
        };
    }
    let mut all = table! {
        "Event" => event::Event,
        "SubagentRunId" => agui_types::SubagentRunId,
        "TextMessageRole" => event::TextRole,
        "TextMessageStartEvent" => event::TextMessageStart,
        "TextMessageContentEvent" => event::TextMessageContent,
        "TextMessageEndEvent" => event::TextMessageEnd,
        "TextMessageChunkEvent" => event::TextMessageChunk,
        "ToolCallStartEvent" => event::ToolCallStart,
        "ToolCallArgsEvent" => event::ToolCallArgs,
        "ToolCallEndEvent" => event::ToolCallEnd,
        "ToolCallChunkEvent" => event::ToolCallChunk,
        "ToolCallResultEvent" => event::ToolCallResult,
        "StateSnapshotEvent" => event::StateSnapshot,
        "StateDeltaEvent" => event::StateDelta,
        "MessagesSnapshotEvent" => event::MessagesSnapshot,
        "ActivitySnapshotEvent" => event::ActivitySnapshot,
        "ActivityDeltaEvent" => event::ActivityDelta,
        "RawEvent" => event::Raw,
        "CustomEvent" => event::Custom,
        "RunStartedEvent" => event::RunStarted,
        "RunFinishedEvent" => event::RunFinished,
        "RunErrorEvent" => event::RunError,
        "StepStartedEvent" => event::StepStarted,
        "StepFinishedEvent" => event::StepFinished,
        "ReasoningStartEvent" => event::ReasoningStart,
        "ReasoningMessageStartEvent" => event::ReasoningMessageStart,
        "ReasoningMessageContentEvent" => event::ReasoningMessageContent,
        "ReasoningMessageEndEvent" => event::ReasoningMessageEnd,
        "ReasoningMessageChunkEvent" => event::ReasoningMessageChunk,
        "ReasoningEndEvent" => event::ReasoningEnd,
        "ReasoningEncryptedValueEvent" => event::ReasoningEncryptedValue,
        "ReasoningEncryptedValueSubtype" => event::EncryptedValueSubtype,
        "SubagentStartedEvent" => event::SubagentStarted,
        "SubagentFinishedEvent" => event::SubagentFinished,
        "SubagentErrorEvent" => event::SubagentError,
        "RunFinishedOutcome" => agui_types::RunFinishedOutcome,
        "RunFinishedSuccessOutcome" => agui_types::SuccessOutcome,
        "RunFinishedInterruptOutcome" => agui_types::InterruptOutcome,
        "RunFinishedCancelledOutcome" => agui_types::CancelledOutcome,
        "SubagentFinishedOutcome" => agui_types::SubagentFinishedOutcome,
        "SubagentFinishedSuccessOutcome" => agui_types::SubagentSuccessOutcome,
        "SubagentFinishedSuspendedOutcome" => agui_types::SuspendedOutcome,
        "Interrupt" => agui_types::Interrupt,
        "ResumeEntry" => agui_types::ResumeEntry,
        "TokenUsage" => agui_types::TokenUsage,
        "Message" => Message,
        "DeveloperMessage" => message::DeveloperMessage,
        "SystemMessage" => message::SystemMessage,
        "AssistantMessage" => message::AssistantMessage,
        "UserMessage" => message::UserMessage,
        "ToolMessage" => message::ToolMessage,
        "ActivityMessage" => message::ActivityMessage,
        "ReasoningMessage" => message::ReasoningMessage,
        "ToolCall" => message::ToolCall,
        "FunctionCall" => message::FunctionCall,
        "ContentPart" => message::ContentPart,
        "TextPart" => message::TextPart,
        "ImagePart" => message::ImagePart,
        "AudioPart" => message::AudioPart,
        "VideoPart" => message::VideoPart,
        "DocumentPart" => message::DocumentPart,
        "PartSource" => message::PartSource,
        "DataSource" => message::DataSource,
        "UrlSource" => message::UrlSource,
        "FileSource" => message::FileSource,
        "Context" => agui_types::Context,
        "Tool" => agui_types::Tool,
        "RunAgentInput" => agui_types::RunAgentInput,
        "SubagentInfo" => capabilities::SubagentInfo,
        "IdentityCapabilities" => capabilities::IdentityCapabilities,
        "TransportCapabilities" => capabilities::TransportCapabilities,
        "ToolsCapabilities" => capabilities::ToolsCapabilities,
        "OutputCapabilities" => capabilities::OutputCapabilities,
        "StateCapabilities" => capabilities::StateCapabilities,
        "MultiAgentCapabilities" => capabilities::MultiAgentCapabilities,
        "ReasoningCapabilities" => capabilities::ReasoningCapabilities,
        "MultimodalInputCapabilities" => capabilities::MultimodalInputCapabilities,
        "MultimodalOutputCapabilities" => capabilities::MultimodalOutputCapabilities,
        "MultimodalCapabilities" => capabilities::MultimodalCapabilities,
        "ExecutionCapabilities" => capabilities::ExecutionCapabilities,
        "HumanInTheLoopCapabilities" => capabilities::HumanInTheLoopCapabilities,
        "AgentCapabilities" => capabilities::AgentCapabilities,
        "JsonPatch" => JsonPatch,
        "JsonPatchOperation" => PatchOperation,
        "JsonPointer" => JsonPointer,
    };
    // What has no type of its own, or none that the protocol's reader reads.
    let other: [(_, Exact); 10] = [
        ("EventType", event_type),
        ("Role", role),
        ("Metadata", |text| Ok(Box::new(Raw(JsonObject::parse(text)?.to_string())))),
        ("State", |text| Ok(Box::new(Raw(Json::parse(text)?.to_string())))),
        ("AddOperation", |text| operation(text, "add")),
        ("RemoveOperation", |text| operation(text, "remove")),
        ("ReplaceOperation", |text| operation(text, "replace")),
        ("MoveOperation", |text| operation(text, "move")),
        ("CopyOperation", |text| operation(text, "copy")),
        ("TestOperation", |text| operation(text, "test")),
    ];
    all.extend(other.map(|(name, exact)| Definition {
        name,
        readings: Some(Readings { exact, tolerant: None }),
    }));
    let fragments = ["BaseEvent", "Attributable", "BaseMessage"];
    all.extend(fragments.map(|name| Definition { name, readings: None }));
    all
}

fn readings<T: FromJson + ToJson + PartialEq + Debug + 'static>() -> Readings {
    Readings {
        exact: |text| Ok(Box::new(T::from_json_exact(text)?)),
        tolerant: Some(|text| {
            let reading = T::from_json_tolerant(text)?;
            Ok((Box::new(reading.value), reading.findings))
        }),
    }
}

/// `EventType` is read from the text of the `type` member.
fn event_type(text: &str) -> Result<Box<dyn Held>, Refusal> {
    let name = string(text)?;
    let known: EventType = name.parse().map_err(|error| refusal("", &error))?;
    Ok(Box::new(Raw(format!("\"{known}\""))))
}

/// `Role` has no type: a role is known when a message that has nothing else misses its other
/// members.
fn role(text: &str) -> Result<Box<dyn Held>, Refusal> {
    let role = string(text)?;
    let message = format!("{{\"role\":{text}}}");
    let error = Message::from_json_exact(&message).err();
    match error.map(|error| error.kind()) {
        Some(ReadErrorKind::Missing) => Ok(Box::new(Raw(format!("\"{role}\"")))),
        other => Err(refusal("", &format!("{other:?}"))),
    }
}

/// The six operations are variants of one type.
fn operation(text: &str, op: &str) -> Result<Box<dyn Held>, Refusal> {
    let operation = PatchOperation::from_json_exact(text)?;
    if operation.op.name() == op {
        return Ok(Box::new(operation));
    }
    Err(refusal("/op", &"another operation"))
}

fn string(text: &str) -> Result<String, Refusal> {
    serde_json::from_str(text).map_err(|error| refusal("", &error))
}

fn refusal(path: &str, text: &impl ToString) -> Refusal {
    let (kind, offset) = (None, 0);
    Refusal { kind, path: path.into(), offset, text: text.to_string() }
}

/// A value that is only its text.
#[derive(Debug, PartialEq)]
struct Raw(String);

impl Held for Raw {
    fn json(&self) -> String {
        self.0.clone()
    }

    fn same(&self, other: &dyn Held) -> bool {
        other.any().downcast_ref() == Some(self)
    }

    fn debug(&self) -> String {
        format!("{self:?}")
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

impl<T: FromJson + ToJson + PartialEq + Debug + 'static> Held for T {
    fn json(&self) -> String {
        self.to_json()
    }

    fn same(&self, other: &dyn Held) -> bool {
        other.any().downcast_ref() == Some(self)
    }

    fn debug(&self) -> String {
        format!("{self:?}")
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Self {
            kind: Some(error.kind()),
            path: error.path().into(),
            offset: error.offset(),
            text: error.to_string(),
        }
    }
}

impl From<JsonError> for Refusal {
    fn from(error: JsonError) -> Self {
        Self { kind: None, path: String::new(), offset: error.offset(), text: error.to_string() }
    }
}
