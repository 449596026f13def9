//! Which operation a request asks for: by path (REST) or by an envelope (single route).

mod envelope;
mod path;

use std::fmt;

pub(crate) use envelope::{Envelope, EnvelopeError, names_a_method};
pub(crate) use path::{Found, resolve};

/// Something that a front end can ask of the runtime.
///
/// Ids are decoded: what stands here is the id itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// What is here: the agents and what the runtime can do.
    Info,
    /// Starts a run on a thread.
    Run {
        /// The agent that is to run.
        agent: String,
    },
    /// Replays a thread and follows the run that is going on.
    Connect {
        /// The agent that has to exist; the thread is looked up by its own id.
        agent: String,
    },
    /// A run that leaves no trace.
    Suggest {
        /// The agent that is to run.
        agent: String,
    },
    /// Stops the run that is going on.
    Stop {
        /// The agent that has to exist.
        agent: String,
        /// The thread whose run is to stop.
        thread: String,
    },
    /// What an agent declares about itself, at its plain endpoint.
    Capabilities {
        /// The agent that is asked about.
        agent: String,
    },
    /// Turns audio into text.
    Transcribe,
    /// The threads.
    ListThreads,
    /// Deletes every thread.
    ClearThreads,
    /// Asks for credentials of a push channel, which there is not.
    SubscribeThreads,
    /// Renames, archives or unarchives a thread.
    UpdateThread {
        /// The thread.
        thread: String,
    },
    /// Deletes a thread.
    DeleteThread {
        /// The thread.
        thread: String,
    },
    /// Archives a thread.
    ArchiveThread {
        /// The thread.
        thread: String,
    },
    /// The messages of a thread.
    ThreadMessages {
        /// The thread.
        thread: String,
    },
    /// The events of a thread.
    ThreadEvents {
        /// The thread.
        thread: String,
    },
    /// The state of a thread.
    ThreadState {
        /// The thread.
        thread: String,
    },
    /// Data of an account with the vendor, which there is not.
    InspectorMetadata,
    /// Every event of every run as it comes, for developers.
    DebugEvents,
    /// Records an action of a user with the vendor, which is not done here.
    Annotate,
}

impl Operation {
    /// The operation in one word, as it is logged and as an authorisation hook may match it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Run { .. } => "agent/run",
            Self::Connect { .. } => "agent/connect",
            Self::Suggest { .. } => "agent/suggest",
            Self::Stop { .. } => "agent/stop",
            Self::Capabilities { .. } => "agent/capabilities",
            Self::Transcribe => "transcribe",
            Self::ListThreads => "threads/list",
            Self::ClearThreads => "threads/clear",
            Self::SubscribeThreads => "threads/subscribe",
            Self::UpdateThread { .. } => "threads/update",
            Self::DeleteThread { .. } => "threads/delete",
            Self::ArchiveThread { .. } => "threads/archive",
            Self::ThreadMessages { .. } => "threads/messages",
            Self::ThreadEvents { .. } => "threads/events",
            Self::ThreadState { .. } => "threads/state",
            Self::InspectorMetadata => "inspector/metadata",
            Self::DebugEvents => "debug-events",
            Self::Annotate => "annotate",
        }
    }

    /// The agent that the path or the envelope names.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::Run { agent }
            | Self::Connect { agent }
            | Self::Suggest { agent }
            | Self::Capabilities { agent }
            | Self::Stop { agent, .. } => Some(agent),
            _ => None,
        }
    }

    /// The thread that the path or the envelope names. A run's is in its input.
    #[must_use]
    pub fn thread(&self) -> Option<&str> {
        match self {
            Self::Stop { thread, .. }
            | Self::UpdateThread { thread }
            | Self::DeleteThread { thread }
            | Self::ArchiveThread { thread }
            | Self::ThreadMessages { thread }
            | Self::ThreadEvents { thread }
            | Self::ThreadState { thread } => Some(thread),
            _ => None,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
