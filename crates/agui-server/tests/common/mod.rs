//! What the tests of the service share: agents that emit anything, requests, answers, a log.
#![allow(dead_code, unreachable_pub)]

pub mod client;

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

use agui_agent::{Agent, AgentError, EventStream, RunContext};
use agui_server::ResponseBody;
use agui_types::event::{Custom, RunFinished, RunStarted, TextMessageContent, TextMessageStart};
use agui_types::{Event, FromJson, Json, Reading, RunAgentInput};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

/// An input with nothing in it.
pub const INPUT: &str = r#"{"threadId":"t","runId":"r","messages":[]}"#;

/// An agent made of a function from the input to any stream of events.
pub fn raw<F>(run: F) -> impl Agent
where
    F: Fn(RunAgentInput) -> EventStream + Send + Sync + 'static,
{
    Raw(run)
}

struct Raw<F>(F);

impl<F> Agent for Raw<F>
where
    F: Fn(RunAgentInput) -> EventStream + Send + Sync + 'static,
{
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        (self.0)(input)
    }
}

/// What an agent's stream yields.
pub type Item = Result<Reading<Event>, AgentError>;

/// An agent that emits these events and stops.
pub fn emits(events: Vec<Event>) -> impl Agent {
    raw(move |_| {
        let items: Vec<Item> = events.iter().cloned().map(|event| Ok(event.into())).collect();
        Box::pin(futures_util::stream::iter(items))
    })
}

pub fn started() -> Event {
    RunStarted::new("t", "r").into()
}

pub fn finished() -> Event {
    RunFinished::new("t", "r").into()
}

pub fn text_start(id: &str) -> Event {
    TextMessageStart::new(id).into()
}

pub fn text(id: &str, delta: &str) -> Event {
    TextMessageContent::new(id, delta).into()
}

pub fn custom(name: &str) -> Event {
    Custom::new(name, Json::parse("1").unwrap()).into()
}

/// An event as a peer sent it.
pub fn sent(json: &str) -> Reading<Event> {
    Event::from_json_tolerant(json).unwrap()
}

pub fn post(body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post("/").header("content-type", "application/json");
    request.body(Full::new(body.into())).unwrap()
}

pub async fn body_text(response: Response<ResponseBody>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The events of a body: every frame is one `data` line, and nothing else is there.
pub fn events(body: &str) -> Vec<Value> {
    let mut rest = body;
    let mut events = Vec::new();
    while let Some((frame, after)) = rest.split_once("\n\n") {
        let data = frame.strip_prefix("data: ").unwrap_or_else(|| panic!("{frame}"));
        assert!(!data.contains(['\n', '\r']), "one line: {data}");
        events.push(serde_json::from_str(data).unwrap());
        rest = after;
    }
    assert_eq!(rest, "", "the last frame is complete");
    events
}

/// The types of the events of a body.
pub fn types(body: &str) -> Vec<String> {
    events(body).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// What this thread logs until it is dropped.
pub struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Log {
    pub fn capture() -> Self {
        // While there is one subscriber, a line that another thread is the first to come by is judged
        // by the subscriber of that thread, which may be none, and is off for all from then on. A
        // second one, that wants everything, keeps every line open.
        static SECOND: OnceLock<tracing::Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| tracing::Dispatch::new(tracing_subscriber::registry()));
        let text = Arc::new(Mutex::new(Vec::new()));
        let writer = Writer(Arc::clone(&text));
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::TRACE)
            .with_writer(move || writer.clone())
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.text.lock().unwrap().clone()).unwrap()
    }
}

#[derive(Clone)]
struct Writer(Arc<Mutex<Vec<u8>>>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
