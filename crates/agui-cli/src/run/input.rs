//! What is asked, put together from the arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use agui_types::json::{MAX_DEPTH, Value};
use agui_types::message::UserMessage;
use agui_types::{Interrupt, Message, ToJson};

use super::resume;
use crate::args::RunArgs;
use crate::failure::Failure;

/// What to send, and what is known beside it.
pub(super) struct Asked {
    /// The run input. What it holds is judged later.
    pub(super) input: Value,
    /// The interrupts that the thread has open; `None` where nobody said.
    pub(super) open_interrupts: Option<Vec<Interrupt>>,
}

/// How much is read from a file or from standard input, in bytes: 64 MiB.
const MOST_READ: u64 = 64 << 20;

/// The members of a result file that the next run continues with.
const CONTINUED: [&str; 8] = [
    "threadId",
    "messages",
    "state",
    "tools",
    "context",
    "forwardedProps",
    "resume",
    OPEN_INTERRUPTS,
];

const OPEN_INTERRUPTS: &str = "openInterrupts";

/// Fails where a file cannot be read, is larger than [`MOST_READ`] or holds no JSON.
pub(super) fn assemble(args: &RunArgs) -> Result<Asked, Failure> {
    standard_input_once(args)?;
    let mut input = match &args.input {
        Some(path) => {
            let text = read(path, "--input")?;
            parse(&text, &format!("the input in {}", path.display()), "")?
        }
        None => Value::Object(Default::default()),
    };
    let Value::Object(members) = &mut input else {
        return Err(Failure::usage("the input is no JSON object")
            .hint("it has to be a RunAgentInput: {\"messages\": [...], ...}"));
    };
    if ["ending", "exitCode", "newMessages"].iter().all(|name| members.contains_key(*name)) {
        // What the run did not have is null there, and absent in an input.
        members.retain(|name, value| CONTINUED.contains(&name.as_str()) && *value != Value::Null);
    }
    let open_interrupts =
        members.shift_remove(OPEN_INTERRUPTS).as_ref().map(interrupts).transpose()?;
    if let Some(thread) = &args.thread {
        members.insert("threadId".into(), Value::String(thread.clone()));
    }
    if let Some(state) = &args.state {
        members.insert("state".into(), value_of(state, "--state", STATE_HINT)?);
    }
    for answer in &args.resume {
        let open = open_interrupts.as_deref().unwrap_or_default();
        let payload = |value: &str| value_of(value, "--resume", RESUME_HINT);
        let entry = resume::entry(answer, open, payload)?;
        let entries = members.entry("resume".into()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(entries) = entries {
            // The command line's word is the last.
            entries.retain(|other| other.get("interruptId") != entry.get("interruptId"));
            entries.push(entry);
        }
    }
    if let Some(text) = &args.message {
        let text = if text == "-" { message()? } else { text.clone() };
        let message = Message::from(UserMessage::new(new_id(), text));
        let message = parse(&message.to_json(), "the message", "")?;
        let messages = members.entry("messages".into()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(messages) = messages {
            messages.push(message);
        }
    }
    Ok(Asked { input: complete(input), open_interrupts })
}

const STATE_HINT: &str =
    "give JSON such as '{\"count\": 1}' in quotes, or @FILE to read it from a file";

const RESUME_HINT: &str = "give ID=JSON in quotes, such as 'ID={\"approved\": true}' or 'ID=\"a \
    text\"', ID=@FILE to read the answer from a file, or ID alone to cancel";

/// The input with the ids it lacks, and with every member that receivers of the 0.x line insist on.
pub(super) fn complete(mut input: Value) -> Value {
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
    input
}

fn interrupts(list: &Value) -> Result<Vec<Interrupt>, Failure> {
    list.to_json().decode().map_err(|error| {
        Failure::usage(format!("the input's {OPEN_INTERRUPTS} are no interrupts"))
            .because(error)
            .hint("take them from the result file of the run that asked")
    })
}

/// Fails where more than one argument reads standard input, which can be read once.
fn standard_input_once(args: &RunArgs) -> Result<(), Failure> {
    let mut readers = Vec::new();
    readers.extend(args.input.as_deref().filter(|path| *path == "-").map(|_| "--input"));
    readers.extend(args.state.as_deref().filter(|state| *state == "@-").map(|_| "--state"));
    readers.extend(args.resume.iter().filter(|it| it.ends_with("=@-")).map(|_| "--resume"));
    readers.extend(args.message.as_deref().filter(|text| *text == "-").map(|_| "MESSAGE"));
    match readers[..] {
        [] | [_] => Ok(()),
        [first, second, ..] => {
            Err(Failure::usage(format!("{first} and {second} both read standard input"))
                .hint("it can be read once: name a file"))
        }
    }
}

/// `JSON`, or `@FILE`.
fn value_of(argument: &str, option: &str, hint: &str) -> Result<Value, Failure> {
    match argument.strip_prefix('@') {
        Some(path) => {
            let text = read(Path::new(path), option)?;
            parse(&text, &format!("the {option} in {path}"), "")
        }
        None => parse(argument, &format!("the {option}"), hint),
    }
}

/// A message from standard input, without the line end behind it.
fn message() -> Result<String, Failure> {
    let mut text = read(Path::new("-"), "MESSAGE")?;
    if text.ends_with('\n') {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    if text.is_empty() {
        return Err(Failure::usage("standard input holds no message"));
    }
    Ok(text)
}

/// A file's text, or that of standard input for `-`.
fn read(path: &Path, argument: &str) -> Result<String, Failure> {
    let bytes = if path.as_os_str() == "-" {
        at_most(io::stdin().lock())
    } else {
        File::open(path).and_then(at_most)
    };
    let bytes = bytes.map_err(|error| {
        Failure::usage(format!("{} cannot be read", path.display())).because(error)
    })?;
    let Some(bytes) = bytes else {
        let (path, most) = (path.display(), MOST_READ >> 20);
        let problem = format!("{path} is larger than the {most} MiB that {argument} may be");
        return Err(Failure::usage(problem));
    };
    String::from_utf8(bytes).map_err(|error| {
        Failure::usage(format!("{} is not UTF-8", path.display())).because(error.utf8_error())
    })
}

/// At most [`MOST_READ`] bytes; `None` where there are more.
fn at_most(from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    from.take(MOST_READ + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= MOST_READ))
}

/// `hint` says what to do about a text that is no JSON; nothing where it is empty.
fn parse(text: &str, what: &str, hint: &str) -> Result<Value, Failure> {
    // Some editors put a mark at the beginning of a file.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Value::parse(text).map_err(|error| {
        if error.is_too_deep() {
            return Failure::usage(format!("{what} nests too deep"))
                .because(error)
                .hint(format!("JSON may have {MAX_DEPTH} levels here"));
        }
        let failure = Failure::usage(format!("{what} is not JSON")).because(error);
        if hint.is_empty() { failure } else { failure.hint(hint) }
    })
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
