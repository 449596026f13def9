//! What stands in the tables, read by whoever has a connection.

use std::collections::HashMap;

use agui_stream::Ending;
use agui_types::json::Value;
use agui_types::{Event, EventReader, FromJson, RunAgentInput, RunId, ThreadId};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::fault::Failure;
use crate::entry::{Cursor, Entry, EntryKind, Page, ReadLimit};
use crate::error::JournalError;
use crate::implement::{ActiveRun, Fold};
use crate::journal::Result;
use crate::run::RunInfo;
use crate::snapshot::{Facts, Snapshot};
use crate::thread::{ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// The columns that [`info`] reads.
macro_rules! info_columns {
    () => {
        "t.thread, t.name, t.owner, t.archived, t.created_at, t.updated_at, t.runs, \
         t.finished_runs, t.head, t.bytes, t.open_interrupts, t.pending_calls, r.run, r.agent, \
         r.began_at, r.ended_at, r.ending"
    };
}

/// A thread's row, as far as reading and writing the log needs it.
#[derive(Clone, Debug)]
pub(super) struct ThreadRow {
    pub(super) id: i64,
    pub(super) head: u64,
    pub(super) floor: u64,
    pub(super) bytes: u64,
    pub(super) generation: u64,
    pub(super) active: Option<ActiveRow>,
}

/// The row of a run that is going on.
#[derive(Clone, Debug)]
pub(super) struct ActiveRow {
    pub(super) number: u64,
    pub(super) run: RunId,
    pub(super) first: u64,
}

impl ThreadRow {
    pub(super) fn next_position(&self) -> u64 {
        self.head.max(self.floor) + 1
    }
}

pub(super) fn thread_row(
    connection: &Connection,
    key: &ThreadKey,
) -> std::result::Result<Option<ThreadRow>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT t.id, t.head, t.floor, t.bytes, t.generation, r.number, r.run, r.first \
         FROM threads t LEFT JOIN runs r ON r.number = t.last_run AND r.ended_at IS NULL \
         WHERE t.tenant = ?1 AND t.thread = ?2",
    )?;
    let row = statement.query_row(params![key.tenant.as_str(), key.thread.as_str()], |row| {
        let active = match row.get::<_, Option<i64>>(5)? {
            None => None,
            Some(number) => Some(ActiveRow {
                number: unsigned(number),
                run: RunId::from(row.get::<_, String>(6)?),
                first: number_at(row, 7)?,
            }),
        };
        Ok(ThreadRow {
            id: row.get(0)?,
            head: number_at(row, 1)?,
            floor: number_at(row, 2)?,
            bytes: number_at(row, 3)?,
            generation: number_at(row, 4)?,
            active,
        })
    });
    Ok(row.optional()?)
}

pub(super) fn info(connection: &Connection, key: &ThreadKey) -> Result<ThreadInfo> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        info_columns!(),
        " FROM threads t JOIN runs r ON r.number = t.last_run WHERE t.tenant = ?1 AND t.thread = ?2"
    ))?;
    let found = statement.query_row(params![key.tenant.as_str(), key.thread.as_str()], read_info);
    found.optional()?.ok_or(JournalError::ThreadNotFound)
}

pub(super) fn list(connection: &Connection, query: &ThreadQuery) -> Result<ThreadPage> {
    let after = query.after.as_ref();
    let after = after.map(|token| token.read().ok_or(JournalError::PageToken)).transpose()?;
    let (updated_at, thread) = after.unzip();
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        info_columns!(),
        " FROM threads t JOIN runs r ON r.number = t.last_run WHERE t.tenant = ?1 \
         AND (?2 IS NULL OR (t.updated_at, t.thread) < (?2, ?3)) \
         ORDER BY t.updated_at DESC, t.thread DESC"
    ))?;
    let mut rows =
        statement.query(params![query.tenant.as_str(), updated_at.map(signed), thread])?;
    let limit = query.page_size();
    let mut threads = Vec::new();
    while let Some(row) = rows.next()? {
        let info = read_info(row)?;
        if query.matches(&info) {
            threads.push(info);
            if threads.len() > limit {
                break;
            }
        }
    }
    Ok(ThreadPage::cut(threads, limit))
}

fn read_info(row: &Row<'_>) -> rusqlite::Result<ThreadInfo> {
    let mut run =
        RunInfo::new(RunId::from(row.get::<_, String>(12)?), row.get::<_, String>(13)?, 0);
    run.began_at = number_at(row, 14)?;
    run.ended_at = row.get::<_, Option<i64>>(15)?.map(unsigned);
    run.ending = row.get::<_, Option<String>>(16)?.map(|ending| read_ending(&ending));
    let mut info = ThreadInfo::new(ThreadId::from(row.get::<_, String>(0)?), row.get(2)?, run);
    info.name = row.get(1)?;
    info.archived = row.get(3)?;
    info.created_at = number_at(row, 4)?;
    info.updated_at = number_at(row, 5)?;
    info.runs = number_at(row, 6)?;
    info.finished_runs = number_at(row, 7)?;
    info.head = number_at(row, 8)?;
    info.bytes = number_at(row, 9)?;
    info.open_interrupts = row.get(10)?;
    info.pending_tool_calls = row.get(11)?;
    Ok(info)
}

fn read_ending(text: &str) -> Ending {
    let endings = [Ending::Completed, Ending::Interrupted, Ending::Cancelled, Ending::Failed];
    endings.into_iter().find(|ending| ending.as_str() == text).unwrap_or(Ending::Truncated)
}

pub(super) fn facts(connection: &Connection, thread: i64) -> std::result::Result<Facts, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT interrupts, calls FROM folded WHERE thread = ?1")?;
    let found = statement
        .query_row([thread], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let Some((interrupts, calls)) = found.optional()? else { return Ok(Facts::default()) };
    let unreadable = |error| Failure::unreadable("what a thread leaves open", error);
    Ok(Facts {
        open_interrupts: serde_json::from_str(&interrupts).map_err(unreadable)?,
        pending_tool_calls: serde_json::from_str(&calls).map_err(unreadable)?,
    })
}

/// A thread folded up to its last event, and the run that is going on.
pub(super) fn fold(
    connection: &Connection,
    thread: &ThreadRow,
) -> std::result::Result<(Fold, Option<ActiveRun>), Failure> {
    let unreadable = |error: &dyn std::fmt::Display| Failure::unreadable("a folded thread", error);
    let mut statement =
        connection.prepare_cached("SELECT messages, state FROM folded WHERE thread = ?1")?;
    let folded = statement
        .query_row([thread.id], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    let mut fold = match folded.optional()? {
        None => Fold::new(),
        Some((messages, state)) => {
            let messages = serde_json::from_str(&messages).map_err(|error| unreadable(&error))?;
            let state = Value::parse(&state).map_err(|error| unreadable(&error))?;
            Fold::restore(messages, state, facts(connection, thread.id)?)
        }
    };
    let Some(active) = &thread.active else { return Ok((fold, None)) };
    let mut statement = connection.prepare_cached("SELECT input FROM runs WHERE number = ?1")?;
    let input: String = statement.query_row([signed(active.number)], |row| row.get(0))?;
    let input = RunAgentInput::from_json_tolerant(&input)
        .map_err(|error| Failure::unreadable("the input of a run", error))?;
    let mut run = ActiveRun::begin(input.value, &mut fold);
    events(connection, thread.id, active.first, u64::MAX, |event| {
        run.replay(&event, &mut fold);
    })?;
    Ok((fold, Some(run)))
}

/// Reads the events between two positions, both included.
pub(super) fn events(
    connection: &Connection,
    thread: i64,
    first: u64,
    last: u64,
    mut each: impl FnMut(Event),
) -> std::result::Result<(), Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT json FROM events WHERE thread = ?1 AND position BETWEEN ?2 AND ?3 ORDER BY position",
    )?;
    let mut rows = statement.query(params![thread, signed(first), signed(last)])?;
    let mut reader = EventReader::new();
    while let Some(row) = rows.next()? {
        let json =
            row.get_ref(0)?.as_blob().map_err(|error| Failure::unreadable("an event", error))?;
        let json =
            std::str::from_utf8(json).map_err(|error| Failure::unreadable("an event", error))?;
        let event =
            reader.tolerant(json).map_err(|error| Failure::unreadable("an event", error))?;
        each(event.value);
    }
    Ok(())
}

pub(super) fn snapshot(connection: &Connection, key: &ThreadKey) -> Result<Snapshot> {
    let thread = thread_row(connection, key)?.ok_or(JournalError::ThreadNotFound)?;
    let (fold, _) = fold(connection, &thread)?;
    Ok(fold.snapshot(thread.head, thread.active.map(|active| active.run)))
}

pub(super) fn page(
    connection: &Connection,
    key: &ThreadKey,
    from: Cursor,
    limit: ReadLimit,
) -> Result<Page> {
    let thread = thread_row(connection, key)?.ok_or(JournalError::ThreadNotFound)?;
    check(connection, &thread, from)?;
    let mut statement = connection.prepare_cached(
        "SELECT position, kind, run, json FROM events WHERE thread = ?1 AND position > ?2 \
         ORDER BY position",
    )?;
    let mut rows = statement.query(params![thread.id, signed(from.position())])?;
    let mut runs: HashMap<i64, RunId> = HashMap::new();
    let (mut bytes, mut entries) = (0, Vec::new());
    while let Some(row) = rows.next()? {
        let json =
            row.get_ref(3)?.as_blob().map_err(|error| Failure::unreadable("an event", error))?;
        bytes += json.len();
        if !entries.is_empty() && (entries.len() >= limit.events || bytes > limit.bytes) {
            break;
        }
        let number: i64 = row.get(2)?;
        let run = match runs.get(&number) {
            Some(run) => run.clone(),
            None => {
                let run = run_id(connection, number)?;
                runs.insert(number, run.clone());
                run
            }
        };
        let kind = read_kind(row.get(1)?);
        entries.push(Entry::new(number_at(row, 0)?, kind, run, Bytes::copy_from_slice(json)));
    }
    let last = entries.last().map_or(from.position(), |entry| entry.position);
    let next = Cursor::within(last, thread.generation);
    Ok(Page::new(entries, next, thread.head, thread.active.map(|active| active.run)))
}

/// Whether there is a place behind a cursor.
fn check(connection: &Connection, thread: &ThreadRow, from: Cursor) -> Result<()> {
    let (position, head) = (from.position(), thread.head);
    if position == 0 || position == head {
        return Ok(());
    }
    let mut statement = connection
        .prepare_cached("SELECT coalesce(min(position), 0) FROM events WHERE thread = ?1")?;
    let first = unsigned(statement.query_row([thread.id], |row| row.get(0))?);
    let mut statement = connection.prepare_cached(
        "SELECT first, shorter FROM runs WHERE thread = ?1 AND last > ?2 ORDER BY last LIMIT 1",
    )?;
    let run = statement.query_row(params![thread.id, signed(position)], |row| {
        Ok((number_at(row, 0)?, row.get::<_, bool>(1)?))
    });
    let moved = run.optional()?.is_some_and(|(first, shorter)| first <= position && shorter)
        && from.generation().is_none_or(|generation| generation != thread.generation);
    if moved || position < first || position > head {
        return Err(JournalError::PositionUnknown { position, first, head });
    }
    Ok(())
}

pub(super) fn run_id(connection: &Connection, number: i64) -> std::result::Result<RunId, Failure> {
    let mut statement = connection.prepare_cached("SELECT run FROM runs WHERE number = ?1")?;
    Ok(RunId::from(statement.query_row([number], |row| row.get::<_, String>(0))?))
}

/// As it stands in the table.
pub(super) fn write_kind(kind: EntryKind) -> i64 {
    match kind {
        EntryKind::Started => 1,
        EntryKind::Event => 0,
        EntryKind::Finished => 2,
        EntryKind::Failed => 3,
    }
}

pub(super) fn read_kind(kind: i64) -> EntryKind {
    match kind {
        1 => EntryKind::Started,
        2 => EntryKind::Finished,
        3 => EntryKind::Failed,
        _ => EntryKind::Event,
    }
}

pub(super) fn number_at(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(unsigned)
}

/// SQLite's integers are signed. What does not fit is beyond everything that is stored.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
