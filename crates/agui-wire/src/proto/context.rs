//! What reading one message carries along.

use std::sync::Arc;

use agui_types::read::{Finding, FindingKind, Findings};
use agui_types::{EventReader, ReadError, ReadErrorKind, Reading};

use super::fault::{Fault, Problem};
use super::path::{Path, Step};
use crate::Warning;

pub(super) struct Context<'i> {
    ids: &'i mut EventReader,
    path: Path,
    pub(super) findings: Findings,
    pub(super) warnings: Vec<Warning>,
    /// How many more list elements there may be.
    items: usize,
    /// How many levels are open inside the JSON value that is being read.
    pub(super) depth: usize,
}

impl<'i> Context<'i> {
    pub(super) fn new(ids: &'i mut EventReader, items: usize) -> Self {
        Self {
            ids,
            path: Path::default(),
            findings: Findings::default(),
            warnings: Vec::new(),
            items,
            depth: 0,
        }
    }

    /// Runs `read` one step further in, so that what it reports names the place.
    pub(super) fn inside<T>(&mut self, step: Step, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let value = read(self);
        self.path.pop();
        value
    }

    /// Counts an element of a list, or a message that is to be merged with another: each takes more
    /// memory than the bytes that spell it.
    pub(super) fn item(&mut self) -> Result<(), Fault> {
        self.items = self.items.checked_sub(1).ok_or(Fault::TooManyItems)?;
        Ok(())
    }

    /// How many levels would be open here if the whole event were JSON.
    pub(super) fn levels(&self) -> usize {
        self.path.len() + self.depth
    }

    #[inline]
    pub(super) fn intern(&mut self, id: &[u8]) -> Result<Arc<str>, Fault> {
        self.ids.intern_bytes(id).ok_or_else(|| Fault::malformed(Problem::Utf8, id))
    }

    /// The path here, or to a member of the object here.
    pub(super) fn path_to(&self, member: Option<&'static str>) -> String {
        match member {
            Some(name) => format!("{}{}", self.path, Step::Member(name)),
            None => self.path.to_string(),
        }
    }

    pub(super) fn find(&mut self, member: Option<&'static str>, kind: FindingKind) {
        let path = self.path_to(member);
        self.findings.add(Finding { path, kind });
    }

    /// The error for a required member that did not come.
    #[cold]
    pub(super) fn missing(&self, member: &'static str) -> Fault {
        let expected = format!("the member {:?}", &Step::Member(member).to_string()[1..]);
        self.error(member, ReadErrorKind::Missing, expected, "")
    }

    #[cold]
    pub(super) fn error(
        &self,
        member: &'static str,
        kind: ReadErrorKind,
        expected: impl Into<String>,
        found: &str,
    ) -> Fault {
        let found = crate::quote::shortened(found, 0, 60);
        Fault::Read(
            ReadError::new(kind, 0, expected.into(), found).inside(self.path_to(Some(member))),
        )
    }

    /// What reading a piece of the event as JSON gave: seen from here, it is the same.
    pub(super) fn adopt<T>(&mut self, reading: Result<Reading<T>, ReadError>) -> Result<T, Fault> {
        let Reading { value, findings } =
            reading.map_err(|error| Fault::Read(error.inside(&self.path)))?;
        for Finding { path, kind } in findings {
            let path = format!("{}{path}", self.path);
            self.findings.add(Finding { path, kind });
        }
        Ok(value)
    }
}

/// The text of a string field.
#[inline]
pub(super) fn text(bytes: &[u8]) -> Result<&str, Fault> {
    std::str::from_utf8(bytes).map_err(|_| Fault::malformed(Problem::Utf8, bytes))
}
