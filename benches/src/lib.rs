//! What the benchmarks share: the standard workloads.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// The events of a standard workload, such as `w1-token-stream`, one JSON text each.
///
/// They are read from `workloads/` below `AGUI_CORPUS`, or else below `../shared/conformance`
/// beside the repository root. `None` where they are not there.
///
/// # Panics
///
/// Where the file is there and is no gzipped event stream.
#[must_use]
pub fn workload(name: &str) -> Option<Vec<String>> {
    let body = unpacked(&format!("{name}.sse.gz"))?;
    // The workloads are framed in one way: `data: `, the event, a blank line.
    Some(body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect())
}

/// The JSON array of the messages that come before `w3-long-thread`, found like a workload.
///
/// # Panics
///
/// Where the file is there and is no gzipped text.
#[must_use]
pub fn history() -> Option<String> {
    unpacked("w3-history.json.gz")
}

/// The body that these events make, framed as the workloads are.
#[must_use]
pub fn body<T: AsRef<str>>(events: &[T]) -> Vec<u8> {
    let mut body = Vec::with_capacity(events.iter().map(|it| it.as_ref().len() + 8).sum());
    for event in events {
        body.extend_from_slice(b"data: ");
        body.extend_from_slice(event.as_ref().as_bytes());
        body.extend_from_slice(b"\n\n");
    }
    body
}

fn unpacked(name: &str) -> Option<String> {
    let root = std::env::var_os("AGUI_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/conformance")),
        PathBuf::from,
    );
    let file = File::open(root.join("workloads").join(name)).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a gzipped text");
    Some(text)
}
