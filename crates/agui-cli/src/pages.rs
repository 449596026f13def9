//! The commands in the README, the guides and the skill are ones that this program takes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::args::Cli;

#[test]
fn every_command_in_a_page_is_taken() {
    let (mut taken, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for words in commands(&text).iter().filter_map(|command| ours(command)) {
            match Cli::try_parse_from(&words).map_err(|error| (error.kind(), error)) {
                Ok(_) | Err((ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _)) => taken += 1,
                Err((_, error)) => wrong.push(format!("{}: {error}", page.display())),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 40, "{taken} commands");
}

#[test]
fn every_option_in_the_prose_is_there() {
    let cli = Cli::command();
    let commands = std::iter::once(&cli).chain(cli.get_subcommands());
    let known: BTreeSet<String> = commands
        .flat_map(|command| command.get_arguments().filter_map(|it| it.get_long()))
        .map(|long| format!("--{long}"))
        .chain(["--help".into(), "--version".into()])
        .collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let spans = spans(&text);
        // Other pages speak of the options of other programs.
        let bare = text.contains("agui run") && !page.ends_with("performance.md");
        let ours =
            spans.iter().filter(|span| span.starts_with("agui ") || bare && span.starts_with("--"));
        for option in
            ours.flat_map(|span| span.split_whitespace()).filter(|it| it.starts_with("--"))
        {
            let name = option.split('=').next().unwrap_or(option);
            seen += 1;
            if name != "--" && !known.contains(name) {
                wrong.push(format!("{}: {option}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "there are no such options:\n{}", wrong.join("\n"));
    assert!(seen > 5, "{seen} options");
}

#[test]
fn every_link_in_a_page_leads_somewhere() {
    let (mut followed, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let prose = prose(&text);
        let links = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (link, _) in links.filter(|(link, _)| !link.contains("://")) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if path.is_empty() { page.clone() } else { page.parent().unwrap().join(path) };
            let there = match heading {
                "" => target.exists(),
                heading => {
                    fs::read_to_string(&target).is_ok_and(|text| has_heading(&text, heading))
                }
            };
            followed += 1;
            if !there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(followed > 100, "{followed} links");
}

/// Whether a page has a heading that a link calls by this name.
fn has_heading(page: &str, name: &str) -> bool {
    prose(page).lines().filter(|line| line.starts_with('#')).any(|heading| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).eq(name.chars())
    })
}

#[test]
fn words_are_a_shell_s() {
    let text =
        "```sh\nA=1 agui run URL 'a b' --x \"c|d\" \\\n  e | cat # f\n# g\nh && i 2> j\n```\n";
    let commands = commands(text);
    let expected: [&[&str]; 4] =
        [&["A=1", "agui", "run", "URL", "a b", "--x", "c|d", "e"], &["cat"], &["h"], &["i"]];
    assert_eq!(commands, expected);
    assert_eq!(ours(&commands[0]).unwrap()[..2], ["agui", "run"]);
    assert_eq!(ours(&commands[1]), None);
}

/// The pages that people read.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["docs", "skills"].map(|folder| files(&root.join(folder)));
    let mut pages: Vec<_> = folders.into_iter().flatten().collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.push(root.join("README.md"));
    pages
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The words of a command that calls this program, with its name first.
fn ours(command: &[String]) -> Option<Vec<String>> {
    let is_setting = |word: &&String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
    };
    let words: Vec<String> = command.iter().skip_while(is_setting).cloned().collect();
    if words.first()? == "agui" {
        return Some(words);
    }
    let run = ["cargo", "run", "--release", "--"];
    let arguments = words.strip_prefix(&run.map(String::from)[..])?;
    Some([&["agui".to_owned()], arguments].concat())
}

/// The commands in the blocks for shells, split into words as a shell does.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let prompt = match line {
            "```sh" => "",
            "```console" => "$ ",
            _ => continue,
        };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let script = block.iter().filter_map(|line| line.strip_prefix(prompt));
        let script: Vec<&str> = script.collect();
        found.extend(split(&script.join("\n").replace("\\\n", " ")));
    }
    found
}

/// Splits a script into commands, and these into words. Quotes, comments, what comes between commands
/// and redirections are known; nothing is expanded.
fn split(script: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for line in script.lines() {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (quote, c) {
                (Some(open), _) if open == c => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.get_or_insert_default();
                }
                (None, '#') if word.is_none() => break,
                (None, ' ') => words.extend(word.take()),
                (None, '|' | ';' | '&') => {
                    words.extend(word.take());
                    commands.push(std::mem::take(&mut words));
                }
                _ => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        commands.push(words);
    }
    for words in &mut commands {
        let redirection = |word: &String| matches!(&**word, ">" | "2>" | "<");
        let end = words.iter().position(redirection).unwrap_or(words.len());
        words.truncate(end);
    }
    commands.retain(|words| !words.is_empty());
    commands
}

/// What stands in the prose as code.
fn spans(page: &str) -> Vec<String> {
    prose(page).split('`').skip(1).step_by(2).map(|span| span.replace('\n', " ")).collect()
}

/// A page without its blocks of code.
fn prose(page: &str) -> String {
    let (mut prose, mut inside) = (String::new(), false);
    for line in page.lines() {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        if !inside && !fence {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    prose
}
