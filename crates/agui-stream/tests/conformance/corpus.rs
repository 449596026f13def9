//! Where the vectors are, and where we knowingly do otherwise.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

/// A file of vectors: one JSON object per line. `None`, visibly, where there is no corpus.
pub(crate) fn vectors(name: &str) -> Option<Vec<Vector>> {
    let path = find(&format!("vectors/{name}.jsonl"))?;
    let text = fs::read_to_string(&path).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Some(lines.collect())
}

/// The cases from public reports with their names, in the order of these. `None`, visibly, where there
/// are none.
pub(crate) fn cases() -> Option<Vec<(String, Value)>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(find("../cases")?).unwrap() {
        let entry = entry.unwrap();
        let Ok(text) = fs::read_to_string(entry.path().join("case.json")) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        cases.push((name, serde_json::from_str(&text).unwrap()));
    }
    cases.sort_by(|(a, _): &(String, Value), (b, _)| a.cmp(b));
    Some(cases)
}

/// One line of a file of vectors.
#[derive(Debug, Deserialize)]
pub(crate) struct Vector {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) input: Value,
    expect: Value,
    #[serde(default)]
    preferred: Value,
}

impl Vector {
    /// The runs that go in, one or several.
    pub(crate) fn runs(&self) -> Vec<Value> {
        each_run(&self.input)
    }

    /// What is to come out of each run: the recording, overlaid with what is preferred to it.
    pub(crate) fn expected(&self) -> Vec<Value> {
        let mut expected = each_run(&self.expect);
        for (expected, preferred) in expected.iter_mut().zip(each_run(&self.preferred)) {
            if let (Value::Object(expected), Value::Object(preferred)) = (expected, preferred) {
                expected.extend(preferred);
                // Where nothing is preferred to a recorded field, it is not to be compared.
                expected.retain(|name, value| !value.is_null() || name == "request");
            }
        }
        expected
    }
}

/// The one run of a line, or each of several.
fn each_run(side: &Value) -> Vec<Value> {
    match side.get("runs") {
        Some(Value::Array(runs)) => runs.clone(),
        _ => vec![side.clone()],
    }
}

/// A file or folder of the corpus.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let corpus = std::env::var_os("AGUI_CORPUS")
        .map_or_else(|| repository().join("../shared/conformance"), PathBuf::from);
    let path = corpus.join(name);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("{} is not there; set AGUI_CORPUS", path.display()));
    None
}

/// Says that a test cannot run, also where `./test` counts it.
#[allow(clippy::print_stderr)]
fn skip(why: &str) {
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    eprintln!("skipped: {test}: {why}");
    if let Some(log) = std::env::var_os("AGUI_SKIP_LOG") {
        let mut log = fs::OpenOptions::new().append(true).create(true).open(log).unwrap();
        writeln!(log, "{test}: {why}").unwrap();
    }
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Collects what differs over one file, and compares that with the known deviations.
pub(crate) struct Verdicts {
    file: String,
    known: BTreeMap<String, Deviation>,
    passed: usize,
    deviated: usize,
    problems: Vec<String>,
}

/// A line that is knowingly not met.
#[derive(Debug, Deserialize)]
struct Deviation {
    id: String,
    /// Why.
    reason: String,
}

impl Verdicts {
    pub(crate) fn new(file: &str) -> Self {
        let path = repository().join(format!("conformance/deviations/{file}.json"));
        let known: Vec<Deviation> = match fs::read_to_string(&path) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => Vec::new(),
        };
        let known: BTreeMap<_, _> = known.into_iter().map(|it| (it.id.clone(), it)).collect();
        assert!(known.values().all(|it| !it.reason.trim().is_empty()), "a deviation has a reason");
        Self { file: file.into(), known, passed: 0, deviated: 0, problems: Vec::new() }
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
    #[allow(clippy::print_stdout)]
    pub(crate) fn settle(mut self) {
        self.problems.extend(self.known.keys().map(|id| format!("{id}: no such line")));
        let (file, passed, deviated) = (&self.file, self.passed, self.deviated);
        println!("{file}: {passed} passed, {deviated} deviate");
        let shown = self.problems.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
        assert!(self.problems.is_empty(), "{file}: {} differ\n{shown}", self.problems.len());
    }
}
