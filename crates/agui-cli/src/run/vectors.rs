//! What the recorded runs of the reference client came to, and what `agui run` makes of the same
//! bytes: a server plays the recording's reads, and the function behind the command is the client.
//!
//! The vectors are read from `AGUI_CORPUS`, or from `../shared/conformance` beside the repository.
//! Where a line is knowingly not met, `conformance/deviations/` says so and why; a deviation that no
//! longer is one fails too.

#[path = "../../../agui-stream/tests/conformance/compare.rs"]
mod compare;
#[allow(dead_code)]
#[path = "../../../agui-stream/tests/conformance/corpus.rs"]
mod corpus;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use agui_agent::{CancellationToken, HttpAgent, WireForm};
use agui_stream::fold::{Change, Conversation};
use agui_stream::{Ending, PeerVersion, Warning};
use agui_types::json::Value as Tree;
use agui_types::{Event, FromJson, Json, Message, ToJson};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, timeout};

use super::exchange::{Ended, Manner, Witness, converse};
use super::input::complete;
use super::remote::Remote;
use super::report::Verdict;
use compare::differences;
use corpus::Verdicts;

#[tokio::test]
async fn valid_simple() {
    file("valid-simple").await;
}

#[tokio::test]
async fn valid_rich() {
    file("valid-rich").await;
}

#[tokio::test]
async fn invalid_order() {
    file("invalid-order").await;
}

#[tokio::test]
async fn invalid_shape() {
    file("invalid-shape").await;
}

#[tokio::test]
async fn sse_framing() {
    file("sse-framing").await;
}

#[tokio::test]
async fn proto() {
    file("proto").await;
}

#[tokio::test]
async fn http() {
    file("http").await;
}

#[tokio::test]
async fn chunks() {
    file("chunks").await;
}

#[tokio::test]
async fn turns() {
    file("turns").await;
}

#[tokio::test]
async fn json_patch() {
    file("json-patch").await;
}

#[tokio::test]
async fn legacy_0x() {
    file("legacy-0x").await;
}

async fn file(name: &str) {
    let Some(path) = corpus::find(&format!("vectors/{name}.jsonl")) else { return };
    let mut verdicts = Verdicts::new(&format!("{name}-run"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let agent = remote(&format!("http://{}/", listener.local_addr().unwrap()));
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let vector: Value = Json::parse(line).unwrap().decode().unwrap();
        let input = &vector["input"];
        // There is no detaching from a run, and no connecting to one, on the command line.
        let elsewhere = input.get("detachAfterChunk").is_some() || input.get("mode").is_some();
        if vector["kind"] == "run" && !elsewhere {
            verdicts.note(vector["id"].as_str().unwrap(), &play(&vector, &listener, &agent).await);
        }
    }
    verdicts.settle();
}

/// Plays all runs of a line; what differs.
async fn play(vector: &Value, listener: &TcpListener, agent: &Remote) -> Vec<String> {
    let initial = &vector["input"]["initial"];
    let state = initial.get("state").cloned().unwrap_or_else(|| json!({}));
    let mut conversation = Conversation::new(messages(&initial["messages"]), tree(&state));
    let (runs, recorded) = (each(&vector["input"]), each(&vector["expect"]));
    let peer = vector["input"]["maxProtocolVersion"].as_str();
    let peer = peer.map_or(PeerVersion::CURRENT, |version| version.parse().unwrap());
    let mut preferred = each(&vector["preferred"]);
    preferred.resize(runs.len(), Value::Null);
    assert_eq!(runs.len(), recorded.len());

    let mut all = Vec::new();
    for (at, (run, mut expected)) in runs.iter().zip(recorded).enumerate() {
        overlay(&mut expected, &preferred[at]);
        let played = if run["http"].get("reject").is_some() {
            let nowhere = remote(&unused_url().await);
            exchange(run, peer, &expected, &mut conversation, listener, &nowhere).await
        } else {
            exchange(run, peer, &expected, &mut conversation, listener, agent).await
        };
        let differ = compared(run, &mut expected, &played, &conversation);
        all.extend(differ.into_iter().map(|it| format!("run {at}: {it}")));
    }
    all
}

/// Puts what is preferred on top of a recording. Where another failure is preferred, the rest of the
/// recording says nothing; a stream that is cut off delivers what it delivered.
fn overlay(recorded: &mut Value, preferred: &Value) {
    let Some(preferred) = preferred.as_object() else { return };
    let other = preferred.get("outcome").is_some_and(|outcome| *outcome != recorded["outcome"]);
    if other && preferred.get("errorClass") != Some(&"truncated".into()) {
        *recorded = json!({});
    }
    if let Value::Object(recorded) = recorded {
        // What is done instead has nothing to warn of.
        recorded.remove("warnings");
        recorded.extend(preferred.clone());
    }
}

struct Played {
    ended: Ended,
    /// The body the server received.
    received: Option<Value>,
    delivered: Vec<Event>,
    warnings: Vec<Warning>,
}

async fn exchange(
    run: &Value,
    peer: PeerVersion,
    expected: &Value,
    conversation: &mut Conversation,
    listener: &TcpListener,
    agent: &Remote,
) -> Played {
    let mut input = run["runInput"].as_object().cloned().unwrap_or_default();
    input.entry("threadId").or_insert_with(|| "thread-1".into());
    input.entry("runId").or_insert_with(|| "run-1".into());
    let mut history: Vec<Value> = conversation.messages().iter().map(written).collect();
    history.extend(run["addMessages"].as_array().into_iter().flatten().cloned());
    input.insert("messages".into(), history.into());
    input.insert("state".into(), decoded(conversation.state().to_json().as_str()));
    let input = complete(tree(&input.into())).to_json();
    let manner = Manner { peer, linger: Duration::from_secs(5) };

    let cancel = CancellationToken::new();
    let mut witness = Collected::default();
    let answer = Answer::new(run, expected, Rc::clone(&witness.count), cancel.clone());
    let serving = answer.serve(listener);
    let mut received = None;
    let talking = async {
        tokio::pin!(serving);
        let client = converse(agent, manner, &input, conversation, cancel, &mut witness);
        tokio::pin!(client);
        let mut served = false;
        loop {
            tokio::select! {
                ended = &mut client => return ended,
                body = &mut serving, if !served => (served, received) = (true, body),
            }
        }
    };
    let ended = timeout(Duration::from_secs(20), talking).await.expect("the run never ended");
    let Collected { delivered, warnings, .. } = witness;
    Played { ended, received, delivered, warnings }
}

fn remote(url: &str) -> Remote {
    Remote::new(HttpAgent::builder(url)).unwrap()
}

/// A URL that nobody listens at.
async fn unused_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[derive(Default)]
struct Collected {
    delivered: Vec<Event>,
    /// How many were delivered, for the server to see.
    count: Rc<Cell<usize>>,
    warnings: Vec<Warning>,
}

impl Witness for Collected {
    fn event(&mut self, event: &Event, _: &[Change], _: &Conversation) {
        self.delivered.push(event.clone());
        self.count.set(self.delivered.len());
    }

    fn warning(&mut self, warning: &Warning) {
        self.warnings.push(warning.clone());
    }

    fn input_warning(&mut self, warning: &Warning) {
        self.warnings.push(warning.clone());
    }

    fn omitted(&mut self, count: u64) {
        assert_eq!(count, 0);
    }

    async fn settle(&mut self) {}
}

// --- the server ------------------------------------------------------------------------------------

/// One answer, written read by read.
struct Answer {
    head: String,
    reads: Vec<Vec<u8>>,
    /// Before which read the connection dies.
    dies_at: Option<usize>,
    /// Before which read the client is made to cancel, once it has delivered so many events.
    cancels_at: Option<(usize, usize)>,
    delivered: Rc<Cell<usize>>,
    cancel: CancellationToken,
}

impl Answer {
    fn new(
        run: &Value,
        expected: &Value,
        delivered: Rc<Cell<usize>>,
        cancel: CancellationToken,
    ) -> Self {
        let http = &run["http"];
        let status = http["status"].as_u64().unwrap_or(200);
        let mut head = format!("HTTP/1.1 {status} Status\r\nconnection: close\r\n");
        let content_type = match http.get("contentType") {
            Some(Value::Null) => None,
            Some(given) => given.as_str(),
            None if run.get("protoB64").is_some() => Some(WireForm::Proto.media_type()),
            None => Some("text/event-stream"),
        };
        if let Some(content_type) = content_type {
            head.push_str(&format!("content-type: {content_type}\r\n"));
        }
        if status != 204 {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("\r\n");
        let index = |name: &str, of: &Value| of[name].as_u64().map(|at| at as usize);
        Self {
            head,
            reads: match http["body"].as_str() {
                Some(body) => vec![body.into()],
                None if status == 204 => Vec::new(),
                None => reads(run),
            },
            dies_at: index("errorAfterChunk", http),
            cancels_at: index("abortAfterChunk", run)
                .map(|at| (at, delivered_here(expected).len())),
            delivered,
            cancel,
        }
    }

    /// Serves one request and gives its body.
    async fn serve(self, listener: &TcpListener) -> Option<Value> {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let body = request(&mut socket).await;
        // The client may let go at any time.
        let _ = self.answer(&mut socket).await;
        Some(body)
    }

    async fn answer(self, socket: &mut TcpStream) -> io::Result<()> {
        socket.write_all(self.head.as_bytes()).await?;
        for (at, read) in self.reads.iter().enumerate() {
            if self.dies_at == Some(at) {
                return Ok(());
            }
            self.cancel_before(at).await;
            if !read.is_empty() {
                socket.write_all(format!("{:x}\r\n", read.len()).as_bytes()).await?;
                socket.write_all(read).await?;
                socket.write_all(b"\r\n").await?;
            }
            // The client takes it before the next one is there, as far as that can be had.
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
        }
        self.cancel_before(self.reads.len()).await;
        if self.dies_at.is_none() && self.head.contains("chunked") {
            socket.write_all(b"0\r\n\r\n").await?;
        }
        socket.shutdown().await
    }

    async fn cancel_before(&self, read: usize) {
        let Some((at, delivered)) = self.cancels_at else { return };
        if at != read {
            return;
        }
        while self.delivered.get() < delivered {
            tokio::task::yield_now().await;
        }
        self.cancel.cancel();
        // The connection stays open: it is the client who ends this.
        std::future::pending::<()>().await;
    }
}

async fn request(socket: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(socket.read_buf(&mut bytes).await.unwrap(), 0, "the request was cut off");
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if bytes.len() - end - 4 >= length.unwrap().parse().unwrap() {
            return decoded(std::str::from_utf8(&bytes[end + 4..]).unwrap());
        }
    }
}

/// The reads that the body comes in.
fn reads(run: &Value) -> Vec<Vec<u8>> {
    if let Some(events) = run["events"].as_array() {
        return events.iter().map(|event| format!("data: {event}\n\n").into_bytes()).collect();
    }
    if let Some(parts) = run["sseParts"].as_array() {
        return parts
            .iter()
            .map(|part| match part.as_str() {
                Some(text) => text.into(),
                None => {
                    let times = part["times"].as_u64().unwrap() as usize;
                    part["repeat"].as_str().unwrap().repeat(times).into_bytes()
                }
            })
            .collect();
    }
    if let Some(text) = run["sse"].as_str() {
        return vec![text.into()];
    }
    let body = run["sseB64"].as_str().or_else(|| run["protoB64"].as_str());
    let bytes = base64(body.expect("a body"));
    let mut cuts: Vec<usize> = match (run["cutEvery"].as_u64(), run["cutAt"].as_array()) {
        (Some(every), _) => (0..bytes.len()).step_by(every as usize).skip(1).collect(),
        (_, Some(at)) => at.iter().map(|at| at.as_u64().unwrap() as usize).collect(),
        _ => Vec::new(),
    };
    cuts.push(bytes.len());
    cuts.sort_unstable();
    let mut from = 0;
    let read = |to: usize| bytes[std::mem::replace(&mut from, to)..to].to_vec();
    cuts.into_iter().map(read).collect()
}

fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        let value = DIGITS.iter().position(|known| *known == digit).unwrap();
        (bits, held) = (bits << 6 | value as u32, held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    bytes
}

// --- comparing -------------------------------------------------------------------------------------

fn compared(
    run: &Value,
    expected: &mut Value,
    played: &Played,
    conversation: &Conversation,
) -> Vec<String> {
    let mut found = found(played, conversation);
    let mut fields =
        vec!["runOutcome", "delivered", "messages", "state", "pendingInterrupts", "request"];
    if run.get("abortAfterChunk").is_some() {
        // The reference tells its caller of the caller's own abort in several ways; here it is
        // always a run that was cancelled, unless it had ended already.
        let ended = conversation.ending().is_some();
        let verdict = if ended { Verdict::Completed } else { Verdict::Cancelled };
        assert_eq!(played.ended.verdict, verdict);
        expected["delivered"] = delivered_here(expected).into();
        fields.retain(|field| *field != "runOutcome");
    } else {
        fields.extend(["outcome", "errorClass"]);
        if expected["outcome"] == "completed" {
            fields.extend(["newMessages", "result"]);
        }
    }
    // As typed messages hold them: what is absent is never null.
    if let Some(held) = expected.get_mut("messages") {
        *held = messages(held).iter().map(written).collect();
    }
    let mut expected = renamed(expected, |text| text.starts_with("00000000-0000-4000-8000-"));
    found = renamed(&found, is_minted);

    let mut all = Vec::new();
    for field in fields {
        let said = expected.get(field).is_some()
            || field == "errorClass"
            || field == "result" && expected.get("delivered").is_some();
        if said {
            all.extend(differences(field, &expected[field].take(), &found[field]));
        }
    }
    all.extend(path_differs(&expected, played));
    let recorded = expected["warnings"].as_array().map_or(0, Vec::len);
    if recorded > 0 && played.warnings.is_empty() && found["outcome"] == "completed" {
        all.push(format!("expected a warning as {}, found none", expected["warnings"][0]));
    }
    if played.received.is_some()
        && played.received.as_ref()
            != played.ended.request.as_ref().map(|it| decoded(it.as_str())).as_ref()
    {
        all.push(format!(
            "request: the report does not hold what was received: {:?}",
            played.received
        ));
    }
    if !all.is_empty() {
        all.push(format!("{:?}, recorded {}", played.ended.problem, expected["error"]));
    }
    all
}

fn found(played: &Played, conversation: &Conversation) -> Value {
    let failed = !matches!(
        played.ended.verdict,
        Verdict::Completed | Verdict::Interrupted | Verdict::Cancelled | Verdict::Failed
    );
    let problem = played.ended.problem.as_ref().filter(|_| failed);
    let request = played.ended.request.as_ref().map(|body| decoded(body.as_str()));
    json!({
        "outcome": if failed { "failed" } else { "completed" },
        "errorClass": problem.map(|problem| &*problem.class),
        // Where nothing was sent, the conversation still has the ending of the run before.
        "runOutcome": match conversation.ending().filter(|_| request.is_some()) {
            Some(Ending::Completed) => "success",
            Some(Ending::Interrupted) => "interrupt",
            Some(Ending::Cancelled) => "cancelled",
            Some(Ending::Failed) => "error",
            _ => "none",
        },
        "delivered": played.delivered.iter().map(|it| decoded(&it.to_json())).collect::<Vec<_>>(),
        "messages": conversation.messages().iter().map(written).collect::<Vec<_>>(),
        "state": decoded(conversation.state().to_json().as_str()),
        "pendingInterrupts":
            conversation.open_interrupts().iter().map(|it| decoded(&it.to_json())).collect::<Vec<_>>(),
        "newMessages": conversation.new_messages().map(|id| id.as_str()).collect::<Vec<_>>(),
        "result": conversation.result().map(|it| decoded(it.as_str())),
        "request": request,
    })
}

/// Whether another member is named than the recording names: a parent is fine, and so is a more
/// precise place.
fn path_differs(expected: &Value, played: &Played) -> Option<String> {
    let paths = expected["errorPaths"].as_array()?;
    let problem = played.ended.problem.as_ref().filter(|problem| &*problem.class == "schema")?;
    let within = |path: &str, other: &str| {
        path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let named = paths.iter().any(|path| {
        let path = path.as_str().unwrap_or_default();
        within(path, &problem.path) || within(&problem.path, path)
    });
    (!named).then(|| format!("path: expected one of {paths:?}, found {:?}", problem.path))
}

/// What is to be delivered, without what the reference adds of its own when its caller aborts.
fn delivered_here(expected: &Value) -> Vec<Value> {
    let delivered = expected["delivered"].as_array().into_iter().flatten();
    let added = |event: &&Value| event["type"] != "RUN_ERROR" || event["code"] != "abort";
    delivered.filter(added).cloned().collect()
}

/// Texts of more bytes than this are not recorded.
const MOST_RECORDED: usize = 100_000;

/// The value with invented ids named by the order in which they occur.
fn renamed(value: &Value, invented: fn(&str) -> bool) -> Value {
    fn rename(value: &Value, invented: fn(&str) -> bool, names: &mut Vec<String>) -> Value {
        match value {
            // How the recording writes what is large.
            Value::String(text) if text.len() > MOST_RECORDED => {
                format!("<elided {} UTF-16 units>", text.encode_utf16().count()).into()
            }
            Value::String(text) if invented(text) => {
                let known = names.iter().position(|known| known == text);
                let at = known.unwrap_or_else(|| {
                    names.push(text.clone());
                    names.len() - 1
                });
                format!("invented {at}").into()
            }
            Value::Array(items) => items.iter().map(|it| rename(it, invented, names)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (name.clone(), rename(value, invented, names)))
                .collect::<Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }
    rename(value, invented, &mut Vec::new())
}

/// Whether an id is one that the stages invent: a UUID of version 8.
fn is_minted(text: &str) -> bool {
    text.len() == 36 && text.as_bytes()[14] == b'8' && text.matches('-').count() == 4
}

/// The one run of a line, or each of several.
fn each(side: &Value) -> Vec<Value> {
    side["runs"].as_array().cloned().unwrap_or_else(|| vec![side.clone()])
}

fn messages(list: &Value) -> Vec<Message> {
    let read = |message: &Value| Message::from_json_tolerant(&message.to_string()).unwrap().value;
    list.as_array().into_iter().flatten().map(read).collect()
}

fn written(message: &Message) -> Value {
    decoded(&message.to_json())
}

fn decoded(text: &str) -> Value {
    Json::parse(text).unwrap().decode().unwrap()
}

fn tree(value: &Value) -> Tree {
    Tree::parse(&value.to_string()).unwrap()
}
