//! A session with an agent behind a URL: what to do a line on standard input, what came of it a line
//! on standard output.
//!
//! It offers one tool with a handler, `ask_person`, and one that the lines have to answer,
//! `ask_later`.

use std::io::{BufRead, Write};

use agui_agent::session::{self, FrontendTool, Session, ToolOutput, Turn, Update};
use agui_agent::{BoxError, HttpAgent};
use agui_stream::fold::Change;
use agui_types::{Interrupt, Json, Message, TokenUsage, ToolCallId};
use anyhow::Context;
use serde::{Deserialize, Serialize};

pub(crate) async fn play(url: &str) -> anyhow::Result<()> {
    let mut session =
        Session::new(HttpAgent::new(url)?).with_tool(ask_person()?).with_tool(ask_later()?);
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let step: Step = serde_json::from_str(&line).with_context(|| format!("step {line}"))?;
        let turn = step.begin(&mut session)?;
        let outcome = follow(turn).await;
        serde_json::to_writer(&mut out, &outcome.of(&session))?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Step {
    /// Says something.
    Say(String),
    /// Answers every open interrupt with this payload.
    Resume(Json),
    /// Answers every pending call with this, and goes on.
    Answer(String),
    /// Sets the state, and says something.
    SetState { state: Json, say: String },
}

impl Step {
    fn begin(self, session: &mut Session) -> anyhow::Result<Turn<'_>> {
        Ok(match self {
            Self::Say(text) => session.send(text),
            Self::Resume(payload) => {
                let open = session.open_interrupts().iter();
                let answers: Result<Vec<_>, _> =
                    open.map(|interrupt| session::resolve(interrupt, &payload)).collect();
                session.resume(answers?)
            }
            Self::Answer(text) => {
                let pending: Vec<ToolCallId> =
                    session.pending_tool_calls().map(|(_, call)| call.id.clone()).collect();
                for call in &pending {
                    anyhow::ensure!(session.answer(call, text.clone()), "{call} waits");
                }
                session.run()
            }
            Self::SetState { state, say } => {
                session.set_state(&state).map_err(|error| anyhow::anyhow!(error))?;
                session.send(say)
            }
        })
    }
}

/// What a turn told, and what it came to.
#[derive(Default)]
struct Followed {
    texts: Vec<usize>,
    tools: Vec<String>,
    warnings: Vec<String>,
    ending: String,
    error: Option<String>,
    runs: u32,
}

async fn follow(mut turn: Turn<'_>) -> Followed {
    let mut followed = Followed::default();
    while let Some(update) = turn.next().await {
        match update {
            Update::Change(Change::TextAppended { bytes, .. }) => followed.texts.push(bytes),
            Update::ToolFinished { tool_call, error, .. } => {
                let how = error.unwrap_or_else(|| "answered".into());
                followed.tools.push(format!("{tool_call}: {how}"));
            }
            Update::Warning(warning) => followed.warnings.push(warning.to_string()),
            _ => {}
        }
    }
    match turn.finish().await {
        Ok(finished) => {
            followed.ending = finished.ending.to_string();
            followed.error = finished.failure.map(|failure| failure.to_string());
            followed.runs = finished.runs;
        }
        Err(error) => {
            followed.ending = error.class().into();
            followed.error = Some(format!("{:#}", anyhow::Error::new(error)));
        }
    }
    followed
}

impl Followed {
    fn of(self, session: &Session) -> Outcome<'_> {
        Outcome {
            ending: self.ending,
            error: self.error,
            runs: self.runs,
            texts: self.texts,
            tools: self.tools,
            warnings: self.warnings,
            messages: session.messages().to_vec(),
            state: session.state().to_json(),
            open_interrupts: session.open_interrupts(),
            pending_tool_calls: session.pending_tool_calls().map(|(_, call)| &call.id).collect(),
            usage: session.usage(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'s> {
    ending: String,
    error: Option<String>,
    /// How many runs the turn took.
    runs: u32,
    /// By how many bytes a text grew each time.
    texts: Vec<usize>,
    /// What became of the front end's tools.
    tools: Vec<String>,
    warnings: Vec<String>,
    messages: Vec<Message>,
    state: Json,
    open_interrupts: &'s [Interrupt],
    pending_tool_calls: Vec<&'s ToolCallId>,
    usage: &'s [TokenUsage],
}

#[derive(Deserialize)]
struct Question {
    question: String,
}

fn ask_person() -> anyhow::Result<FrontendTool> {
    let answer = |asked: Question, _| async move {
        Ok::<_, BoxError>(ToolOutput::from(format!("Who asks {:?}?", asked.question)))
    };
    let tool = FrontendTool::new("ask_person", "Asks the person in front of the screen.", answer);
    Ok(tool.parameters(question()?))
}

fn ask_later() -> anyhow::Result<FrontendTool> {
    let tool = FrontendTool::without_handler("ask_later", "Asks somebody who is not there yet.");
    Ok(tool.parameters(question()?))
}

fn question() -> anyhow::Result<Json> {
    let schema = r#"{"type":"object","properties":{"question":{"type":"string"}}}"#;
    Ok(Json::parse(schema)?)
}
