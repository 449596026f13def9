//! Reading and writing events, beside what `serde_json` costs for the same texts.
//!
//! `cargo bench -p agui-bench --bench events` runs every case under divan and ends with a table of
//! costs per event and of ratios to a floor measured in the same run. `-- --table` prints the
//! table only.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use agui_types::{Event, EventReader, FromJson, ToJson};
use divan::Bencher;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

fn main() {
    let asked = |flag: &str| std::env::args().any(|argument| argument == flag);
    if !asked("--table") {
        divan::main();
    }
    // Not under `cargo test`, which passes no such flag.
    if asked("--bench") {
        table();
    }
}

/// What is measured: how many events, and one pass over all of them.
struct Case {
    events: usize,
    pass: Box<dyn FnMut()>,
}

const CASES: [&str; 19] = [
    "decode text: EventReader",
    "decode text: from_json_tolerant",
    "decode text: from_json_exact",
    "decode text: serde_json plain struct",
    "decode text: serde_json IgnoredAny",
    "decode text: serde_json tagged enum",
    "decode W1: EventReader",
    "decode W1: serde_json plain struct",
    "decode W1: serde_json IgnoredAny",
    "decode W2: EventReader",
    "decode W2: serde_json tagged enum",
    "decode W2: serde_json IgnoredAny",
    "encode text: write_json",
    "encode text: serde_json plain struct",
    "encode W1: write_json",
    "encode W1: serde_json plain struct",
    "encode W2: write_json",
    "encode W2: serde_json tagged enum",
    "encode text: serde_json of our type",
];

/// What, the floor it is compared with, and the most it may cost in terms of that floor, if that was
/// promised.
const RATIOS: [(&str, &str, Option<f64>); 13] = [
    ("decode text: EventReader", "decode text: serde_json plain struct", Some(1.3)),
    ("decode text: from_json_tolerant", "decode text: serde_json plain struct", Some(1.3)),
    ("decode text: from_json_exact", "decode text: serde_json plain struct", Some(1.3)),
    ("decode text: EventReader", "decode text: serde_json tagged enum", None),
    ("decode text: EventReader", "decode text: serde_json IgnoredAny", None),
    ("decode W1: EventReader", "decode W1: serde_json plain struct", Some(1.3)),
    ("decode W1: EventReader", "decode W1: serde_json IgnoredAny", None),
    ("decode W2: EventReader", "decode W2: serde_json tagged enum", None),
    ("decode W2: EventReader", "decode W2: serde_json IgnoredAny", None),
    ("encode text: write_json", "encode text: serde_json plain struct", Some(1.0)),
    ("encode W1: write_json", "encode W1: serde_json plain struct", Some(1.0)),
    ("encode W2: write_json", "encode W2: serde_json tagged enum", Some(1.0)),
    ("encode text: serde_json of our type", "encode text: serde_json plain struct", None),
];

#[divan::bench(args = CASES)]
fn events(bencher: Bencher<'_, '_>, name: &str) {
    let Some(mut case) = case(name) else { return };
    bencher.counter(divan::counter::ItemsCount::new(case.events)).bench_local(|| (case.pass)());
}

/// Measures each pair in turns, so that a noisy moment hits both, and takes the best pass of each.
fn table() {
    println!("\n| what | ns/event | floor | ns/event | ratio | at most |");
    println!("| --- | ---: | --- | ---: | ---: | ---: |");
    for (what, floor, most) in RATIOS {
        let (Some(mut ours), Some(mut theirs)) = (case(what), case(floor)) else {
            println!("| {what} | skipped: the workloads are not there | | | | |");
            continue;
        };
        let (mut best_ours, mut best_theirs) = (f64::MAX, f64::MAX);
        for _ in 0..40 {
            best_ours = best_ours.min(ours.time());
            best_theirs = best_theirs.min(theirs.time());
        }
        let ratio = best_ours / best_theirs;
        let most = match most {
            Some(most) if ratio > most => format!("{most:.1}, missed"),
            Some(most) => format!("{most:.1}"),
            None => String::new(),
        };
        println!("| {what} | {best_ours:.0} | {floor} | {best_theirs:.0} | {ratio:.2} | {most} |");
    }
}

impl Case {
    /// The nanoseconds that one event costs in one pass.
    fn time(&mut self) -> f64 {
        let start = Instant::now();
        (self.pass)();
        start.elapsed().as_secs_f64() * 1e9 / self.events as f64
    }
}

fn case(name: &str) -> Option<Case> {
    let (place, subject) = name.split_once(": ")?;
    let (direction, source) = place.split_once(' ')?;
    let texts = match source {
        "text" => vec![TEXT.to_owned(); 10_000],
        "W1" => agui_bench::workload("w1-token-stream")?,
        _ => agui_bench::workload("w2-mixed")?,
    };
    let events = texts.len();
    let pass: Box<dyn FnMut()> = match (direction, subject) {
        ("decode", "EventReader") => {
            let mut reader = EventReader::new();
            Box::new(move || each(&texts, |text| reader.tolerant(text).unwrap()))
        }
        ("decode", "from_json_tolerant") => {
            Box::new(move || each(&texts, |text| Event::from_json_tolerant(text).unwrap()))
        }
        ("decode", "from_json_exact") => {
            Box::new(move || each(&texts, |text| Event::from_json_exact(text).unwrap()))
        }
        ("decode", "serde_json plain struct") => Box::new(move || each(&texts, parsed::<Plain>)),
        ("decode", "serde_json tagged enum") => Box::new(move || each(&texts, parsed::<Tagged>)),
        ("decode", _) => Box::new(move || each(&texts, parsed::<IgnoredAny>)),
        ("encode", "write_json") => {
            let events = read(&texts, |text| Event::from_json_exact(text).unwrap());
            encoding(events, |event, out| event.write_json(out))
        }
        ("encode", "serde_json plain struct") => encoding(read(&texts, parsed::<Plain>), to_writer),
        ("encode", "serde_json tagged enum") => encoding(read(&texts, parsed::<Tagged>), to_writer),
        _ => encoding(read(&texts, |text| Event::from_json_exact(text).unwrap()), to_writer),
    };
    Some(Case { events, pass })
}

fn each<T>(texts: &[String], mut decode: impl FnMut(&str) -> T) {
    for text in texts {
        drop(black_box(decode(black_box(text))));
    }
}

fn read<T>(texts: &[String], decode: impl Fn(&str) -> T) -> Vec<T> {
    texts.iter().map(|text| decode(text)).collect()
}

fn encoding<T: 'static>(
    events: Vec<T>,
    encode: impl Fn(&T, &mut Vec<u8>) + 'static,
) -> Box<dyn FnMut()> {
    let mut out = Vec::new();
    Box::new(move || {
        for event in &events {
            out.clear();
            encode(black_box(event), &mut out);
            black_box(&out);
        }
    })
}

fn parsed<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

fn to_writer<T: Serialize>(event: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, event).unwrap();
}

/// A text content event of 157 bytes.
const TEXT: &str = concat!(
    r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"msg_01JQ8Z5T3M9V7K2XN4RB6WDFHC","#,
    r#""delta":"the quick brown fox jumps over the lazy dogs","timestamp":1757000000000}"#,
);
const _: () = assert!(TEXT.len() == 157);

/// The floor: what anybody gets by deriving, for the events of the token stream.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Plain {
    r#type: String,
    message_id: String,
    delta: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
}

/// What anybody gets by deriving, for the events of the mixed stream.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "camelCase")]
enum Tagged {
    RunStarted {
        thread_id: String,
        run_id: String,
    },
    RunFinished {
        thread_id: String,
        run_id: String,
    },
    StepStarted {
        step_name: String,
    },
    StepFinished {
        step_name: String,
    },
    StateSnapshot {
        snapshot: serde_json::Value,
    },
    StateDelta {
        delta: Vec<serde_json::Value>,
    },
    ReasoningStart {
        message_id: String,
    },
    ReasoningMessageStart {
        message_id: String,
        role: String,
    },
    ReasoningMessageContent {
        message_id: String,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: String,
    },
    ReasoningEnd {
        message_id: String,
    },
    TextMessageStart {
        message_id: String,
        role: Option<String>,
    },
    TextMessageContent {
        message_id: String,
        delta: String,
    },
    TextMessageEnd {
        message_id: String,
    },
    ToolCallStart {
        tool_call_id: String,
        tool_call_name: String,
        parent_message_id: Option<String>,
    },
    ToolCallArgs {
        tool_call_id: String,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: String,
    },
    ToolCallResult {
        message_id: String,
        tool_call_id: String,
        content: String,
    },
    Custom {
        name: String,
        value: serde_json::Value,
    },
}
