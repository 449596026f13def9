//! A step of the run.

use agui_types::event::{StepFinished, StepStarted};

use super::{EmitError, Emitter};

/// An open step. Dropping it closes the step.
#[derive(Debug)]
pub struct Step {
    emitter: Emitter,
    name: String,
    open: bool,
}

impl Step {
    pub(super) async fn open(emitter: Emitter, start: StepStarted) -> Result<Self, EmitError> {
        let name = start.step_name.clone();
        emitter.emit(start).await?;
        Ok(Self { emitter, name, open: true })
    }

    /// The step's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes the step.
    pub async fn end(mut self) -> Result<(), EmitError> {
        self.emitter.emit(StepFinished::new(self.name.as_str())).await?;
        self.open = false;
        Ok(())
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if self.open {
            self.emitter.emit_now(StepFinished::new(self.name.as_str()));
        }
    }
}
