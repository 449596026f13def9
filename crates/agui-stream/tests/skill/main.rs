//! The pages of `skills/agui` that speak of rules and streams say what is so.

mod flows;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The text of a file, by its path from the root of the tree.
fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_protocol_page_has_every_rule_once_and_in_order() {
    let page = read("skills/agui/references/protocol.md");
    let told: Vec<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("- **")?.split_once("** "))
        .filter(|(id, _)| is_rule(id))
        .collect();
    let listed = read("docs/rules.md");
    let rules: Vec<&str> = listed
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| ")?.split_once(" |")?.0))
        .filter(|id| is_rule(id))
        .collect();
    assert!(rules.len() > 200, "{} rules", rules.len());
    let ids: Vec<&str> = told.iter().map(|(id, _)| *id).collect();
    let missing: BTreeSet<_> = rules.iter().filter(|id| !ids.contains(id)).collect();
    assert!(missing.is_empty(), "rules that the page does not have: {missing:?}");
    assert_eq!(ids, rules);
    let silent: Vec<_> = told.iter().filter(|(_, text)| text.split(' ').count() < 4).collect();
    assert!(silent.is_empty(), "{silent:?} say nothing");
}

#[test]
fn an_assistant_finds_the_skill() {
    let skill = read("skills/agui/SKILL.md");
    let (head, text) = skill.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let (name, description) = head.split_once('\n').unwrap();
    assert_eq!(name, "name: agui");
    let description = description.strip_prefix("description: ").unwrap();
    // One line that YAML takes as it is, no longer than what is loaded of every skill.
    assert!(!description.contains(['\n', '#']) && !description.contains(": "));
    assert!((100..=1024).contains(&description.len()), "{} bytes", description.len());
    let references = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../skills/agui/references");
    for page in fs::read_dir(references).unwrap() {
        let name = page.unwrap().file_name();
        let name = name.to_str().unwrap();
        assert!(text.contains(&format!("](references/{name})")), "{name} is not pointed at");
    }
}

/// Whether a text is a rule's id: a letter, a hyphen, a number.
fn is_rule(text: &str) -> bool {
    text.split_once('-').is_some_and(|(kind, number)| {
        matches!(kind, "P" | "C" | "T") && number.parse::<u16>().is_ok()
    })
}
