//! What stands in the tables, read by whoever has a connection.

use std::collections::HashMap;

use agui_stream::Ending;
use agui_types::json::Value;
use agui_types::{Event, EventReader, FromJson, RunAgentInput, RunId, ThreadId};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::chunk::{self, Framed, text};
use super::fault::Failure;
use super::live::Ahead;
use crate::entry::{Cursor, Entry, Page, ReadLimit, Room};
use crate::error::JournalError;
use crate::implement::{ActiveRun, Fold};
use crate::journal::Result;
use crate::run::RunInfo;
use crate::snapshot::{Facts, Snapshot};
use crate::thread::{Tenant, ThreadInfo, ThreadKey, ThreadPage, ThreadQuery};

/// The columns that [`info`] reads.
macro_rules! info_columns {
    () => {
        "t.thread, t.name, t.owner, t.archived, t.created_at, t.updated_at, t.runs, \
         t.finished_runs, t.head, t.bytes, t.open_interrupts, t.pending_calls, r.run, r.agent, \
         r.began_at, r.ended_at, r.ending, r.number"
    };
}

/// A thread's row, as far as reading and writing the log needs it.
#[derive(Debug)]
pub(super) struct ThreadRow {
    pub(super) id: i64,
    pub(super) head: u64,
    pub(super) floor: u64,
    pub(super) bytes: u64,
    pub(super) generation: u64,
    pub(super) active: Option<ActiveRow>,
    /// The last events, which stand in no chunk yet; without what was [added](Self::add) there are
    /// none.
    pub(super) unpacked: Vec<Entry>,
}

/// The row of a run that is going on.
#[derive(Clone, Debug)]
pub(super) struct ActiveRow {
    pub(super) number: u64,
    pub(super) run: RunId,
    pub(super) first: u64,
}

impl ThreadRow {
    /// The row of a thread that begins.
    pub(super) fn new(id: i64, floor: u64) -> Self {
        let (head, bytes, generation) = (0, 0, 0);
        Self { id, head, floor, bytes, generation, active: None, unpacked: Vec::new() }
    }

    pub(super) fn next_position(&self) -> u64 {
        self.head.max(self.floor) + 1
    }

    /// Adds those of a run's events that come behind what is there, if the run is going on.
    pub(super) fn add(&mut self, run: u64, entries: impl IntoIterator<Item = Entry>) {
        if self.active.as_ref().is_none_or(|active| active.number != run) {
            return;
        }
        for entry in entries {
            if entry.position > self.head {
                self.head = entry.position;
                self.bytes += entry.json.len() as u64;
                self.unpacked.push(entry);
            }
        }
    }
}

/// Writes down up to where a thread's log is packed, and how many bytes of JSON text that is.
pub(super) fn set_head(
    connection: &Connection,
    thread: i64,
    head: u64,
    bytes: u64,
) -> std::result::Result<(), Failure> {
    let sql = "UPDATE threads SET head = ?2, bytes = ?3 WHERE id = ?1";
    connection.prepare_cached(sql)?.execute(params![thread, signed(head), signed(bytes)])?;
    Ok(())
}

/// A thread's row, and what has been committed of it and is in no chunk yet.
pub(super) fn thread(
    connection: &Connection,
    key: &ThreadKey,
    unpacked: Option<(u64, Vec<Entry>)>,
) -> Result<ThreadRow> {
    let mut thread = thread_row(connection, key)?.ok_or(JournalError::ThreadNotFound)?;
    if let Some((run, entries)) = unpacked {
        thread.add(run, entries);
    }
    Ok(thread)
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
            unpacked: Vec::new(),
        })
    });
    Ok(row.optional()?)
}

pub(super) fn info(
    connection: &Connection,
    key: &ThreadKey,
    ahead: Option<Ahead>,
) -> Result<ThreadInfo> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        info_columns!(),
        " FROM threads t JOIN runs r ON r.number = t.last_run WHERE t.tenant = ?1 AND t.thread = ?2"
    ))?;
    let found = statement.query_row(params![key.tenant.as_str(), key.thread.as_str()], |row| {
        read_info(row, |_| ahead)
    });
    found.optional()?.ok_or(JournalError::ThreadNotFound)
}

pub(super) fn list(
    connection: &Connection,
    query: &ThreadQuery,
    ahead: &HashMap<ThreadKey, Ahead>,
) -> Result<ThreadPage> {
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
        let info = read_info(row, |thread| {
            ahead.get(&ThreadKey::new(query.tenant.clone(), thread.clone())).copied()
        })?;
        if query.matches(&info) {
            threads.push(info);
            if threads.len() > limit {
                break;
            }
        }
    }
    Ok(ThreadPage::cut(threads, limit))
}

fn read_info(
    row: &Row<'_>,
    ahead: impl FnOnce(&ThreadId) -> Option<Ahead>,
) -> rusqlite::Result<ThreadInfo> {
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
    let number = number_at(row, 17)?;
    if let Some(ahead) = info.is_running().then(|| ahead(&info.thread)).flatten() {
        let (bytes, positions) = ahead.beyond(number, info.head);
        info.bytes += bytes;
        info.head += positions;
    }
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
) -> Result<(Fold, Option<ActiveRun>)> {
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
    let mut reader = EventReader::new();
    chunks(connection, thread.id, active.first, u64::MAX, |chunk| {
        for framed in chunk.events() {
            run.replay(&event(&mut reader, &chunk.blob[framed?.json])?, &mut fold);
        }
        Ok(true)
    })?;
    for entry in &thread.unpacked {
        run.replay(&event(&mut reader, &entry.json)?, &mut fold);
    }
    Ok((fold, Some(run)))
}

/// An event, from its JSON text.
pub(super) fn event(reader: &mut EventReader, json: &[u8]) -> std::result::Result<Event, Failure> {
    let event = reader.tolerant(text(json)?);
    Ok(event.map_err(|error| Failure::unreadable("an event", error))?.value)
}

/// A row of `chunks` that is read.
pub(super) struct ChunkRow<'r> {
    /// The number of the run.
    pub(super) run: i64,
    pub(super) blob: &'r [u8],
    /// The first and the last position that it has.
    has: (u64, u64),
    /// The first and the last position that are asked for.
    asked: (u64, u64),
}

impl ChunkRow<'_> {
    /// The events that were asked for, each of which is text.
    pub(super) fn events(&self) -> impl Iterator<Item = std::result::Result<Framed, Failure>> {
        let ((begins, ends), (first, last)) = (self.has, self.asked);
        let framed = chunk::read(begins, ends, self.blob).map(move |framed| {
            let what = || format!("the events from position {begins} to {ends}");
            let framed = framed.map_err(|damaged| Failure::unreadable(&what(), damaged))?;
            text(&self.blob[framed.json.clone()])?;
            Ok(framed)
        });
        framed.filter(move |framed| {
            framed.as_ref().map_or(true, |it| (first..=last).contains(&it.position))
        })
    }
}

/// Reads the chunks with events between two positions, both included, until `each` has enough.
pub(super) fn chunks(
    connection: &Connection,
    thread: i64,
    first: u64,
    last: u64,
    mut each: impl FnMut(ChunkRow<'_>) -> Result<bool>,
) -> Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT first, last, run, events FROM chunks WHERE thread = ?1 AND last >= ?2 ORDER BY last",
    )?;
    let mut rows = statement.query(params![thread, signed(first)])?;
    while let Some(row) = rows.next()? {
        let has = (number_at(row, 0)?, number_at(row, 1)?);
        if has.0 > last {
            break;
        }
        let blob = row.get_ref(3)?.as_blob();
        let blob = blob.map_err(|error| Failure::unreadable("a chunk of events", error))?;
        if !each(ChunkRow { run: row.get(2)?, blob, has, asked: (first, last) })? {
            break;
        }
    }
    Ok(())
}

pub(super) fn snapshot(connection: &Connection, thread: &ThreadRow) -> Result<Snapshot> {
    let (fold, _) = fold(connection, thread)?;
    let running = thread.active.as_ref().map(|active| active.run.clone());
    Ok(fold.snapshot(thread.head, running))
}

pub(super) fn page(
    connection: &Connection,
    thread: ThreadRow,
    from: Cursor,
    limit: ReadLimit,
) -> Result<Page> {
    check(connection, &thread, from)?;
    let mut room = Room::new(limit);
    let mut has_room = true;
    let mut entries: Vec<Entry> = Vec::new();
    let mut at: Option<(i64, RunId)> = None;
    chunks(connection, thread.id, from.position().saturating_add(1), u64::MAX, |chunk| {
        let mut shown = Vec::new();
        for framed in chunk.events() {
            let framed = framed?;
            has_room = room.takes(framed.json.len());
            if !has_room {
                break;
            }
            shown.push(framed);
        }
        let (Some(first), Some(last)) = (shown.first(), shown.last()) else { return Ok(has_room) };
        // They share one piece of memory, which is no larger than what is shown.
        let (start, end) = (first.json.start, last.json.end);
        let json = Bytes::copy_from_slice(&chunk.blob[start..end]);
        let run = match at.take() {
            Some((number, run)) if number == chunk.run => run,
            _ => run_id(connection, chunk.run)?,
        };
        entries.extend(shown.into_iter().map(|Framed { position, kind, json: place }| {
            let json = json.slice(place.start - start..place.end - start);
            Entry::new(position, kind, run.clone(), json)
        }));
        at = Some((chunk.run, run));
        Ok(has_room)
    })?;
    if has_room {
        let unpacked = thread.unpacked.into_iter().filter(|it| it.position > from.position());
        entries.extend(unpacked.take_while(|entry| room.takes(entry.json.len())));
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
        .prepare_cached("SELECT first FROM chunks WHERE thread = ?1 ORDER BY last LIMIT 1")?;
    let first = statement.query_row([thread.id], |row| number_at(row, 0)).optional()?;
    let unpacked = || thread.unpacked.first().map_or(0, |entry| entry.position);
    let first = first.unwrap_or_else(unpacked);
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

/// The key of a thread, from the columns of its tenant and its id, which come first.
pub(super) fn key(row: &Row<'_>) -> rusqlite::Result<ThreadKey> {
    Ok(ThreadKey::new(Tenant::new(row.get::<_, String>(0)?), row.get::<_, String>(1)?))
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
