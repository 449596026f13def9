//! The agent behind the URL.

use std::sync::{Arc, Mutex, PoisonError};

use agui_agent::{Agent, BuildError, EventStream, HttpAgent, HttpAgentBuilder, RunContext};
use agui_stream::Warning;
use agui_types::RunAgentInput;
use agui_wire::Warning as FrameWarning;

use super::warnings::Warnings;

/// An agent over HTTP that keeps what was amiss with the frames of its answers.
pub(super) struct Remote {
    agent: HttpAgent,
    warnings: Arc<Mutex<Warnings>>,
}

impl Remote {
    /// Fails where the builder does.
    pub(super) fn new(builder: HttpAgentBuilder) -> Result<Self, BuildError> {
        let warnings = Arc::new(Mutex::new(Warnings::default()));
        let told = Arc::clone(&warnings);
        let agent = builder
            .on_warning(move |warning| {
                told.lock().unwrap_or_else(PoisonError::into_inner).push(of_frame(warning));
            })
            .build()?;
        Ok(Self { agent, warnings })
    }

    pub(super) fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        self.agent.run(input, context)
    }

    /// The URL without credentials, query and fragment.
    pub(super) fn display_url(&self) -> String {
        self.agent.display_url()
    }

    /// What was amiss with the frames since this was last asked.
    pub(super) fn take_warnings(&self) -> Warnings {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn of_frame(warning: &FrameWarning) -> Warning {
    let (rule, path) = match warning {
        FrameWarning::DoneMarker => ("T-22", ""),
        FrameWarning::InvalidUtf8 => ("T-13", ""),
        FrameWarning::UnknownPart { path } => ("C-25", path.as_str()),
        FrameWarning::NoNumber { path } => ("T-33", path.as_str()),
        _ => ("T-30", ""),
    };
    Warning { rule, event: None, path: path.into(), message: warning.to_string() }
}
