//! `docs/checklist.md`: everything that CopilotKit front ends ask of a runtime, and the tests that
//! name it.
//!
//! An item is named by a line such as `/// checklist 7, 60` above a test, in any crate. The page is
//! made from `checklist/items.txt` and those lines, and compared with what is checked in;
//! `AGUI_UPDATE=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const ITEMS: &str = include_str!("checklist/items.txt");

/// What items begin with.
const KINDS: [&str; 3] = ["checklist", "deviate", "drift"];

/// How many items the checklist has.
const CHECKLIST: u32 = 66;

#[test]
fn every_item_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = named_items(&root.join("crates"));
    let known: Vec<&str> = ITEMS.lines().filter_map(item).map(|(id, _)| id).collect();
    for number in 1..=CHECKLIST {
        assert!(known.contains(&format!("checklist {number}").as_str()), "{number} is not listed");
    }
    let unknown: Vec<_> = named.keys().filter(|id| !known.contains(&id.as_str())).collect();
    assert!(unknown.is_empty(), "tests name items that there are not: {unknown:?}");
    let untested: Vec<_> = known.iter().filter(|id| !named.contains_key(**id)).collect();
    assert!(untested.is_empty(), "no test names {untested:?}");

    let (path, page) = (root.join("docs/checklist.md"), page(&named));
    if std::env::var_os("AGUI_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let difference = written.lines().zip(page.lines()).find(|(written, found)| written != found);
    assert!(
        written == page,
        "docs/checklist.md is out of date; AGUI_UPDATE=1 writes it: {difference:?}"
    );
}

#[test]
fn only_what_stands_above_a_test_counts() {
    let source = "/// checklist 1, 2\n/// and more\n#[tokio::test]\nasync fn a() {}\n\n\
                  /// checklist 3\nfn helper() {}\n\n// drift stop; checklist 4\n#[test]\nfn b() {}\n\n\
                  #[test]\nfn c() {\n    // checklist 5\n    let x = 1;\n}\n";
    let found: Vec<(String, String)> = items_in(source);
    let expected =
        [("checklist 1", "a"), ("checklist 2", "a"), ("drift stop", "b"), ("checklist 4", "b")];
    assert_eq!(found, expected.map(|(id, test)| (id.to_owned(), test.to_owned())));
}

/// An item's id and what it says.
fn item(line: &str) -> Option<(&str, &str)> {
    let (id, name) = line.split_once(": ")?;
    KINDS.iter().any(|kind| id.starts_with(kind)).then_some((id, name))
}

fn page(named: &BTreeMap<String, BTreeSet<(String, String)>>) -> String {
    let mut page = String::from(
        "# What CopilotKit front ends ask of a runtime, and the tests that prove it\n\n\
         Made by `AGUI_UPDATE=1 cargo test -p agui-runtime --test checklist`, not by hand.\n\n\
         *checklist* counts what a front end needs; *deviate* is where the published runtime is not to\n\
         be followed; *drift* is what newer front ends expect. What the published runtime answers to\n\
         the same requests is compared in `interop/node/copilotkit-runtime.test.mjs`.\n",
    );
    for line in ITEMS.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let _ = write!(
                page,
                "\n## {title}\n\n| item | in short | proved by |\n| --- | --- | --- |\n"
            );
        } else if let Some((id, name)) = item(line) {
            let tests: Vec<String> = named[id]
                .iter()
                .map(|(file, test)| format!("[{test}](../crates/{file})"))
                .collect();
            let _ = writeln!(page, "| {id} | {name} | {} |", tests.join(", "));
        }
    }
    page
}

/// Each item that a test names, with the files and tests that do.
fn named_items(crates: &Path) -> BTreeMap<String, BTreeSet<(String, String)>> {
    let mut named: BTreeMap<String, BTreeSet<(String, String)>> = BTreeMap::new();
    for path in files(crates) {
        let file = path.strip_prefix(crates).unwrap().to_string_lossy().replace('\\', "/");
        if path.extension().is_none_or(|it| it != "rs") || file.ends_with("tests/checklist.rs") {
            continue;
        }
        for (id, test) in items_in(&fs::read_to_string(&path).unwrap()) {
            named.entry(id).or_default().insert((file.clone(), test));
        }
    }
    named
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    nested.flatten().collect()
}

/// The items named in the comments right above tests, each with its test.
fn items_in(source: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut above: Vec<String> = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix("//") {
            above.extend(items_of(comment.trim_start_matches('/').trim()));
        } else if line.starts_with("#[") {
            is_test |= line == "#[test]" || line.starts_with("#[tokio::test");
        } else {
            let name = line.trim_start_matches("async ").strip_prefix("fn ");
            if let Some((name, _)) = name.and_then(|name| name.split_once('(')).filter(|_| is_test)
            {
                found.extend(above.drain(..).map(|id| (id, name.to_owned())));
            }
            above.clear();
            is_test = false;
        }
    }
    found
}

/// The items that a line of comment names: `checklist 7, 60; drift stop`.
fn items_of(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in line.split(';').map(str::trim) {
        let Some(kind) = KINDS.into_iter().find(|kind| part.starts_with(&format!("{kind} ")))
        else {
            return Vec::new();
        };
        let ids = part[kind.len()..].split(',').map(str::trim);
        found.extend(ids.map(|id| format!("{kind} {id}")));
    }
    found
}
