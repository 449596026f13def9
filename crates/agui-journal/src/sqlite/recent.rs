//! What was committed lately of the runs that are going on, as it was committed.
//!
//! A group of tasks that is committed together makes one row of `recent`, whatever number of runs it
//! has events of, so that it costs a few pages and not some for each run. The row has, for each batch:
//! the number of the run, the position of the first event, the bytes that follow (each
//! [a number](super::chunk::write_number)), and the events as in a [`Chunk`]. Once a run has enough of
//! them, ends, or holds up those behind it, its events are packed into `chunks`. Here are kept the
//! rows that are still needed: they are read when the file is opened, and never else.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension, params};

use super::chunk::{Chunk, Damaged, Frames, read_number, write_number};
use super::fault::{Failure, Kind};
use super::rows::{self, signed, unsigned};
use crate::entry::EntryKind;

/// How many bytes are added before those from before are looked at and removed. So the table holds
/// twice as much, and one group.
const ROUND: u64 = 4 * 1024 * 1024;

/// How many runs, of those that hold up others, are packed with one commit.
const AT_ONCE: usize = 32;

/// The rows, and which of them are needed.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The events of the group at hand.
    row: Vec<u8>,
    /// The last row that was begun.
    last: i64,
    /// How many bytes have been added in this round.
    bytes: u64,
    /// The last row of the round before, while there are rows up to that.
    round: Option<i64>,
    /// The first row that a run needs.
    needs: HashMap<u64, i64>,
    needed: BTreeSet<(i64, u64)>,
}

impl Recent {
    /// Adds events to the row of this group: the run, the position of the first, and themselves.
    pub(super) fn add(&mut self, run: u64, first: u64, events: &[u8]) {
        for number in [run, first, events.len() as u64] {
            write_number(number, &mut self.row);
        }
        self.row.extend_from_slice(events);
    }

    /// How much of the row there is.
    pub(super) fn mark(&self) -> usize {
        self.row.len()
    }

    /// Takes back what was added since.
    pub(super) fn take_back(&mut self, mark: usize) {
        self.row.truncate(mark);
    }

    /// Writes the row of this group, if it has one.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), Failure> {
        if self.row.is_empty() {
            return Ok(());
        }
        self.last += 1;
        self.bytes += self.row.len() as u64;
        let sql = "INSERT INTO recent (number, events) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![self.last, self.row])?;
        self.row.clear();
        Ok(())
    }

    /// The last of the rows that are to be removed now, if there are any.
    pub(super) fn round(&mut self) -> Option<i64> {
        if self.round.is_none() && self.bytes >= ROUND {
            self.bytes = 0;
            // Who needs the row of the group at hand is known once it is committed.
            self.round = Some(self.last - 1);
        }
        self.round
    }

    /// Some of the runs that need a row up to this one; empty where none does.
    pub(super) fn late(&self, row: i64) -> Vec<u64> {
        self.needed.range(..=(row, u64::MAX)).take(AT_ONCE).map(|(_, run)| *run).collect()
    }

    /// The rows are removed.
    pub(super) fn end_round(&mut self) {
        self.round = None;
    }

    /// They could not be: what comes next should not fail by it.
    pub(super) fn put_off(&mut self) {
        self.bytes = 0;
        self.round = None;
    }

    /// The group is not committed.
    pub(super) fn failed(&mut self) {
        self.row.clear();
        self.put_off();
    }

    /// The last row was committed, and has events of this run.
    pub(super) fn need(&mut self, run: u64) {
        if let Slot::Vacant(slot) = self.needs.entry(run) {
            self.needed.insert((*slot.insert(self.last), run));
        }
    }

    /// All that there is of this run was packed, or it is gone.
    pub(super) fn forget(&mut self, run: u64) {
        if let Some(row) = self.needs.remove(&run) {
            self.needed.remove(&(row, run));
        }
    }
}

/// The end of a run as it is in `chunks`, and what comes behind it.
struct End {
    thread: i64,
    name: String,
    head: u64,
    next: u64,
    bytes: u64,
    chunk: Chunk,
}

/// Packs everything that another process has left.
pub(super) fn pack_all(connection: &Connection) -> Result<(), Failure> {
    let mut runs: HashMap<u64, Option<End>> = HashMap::new();
    let mut statement = connection.prepare("SELECT number, events FROM recent ORDER BY number")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let what = || format!("row {number} of the latest events");
        let row = row.get_ref(1)?.as_blob();
        let row = row.map_err(|error| Failure::unreadable(&what(), error))?;
        for section in Sections(row, 0) {
            let unreadable = |damaged: Damaged| Failure::unreadable(&what(), damaged);
            let (run, first, events) = section.map_err(unreadable)?;
            let end = match runs.entry(run) {
                Slot::Occupied(slot) => slot.into_mut(),
                Slot::Vacant(slot) => slot.insert(end_of(connection, run)?),
            };
            // Of a run that has ended everything is packed.
            if let Some(end) = end {
                for (position, frame) in (first..).zip(Frames::new(events)) {
                    let (kind, json) = frame.map_err(unreadable)?;
                    end.take(connection, run, (position, kind), &events[json])?;
                }
            }
        }
    }
    for (run, end) in runs {
        if let Some(End { thread, head, bytes, mut chunk, .. }) = end {
            chunk.insert(connection, thread, run)?;
            rows::set_head(connection, thread, head, bytes)?;
        }
    }
    connection.execute("DELETE FROM recent", [])?;
    Ok(())
}

fn end_of(connection: &Connection, run: u64) -> Result<Option<End>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT t.id, t.head, t.floor, t.bytes, t.thread FROM runs r JOIN threads t ON t.id = r.thread \
         WHERE r.number = ?1 AND r.ended_at IS NULL",
    )?;
    let end = statement.query_row([signed(run)], |row| {
        let (head, floor): (i64, i64) = (row.get(1)?, row.get(2)?);
        Ok(End {
            thread: row.get(0)?,
            name: row.get(4)?,
            head: unsigned(head),
            next: unsigned(head.max(floor)) + 1,
            bytes: rows::number_at(row, 3)?,
            chunk: Chunk::default(),
        })
    });
    Ok(end.optional()?)
}

impl End {
    fn take(
        &mut self,
        connection: &Connection,
        run: u64,
        (position, kind): (u64, EntryKind),
        json: &[u8],
    ) -> Result<(), Failure> {
        if position < self.next {
            return Ok(());
        }
        if position > self.next {
            let Self { name, next, .. } = self;
            let what =
                format!("the events of the thread {name:?} are missing from position {next}");
            return Err(Failure::new(Kind::Corrupt, format!("{what} to {position}")));
        }
        if !self.chunk.takes(position, json.len()) {
            self.chunk.insert(connection, self.thread, run)?;
        }
        self.chunk.push(position, kind, json);
        (self.head, self.next) = (position, position + 1);
        self.bytes += json.len() as u64;
        Ok(())
    }
}

/// The batches of a row: run, first position, events.
struct Sections<'b>(&'b [u8], usize);

impl<'b> Sections<'b> {
    fn section(&mut self) -> Result<(u64, u64, &'b [u8]), Damaged> {
        let Self(row, at) = self;
        let run = read_number(row, at)?;
        let first = read_number(row, at)?;
        let length = read_number(row, at)?;
        let rest = row.get(*at..).unwrap_or_default();
        let events = usize::try_from(length).ok().and_then(|length| rest.get(..length));
        let events = events.ok_or(Damaged("a batch goes on behind its end"))?;
        *at += events.len();
        if i64::try_from(first).is_err() {
            return Err(Damaged("a position is too large"));
        }
        Ok((run, first, events))
    }
}

impl<'b> Iterator for Sections<'b> {
    type Item = Result<(u64, u64, &'b [u8]), Damaged>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.1 >= self.0.len() {
            return None;
        }
        let section = self.section();
        if section.is_err() {
            self.1 = self.0.len();
        }
        Some(section)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_gives_back_its_batches(
            batches in prop::collection::vec(
                (any::<u64>(), 0..u64::MAX / 2, prop::collection::vec(any::<u8>(), 0..50)),
                1..20,
            ),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut recent = Recent::default();
            let mut ends = vec![0];
            for (run, first, events) in &batches {
                recent.add(*run, *first, events);
                ends.push(recent.mark());
            }
            let read: Result<Vec<_>, _> = Sections(&recent.row, 0).collect();
            let expected = batches.iter().map(|(run, first, events)| (*run, *first, &events[..]));
            prop_assert!(read.unwrap().into_iter().eq(expected));
            // What is cut off is missed, unless whole batches are.
            let cut = cut.index(recent.row.len());
            let rest: Result<Vec<_>, _> = Sections(&recent.row[..cut], 0).collect();
            prop_assert_eq!(rest.is_ok(), ends.contains(&cut));
        }

        #[test]
        fn anything_is_refused_or_read(row in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut length = 0;
            for section in Sections(&row, 0) {
                length += section.map_or(0, |(_, _, events)| events.len());
            }
            prop_assert!(length <= row.len());
        }
    }
}
