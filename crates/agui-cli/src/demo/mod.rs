//! The demo agent: every feature of the protocol behind one word, without a model and without a
//! key. `docs/demo-agent.md` is its contract.

mod activity;
mod approval;
mod endings;
mod frontend;
mod history;
mod passthrough;
mod reasoning;
mod speech;
mod state;
mod steps;
mod subagents;
#[cfg(test)]
mod tests;

mod tools;

use std::borrow::Cow;

use agui_agent::{Agent, AgentExt, AgentResult, Run};
use agui_types::capabilities::{
    AgentCapabilities, HumanInTheLoopCapabilities, IdentityCapabilities, MultiAgentCapabilities,
    ReasoningCapabilities, StateCapabilities, ToolsCapabilities, TransportCapabilities,
};
use agui_types::{JsonObject, Message, RunAgentInput};

use speech::say;

/// The words it knows, with what each shows. The web page and `help` list them from here.
const WORDS: [(&str, &str); 14] = [
    ("help", "lists these words"),
    ("reasoning", "thinks aloud, then answers"),
    ("tools", "calls a tool twice at the same time"),
    ("frontend", "calls the first tool you offer"),
    ("state", "shares state and patches it"),
    ("steps", "works in steps that overlap"),
    ("activity", "shows a search whose hits arrive one by one"),
    ("subagents", "has others work at the same time"),
    ("approval", "asks before it deletes a file"),
    ("history", "restates the conversation"),
    ("custom", "sends an application event and a raw one"),
    ("result", "returns a value and counts words as tokens"),
    ("error", "fails in the middle of a sentence"),
    ("slow", "answers a word a second: slow 10"),
];

/// The demo agent, with its capabilities declared.
pub(crate) fn agent() -> impl Agent {
    demo.with_capabilities(capabilities())
}

async fn demo(run: Run) -> AgentResult {
    if approval::take_up(&run).await? {
        return Ok(());
    }
    if let Some(Message::Tool(answer)) = run.input().messages.last() {
        return frontend::repeat(&run, answer).await;
    }
    let said = last_user_text(run.input()).into_owned();
    let mut words = said.split_whitespace();
    match words.next().unwrap_or_default() {
        "help" => help(&run).await,
        "reasoning" => reasoning::show(&run).await,
        "tools" => tools::show(&run).await,
        "frontend" => frontend::show(&run).await,
        "state" => state::show(&run).await,
        "steps" => steps::show(&run).await,
        "activity" => activity::show(&run).await,
        "subagents" => subagents::show(&run).await,
        "approval" => approval::show(&run).await,
        "history" => history::show(&run).await,
        "custom" => passthrough::show(&run).await,
        "result" => endings::result(&run).await,
        "error" => endings::error(&run).await,
        "slow" => endings::slow(&run, words.next()).await,
        _ => echo(&run, &said).await,
    }
}

async fn help(run: &Run) -> AgentResult {
    let mut text = String::from("Say one of these words:\n");
    for (word, shows) in WORDS {
        text.push_str(&format!("\n- {word}: {shows}"));
    }
    say(run, &text).await?;
    Ok(())
}

async fn echo(run: &Run, said: &str) -> AgentResult {
    let text = if said.trim().is_empty() {
        "You said nothing I can read. Say help for what I can show.".into()
    } else {
        format!("You said: {said}\n\nSay help for what I can show.")
    };
    say(run, &text).await?;
    Ok(())
}

/// What the user said last; parts other than text are left out (P-79).
fn last_user_text(input: &RunAgentInput) -> Cow<'_, str> {
    let last = input.messages.iter().rev().find_map(|message| match message {
        Message::User(message) => Some(message.content.text()),
        _ => None,
    });
    last.unwrap_or_default()
}

/// What it declares, all of which holds (P-91).
fn capabilities() -> AgentCapabilities {
    let words: Vec<_> = WORDS
        .iter()
        .map(|(word, shows)| serde_json::json!({ "word": word, "shows": shows }))
        .collect();
    let mut custom = serde_json::Map::new();
    custom.insert("words".into(), words.into());
    AgentCapabilities::new()
        .identity(
            IdentityCapabilities::new()
                .name("demo")
                .kind("agui-demo")
                .description("Shows every feature of the protocol, one word at a time.")
                .version(env!("CARGO_PKG_VERSION")),
        )
        .transport(TransportCapabilities::new().streaming(true).http_binary(true).websocket(true))
        .tools(
            ToolsCapabilities::new()
                .supported(true)
                .items(vec![tools::get_weather(), approval::delete_file()])
                .parallel_calls(true)
                .client_provided(true),
        )
        .state(StateCapabilities::new().snapshots(true).deltas(true))
        .multi_agent(
            MultiAgentCapabilities::new()
                .supported(true)
                .delegation(true)
                .subagents(subagents::declared()),
        )
        .reasoning(ReasoningCapabilities::new().supported(true).streaming(true).encrypted(true))
        .human_in_the_loop(
            HumanInTheLoopCapabilities::new().supported(true).approvals(true).interrupts(true),
        )
        .custom(JsonObject::from(custom))
}
