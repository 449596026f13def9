//! A session as a process: one turn a line on standard input, what the conversation is after it a
//! line on standard output. For `interop/node/conversation.test.mjs`, which holds the same
//! conversation with the published client.
//!
//! The one argument is the agent's URL. The tool `add` is carried out here.
#![forbid(unsafe_code)]

use std::io::{BufRead, Write};

use agui_agent::HttpAgent;
use agui_agent::session::{Finished, FrontendTool, Request, Session, SessionError};
use agui_types::message::UserMessage;
use agui_types::{Interrupt, Json, Message, MessageId, ResumeEntry, TokenUsage};
use anyhow::Context;
use serde::{Deserialize, Serialize};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let url = std::env::args().nth(1).context("the agent's URL is the one argument")?;
    let parameters =
        r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}"#;
    let add = FrontendTool::new("add", "Adds two numbers", |sum: Sum, _| async move {
        if sum.a < 0 || sum.b < 0 {
            return Err("only what is not negative can be added".into());
        }
        Ok((sum.a + sum.b).to_string())
    });
    let mut session = Session::new(HttpAgent::new(url)?)
        .with_thread_id("thread-1")
        .with_tool(add.parameters(Json::parse(parameters)?));
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let turn: Turn = serde_json::from_str(&line?)?;
        let mut request = Request::new();
        if let Some(message) = turn.message {
            request = request.message(message);
        }
        if let Some(run_id) = turn.run_id {
            request = request.run_id(run_id);
        }
        if let Some(answers) = turn.resume {
            request = request.resume(answers);
        }
        let ended = session.start(request).finish().await;
        serde_json::to_writer(&mut out, &Outcome::of(ended, &session))?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    message: Option<UserMessage>,
    run_id: Option<String>,
    resume: Option<Vec<ResumeEntry>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    /// How it ended; `null` where it has no ending.
    ending: Option<&'static str>,
    /// The class of what went wrong.
    class: Option<&'static str>,
    messages: Vec<Message>,
    state: Json,
    open_interrupts: Vec<Interrupt>,
    new_messages: Vec<MessageId>,
    usage: Vec<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    runs: u32,
}

impl Outcome {
    fn of(ended: Result<Finished, SessionError>, session: &Session) -> Self {
        let (finished, error) = match ended {
            Ok(finished) => (Some(finished), None),
            Err(error) => (None, Some(error)),
        };
        let cut_off = finished.as_ref().and_then(|finished| finished.cut_off.as_ref());
        Self {
            ending: finished.as_ref().map(|finished| finished.ending.as_str()),
            class: error.as_ref().map(SessionError::class).or(cut_off.map(|error| error.class())),
            messages: session.messages().to_vec(),
            state: session.state().to_json(),
            open_interrupts: session.open_interrupts().to_vec(),
            usage: session.usage().to_vec(),
            runs: finished.as_ref().map_or(0, |finished| finished.runs),
            new_messages: finished.as_ref().map_or_else(Vec::new, |it| it.new_messages.clone()),
            result: finished.and_then(|finished| finished.result),
        }
    }
}
