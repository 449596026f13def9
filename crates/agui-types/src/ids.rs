//! Identifiers.

id! {
    /// A conversation, minted by the application and stable over its runs.
    ThreadId,
    /// One run of a thread; never reused for another run on it (P-8).
    RunId,
    /// A message, unique in its thread (P-28), or a reasoning span, which has a namespace of its own.
    MessageId,
    /// A tool call.
    ToolCallId,
    /// One invocation of a subagent, not the subagent's definition (P-55).
    SubagentRunId,
    /// An interrupt, unique within its run (P-68).
    InterruptId,
    /// A message or a tool call, as `REASONING_ENCRYPTED_VALUE` names it by its subtype.
    EntityId,
}

impl From<MessageId> for EntityId {
    fn from(id: MessageId) -> Self {
        Self::new(id.as_str())
    }
}

impl From<ToolCallId> for EntityId {
    fn from(id: ToolCallId) -> Self {
        Self::new(id.as_str())
    }
}
