//! Every journal of this workspace is held to the whole contract.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Whoever implements `Journal` calls `journal_suite!` with its name in the tests of its crate.
#[test]
fn every_journal_runs_the_suite() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let mut journals = BTreeSet::new();
    let mut tested = BTreeSet::new();
    for folder in fs::read_dir(crates).unwrap() {
        let folder = folder.unwrap().path();
        let sources = rust_files(&folder.join("src"));
        journals.extend(sources.iter().flat_map(|text| words_after(text, "impl Journal for ")));
        let tests = rust_files(&folder.join("tests"));
        tested.extend(tests.iter().flat_map(|text| words_after(text, "journal_suite!(")));
    }
    assert!(journals.contains("MemoryJournal"), "{journals:?}");
    let forgotten: Vec<_> = journals.difference(&tested).collect();
    assert!(forgotten.is_empty(), "without the suite: {forgotten:?}");
}

/// A case that is written is also run.
#[test]
fn every_case_is_in_the_suite() {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite");
    let list = fs::read_to_string(suite.join("mod.rs")).unwrap();
    let mut cases = 0;
    for file in fs::read_dir(&suite).unwrap() {
        let file = file.unwrap().path();
        let group = file.file_stem().unwrap().to_str().unwrap().to_owned();
        for case in words_after(&fs::read_to_string(&file).unwrap(), "pub async fn ") {
            assert!(list.contains(&format!("{group}::{case},")), "{group}::{case} is never run");
            cases += 1;
        }
    }
    assert!(cases >= 40, "only {cases} cases were found");
}

/// The texts of all Rust files in a folder and in those below.
fn rust_files(folder: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let Ok(files) = fs::read_dir(folder) else { continue };
        for path in files.map(|file| file.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                texts.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    texts
}

/// The names that follow a phrase.
fn words_after(text: &str, phrase: &str) -> Vec<String> {
    let name = |rest: &str| {
        rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    text.split(phrase).skip(1).map(name).filter(|name: &String| !name.is_empty()).collect()
}
