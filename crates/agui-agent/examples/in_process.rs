//! An agent and its application in one program: no HTTP, and the same verdicts as over it.
//!
//! `cargo run -p agui-agent --example in_process`
#![allow(clippy::print_stdout, unreachable_pub)]

use agui_agent::{AgentResult, BoxError, Delivered, Run, RunContext, deliver};
use agui_stream::fold::{Applied, Conversation};
use agui_types::RunAgentInput;
use agui_types::message::UserMessage;
use futures_util::StreamExt;

async fn echo(run: Run) -> AgentResult {
    let step = run.step("listening").await?;
    let heard = run.prompt().unwrap_or_default().into_owned();
    step.end().await?;
    run.say(format!("You said: {heard}")).await?;
    Ok(())
}

/// The conversation after one run: each message's role, and how the run ended.
pub async fn example() -> Result<(Vec<String>, String), BoxError> {
    let input = RunAgentInput::new("t", "r", vec![UserMessage::new("u1", "Hello?").into()]);
    let mut conversation = Conversation::from_input(&input)?;
    let mut applied = Applied::default();
    let mut delivery = deliver(&echo, input, RunContext::new());
    while let Some(delivered) = delivery.next().await {
        match delivered? {
            Delivered::Event(event) => conversation.apply(&event, &mut applied),
            Delivered::Warning(warning) => println!("{warning}"),
        }
    }
    let roles = conversation.messages().iter().map(|message| message.tag().to_owned()).collect();
    let ending = conversation.ending().map(|ending| ending.to_string());
    Ok((roles, ending.unwrap_or_default()))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let (roles, ending) = example().await?;
    println!("{} ({ending})", roles.join(", "));
    Ok(())
}
