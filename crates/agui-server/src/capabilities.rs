//! What the agent declares about itself.

use std::convert::Infallible;
use std::fmt;
use std::task::{Context, Poll};

use agui_agent::BoxFuture;
use agui_types::capabilities::TransportCapabilities;
use agui_types::{AgentCapabilities, ToJson};
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use tower_service::Service;

use crate::access::{Access, Asked};
use crate::panic::caught;
use crate::{Refusal, ResponseBody, codes};

/// Answers `GET` with the agent's capabilities as JSON; made by
/// [`AgentService::capabilities`](crate::AgentService::capabilities).
///
/// The protocol does not say how a declaration is obtained. 404 where the agent declares nothing,
/// which does not mean that it can do nothing (C-91).
#[derive(Clone)]
pub struct CapabilitiesService {
    pub(crate) access: Access,
    /// Whether runs are served over WebSockets as well.
    pub(crate) websocket: bool,
}

impl<B> Service<Request<B>> for CapabilitiesService {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (service, (head, _)) = (self.clone(), request.into_parts());
        Box::pin(
            async move { Ok(service.answer(head).await.unwrap_or_else(Refusal::into_response)) },
        )
    }
}

impl fmt::Debug for CapabilitiesService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapabilitiesService").finish_non_exhaustive()
    }
}

impl CapabilitiesService {
    async fn answer(&self, head: Parts) -> Result<Response<ResponseBody>, Refusal> {
        let (head, agent) = self.access.admit(head).await?;
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return Err(Refusal::method(
                "GET, HEAD",
                "GET the declaration; a run is started elsewhere",
            ));
        }
        self.access.permit(&head, Asked::Capabilities).await?;
        // The part of `capabilities` before its future may panic as well.
        let declared = caught(async { agent.capabilities().await }).await;
        let declared = declared.map_err(|panic| {
            tracing::error!(panic, "the agent panicked while it declared its capabilities");
            let message = "the agent panicked while it declared its capabilities";
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, codes::AGENT_PANIC, message)
        })?;
        // A declaration is the agent's; how it is reached is known here.
        let declared = if self.websocket {
            let mut capabilities = declared.unwrap_or_else(AgentCapabilities::new);
            let transport = capabilities.transport.get_or_insert_with(TransportCapabilities::new);
            transport.websocket = Some(true);
            Some(capabilities)
        } else {
            declared
        };
        let Some(capabilities) = declared else {
            let message = "the agent declares no capabilities";
            let hint = "an undeclared capability may be there all the same: start a run and see";
            return Err(
                Refusal::new(StatusCode::NOT_FOUND, codes::NO_CAPABILITIES, message).hint(hint)
            );
        };
        let mut response = Response::new(ResponseBody::whole(capabilities.to_json()));
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        Ok(response)
    }
}
