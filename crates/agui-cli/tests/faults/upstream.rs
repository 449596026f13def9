//! An agent behind a URL that does to its connection what the user tells it to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use rustix::net::sockopt::set_socket_linger;
use serde_json::{Value, json};

use crate::support::{STREAM, read_request, write_chunk};

/// The agent, for as long as this value lives.
pub(crate) struct Upstream {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    gate: Arc<Gate>,
    accepting: Option<JoinHandle<()>>,
}

/// What the word `gated` waits for.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stopped, gate) = (Arc::new(AtomicBool::new(false)), Arc::new(Gate::default()));
        let (ended, waiting) = (Arc::clone(&stopped), Arc::clone(&gate));
        let accepting = std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if ended.load(Ordering::Acquire) {
                    return;
                }
                let gate = Arc::clone(&waiting);
                // It ends with its connection, and whoever asked may be killed at any time.
                std::thread::spawn(move || drop(answer(socket, &gate)));
            }
        });
        Self { address, stopped, gate, accepting: Some(accepting) }
    }

    /// The agent as an argument of `agui serve`.
    pub(crate) fn named(&self, name: &str) -> String {
        format!("{name}={}", self.url())
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Lets the word `gated` go on.
    pub(crate) fn open(&self) {
        *self.gate.open.lock().unwrap() = true;
        self.gate.opened.notify_all();
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.open();
        self.stopped.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
        self.accepting.take().unwrap().join().unwrap();
    }
}

/// What is between two comments.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Does what the last message says:
///
/// | words | what |
/// | --- | --- |
/// | `say N BYTES` | N deltas of so many bytes, and a proper end |
/// | `gated N BYTES` | the same behind the gate: before it, the run has begun |
/// | `silent` | takes the request and never answers |
/// | `thinking` | begins, sends comments for as long as the gate is closed, and a proper end |
/// | `hang` | begins, says a word, and then nothing |
/// | `reset` | begins, says a word, and resets the connection in the middle of a frame |
/// | `cut` | the same, but closes it |
/// | `frame BYTES` | one event that is so large |
/// | `line` | a line that never ends |
/// | `endless BYTES` | deltas of so many bytes for as long as they are taken |
fn answer(mut socket: TcpStream, gate: &Gate) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    let input = read_request(&mut socket)?;
    let said = input["messages"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let said = said["content"].as_str().unwrap_or_default().to_owned();
    let mut words = said.split(' ');
    let word = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(1);
    if word == "silent" {
        return until_closed(&mut socket);
    }
    let (thread, run) = (&input["threadId"], &input["runId"]);
    let message = format!("m-{}", run.as_str().unwrap_or_default());
    let delta = |text: &str| {
        frame(&json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text}))
    };
    let begin = [
        frame(&json!({"type": "RUN_STARTED", "threadId": thread, "runId": run})),
        frame(&json!({"type": "TEXT_MESSAGE_START", "messageId": message, "role": "assistant"})),
    ];
    let end = [
        frame(&json!({"type": "TEXT_MESSAGE_END", "messageId": message})),
        frame(&json!({"type": "RUN_FINISHED", "threadId": thread, "runId": run})),
    ];
    socket.write_all(STREAM.as_bytes())?;
    write_chunk(&mut socket, begin.concat().as_bytes())?;
    match word {
        "say" | "gated" => {
            let (count, bytes) = (number(), number());
            if word == "gated" {
                let open = gate.open.lock().unwrap();
                drop(gate.opened.wait_while(open, |open| !*open).unwrap());
            }
            let text = "x".repeat(bytes);
            for at in 0..count {
                write_chunk(&mut socket, delta(&format!("{at} {text}")).as_bytes())?;
            }
            write_chunk(&mut socket, end.concat().as_bytes())?;
            socket.write_all(b"0\r\n\r\n")
        }
        "thinking" => {
            let mut open = gate.open.lock().unwrap();
            while !*open {
                write_chunk(&mut socket, b": thinking\n\n")?;
                open = gate.opened.wait_timeout(open, PAUSE).unwrap().0;
            }
            drop(open);
            write_chunk(&mut socket, end.concat().as_bytes())?;
            socket.write_all(b"0\r\n\r\n")
        }
        "hang" => {
            write_chunk(&mut socket, delta("word").as_bytes())?;
            until_closed(&mut socket)
        }
        "reset" | "cut" => {
            write_chunk(&mut socket, delta("word").as_bytes())?;
            write_chunk(&mut socket, b"data: {\"type\":\"TEXT_ME")?;
            if word == "reset" {
                set_socket_linger(&socket, Some(std::time::Duration::ZERO))?;
            }
            Ok(())
        }
        "frame" => {
            write_chunk(&mut socket, delta(&"x".repeat(number())).as_bytes())?;
            until_closed(&mut socket)
        }
        "line" => {
            write_chunk(&mut socket, b"data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"delta\":\"")?;
            let piece = "x".repeat(64 * 1024);
            loop {
                write_chunk(&mut socket, piece.as_bytes())?;
            }
        }
        "endless" => {
            let piece = delta(&"x".repeat(number())).repeat(64);
            loop {
                write_chunk(&mut socket, piece.as_bytes())?;
            }
        }
        _ => Ok(()),
    }
}

fn frame(event: &Value) -> String {
    format!("data: {event}\n\n")
}

fn until_closed(socket: &mut TcpStream) -> std::io::Result<()> {
    while socket.read(&mut [0; 64])? > 0 {}
    Ok(())
}
