//! An agent that asks before it does something, and does it in the next run, if it may.
//!
//! `cargo run -p agui-agent --example approval`
#![allow(clippy::print_stdout, unreachable_pub)]

use std::time::Duration;

use agui_agent::emitter::{Answer, expires_in};
use agui_agent::{Agent, AgentResult, BoxError, Run, RunContext};
use agui_types::message::UserMessage;
use agui_types::{
    Event, Interrupt, JsonObject, ResumeEntry, ResumeStatus, RunAgentInput, RunFinishedOutcome,
};
use futures_util::StreamExt;
use serde::Deserialize;

#[derive(Deserialize)]
struct Verdict {
    approved: bool,
}

/// The same id in each run: the answer may reach another process than the one that asked.
const DELETE: &str = "delete-report";

async fn careful(run: Run) -> AgentResult {
    match run.answer_as::<Verdict>(DELETE)? {
        Some(Answer::Resolved(Verdict { approved: true })) => {
            run.say("The report is deleted.").await?;
        }
        Some(_) => {
            run.say("Then the report stays.").await?;
        }
        None => {
            let schema = r#"{"type":"object","properties":{"approved":{"type":"boolean"}}}"#;
            let question = Interrupt::new(DELETE, "approval")
                .message("Delete the report?")
                .response_schema(JsonObject::parse(schema)?)
                .expires_at(expires_in(Duration::from_secs(600)));
            run.interrupt(question)?;
        }
    }
    Ok(())
}

/// What the agent asks or says in one run.
async fn run(name: &str, resume: Vec<ResumeEntry>) -> Result<String, BoxError> {
    let ask = UserMessage::new("u1", "Delete the report.");
    let input = RunAgentInput::new("thread", name, vec![ask.into()]).resume(resume);
    let mut events = careful.run(input, RunContext::new());
    let mut said = String::new();
    while let Some(event) = events.next().await {
        match event?.value {
            Event::TextMessageContent(content) => said.push_str(&content.delta),
            Event::RunFinished(finished) => {
                if let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished.outcome {
                    said.push_str(outcome.interrupts[0].message.as_deref().unwrap_or_default());
                }
            }
            _ => {}
        }
    }
    Ok(said)
}

/// The question, and what follows a yes and a refusal.
pub async fn example() -> Result<Vec<String>, BoxError> {
    let yes = ResumeEntry::new(DELETE, ResumeStatus::Resolved)
        .payload(serde_json::json!({ "approved": true }));
    let no = ResumeEntry::new(DELETE, ResumeStatus::Cancelled);
    Ok(vec![
        run("first", vec![]).await?,
        run("approved", vec![yes]).await?,
        run("refused", vec![no]).await?,
    ])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    for said in example().await? {
        println!("{said}");
    }
    Ok(())
}
