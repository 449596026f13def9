//! `docs/rules.md`: every rule of the protocol, the tests that name it, and where it stands.
//!
//! The page is made from `rules_page/rules.txt` and from the tests of all crates, and compared with
//! what is checked in. `AGUI_UPDATE=1` writes it anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const TABLE: &str = include_str!("rules_page/rules.txt");

#[test]
fn the_page_says_where_every_rule_stands() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = named_rules(&root.join("crates"));
    let known: BTreeSet<&str> = rules().map(|rule| rule.id).collect();
    let unknown: Vec<_> = named.keys().filter(|id| !known.contains(id.as_str())).collect();
    assert!(unknown.is_empty(), "tests name rules that there are not: {unknown:?}");
    let untested: Vec<_> =
        rules().filter(|rule| rule.whom == "stream" && !named.contains_key(rule.id)).collect();
    assert!(untested.is_empty(), "no test names {untested:?}");

    let (path, page) = (root.join("docs/rules.md"), page(&named));
    if std::env::var_os("AGUI_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let mut lines = written.lines().zip(page.lines());
    let difference = lines.find(|(written, found)| written != found);
    assert!(
        written == page,
        "docs/rules.md is out of date; AGUI_UPDATE=1 writes it: {difference:?}"
    );
}

#[test]
fn only_tests_count() {
    let source =
        "// C-1\n#[cfg(test)]\nmod tests {\n    // C-2, P-30 and not XC-3, C-4x or UTF-8\n}\n";
    assert_eq!(rules_in(test_part(source)), ["C-2", "P-30"]);
    assert_eq!(test_part("// C-1\n#[cfg(test)]\nmod tests;\n"), "");
    assert_eq!(test_modules("#[cfg(test)]\nmod tests;\nmod other;\n"), ["tests"]);
}

#[derive(Debug)]
struct Rule {
    id: &'static str,
    whom: &'static str,
    name: &'static str,
}

fn rules() -> impl Iterator<Item = Rule> {
    TABLE.lines().filter_map(rule)
}

fn rule(line: &'static str) -> Option<Rule> {
    let mut words = line.splitn(3, ' ');
    let (id, whom) = (words.next()?, words.next()?);
    (rules_in(id) == [id]).then(|| Rule { id, whom, name: words.next().unwrap_or_default() })
}

fn page(named: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut page = String::from(
        "# The rules, and the tests that name them\n\n\
         Made by `AGUI_UPDATE=1 cargo test -p agui-stream --test rules_page`, not by hand.\n\n\
         The ids are those that faults and warnings carry: `P-` for producers, `C-` for consumers,\n\
         `T-` for transports. A rule is *proved* where a test names it; a transcript does in its\n\
         second line. What is left is *for the application*, or for the part that is named.\n",
    );
    for line in TABLE.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            let _ = write!(
                page,
                "\n## {title}\n\n| rule | in short | status | named in |\n| --- | --- | --- | --- |\n"
            );
        } else if let Some(Rule { id, whom, name }) = rule(line) {
            let files = named.get(id);
            let status = match (files, whom) {
                (Some(_), _) => "proved".into(),
                (None, "application") => "for the application".into(),
                (None, whom) => format!("elsewhere: {whom}"),
            };
            let files: Vec<String> = files.into_iter().flatten().map(|file| link(file)).collect();
            let _ = writeln!(page, "| {id} | {name} | {status} | {} |", files.join(", "));
        }
    }
    page
}

/// A link to a file of tests, by its name without what is the same everywhere.
fn link(file: &str) -> String {
    let name = file.replace("agui-", "").replace("/src/", "/").replace("/tests/", "/");
    let name = name.replace("/tests.rs", "").replace("/mod.rs", "");
    let name = name.replace("stream/transcripts/", "").replace(".rs", "").replace(".txt", "");
    format!("[{name}](../crates/{file})")
}

/// Each rule that a test names, with the files that do.
fn named_rules(crates: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(crates) {
        let file = path.strip_prefix(crates).unwrap().to_string_lossy().replace('\\', "/");
        // What only speaks of rules proves none.
        if file.contains("/rules_page") || file.ends_with("/transcripts.rs") {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let tests = match path.extension().and_then(|extension| extension.to_str()) {
            // What is written below the line names the rules of faults.
            Some("txt") if file.contains("/tests/transcripts/") => text.lines().nth(1).unwrap(),
            Some("rs") if file.contains("/tests/") || is_test_module(&path) => &text,
            Some("rs") => test_part(&text),
            _ => continue,
        };
        for id in rules_in(tests) {
            named.entry(id.into()).or_default().insert(file.clone());
        }
    }
    named
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let nested = entries.map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    nested.flatten().collect()
}

/// Whether a file is declared as a module for tests by the one it belongs to.
fn is_test_module(file: &Path) -> bool {
    let (Some(name), Some(folder)) = (file.file_stem(), file.parent()) else { return false };
    let owners = ["mod.rs", "lib.rs", "main.rs"].map(|name| folder.join(name));
    let owners = owners.into_iter().chain([folder.with_extension("rs")]);
    owners.filter_map(|owner| fs::read_to_string(owner).ok()).any(|owner| {
        let modules = test_modules(&owner);
        modules.iter().any(|module| name == *module)
    })
}

/// The modules that a source declares for tests, in files of their own.
fn test_modules(source: &str) -> Vec<&str> {
    let behind = source.split("#[cfg(test)]\n").skip(1);
    behind.filter_map(|rest| rest.strip_prefix("mod ")?.lines().next()?.strip_suffix(';')).collect()
}

/// What a source holds of tests: the module at its end.
fn test_part(source: &str) -> &str {
    let start = source.find("#[cfg(test)]\nmod tests {");
    start.map_or("", |start| &source[start..])
}

/// The ids of rules in a text.
fn rules_in(text: &str) -> Vec<&str> {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let mut found = Vec::new();
    for (at, _) in text.match_indices('-') {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let Some(start) = at.checked_sub(1).filter(|_| digits > 0) else { continue };
        let bytes = text.as_bytes();
        let end = at + 1 + digits;
        let alone = start.checked_sub(1).is_none_or(|before| !is_word(bytes[before]))
            && bytes.get(end).is_none_or(|behind| !is_word(*behind));
        if alone && matches!(bytes[start], b'P' | b'C' | b'T') {
            found.push(&text[start..end]);
        }
    }
    found
}
