//! The recorded data, and where we knowingly do otherwise. What several tests share.
#![allow(dead_code, clippy::print_stderr, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// A file of the corpus. `None`, said aloud, where there is no corpus.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os("AGUI_CORPUS")
        .map_or_else(|| repository().join("../shared/conformance"), PathBuf::from);
    let path = corpus.join(name);
    if path.exists() {
        return Some(path);
    }
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    let why = format!("{} is not there; set AGUI_CORPUS", path.display());
    eprintln!("skipped: {test}: {why}");
    if let Some(log) = std::env::var_os("AGUI_SKIP_LOG") {
        let log = fs::OpenOptions::new().append(true).create(true).open(log);
        writeln!(log.expect("the log of skips"), "{test}: {why}").expect("the log of skips");
    }
    None
}

/// A file of the corpus as text.
pub(crate) fn text(name: &str) -> Option<String> {
    find(name).map(|path| fs::read_to_string(path).expect("a text"))
}

/// A gzipped file of the corpus, unpacked.
pub(crate) fn unpacked(name: &str) -> Option<Vec<u8>> {
    let path = find(name)?;
    let output = std::process::Command::new("gzip").arg("-dc").arg(path).output();
    let output = output.expect("gzip is installed");
    assert!(output.status.success());
    Some(output.stdout)
}

/// The lines of a file of vectors, all kinds.
pub(crate) fn vectors(name: &str) -> Option<Vec<Vector>> {
    let text = text(&format!("vectors/{name}.jsonl"))?;
    let lines = text.lines().map(|line| {
        let mut vector: Vector = serde_json::from_str(line).expect("a vector");
        vector.line = line.to_owned();
        vector
    });
    Some(lines.collect())
}

#[derive(Debug, Deserialize)]
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) input: Value,
    expect: Value,
    #[serde(default)]
    preferred: Value,
    #[serde(skip)]
    line: String,
}

impl Vector {
    /// The event of the input as it stands in the file: its members in order.
    pub(crate) fn event_text(&self) -> String {
        #[derive(Deserialize)]
        struct Line<'a> {
            #[serde(borrow)]
            input: Input<'a>,
        }
        #[derive(Deserialize)]
        struct Input<'a> {
            #[serde(borrow)]
            event: &'a serde_json::value::RawValue,
        }
        let line: Line<'_> = serde_json::from_str(&self.line).expect("a vector");
        line.input.event.get().to_owned()
    }

    /// What is to come out: the recording, overlaid with what is preferred to it.
    pub(crate) fn expected(&self) -> Value {
        let mut expected = self.expect.clone();
        if let (Some(expected), Some(preferred)) =
            (expected.as_object_mut(), self.preferred.as_object())
        {
            expected.extend(preferred.clone());
        }
        expected
    }
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Collects what differs over one file, and compares that with the known deviations, both ways.
pub(crate) struct Verdicts {
    file: String,
    known: BTreeMap<String, String>,
    passed: usize,
    deviated: usize,
    problems: Vec<String>,
}

impl Verdicts {
    pub(crate) fn new(file: &str) -> Self {
        #[derive(Deserialize)]
        struct Deviation {
            id: String,
            reason: String,
        }
        let path = repository().join(format!("conformance/deviations/{file}.json"));
        let known: Vec<Deviation> = match fs::read_to_string(path) {
            Ok(text) => serde_json::from_str(&text).expect("a list of deviations"),
            Err(_) => Vec::new(),
        };
        assert!(known.iter().all(|it| !it.reason.trim().is_empty()), "a deviation has a reason");
        Self {
            file: file.into(),
            known: known.into_iter().map(|it| (it.id, it.reason)).collect(),
            passed: 0,
            deviated: 0,
            problems: Vec::new(),
        }
    }

    /// Notes what differs on a line; nothing does where the list is empty.
    pub(crate) fn note(&mut self, id: &str, differences: &[String]) {
        match (self.known.remove(id).is_some(), differences.is_empty()) {
            (false, true) => self.passed += 1,
            (true, false) => self.deviated += 1,
            (true, true) => self.problems.push(format!("{id}: no longer deviates")),
            (false, false) => self.problems.push(format!("{id}: {}", differences.join("\n    "))),
        }
    }

    /// Fails where something differs that is not known to, or the other way round.
    pub(crate) fn settle(mut self, lines: usize) {
        self.problems.extend(self.known.keys().map(|id| format!("{id}: no such line")));
        println!("{}: {} passed, {} deviate", self.file, self.passed, self.deviated);
        let shown: Vec<_> = self.problems.iter().take(40).cloned().collect();
        assert!(
            shown.is_empty(),
            "{}: {} differ\n{}",
            self.file,
            self.problems.len(),
            shown.join("\n")
        );
        assert_eq!(self.passed + self.deviated, lines, "lines of {}", self.file);
    }
}

/// Where two values differ: objects without regard to order, numbers as doubles.
pub(crate) fn differences(what: &str, expected: &Value, found: &Value) -> Vec<String> {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            let missing = a.iter().flat_map(|(key, value)| match b.get(key) {
                Some(other) => differences(&format!("{what}.{key}"), value, other),
                None => vec![format!("{what}.{key}: expected {value}, found nothing")],
            });
            let more = b.iter().filter(|(key, _)| !a.contains_key(*key));
            let more = more.map(|(key, it)| format!("{what}.{key}: expected nothing, found {it}"));
            missing.chain(more).collect()
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let pairs = a.iter().zip(b).enumerate();
            pairs.flat_map(|(at, (a, b))| differences(&format!("{what}[{at}]"), a, b)).collect()
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => Vec::new(),
        (a, b) if a == b => Vec::new(),
        (a, b) => vec![format!("{what}: expected {a}, found {b}")],
    }
}

pub(crate) fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = DIGITS.iter().position(|digit| *digit == byte).expect("a digit");
        bits = bits << 6 | digit as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("two digits");
            u8::from_str_radix(pair, 16).expect("two digits")
        })
        .collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The reads of a vector: `sseParts`, or a body in base64 with `cutEvery` or `cutAt`.
pub(crate) fn reads(input: &Value) -> Vec<Vec<u8>> {
    if let Some(parts) = input["sseParts"].as_array() {
        return parts.iter().map(part).collect();
    }
    let body = input["sseB64"].as_str().or_else(|| input["protoB64"].as_str());
    let body = base64(body.expect("a body"));
    if let Some(size) = input["cutEvery"].as_u64() {
        return body.chunks(size as usize).map(<[u8]>::to_vec).collect();
    }
    let cuts = input["cutAt"].as_array().into_iter().flatten();
    let cuts = cuts.map(|cut| cut.as_u64().expect("an offset") as usize);
    let mut start = 0;
    let mut reads = Vec::new();
    for end in cuts.chain([body.len()]) {
        reads.push(body[start..end].to_vec());
        start = end;
    }
    reads
}

pub(crate) fn part(part: &Value) -> Vec<u8> {
    let text = part.as_str().or_else(|| part["repeat"].as_str()).expect("text");
    text.repeat(part["times"].as_u64().unwrap_or(1) as usize).into_bytes()
}
