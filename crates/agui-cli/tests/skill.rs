//! `skills/agui/references/debugging.md` shows what this program says: its commands are run against an
//! agent that answers as the block above them.
//!
//! With `AGUI_UPDATE=1` in the environment what is shown is written anew, to be read before it is kept.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Peer, STREAM, Server, Step, fresh_path, read_json, undisturbed};

/// Where the agent is, in the page.
const AGENT: &str = "http://127.0.0.1:3000/";

/// Where `agui serve` is, in the page.
const SERVE: &str = "127.0.0.1:4100";

/// When everything in the page was logged.
const TIME: &str = "2026-01-01T00:00:00.000000Z";

/// The id of a request in the page.
const REQUEST: &str = "019ad421-7f3e-7a10-b2c4-5d6e7f809102";

#[test]
#[cfg(unix)]
fn what_the_page_shows_is_what_is_said() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/agui/references/debugging.md");
    let written = fs::read_to_string(&path).unwrap();
    let (mut page, mut shell) = (String::new(), Shell::default());
    let mut blocks = 0;
    let mut lines = written.lines();
    while let Some(line) = lines.next() {
        page.push_str(line);
        page.push('\n');
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "jsonl" => shell.agent = Some(Answer::Events(block.join("\n"), false)),
            "jsonl open" => shell.agent = Some(Answer::Events(block.join("\n"), true)),
            "http" => shell.agent = Some(Answer::Response(block.join("\n"))),
            "json" => shell.compare(&block.join("\n")),
            _ => {}
        }
        if kind == "console" {
            blocks += 1;
            for command in block.iter().filter_map(|line| line.strip_prefix("$ ")) {
                page.push_str(&format!("$ {command}\n{}", shell.run(command)));
            }
        } else {
            block.iter().for_each(|line| page.push_str(&format!("{line}\n")));
        }
        page.push_str("```\n");
    }
    assert!(blocks > 12, "{blocks} blocks");
    if std::env::var_os("AGUI_UPDATE").is_some_and(|value| value == "1") {
        fs::write(path, &page).unwrap();
    } else {
        let differs = written.lines().zip(page.lines()).find(|(written, said)| written != said);
        assert!(written == page, "AGUI_UPDATE=1 writes what is said; it differs: {differs:#?}");
    }
}

/// How the agent of a block answers.
enum Answer {
    /// With these events, one in each line; and leaves the connection open, or does not.
    Events(String, bool),
    /// With these bytes.
    Response(String),
}

impl Answer {
    fn serve(&self) -> Peer {
        let steps = match self {
            Self::Events(lines, open) => {
                let frames: String =
                    lines.lines().map(|line| format!("data: {line}\n\n")).collect();
                let end = if *open { Step::Hold } else { Step::End };
                vec![Step::Raw(STREAM.into()), Step::Chunk(frames.into()), end]
            }
            Self::Response(text) => {
                let (head, body) = text.split_once("\n\n").unwrap();
                let (head, length) = (head.replace('\n', "\r\n"), body.len());
                let answer = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
                vec![Step::Raw(answer.into())]
            }
        };
        Peer::new(steps)
    }
}

/// What the commands of the page have done so far.
#[derive(Default)]
struct Shell {
    agent: Option<Answer>,
    code: Option<i32>,
    /// The files that commands have named, by the names they have in the page.
    files: BTreeMap<String, PathBuf>,
    /// `agui serve`, and the agent behind it.
    server: Option<(Server, Peer)>,
}

impl Shell {
    /// What a command says.
    fn run(&mut self, command: &str) -> String {
        if command == "echo $?" {
            return format!("{}\n", self.code.expect("no command before"));
        }
        if let Some(arguments) = command.strip_prefix("agui serve ") {
            self.serve(arguments);
            return String::new();
        }
        if let Some(pattern) = command.strip_prefix("grep ") {
            let (word, _) = pattern.split_once(' ').unwrap();
            let (server, _) = self.server.as_ref().expect("nothing is served");
            let line = server.wait_for(word);
            let (_, rest) = line.split_once(' ').unwrap();
            // Another one for each request.
            let rest = rest.split_once("request{id=\"").map_or(rest.to_owned(), |(before, id)| {
                let (_, rest) = id.split_once('"').unwrap();
                format!("{before}request{{id=\"{REQUEST}\"{rest}")
            });
            return format!("{TIME} {rest}\n");
        }
        let peer = self.agent.as_ref().map(Answer::serve);
        let url = peer.as_ref().map_or(AGENT, |peer| &peer.url);
        let address = self.server.as_ref().map_or(SERVE, |(server, _)| &server.address);
        let name = "run.json";
        let file = self.files.entry(name.into()).or_insert_with(|| fresh_path(name));
        let file = file.to_str().unwrap();
        let real = command.replace(AGENT, url).replace(SERVE, address).replace(name, file);
        let mut shell = Command::new("sh");
        let script = format!("agui() {{ \"$0\" \"$@\"; }}; {real} 2>&1");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_agui")]).stdin(Stdio::null());
        let output = undisturbed(&mut shell).output().unwrap();
        self.code = output.status.code();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "the shell: {command}");
        let said = said.replace(url, AGENT).replace(address, SERVE).replace(file, name);
        // Not every command asks it.
        peer.map(Peer::request);
        said
    }

    /// `agui serve ARGUMENTS 2> FILE &`
    fn serve(&mut self, arguments: &str) {
        let peer = self.agent.take().expect("no agent to serve").serve();
        let arguments = arguments.split(" 2> ").next().unwrap().replace(AGENT, &peer.url);
        let arguments: Vec<&str> = arguments.split(' ').collect();
        self.server = Some((Server::start(&arguments), peer));
    }

    /// The last result holds at least this.
    fn compare(&self, part: &str) {
        let part: Value = serde_json::from_str(part).unwrap();
        let whole = read_json(&self.files["run.json"]);
        assert!(holds(&whole, &part), "{whole:#} does not hold {part}");
    }
}

/// Whether a value has all that another one has: members of objects, elements of lists.
fn holds(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(name, part)| whole.get(name).is_some_and(|whole| holds(whole, part)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole.iter().zip(part).all(|(whole, part)| holds(whole, part))
        }
        _ => whole == part,
    }
}
