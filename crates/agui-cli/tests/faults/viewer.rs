//! Whoever looks at a thread, frame by frame.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

use serde_json::{Value, json};

const BASE: &str = "/api/copilotkit";

/// An answer that is read as it comes.
pub(crate) struct Viewer {
    status: u16,
    body: BufReader<Chunks>,
}

/// One event as it was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Its place in the log; empty where it has none there.
    pub(crate) position: String,
    pub(crate) text: String,
}

impl Shown {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.text.starts_with(&format!("{{\"type\":\"{kind}\""))
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is("RUN_FINISHED") || self.is("RUN_ERROR")
    }
}

impl Viewer {
    /// Begins a run.
    pub(crate) fn run(
        address: &str,
        agent: &str,
        thread: &str,
        run: &str,
        said: &str,
    ) -> std::io::Result<Self> {
        Self::of(TcpStream::connect(address)?, &format!("/agent/{agent}/run"), thread, run, said)
    }

    /// Watches a thread.
    pub(crate) fn connect(address: &str, thread: &str) -> std::io::Result<Self> {
        Self::of(TcpStream::connect(address)?, "/agent/default/connect", thread, "viewer", "")
    }

    /// Asks for something on a connection.
    pub(crate) fn of(
        mut socket: TcpStream,
        path: &str,
        thread: &str,
        run: &str,
        said: &str,
    ) -> std::io::Result<Self> {
        ask(&mut socket, path, thread, run, said)?;
        Self::taking_up(socket)
    }

    /// Reads the answer to what was asked on a connection.
    pub(crate) fn taking_up(socket: TcpStream) -> std::io::Result<Self> {
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(std::io::ErrorKind::UnexpectedEof)?;
        while line.trim_end() != "" {
            line.clear();
            reader.read_line(&mut line)?;
        }
        Ok(Self { status, body: BufReader::new(Chunks { reader, left: 0, over: status != 200 }) })
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// The next event; `None` at the end of the answer. An error where the connection breaks off.
    pub(crate) fn next(&mut self) -> std::io::Result<Option<Shown>> {
        let (mut line, mut position) = (String::new(), None);
        loop {
            line.clear();
            if self.body.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if !line.ends_with('\n') {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let text = line.trim_end_matches('\n');
            if let Some(id) = text.strip_prefix("id: ") {
                position = Some(id.to_owned());
            } else if let Some(data) = text.strip_prefix("data: ") {
                let position = position.unwrap_or_default();
                return Ok(Some(Shown { position, text: data.to_owned() }));
            }
        }
    }

    /// All events to the end.
    pub(crate) fn rest(&mut self) -> std::io::Result<Vec<Shown>> {
        let mut all = Vec::new();
        while let Some(shown) = self.next()? {
            all.push(shown);
        }
        Ok(all)
    }

    /// Leaves.
    pub(crate) fn leave(self) {
        let _ = self.body.into_inner().reader.into_inner().shutdown(Shutdown::Both);
    }
}

/// Sends a request.
pub(crate) fn ask(
    socket: &mut TcpStream,
    path: &str,
    thread: &str,
    run: &str,
    said: &str,
) -> std::io::Result<()> {
    let message = json!({"id": format!("said-{run}"), "role": "user", "content": said});
    let body = json!({
        "threadId": thread, "runId": run, "messages": [message], "tools": [], "context": [],
    })
    .to_string();
    let request = format!(
        "POST {BASE}{path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(request.as_bytes())
}

/// What is inside the chunks of a body.
struct Chunks {
    reader: BufReader<TcpStream>,
    /// How much of a chunk is still to come.
    left: usize,
    over: bool,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.over {
            return Ok(0);
        }
        if self.left == 0 {
            let mut size = String::new();
            while size.trim_end().is_empty() {
                size.clear();
                if self.reader.read_line(&mut size)? == 0 {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
            }
            self.left =
                usize::from_str_radix(size.trim_end(), 16).map_err(std::io::Error::other)?;
            if self.left == 0 {
                self.over = true;
                return Ok(0);
            }
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read;
        Ok(read)
    }
}
