//! A runtime with agents for tests, and requests to it.
#![allow(dead_code, clippy::needless_pass_by_value)]

use std::sync::Arc;

use agui_agent::{Agent, AgentResult, EventStream, Run, RunContext};
use agui_journal::{
    Cursor, Entry, Journal, MemoryJournal, ReadLimit, SqliteJournal, Tenant, ThreadKey,
};
use agui_runtime::{AgentSource, Agents, Runtime, RuntimeBuilder, SingleUser};
use agui_server::ResponseBody;
use agui_stream::Verifier;
use agui_types::{Event, FromJson, Reading, RunAgentInput};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::ServiceExt;

#[path = "../../../agui-journal/tests/folder/mod.rs"]
mod folder;
pub(crate) use folder::Folder;

pub(crate) const BASE: &str = "/api/copilotkit";

/// Says what the last message says.
async fn echo(run: Run) -> AgentResult {
    let last = run.input().messages.last().map(|message| serde_json::to_value(message).unwrap());
    let said = last.and_then(|last| Some(last["content"].as_str()?.to_owned()));
    run.say(&format!("You said: {}", said.unwrap_or_default())).await?;
    Ok(())
}

async fn failing(run: Run) -> AgentResult {
    run.say("So far").await?;
    Err("it broke".into())
}

/// A runtime whose agents are `default` (echoes), `failing`, `panicking`, and `waiting`, which says
/// a word and goes on once it is told to.
pub(crate) fn agents(go: &Arc<Notify>) -> Agents {
    let mut agents = Agents::new();
    agents.add("default", echo).unwrap().describe("Echoes");
    agents.add("failing", failing).unwrap();
    agents
        .add("panicking", |run: Run| async move {
            run.say("So far").await?;
            if run.input().messages.len() < 100 {
                panic!("on purpose");
            }
            Ok(())
        })
        .unwrap();
    let go = Arc::clone(go);
    agents
        .add("waiting", move |run: Run| {
            let go = Arc::clone(&go);
            async move {
                let mut text = run.text().await?;
                text.push("One").await?;
                go.notified().await;
                text.push(", two").await?;
                Ok(())
            }
        })
        .unwrap();
    // Takes no notice of being cancelled.
    agents
        .add("deaf", |run: Run| async move {
            let mut call = run.tool_call("search").await?;
            call.args("{").await?;
            std::future::pending::<()>().await;
            Ok(())
        })
        .unwrap();
    agents
}

/// An agent that sends these events one after the other and nothing of its own; `$thread` and `$run`
/// are those of the input. Its stream ends with them, or never where `hangs`.
pub(crate) struct Scripted {
    events: Vec<Value>,
    hangs: bool,
}

impl Scripted {
    pub(crate) fn new(events: Value) -> Self {
        let Value::Array(events) = events else { panic!("{events}") };
        Self { events, hangs: false }
    }

    pub(crate) fn hanging(events: Value) -> Self {
        Self { hangs: true, ..Self::new(events) }
    }
}

impl Agent for Scripted {
    fn run(&self, input: RunAgentInput, _: RunContext) -> EventStream {
        let own = |text: String| {
            let text = text.replace("$thread", input.thread_id.as_str());
            text.replace("$run", input.run_id.as_str())
        };
        let events: Vec<_> = self
            .events
            .iter()
            .map(|event| Event::from_json_exact(&own(event.to_string())).unwrap())
            .map(|event| Ok(Reading::from(event)))
            .collect();
        let events = futures_util::stream::iter(events);
        if self.hangs {
            Box::pin(events.chain(futures_util::stream::pending()))
        } else {
            Box::pin(events)
        }
    }
}

pub(crate) struct Fixture {
    pub(crate) runtime: Runtime,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) go: Arc<Notify>,
}

pub(crate) fn fixture() -> Fixture {
    fixture_with(|builder| builder)
}

pub(crate) fn fixture_with(set: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder) -> Fixture {
    let go = Arc::new(Notify::new());
    fixture_of(agents(&go), go, set)
}

/// A runtime with this agent alone, which is called `default`.
pub(crate) fn fixture_of_one(agent: impl Agent) -> Fixture {
    let mut agents = Agents::new();
    agents.add("default", agent).unwrap();
    fixture_of(agents, Arc::new(Notify::new()), |builder| builder)
}

pub(crate) fn fixture_of(
    agents: impl AgentSource,
    go: Arc<Notify>,
    set: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
) -> Fixture {
    Fixture { go, ..fixture_on(agents, Arc::new(MemoryJournal::new()), set) }
}

/// A runtime with agents and a journal of the test's own.
pub(crate) fn fixture_on(
    agents: impl AgentSource,
    journal: Arc<dyn Journal>,
    set: impl FnOnce(RuntimeBuilder) -> RuntimeBuilder,
) -> Fixture {
    let builder = Runtime::builder(agents, Arc::clone(&journal)).authorize(SingleUser);
    Fixture { runtime: set(builder).build(), journal, go: Arc::new(Notify::new()) }
}

/// The two journals there are, each with what has to live as long as it.
pub(crate) async fn journals() -> Vec<(Arc<dyn Journal>, Option<Folder>)> {
    let folder = Folder::new();
    let file = SqliteJournal::open(folder.file()).await.unwrap();
    vec![(Arc::new(MemoryJournal::new()), None), (Arc::new(file), Some(folder))]
}

/// The whole log of a thread of the tenant without a name, which keeps the rules.
pub(crate) async fn log(journal: &Arc<dyn Journal>, thread: &str) -> Vec<Entry> {
    let key = ThreadKey::new(Tenant::default(), thread);
    let limit = ReadLimit { events: usize::MAX, bytes: usize::MAX };
    let page = journal.read(&key, Cursor::START, limit).await.unwrap();
    let mut verifier = Verifier::new();
    for entry in &page.entries {
        verifier.push(&Event::from_json_exact(entry.text()).unwrap()).unwrap();
    }
    if page.running.is_none() {
        verifier.finish().unwrap();
    }
    page.entries
}

/// An answer, read to its end.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The events of a stream, each with the position that its frame has.
    pub(crate) fn events(&self) -> Vec<(Option<u64>, Value)> {
        let frames = self.body.split("\n\n").filter(|frame| frame.contains("data: "));
        frames
            .map(|frame| {
                let line = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
                // The position, and behind a dash the mark of the thread.
                let id = line("id: ").map(|id| id.split('-').next().unwrap().parse().unwrap());
                (id, serde_json::from_str(line("data: ").unwrap()).unwrap())
            })
            .collect()
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.events().into_iter().map(|(_, event)| event["type"].as_str().unwrap().into()).collect()
    }
}

pub(crate) async fn open(
    fixture: &Fixture,
    request: Request<Full<Bytes>>,
) -> Response<ResponseBody> {
    fixture.runtime.service().oneshot(request).await.unwrap()
}

pub(crate) async fn ask(fixture: &Fixture, request: Request<Full<Bytes>>) -> Answer {
    read(open(fixture, request).await).await
}

/// The response with everything up to the frame that holds this text read, which is given too.
pub(crate) async fn read_until(
    mut response: Response<ResponseBody>,
    text: &str,
) -> (String, Response<ResponseBody>) {
    let mut read = String::new();
    while !read.contains(text) {
        let frame = response.body_mut().frame().await.expect(text).unwrap();
        read.push_str(std::str::from_utf8(frame.data_ref().unwrap()).unwrap());
    }
    (read, response)
}

pub(crate) async fn read(response: Response<ResponseBody>) -> Answer {
    let (head, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Answer { status: head.status, headers: head.headers, body }
}

/// A request below the base; without a body where `body` is null.
pub(crate) fn request(method: &str, path: &str, body: Value) -> Request<Full<Bytes>> {
    let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
    raw(method, path, body)
}

pub(crate) fn raw(method: &str, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("{BASE}{path}"))
        .header("content-type", "application/json")
        .body(Full::new(body.into()))
        .unwrap()
}

pub(crate) fn envelope(method: &str, params: Value, body: Value) -> Request<Full<Bytes>> {
    request("POST", "", json!({"method": method, "params": params, "body": body}))
}

/// A run of an agent on a thread, read to its end.
pub(crate) async fn run(fixture: &Fixture, agent: &str, input: Value) -> Answer {
    ask(fixture, request("POST", &format!("/agent/{agent}/run"), input)).await
}

/// What a page shows that is loaded with this thread.
pub(crate) async fn connect(fixture: &Fixture, thread: &str) -> Answer {
    let input = input(thread, "connecting", &[]);
    ask(fixture, request("POST", "/agent/default/connect", input)).await
}

pub(crate) async fn get(fixture: &Fixture, path: &str) -> Answer {
    ask(fixture, request("GET", path, Value::Null)).await
}

pub(crate) fn input(thread: &str, run: &str, messages: &[(&str, &str)]) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .map(|(id, content)| json!({"id": id, "role": "user", "content": content}))
        .collect();
    json!({"threadId": thread, "runId": run, "messages": messages, "tools": [], "context": []})
}
