//! Why a run, or a subagent's part of one, ended; and what an interrupted one asks.

use std::ops::Deref;

use crate::json::write::{self, Write};
use crate::read::{Read, ReadError, ReadErrorKind, Reader};
use crate::{InterruptId, JsonObject, Metadata, SubagentRunId, ToolCallId};

union! {
    /// Why a run ended. An absent outcome means success (C-16).
    RunFinishedOutcome by "type", expected "\"success\", \"interrupt\" or \"cancelled\"" {
        /// It completed.
        "success" => Success(SuccessOutcome),
        /// It stopped to ask.
        "interrupt" => Interrupt(InterruptOutcome),
        /// It was stopped on purpose: neither success nor failure (C-13).
        "cancelled" => Cancelled(CancelledOutcome),
    }
}

object! {
    /// The run completed.
    SuccessOutcome {
        tags { "type" = "success" }
        required {}
        optional {
            /// The calls that were started and not answered, in the order made (P-32). Absent or
            /// empty: the consumer derives them from the stream (C-54).
            pending_tool_call_ids "pendingToolCallIds": Vec<ToolCallId>,
        }
    }
}

object! {
    /// The run stopped to ask; the next run answers in its `resume`.
    InterruptOutcome {
        tags { "type" = "interrupt" }
        required {
            /// What it asks: at least one (P-67).
            interrupts "interrupts": Interrupts,
        }
        optional {}
    }
}

object! {
    /// The run was stopped before it completed.
    CancelledOutcome {
        tags { "type" = "cancelled" }
        required {}
        optional {}
    }
}

union! {
    /// Why a subagent's part of a run ended. An absent outcome means success.
    SubagentFinishedOutcome by "type", expected "\"success\" or \"suspended\"" {
        /// It completed.
        "success" => Success(SubagentSuccessOutcome),
        /// It waits for something from outside; a later run may continue it.
        "suspended" => Suspended(SuspendedOutcome),
    }
}

object! {
    /// The subagent completed.
    SubagentSuccessOutcome {
        tags { "type" = "success" }
        required {}
        optional {}
    }
}

object! {
    /// The subagent waits for something from outside.
    SuspendedOutcome {
        tags { "type" = "suspended" }
        required {}
        optional {
            /// The run's interrupts that it raised itself; may be empty.
            interrupt_ids "interruptIds": Vec<InterruptId>,
        }
    }
}

object! {
    /// Something a run needs from outside before it can go on.
    Interrupt {
        required {
            /// Its id, unique within the run (P-68).
            id "id": InterruptId,
            /// Why the run stopped: an open string.
            reason "reason": String,
        }
        optional {
            /// A prompt for whoever answers.
            message "message": String,
            /// The tool call it is about, when it is an approval.
            tool_call_id "toolCallId": ToolCallId,
            /// A JSON Schema of the answer it expects, carried opaquely.
            response_schema "responseSchema": JsonObject,
            /// When it stops being answerable; by convention ISO 8601, not checked here.
            expires_at "expiresAt": String,
            /// Extra information attached to the interrupt.
            metadata "metadata": Metadata,
            /// The subagent invocation that asks. Absent: the parent agent.
            subagent_run_id "subagentRunId": SubagentRunId,
        }
    }
}

/// At least one interrupt. Derefs to a slice.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupts(Vec<Interrupt>);

impl Interrupts {
    /// Adds one more.
    pub fn push(&mut self, interrupt: Interrupt) {
        self.0.push(interrupt);
    }

    /// Removes those that `keep` refuses; `None` where none is left.
    #[must_use]
    pub fn retain(mut self, keep: impl FnMut(&Interrupt) -> bool) -> Option<Self> {
        self.0.retain(keep);
        Self::try_from(self.0).ok()
    }
}

impl Deref for Interrupts {
    type Target = [Interrupt];

    fn deref(&self) -> &[Interrupt] {
        &self.0
    }
}

impl From<Interrupt> for Interrupts {
    fn from(interrupt: Interrupt) -> Self {
        Self(vec![interrupt])
    }
}

impl TryFrom<Vec<Interrupt>> for Interrupts {
    type Error = NoInterrupt;

    fn try_from(interrupts: Vec<Interrupt>) -> Result<Self, NoInterrupt> {
        if interrupts.is_empty() { Err(NoInterrupt) } else { Ok(Self(interrupts)) }
    }
}

impl IntoIterator for Interrupts {
    type Item = Interrupt;
    type IntoIter = std::vec::IntoIter<Interrupt>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl Read for Interrupts {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.kind()?;
        let offset = reader.offset();
        Self::try_from(reader.array()?).map_err(|NoInterrupt| {
            let (expected, found) = ("at least one interrupt", "an empty array");
            ReadError::new(ReadErrorKind::InvalidValue, offset, expected, found)
        })
    }
}

impl Write for Interrupts {
    fn write(&self, out: &mut Vec<u8>) {
        write::array(out, &self.0);
    }
}

bridge!(Interrupts);

#[cfg(feature = "schemars")]
impl crate::schema::Described for Interrupts {
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let items = generator.subschema_for::<Interrupt>();
        schemars::json_schema!({ "type": "array", "minItems": 1, "items": items })
    }
}

/// An interrupt outcome without an interrupt would leave nothing to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected at least one interrupt, found none")]
pub struct NoInterrupt;
