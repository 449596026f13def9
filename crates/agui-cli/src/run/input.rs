//! What is asked, put together from the arguments.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use agui_types::json::Value;
use agui_types::message::UserMessage;
use agui_types::{Interrupt, Json, Message, ToJson};

use crate::args::RunArgs;
use crate::failure::Failure;

/// What to send, and what is known beside it.
pub(super) struct Asked {
    /// The run input. What it holds is judged later.
    pub(super) input: Json,
    /// The interrupts that the thread has open; `None` where nobody said.
    pub(super) open_interrupts: Option<Vec<Interrupt>>,
}

/// The members of a result file that the next run continues with.
const CONTINUED: [&str; 5] = ["threadId", "messages", "state", "resume", OPEN_INTERRUPTS];

const OPEN_INTERRUPTS: &str = "openInterrupts";

/// Fails where a file cannot be read or holds no JSON.
pub(super) fn assemble(args: &RunArgs) -> Result<Asked, Failure> {
    let mut input = match &args.input {
        Some(path) => parse(&read(path)?, &format!("the input in {}", path.display()))?,
        None => Value::Object(Default::default()),
    };
    let Value::Object(members) = &mut input else {
        return Err(Failure::usage("the input is no JSON object")
            .hint("it has to be a RunAgentInput: {\"messages\": [...], ...}"));
    };
    if ["ending", "exitCode", "newMessages"].iter().all(|name| members.contains_key(*name)) {
        members.retain(|name, _| CONTINUED.contains(&name.as_str()));
    }
    let open_interrupts =
        members.shift_remove(OPEN_INTERRUPTS).as_ref().map(interrupts).transpose()?;
    if let Some(thread) = &args.thread {
        members.insert("threadId".into(), Value::String(thread.clone()));
    }
    if let Some(state) = &args.state {
        members.insert("state".into(), state_of(state)?);
    }
    if let Some(text) = &args.message {
        let message = Message::from(UserMessage::new(new_id(), text.as_str()));
        let message = parse(&message.to_json(), "the message")?;
        let messages = members.entry("messages".into()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(messages) = messages {
            messages.push(message);
        }
    }
    Ok(Asked { input: complete(input), open_interrupts })
}

/// The input with the ids it lacks, and with every member that receivers of the 0.x line insist on.
pub(super) fn complete(mut input: Value) -> Json {
    if let Value::Object(members) = &mut input {
        for id in ["threadId", "runId"] {
            members.entry(id.into()).or_insert_with(|| Value::String(new_id()));
        }
        for list in ["messages", "tools", "context"] {
            members.entry(list.into()).or_insert_with(|| Value::Array(Vec::new()));
        }
        for object in ["state", "forwardedProps"] {
            members.entry(object.into()).or_insert_with(|| Value::Object(Default::default()));
        }
    }
    input.to_json()
}

fn interrupts(list: &Value) -> Result<Vec<Interrupt>, Failure> {
    list.to_json().decode().map_err(|error| {
        Failure::usage(format!("the input's {OPEN_INTERRUPTS} are no interrupts"))
            .because(error)
            .hint("take them from the result file of the run that asked")
    })
}

/// `JSON`, or `@FILE`.
fn state_of(argument: &str) -> Result<Value, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => parse(&read(Path::new(path))?, &format!("the state in {path}")),
        None => parse(argument, "the --state").map_err(|failure| {
            failure.hint("give JSON such as '{\"count\": 1}', or @FILE to read it from a file")
        }),
    }
}

fn parse(text: &str, what: &str) -> Result<Value, Failure> {
    // Some editors put a mark at the beginning of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Value::parse(text).map_err(|error| Failure::usage(format!("{what} is not JSON")).because(error))
}

/// A file's text, or that of standard input for `-`.
fn read(path: &Path) -> Result<String, Failure> {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(path)
    };
    text.map_err(|error| {
        Failure::usage(format!("{} cannot be read", path.display())).because(error)
    })
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
