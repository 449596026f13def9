//! Reads values by their keys, and knows afterwards which keys there are.

use std::cell::RefCell;

use super::problem::Problem;
use super::setting::{Lookup, Setting};
use super::tree::{Entry, Node, Origin, Table, Value};

/// What a configuration was asked for.
pub(super) struct Reader<'e> {
    environment: Lookup<'e>,
    asked: RefCell<Vec<Asked>>,
    problems: RefCell<Vec<Problem>>,
}

/// A key that was asked for.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    /// The table that the key stands in; empty for the file itself.
    pub(super) section: Vec<String>,
    pub(super) key: String,
    /// The value that counts, as TOML; none where there is none.
    pub(super) shown: Option<String>,
    pub(super) origin: Origin,
}

/// A value, and where it comes from.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) origin: Origin,
}

impl<'e> Reader<'e> {
    pub(super) fn new(environment: Lookup<'e>) -> Self {
        Self { environment, asked: RefCell::default(), problems: RefCell::default() }
    }

    pub(super) fn root(&self, table: Table) -> Section<'_> {
        Section { reader: self, path: Vec::new(), table, keys: Vec::new() }
    }

    pub(super) fn problem(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// What was asked for, and what is wrong.
    pub(super) fn into_parts(self) -> (Vec<Asked>, Vec<Problem>) {
        (self.asked.into_inner(), self.problems.into_inner())
    }
}

/// One table of a configuration.
pub(super) struct Section<'r> {
    reader: &'r Reader<'r>,
    path: Vec<String>,
    table: Table,
    /// The keys that were asked for here.
    keys: Vec<&'static str>,
}

impl<'r> Section<'r> {
    /// The value of a key, or what it is where nobody says.
    pub(super) fn get<T: Setting>(&mut self, key: &'static str, default: T) -> At<T> {
        let at = self.find(key);
        let at = at.unwrap_or(At { value: default, origin: Origin::Default });
        self.note(key, Some(at.value.show()), at.origin.clone());
        at
    }

    /// The value of a key that may be missing.
    pub(super) fn optional<T: Setting>(&mut self, key: &'static str) -> Option<At<T>> {
        let at = self.find::<T>(key);
        let shown = at.as_ref().map(|at| at.value.show());
        let origin = at.as_ref().map_or(Origin::Default, |at| at.origin.clone());
        self.note(key, shown, origin);
        at
    }

    /// The value of a key that must not be missing.
    pub(super) fn required<T: Setting>(&mut self, key: &'static str) -> Option<At<T>> {
        let given = self.table.entries.iter().any(|entry| entry.name == key);
        let at = self.optional::<T>(key);
        if !given {
            let what = format!("it is missing; expected {}", T::EXPECTED);
            self.problem_at(self.table.origin.clone(), key, what, T::fix(key));
        }
        at
    }

    /// The values of a table whose keys anybody may choose.
    pub(super) fn named<T: Setting>(&mut self, key: &'static str) -> Vec<(At<String>, At<T>)> {
        let mut section = self.section(key);
        let mut values = Vec::new();
        for Entry { name, origin, node } in std::mem::take(&mut section.table.entries) {
            if let Some(value) = section.read::<T>(&name, node) {
                section.note(&name, Some(value.value.show()), value.origin.clone());
                values.push((At { value: name, origin }, value));
            }
        }
        values
    }

    /// The tables of a table whose keys anybody may choose.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<(At<String>, Section<'r>)> {
        let mut section = self.section(key);
        let mut sections = Vec::new();
        for Entry { name, origin, node } in std::mem::take(&mut section.table.entries) {
            let inner = section.as_section(&name, Some(node));
            sections.push((At { value: name, origin }, inner));
        }
        sections
    }

    /// The table of a key; an empty one where there is none.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'r> {
        self.keys.push(key);
        let node = self.table.take(key).map(|entry| entry.node);
        self.as_section(key, node)
    }

    /// Whether the table holds anything that was not asked for yet.
    pub(super) fn is_empty(&self) -> bool {
        self.table.entries.is_empty()
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.table.origin
    }

    /// Something is wrong with the value of a key.
    pub(super) fn problem_at(
        &self,
        at: Origin,
        key: &str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.reader.problem(Problem::new(at, dotted(&self.path, key), what, fix));
    }

    /// Says of each key that nobody asked for that it is none.
    pub(super) fn finish(mut self) {
        for Entry { name, origin, .. } in std::mem::take(&mut self.table.entries) {
            let near = self.keys.iter().max_by(|a, b| {
                let near = |key: &str| strsim::jaro_winkler(key, &name);
                near(a).total_cmp(&near(b))
            });
            let near = near.filter(|key| strsim::jaro_winkler(key, &name) > NEAR);
            let known = self.keys.join(", ");
            let fix = match near {
                Some(near) => format!("did you mean {near}? The keys here are {known}"),
                None => format!("remove it; the keys here are {known}"),
            };
            self.problem_at(origin, &name, "there is no such key", fix);
        }
    }

    fn find<T: Setting>(&mut self, key: &'static str) -> Option<At<T>> {
        self.keys.push(key);
        let entry = self.table.take(key)?;
        self.read(key, entry.node)
    }

    fn read<T: Setting>(&self, key: &str, node: Node) -> Option<At<T>> {
        match T::read(&node, self.reader.environment) {
            Ok(value) => Some(At { value, origin: node.origin }),
            Err(what) => {
                self.problem_at(node.origin, key, what, T::fix(key));
                None
            }
        }
    }

    fn as_section(&self, key: &str, node: Option<Node>) -> Section<'r> {
        let path: Vec<String> = self.path.iter().cloned().chain([key.to_owned()]).collect();
        let table = match node {
            Some(Node { value: Value::Table(table), .. }) => table,
            Some(Node { value, origin }) => {
                let what = format!("expected a table, found {}", value.kind());
                let fix = format!("begin it with [{}]", dotted(&self.path, key));
                self.problem_at(origin.clone(), key, what, fix);
                Table::new(origin)
            }
            None => Table::new(self.table.origin.clone()),
        };
        Section { reader: self.reader, path, table, keys: Vec::new() }
    }

    fn note(&self, key: &str, shown: Option<String>, origin: Origin) {
        let section = self.path.clone();
        self.reader.asked.borrow_mut().push(Asked { section, key: key.into(), shown, origin });
    }
}

/// How near a key has to be to be meant.
const NEAR: f64 = 0.8;

fn dotted(path: &[String], key: &str) -> String {
    // Without a key the table itself is meant.
    let key = Some(key).filter(|key| !key.is_empty());
    let segments = path.iter().map(String::as_str).chain(key);
    segments.map(quoted).collect::<Vec<_>>().join(".")
}

/// A key as it stands in a file.
pub(super) fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if !key.is_empty() && key.chars().all(bare) { key.into() } else { format!("{key:?}") }
}
