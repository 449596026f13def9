//! One request after the other, each on a connection of its own.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::serve::now;
use crate::stream::Answer;

/// A runtime that is reached over plain HTTP/1.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    host: String,
    base: String,
    agent: String,
}

/// What an agent is to do in each run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub(crate) tokens: u32,
    /// Milliseconds from one token to the next; 0 for as fast as it can. Paced tokens are the times
    /// at which they were said.
    pub(crate) every: u32,
    /// Nothing but the beginning, and no end.
    pub(crate) silent: bool,
    /// What the user says.
    pub(crate) say: String,
}

impl Script {
    /// How many events a run of it has.
    pub(crate) fn events(&self) -> u64 {
        u64::from(self.tokens) + 4
    }
}

/// What became of one request.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// From the request to its first event.
    pub(crate) first: Duration,
    /// From the request to the end of the answer.
    pub(crate) took: Duration,
    pub(crate) events: u64,
    pub(crate) bytes: u64,
    /// Of paced tokens: from being said to being here, in microseconds.
    pub(crate) delays: Vec<u64>,
    /// The last event that began or ended a run.
    pub(crate) boundary: Vec<u8>,
}

impl Target {
    pub(crate) async fn new(url: &str, agent: &str) -> Result<Self> {
        let rest = url.strip_prefix("http://").context("the URL has to begin with http://")?;
        let (host, base) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let named = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let address = tokio::net::lookup_host(&named).await?.next();
        let address = address.with_context(|| format!("{host} has no address"))?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { address, host: host.to_owned(), base, agent: agent.to_owned() })
    }

    pub(crate) async fn connect(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A request that begins a run of this script on a thread, with ids of one length.
    pub(crate) fn run(&self, thread: &str, run: &str, script: &Script) -> Vec<u8> {
        self.post("run", thread, run, script)
    }

    /// A request to watch a thread.
    pub(crate) fn watch(&self, thread: &str, run: &str) -> Vec<u8> {
        self.post("connect", thread, run, &Script::default())
    }

    pub(crate) fn info(&self) -> Vec<u8> {
        let Self { base, host, .. } = self;
        format!("GET {base}/info HTTP/1.1\r\nhost: {host}\r\n\r\n").into_bytes()
    }

    fn post(&self, operation: &str, thread: &str, run: &str, script: &Script) -> Vec<u8> {
        let Self { base, host, agent, .. } = self;
        let Script { tokens, every, silent, say } = script;
        let body = json!({
            "threadId": thread,
            "runId": run,
            "messages": [{"id": format!("said-{run}"), "role": "user", "content": say}],
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {"tokens": tokens, "every": every, "silent": silent},
        })
        .to_string();
        format!(
            "POST {base}/agent/{agent}/{operation} HTTP/1.1\r\nhost: {host}\r\n\
             content-type: application/json\r\naccept: text/event-stream\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// Sends a request and reads the answer to its end.
pub(crate) async fn exchange(mut stream: TcpStream, request: &[u8]) -> Result<Outcome> {
    let asked = Instant::now();
    stream.write_all(request).await?;
    let mut answer = Answer::default();
    let (mut first, mut delays) = (None, Vec::new());
    while !answer.is_over() {
        read(&stream, &mut answer, |event| delays.extend(delay(event))).await?;
        if first.is_none() && answer.events > 0 {
            first = Some(asked.elapsed());
        }
    }
    let took = asked.elapsed();
    let Answer { events, boundary, bytes, .. } = answer;
    Ok(Outcome { first: first.unwrap_or(took), took, events, bytes, delays, boundary })
}

/// The same until an event has come; then the connection with what comes on it.
pub(crate) async fn watch(mut stream: TcpStream, request: &[u8]) -> Result<(TcpStream, Answer)> {
    stream.write_all(request).await?;
    let mut answer = Answer::default();
    while answer.events == 0 {
        ensure!(!answer.is_over(), "the answer ended without an event");
        read(&stream, &mut answer, |_| {}).await?;
    }
    Ok((stream, answer))
}

/// Reads once. The buffer lives on the stack meanwhile: thousands that wait hold none.
async fn read(stream: &TcpStream, answer: &mut Answer, each: impl FnMut(&[u8])) -> Result<()> {
    loop {
        stream.readable().await?;
        let mut buffer = [0; 32 * 1024];
        match stream.try_read(&mut buffer) {
            Ok(0) => bail!("the connection was closed in the middle of an answer"),
            Ok(read) => return answer.take(&buffer[..read], each),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// How long ago a paced token was said, in microseconds.
fn delay(event: &[u8]) -> Option<u64> {
    const DELTA: &[u8] = b"\"delta\":\"";
    let said = &event[memchr::memmem::find(event, DELTA)? + DELTA.len()..];
    let digits = &said[..said.iter().position(|byte| !byte.is_ascii_digit())?];
    let said: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    Some(now().saturating_sub(said))
}
