//! Agents of the AG-UI protocol: writing them, and calling those behind a URL.
//!
//! Everything is an [`Agent`]: a closure that takes a [`Run`] and emits events, an `HttpAgent`, or
//! whatever wraps one. An agent function cannot produce a broken stream: what it opens is closed for
//! it, and its run ends with exactly one terminal event whether it returns, fails, panics, is
//! cancelled or is dropped.
//!
//! ```
//! use agui_agent::{AgentResult, Run};
//!
//! async fn weather(run: Run) -> AgentResult {
//!     let mut call = run.tool_call("get_weather").await?;
//!     call.args(r#"{"city":"Oslo"}"#).await?;
//!     call.result("sunny").await?;
//!
//!     let mut text = run.text().await?;
//!     for word in ["It ", "is ", "sunny."] {
//!         text.push(word).await?;
//!     }
//!     Ok(())
//! }
//! # fn check(agent: impl agui_agent::Agent) {}
//! # check(weather);
//! ```
#![forbid(unsafe_code)]

mod agent;
mod deliver;
pub mod emitter;
mod error;
#[cfg(feature = "http")]
mod http;
pub mod middleware;
#[doc(hidden)]
pub mod panic;
mod position;
mod reading;
mod retry;
#[cfg(feature = "http")]
pub mod runtime;
#[cfg(feature = "session")]
pub mod session;

pub use agent::{Agent, AgentExt, BoxFuture, Declared, EventStream, RunContext};
pub use agui_wire::DecodeError;
#[cfg(feature = "http")]
pub use agui_wire::{Limits, WireForm};
pub use deliver::{Delivered, Delivery, DeliveryError, deliver};
pub use emitter::{EmitError, Emitter, Run};
pub use error::{AgentError, AgentResult, BoxError, RunFailure};
#[cfg(feature = "http")]
pub use http::{BuildError, HeaderRequest, HttpAgent, HttpAgentBuilder};
pub use position::Position;
pub use retry::RetryPolicy;
#[cfg(feature = "http")]
pub use runtime::RuntimeClient;
#[cfg(feature = "session")]
pub use session::Session;
pub use tokio_util::sync::CancellationToken;

#[cfg(all(doctest, feature = "http", feature = "schemars", feature = "session"))]
mod guides {
    #[doc = include_str!("../../../docs/guides/clients.md")]
    struct Clients;

    #[doc = include_str!("../../../docs/guides/errors.md")]
    struct Errors;

    #[doc = include_str!("../../../docs/guides/migrating.md")]
    struct Migrating;

    #[doc = include_str!("../../../skills/agui/references/client.md")]
    struct SkillClient;

    #[doc = include_str!("../../../skills/agui/references/debugging.md")]
    struct SkillDebugging;
}
