//! A runtime for AG-UI agents: durable threads, runs that outlive their viewers, and the routes that
//! CopilotKit front ends use.
//!
//! ```
//! use std::sync::Arc;
//!
//! use agui_agent::{AgentResult, Run};
//! use agui_journal::MemoryJournal;
//! use agui_runtime::{Agents, Runtime, SingleUser};
//!
//! async fn greeter(run: Run) -> AgentResult {
//!     run.say("Hello!").await?;
//!     Ok(())
//! }
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let mut agents = Agents::new();
//! agents.add("default", greeter)?.describe("Greets everybody");
//! let runtime = Runtime::builder(agents, Arc::new(MemoryJournal::new()))
//!     .authorize(SingleUser)
//!     .build();
//! let service = runtime.service();
//! # let _ = service;
//! # Ok(())
//! # }
//! ```
//!
//! # Runs
//!
//! A run belongs to the [journal](agui_journal) and not to the request that started it: its events
//! are numbered, written, and only then shown. Viewers come and go; each reads the log at its own
//! pace. Every frame has the event's position as its `id:`, which plain clients do not see; who comes
//! back with `Last-Event-ID` reads on from there.
//!
//! Whatever an agent does, its run ends with one terminal event, and nothing is open before it.
//!
//! # Routes
//!
//! Below the base path, `/api/copilotkit` unless configured, both by path and, as an envelope
//! `{"method", "params", "body"}`, by `POST` to the base path itself:
//!
//! | path | method of the envelope | what |
//! | --- | --- | --- |
//! | `GET /info` | `info` | what is here |
//! | `POST /agent/{agent}/run` | `agent/run` | a run, as server-sent events |
//! | `POST /agent/{agent}/connect` | `agent/connect` | the thread so far, and the run that is going on |
//! | `POST /agent/{agent}/stop/{thread}` | `agent/stop` | stops the thread's run |
//! | `POST /agent/{agent}/suggest` | `agent/suggest` | a run that leaves no trace |
//! | `POST /transcribe` | `transcribe` | audio to text |
//! | `/threads…` | `resource/request` | lists, reads, names, archives and deletes threads |
//! | `GET /cpk-debug-events` | | every event as it comes, where switched on |
#![forbid(unsafe_code)]

mod agents;
mod answer;
mod auth;
mod builder;
pub mod codes;
mod debug;
mod dialect;
mod endpoint;
mod headers;
mod info;
mod inspect;
#[cfg(feature = "jwt")]
mod jwt;
mod position;
mod quota;
mod replay;
mod route;
mod run;
mod runtime;
mod service;
mod suggestions;
mod threads;
mod time;
mod transcribe;
mod upkeep;
mod viewer;

pub use agui_journal::BusyPolicy;

pub use agents::{AgentIdError, AgentSource, Agents, Hosted};
pub use auth::{Action, Anonymous, Authorize, BearerTokens, Principal, SingleUser};
pub use builder::{RuntimeBuilder, Transport};
pub use headers::ForwardHeaders;
#[cfg(feature = "jwt")]
pub use jwt::{Jwt, JwtKey, JwtKeyError};
pub use route::Operation;
pub use runtime::Runtime;
pub use service::{LONGEST_ID, RuntimeService};
pub use transcribe::{Audio, Transcriber, TranscriptionError, TranscriptionErrorKind};
pub use upkeep::{Kept, NotReady, Upkeep};

/// The program in the guide compiles.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/runtime.md")]
struct Guide;

/// So do those in the skill's page for agents.
#[cfg(doctest)]
#[doc = include_str!("../../../skills/agui/references/building-an-agent.md")]
struct SkillBuilding;
