//! Tools on the client's side: the agent calls them, this program carries them out, and the agent
//! goes on with the answers.
//!
//! ```sh
//! cargo run -p agui-agent --features schemars --example client_tools -- URL 'Note that I need milk'
//! ```

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agui_agent::session::{FrontendTool, Session, ToolOutput, Update};
use agui_agent::{Agent, HttpAgent};
use schemars::JsonSchema;
use serde::Deserialize;

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the agent's URL is the first argument")?;
    let said = arguments.next().ok_or("what to say is the second argument")?;
    let notes = Notes::default();
    let mut session = with_notes(HttpAgent::new(url)?, &notes);
    let mut turn = session.send(said);
    while let Some(update) = turn.next().await {
        match update {
            Update::Change(change) => print!("{}", turn.appended(&change).unwrap_or_default()),
            Update::ToolStarted { name, .. } => println!("[{name} ..."),
            Update::ToolFinished { error, .. } => {
                println!("... {}]", error.as_deref().unwrap_or("done"));
            }
            _ => {}
        }
    }
    let finished = turn.finish().await?;
    println!("\n{finished} after {} runs; notes: {:?}", finished.runs, notes.all());
    Ok(())
}

/// What the tools work on.
#[derive(Clone, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, text: String) -> usize {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        notes.push(text);
        notes.len()
    }
}

#[derive(Deserialize, JsonSchema)]
struct NewNote {
    /// What to note, in one line.
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

/// A conversation with an agent that may read and add notes.
pub(crate) fn with_notes(agent: impl Agent, notes: &Notes) -> Session {
    let (kept, read) = (notes.clone(), notes.clone());
    let add = FrontendTool::typed("add_note", "Adds a note", move |note: NewNote, _| {
        let notes = kept.clone();
        async move {
            // What the model writes is checked like anything from outside.
            if note.text.trim().is_empty() || note.text.len() > 200 {
                return Err("a note has from 1 to 200 bytes".into());
            }
            Ok(format!("noted as number {}", notes.add(note.text)))
        }
    });
    let list = FrontendTool::typed("list_notes", "Lists all notes", move |_: NoArguments, _| {
        let notes = read.clone();
        async move { ToolOutput::json(&notes.all()) }
    });
    Session::new(agent)
        .with_tool(add.timeout(Duration::from_secs(5)))
        .with_tool(list.timeout(Duration::from_secs(5)))
        .with_most_follow_ups(10)
}
