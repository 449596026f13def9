//! From a request to its answer.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use agui_agent::middleware::AgentHeaders;
use agui_agent::{BoxError, BoxFuture, RunContext};
use agui_journal::implement::Fold;
use agui_journal::{
    Cursor, Follower, JournalError, ReadLimit, StopOutcome, Tenant, ThreadKey, Until,
};
use agui_server::{Refusal, ResponseBody, caught, judge_input, stream_run};
use agui_types::json::read_string;
use agui_types::{JsonObject, RunAgentInput, RunId, ThreadId};
use agui_wire::WireForm;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, ORIGIN, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Body;
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use serde::Serialize;
use tower_service::Service;

use crate::agents::{Agents, Hosted};
use crate::answer::{self, Answer, Problem};
use crate::dialect::{Dialect, Spoken};
use crate::info::{Abilities, Info, ThreadEndpoints};
use crate::position::{From, Places, take_last_seen};
use crate::route::{Envelope, EnvelopeError, Found, names_a_method, resolve};
use crate::runtime::{NotBegun, Place, TooMany};
use crate::{
    Action, Operation, Principal, Runtime, Transport, codes, suggestions, threads, transcribe,
    viewer,
};

/// All routes of a [`Runtime`]. Takes any body, never fails, is always ready, cheap to clone.
///
/// Paths outside the base are answered with 404. `OPTIONS` is an ordinary method here: put a CORS
/// layer around it for front ends of another origin.
#[derive(Clone, Debug)]
pub struct RuntimeService(pub(crate) Runtime);

/// The most bytes of a thread's id and of a run's id in a run that is kept. Both come back with every
/// run and in every list of threads, and a path that names a thread is no longer than 64 KiB.
pub const LONGEST_ID: usize = 1024;

/// How long an answer to a stop waits for the end of the run.
const STOPPED_WITHIN: Duration = Duration::from_secs(1);

/// What a request says, ready to be answered.
struct Asked {
    operation: Operation,
    body: Bytes,
    /// The query of the path that names the operation.
    query: Option<String>,
    /// Whether it came in an envelope.
    enveloped: bool,
}

impl<B> Service<Request<B>> for RuntimeService
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
        Box::pin(async move {
            let answer = caught(service.answer(request)).await;
            Ok(answer.unwrap_or_else(|panic| {
                tracing::error!(panic, "answering a request panicked");
                answer::internal()
            }))
        })
    }
}

impl RuntimeService {
    async fn answer<B>(self, request: Request<B>) -> Answer
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let settings = &self.0.0.settings;
        let found = resolve(&head.method, head.uri.path(), &settings.base);
        let operation = match (found, settings.transport) {
            (Found::Nothing, _) => return answer::not_found(),
            (Found::Base, Transport::Both | Transport::Single) if head.method == Method::POST => {
                None
            }
            (Found::Base, Transport::Rest) if head.method == Method::POST => {
                return self.envelope_refused(body).await;
            }
            (Found::Base, Transport::Rest) => return answer::not_found(),
            // With any other status or a body that is JSON, a front end would take this for REST.
            (_, Transport::Single) | (Found::Base, _) => return answer::wrong_method("POST"),
            (Found::WrongMethod(allow), _) => return answer::wrong_method(allow),
            (Found::Operation(operation), _) => Some(operation),
        };
        let transcribes = operation == Some(Operation::Transcribe);
        if from_elsewhere(&head, transcribes) {
            return foreign();
        }
        let principal = match settings.authorize.authenticate(&head).await {
            Ok(principal) => principal,
            Err(refusal) => return refused(&refusal),
        };
        let body = if transcribes && settings.transcriber.is_none() {
            // Nothing is done with it.
            Bytes::new()
        } else {
            match read(body, settings.body_limit).await {
                Ok(body) => body,
                Err(answer) if transcribes && answer.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                    return transcribe::too_large(settings.body_limit);
                }
                Err(answer) => return *answer,
            }
        };
        let asked = match operation {
            Some(operation) => {
                let query = head.uri.query().map(str::to_owned);
                Asked { operation, body, query, enveloped: false }
            }
            None => match open(&head, &body) {
                Ok(envelope) => envelope,
                Err(answer) => return *answer,
            },
        };
        self.perform(&head, &principal, asked).await
    }

    async fn perform(&self, head: &Parts, principal: &Principal, asked: Asked) -> Answer {
        let Asked { operation, mut body, query, enveloped } = asked;
        let settings = &self.0.0.settings;
        let agents = match settings.agents.agents(head, principal).await {
            Ok(agents) => agents,
            Err(refusal) => return refused(&refusal),
        };
        // Who asks for an agent that is not there learns so, whatever else is wrong.
        let hosted = match operation.agent().map(|id| agents.get(id).ok_or(id)) {
            None => None,
            Some(Ok(hosted)) => Some(hosted),
            Some(Err(id)) => return answer::unknown_agent(id),
        };
        let mut last_seen = None;
        if let Operation::Connect { .. } = operation {
            (body, last_seen) = take_last_seen(body);
        }
        let input = match operation {
            Operation::Run { .. } | Operation::Connect { .. } | Operation::Suggest { .. } => {
                match judge_input(&body) {
                    Ok(input) => Some(input),
                    Err(refusal) => {
                        return Problem::new("Invalid request body")
                            .details(&refusal.to_string())
                            .with(StatusCode::BAD_REQUEST);
                    }
                }
            }
            _ => None,
        };
        let operation = match (operation, &input) {
            (Operation::Run { agent }, Some(input)) if suggestions::wanted(input) => {
                Operation::Suggest { agent }
            }
            (operation, _) => operation,
        };
        let thread = match &input {
            Some(input) if !matches!(operation, Operation::Suggest { .. }) => {
                Some(input.thread_id.as_str())
            }
            _ => operation.thread(),
        };
        let action = Action { operation: &operation, thread };
        if let Err(refusal) = settings.authorize.authorize(principal, action).await {
            return refused(&refusal);
        }
        let key =
            |thread: &str| ThreadKey::new(Tenant::new(&*principal.tenant), ThreadId::from(thread));
        let journal = &settings.journal;
        match (&operation, hosted, input) {
            (Operation::Info, ..) => self.info(&agents, enveloped).await,
            (Operation::Run { agent }, Some(hosted), Some(input)) => {
                self.run(head, principal, agent, hosted, input).await
            }
            (Operation::Connect { .. }, _, Some(input)) => {
                let key = key(input.thread_id.as_str());
                self.connect(head, key, &input, last_seen.as_deref()).await
            }
            (Operation::Suggest { .. }, Some(hosted), Some(input)) => {
                self.suggest(head, hosted, input)
            }
            (Operation::Stop { thread, .. }, ..) => self.stop(&key(thread), &body).await,
            (Operation::Transcribe, ..) => {
                transcribe::answer(settings.transcriber.as_deref(), &head.headers, body, enveloped)
                    .await
            }
            (Operation::ListThreads, ..) => {
                threads::list(&**journal, &principal.tenant, query.as_deref()).await
            }
            (Operation::ClearThreads, ..) => threads::clear(&**journal, &principal.tenant).await,
            (Operation::UpdateThread { thread }, ..) => {
                threads::update(&**journal, &key(thread), &body).await
            }
            (Operation::DeleteThread { thread }, ..) => {
                threads::delete(&**journal, &key(thread)).await
            }
            (Operation::ArchiveThread { thread }, ..) => {
                threads::archive(&**journal, &key(thread)).await
            }
            (Operation::ThreadMessages { thread }, ..) => {
                threads::messages(&**journal, &key(thread)).await
            }
            (Operation::ThreadEvents { thread }, ..) => threads::events(journal, key(thread)).await,
            (Operation::ThreadState { thread }, ..) => {
                threads::state(&**journal, &key(thread)).await
            }
            (Operation::InspectorMetadata, ..) => {
                answer::uncached(answer::empty(StatusCode::NO_CONTENT))
            }
            (Operation::DebugEvents, ..) => self.debug_events(head, principal),
            (Operation::SubscribeThreads | Operation::Annotate, ..) => {
                let message = "this is a feature of the vendor's service, which this is not";
                Problem::new("Not supported")
                    .message(message)
                    .with(StatusCode::UNPROCESSABLE_ENTITY)
            }
            _ => answer::internal(),
        }
    }

    async fn info(&self, agents: &Agents, enveloped: bool) -> Answer {
        let abilities = Abilities {
            transcribes: self.0.0.settings.transcriber.is_some(),
            single_route: enveloped,
            threads: ThreadEndpoints::ALL,
        };
        let info = Info::gather(agents, abilities).await;
        let mut answer = answer::json(StatusCode::OK, &info);
        answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        answer
    }

    async fn run(
        &self,
        head: &Parts,
        principal: &Principal,
        agent: &str,
        hosted: &Hosted,
        mut input: RunAgentInput,
    ) -> Answer {
        // A front end's handler for every call it knows nothing of; no tool that a model may call.
        if let Some(tools) = &mut input.tools {
            tools.retain(|tool| tool.name != "*");
        }
        let ids = [("/threadId", input.thread_id.as_str()), ("/runId", input.run_id.as_str())];
        if let Some((member, _)) = ids.into_iter().find(|(_, id)| id.len() > LONGEST_ID) {
            return Problem::new("Invalid request body")
                .details(&format!("{member}: longer than {LONGEST_ID} bytes"))
                .with(StatusCode::BAD_REQUEST);
        }
        let dialect = Dialect::of(&input);
        let place = match self.0.place(None) {
            Ok(place) => place,
            Err(too_many) => return too_many_viewers(too_many),
        };
        let begun = match self.0.start(principal, agent, hosted, input, &head.headers).await {
            Ok(begun) => begun,
            Err(NotBegun::Full(too_many)) => return too_many_runs(too_many),
            Err(NotBegun::Journal(error)) => return failed(&error),
        };
        let journal = Arc::clone(self.0.journal());
        let thread = begun.lease.thread();
        let follower = Follower::new(journal, thread.clone(), begun.from, Until::Terminal);
        let unended = self.0.unended(thread);
        self.stream(head, viewer::frames(thread, follower, dialect, unended), place)
    }

    async fn connect(
        &self,
        head: &Parts,
        thread: ThreadKey,
        input: &RunAgentInput,
        last_seen: Option<&str>,
    ) -> Answer {
        let dialect = Dialect::of(input);
        let place = match self.0.place(Some(&thread)) {
            Ok(place) => place,
            Err(too_many) => return too_many_viewers(too_many),
        };
        let journal = Arc::clone(self.0.journal());
        let from = match Places::of(&thread).asked(&head.headers, last_seen) {
            From::Start => Cursor::START,
            From::Behind(cursor) => cursor,
            From::Nowhere => return self.restate(head, thread, input, place).await,
        };
        // What is read here is what the viewer is shown first.
        match journal.read(&thread, from, ReadLimit::default()).await {
            Ok(page) => {
                let follower = Follower::new(journal, thread.clone(), from, Until::Idle);
                let follower = follower.beginning_with(page);
                let unended = self.0.unended(&thread);
                self.stream(head, viewer::frames(&thread, follower, dialect, unended), place)
            }
            Err(JournalError::PositionUnknown { .. }) => {
                self.restate(head, thread, input, place).await
            }
            // A thread that nobody has run on has no history, which is no failure.
            Err(JournalError::ThreadNotFound) if from == Cursor::START => {
                self.stream(head, futures_util::stream::empty(), place)
            }
            // Who has been somewhere in it is told that nothing is left.
            Err(JournalError::ThreadNotFound) => self.restate(head, thread, input, place).await,
            Err(error) => failed(&error),
        }
    }

    /// The thread as it is now, for a viewer whose place the log does not have (any more).
    async fn restate(
        &self,
        head: &Parts,
        thread: ThreadKey,
        input: &RunAgentInput,
        place: Place,
    ) -> Answer {
        let id = thread.thread.as_str();
        tracing::warn!(thread = id, "a viewer's position is unknown: it gets a snapshot");
        let journal = Arc::clone(self.0.journal());
        let snapshot = match journal.snapshot(&thread).await {
            Ok(snapshot) => snapshot,
            // Nothing is left of it.
            Err(JournalError::ThreadNotFound) => Fold::new().snapshot(0, None),
            Err(error) => return failed(&error),
        };
        let dialect = Dialect::of(input);
        let unended = self.0.unended(&thread);
        let run = &input.run_id;
        let frames = viewer::from_snapshot(journal, thread, snapshot, run, dialect, unended);
        self.stream(head, frames, place)
    }

    /// A run that nothing is kept of: its viewer is all there is.
    fn suggest(&self, head: &Parts, hosted: &Hosted, input: RunAgentInput) -> Answer {
        let dialect = Dialect::of(&input);
        let settings = &self.0.0.settings;
        let headers = AgentHeaders(settings.headers_for(hosted).choose(&head.headers));
        let context = RunContext::new().with_extension(headers);
        let agent = Spoken::new(Arc::clone(hosted.agent()), dialect);
        let answer = stream_run(&agent, input, context, WireForm::Sse, settings.keep_alive);
        streaming(head, answer)
    }

    async fn stop(&self, thread: &ThreadKey, body: &[u8]) -> Answer {
        #[derive(Serialize)]
        struct Stopped<'a> {
            stopped: bool,
            #[serde(skip_serializing_if = "Option::is_none")]
            interrupt: Option<Interrupt<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            message: Option<&'a str>,
        }
        #[derive(Serialize)]
        struct Interrupt<'a> {
            r#type: &'a str,
            message: &'a str,
            code: &'a str,
        }
        let run = match named_run(body) {
            Ok(run) => run,
            Err(message) => {
                return Problem::new("Invalid request body")
                    .details(message)
                    .with(StatusCode::BAD_REQUEST);
            }
        };
        let outcome = self.0.journal().request_stop(thread, run.as_ref()).await;
        if let Ok(StopOutcome::Requested | StopOutcome::AlreadyRequested) = outcome {
            // Whoever is told that it is stopped can go on at once.
            let _ = tokio::time::timeout(STOPPED_WITHIN, self.0.gone(thread)).await;
        }
        let not = |message| Stopped { stopped: false, interrupt: None, message: Some(message) };
        let stopped = match outcome {
            Ok(StopOutcome::Requested) => Stopped {
                stopped: true,
                interrupt: Some(Interrupt {
                    r#type: "RUN_ERROR",
                    message: "the run was stopped",
                    code: codes::STOPPED,
                }),
                message: None,
            },
            Ok(StopOutcome::AlreadyRequested) => not("the run is stopping already"),
            Ok(_) | Err(JournalError::ThreadNotFound) => not("no such run is going on"),
            Err(error) => {
                tracing::error!(%error, "a run cannot be stopped");
                return Problem::new("Failed to stop agent")
                    .message("the run log does not answer")
                    .with(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        answer::json(StatusCode::OK, &stopped)
    }

    fn debug_events(&self, head: &Parts, principal: &Principal) -> Answer {
        if !self.0.0.settings.debug {
            return answer::not_found();
        }
        match self.0.place(None) {
            Ok(place) => {
                let frames = self.0.0.debug.watch(Tenant::new(&*principal.tenant));
                self.stream(head, frames, place)
            }
            Err(too_many) => too_many_viewers(too_many),
        }
    }

    /// Frames as they come, for as long as the viewer stays.
    fn stream(
        &self,
        head: &Parts,
        frames: impl Stream<Item = Bytes> + Send + 'static,
        place: Place,
    ) -> Answer {
        let frames = Held { frames: Box::pin(frames), _place: place };
        let body = ResponseBody::frames(frames, self.0.0.settings.keep_alive);
        streaming(head, Response::new(body))
    }

    /// A front end that speaks in envelopes, to a mount that takes paths only.
    async fn envelope_refused<B>(&self, body: B) -> Answer
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let body = match read(body, self.0.0.settings.body_limit).await {
            Ok(body) => body,
            Err(answer) => return *answer,
        };
        if !std::str::from_utf8(&body).is_ok_and(names_a_method) {
            return answer::not_found();
        }
        let message = "this runtime is reached by paths, such as GET …/info; an envelope was posted. \
                       Switch the front end to REST (useSingleEndpoint={false}), or the runtime to \
                       both";
        tracing::warn!("an envelope was posted to a mount that is reached by paths only");
        Problem::new("Not found")
            .code("single_route_envelope_against_multi_route_runtime")
            .message(message)
            .with(StatusCode::NOT_FOUND)
    }
}

/// Frames, and the place among the viewers that they take.
struct Held<S> {
    frames: Pin<Box<S>>,
    _place: Place,
}

impl<S: Stream> Stream for Held<S> {
    type Item = S::Item;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.frames.as_mut().poll_next(cx)
    }
}

/// The headers of a stream of events.
fn streaming(head: &Parts, mut answer: Answer) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // Some proxies hold a stream back unless told not to.
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    if head.version < Version::HTTP_2 {
        headers.insert(CONNECTION, HeaderValue::from_static("keep-alive"));
    }
    answer
}

async fn read<B>(body: B, limit: usize) -> Result<Bytes, Box<Answer>>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let body: Result<Collected<B::Data>, BoxError> =
        Limited::new(Box::pin(body), limit).collect().await;
    match body {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => {
            let details = format!("the body is larger than {limit} bytes");
            Err(Box::new(
                Problem::new("Request body too large")
                    .details(&details)
                    .with(StatusCode::PAYLOAD_TOO_LARGE),
            ))
        }
        Err(_) => Err(Box::new(
            Problem::new("Invalid request body")
                .details("the body broke off")
                .with(StatusCode::BAD_REQUEST),
        )),
    }
}

fn open(head: &Parts, body: &[u8]) -> Result<Asked, Box<Answer>> {
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.unwrap_or_default().to_ascii_lowercase().contains("application/json") {
        let message = "an envelope is sent with Content-Type: application/json";
        return Err(Box::new(envelope_problem(message, StatusCode::UNSUPPORTED_MEDIA_TYPE)));
    }
    let Ok(text) = std::str::from_utf8(body) else {
        return Err(Box::new(envelope_problem("the body is not UTF-8", StatusCode::BAD_REQUEST)));
    };
    match Envelope::open(text) {
        Ok(Envelope { operation, body, query }) => {
            Ok(Asked { operation, body: body.into(), query, enveloped: true })
        }
        Err(error) => Err(Box::new(match error {
            EnvelopeError::NotFound => answer::not_found(),
            EnvelopeError::WrongMethod(allow) => answer::wrong_method(allow),
            error => envelope_problem(&error.to_string(), StatusCode::BAD_REQUEST),
        })),
    }
}

fn envelope_problem(message: &str, status: StatusCode) -> Answer {
    Problem::new("invalid_request").message(message).with(status)
}

/// Whether a page of another site may have sent this without a browser asking first: it carries an
/// origin that is not this server's, and a body that any form could send. What is asked for first
/// has passed the CORS layer. Audio comes in a form, which `takes_forms` says; it changes nothing
/// here.
fn from_elsewhere(head: &Parts, takes_forms: bool) -> bool {
    if head.method != Method::POST {
        return false;
    }
    let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
    let Some(origin) = text(ORIGIN) else { return false };
    let content_type = text(CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let simple = match essence {
        "" | "text/plain" | "application/x-www-form-urlencoded" => true,
        "multipart/form-data" => !takes_forms,
        _ => false,
    };
    let host = text(http::header::HOST).unwrap_or_default();
    let same = origin.split_once("://").is_some_and(|(_, authority)| authority == host);
    simple && !same
}

fn foreign() -> Answer {
    let message = "a page of another origin sends JSON as Content-Type: application/json";
    Problem::new("Unsupported media type").message(message).with(StatusCode::UNSUPPORTED_MEDIA_TYPE)
}

/// The run that a request to stop names, if it does.
fn named_run(body: &[u8]) -> Result<Option<RunId>, &'static str> {
    let Ok(text) = std::str::from_utf8(body) else { return Ok(None) };
    let Ok(object) = JsonObject::parse(text) else { return Ok(None) };
    match object.get("runId").map(read_string) {
        None => Ok(None),
        Some(Some(run)) if !run.trim().is_empty() => Ok(Some(RunId::from(&*run))),
        Some(_) => Err("\"runId\" is no string, or blank; leave it out to stop any run"),
    }
}

/// The journal does not do what a run or a viewer needs.
pub(crate) fn failed(error: &JournalError) -> Answer {
    match error {
        JournalError::ThreadBusy { run } => {
            let message = format!(
                "the thread is busy with the run {:?}; wait for its end, or stop it",
                run.as_str()
            );
            Problem::new("Thread busy")
                .code(codes::THREAD_BUSY)
                .message(&message)
                .with(StatusCode::CONFLICT)
        }
        JournalError::Full { .. } | JournalError::Contended { .. } | JournalError::Closed => {
            tracing::error!(%error, "the journal takes nothing");
            Problem::new("Failed to run agent")
                .message("the run log takes nothing at the moment")
                .with(StatusCode::SERVICE_UNAVAILABLE)
        }
        error => {
            tracing::error!(%error, "the journal failed");
            Problem::new("Failed to run agent")
                .message("the run log failed")
                .with(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

fn too_many_runs(too_many: TooMany) -> Answer {
    let message = match too_many {
        TooMany::OfAll => "as many runs are going on as may; try again when one has ended",
        TooMany::OfOne => "as many of your runs are going on as may; wait for one, or stop it",
    };
    refuse_more(too_many, codes::TOO_MANY_RUNS, message)
}

fn too_many_viewers(too_many: TooMany) -> Answer {
    let message = match too_many {
        TooMany::OfAll => "as many are watching as may; try again when one has left",
        TooMany::OfOne => "as many are watching this thread as may; close a page that does",
    };
    refuse_more(too_many, codes::TOO_MANY_VIEWERS, message)
}

fn refuse_more(too_many: TooMany, code: &str, message: &str) -> Answer {
    let status = match too_many {
        TooMany::OfAll => StatusCode::SERVICE_UNAVAILABLE,
        TooMany::OfOne => StatusCode::TOO_MANY_REQUESTS,
    };
    tracing::warn!(code, "{message}");
    Problem::new("Too many").code(code).message(message).with(status)
}

/// A refusal in the words that front ends of this runtime read.
fn refused(refusal: &Refusal) -> Answer {
    let message = refusal.to_string();
    let mut answer = Problem::new(refusal.code()).message(&message).with(refusal.status());
    let headers = answer.headers_mut();
    headers.extend(refusal.headers().cloned().unwrap_or_default());
    if refusal.status() == StatusCode::UNAUTHORIZED {
        headers.entry(WWW_AUTHENTICATE).or_insert(HeaderValue::from_static("Bearer"));
    }
    answer
}
