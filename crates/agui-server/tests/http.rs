//! The service over real HTTP: what a socket sees that a `oneshot` does not.
#![cfg(feature = "axum")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agui_agent::middleware::{HeaderPolicy, RequestHeaders};
use agui_agent::{Agent, AgentExt, HttpAgent, Run, RunContext};
use agui_server::{AgentService, Refusal, codes, router};
use agui_types::{AgentCapabilities, FromJson, RunAgentInput};
use axum::Router;
use common::client::Client;
use common::{INPUT, Item, custom, emits, finished, raw, started, text, types};
use futures_util::{StreamExt, stream};
use http::StatusCode;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// A server on a port of the system's choice, ended when dropped.
struct Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(app: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, task }
    }

    async fn connect(&self) -> Client<TcpStream> {
        Client::new(TcpStream::connect(self.address).await.unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn greeter(run: Run) -> agui_agent::AgentResult {
    run.say("Hello!").await?;
    Ok(())
}

#[tokio::test]
async fn a_run_over_a_connection_that_stays_open_for_the_next() {
    let server = Server::start(router(greeter)).await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.post(INPUT).await;
        let head = client.head().await.to_lowercase();
        assert!(head.starts_with("http/1.1 200 ok\r\n"), "{head}");
        for header in [
            "content-type: text/event-stream",
            "cache-control: no-cache, no-transform",
            "x-accel-buffering: no",
            "vary: accept",
            "transfer-encoding: chunked",
        ] {
            assert!(head.lines().any(|line| line == header), "{header} in {head}");
        }
        assert_eq!(
            types(&client.stream().await),
            [
                "RUN_STARTED",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "RUN_FINISHED",
            ]
        );
    }
}

#[tokio::test]
async fn t12_the_head_is_sent_while_the_first_event_is_awaited() {
    let (sender, receiver) = mpsc::unbounded_channel::<agui_types::Event>();
    let receiver = std::sync::Mutex::new(Some(receiver));
    let agent = raw(move |_| {
        let mut events = receiver.lock().unwrap().take().unwrap();
        Box::pin(stream::poll_fn(move |cx| events.poll_recv(cx)).map(|event| Ok(event.into())))
    });
    let server = Server::start(router(agent)).await;
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    for event in [started(), custom("a"), finished()] {
        let name = event.type_name().to_owned();
        sender.send(event).unwrap();
        assert_eq!(types(&client.chunk().await.unwrap()), [name], "each at once");
    }
    drop(sender);
    assert_eq!(client.chunk().await, None);
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_run_drops_the_agent() {
    struct Watched(Option<oneshot::Sender<()>>);
    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.0.take().unwrap().send(());
        }
    }
    let (sender, dropped) = oneshot::channel();
    let watched = std::sync::Mutex::new(Some(Watched(Some(sender))));
    let agent = move |run: Run| {
        let watched = watched.lock().unwrap().take().unwrap();
        async move {
            let _watched = watched;
            run.say("Hello!").await?;
            std::future::pending().await
        }
    };
    let server = Server::start(router(agent)).await;
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    client.chunk().await.unwrap();
    drop(client);
    dropped.await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_while_it_sends_its_body_starts_nothing() {
    let (runs, agent) = counted();
    let server = Server::start(router(agent)).await;
    let mut client = server.connect().await;
    client.send(
        "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"thr",
    )
    .await;
    // Half a goodbye, so that what the server makes of it can be seen.
    client.socket.shutdown().await.unwrap();
    let mut answer = Vec::new();
    client.socket.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.is_empty() || answer.contains(codes::BODY_INCOMPLETE), "{answer}");
    drop(client);

    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    client.stream().await;
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

fn counted() -> (Arc<AtomicUsize>, impl Agent) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let agent = raw(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let items: [Item; 2] = [Ok(started().into()), Ok(finished().into())];
        Box::pin(stream::iter(items))
    });
    (runs, agent)
}

#[tokio::test]
async fn requests_that_start_no_run() {
    let (runs, agent) = counted();
    let server = Server::start(router(agent)).await;
    let json = "content-type: application/json\r\n";
    let mut invalid = b"{\"threadId\":\"".to_vec();
    invalid.push(0xff);
    let deep = "[".repeat(10_000);
    let wrong = r#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":7}]}"#;
    let requests: [(&str, &str, &[u8], &str, &str); 7] = [
        ("GET", json, b"", "405", codes::METHOD_NOT_ALLOWED),
        ("POST", "", INPUT.as_bytes(), "415", codes::UNSUPPORTED_MEDIA_TYPE),
        ("POST", json, b"hello", "400", codes::INVALID_JSON),
        ("POST", json, &invalid, "400", codes::INVALID_UTF8),
        ("POST", json, deep.as_bytes(), "400", codes::NESTED_TOO_DEEP),
        ("POST", json, b"{}", "422", codes::INVALID_INPUT),
        ("POST", json, wrong.as_bytes(), "422", codes::INVALID_INPUT),
    ];
    let mut client = server.connect().await;
    for (method, headers, body, status, code) in requests {
        let length = body.len();
        client
            .send(format!(
                "{method} / HTTP/1.1\r\nhost: x\r\n{headers}content-length: {length}\r\n\r\n"
            ))
            .await;
        client.send(body).await;
        let (found, body) = client.refusal().await;
        assert_eq!((found.as_str(), &body["error"]["code"]), (status, &code.into()), "{body}");
        client.refusal_ends().await;
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    // The connection is still good.
    client.post(INPUT).await;
    client.head().await;
    assert_eq!(types(&client.stream().await), ["RUN_STARTED", "RUN_FINISHED"]);
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_whether_it_was_sent_or_not() {
    let server = Server::start(router(greeter)).await;
    let too_large = ("413".to_owned(), Value::from(codes::BODY_TOO_LARGE));
    let answer = async |client: &mut Client<TcpStream>| {
        let (status, body) = client.refusal().await;
        (status, body["error"]["code"].clone())
    };
    let head = |length: &str| {
        let json = "content-type: application/json";
        format!("POST / HTTP/1.1\r\nhost: x\r\n{json}\r\n{length}\r\n\r\n")
    };
    // A client that sends nothing before it has the answer.
    let mut client = server.connect().await;
    client.send(head("content-length: 20000000")).await;
    assert_eq!(answer(&mut client).await, too_large);

    // One that sends everything before it reads, announced or in chunks, and may go on afterwards.
    let mut client = server.connect().await;
    client.send(head("content-length: 20000000")).await;
    client.send(vec![b' '; 20_000_000]).await;
    assert_eq!(answer(&mut client).await, too_large);
    client.refusal_ends().await;
    client.send(head("transfer-encoding: chunked")).await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(0x10_0000));
    for _ in 0..20 {
        client.send(&chunk).await;
    }
    client.send("0\r\n\r\n").await;
    assert_eq!(answer(&mut client).await, too_large);
    client.refusal_ends().await;
    client.post(INPUT).await;
    assert!(client.head().await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn capabilities_stand_beside_the_agent() {
    let declared = r#"{"identity":{"name":"greeter"}}"#;
    let capabilities = AgentCapabilities::from_json_exact(declared).unwrap();
    let app = Router::new()
        .nest("/agents/greeter", router(greeter.with_capabilities(capabilities)))
        .nest("/agents/silent", AgentService::new(greeter).into_router())
        .fallback(async || Refusal::new(StatusCode::NOT_FOUND, "NOT_FOUND", "nobody is here"));
    let server = Server::start(app).await;
    let mut client = server.connect().await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    client.send(get("/agents/greeter/capabilities")).await;
    let (status, body) = client.refusal().await;
    assert_eq!((status.as_str(), body.to_string().as_str()), ("200", declared));
    for (path, status, code) in [
        ("/agents/silent/capabilities", "404", codes::NO_CAPABILITIES),
        ("/agents/silent", "405", codes::METHOD_NOT_ALLOWED),
        ("/agents/nobody", "404", "NOT_FOUND"),
    ] {
        client.send(get(path)).await;
        let (found, body) = client.refusal().await;
        assert_eq!((found.as_str(), &body["error"]["code"]), (status, &code.into()), "{path}");
    }
    client.send("HEAD /agents/greeter/capabilities HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let head = client.head().await;
    assert!(head.contains(&format!("content-length: {}\r\n", declared.len())), "{head}");
}

#[tokio::test]
async fn an_agent_served_here_is_an_agent_there() {
    // Through two servers and the HTTP client between them, and back.
    let inner = Server::start(router(greeter)).await;
    let outer = HttpAgent::new(format!("http://{}/", inner.address)).unwrap();
    let outer = Server::start(router(outer)).await;
    let agent = HttpAgent::new(format!("http://{}/", outer.address)).unwrap();
    let input = RunAgentInput::from_json_exact(INPUT).unwrap();
    let events: Vec<String> = agent
        .run(input.clone(), RunContext::new())
        .map(|event| event.unwrap().value.type_name().to_owned())
        .collect()
        .await;
    assert_eq!(events.first().unwrap(), "RUN_STARTED");
    assert_eq!(events.last().unwrap(), "RUN_FINISHED");
    assert_eq!(events.len(), 5);

    // Where the inner one refuses, the outer one's run fails and says so.
    let nowhere = HttpAgent::new(format!("http://{}/nowhere", inner.address)).unwrap();
    let nowhere = Server::start(router(nowhere)).await;
    let mut client = nowhere.connect().await;
    client.post(INPUT).await;
    client.head().await;
    let body = client.stream().await;
    assert!(body.contains("the agent refused the run: HTTP 404"), "{body}");
}

#[tokio::test]
async fn only_headers_that_a_policy_lets_through_go_on() {
    async fn tells(run: Run) -> agui_agent::AgentResult {
        let headers = run.context().extensions.get::<RequestHeaders>().ok_or("no headers")?;
        for name in ["x-client", "x-both", "x-hidden", "accept"] {
            let value = headers.0.get(name).map_or("none", |value| value.to_str().unwrap());
            run.say(format!("{name}={value} ")).await?;
        }
        Ok(())
    }
    let inner = Server::start(router(tells)).await;
    let url = format!("http://{}/", inner.address);
    let configured = HttpAgent::builder(url).header("x-both", "agent").build().unwrap();
    let policy = HeaderPolicy::new().allow("x-client").allow("x-both").allow("accept");
    let outer = Server::start(router(configured.with(policy))).await;
    let client = HttpAgent::builder(format!("http://{}/", outer.address))
        .header("x-client", "client")
        .header("x-both", "client")
        .header("x-hidden", "client")
        .header("accept", "text/event-stream;q=0.9")
        .build()
        .unwrap();
    let input = RunAgentInput::from_json_exact(INPUT).unwrap();
    let said: String = client
        .run(input, RunContext::new())
        .filter_map(|event| async {
            match event.unwrap().value {
                agui_types::Event::TextMessageContent(content) => Some(content.delta),
                _ => None,
            }
        })
        .collect()
        .await;
    assert_eq!(said, "x-client=client x-both=agent x-hidden=none accept=text/event-stream ");
}

/// A listener whose connections are pipes in memory, so that how much they hold is known.
struct Pipes(mpsc::UnboundedReceiver<DuplexStream>);

impl axum::serve::Listener for Pipes {
    type Io = DuplexStream;
    type Addr = ();

    async fn accept(&mut self) -> (DuplexStream, ()) {
        match self.0.recv().await {
            Some(pipe) => (pipe, ()),
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<()> {
        Ok(())
    }
}

/// With the clock paused, this sleep is over when every task waits for something else.
async fn everything_waits() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_stalled_reader_stalls_the_agent() {
    const EVENT: usize = 10_000;
    let emitted = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&emitted);
    let agent = raw(move |_| {
        let counted = Arc::clone(&counted);
        let endless = stream::repeat_with(move || -> Item {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(text("m", &"x".repeat(EVENT)).into())
        });
        let opening: [Item; 2] = [Ok(started().into()), Ok(common::text_start("m").into())];
        Box::pin(stream::iter(opening).chain(endless))
    });
    let (connect, pipes) = mpsc::unbounded_channel();
    let server = tokio::spawn(async move {
        axum::serve(Pipes(pipes), router(agent)).await.unwrap();
    });
    let (ours, theirs) = duplex(64 * 1024);
    connect.send(theirs).unwrap();
    let mut client = Client::new(ours);
    client.post(INPUT).await;
    client.head().await;

    everything_waits().await;
    let stalled = emitted.load(Ordering::Relaxed);
    // The pipe, the connection's own buffer of some hundred kilobytes, and one chunk of ours.
    assert!(stalled * EVENT < 1024 * 1024, "{stalled} events are held");
    everything_waits().await;
    assert_eq!(emitted.load(Ordering::Relaxed), stalled);

    // As the reader goes on, so does the agent.
    let mut read = 0;
    while read < 4 * 1024 * 1024 {
        read += client.chunk().await.unwrap().len();
    }
    everything_waits().await;
    let held = emitted.load(Ordering::Relaxed) * EVENT - read;
    assert!(held < 1024 * 1024, "{held} bytes are held");
    server.abort();
}

#[tokio::test]
async fn a_raw_agent_that_ends_early_ends_honestly_over_http() {
    let server = Server::start(router(emits(vec![started(), common::text_start("m")]))).await;
    let mut client = server.connect().await;
    client.post(INPUT).await;
    client.head().await;
    assert_eq!(
        types(&client.stream().await),
        ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"]
    );
}
