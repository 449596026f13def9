//! A subagent invocation within the run.

use std::ops::Deref;

use agui_stream::OpenItem;
use agui_types::event::{SubagentError, SubagentFinished, SubagentStarted};
use agui_types::{InterruptId, SubagentRunId, SuspendedOutcome};
use serde::Serialize;

use super::scope::json;
use super::{EmitError, Emitter};

/// An announced subagent. It derefs to an [`Emitter`] whose events are attributed to it.
///
/// [`finish`](Subagent::finish), [`suspend`](Subagent::suspend) or [`fail`](Subagent::fail) says how
/// it ended. Dropped without one of these it counts as failed: a success is never invented. It ends
/// once:
///
/// ```compile_fail,E0382
/// # async fn twice(subagent: agui_agent::emitter::Subagent) -> agui_agent::AgentResult {
/// subagent.finish().await?;
/// subagent.fail("after all").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Subagent {
    emitter: Emitter,
    id: SubagentRunId,
    open: bool,
}

impl Subagent {
    pub(super) async fn open(
        parent: &Emitter,
        mut start: SubagentStarted,
    ) -> Result<Self, EmitError> {
        if start.parent_subagent_run_id.is_none() {
            start.parent_subagent_run_id.clone_from(&parent.owner);
        }
        let id = start.subagent_run_id.clone();
        parent.emit(start).await?;
        let emitter = Emitter { channel: parent.channel.clone(), owner: Some(id.clone()) };
        Ok(Self { emitter, id, open: true })
    }

    /// The invocation's id.
    #[must_use]
    pub fn id(&self) -> &SubagentRunId {
        &self.id
    }

    /// Ends the invocation as completed. What it has open stays open, to be closed by its handles
    /// (C-79).
    pub async fn finish(self) -> Result<(), EmitError> {
        let finished = SubagentFinished::new(&self.id);
        self.close(finished).await
    }

    /// Ends the invocation as completed, with a return value; a `null` is left out (P-17).
    pub async fn finish_with<T: Serialize + ?Sized>(self, result: &T) -> Result<(), EmitError> {
        let finished = SubagentFinished::new(&self.id).result(json(result)?);
        self.close(finished).await
    }

    /// Ends the invocation's part of this run: it waits for the answers to these interrupts of the
    /// run, which may be none of its own.
    pub async fn suspend(self, interrupts: Vec<InterruptId>) -> Result<(), EmitError> {
        let mut outcome = SuspendedOutcome::new();
        outcome.interrupt_ids = Some(interrupts).filter(|ids| !ids.is_empty());
        let finished = SubagentFinished::new(&self.id).outcome(outcome);
        self.close(finished).await
    }

    /// Ends the invocation as failed. The run may go on.
    pub async fn fail(self, message: impl Into<String>) -> Result<(), EmitError> {
        let error = SubagentError::new(&self.id, message);
        self.close(error).await
    }

    async fn close(mut self, event: impl Into<agui_types::Event>) -> Result<(), EmitError> {
        self.emitter.emit(event).await?;
        self.open = false;
        Ok(())
    }
}

impl Deref for Subagent {
    type Target = Emitter;

    fn deref(&self) -> &Emitter {
        &self.emitter
    }
}

impl Drop for Subagent {
    fn drop(&mut self) {
        if self.open {
            let subagent_run_id = self.id.clone();
            let dropped = OpenItem::Subagent { subagent_run_id, owner: None };
            self.emitter.emit_now(dropped.closing_event());
        }
    }
}
