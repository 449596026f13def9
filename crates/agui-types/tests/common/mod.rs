//! What several tests share.

use std::path::PathBuf;

/// A file of the published data, or `None`, said aloud, on a machine without it.
#[allow(clippy::print_stderr)]
pub(crate) fn corpus(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("AGUI_CORPUS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance")),
        PathBuf::from,
    );
    let path = root.join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} is not there; AGUI_CORPUS says where it is", path.display());
    None
}
