//! `agui.toml`: text to values, each with its place.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use super::tree::{Entry, Node, Origin, Table, Value};

/// The file that is read where nobody names one.
pub(super) const USUAL: &str = "agui.toml";

/// The largest file that is read, in bytes.
const MOST: u64 = 1024 * 1024;

/// Reads a file; `None` where it is not there.
pub(super) fn read(path: &Path) -> Result<Option<Table>, Problem> {
    let shown: Arc<str> = path.display().to_string().into();
    let at = Origin::File { file: Arc::clone(&shown), line: 1, column: 1 };
    let problem = |what: String, fix: &str| Problem::of_file(at.clone(), what, fix.into());
    let opened = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened,
    };
    let mut text = Vec::new();
    let read = opened.and_then(|file| file.take(MOST + 1).read_to_end(&mut text));
    read.map_err(|error| {
        problem(format!("the file cannot be read: {error}"), "name another with --config")
    })?;
    if text.len() as u64 > MOST {
        return Err(problem(
            "the file is larger than 1 MiB".into(),
            "a configuration is a few lines; name another file with --config",
        ));
    }
    match String::from_utf8(text) {
        Ok(text) => parse(&text, &shown).map(Some),
        Err(error) => {
            let valid =
                String::from_utf8_lossy(&error.as_bytes()[..error.utf8_error().valid_up_to()]);
            let at = place(&valid, valid.len(), &shown);
            let (what, fix) = ("this is not UTF-8", "save the file as UTF-8");
            Err(Problem::of_file(at, what.into(), fix.into()))
        }
    }
}

/// Reads the text of a file.
pub(super) fn parse(text: &str, file: &Arc<str>) -> Result<Table, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let places = Places { text, file };
    let table = DeTable::parse(text).map_err(|error| {
        let at = places.at(&error.span().unwrap_or_default());
        let (what, fix) = match error.message() {
            "duplicate key" => ("this key is given twice", "remove one of the two"),
            what => (what, "docs/configuration.md has an example of the whole file"),
        };
        Problem::of_file(at, what.replace('\n', ", "), fix.into())
    })?;
    Ok(places.table(table.span(), table.into_inner()))
}

struct Places<'a> {
    text: &'a str,
    file: &'a Arc<str>,
}

impl Places<'_> {
    fn at(&self, span: &Range<usize>) -> Origin {
        place(self.text, span.start, self.file)
    }

    fn table(&self, span: Range<usize>, table: DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table.into_iter().collect();
        // The order in which they stand there.
        entries.sort_by_key(|(name, _)| name.span().start);
        let entries = entries.into_iter().map(|(name, value)| Entry {
            origin: self.at(&name.span()),
            name: name.into_inner().into_owned(),
            node: self.node(value),
        });
        Table { origin: self.at(&span), entries: entries.collect() }
    }

    fn node(&self, value: Spanned<DeValue<'_>>) -> Node {
        let span = value.span();
        let origin = self.at(&span);
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or(Value::Huge, Value::Integer),
            DeValue::Float(number) => number.as_str().parse().map_or(Value::Huge, Value::Float),
            DeValue::Boolean(yes) => Value::Boolean(yes),
            DeValue::Datetime(_) => Value::Date,
            DeValue::Array(items) => {
                Value::List(items.into_iter().map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(span, table)),
        };
        Node { origin, value }
    }
}

/// Line and column of a byte, both from 1.
fn place(text: &str, byte: usize, file: &Arc<str>) -> Origin {
    let before = text.get(..byte).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    Origin::File { file: Arc::clone(file), line, column }
}
