//! Runs over WebSockets, asked by the client of `tungstenite`.
#![cfg(all(feature = "ws", feature = "server"))]

mod common;

use std::time::Duration;

use agui_agent::{Agent, AgentResult, CancellationToken, Run};
use agui_server::{AgentService, Asked, BearerKnown, Refusal, Server, bearer_secret, codes};
use common::{INPUT, emits, started, text_start};
use futures_util::{SinkExt, StreamExt};
use http::HeaderValue;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use tower::ServiceExt;

type Socket = WebSocketStream<TcpStream>;

/// A server on a port of the system's choice, ended when dropped.
struct Running {
    address: String,
    shutdown: CancellationToken,
    task: JoinHandle<usize>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Running {
    async fn start(agent: impl Agent, change: impl FnOnce(AgentService) -> AgentService) -> Self {
        let shutdown = CancellationToken::new();
        let service = AgentService::new(agent)
            .websocket(|origin| origin == "https://app.example")
            .cancel_with(shutdown.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Server::new(listener).shutdown_with(shutdown.clone());
        let task = tokio::spawn(server.serve(change(service)));
        Self { address, shutdown, task }
    }

    async fn open(&self, headers: &[(&'static str, &'static str)]) -> Result<Socket, Error> {
        let mut request = format!("ws://{}/", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, HeaderValue::from_static(value));
        }
        let stream = TcpStream::connect(&self.address).await.unwrap();
        client_async(request, stream).await.map(|(socket, _)| socket)
    }

    async fn say(&self, message: Message) -> Socket {
        let mut socket = self.open(&[]).await.unwrap();
        socket.send(message).await.unwrap();
        socket
    }
}

/// The events up to the close frame, its code and its reason.
async fn heard(socket: &mut Socket) -> (Vec<Value>, u16, String) {
    let mut events = Vec::new();
    loop {
        match socket.next().await.expect("a close frame").unwrap() {
            Message::Text(text) => events.push(serde_json::from_str(&text).unwrap()),
            Message::Close(frame) => {
                let frame = frame.unwrap();
                return (events, frame.code.into(), frame.reason.as_str().to_owned());
            }
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

async fn greeter(run: Run) -> AgentResult {
    run.say("Hello!").await?;
    Ok(())
}

#[tokio::test]
async fn t8_each_event_is_a_text_message_and_a_close_frame_ends_them() {
    let server = Running::start(greeter, |service| service).await;
    let mut socket = server.say(INPUT.into()).await;
    let (events, code, reason) = heard(&mut socket).await;
    assert_eq!(events[2]["delta"], "Hello!");
    assert_eq!(types(&events).last(), Some(&"RUN_FINISHED"));
    assert_eq!((code, reason.as_str()), (1000, "the run has ended"));
    assert!(socket.next().await.is_none());

    // T-5: what ends badly ends honestly here too.
    let server = Running::start(emits(vec![started(), text_start("m")]), |service| service).await;
    let (events, code, _) = heard(&mut server.say(INPUT.into()).await).await;
    let ends = ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", "RUN_ERROR"];
    assert_eq!((types(&events), code), (ends.to_vec(), 1000));
    assert_eq!(events[3]["code"], codes::RUN_TRUNCATED);
}

#[tokio::test]
async fn p73_an_input_that_is_refused_begins_no_run() {
    let server = Running::start(greeter, |service| service.body_limit(100)).await;
    let long =
        |length: usize| Message::from(format!("{INPUT}{}", " ".repeat(length - INPUT.len())));
    for (message, code, reason) in [
        (Message::from("hello"), 1007, "INVALID_JSON: the body is not JSON"),
        (Message::from("{}"), 1007, "INVALID_INPUT: "),
        (Message::Binary(INPUT.as_bytes().to_vec().into()), 1003, "UNSUPPORTED_MEDIA_TYPE: "),
        (long(101), 1009, "BODY_TOO_LARGE: a message is larger than 100 bytes"),
    ] {
        let (events, found, told) = heard(&mut server.say(message).await).await;
        assert_eq!((events.len(), found), (0, code), "{told}");
        assert!(told.starts_with(reason), "{told}");
    }
    let (events, code, _) = heard(&mut server.say(long(100)).await).await;
    assert_eq!((types(&events).last(), code), (Some(&"RUN_FINISHED"), 1000));
}

#[tokio::test]
async fn a_client_that_closes_or_says_more_ends_its_run() {
    struct Watched(mpsc::UnboundedSender<()>);
    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (sender, mut dropped) = mpsc::unbounded_channel();
    let agent = move |run: Run| {
        let watched = Watched(sender.clone());
        async move {
            let _watched = watched;
            run.say("Hello!").await?;
            std::future::pending().await
        }
    };
    let server = Running::start(agent, |service| service).await;
    let begun = async || {
        let mut socket = server.say(INPUT.into()).await;
        socket.next().await.unwrap().unwrap();
        socket
    };
    let mut closing = begun().await;
    closing.close(None).await.unwrap();
    dropped.recv().await.unwrap();
    drop(begun().await);
    dropped.recv().await.unwrap();
    // P-15
    let mut talking = begun().await;
    talking.send(INPUT.into()).await.unwrap();
    assert_eq!(heard(&mut talking).await.1, 1008);
    dropped.recv().await.unwrap();
}

#[tokio::test]
async fn p11_stopping_ends_the_runs_and_closes_what_waits() {
    async fn waits(run: Run) -> AgentResult {
        run.say("Hello!").await?;
        std::future::pending().await
    }
    let server = Running::start(waits, |service| service).await;
    let mut silent = server.open(&[]).await.unwrap();
    let mut socket = server.say(INPUT.into()).await;
    socket.next().await.unwrap().unwrap();
    server.shutdown.cancel();
    let (events, code, _) = heard(&mut socket).await;
    assert_eq!(events.last().unwrap()["outcome"], json!({ "type": "cancelled" }));
    assert_eq!(code, 1000);
    assert_eq!(heard(&mut silent).await.1, 1001);
}

#[tokio::test]
async fn pages_and_people_are_let_in_who_may() {
    let agent = async |run: Run| {
        let known = run.context().extensions.get::<BearerKnown>();
        run.say(format!("{known:?}")).await?;
        Ok(())
    };
    let server = Running::start(agent, |service| service.authorize(bearer_secret("s"))).await;
    let known = ("authorization", "Bearer s");
    let refused = async |headers: &[(&'static str, &'static str)]| match server
        .open(headers)
        .await
        .unwrap_err()
    {
        Error::Http(response) => response.status().as_u16(),
        other => panic!("{other}"),
    };
    assert_eq!(refused(&[]).await, 401);
    assert_eq!(refused(&[known, ("origin", "https://evil.example")]).await, 403);
    assert_eq!(refused(&[known, ("sec-websocket-version", "12")]).await, 400);
    let mut socket = server.open(&[known, ("origin", "https://app.example")]).await.unwrap();
    socket.send(INPUT.into()).await.unwrap();
    assert_eq!(heard(&mut socket).await.0[2]["delta"], "Some(BearerKnown)");
}

#[tokio::test]
async fn a_silent_run_is_pinged_and_the_capabilities_tell() {
    async fn waits(run: Run) -> AgentResult {
        run.say("Hello!").await?;
        std::future::pending().await
    }
    let server =
        Running::start(waits, |service| service.keep_alive(Duration::from_millis(50))).await;
    let mut socket = server.say(INPUT.into()).await;
    loop {
        if let Message::Ping(_) = socket.next().await.unwrap().unwrap() {
            break;
        }
    }
    let service = AgentService::new(greeter).websocket(|_| false).capabilities();
    let get = http::Request::get("/").body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
    let body = service.oneshot(get).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), r#"{"transport":{"websocket":true}}"#);
}

#[tokio::test]
async fn a_run_that_is_not_permitted_does_not_begin() {
    let permit = |_, asked: Asked<'_>| {
        let thread = match asked {
            Asked::Run(input) => input.thread_id.as_str().to_owned(),
            _ => String::new(),
        };
        async move { if thread == "mine" { Ok(()) } else { Err(Refusal::forbidden()) } }
    };
    let server = Running::start(greeter, |service| service.permit(permit)).await;
    let mut input: Value = serde_json::from_str(INPUT).unwrap();
    for (thread, expected) in [("mine", 1000), ("yours", 1008)] {
        input["threadId"] = json!(thread);
        let mut socket = server.say(input.to_string().into()).await;
        let (events, code, reason) = heard(&mut socket).await;
        assert_eq!((code, events.is_empty()), (expected, expected == 1008), "{thread}: {reason}");
        assert_eq!(reason.starts_with(codes::FORBIDDEN), expected == 1008, "{reason}");
    }
}
