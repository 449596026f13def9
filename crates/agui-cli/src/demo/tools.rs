//! `tools`: two calls of one tool at the same time, answered by the agent itself.

use agui_agent::{AgentResult, Run};
use agui_types::event::ToolCallStart;
use agui_types::{Json, Tool};

use super::speech::{pause, say};

/// The tool, as the agent declares it.
pub(super) fn get_weather() -> Tool {
    let parameters = serde_json::json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    Tool::new("get_weather", "Tells the weather in a city.").parameters(Json::from(parameters))
}

pub(super) async fn show(run: &Run) -> AgentResult {
    let asking = say(run, "Let me look at the weather in two places.").await?;
    let start = || {
        let id = uuid::Uuid::now_v7().to_string();
        ToolCallStart::new(id, "get_weather").parent_message_id(&asking)
    };
    let mut paris = run.open_tool_call(start()).await?;
    let mut oslo = run.open_tool_call(start()).await?;
    for (to_paris, to_oslo) in [("{\"city\":", "{\"city\""), ("\"Pa", ":\"Os"), ("ris\"}", "lo\"}")]
    {
        paris.args(to_paris).await?;
        oslo.args(to_oslo).await?;
        pause().await;
    }
    let paris = paris.end().await?;
    let oslo = oslo.end().await?;
    run.tool_result(paris, r#"{"sky":"cloudy","celsius":18}"#).await?;
    run.tool_result(oslo, r#"{"sky":"clear","celsius":4}"#).await?;
    say(run, "It is 18 °C and cloudy in Paris, 4 °C and clear in Oslo.").await?;
    Ok(())
}
