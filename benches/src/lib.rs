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
    let root = std::env::var_os("AGUI_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/conformance")),
        PathBuf::from,
    );
    let file = File::open(root.join("workloads").join(format!("{name}.sse.gz"))).ok()?;
    let mut body = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut body).expect("a gzipped text");
    // The workloads are framed in one way: `data: `, the event, a blank line.
    Some(body.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect())
}
