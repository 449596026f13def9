//! `steps`: three steps, two of which overlap.

use agui_agent::{AgentResult, Run};

use super::speech::{pause, say};

pub(super) async fn show(run: &Run) -> AgentResult {
    let plan = run.step("plan").await?;
    pause().await;
    let gather = run.step("gather").await?;
    pause().await;
    plan.end().await?;
    pause().await;
    gather.end().await?;
    let answer = run.step("answer").await?;
    say(run, "I planned, gathered while I still planned, and this is the answer.").await?;
    answer.end().await?;
    Ok(())
}
