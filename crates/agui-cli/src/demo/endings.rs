//! `result`, `error` and `slow`: how a run ends, and how long that can take.

use std::num::IntErrorKind;
use std::time::Duration;

use agui_agent::{AgentResult, Run, RunFailure};
use agui_types::{Count, Message, TokenUsage};
use serde_json::json;

use super::speech::{pause, pieces, say};

/// How many seconds `slow` takes where none are given, and at most.
const SECONDS: u64 = 10;
const MOST_SECONDS: u64 = 300;

/// Returns a value, and usage that counts words as tokens (P-85 to P-87).
pub(super) async fn result(run: &Run) -> AgentResult {
    let answer = "The answer is 42; the run returns it as a value too.";
    say(run, answer).await?;
    let asked = run.input().messages.iter().map(|message| match message {
        Message::User(message) => words(&message.content.text()),
        _ => 0,
    });
    let usage = TokenUsage::new()
        .provider("agui")
        .model("demo")
        .input_tokens(count(asked.sum()))
        .output_tokens(count(words(answer)));
    run.add_usage(usage);
    run.set_result(&json!({ "answer": 42 }))?;
    Ok(())
}

/// Fails in the middle of a text.
pub(super) async fn error(run: &Run) -> AgentResult {
    let mut message = run.text().await?;
    for piece in pieces("I was about to tell you that") {
        message.push(piece).await?;
        pause().await;
    }
    Err(RunFailure::new("the demo agent failed, as you asked").code("DEMO_ERROR").into())
}

/// Says a word a second.
pub(super) async fn slow(run: &Run, seconds: Option<&str>) -> AgentResult {
    let seconds = seconds.map_or(SECONDS, |text| match text.parse::<u64>() {
        Ok(seconds) => seconds,
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => MOST_SECONDS,
        Err(_) => SECONDS,
    });
    let mut message = run.text().await?;
    for second in 1..=seconds.min(MOST_SECONDS) {
        message.push(format!("{second} ")).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    message.push("and done.").await?;
    message.end().await?;
    Ok(())
}

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn count(words: usize) -> Count {
    u64::try_from(words).ok().and_then(Count::new).unwrap_or(Count::MAX)
}
