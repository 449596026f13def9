//! `state`: a snapshot of the application's state with a member of the agent's own, then patches.

use agui_agent::{AgentResult, BoxError, Run};
use agui_types::{Json, JsonObject, JsonPatch, PatchOp};
use serde_json::json;

use super::speech::{pause, say};

pub(super) async fn show(run: &Run) -> AgentResult {
    // P-48: what the application holds is restated, so that the patches have a known baseline. A
    // state that is no object has no room for a member, and is replaced.
    let held = run.input().state.clone().and_then(|state| JsonObject::try_from(state).ok());
    let mut state = held.unwrap_or_else(JsonObject::empty);
    let demo = JsonObject::encode(&json!({ "demo": { "progress": 0, "log": [] } }))?;
    state.merge(&demo);
    run.state_snapshot(&state).await?;

    for (progress, line) in
        [(25, "read the request"), (50, "made a plan"), (75, "did the work"), (100, "done")]
    {
        pause().await;
        run.state_delta(progressed(progress, line)?).await?;
    }
    say(run, "The shared state went from 0 to 100.").await?;
    Ok(())
}

fn progressed(progress: i64, line: &str) -> Result<JsonPatch, BoxError> {
    let replace =
        PatchOp::Replace { path: "/demo/progress".parse()?, value: Json::encode(&progress)? };
    let append = PatchOp::Add { path: "/demo/log/-".parse()?, value: Json::encode(line)? };
    Ok([replace.into(), append.into()].into())
}
