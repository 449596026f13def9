//! Who may do what.

use agui_agent::BoxFuture;
use agui_server::{Refusal, bearer, codes};
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use subtle::ConstantTimeEq;

use crate::Operation;

/// Who asks: what an [`Authorize`] makes of a request's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// Whose threads these are: threads of one tenant do not exist for another. Default: the empty
    /// string, the tenant of whoever has no other.
    pub tenant: String,
    /// Who it is within the tenant, for the hook's own use and the log. Default: nobody in
    /// particular.
    pub name: Option<String>,
}

impl Principal {
    /// Someone of a tenant.
    #[must_use]
    pub fn of_tenant(tenant: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), name: None }
    }

    /// Someone with a name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// What is asked for: enough to decide.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Action<'a> {
    /// The operation, with the agent and the thread that its path names.
    pub operation: &'a Operation,
    /// The thread: from the path, or from the input of a run.
    pub thread: Option<&'a str>,
}

/// Decides about every request, on every route: first who asks, before a byte of the body is read,
/// then whether they may.
///
/// A refusal is answered as it is; 401 and 403 are the usual ones.
pub trait Authorize: Send + Sync + 'static {
    /// Who asks. Fails where that cannot be said.
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>>;

    /// Whether they may. By default they may do everything within their tenant.
    fn authorize<'a>(
        &'a self,
        principal: &'a Principal,
        action: Action<'a>,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        let (_, _) = (principal, action);
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Everybody may do everything, and all are one tenant: for a machine that one person uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleUser;

impl Authorize for SingleUser {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        Box::pin(std::future::ready(Ok(Principal::default())))
    }
}

/// Everybody may chat and nobody may list, read or delete what others said: runs and the threads
/// whose id one knows, nothing that goes over all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Anonymous;

impl Authorize for Anonymous {
    fn authenticate<'a>(&'a self, _: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        Box::pin(std::future::ready(Ok(Principal::default())))
    }

    fn authorize<'a>(
        &'a self,
        _: &'a Principal,
        action: Action<'a>,
    ) -> BoxFuture<'a, Result<(), Refusal>> {
        let open = matches!(
            action.operation,
            Operation::Info
                | Operation::Run { .. }
                | Operation::Connect { .. }
                | Operation::Suggest { .. }
                | Operation::Stop { .. }
                | Operation::Capabilities { .. }
                | Operation::Transcribe
                | Operation::InspectorMetadata
                | Operation::Annotate
                | Operation::SubscribeThreads
        );
        let refused = || {
            let message = "this is only for those who are known here";
            Err(Refusal::new(StatusCode::FORBIDDEN, codes::FORBIDDEN, message)
                .hint("the operator can configure tokens, or single-user mode"))
        };
        Box::pin(std::future::ready(if open { Ok(()) } else { refused() }))
    }
}

/// Whoever brings one of these tokens in `Authorization: Bearer …` is let in, as the principal the
/// token stands for.
///
/// Tokens are compared in constant time, and never shown.
#[derive(Clone, Default)]
pub struct BearerTokens(Vec<(String, Principal)>);

impl BearerTokens {
    /// Nobody is let in yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets in who has this token. An empty one counts for nothing.
    #[must_use]
    pub fn accept(mut self, token: impl Into<String>, principal: Principal) -> Self {
        let token = token.into();
        if !token.is_empty() {
            self.0.push((token, principal));
        }
        self
    }
}

impl Authorize for BearerTokens {
    fn authenticate<'a>(&'a self, head: &'a Parts) -> BoxFuture<'a, Result<Principal, Refusal>> {
        let brought = bearer(head);
        // All of them are looked at: how long it takes says nothing about which is close.
        let mut found = None;
        for (token, principal) in &self.0 {
            let same =
                brought.is_some_and(|brought| brought.as_bytes().ct_eq(token.as_bytes()).into());
            if same {
                found = Some(principal);
            }
        }
        let judged = found.cloned().ok_or_else(|| {
            let message = match brought {
                Some(_) => "the token is not one of ours",
                None => no_token(head),
            };
            Refusal::new(StatusCode::UNAUTHORIZED, codes::UNAUTHORIZED, message)
                .hint("send it as Authorization: Bearer …")
        });
        Box::pin(std::future::ready(judged))
    }
}

/// Why a request brings no token.
pub(crate) fn no_token(head: &Parts) -> &'static str {
    match head.headers.get_all(AUTHORIZATION).iter().count() {
        0 | 1 => "a token is needed",
        _ => "there is more than one Authorization header, so none of them counts",
    }
}

impl std::fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BearerTokens({} of them)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    async fn ask(tokens: &BearerTokens, authorization: Option<&str>) -> Result<Principal, Refusal> {
        let mut request = Request::new(());
        if let Some(value) = authorization {
            request.headers_mut().insert(http::header::AUTHORIZATION, value.parse().unwrap());
        }
        tokens.authenticate(&request.into_parts().0).await
    }

    #[tokio::test]
    async fn a_token_stands_for_its_principal() {
        let tokens = BearerTokens::new()
            .accept("one", Principal::of_tenant("a").named("ada"))
            .accept("two", Principal::of_tenant("b"))
            .accept("", Principal::of_tenant("c"));
        let ada = ask(&tokens, Some("bearer one")).await.unwrap();
        assert_eq!((ada.tenant.as_str(), ada.name.as_deref()), ("a", Some("ada")));
        assert_eq!(ask(&tokens, Some("Bearer  two ")).await.unwrap().tenant, "b");
        for wrong in
            [None, Some(""), Some("Bearer "), Some("Bearer on"), Some("Basic one"), Some("one")]
        {
            let refusal = ask(&tokens, wrong).await.unwrap_err();
            assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED, "{wrong:?}");
        }
        assert!(!format!("{tokens:?}").contains("one\""));
    }

    #[tokio::test]
    async fn of_several_headers_none_counts() {
        let tokens = BearerTokens::new().accept("one", Principal::of_tenant("a"));
        for other in ["Bearer one", "Bearer two", "Basic x"] {
            let mut request = Request::new(());
            for value in ["Bearer one", other] {
                request.headers_mut().append(AUTHORIZATION, value.parse().unwrap());
            }
            let refusal = tokens.authenticate(&request.into_parts().0).await.unwrap_err();
            assert_eq!(refusal.status(), StatusCode::UNAUTHORIZED);
            assert!(format!("{refusal:?}").contains("more than one"), "{refusal:?}");
        }
    }
}
