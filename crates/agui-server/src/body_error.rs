//! Why a request's body did not come.

use std::error::Error;

use agui_agent::BoxError;

/// Why a request's body ended before it was whole.
///
/// [`Server`](crate::Server) ends bodies with it, and any other body may: an
/// [`AgentService`](crate::AgentService) finds it among the sources of an error, and answers with the
/// status and the code named here. An error that is none of these is answered as
/// [`Broken`](Self::Broken).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// It came more slowly than is waited for: 408, [`BODY_TOO_SLOW`](crate::codes::BODY_TOO_SLOW).
    #[error("the body came too slowly")]
    TooSlow,
    /// The server stops: 503, [`SHUTTING_DOWN`](crate::codes::SHUTTING_DOWN).
    #[error("the server is shutting down")]
    Closing,
    /// The connection or the framing broke: 400,
    /// [`BODY_INCOMPLETE`](crate::codes::BODY_INCOMPLETE).
    #[error("the body broke off")]
    Broken(#[source] BoxError),
}

impl BodyError {
    /// The one behind an error, however often it was wrapped.
    pub(crate) fn behind<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut error = Some(error);
        while let Some(wrapped) = error {
            if let Some(found) = wrapped.downcast_ref() {
                return Some(found);
            }
            error = wrapped.source();
        }
        None
    }
}
