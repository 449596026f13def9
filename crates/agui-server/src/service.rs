//! The service: a request in, the events of a run out.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_agent::middleware::RequestHeaders;
use agui_agent::{Agent, BoxError, BoxFuture, CancellationToken, RunContext};
use agui_types::RunAgentInput;
use agui_wire::{WireForm, negotiate};
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, EXPECT, VARY};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::access::{Access, Asked};
use crate::run::GuardedRun;
#[cfg(feature = "ws")]
use crate::ws;
use crate::{CapabilitiesService, Refusal, ResponseBody, input};

/// One agent over HTTP: `POST` with a `RunAgentInput` starts a run and streams its events.
///
/// It takes requests with any body, never fails, is always ready, and is cheap to clone. It looks at
/// neither path nor host: mount it where the agent should be found. See the [crate](crate) for what
/// it answers, and [`codes`](crate::codes) for what it refuses. The agent finds the request's headers
/// among what surrounds its run, as [`RequestHeaders`], and the request's extensions beside them.
///
/// Nothing here limits how many clients there are or how slowly they send and read: `Server` does. How
/// many runs go on at once and how long one may take is for the layers of `tower`.
#[derive(Clone)]
pub struct AgentService {
    pub(crate) access: Access,
    keep_alive: Option<Duration>,
    body_limit: usize,
    cancel: CancellationToken,
    #[cfg(feature = "ws")]
    websocket: Option<ws::Origins>,
}

impl AgentService {
    /// After this much silence a keep-alive comment is sent, unless
    /// [`keep_alive`](Self::keep_alive) says otherwise.
    pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

    /// The largest request body in bytes, 10 MiB, unless [`body_limit`](Self::body_limit) says
    /// otherwise.
    pub const BODY_LIMIT: usize = 10 * 1024 * 1024;

    /// How long an agent whose run was cancelled may take to end it: 5 seconds.
    pub const PATIENCE: Duration = Duration::from_secs(5);

    /// Serves an agent: a closure, a remote agent, an `Arc` of one.
    #[must_use]
    pub fn new(agent: impl Agent) -> Self {
        Self::with(Access::open(agent))
    }

    /// Serves the agent that `choose` gives for a request, from its head: by its path, a header, or
    /// who asks. It may refuse, such as with 404.
    ///
    /// ```
    /// # async fn greeter(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
    /// # async fn echo(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
    /// use std::sync::Arc;
    ///
    /// use agui_agent::Agent;
    /// use agui_server::{AgentService, Refusal};
    /// use http::StatusCode;
    ///
    /// let service = AgentService::choosing(async |head| match head.uri.path() {
    ///     "/greeter" => Ok(Arc::new(greeter) as Arc<dyn Agent>),
    ///     "/echo" => Ok(Arc::new(echo) as Arc<dyn Agent>),
    ///     path => {
    ///         let message = format!("there is no agent at {path}");
    ///         Err(Refusal::new(StatusCode::NOT_FOUND, "UNKNOWN_AGENT", message))
    ///     }
    /// });
    /// ```
    ///
    /// A closure that panics refuses with 500 and
    /// [`INTERNAL_ERROR`](crate::codes::INTERNAL_ERROR).
    #[must_use]
    pub fn choosing<F, Fut, A>(choose: F) -> Self
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<A, Refusal>> + Send + 'static,
        A: Agent,
    {
        Self::with(Access::choosing(choose))
    }

    fn with(access: Access) -> Self {
        let (keep_alive, body_limit) = (Some(Self::KEEP_ALIVE), Self::BODY_LIMIT);
        Self {
            access,
            keep_alive,
            body_limit,
            cancel: CancellationToken::new(),
            #[cfg(feature = "ws")]
            websocket: None,
        }
    }

    /// Lets in only those whom `authorize` lets in, from a request's head; runs and capabilities
    /// alike. What it gives, such as a user, is put among the head's extensions, where
    /// [`choosing`](Self::choosing) finds it by its type, and the agent in what surrounds its run. Without this everyone is let in.
    ///
    /// A closure that refuses says how: [`Refusal::unauthorized`] for 401 with a challenge,
    /// [`Refusal::forbidden`] for 403. One that panics refuses with 500 and
    /// [`INTERNAL_ERROR`](crate::codes::INTERNAL_ERROR). [`bearer_secret`](crate::bearer_secret) is
    /// one for a shared secret. Where it is given twice the last one counts.
    #[must_use]
    pub fn authorize<F, Fut, P>(mut self, authorize: F) -> Self
    where
        F: Fn(Arc<Parts>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<P, Refusal>> + Send + 'static,
        P: Clone + Send + Sync + 'static,
    {
        self.access.guard(authorize);
        self
    }

    /// Lets only those runs begin that `permit` allows, and only those see the capabilities: it is
    /// asked once a request's input was read and judged, with the head as
    /// [`authorize`](Self::authorize) left it, and for each WebSocket once its input came. Without
    /// this whoever is let in may do both.
    ///
    /// ```
    /// # async fn greeter(run: agui_agent::Run) -> agui_agent::AgentResult { Ok(()) }
    /// use agui_server::{AgentService, Asked, Refusal};
    ///
    /// let service = AgentService::new(greeter).permit(|_, asked| {
    ///     let short = match asked {
    ///         Asked::Run(input) => input.messages.len() <= 100,
    ///         _ => true,
    ///     };
    ///     async move { if short { Ok(()) } else { Err(Refusal::forbidden()) } }
    /// });
    /// ```
    ///
    /// A closure that panics refuses with 500 and
    /// [`INTERNAL_ERROR`](crate::codes::INTERNAL_ERROR). Where it is given twice the last one counts.
    #[must_use]
    pub fn permit<F, Fut>(mut self, permit: F) -> Self
    where
        F: Fn(Arc<Parts>, Asked<'_>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), Refusal>> + Send + 'static,
    {
        self.access.restrict(permit);
        self
    }

    /// Sends a comment whenever nothing was sent for this long (T-17), so that nothing on the way
    /// takes the connection for dead. Default: 15 seconds. `None` or zero: never. The binary form has
    /// no comments.
    #[must_use]
    pub fn keep_alive(mut self, silence: impl Into<Option<Duration>>) -> Self {
        self.keep_alive = silence.into().filter(|silence| !silence.is_zero());
        self
    }

    /// Refuses request bodies of more bytes than this. Default: 10 MiB.
    ///
    /// A body is held whole, and so is the input read from it. While it is judged, a body of nothing
    /// but tiny things the protocol does not describe takes up to forty times its size in memory, an
    /// ordinary one about three times.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// Cancels the runs with this token, such as when the server is to stop: those that are going on
    /// end with the outcome `cancelled` (P-11), those that begin later do so at once. Default: nothing
    /// cancels them.
    ///
    /// An agent that takes no notice for [`PATIENCE`](Self::PATIENCE) is dropped, and its run ends
    /// the same; where it had not begun, with `RUN_ERROR` and [`CANCELLED`](crate::codes::CANCELLED).
    #[must_use]
    pub fn cancel_with(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Serves runs over WebSockets as well: a `GET` that asks for one opens it, the first text
    /// message is the `RunAgentInput`, then each event is one text message, and a close frame ends
    /// it. The capabilities say so. Default: `GET` is refused.
    ///
    /// `origins` says from its `Origin` whether a page may open one. Browsers let any page try, and
    /// say which it is; what sends none is no page, and is let in. [`authorize`](Self::authorize) is asked as
    /// well; browsers cannot add headers here, so that it has to know them by a cookie or the query.
    ///
    /// The connection needs a server that upgrades, such as `Server` and `axum::serve`. It is held in
    /// a task of its own. An input is at most [`body_limit`](Self::body_limit) bytes and waited for
    /// ten seconds; pings take the place of keep-alive comments. A client that closes ends its run,
    /// and so does one that says anything more (P-15).
    ///
    /// | close code | when |
    /// | --- | --- |
    /// | 1000 | the run has ended, however |
    /// | 1001 | the server stops, and no run has begun |
    /// | 1003 | the input came as a binary message |
    /// | 1007 | the input is refused: the reason begins with one of the [`codes`](crate::codes) |
    /// | 1008 | the input did not come, something came after it, or the run is not [permitted](Self::permit) |
    /// | 1009 | the input is too large |
    #[cfg(feature = "ws")]
    #[must_use]
    pub fn websocket(
        mut self,
        origins: impl Fn(&HeaderValue) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.websocket = Some(Arc::new(origins));
        self
    }

    /// The service that answers `GET` with the agent's capabilities.
    #[must_use]
    pub fn capabilities(&self) -> CapabilitiesService {
        let access = self.access.clone();
        #[cfg(feature = "ws")]
        let websocket = self.websocket.is_some();
        #[cfg(not(feature = "ws"))]
        let websocket = false;
        CapabilitiesService { access, websocket }
    }

    /// What surrounds a run. What was found out about the request before, such as who asks, goes with
    /// it.
    fn context(&self, head: &Parts) -> RunContext {
        let mut context = RunContext::new().with_cancel(self.cancel.child_token());
        context.extensions = head.extensions.clone();
        context.extensions.insert(RequestHeaders(head.headers.clone()));
        context
    }

    async fn answer<B>(self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        #[cfg(feature = "ws")]
        if let Some(origins) = self.websocket.as_ref().filter(|_| ws::asked_for(&head)) {
            let opened = async {
                let (head, agent) = self.access.admit(head).await?;
                let (context, keep_alive) = (self.context(&head), self.keep_alive);
                let (limit, access) = (self.body_limit, self.access.clone());
                let asking = Arc::clone(&head);
                let conversation =
                    ws::Conversation { access, asking, agent, context, keep_alive, limit };
                ws::open(head, origins, conversation).await
            };
            return opened.await.unwrap_or_else(Refusal::into_response);
        }
        let mut body = Box::pin(body);
        let waits = head.headers.contains_key(EXPECT);
        let admitted = async {
            let (head, agent) = self.access.admit(head).await.map_err(Refusal::unread)?;
            let input = input::read(&head, body.as_mut(), self.body_limit).await?;
            self.access.permit(&head, Asked::Run(&input)).await?;
            Ok((head, agent, input))
        };
        let (head, agent, input) = match admitted.await {
            Ok(admitted) => admitted,
            // Who waits to be told to go on sends nothing once refused.
            Err(refusal) if waits => return Refusal::into_response(refusal),
            Err(refusal) => return refusal.answer(body),
        };
        let form = form(&head.headers);
        let mut response = stream_run(&*agent, input, self.context(&head), form, self.keep_alive);
        response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
        response
    }
}

/// Starts a run for an input that was read and judged elsewhere, and answers with its events in this
/// form, behind the rules like those of an [`AgentService`]; with a comment after this much silence
/// where the form has comments.
#[must_use]
pub fn stream_run(
    agent: &dyn Agent,
    input: RunAgentInput,
    context: RunContext,
    form: WireForm,
    keep_alive: Option<Duration>,
) -> Response<ResponseBody> {
    let run = GuardedRun::start(agent, input, context);
    let mut response = Response::new(ResponseBody::run(run, form, keep_alive));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Some proxies hold a stream back unless told not to.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

impl<B> Service<Request<B>> for AgentService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// The form that the client asked for (T-24).
fn form(headers: &HeaderMap) -> WireForm {
    let lines = headers.get_all(ACCEPT).iter().filter_map(|line| line.to_str().ok());
    let accept: Vec<&str> = lines.collect();
    negotiate(Some(accept.join(",").as_str()))
}

impl fmt::Debug for AgentService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentService")
            .field("keep_alive", &self.keep_alive)
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}
