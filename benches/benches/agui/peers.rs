//! Folding beside those who fold too: the crate `ag-ui` and the npm package `@ag-ui/client`.

use std::hint::black_box;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use ag_ui::client::transport::SseDecoder;
use ag_ui::client::{Applier, ChunkNormalizer, Verifier};
use agui_types::{Message, ToJson};

use crate::data::{Data, READ, Stream};
use crate::measure::{Case, best, timed};
use crate::stream;
use crate::table::thousands;

/// Once the npm client takes longer than this, it is not asked about longer streams.
const PATIENCE: Duration = Duration::from_secs(60);

/// And after this long it is ended.
const END: Duration = Duration::from_secs(300);

/// Prints what each takes for token streams of growing length, and for the other workloads. The
/// lines of the first are what `benches/plot.mjs` draws.
pub(crate) fn print(data: &Data) {
    println!("\n| stream | events | agui, ms | ag-ui 0.5, ms | @ag-ui/client, ms |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut patient = true;
    for tokens in [5_000, 10_000, 20_000, 50_000, 100_000] {
        let name = format!("{} tokens", thousands(f64::from(tokens)));
        let npm = line(&name, &data.tokens(tokens as usize), &[], patient);
        patient = matches!(npm, Npm::Took(took) if took < PATIENCE);
    }
    for (name, messages) in [("W2", 0), ("W3", 0), ("W3", 5_000), ("W4", 0)] {
        let stream = data.stream(name).expect("a workload");
        let behind = match messages {
            0 => String::new(),
            messages => format!(" behind {} messages", thousands(f64::from(messages))),
        };
        line(&format!("{name}{behind}"), stream, &data.history(messages as usize), true);
    }
}

fn line(name: &str, stream: &Stream, history: &[Message], ask_npm: bool) -> Npm {
    let mut ours = stream::folding(&stream.body, stream.len(), history.to_vec());
    let mut theirs = folding_behind(stream, history);
    let [ours, theirs] = best([&mut ours, &mut theirs]).map(|ns| ns * stream.len() as f64 / 1e6);
    let npm = if ask_npm { by_npm(stream, history) } else { Npm::NotAsked };
    let shown = match &npm {
        Npm::Took(took) => thousands((took.as_secs_f64() * 1e3).round()),
        Npm::TooSlow => format!("more than {}", thousands(END.as_secs_f64() * 1e3)),
        Npm::Absent(reason) => format!("skipped: {reason}"),
        Npm::NotAsked => String::new(),
    };
    println!("| {name} | {} | {ours:.2} | {theirs:.2} | {shown} |", thousands(stream.len() as f64));
    npm
}

/// What the npm client had to say.
enum Npm {
    Took(Duration),
    TooSlow,
    Absent(String),
    NotAsked,
}

/// Folds a stream with the npm client, in a process of its own.
fn by_npm(stream: &Stream, history: &[Message]) -> Npm {
    match ask_npm(stream, history) {
        Ok(npm) => npm,
        Err(error) => Npm::Absent(error.to_string()),
    }
}

fn ask_npm(stream: &Stream, history: &[Message]) -> io::Result<Npm> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    if !here.join("../interop/node/node_modules/@ag-ui/client").exists() {
        return Ok(Npm::Absent("`npm ci` in interop/node installs it".to_owned()));
    }
    let history: Vec<String> = history.iter().map(ToJson::to_json).collect();
    let mut child = Command::new("node")
        .arg(here.join("peers/fold.mjs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or_else(|| io::Error::other("no pipe"))?;
    // The history as a first line; the script reads everything before it starts its clock.
    writeln!(input, "[{}]", history.join(","))?;
    input.write_all(&stream.body)?;
    drop(input);

    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > END {
            child.kill()?;
            child.wait()?;
            return Ok(Npm::TooSlow);
        }
        thread::sleep(Duration::from_millis(20));
    };
    let mut answer = String::new();
    child.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?.read_to_string(&mut answer)?;
    match answer.trim().parse::<f64>() {
        Ok(ms) if status.success() => Ok(Npm::Took(Duration::from_secs_f64(ms / 1e3))),
        _ => Ok(Npm::Absent(format!("the script ended with {status}"))),
    }
}

/// What `ag-ui` has of the same stages: its strict decoder, the expansion of chunks, verification,
/// folding. Its lenient decoder, which an application gets by default, costs more.
pub(crate) fn folding(stream: &Stream) -> Case {
    folding_behind(stream, &[])
}

fn folding_behind(stream: &Stream, history: &[Message]) -> Case {
    let message = |message: &Message| serde_json::from_str(&message.to_json()).expect("a message");
    let history: Vec<ag_ui::Message> = history.iter().map(message).collect();
    let body = Rc::clone(&stream.body);
    Case::timed(stream.len(), body.len(), move || {
        let mut applier = Applier::new().with_messages(history.clone());
        timed(|| fold(&body, &mut applier))
    })
}

fn fold(body: &[u8], applier: &mut Applier) {
    let mut decoder = SseDecoder::new();
    let mut normalizer = ChunkNormalizer::new();
    let mut verifier = Verifier::new();
    let mut events = Vec::new();
    for read in black_box(body).chunks(READ) {
        decoder.push(read).unwrap();
        while let Some(frame) = decoder.next_frame().unwrap() {
            normalizer.normalize(frame.into_event().unwrap(), &mut events).unwrap();
            for event in events.drain(..) {
                // Its verifier is for one run.
                if verifier.is_finished() {
                    verifier = Verifier::new();
                }
                verifier.verify(&event).unwrap();
                drop(black_box(applier.apply(&event).unwrap()));
            }
        }
    }
    normalizer.finish(&mut events);
    verifier.finish().unwrap();
}
