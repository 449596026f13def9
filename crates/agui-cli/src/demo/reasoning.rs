//! `reasoning`: a span, a message in it, an opaque artefact, an answer.

use agui_agent::{AgentResult, Run};

use super::speech::{pause, pieces, say};

const THOUGHT: &str = "Someone wants to see me think. I weigh the question, find no question in \
    it, and decide to say so.";

/// Stands for what a provider would encrypt; clients keep it and send it back (C-59).
const ARTEFACT: &str = "ZGVtbyByZWFzb25pbmc=";

pub(super) async fn show(run: &Run) -> AgentResult {
    let span = run.reasoning().await?;
    let mut thought = span.message().await?;
    for piece in pieces(THOUGHT) {
        thought.push(piece).await?;
        pause().await;
    }
    thought.encrypted_value(ARTEFACT).await?;
    thought.end().await?;
    span.end().await?;
    say(run, "I have thought about it: there was nothing to think about.").await?;
    Ok(())
}
