//! `custom`: an event of the application's own, and one of a provider's own.

use agui_agent::{AgentResult, Run};
use serde_json::json;

use super::speech::say;

pub(super) async fn show(run: &Run) -> AgentResult {
    run.custom("demo.greeting", &json!({ "hello": "world" })).await?;
    run.raw(&json!({ "provider": "agui", "model": "demo", "native": true })).await?;
    say(run, "I sent an event of my own and one as a provider would.").await?;
    Ok(())
}
