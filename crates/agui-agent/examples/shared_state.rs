//! An agent and a front end that share a state: a recipe that the agent works on, with members of
//! the front end's that it does not touch.
//!
//! `cargo run -p agui-agent --example shared_state`
#![allow(clippy::print_stdout, unreachable_pub)]

use agui_agent::{Agent, AgentResult, BoxError, Run, RunContext};
use agui_types::message::UserMessage;
use agui_types::{Event, RunAgentInput, ToJson};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Default)]
#[serde(default)]
struct Recipe {
    title: String,
    ingredients: Vec<Ingredient>,
}

#[derive(Serialize, Deserialize)]
struct Ingredient {
    name: String,
    grams: u32,
}

async fn cook(run: Run) -> AgentResult {
    let mut recipe = run.state::<Recipe>()?;
    recipe.update(|recipe| recipe.title = "Flatbread".into()).await?;
    for (name, grams) in [("flour", 300), ("water", 180)] {
        let ingredient = Ingredient { name: name.into(), grams };
        recipe.update(|recipe| recipe.ingredients.push(ingredient)).await?;
    }
    // Twice as much: only the numbers go over the wire.
    recipe.update(|recipe| recipe.ingredients.iter_mut().for_each(|it| it.grams *= 2)).await?;
    run.say(format!("{} ingredients.", recipe.ingredients.len())).await?;
    Ok(())
}

/// What goes out as the state changes.
pub async fn example() -> Result<Vec<String>, BoxError> {
    let state = serde_json::json!({
        "title": "", "ingredients": [], "view": { "tab": "ingredients", "zoom": 1.5, "dark": true },
    });
    let ask = UserMessage::new("u1", "A recipe, please.");
    let input = RunAgentInput::new("thread", "run", vec![ask.into()]).state(state);
    let mut changes = Vec::new();
    let mut events = cook.run(input, RunContext::new());
    while let Some(event) = events.next().await {
        match event?.value {
            Event::StateDelta(delta) => changes.push(delta.delta.to_json()),
            Event::StateSnapshot(snapshot) => changes.push(snapshot.snapshot.to_string()),
            _ => {}
        }
    }
    Ok(changes)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    for change in example().await? {
        println!("{change}");
    }
    Ok(())
}
