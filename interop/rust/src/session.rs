//! A session with an agent behind a URL: one turn a line on standard input, what the conversation is
//! after it a line on standard output. For `interop/node/conversation.test.mjs`, which holds the
//! same conversation with the published client, and for `interop/pydantic.test.mjs`.

use std::io::{BufRead, Write};

use agui_agent::session::{self, Finished, FrontendTool, Request, Session, SessionError, Update};
use agui_agent::{BoxError, HttpAgent};
use agui_stream::fold::Change;
use agui_types::message::UserMessage;
use agui_types::{Interrupt, Json, Message, MessageId, ResumeEntry, TokenUsage, ToolCallId};
use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

/// Offers these of the tools below to the agent.
pub(crate) async fn play(url: &str, tools: &[&str]) -> anyhow::Result<()> {
    let mut session = Session::new(HttpAgent::new(url)?).with_thread_id("thread-1");
    for name in tools {
        session.tools().add(tool(name)?);
    }
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let turn: Turn = serde_json::from_str(&line).with_context(|| format!("turn {line}"))?;
        let outcome = turn.play(&mut session).await?;
        serde_json::to_writer(&mut out, &outcome)?;
        out.write_all(b"\n")?;
        out.flush()?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    message: Option<UserMessage>,
    run_id: Option<String>,
    resume: Option<Vec<ResumeEntry>>,
    /// The answer to every open interrupt.
    resolve: Option<Json>,
    /// The answer to every pending call.
    answer: Option<String>,
    /// Set before it begins.
    state: Option<Json>,
}

impl Turn {
    async fn play(self, session: &mut Session) -> anyhow::Result<Outcome> {
        if let Some(state) = self.state {
            session.set_state(&state).map_err(anyhow::Error::from_boxed)?;
        }
        if let Some(answer) = self.answer {
            let pending: Vec<ToolCallId> =
                session.pending_tool_calls().map(|(_, call)| call.id.clone()).collect();
            for call in &pending {
                ensure!(session.answer(call, answer.clone()), "{call} waits for its answer");
            }
        }
        let mut request = Request::new();
        if let Some(message) = self.message {
            request = request.message(message);
        }
        if let Some(run_id) = self.run_id {
            request = request.run_id(run_id);
        }
        if let Some(answers) = self.resume {
            request = request.resume(answers);
        }
        if let Some(payload) = self.resolve {
            for interrupt in session.open_interrupts() {
                request = request.resume([session::resolve(interrupt, &payload)?]);
            }
        }

        let (mut texts, mut tools, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        let mut turn = session.start(request);
        while let Some(update) = turn.next().await {
            match update {
                Update::Change(Change::TextAppended { bytes, .. }) => texts.push(bytes),
                Update::ToolFinished { tool_call, error, .. } => {
                    let how = error.unwrap_or_else(|| "answered".into());
                    tools.push(format!("{tool_call}: {how}"));
                }
                Update::Warning(warning) => warnings.push(warning.to_string()),
                _ => {}
            }
        }
        let ended = turn.finish().await;
        Ok(Outcome { texts, tools, warnings, ..Outcome::of(ended, session) })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    /// How it ended; `null` where it has no ending.
    ending: Option<&'static str>,
    /// The class of what went wrong.
    class: Option<&'static str>,
    /// What the agent said when it failed.
    failure: Option<String>,
    messages: Vec<Message>,
    state: Json,
    open_interrupts: Vec<Interrupt>,
    pending_tool_calls: Vec<ToolCallId>,
    new_messages: Vec<MessageId>,
    usage: Vec<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Json>,
    runs: u32,
    /// By how many bytes a text grew each time.
    texts: Vec<usize>,
    /// What became of the calls of tools with handlers.
    tools: Vec<String>,
    warnings: Vec<String>,
}

impl Outcome {
    fn of(ended: Result<Finished, SessionError>, session: &Session) -> Self {
        let (finished, error) = match ended {
            Ok(finished) => (Some(finished), None),
            Err(error) => (None, Some(error)),
        };
        let finished = finished.as_ref();
        let cut_off = finished.and_then(|finished| finished.cut_off.as_ref());
        let failure = finished.and_then(|finished| finished.failure.as_ref());
        let pending = session.pending_tool_calls().map(|(_, call)| call.id.clone());
        Self {
            ending: finished.map(|finished| finished.ending.as_str()),
            class: error.as_ref().map(SessionError::class).or(cut_off.map(|error| error.class())),
            failure: failure.map(ToString::to_string),
            messages: session.messages().to_vec(),
            state: session.state().to_json(),
            open_interrupts: session.open_interrupts().to_vec(),
            pending_tool_calls: pending.collect(),
            usage: session.usage().to_vec(),
            runs: finished.map_or(0, |finished| finished.runs),
            new_messages: finished.map_or_else(Vec::new, |it| it.new_messages.clone()),
            result: finished.and_then(|finished| finished.result.clone()),
            texts: Vec::new(),
            tools: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

#[derive(Deserialize)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
struct Question {
    question: String,
}

fn tool(name: &str) -> anyhow::Result<FrontendTool> {
    let question = r#"{"type":"object","properties":{"question":{"type":"string"}}}"#;
    let numbers = r#"{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}"#;
    let (tool, parameters) = match name {
        "add" => {
            let add = |sum: Sum, _| async move {
                if sum.a < 0 || sum.b < 0 {
                    return Err(BoxError::from("only what is not negative can be added"));
                }
                Ok((sum.a + sum.b).to_string())
            };
            (FrontendTool::new(name, "Adds two numbers", add), numbers)
        }
        "ask_person" => {
            let ask = |asked: Question, _| async move {
                Ok::<_, BoxError>(format!("Who asks {:?}?", asked.question))
            };
            (FrontendTool::new(name, "Asks the person in front of the screen", ask), question)
        }
        "ask_later" => (FrontendTool::without_handler(name, "Asks somebody else"), question),
        _ => bail!("there is no tool {name}"),
    };
    Ok(tool.parameters(Json::parse(parameters)?))
}
