//! The cases from public reports, each from the bytes to what an application sees: a server on a
//! socket, `HttpAgent` and `Session`. Every line of what a case expects is judged; one that is not
//! known here fails.
//!
//! The cases are read from `../cases` beside the folder that `AGUI_CORPUS` names.
#![cfg(all(feature = "http", feature = "session"))]

#[path = "../../agui-stream/tests/conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;
mod support;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write;
use std::sync::{Arc, Mutex};

use agui_agent::session::{Finished, Request, Session, SessionError, Update};
use agui_agent::{AgentError, DeliveryError, HttpAgent, WireForm};
use agui_stream::fold::Change;
use agui_stream::observe::{Mutation, Observer, Reaction, Scene};
use agui_stream::patch::{PatchLimits, diff};
use agui_stream::{Conversation, Ending};
use agui_types::json::Value as Tree;
use agui_types::{Event, FromJson, Message, ResumeEntry, ToJson};
use compare::{differences, lacking};
use corpus::Verdicts;
use serde_json::{Value, json};
use support::read_request;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// How many cases of each kind there are at least; more are welcome.
const AT_LEAST: [(&str, usize); 5] =
    [("sse", 4), ("proto", 1), ("events", 24), ("input", 2), ("http", 1)];

#[tokio::test]
async fn cases() {
    let Some(cases) = corpus::cases() else { return };
    let mut verdicts = Verdicts::new("cases-session");
    let mut counts = BTreeMap::new();
    for (name, case) in cases {
        let kind = case["kind"].as_str().unwrap().to_owned();
        let input = &case["input"];
        let found = match (&*kind, input["op"].as_str()) {
            ("sse" | "proto" | "events", None) | ("input", Some("send")) => stream(&case).await,
            ("http", None) if input["client"] == true => stream(&case).await,
            // Compacting is proved where it is done, the judging of inputs in the server, routing and
            // forwarding in the runtime.
            ("events", Some("compact")) | ("input", Some("parse")) => continue,
            ("http", None) if input.get("mount").is_some() || input.get("agent").is_some() => {
                continue;
            }
            (kind, op) => vec![format!("nobody knows what {kind} {op:?} is")],
        };
        verdicts.note(&name, &found);
        *counts.entry(kind).or_insert(0) += 1;
    }
    verdicts.settle();
    for (kind, at_least) in AT_LEAST {
        assert!(counts[kind] >= at_least, "{kind}: {counts:?}");
    }
}

// --- from a server to a session ----------------------------------------------------------------------

/// What became of a case.
#[derive(Default)]
struct Played {
    /// What was sent; `None` where nothing was.
    request: Option<Value>,
    seen: Seen,
    warnings: String,
    /// How each run of the stream ended.
    run_outcomes: Vec<Ending>,
}

/// What an observer sees.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Sight>>);

#[derive(Default)]
struct Sight {
    delivered: Vec<Event>,
    /// The state when the event behind the first `STATE_DELTA` comes.
    after_delta: Option<Value>,
    /// The order in which a failure and the end are told.
    ends: Vec<&'static str>,
}

impl Observer for Seen {
    fn on_event(&mut self, event: &Event, scene: &Scene<'_>) -> Reaction {
        let mut sight = self.0.lock().unwrap();
        if let (Some(Event::StateDelta(_)), None) = (sight.delivered.last(), &sight.after_delta) {
            sight.after_delta = Some(state(scene.conversation()));
        }
        sight.delivered.push(event.clone());
        Ok(Mutation::new())
    }

    fn on_run_failed(&mut self, _: &(dyn Error + 'static), _: &Conversation) -> Reaction {
        self.0.lock().unwrap().ends.push("failed");
        Ok(Mutation::new())
    }

    fn on_run_finalized(&mut self, _: &Conversation) -> Reaction {
        self.0.lock().unwrap().ends.push("finalized");
        Ok(Mutation::new())
    }
}

/// Plays a case and gives what is not as expected.
async fn stream(case: &Value) -> Vec<String> {
    let input = &case["input"];
    let (thread, run) = ids(input);
    let proto = case["kind"] == "proto";
    // Only the first read comes until it was seen.
    let incremental = case["expect"].get("incremental").is_some();
    let (go_on, gone_on) = mpsc::channel(1);
    let (url, served) = serve(answer(case), chunks(input), incremental.then_some(gone_on)).await;
    let form = if proto { WireForm::Proto } else { WireForm::Sse };
    let agent = HttpAgent::builder(url).wire(form).build().unwrap();
    let mut saved = Session::new(agent.clone()).save();
    saved.thread_id = thread.into();
    saved.messages = list(&input["initialMessages"]);
    saved.open_interrupts = list(&input["pendingInterrupts"]);
    let mut session = Session::restore(agent, saved).unwrap();
    if let Some(state) = input.get("initialState") {
        session.set_state(state).unwrap();
    }
    let mut played = Played::default();
    session.observe(played.seen.clone());

    let mut request = Request::new().run_id(run);
    if input.get("resume").is_some() {
        request = request.resume(list::<ResumeEntry>(&input["resume"]));
    }
    let mut turn = session.start(request);
    while let Some(update) = turn.next().await {
        match update {
            Update::Warning(warning) => writeln!(played.warnings, "{warning}").unwrap(),
            Update::Change(Change::RunEnded { ending }) => played.run_outcomes.push(ending),
            Update::Change(Change::RunStarted { .. }) => drop(go_on.try_send(())),
            _ => {}
        }
    }
    let ended = turn.finish().await;
    let sent = !matches!(ended, Err(SessionError::Refused(_)));
    if sent {
        played.request = Some(served.await.unwrap());
    } else {
        // It was never asked.
        served.abort();
    }
    judge(case, &played, &ended, &session)
}

/// The thread and the run that the case's stream is of.
fn ids(input: &Value) -> (String, String) {
    let started = input["events"].as_array().into_iter().flatten();
    let started = started.filter(|event| event["type"] == "RUN_STARTED").find_map(|event| {
        Some((event["threadId"].as_str()?.to_owned(), event["runId"].as_str()?.to_owned()))
    });
    started.unwrap_or_else(|| ("thread-a".into(), "run-1".into()))
}

/// The head of the server's answer.
fn answer(case: &Value) -> String {
    let input = &case["input"];
    let status = input["status"].as_u64().unwrap_or(200);
    let media = match input["responseType"].as_str() {
        Some(media) => media,
        None if case["kind"] == "proto" => "application/vnd.ag-ui.event+proto",
        None => "text/event-stream",
    };
    format!("HTTP/1.1 {status} Said\r\ncontent-type: {media}\r\nconnection: close\r\n\r\n")
}

/// The reads of the body.
fn chunks(input: &Value) -> Vec<Vec<u8>> {
    let frame = |event: &Value| format!("data: {event}\n\n").into_bytes();
    if let Some(body) = input["responseBody"].as_str() {
        return vec![body.into()];
    }
    if let Some(events) = input["events"].as_array() {
        return events.iter().map(frame).collect();
    }
    let Some(chunks) = input["chunks"].as_array() else {
        // Only what is sent is looked at.
        let (thread, run) = ids(input);
        return ["RUN_STARTED", "RUN_FINISHED"]
            .map(|it| frame(&json!({"type": it, "threadId": thread, "runId": run})))
            .into();
    };
    chunks.iter().map(chunk).collect()
}

fn chunk(chunk: &Value) -> Vec<u8> {
    if let Some(text) = chunk.as_str() {
        return text.into();
    }
    if let Some(hex) = chunk["hex"].as_str() {
        let pairs = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        return pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    }
    chunk["repeat"].as_str().unwrap().repeat(chunk["times"].as_u64().unwrap() as usize).into()
}

/// Answers one request, and gives its body.
async fn serve(
    head: String,
    chunks: Vec<Vec<u8>>,
    mut after_first: Option<mpsc::Receiver<()>>,
) -> (String, tokio::task::JoinHandle<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let request = read_request(&mut socket).await;
        // The client may let go at any time.
        let _ = socket.write_all(head.as_bytes()).await;
        for chunk in chunks {
            let _ = socket.write_all(&chunk).await;
            if let Some(mut seen) = after_first.take() {
                seen.recv().await;
            }
        }
        let _ = socket.shutdown().await;
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    });
    (url, served)
}

fn list<T: FromJson>(values: &Value) -> Vec<T> {
    let read = |value: &Value| T::from_json_tolerant(&value.to_string()).unwrap().value;
    values.as_array().into_iter().flatten().map(read).collect()
}

// --- what is expected --------------------------------------------------------------------------------

fn judge(
    case: &Value,
    played: &Played,
    ended: &Result<Finished, SessionError>,
    session: &Session,
) -> Vec<String> {
    let sight = played.seen.0.lock().unwrap();
    let written: Vec<Value> = sight.delivered.iter().map(value).collect();
    let types: Vec<&str> = sight.delivered.iter().map(Event::type_name).collect();
    let error = error_text(ended);
    let mut all = Vec::new();
    for (key, expected) in case["expect"].as_object().unwrap() {
        let differ = match &**key {
            "outcome" => one_of(expected, outcome(ended)),
            "reason" => one_of(expected, reason(ended)),
            "delivered" => differences(key, expected, &json!(types)),
            "messages" => {
                let held: Value = session.messages().iter().map(value::<Message>).collect();
                lacking(key, expected, &held)
            }
            "state" => differences(key, expected, &state(session.conversation())),
            "stateAfterDelta" => differences(key, expected, sight.after_delta.as_ref().unwrap()),
            "warn" if *expected == true => not(!played.warnings.is_empty(), "no diagnostic"),
            "warn" => mentions(expected, &played.warnings),
            "mentions" => mentions(expected, &error),
            "path" => mentions(&json!([expected]), &error),
            "error" => lacking(key, expected, written.last().unwrap()),
            "runOutcomes" => {
                let ends = played.run_outcomes.iter().map(|ending| match ending {
                    Ending::Failed => "run-failed",
                    ending => ending.as_str(),
                });
                differences(key, expected, &ends.collect())
            }
            "request" => lacking(key, expected, played.request.as_ref().unwrap()),
            "pendingInterrupts" => {
                let open = session.open_interrupts().iter().map(|it| it.id.as_str());
                differences(key, expected, &open.collect())
            }
            "status" | "body" => refusal(key, expected, ended),
            "settlesWithin" => {
                not(sight.ends == ["failed", "finalized"], &format!("{:?}", sight.ends))
            }
            "reEncode" => {
                let null = |event: &&Value| event.as_object().unwrap().values().any(Value::is_null);
                written
                    .iter()
                    .find(null)
                    .map(|event| format!("null in {event}"))
                    .into_iter()
                    .collect()
            }
            "roundTrip" => {
                let sent = &case["input"]["events"];
                lacking(key, sent, &written.clone().into())
            }
            "mustNot" => expected
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|must_not| match must_not.as_str().unwrap() {
                    "report success" => {
                        not(!matches!(ended, Ok(it) if it.is_completed()), "success")
                    }
                    "synthesise RUN_FINISHED" => not(!types.contains(&"RUN_FINISHED"), "invented"),
                    other => vec![format!("nobody judges mustNot {other:?}")],
                })
                .collect(),
            "serverSide" => server_side(case),
            // The server does not go on before the first event was seen.
            "incremental" => Vec::new(),
            // Counted in allocations by `sse_alloc` of `agui-wire`.
            "memory" => Vec::new(),
            // Proved with a server in between, by the tests of endings of `agui-server`.
            "viaRuntime" => Vec::new(),
            "note" => Vec::new(),
            other => vec![format!("nobody judges {other:?}")],
        };
        all.extend(differ);
    }
    all
}

fn outcome(ended: &Result<Finished, SessionError>) -> &'static str {
    match ended {
        Err(SessionError::Refused(_)) => "not-sent",
        Err(_) => "rejected",
        Ok(finished) => match finished.ending {
            Ending::Failed => "run-failed",
            ending => ending.as_str(),
        },
    }
}

fn reason(ended: &Result<Finished, SessionError>) -> &'static str {
    ended.as_ref().err().map_or("none", SessionError::class)
}

/// The words of an outcome or a reason, of which the case may name several.
fn one_of(expected: &Value, found: &str) -> Vec<String> {
    let same = |expected: &Value| match expected.as_str() {
        Some("lifecycle") => found == "sequence",
        Some("sent") => !matches!(found, "not-sent" | "rejected"),
        word => word == Some(found),
    };
    let fits = match expected.as_array() {
        Some(words) => words.iter().any(same),
        None => same(expected),
    };
    not(fits, &format!("expected {expected}, found {found}"))
}

fn mentions(words: &Value, text: &str) -> Vec<String> {
    let words = words.as_array().unwrap().iter().filter_map(Value::as_str);
    let missing = words.filter(|word| !text.contains(word));
    missing.map(|word| format!("{word:?} is not in {text:?}")).collect()
}

/// The status and body of a refusal.
fn refusal(key: &str, expected: &Value, ended: &Result<Finished, SessionError>) -> Vec<String> {
    let Err(SessionError::NoStream(AgentError::Status { status, body })) = ended else {
        return vec![format!("expected a refusal, found {ended:?}")];
    };
    match key {
        "status" => differences(key, expected, &json!(status)),
        _ => differences(key, expected, &serde_json::from_str(body).unwrap()),
    }
}

/// An error with its sources, as a person is shown it.
fn error_text(ended: &Result<Finished, SessionError>) -> String {
    let mut text = String::new();
    let mut error = match ended {
        Err(error) => Some(error as &dyn Error),
        Ok(Finished { cut_off: Some(error), .. }) => Some(error as &dyn Error),
        Ok(_) => None,
    };
    while let Some(level) = error {
        writeln!(text, "{level}").unwrap();
        error = level.source();
    }
    if let Err(SessionError::Rejected(DeliveryError::Agent(AgentError::Decode(error)))) = ended {
        writeln!(text, "{}", error.path()).unwrap();
    }
    text
}

/// What is said of whoever produces such a stream.
fn server_side(case: &Value) -> Vec<String> {
    let text = case["expect"]["serverSide"].as_str().unwrap();
    if text.starts_with("a delta builder") {
        let read = |value: &Value| Tree::parse(&value.to_string()).unwrap();
        let before = read(&case["input"]["initialState"]);
        let after = read(&case["expect"]["state"]);
        let patch = diff(&before, &after);
        let mut patched = before;
        let applied = agui_stream::patch::apply(&mut patched, &patch, &PatchLimits::default());
        return not(applied.is_ok() && patched == after, &format!("{applied:?} {patched}"));
    }
    // That an emitter says how a run ends once, and with the ids of the run, is in its own tests.
    not(text.contains("emitter"), &format!("nobody judges {text:?}"))
}

fn not(right: bool, what: &str) -> Vec<String> {
    if right { Vec::new() } else { vec![what.to_owned()] }
}

fn value<T: ToJson>(it: &T) -> Value {
    serde_json::from_str(&it.to_json()).unwrap()
}

fn state(conversation: &Conversation) -> Value {
    serde_json::from_str(&conversation.state().to_string()).unwrap()
}
