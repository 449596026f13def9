//! The accept loop over real sockets: every limit at its edge, and how a server stops.
#![cfg(all(feature = "axum", feature = "server"))]

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use agui_agent::{Agent, AgentResult, CancellationToken, Run};
use agui_server::{AgentService, PeerAddr, Server, ServerLimits, codes, router};
use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use common::client::Client;
use common::{INPUT, Item, custom, events, raw, started, types};
use futures_util::stream;
use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A server on a port of the system's choice, ended when dropped.
struct Running {
    address: SocketAddr,
    shutdown: CancellationToken,
    task: JoinHandle<usize>,
}

impl Running {
    /// Serves an agent at `/`, `GET /health`, and what else is asked for.
    async fn start(agent: impl Agent, change: impl FnOnce(&mut ServerLimits)) -> Self {
        let shutdown = CancellationToken::new();
        let service = AgentService::new(agent).cancel_with(shutdown.clone());
        let app = service.into_router().route("/health", get(async || "well"));
        Self::serve(app, shutdown, change).await
    }

    async fn serve(
        app: Router,
        shutdown: CancellationToken,
        change: impl FnOnce(&mut ServerLimits),
    ) -> Self {
        let mut limits = ServerLimits::default();
        change(&mut limits);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = Server::new(listener).limits(limits).shutdown_with(shutdown.clone());
        let task = tokio::spawn(server.serve(app));
        Self { address, shutdown, task }
    }

    async fn connect(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.address).await.unwrap())
    }

    /// Stops it and gives the number of connections that were cut off.
    async fn stop(mut self) -> usize {
        self.shutdown.cancel();
        (&mut self.task).await.unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

const HEALTH: &str = "GET /health HTTP/1.1\r\nhost: x\r\n\r\n";
const HALF_A_HEAD: &str = "POST / HTTP/1.1\r\nhost: x\r\n";
const HEAD: &str = "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";

async fn greeter(run: Run) -> AgentResult {
    run.say("Hello!").await?;
    Ok(())
}

/// Says one thing and goes on until it is cancelled.
async fn waits(run: Run) -> AgentResult {
    let mut text = run.text().await?;
    text.push("Hel").await?;
    std::future::pending().await
}

/// An agent that tells when its stream is dropped, after these events.
fn watched(endless: bool) -> (mpsc::UnboundedReceiver<()>, impl Agent) {
    struct Watched(mpsc::UnboundedSender<()>);
    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (sender, dropped) = mpsc::unbounded_channel();
    let agent = raw(move |_| {
        let held = Watched(sender.clone());
        let mut begun = false;
        Box::pin(stream::poll_fn(move |_| {
            let _held = &held;
            let item =
                |event| std::task::Poll::Ready(Some(Item::Ok(agui_types::Reading::from(event))));
            if !std::mem::replace(&mut begun, true) {
                item(started())
            } else if endless {
                item(custom(&"x".repeat(10_000)))
            } else {
                std::task::Poll::Pending
            }
        }))
    });
    (dropped, agent)
}

async fn healthy(client: &mut Client<TcpStream>) {
    client.send(HEALTH).await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!(client.exactly(4).await, "well");
}

/// How long it takes until the connection is closed, which says nothing more.
async fn closed(client: &mut Client<TcpStream>) -> Duration {
    let began = Instant::now();
    let mut rest = Vec::new();
    // Closed with something unread is a reset.
    let _ = client.socket.read_to_end(&mut rest).await;
    assert_eq!(String::from_utf8(rest).unwrap(), "");
    began.elapsed()
}

const SHORT: Duration = Duration::from_millis(800);

#[tokio::test]
async fn a_head_has_to_be_whole_in_time() {
    let server = Running::start(greeter, |limits| limits.head_timeout = SHORT).await;
    let mut slow = server.connect().await;
    slow.send("GET /health HTTP/1.1\r\n").await;
    tokio::time::sleep(SHORT / 4).await;
    slow.send("host: x\r\n\r\n").await;
    assert!(slow.head().await.starts_with("HTTP/1.1 200 "));

    // However it drips, it has no more time than that.
    let mut client = server.connect().await;
    let began = Instant::now();
    let dripping = async {
        client.send("GET /health HTTP/1.1\r\nx: ").await;
        while client.socket.try_write(b"x").is_ok() && began.elapsed() < SHORT * 20 {
            tokio::time::sleep(SHORT / 10).await;
        }
        began.elapsed()
    };
    let took = dripping.await;
    assert!(took >= SHORT && took < SHORT * 20, "{took:?}");

    // The next request on a connection has the same limit.
    healthy(&mut slow_next(&server).await).await;
}

/// A connection that has had an answer.
async fn slow_next(server: &Running) -> Client<TcpStream> {
    let mut client = server.connect().await;
    healthy(&mut client).await;
    client
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed_in_time() {
    let server = Running::start(greeter, |limits| limits.idle_timeout = SHORT).await;
    let mut silent = server.connect().await;
    let mut used = server.connect().await;
    for _ in 0..3 {
        tokio::time::sleep(SHORT / 3).await;
        healthy(&mut used).await;
    }
    assert!(closed(&mut used).await >= SHORT / 2);
    assert!(closed(&mut silent).await < SHORT);

    // A run is no silence, however long nothing comes.
    let (mut dropped, agent) = watched(false);
    let server = Running::start(agent, |limits| limits.idle_timeout = SHORT).await;
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    client.chunk().await.unwrap();
    let still = tokio::time::timeout(SHORT * 2, client.chunk()).await;
    assert!(still.is_err() && dropped.try_recv().is_err());
}

#[tokio::test]
async fn a_head_has_a_largest_size_and_number_of_fields() {
    let server = Running::start(greeter, |limits| limits.head_bytes = 8192).await;
    let head =
        |padding: usize| format!("GET /health HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(padding));
    let around = head(0).len();
    for (size, status) in [(8192, "200"), (8193, "431"), (100_000, "431")] {
        let mut client = server.connect().await;
        client.send(head(size - around)).await;
        let head = client.head().await;
        assert_eq!(head.split(' ').nth(1).unwrap(), status, "{size}");
    }
    let server = Running::start(greeter, |limits| limits.headers = 10).await;
    for (fields, status) in [(10, "200"), (11, "431")] {
        let mut client = server.connect().await;
        client.send(format!("GET /health HTTP/1.1\r\n{}\r\n", "x: x\r\n".repeat(fields))).await;
        assert_eq!(client.head().await.split(' ').nth(1).unwrap(), status, "{fields}");
    }
}

#[tokio::test]
async fn the_connection_that_has_waited_longest_makes_room() {
    let server = Running::start(waits, |limits| limits.connections = 3).await;
    // In this order they begin to wait: what is answered, waits from then.
    let mut half = server.connect().await;
    half.send(HALF_A_HEAD).await;
    let mut idle = server.connect().await;
    healthy(&mut idle).await;
    let mut used = server.connect().await;
    healthy(&mut used).await;
    healthy(&mut idle).await;

    let mut fourth = server.connect().await;
    healthy(&mut fourth).await;
    closed(&mut half).await;
    let mut fifth = server.connect().await;
    healthy(&mut fifth).await;
    closed(&mut used).await;
    // Those that are left are as good as before.
    healthy(&mut idle).await;
    healthy(&mut fourth).await;
}

#[tokio::test]
async fn where_all_are_being_answered_one_more_is_told_so() {
    let server = Running::start(waits, |limits| limits.connections = 2).await;
    let mut runs = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect().await;
        client.post(INPUT).await;
        client.head().await;
        client.chunk().await.unwrap();
        runs.push(client);
    }
    let mut third = server.connect().await;
    third.send(HEALTH).await;
    let head = third.head().await;
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    assert!(head.contains("\r\nretry-after: 1\r\n") && head.contains("connection: close"));
    let mut body = String::new();
    third.socket.read_to_string(&mut body).await.unwrap();
    let body = String::from_utf8(third.received).unwrap() + &body;
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["error"]["code"], codes::TOO_MANY_CONNECTIONS);

    // One that leaves makes room.
    drop(runs.pop());
    loop {
        let mut client = server.connect().await;
        client.send(HEALTH).await;
        if client.head().await.starts_with("HTTP/1.1 200 ") {
            break;
        }
    }
}

#[tokio::test]
async fn half_heads_keep_nobody_out() {
    let server = Running::start(greeter, |limits| limits.connections = 50).await;
    let mut half = Vec::new();
    for _ in 0..300 {
        let client = server.connect().await;
        // It may have been closed already to make room.
        let _ = client.socket.try_write(HALF_A_HEAD.as_bytes());
        half.push(client);
    }
    healthy(&mut server.connect().await).await;
}

#[tokio::test]
async fn a_body_has_to_come() {
    let server = Running::start(greeter, |limits| {
        limits.body_grace = SHORT;
        limits.body_rate = 100;
    })
    .await;
    // Two bytes every now and then are worth no time.
    let mut client = server.connect().await;
    let began = Instant::now();
    client.send(HEAD).await;
    let (status, body) = loop {
        let _ = client.socket.try_write(b"1\r\n \r\n");
        tokio::select! {
            refusal = client.refusal() => break refusal,
            () = tokio::time::sleep(SHORT / 10) => {}
        }
        assert!(began.elapsed() < SHORT * 20);
    };
    assert_eq!((status.as_str(), &body["error"]["code"]), ("408", &json!(codes::BODY_TOO_SLOW)));
    assert!(began.elapsed() >= SHORT);

    // As long as enough comes, it may take longer than the grace.
    let mut client = server.connect().await;
    let began = Instant::now();
    client.send(HEAD).await;
    while began.elapsed() < SHORT * 2 {
        client.send(format!("64\r\n{}\r\n", " ".repeat(100))).await;
        tokio::time::sleep(SHORT / 8).await;
    }
    client.send(format!("{:x}\r\n{INPUT}\r\n0\r\n\r\n", INPUT.len())).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
    assert_eq!(types(&client.stream().await).last().unwrap(), "RUN_FINISHED");
}

#[tokio::test]
async fn an_answer_has_to_be_taken() {
    let (mut dropped, agent) = watched(true);
    let server = Running::start(agent, |limits| limits.write_timeout = SHORT).await;
    // As long as something is taken now and then, it may take as long as it likes.
    let small = TcpSocket::new_v4().unwrap();
    small.set_recv_buffer_size(4096).unwrap();
    let mut client = Client::new(small.connect(server.address).await.unwrap());
    client.post(INPUT).await;
    client.head().await;
    for _ in 0..8 {
        tokio::time::sleep(SHORT / 4).await;
        let mut bytes = vec![0; 1024 * 1024];
        client.socket.read_exact(&mut bytes).await.unwrap();
    }
    assert!(dropped.try_recv().is_err());
    let stopped = Instant::now();
    dropped.recv().await.unwrap();
    assert!(stopped.elapsed() >= SHORT / 2, "{:?}", stopped.elapsed());
}

#[tokio::test]
async fn a_client_that_closes_its_half_has_left() {
    use tokio::io::AsyncWriteExt;
    let (mut dropped, agent) = watched(false);
    let server = Running::start(agent, |_| {}).await;
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    client.chunk().await.unwrap();
    client.socket.shutdown().await.unwrap();
    dropped.recv().await.unwrap();
    closed(&mut client).await;
}

#[tokio::test]
async fn stopping_closes_what_waits_and_ends_what_runs() {
    // P-11
    let server = Running::start(waits, |_| {}).await;
    let mut silent = server.connect().await;
    let mut half = server.connect().await;
    half.send(HALF_A_HEAD).await;
    let mut idle = server.connect().await;
    healthy(&mut idle).await;
    let mut run = server.connect().await;
    run.post(INPUT).await;
    run.head().await;
    let mut said = String::new();
    while !said.contains("Hel") {
        said += &run.chunk().await.unwrap();
    }
    let mut sending = server.connect().await;
    sending.send(HEAD.replace("\r\n\r\n", "\r\nexpect: 100-continue\r\n\r\n")).await;
    assert!(sending.head().await.contains("100 Continue"));

    let (address, began) = (server.address, Instant::now());
    let stopped = server.stop();
    let told = async {
        let (status, body) = sending.refusal().await;
        let code = &body["error"]["code"];
        assert_eq!((status.as_str(), code), ("503", &json!(codes::SHUTTING_DOWN)));
        said += &run.stream().await;
        for client in [&mut silent, &mut half, &mut idle, &mut run, &mut sending] {
            closed(client).await;
        }
    };
    let (cut_off, ()) = tokio::join!(stopped, told);
    assert_eq!(cut_off, 0);
    assert!(began.elapsed() < ServerLimits::default().shutdown_grace / 2, "{:?}", began.elapsed());
    let last = events(&said).pop().unwrap();
    assert_eq!(last["outcome"], json!({ "type": "cancelled" }));
    TcpStream::connect(address).await.unwrap_err();
}

#[tokio::test]
async fn stopping_cuts_off_what_does_not_end() {
    let (mut dropped, agent) = watched(true);
    let server = Running::start(agent, |limits| limits.shutdown_grace = SHORT).await;
    // It never reads.
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    let began = Instant::now();
    assert_eq!(server.stop().await, 1);
    assert!(began.elapsed() >= SHORT);
    dropped.recv().await.unwrap();
}

#[tokio::test]
async fn a_service_that_panics_loses_its_connection_alone() {
    let peer = async |request: Request| {
        let PeerAddr(address) = request.extensions().get().unwrap();
        address.to_string()
    };
    let app = router(greeter)
        .route("/health", get(async || "well"))
        .route("/peer", get(peer))
        .route("/panic", get(async || -> () { panic!("no answer") }));
    let server =
        Running::serve(app, CancellationToken::new(), |limits| limits.connections = 2).await;
    for _ in 0..3 {
        let mut client = server.connect().await;
        client.send("GET /panic HTTP/1.1\r\nhost: x\r\n\r\n").await;
        closed(&mut client).await;
    }
    let mut client = server.connect().await;
    healthy(&mut client).await;
    let address = client.socket.local_addr().unwrap().to_string();
    client.send("GET /peer HTTP/1.1\r\nhost: x\r\n\r\n").await;
    client.head().await;
    assert_eq!(client.exactly(address.len()).await, address);
}

#[tokio::test]
async fn what_is_no_http_1_is_refused() {
    let server = Running::start(greeter, |_| {}).await;
    for bytes in [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET\r\n\r\n",
    ] {
        let mut client = server.connect().await;
        client.send(bytes).await;
        let mut answer = Vec::new();
        let _ = client.socket.read_to_end(&mut answer).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
    // Requests that come at once are answered in order.
    let mut client = server.connect().await;
    client.send(HEALTH.repeat(100)).await;
    for _ in 0..100 {
        assert!(client.head().await.starts_with("HTTP/1.1 200 "));
        assert_eq!(client.exactly(4).await, "well");
    }
}
