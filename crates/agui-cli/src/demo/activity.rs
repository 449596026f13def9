//! `activity`: a message that shows progress and is patched as it goes.

use agui_agent::{AgentResult, Run};
use agui_types::{Json, PatchOp};
use serde_json::json;

use super::speech::{pause, say};

const HITS: [&str; 3] = ["The protocol", "The events", "The demo agent"];

pub(super) async fn show(run: &Run) -> AgentResult {
    let mut search = run.activity("SEARCH", &json!({ "query": "agui", "hits": [] })).await?;
    for title in HITS {
        pause().await;
        let value = Json::from(json!({ "title": title }));
        let hit = PatchOp::Add { path: "/hits/-".parse()?, value };
        search.patch([hit.into()]).await?;
    }
    say(run, "The search has found three things.").await?;
    Ok(())
}
