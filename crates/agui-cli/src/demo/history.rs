//! `history`: the whole conversation, restated.

use agui_agent::{AgentResult, Run};
use agui_types::Message;
use agui_types::message::AssistantMessage;

pub(super) async fn show(run: &Run) -> AgentResult {
    let held = &run.input().messages;
    // P-16: a message of a kind the protocol does not describe is not sent on.
    let mut messages: Vec<Message> =
        held.iter().filter(|held| !matches!(held, Message::Unknown(_))).cloned().collect();
    let count = messages.len();
    let noun = if count == 1 { "message" } else { "messages" };
    let answer = AssistantMessage::new(uuid::Uuid::now_v7().to_string())
        .content(format!("This conversation had {count} {noun} before this one."));
    messages.push(answer.into());
    run.messages_snapshot(messages).await?;
    Ok(())
}
