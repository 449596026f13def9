//! `subagents`: two at the same time, and one that one of them started.

use agui_agent::emitter::{EmitError, Subagent};
use agui_agent::{AgentResult, Run};
use agui_types::capabilities::SubagentInfo;
use serde_json::json;

use super::speech::say;

/// The subagents, as the agent declares them.
pub(super) fn declared() -> Vec<SubagentInfo> {
    vec![
        SubagentInfo::new("researcher").description("Finds things out."),
        SubagentInfo::new("writer").description("Writes while others find things out."),
        SubagentInfo::new("fact-checker").description("Checks what the researcher found."),
    ]
}

pub(super) async fn show(run: &Run) -> AgentResult {
    let researcher = run.subagent("researcher").await?;
    let writer = run.subagent("writer").await?;
    tokio::try_join!(research(researcher), write(writer),)?;
    say(run, "Both are done, and the facts are checked.").await?;
    Ok(())
}

async fn research(researcher: Subagent) -> Result<(), EmitError> {
    say(&researcher, "I read what there is about the protocol.").await?;
    let checker = researcher.subagent("fact-checker").await?;
    say(&checker, "I checked it: there are 31 event types.").await?;
    checker.finish_with(&json!({ "checked": 1 })).await?;
    researcher.finish().await
}

async fn write(writer: Subagent) -> Result<(), EmitError> {
    say(&writer, "Meanwhile I write the introduction, in one long breath and without a break.")
        .await?;
    writer.finish().await
}
