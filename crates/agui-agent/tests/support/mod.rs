//! Peers on sockets that answer byte for byte what a test says.
#![allow(dead_code)]

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub(crate) const STARTED: &str =
    "data: {\"type\":\"RUN_STARTED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
pub(crate) const FINISHED: &str =
    "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\"}\n\n";
pub(crate) const OK: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A peer that takes one connection after another, reads one request from each, answers as the list
/// says and closes it. Gives the requests it got, once the list is at its end.
pub(crate) async fn peer<B: AsRef<[u8]> + Send + 'static>(
    answers: Vec<B>,
) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/agent", listener.local_addr().unwrap());
    let served = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut socket, _) = listener.accept().await.unwrap();
            requests.push(read_request(&mut socket).await);
            // The client may let go at any time.
            let _ = socket.write_all(answer.as_ref()).await;
            let _ = socket.shutdown().await;
        }
        requests
    });
    (url, served)
}

/// A peer that reads one request, answers with this much of an answer, and then waits until the
/// client has closed its end.
pub(crate) async fn silent_peer(answer: String) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let closed = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        socket.write_all(answer.as_bytes()).await.unwrap();
        let _ = socket.read(&mut [0; 1]).await;
    });
    (url, closed)
}

/// Waits for what has to come, and no longer than a slow machine may take.
pub(crate) async fn soon<T>(task: JoinHandle<T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), task).await.unwrap().unwrap()
}

pub(crate) async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return String::from_utf8(request).unwrap();
            }
        }
        assert_ne!(socket.read_buf(&mut request).await.unwrap(), 0, "the request was cut off");
    }
}

/// The value of a header of a request.
pub(crate) fn header<'a>(request: &'a str, name: &str) -> Option<&'a str> {
    let head = request.split_once("\r\n\r\n").unwrap().0;
    head.lines()
        .filter_map(|line| line.split_once(": "))
        .find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
}
