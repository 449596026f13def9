//! A client that sends and reads byte for byte.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// One connection, byte for byte.
pub struct Client<S> {
    pub socket: S,
    pub received: Vec<u8>,
    lingering: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub fn new(socket: S) -> Self {
        Self { socket, received: Vec::new(), lingering: false }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.socket.write_all(bytes.as_ref()).await.unwrap();
    }

    pub async fn post(&mut self, body: &str) {
        let length = body.len();
        self.send(format!(
            "POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Reads up to and with `end`; `None` where the connection ends first.
    pub async fn until(&mut self, end: &str) -> Option<String> {
        loop {
            let end = end.as_bytes();
            if let Some(at) = self.received.windows(end.len()).position(|bytes| bytes == end) {
                let text = self.received.drain(..at + end.len()).collect();
                return Some(String::from_utf8(text).unwrap());
            }
            if self.socket.read_buf(&mut self.received).await.unwrap() == 0 {
                return None;
            }
        }
    }

    pub async fn head(&mut self) -> String {
        self.until("\r\n\r\n").await.expect("a head")
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<String> {
        let length = self.until("\r\n").await.expect("a chunk");
        let length = usize::from_str_radix(length.trim_end(), 16).unwrap();
        let mut chunk = self.exactly(length + 2).await;
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }

    pub async fn stream(&mut self) -> String {
        let mut body = String::new();
        while let Some(chunk) = self.chunk().await {
            body.push_str(&chunk);
        }
        body
    }

    /// The status and body of a refusal.
    pub async fn refusal(&mut self) -> (String, Value) {
        let head = self.head().await;
        assert!(head.contains("\r\ncontent-type: application/json\r\n"), "{head}");
        let status = head.split(' ').nth(1).unwrap().to_owned();
        let body = match head.lines().find_map(|line| line.strip_prefix("content-length: ")) {
            Some(length) => self.exactly(length.parse().unwrap()).await,
            None => self.chunk().await.unwrap(),
        };
        if head.contains("\r\ntransfer-encoding: chunked\r\n") {
            self.lingering = true;
        }
        (status, serde_json::from_str(&body).unwrap())
    }

    /// The end of a refusal that came while the body was still on its way.
    pub async fn refusal_ends(&mut self) {
        if std::mem::take(&mut self.lingering) {
            assert_eq!(self.chunk().await, None);
        }
    }

    pub async fn exactly(&mut self, length: usize) -> String {
        while self.received.len() < length {
            assert_ne!(self.socket.read_buf(&mut self.received).await.unwrap(), 0, "cut off");
        }
        String::from_utf8(self.received.drain(..length).collect()).unwrap()
    }
}
