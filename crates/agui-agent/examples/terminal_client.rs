//! A conversation with any agent, in the terminal. Ctrl-C stops the answer, not the program.
//!
//! ```sh
//! cargo run -p agui-cli -- serve
//! cargo run -p agui-agent --example terminal_client -- http://127.0.0.1:4100/agents/demo
//! ```

use std::error::Error;
use std::io;

use agui_agent::HttpAgent;
use agui_agent::session::{Session, Update};
use agui_stream::fold::Change;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("the agent's URL is the one argument")?;
    let mut session = Session::new(HttpAgent::new(url)?);
    chat(&mut session, BufReader::new(tokio::io::stdin()), tokio::io::stdout()).await?;
    Ok(())
}

/// Sends each line, and writes what the agent answers while it comes.
pub(crate) async fn chat(
    session: &mut Session,
    input: impl AsyncBufRead + Unpin,
    mut out: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let mut lines = input.lines();
    loop {
        out.write_all(b"> ").await?;
        out.flush().await?;
        let Some(line) = lines.next_line().await? else { return Ok(()) };
        let mut turn = session.send(line);
        loop {
            let update = tokio::select! {
                update = turn.next() => update,
                _ = tokio::signal::ctrl_c() => {
                    turn.cancel();
                    continue;
                }
            };
            let Some(update) = update else { break };
            if let Some(text) = shown(&turn, &update) {
                out.write_all(text.as_bytes()).await?;
                out.flush().await?;
            }
        }
        let ended = match turn.finish().await {
            Ok(finished) if finished.is_completed() => "\n".to_owned(),
            Ok(finished) => format!("\n({finished})\n"),
            Err(error) => format!("\n({})\n", chain(&error)),
        };
        out.write_all(ended.as_bytes()).await?;
    }
}

/// What is written of an update.
fn shown(session: &Session, update: &Update) -> Option<String> {
    Some(match update {
        Update::Change(change @ Change::TextAppended { .. }) => session.appended(change)?.into(),
        Update::Change(Change::TextEnded { .. }) => "\n".into(),
        Update::Change(Change::ToolCallEnded { tool_call, .. }) => {
            let (_, call) = session.messages().find_call(tool_call.as_str())?;
            format!("[{} {}]\n", call.function.name, call.function.arguments)
        }
        Update::Change(Change::StateReplaced | Change::StatePatched { .. }) => {
            format!("[state {}]\n", session.state())
        }
        Update::Warning(warning) => format!("[warning: {warning}]\n"),
        _ => return None,
    })
}

/// An error and what caused it.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
