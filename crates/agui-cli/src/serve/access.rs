//! Who asks, as the configuration knows them.

use agui_agent::BoxFuture;
use agui_runtime::{Authorize, Principal};
use agui_server::Refusal;
use axum::http::request::Parts;

use super::config::Known;

/// Whoever brings a token of the configuration, or a JWT where it has a key for them.
impl Authorize for Known {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        #[cfg(feature = "jwt")]
        if let Some(jwt) = &self.jwt {
            return Box::pin(async move {
                match self.bearer.authenticate(head).await {
                    Ok(principal) => Ok(principal),
                    Err(_) => jwt.authenticate(head).await,
                }
            });
        }
        self.bearer.authenticate(head)
    }
}
