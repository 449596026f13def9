//! The real binary, and peers that answer byte for byte what a test says. What is started ends with
//! the value that stands for it.

#![allow(dead_code)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use serde_json::Value;

/// A command with the binary, in an environment that says nothing to it.
pub(crate) fn agui(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agui"));
    undisturbed(&mut command).args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The environment says nothing to the command.
pub(crate) fn undisturbed(command: &mut Command) -> &mut Command {
    for setting in ["AGUI_LOG", "AGUI_LISTEN", "NO_COLOR", "AGUI_CONFIG", "AGUI_LOG_FORMAT"] {
        command.env_remove(setting);
    }
    // Loopback is reached directly.
    for proxy in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(proxy);
    }
    // No files in the source tree, and none that two servers would share.
    command.env("AGUI_JOURNAL", "memory:")
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    /// What `--result` holds; `Null` where there is none.
    pub(crate) report: Value,
}

impl Ran {
    /// The events that `--json` printed.
    pub(crate) fn events(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn types(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().into()).collect()
    }
}

/// Runs a command to its end.
pub(crate) fn run(args: &[&str]) -> Ran {
    finish(agui(args).spawn().unwrap())
}

/// Runs `agui run ... --result FILE` to its end.
pub(crate) fn run_with_result(args: &[&str]) -> Ran {
    let file = fresh_path("result.json");
    let mut ran = run(&[&["run"], args, &["--result", file.to_str().unwrap()]].concat());
    ran.report = read_json(&file);
    ran
}

pub(crate) fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code().expect("ended by a signal"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        report: Value::Null,
    }
}

/// A file's JSON; `Null` where there is no file.
pub(crate) fn read_json(path: &PathBuf) -> Value {
    std::fs::read_to_string(path).map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
}

/// A path in a folder of its own.
pub(crate) fn fresh_path(name: &str) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("agui-{}-{count}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// A folder of its own with one file in it.
pub(crate) fn fresh_folder_with(name: &str, text: &str) -> PathBuf {
    let path = fresh_path(name);
    std::fs::write(&path, text).unwrap();
    path.parent().unwrap().to_owned()
}

/// Sends a signal, such as `INT`, to one process.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
}

/// `agui serve` on a port of the system's choice.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) address: String,
    /// The demo agent's URL.
    pub(crate) demo: String,
    stderr: Receiver<String>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_on("127.0.0.1:0", args)
    }

    /// The same on another address.
    pub(crate) fn start_on(address: &str, args: &[&str]) -> Self {
        Self::of(agui(&[&["serve", "--listen", address], args].concat()))
    }

    /// The same with a configuration in a file, and variables of the environment.
    pub(crate) fn configured(file: &str, variables: &[(&str, &str)], args: &[&str]) -> Self {
        let mut command = agui(&[&["serve", "--listen", "127.0.0.1:0"], args].concat());
        command.current_dir(fresh_folder_with("agui.toml", file));
        Self::of(command.envs(variables.iter().copied()))
    }

    /// Has a shell script, whose arguments are the command, start it.
    pub(crate) fn start_with(script: &str, args: &[&str]) -> Self {
        let command = [env!("CARGO_BIN_EXE_agui"), "serve", "--listen", "127.0.0.1:0"];
        let mut shell = Command::new("sh");
        undisturbed(&mut shell).args(["-c", script, "sh"]).args(command).args(args);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::of(shell)
    }

    fn of(mut command: impl std::borrow::BorrowMut<Command>) -> Self {
        let command = command.borrow_mut();
        let mut child = command.spawn().unwrap();
        let (lines, stderr) = channel();
        let from = BufReader::new(child.stderr.take().unwrap());
        let reader = std::thread::spawn(move || {
            for line in from.lines().map_while(Result::ok) {
                let _ = lines.send(line);
            }
        });
        let address = loop {
            let line = stderr.recv().expect("it ended before it listened");
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.to_owned();
            }
        };
        let demo = format!("http://{address}/agents/demo");
        Self { child, address, demo, stderr, reader: Some(reader) }
    }

    /// Waits for a line on standard error that contains a text.
    pub(crate) fn wait_for(&self, text: &str) -> String {
        loop {
            let line = self.stderr.recv().expect("it ended without saying so");
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Waits for its end; the exit code, and what is left of standard error.
    pub(crate) fn wait(mut self) -> (Option<i32>, Vec<String>) {
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        (code, self.stderr.try_iter().collect())
    }

    /// One request, by hand: head and body of the answer. A chunked body comes as it is.
    pub(crate) fn request(&self, head: &str, body: &str) -> (String, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let request = format!(
            "{head}\r\nhost: {}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_lowercase(), body.into())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a peer does with the connection, step by step.
pub(crate) enum Step {
    /// Writes these bytes in one piece, as one chunk of the body.
    Chunk(Vec<u8>),
    /// Writes these bytes as they are.
    Raw(Vec<u8>),
    /// Ends the body.
    End,
    /// Waits until the client closes the connection.
    Hold,
}

/// The head of an event stream.
pub(crate) const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// A server for one request.
pub(crate) struct Peer {
    pub(crate) url: String,
    request: JoinHandle<Option<Value>>,
    stop: Sender<()>,
}

impl Peer {
    /// A peer that streams these frames' data, all in one write, and ends.
    pub(crate) fn streaming(frames: &[&str]) -> Self {
        let frames: String = frames.iter().map(|frame| format!("data: {frame}\n\n")).collect();
        Self::new(vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into()), Step::End])
    }

    pub(crate) fn new(steps: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = channel();
        let request = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().ok()?;
            if stopped.try_recv().is_ok() {
                return None;
            }
            socket.set_nodelay(true).unwrap();
            let request = read_request(&mut socket).unwrap();
            for step in steps {
                // The client may let go at any time.
                let _ = match step {
                    Step::Raw(bytes) => socket.write_all(&bytes),
                    Step::Chunk(bytes) => write_chunk(&mut socket, &bytes),
                    Step::End => socket.write_all(b"0\r\n\r\n"),
                    Step::Hold => socket.read(&mut [0; 64]).map(drop),
                };
            }
            let _ = socket.shutdown(Shutdown::Both);
            Some(request)
        });
        Self { url: format!("http://{address}/"), request, stop }
    }

    /// The body of the request; `None` where there was none.
    pub(crate) fn request(self) -> Option<Value> {
        // Should nobody have come, this is who comes last.
        let _ = self.stop.send(());
        let address = self.url.trim_start_matches("http://").trim_end_matches('/');
        let _ = TcpStream::connect(address);
        self.request.join().unwrap()
    }
}

/// Writes a chunk of a body, in one piece.
pub(crate) fn write_chunk(socket: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let head = format!("{:x}\r\n", bytes.len());
    socket.write_all(&[head.as_bytes(), bytes, b"\r\n"].concat())
}

/// The body of the request.
pub(crate) fn read_request(socket: &mut TcpStream) -> std::io::Result<Value> {
    let mut reader = BufReader::new(socket);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().map_err(std::io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    serde_json::from_slice(&body).map_err(std::io::Error::other)
}
