//! Agents behind a URL that hang, break off or flood: their runs end, and say why.

use serde_json::{Value, json};

use crate::support::{Server, fresh_path, signal};
use crate::upstream::Upstream;
use crate::viewer::{Shown, Viewer};
use crate::{resident, soak};

/// How much more memory the server may need while an agent floods it, in MiB: one frame at its limit
/// of 10 MiB, read, parsed and written, and what the allocator keeps of that.
const MORE_MEMORY: u64 = 150;

struct Fixture {
    server: Server,
    upstream: Upstream,
}

impl Fixture {
    fn start() -> Self {
        let upstream = Upstream::start();
        let file = fresh_path("agents.sqlite");
        let journal = ["--journal", file.to_str().unwrap()];
        let agent = upstream.named("upstream");
        let server = Server::start(&[&journal[..], &["--agent", &agent]].concat());
        Self { server, upstream }
    }

    /// The same, where the agent may be silent for only so long.
    fn impatient(idle: &str) -> Self {
        let upstream = Upstream::start();
        let (file, url) = (fresh_path("agents.sqlite"), upstream.url());
        let agent = format!(
            "[agents.upstream]\nkind = \"http\"\nurl = \"{url}\"\nidle-timeout = \"{idle}\"\n"
        );
        let server = Server::configured(&agent, &[], &["--journal", file.to_str().unwrap()]);
        Self { server, upstream }
    }

    fn run(&self, thread: &str, said: &str) -> Viewer {
        let viewer = Viewer::run(&self.server.address, "upstream", thread, "r1", said).unwrap();
        assert_eq!(viewer.status(), 200);
        viewer
    }

    /// Stops the run of a thread; whether there was one to stop.
    fn stop(&self, thread: &str) -> Value {
        let head = format!("POST /api/copilotkit/agent/upstream/stop/{thread} HTTP/1.1");
        let (_, body) = self.server.request(&head, "");
        serde_json::from_str::<Value>(&body).unwrap()["stopped"].clone()
    }

    /// What is left of a run that was told to stop; it ends as cancelled, which front ends without
    /// versions know as finished.
    fn stopped(&self, thread: &str, mut viewer: Viewer) {
        assert_eq!(self.stop(thread), json!(true), "{thread}");
        let rest = viewer.rest().unwrap();
        assert!(rest.last().unwrap().is("RUN_FINISHED"), "{thread}: {:?}", rest.last());
        self.usable(thread);
    }

    /// The thread takes another run.
    fn usable(&self, thread: &str) {
        let mut viewer =
            Viewer::run(&self.server.address, "upstream", thread, "r2", "say 2 4").unwrap();
        assert_eq!(viewer.status(), 200, "{thread}");
        assert!(viewer.rest().unwrap().last().unwrap().is("RUN_FINISHED"), "{thread}");
    }

    fn resident(&self) -> Option<u64> {
        resident(self.server.child.id())
    }
}

/// The code and the message of the `RUN_ERROR` at the end.
fn failure(events: &[Shown]) -> (String, String) {
    let last = events.last().expect("some event");
    assert!(last.is("RUN_ERROR"), "{}", last.text.get(..200).unwrap_or(&last.text));
    let last = last.json();
    let text = |name: &str| last[name].as_str().unwrap_or_default().to_owned();
    (text("code"), text("message"))
}

#[test]
fn an_agent_that_hangs_can_be_stopped() {
    let fixture = Fixture::start();
    let mut viewer = fixture.run("hang", "hang");
    while !viewer.next().unwrap().unwrap().is("TEXT_MESSAGE_CONTENT") {}
    fixture.stopped("hang", viewer);
    // Nothing was seen of this one, so nothing says that it has begun but that it can be stopped.
    let viewer = fixture.run("silent", "silent");
    fixture.stopped("silent", viewer);
    // It was asked for, so nothing is wrong.
    signal(&fixture.server.child, "TERM");
    let (code, told) = fixture.server.wait();
    assert_eq!(code, Some(0));
    let wrong = |line: &&String| line.contains("ERROR") || line.contains("WARN");
    assert_eq!(told.iter().find(wrong), None);
}

/// Nobody asks for it; comments are a sign of life, so that one that thinks is waited for.
#[test]
fn an_agent_that_is_silent_for_too_long_has_failed() {
    let fixture = Fixture::impatient("1s");
    let mut thinking = fixture.run("thinking", "thinking");
    while !thinking.next().unwrap().unwrap().is("TEXT_MESSAGE_START") {}
    // Each of them is silent for as long as the other one sends nothing but comments.
    for said in ["hang", "silent"] {
        let (code, message) = failure(&fixture.run(said, said).rest().unwrap());
        let expected = ("INCOMPLETE_STREAM", "the agent has sent nothing for 1s");
        assert_eq!((&*code, &*message), expected, "{said}");
        fixture.usable(said);
    }
    fixture.upstream.open();
    assert!(thinking.rest().unwrap().last().unwrap().is("RUN_FINISHED"));
    // At the plain endpoint as well.
    let input = json!({"threadId": "t", "runId": "r", "messages": [
        {"id": "m", "role": "user", "content": "silent"}]});
    let head = "POST /agents/upstream HTTP/1.1\r\ncontent-type: application/json";
    let (_, body) = fixture.server.request(head, &input.to_string());
    assert!(body.contains("RUN_ERROR") && body.contains("sent nothing for 1s"), "{body}");
}

#[test]
fn an_agent_that_breaks_off_has_failed() {
    let fixture = Fixture::start();
    for how in ["reset", "cut"] {
        let events = fixture.run(how, how).rest().unwrap();
        let (code, message) = failure(&events);
        assert_eq!(code, "INCOMPLETE_STREAM", "{how}: {message}");
        // What it had said is there, and its message is closed.
        assert!(events.iter().any(|event| event.text.contains("\"delta\":\"word\"")), "{how}");
        assert!(events[events.len() - 2].is("TEXT_MESSAGE_END"), "{how}");
        fixture.usable(how);
    }
}

#[test]
fn an_agent_that_sends_what_is_too_large_has_failed() {
    let fixture = Fixture::start();
    let before = fixture.resident();
    for said in ["frame 20000000", "line"] {
        let thread = said.replace(' ', "-");
        let (code, message) = failure(&fixture.run(&thread, said).rest().unwrap());
        assert_eq!(code, "INCOMPLETE_STREAM", "{said}: {message}");
        assert_eq!(message, "the agent's answer cannot be read", "{said}");
        // What exactly is for whoever runs the server.
        fixture.server.wait_for("_bytes = 10485760");
        fixture.usable(&thread);
    }
    // A large one within the limit is taken.
    let mut viewer = fixture.run("large", "frame 9000000");
    while viewer.next().unwrap().unwrap().text.len() < 9_000_000 {}
    fixture.stopped("large", viewer);
    bounded(before, fixture.resident());
}

/// Tiny events without an end are written as they come, and nothing of them stays in memory but the
/// text that they are.
#[test]
fn an_agent_that_floods_can_be_stopped() {
    let fixture = Fixture::start();
    let before = fixture.resident();
    let events = if soak().is_some() { 900_000 } else { 50_000 };
    let mut viewer = fixture.run("flood", "endless 1");
    for _ in 0..events {
        viewer.next().unwrap().unwrap();
    }
    fixture.stopped("flood", viewer);
    bounded(before, fixture.resident());
}

/// The same where nobody looks.
#[test]
fn an_agent_that_floods_nobody_can_be_stopped() {
    let fixture = Fixture::start();
    let mut viewer = fixture.run("flood", "endless 1");
    viewer.next().unwrap().unwrap();
    viewer.leave();
    // Somebody else comes, looks for a while, and stops it.
    let mut viewer = Viewer::connect(&fixture.server.address, "flood").unwrap();
    for _ in 0..10_000 {
        viewer.next().unwrap().unwrap();
    }
    fixture.stopped("flood", viewer);
}

fn bounded(before: Option<u64>, after: Option<u64>) {
    if let (Some(before), Some(after)) = (before, after) {
        assert!(after < before + MORE_MEMORY, "{before} MiB before, {after} MiB after");
    }
}
