//! A conversation with an agent of a runtime, in the terminal: what the thread holds is shown first.
//! Ctrl-C stops the run, for everybody who watches it.
//!
//! ```sh
//! cargo run -p agui-cli -- serve
//! cargo run -p agui-agent --example runtime_client -- http://127.0.0.1:4100/api/copilotkit default thread-1
//! ```

use std::error::Error;
use std::io;

use agui_agent::runtime::{RuntimeAgent, RuntimeClient};
use agui_agent::session::{Finished, Session, SessionError, Update};
use agui_stream::fold::Change;
use agui_types::Message;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the runtime's URL is the first argument")?;
    let runtime = RuntimeClient::new(url)?;
    let Some(id) = arguments.next() else {
        for (id, agent) in &runtime.info().await?.agents {
            println!("{id}: {}", agent.description);
        }
        return Ok(());
    };
    let agent = runtime.agent(id);
    let mut session = Session::new(agent.clone());
    if let Some(thread) = arguments.next() {
        session = session.with_thread_id(thread);
    }
    chat(&agent, session, BufReader::new(tokio::io::stdin()), tokio::io::stdout()).await
}

/// Shows the thread, then sends each line, and writes what the agent answers while it comes.
pub(crate) async fn chat(
    agent: &RuntimeAgent,
    mut session: Session,
    input: impl AsyncBufRead + Unpin,
    mut out: impl AsyncWrite + Unpin,
) -> Result<(), Box<dyn Error>> {
    let _ = session.connect().finish().await?;
    for message in session.messages().iter() {
        let line = match message {
            Message::User(message) => format!("> {}\n", message.content.text()),
            Message::Assistant(message) => {
                format!("{}\n", message.content.as_deref().unwrap_or_default())
            }
            _ => continue,
        };
        out.write_all(line.as_bytes()).await?;
    }
    let mut lines = input.lines();
    loop {
        out.write_all(b"> ").await?;
        out.flush().await?;
        let Some(line) = lines.next_line().await? else { return Ok(()) };
        let finished = answer(agent, &mut session, line, &mut out).await?;
        let ended = match finished {
            Ok(finished) if finished.is_completed() => "\n".to_owned(),
            Ok(finished) => format!("\n({finished})\n"),
            // Such as that the thread is busy with somebody else's run.
            Err(SessionError::NoStream(error)) => format!("({error})\n"),
            Err(error) => return Err(error.into()),
        };
        out.write_all(ended.as_bytes()).await?;
    }
}

async fn answer(
    agent: &RuntimeAgent,
    session: &mut Session,
    line: String,
    out: &mut (impl AsyncWrite + Unpin),
) -> io::Result<Result<Finished, SessionError>> {
    let mut turn = session.send(line);
    loop {
        let update = tokio::select! {
            update = turn.next() => update,
            _ = tokio::signal::ctrl_c() => {
                // The run ends on its own stream, as cancelled.
                if let Err(error) = agent.stop(turn.thread_id().as_str(), None).await {
                    out.write_all(format!("({error})").as_bytes()).await?;
                }
                continue;
            }
        };
        let Some(update) = update else { break };
        if let Update::Change(change @ Change::TextAppended { .. }) = update {
            out.write_all(turn.appended(&change).unwrap_or_default().as_bytes()).await?;
            out.flush().await?;
        }
    }
    Ok(turn.finish().await)
}
