//! One AG-UI agent over HTTP: a [`tower` service](AgentService), and an `axum` router around it.
//!
#![cfg_attr(feature = "axum", doc = "```no_run")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! use agui_agent::{AgentResult, Run};
//!
//! async fn greeter(run: Run) -> AgentResult {
//!     run.say("Hello!").await?;
//!     Ok(())
//! }
//!
//! #[tokio::main]
//! async fn main() -> std::io::Result<()> {
//!     let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
//!     axum::serve(listener, agui_server::router(greeter)).await
//! }
//! ```
//!
//! # The request
//!
//! A `POST` with one JSON `RunAgentInput` (T-10). It is read whole, and judged before anything of
//! the run begins (P-73, T-19); what is wrong with it is answered with an HTTP status and
//! `{"error": {"code", "message", "path"?, "hint"?}}`. [`codes`] lists them.
//!
//! Reading is tolerant. Members, messages, parts and entries that the protocol does not describe are
//! left out (P-74, P-79), `state: null` and the other nulls that older clients send read as absent,
//! retired shapes are translated: each with a warning in the log that names the place, not what
//! stood there. Anything else that is malformed is refused, naming the place.
//!
//! `Content-Type` has to be JSON, so that a form on another site cannot start a run: browsers send
//! forms and plain text anywhere, but ask first before they send JSON.
//!
//! A request that is refused before its body was read is answered at once; what still comes of the
//! body is read and thrown away meanwhile, until it stops coming, so that a client that sends before
//! it reads sees the answer and not a broken connection.
//!
//! # Who may ask
//!
//! Whoever reaches an [`AgentService`], unless it has [`authorize`](AgentService::authorize): then
//! nobody, runs and capabilities alike, but those whom that hook lets in. It is asked before anything
//! else of a request is looked at, and a hook that panics refuses. What it gives, such as a user, is
//! found among the extensions: by the choice of an agent [per request](AgentService::choosing) in
//! those of the request's head, by the agent in those of its run's context. What depends on the input
//! as well, such as whose thread it names, is for [`permit`](AgentService::permit).
//!
//! Browsers ask for leave before they send JSON to another site (CORS), without credentials: put the
//! layer that answers them, such as the one of `tower-http`, around the service. `examples/full.rs`
//! does.
//!
//! # The answer
//!
//! `200` and, where the request's `Accept` admits the binary form, that (T-24), else
//! `text/event-stream` (T-12): one `data:` line an event (T-13), a comment when it has been
//! silent for 15 seconds (T-17). The head goes out at once. Events that are ready together may share
//! a chunk; none waits for another.
//!
//! # Honest endings
//!
//! Whatever the agent does, its events keep the rules of the protocol and each run that began ends
//! with exactly one terminal event. A stream that stops early, yields an error, panics or breaks a
//! rule is dropped; what it left open is closed, and a `RUN_ERROR` with one of the [`codes`] follows.
//! Where the run had ended already nothing is added.
//!
//! Only what the protocol describes goes out (P-16): events of an unknown type, as a remote agent
//! may send them, are left out with a warning. Chunk events go out as they are.
//!
//! A client that leaves ends its run: dropping the body drops the agent's stream. Nothing is
//! spawned. Bodies are to be polled in a `tokio` runtime with its timer enabled.
//!
//! # Features
//!
//! - `axum` (default): `router` and `AgentService::into_router`.
//! - `server` (default): `Server`, an accept loop with limits and an orderly end.
//! - `openapi`: `openapi`, a description of agents as OpenAPI.
//! - `ws`: `AgentService::websocket`, runs over WebSockets as well.
#![forbid(unsafe_code)]

mod access;
#[cfg(feature = "axum")]
mod axum;
mod body;
mod body_error;
mod capabilities;
pub mod codes;
mod input;
mod log;
#[cfg(feature = "openapi")]
mod openapi;
mod panic;
mod refusal;
mod run;
#[cfg(feature = "server")]
mod server;
mod service;
#[cfg(feature = "ws")]
mod ws;

#[cfg(feature = "axum")]
pub use self::axum::router;
pub use access::{Asked, BearerKnown, bearer, bearer_secret};
pub use body::ResponseBody;
pub use body_error::BodyError;
pub use capabilities::CapabilitiesService;
#[doc(hidden)]
pub use input::judge as judge_input;
#[doc(hidden)]
pub use log::WarningLog;
#[cfg(feature = "openapi")]
pub use openapi::openapi;
#[doc(hidden)]
pub use panic::caught;
pub use refusal::Refusal;
#[doc(hidden)]
pub use run::{detail, sentence};
#[cfg(feature = "server")]
pub use server::{PeerAddr, RequestBody, Server, ServerLimits};
pub use service::{AgentService, stream_run};

/// The programs in the README compile.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So do those of the skill.
#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../skills/agui/SKILL.md")]
struct Skill;

/// So do those in the guides to agents.
#[cfg(all(doctest, feature = "axum"))]
mod guides {
    #[doc = include_str!("../../../docs/guides/agents.md")]
    struct Agents;
    #[doc = include_str!("../../../docs/guides/tools.md")]
    struct Tools;
    #[doc = include_str!("../../../docs/guides/approvals.md")]
    struct Approvals;
    #[doc = include_str!("../../../docs/guides/state.md")]
    struct State;
    #[doc = include_str!("../../../docs/guides/middleware.md")]
    struct Middleware;
}
