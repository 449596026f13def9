//! Our runtime over one remote agent, for a comparison with the published one.

use std::io::Write;
use std::sync::Arc;

use agui_agent::{Agent, BoxFuture, EventStream, HttpAgent, RunContext};
use agui_journal::MemoryJournal;
use agui_runtime::{
    Agents, Audio, Runtime, RuntimeBuilder, SingleUser, Transcriber, TranscriptionError,
    TranscriptionErrorKind, Transport,
};
use agui_server::Server;
use agui_types::{AgentCapabilities, FromJson, RunAgentInput};
use serde_json::json;
use tokio::net::TcpListener;

/// Serves until the process ends: by path, by envelope, and by path with a transcription service.
/// The addresses are printed as one line of JSON.
pub(crate) async fn serve(agent: &str) -> anyhow::Result<()> {
    let shared = Arc::new(MemoryJournal::new());
    let of = |journal: &Arc<MemoryJournal>| -> anyhow::Result<RuntimeBuilder> {
        let builder = Runtime::builder(agents(agent)?, Arc::clone(journal) as Arc<_>);
        Ok(builder.authorize(SingleUser))
    };
    // One runtime on two mounts is two of one log.
    let rest = of(&shared)?.transport(Transport::Rest).debug_events(true).build();
    let single = of(&shared)?.transport(Transport::Single).build();
    let open = of(&Arc::new(MemoryJournal::new()))?.transcriber(Ear).build();
    let mut addresses = serde_json::Map::new();
    let mut servers = Vec::new();
    for (name, runtime) in [("rest", rest), ("single", single), ("open", open)] {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        addresses.insert(name.into(), json!(format!("http://{}", listener.local_addr()?)));
        servers.push(tokio::spawn(Server::new(listener).serve(runtime.service())));
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::Value::Object(addresses))?;
    out.flush()?;
    drop(out);
    for server in servers {
        server.await?;
    }
    Ok(())
}

fn agents(url: &str) -> anyhow::Result<Agents> {
    let mut agents = Agents::new();
    agents.add("default", HttpAgent::new(url)?)?.describe("Plays scripts");
    agents.add("capable", Capable(HttpAgent::builder(url).header("X-Own", "server").build()?))?;
    Ok(agents)
}

/// An agent that declares something.
struct Capable(HttpAgent);

impl Agent for Capable {
    fn run(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        self.0.run(input, context)
    }

    fn capabilities(&self) -> BoxFuture<'_, Option<AgentCapabilities>> {
        let declared = AgentCapabilities::from_json_exact(r#"{"tools":{"supported":true}}"#);
        Box::pin(std::future::ready(declared.ok()))
    }
}

struct Ear;

impl Transcriber for Ear {
    fn transcribe(&self, audio: Audio) -> BoxFuture<'_, Result<String, TranscriptionError>> {
        let heard = String::from_utf8_lossy(&audio.data);
        let text = if heard == "fail" {
            let kind = TranscriptionErrorKind::Provider;
            Err(TranscriptionError::new(kind, "the service is down"))
        } else {
            Ok(format!("heard {heard}"))
        };
        Box::pin(std::future::ready(text))
    }
}
