//! How much one client, and all of them together, may have of a server.

use std::time::Duration;

/// The limits of a [`Server`](crate::Server).
///
/// ```
/// let mut limits = agui_server::ServerLimits::default();
/// limits.connections = 10_000;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerLimits {
    /// How many connections there are at once. Default 512: half of the 1,024 open files that
    /// systems allow a program by custom, so that each run may hold one more, such as a connection
    /// to a remote agent.
    ///
    /// One more connection takes the place of the one that has waited longest, for its first request,
    /// the next one, or the rest of a request's head: that one is closed. Where none waits, because
    /// all of them are being answered, the new one is told 503 with
    /// [`TOO_MANY_CONNECTIONS`](crate::codes::TOO_MANY_CONNECTIONS) and `Retry-After: 1`, and closed.
    pub connections: usize,
    /// How long a connection may be open without a request: before the first byte of the first one,
    /// and between the end of an answer and the first byte of the next. Then it is closed. Default
    /// 75 s.
    pub idle_timeout: Duration,
    /// How long a request's head may take, from its first byte to its last. Then the connection is
    /// closed without an answer. Default 10 s.
    pub head_timeout: Duration,
    /// How large a request's head may be in bytes; a larger one is answered with 431. Default 64 KiB.
    /// As much, and no less than 8 KiB, is read ahead of a request's body, and held of an answer
    /// that its client does not take.
    pub head_bytes: usize,
    /// How many header fields a request may have; more are answered with 431. Default 100.
    pub headers: usize,
    /// How long is waited for a request's body, all pauses together, beside what
    /// [`body_rate`](Self::body_rate) grants. Default 10 s.
    ///
    /// A body that takes longer ends with [`BodyError::TooSlow`](crate::BodyError::TooSlow), which an
    /// agent's service answers with 408.
    pub body_grace: Duration,
    /// How many bytes of a body are worth one more second of waiting. Default 1,024: a megabyte may
    /// take 17 minutes, a body that comes byte by byte ends with the grace. Zero counts as one.
    pub body_rate: u32,
    /// How long a client may take nothing of an answer while there is something to take. Then the
    /// connection is closed and the run ends. Default 60 s.
    pub write_timeout: Duration,
    /// How long the answers may take that are going on when the server is to stop; what is left then
    /// is cut off. Default 10 s.
    pub shutdown_grace: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 512,
            idle_timeout: Duration::from_secs(75),
            head_timeout: Duration::from_secs(10),
            head_bytes: 64 * 1024,
            headers: 100,
            body_grace: Duration::from_secs(10),
            body_rate: 1024,
            write_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}
