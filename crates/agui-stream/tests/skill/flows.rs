//! Every block of `skills/agui/references/flows.md` is played: inputs are prepared, events go through
//! all stages and are folded, and what comes of it is written into the block as remarks.
//!
//! With `AGUI_UPDATE=1` in the environment the remarks are written anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use agui_stream::fold::Applied;
use agui_stream::{Class, Conversation, Fault, Outgoing, Pipeline, Warning};
use agui_types::event::EventType;
use agui_types::json::Value;
use agui_types::{EventReader, FromJson, RunAgentInput, ToJson};

const PAGE: &str = "skills/agui/references/flows.md";

#[test]
fn the_flows_come_to_what_the_page_says() {
    let written = super::read(PAGE);
    let mut page = Page::default();
    written.lines().for_each(|line| page.line(line));
    assert!(page.problems.is_empty(), "{}", page.problems.join("\n"));
    if std::env::var_os("AGUI_UPDATE").is_some_and(|value| value == "1") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
        fs::write(path, &page.text).unwrap();
    } else if written != page.text {
        let differs =
            written.lines().zip(page.text.lines()).find(|(written, found)| written != found);
        panic!("AGUI_UPDATE=1 writes what is found; the page has, and it is: {differs:#?}");
    }
    let all: BTreeSet<&str> = EventType::ALL.iter().map(|known| known.as_str()).collect();
    let shown: BTreeSet<&str> = page.shown.iter().map(String::as_str).collect();
    assert_eq!(shown, all, "every event has its place in a flow");
    assert!(page.mistakes > 15, "{} mistakes", page.mistakes);
}

/// The page as it is read, and as it should be.
#[derive(Default)]
struct Page {
    text: String,
    problems: Vec<String>,
    /// The types of events in flows that are right.
    shown: BTreeSet<String>,
    mistakes: usize,
    heading: String,
    inside: Option<Block>,
    /// What the last sketch has, until a block is compared with it.
    sketch: Option<Vec<String>>,
}

enum Block {
    Sketch(Vec<String>),
    Flow { wrong: bool, lines: Vec<String> },
    Other,
}

impl Page {
    fn line(&mut self, line: &str) {
        match (&mut self.inside, line) {
            (None, _) => {
                self.inside = match line {
                    "```text" => Some(Block::Sketch(Vec::new())),
                    "```jsonc" => Some(Block::Flow { wrong: false, lines: Vec::new() }),
                    "```jsonc wrong" => Some(Block::Flow { wrong: true, lines: Vec::new() }),
                    _ => line.starts_with("```").then_some(Block::Other),
                };
                if let Some(heading) = line.strip_prefix("## ") {
                    self.heading = heading.into();
                }
            }
            (Some(_), "```") => self.end_block(),
            (Some(Block::Sketch(kinds)), _) => {
                kinds.extend(line.split_whitespace().nth(1).map(str::to_owned));
            }
            (Some(Block::Flow { lines, .. }), _) => {
                lines.push(line.into());
                return;
            }
            (Some(Block::Other), _) => {}
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn end_block(&mut self) {
        match self.inside.take() {
            Some(Block::Sketch(kinds)) => self.sketch = Some(kinds),
            Some(Block::Flow { wrong, lines }) => self.flow(wrong, &lines),
            Some(Block::Other) | None => {}
        }
    }

    fn flow(&mut self, wrong: bool, lines: &[String]) {
        let mut play = Play::default();
        if let Err(problem) = play.all(lines) {
            self.problems.push(format!("{}: {problem}", self.heading));
        }
        for line in &play.lines {
            self.text.push_str(line);
            self.text.push('\n');
        }
        if wrong {
            self.mistakes += 1;
            if play.complaints == 0 {
                self.problems
                    .push(format!("{}: nothing is wrong with the wrong one", self.heading));
            }
            return;
        }
        if play.complaints > 0 {
            let lines = play.lines.join("\n");
            self.problems.push(format!("{}: it is not right\n{lines}", self.heading));
        }
        let sketch = self.sketch.take().unwrap_or_default();
        if collapsed(&sketch) != collapsed(&play.kinds) {
            self.problems.push(format!("{}: the sketch shows another flow", self.heading));
        }
        self.shown.extend(play.kinds.into_iter().filter(|kind| kind != INPUT));
    }
}

/// What an input is called in the sketches.
const INPUT: &str = "RunAgentInput";

/// What is repeated stands for one.
fn collapsed(kinds: &[String]) -> Vec<&str> {
    let mut kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    kinds.dedup();
    kinds
}

/// A block that is played.
#[derive(Default)]
struct Play {
    /// The block as it should be.
    lines: Vec<String>,
    /// What happens in it, in order.
    kinds: Vec<String>,
    /// Faults and warnings.
    complaints: usize,
    exchange: Option<Exchange>,
    rejected: bool,
}

/// An input and the events that answer it; or events alone.
struct Exchange {
    pipeline: Pipeline,
    conversation: Conversation,
}

impl Play {
    fn all(&mut self, lines: &[String]) -> Result<(), String> {
        for line in lines {
            if ["// ends: ", "// refused: ", "// warned: "].iter().any(|it| line.starts_with(it)) {
                continue;
            }
            if self.rejected {
                return Err(format!("nothing comes behind a refusal: {line}"));
            }
            if !line.starts_with("//") {
                let tree = Value::parse(line).map_err(|error| format!("{error}: {line}"))?;
                if tree.get("type").is_none() {
                    self.end_exchange();
                    self.lines.push(line.clone());
                    self.input(line)?;
                } else {
                    self.lines.push(line.clone());
                    self.event(line);
                }
            } else {
                self.lines.push(line.clone());
            }
        }
        if !self.rejected {
            self.end_exchange();
        }
        Ok(())
    }

    fn input(&mut self, line: &str) -> Result<(), String> {
        self.kinds.push(INPUT.into());
        let input = RunAgentInput::from_json_exact(line).map_err(|error| error.to_string())?;
        let mut open = Vec::new();
        if let Some(before) = self.exchange.take() {
            // The history goes on where it was, but for what is not sent.
            let sent = input.messages.iter().map(ToJson::to_json);
            let held = before.conversation.messages().iter().map(ToJson::to_json);
            if let Some((sent, held)) = sent.zip(held).find(|(sent, held)| sent != held) {
                return Err(format!("the history is another one: {sent} was {held}"));
            }
            open = before.conversation.open_interrupts().to_vec();
        }
        let mut warnings = Vec::new();
        let prepared = Outgoing::new().prepare(input, &open, &mut warnings);
        warnings.iter().for_each(|warning| self.warned(warning));
        match prepared {
            Ok(input) => {
                let conversation = Conversation::from_input(&input);
                let mut conversation =
                    conversation.map_err(|error| error.to_string())?.with_open_interrupts(open);
                let resume = input.resume.as_deref().unwrap_or_default();
                conversation.begin_exchange(&input.run_id, resume);
                let pipeline = Pipeline::for_run(input.thread_id, input.run_id);
                self.exchange = Some(Exchange { pipeline, conversation });
            }
            Err(fault) => self.refused(&fault),
        }
        Ok(())
    }

    fn event(&mut self, line: &str) {
        let Exchange { pipeline, conversation } = self.exchange.get_or_insert_with(|| Exchange {
            pipeline: Pipeline::new(),
            conversation: Conversation::new(Vec::new(), Value::Object(Default::default())),
        });
        let (mut events, mut warnings) = (Vec::new(), Vec::new());
        let verdict = match EventReader::new().tolerant(line) {
            Ok(reading) => {
                self.kinds.push(reading.value.type_name().into());
                pipeline.push(reading, &mut events, &mut warnings)
            }
            Err(error) => Err(pipeline.push_unreadable(&error)),
        };
        let mut applied = Applied::default();
        for event in &events {
            conversation.apply(event, &mut applied);
            warnings.append(&mut applied.warnings);
        }
        warnings.iter().for_each(|warning| self.warned(warning));
        if let Err(fault) = verdict {
            self.refused(&fault);
        }
    }

    /// Says how the stream so far ended, if there is one.
    fn end_exchange(&mut self) {
        let Some(Exchange { pipeline, conversation }) = &mut self.exchange else { return };
        let finished = pipeline.finish();
        let ending = conversation.end_exchange();
        match finished {
            Ok(()) => self.lines.push(format!("// ends: {ending}")),
            Err(fault) if fault.class == Class::Truncated => {
                self.complaints += 1;
                self.lines.push(format!("// ends: {ending}: {fault}"));
            }
            Err(fault) => self.refused(&fault),
        }
    }

    fn warned(&mut self, warning: &Warning) {
        self.complaints += 1;
        self.lines.push(format!("// warned: {warning}"));
    }

    fn refused(&mut self, fault: &Fault) {
        self.complaints += 1;
        self.rejected = true;
        self.lines.push(format!("// refused: {fault}"));
    }
}
