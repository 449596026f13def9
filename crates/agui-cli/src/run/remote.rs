//! The agent behind the URL.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agui_agent::runtime::{RuntimeAgent, RuntimeClient, Transport};
use agui_agent::{Agent, BuildError, EventStream, HttpAgent, HttpAgentBuilder, RunContext};
use agui_runtime::Agents;
use agui_stream::Warning;
use agui_types::RunAgentInput;
use agui_wire::Warning as FrameWarning;

use super::warnings::Warnings;

/// An agent over HTTP that keeps what was amiss with the frames of its answers.
pub(super) struct Remote {
    agent: HttpAgent,
    /// The same URL as that of a runtime, where it is one.
    runtime: Option<RuntimeAgent>,
    warnings: Arc<Mutex<Warnings>>,
}

/// How long a URL that is not said to be a runtime's has to say so itself.
const PROBE: Duration = Duration::from_secs(5);

/// How long a runtime may take to say that it stops a run: less than the program goes on after the
/// first signal.
const STOPPING: Duration = Duration::from_millis(700);

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
        Ok(Self { agent, runtime: None, warnings })
    }

    /// The agent of this name in the runtime that the URL is.
    pub(super) fn in_runtime(mut self, transport: Transport, name: &str) -> Self {
        let client = RuntimeClient::over(self.agent.clone()).with_transport(transport);
        self.runtime = Some(client.agent(name));
        self
    }

    /// Whether the URL says of itself that it is that of a runtime, whose default agent this then is.
    /// It is read, and nothing is sent to it.
    pub(super) async fn is_runtime(&mut self) -> bool {
        let client = RuntimeClient::over(self.agent.clone()).with_transport(Transport::Rest);
        let is = client.clone().with_answer_timeout(PROBE).info().await.is_ok();
        if is {
            self.runtime = Some(client.agent(Agents::DEFAULT));
        }
        is
    }

    /// The agent as that of a runtime.
    pub(super) fn runtime(&self) -> Option<&RuntimeAgent> {
        self.runtime.as_ref()
    }

    pub(super) fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        match &self.runtime {
            Some(agent) => agent.run(input, context),
            None => self.agent.run(input, context),
        }
    }

    /// Has a runtime stop a run, which would go on there without anybody who watches it. Where that
    /// fails it is told in the log.
    pub(super) async fn stop(&self, thread: &str, run: &str) {
        let Some(agent) = &self.runtime else { return };
        let stopped = tokio::time::timeout(STOPPING, agent.stop(thread, Some(run))).await;
        let why: &dyn std::fmt::Display = match &stopped {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error,
            Err(elapsed) => elapsed,
        };
        tracing::warn!(%why, "the runtime did not say that it stops the run; it may go on there");
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
