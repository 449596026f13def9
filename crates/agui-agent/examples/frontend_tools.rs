//! An agent that calls a tool of the front end: one run makes the call and ends, the application
//! answers it, the next run goes on.
//!
//! `cargo run -p agui-agent --example frontend_tools`
#![allow(clippy::print_stdout, unreachable_pub)]

use agui_agent::{AgentResult, BoxError, Delivered, Run, RunContext, deliver};
use agui_stream::fold::{Applied, Conversation};
use agui_types::message::{ToolMessage, UserMessage};
use agui_types::{Message, RunAgentInput, Tool};
use futures_util::StreamExt;

async fn painter(run: Run) -> AgentResult {
    if let Some(answer) = run.new_tool_messages().next() {
        match &answer.error {
            Some(error) => run.say(format!("No colour: {error}.")).await?,
            None => run.say(format!("It will be {}.", answer.content.text())).await?,
        };
        return Ok(());
    }
    let offered = ["teal", "coral"];
    run.call_frontend_tool("pick_colour", &serde_json::json!({ "from": offered })).await?;
    Ok(())
}

/// One run on what was said so far.
async fn turn(name: &str, conversation: &mut Conversation) -> Result<(), BoxError> {
    let messages: Vec<Message> = conversation.messages().iter().cloned().collect();
    let tool = Tool::new("pick_colour", "Has the user pick a colour.");
    let input = RunAgentInput::new("thread", name, messages).tools(vec![tool]);
    let mut delivery = deliver(&painter, input, RunContext::new());
    let mut applied = Applied::default();
    while let Some(delivered) = delivery.next().await {
        if let Delivered::Event(event) = delivered? {
            conversation.apply(&event, &mut applied);
        }
    }
    Ok(())
}

/// What the agent says in the end.
pub async fn example() -> Result<String, BoxError> {
    let ask = UserMessage::new("u1", "Paint the door.");
    let input = RunAgentInput::new("thread", "first", vec![ask.into()]);
    let mut conversation = Conversation::from_input(&input)?;
    turn("first", &mut conversation).await?;

    // The application's part: run the tool, answer each call that waits.
    let waiting: Vec<_> = conversation.pending_tool_calls().cloned().collect();
    for (at, call) in waiting.into_iter().enumerate() {
        conversation.push(ToolMessage::new(format!("t{at}"), "teal", call).into());
    }
    turn("second", &mut conversation).await?;
    match conversation.messages().iter().last() {
        Some(Message::Assistant(message)) => Ok(message.content.clone().unwrap_or_default()),
        _ => Err("the agent said nothing".into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    println!("{}", example().await?);
    Ok(())
}
