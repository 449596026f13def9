//! The examples are started, and asked over a socket.
#![cfg(all(feature = "axum", feature = "server"))]
#![allow(dead_code, unreachable_pub)]

mod common;

#[path = "../examples/axum.rs"]
mod with_axum;
#[path = "../examples/full.rs"]
mod with_everything;
#[path = "../examples/hyper.rs"]
mod with_hyper;

use agui_agent::CancellationToken;
use common::client::Client;
use common::events;
use tokio::net::{TcpListener, TcpStream};

const INPUT: &str =
    r#"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":"you"}]}"#;

async fn listen() -> (TcpListener, Client<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (listener, Client::new(socket))
}

async fn ask(client: &mut Client<TcpStream>, path: &str, headers: &str) -> String {
    let length = INPUT.len();
    let json = "content-type: application/json";
    client
        .send(format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\n{json}\r\n{headers}content-length: {length}\r\n\r\n{INPUT}"
        ))
        .await;
    client.head().await.to_lowercase()
}

async fn said(client: &mut Client<TcpStream>) -> serde_json::Value {
    let events = events(&client.stream().await);
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
    events[2]["delta"].clone()
}

#[tokio::test]
async fn the_one_with_axum() {
    let (listener, mut client) = listen().await;
    let server = tokio::spawn(async { axum::serve(listener, with_axum::app()).await });
    assert!(ask(&mut client, "/agents/greeter", "").await.starts_with("http/1.1 200 "));
    assert_eq!(said(&mut client).await, "Hello, you!");
    server.abort();
}

#[tokio::test]
async fn the_one_with_hyper() {
    let (listener, mut client) = listen().await;
    let server = tokio::spawn(with_hyper::serve(listener));
    assert!(ask(&mut client, "/", "").await.starts_with("http/1.1 200 "));
    assert_eq!(said(&mut client).await, "Hello, you!");
    server.abort();
}

#[tokio::test]
async fn the_one_with_everything() {
    let (listener, mut client) = listen().await;
    let shutdown = CancellationToken::new();
    let server = tokio::spawn(with_everything::serve(listener, shutdown.clone()));
    let path = "/agents/greeter";
    for (headers, status) in [
        ("", "401"),
        ("authorization: Bearer nobody\r\n", "401"),
        ("authorization: Bearer token-of-a-guest\r\n", "403"),
    ] {
        let head = ask(&mut client, path, headers).await;
        assert!(head.starts_with(&format!("http/1.1 {status} ")), "{head}");
        assert_eq!(head.contains("www-authenticate: bearer"), status == "401");
        let rest = client.stream().await;
        assert!(rest.contains("\"error\""), "{rest}");
    }
    let headers = "authorization: Bearer token-of-ann\r\norigin: https://app.example\r\n";
    let head = ask(&mut client, path, headers).await;
    assert!(head.contains("access-control-allow-origin: https://app.example\r\n"), "{head}");
    assert_eq!(said(&mut client).await, "Hello, Ann!");

    // A browser asks for leave without credentials.
    client
        .send(format!(
            "OPTIONS {path} HTTP/1.1\r\nhost: x\r\norigin: https://app.example\r\n\
             access-control-request-method: POST\r\n\r\n"
        ))
        .await;
    let head = client.head().await;
    assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("authorization"), "{head}");

    shutdown.cancel();
    server.await.unwrap();
    assert_eq!(client.until("anything").await, None);
}
