//! Approvals on the client's side: the agent stops to ask, a person answers, the agent goes on.
//!
//! ```sh
//! cargo run -p agui-cli -- serve
//! cargo run -p agui-agent --example client_approval -- http://127.0.0.1:4100/agents/demo approval
//! ```

use std::error::Error;
use std::io::Write;

use agui_agent::HttpAgent;
use agui_agent::session::{Finished, Session, SessionError, decline, resolve};
use agui_stream::Ending;
use agui_types::{Interrupt, ResumeEntry};
use serde_json::json;

#[tokio::main]
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the agent's URL is the first argument")?;
    let said = arguments.next().ok_or("what to say is the second argument")?;
    let mut session = Session::new(HttpAgent::new(url)?);
    let finished = converse(&mut session, said, ask_in_terminal).await?;
    for message in session.messages().iter() {
        println!("{}: {message:?}", message.tag());
    }
    println!("{finished}");
    Ok(())
}

/// What a person says to a question.
pub(crate) enum Answer {
    Yes,
    No,
    /// Closes it without an answer.
    Neither,
}

/// Says something, and has every question that comes of it answered, until none is left.
pub(crate) async fn converse(
    session: &mut Session,
    said: String,
    ask: impl Fn(&Interrupt) -> Answer,
) -> Result<Finished, SessionError> {
    let mut finished = session.send(said).finish().await?;
    while finished.ending == Ending::Interrupted {
        // All of them at once: a run that leaves one unanswered is refused before it is sent.
        let answers: Vec<ResumeEntry> = session
            .open_interrupts()
            .iter()
            .map(|interrupt| match ask(interrupt) {
                Answer::Yes => approved(interrupt, true),
                Answer::No => approved(interrupt, false),
                Answer::Neither => decline(interrupt),
            })
            .collect();
        finished = session.resume(answers).finish().await?;
    }
    Ok(finished)
}

fn approved(interrupt: &Interrupt, approved: bool) -> ResumeEntry {
    // A value like this can always be written; a question that could not be answered is given up.
    resolve(interrupt, &json!({ "approved": approved })).unwrap_or_else(|_| decline(interrupt))
}

#[allow(clippy::print_stdout)]
fn ask_in_terminal(interrupt: &Interrupt) -> Answer {
    print!("{} [y/n] ", interrupt.message.as_deref().unwrap_or(&interrupt.reason));
    let mut line = String::new();
    let read = std::io::stdout().flush().and_then(|()| std::io::stdin().read_line(&mut line));
    match (read, line.trim()) {
        (Ok(_), "y" | "yes") => Answer::Yes,
        (Ok(_), "n" | "no") => Answer::No,
        _ => Answer::Neither,
    }
}
