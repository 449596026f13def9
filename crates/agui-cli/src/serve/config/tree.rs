//! What was said, where, and which of it counts.

use std::fmt;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Nobody said anything.
    Default,
    /// A place in a file; lines and columns (in characters) count from 1.
    File { file: Arc<str>, line: usize, column: usize },
    /// A variable of the environment.
    Variable(String),
    /// An argument of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) origin: Origin,
    pub(super) value: Value,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    List(Vec<Node>),
    Table(Table),
    /// A date or a time, which nothing here is.
    Date,
    /// An integer that no machine has room for.
    Huge,
}

impl Value {
    /// What it is, for messages; never what it says, which may be a secret.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number with a fraction",
            Self::Boolean(_) => "true or false",
            Self::List(_) => "a list",
            Self::Table(_) => "a table",
            Self::Date => "a date",
            Self::Huge => "an integer beyond 64 bits",
        }
    }
}

/// Values by name, in the order in which they were given.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) origin: Origin,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    /// Where the name stands.
    pub(super) origin: Origin,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, entries: Vec::new() }
    }

    /// Puts a value at the end of a path, through tables that are made where they are missing.
    pub(super) fn put(&mut self, path: &[&str], node: Node) {
        let Some((name, rest)) = path.split_first() else { return };
        let at = self.entries.iter().position(|entry| entry.name == *name);
        let at = at.unwrap_or_else(|| {
            let origin = node.origin.clone();
            let empty = Value::Table(Self::new(origin.clone()));
            let empty = Node { origin: origin.clone(), value: empty };
            self.entries.push(Entry { name: (*name).into(), origin, node: empty });
            self.entries.len() - 1
        });
        let entry = &mut self.entries[at];
        match &mut entry.node.value {
            Value::Table(table) if !rest.is_empty() => table.put(rest, node),
            _ => entry.node = node,
        }
    }

    /// Lays another layer over this one: what it says counts, tables go together.
    pub(super) fn overlay(&mut self, above: Self) {
        for entry in above.entries {
            match self.entries.iter_mut().find(|below| below.is_meant_by(&entry)) {
                None => self.entries.push(entry),
                Some(below) => match (&mut below.node.value, entry.node.value) {
                    (Value::Table(below), Value::Table(above)) => below.overlay(above),
                    (_, value) => {
                        let origin = entry.node.origin;
                        (below.origin, below.node) = (origin.clone(), Node { origin, value });
                    }
                },
            }
        }
    }

    /// Takes a value out.
    pub(super) fn take(&mut self, name: &str) -> Option<Entry> {
        let at = self.entries.iter().position(|entry| entry.name == name)?;
        Some(self.entries.remove(at))
    }
}

impl Entry {
    /// Whether a layer above means this entry. The names of variables have neither small letters
    /// nor dashes nor dots.
    fn is_meant_by(&self, above: &Self) -> bool {
        let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
        match above.origin {
            Origin::Variable(_) => plain(&self.name) == plain(&above.name),
            _ => self.name == above.name,
        }
    }
}
