//! What is old: which of it is to be compacted or removed.

use std::collections::HashMap;
use std::time::Duration;

use agui_types::{EventReader, RunId};
use rusqlite::{Connection, params};

use super::chunk::Framed;
use super::live::Ahead;
use super::rows::{self, signed, unsigned};
use crate::entry::{Encoded, Entry};
use crate::implement::{Fold, compact_run};
use crate::journal::Result;
use crate::retention::{Compacted, Retention};
use crate::thread::{Tenant, ThreadKey};

/// The threads with runs to compact.
pub(super) fn due(connection: &Connection, before: u64) -> Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT thread FROM runs WHERE compacted = 0 AND ended_at IS NOT NULL \
         AND ended_at <= ?1 ORDER BY thread LIMIT ?2",
    )?;
    let rows =
        statement.query_map(params![signed(before), Compacted::MOST + 1], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<Vec<i64>>>()?)
}

/// Compacts up to `room` of a thread's runs; whether there are more.
#[expect(clippy::type_complexity, reason = "a pair of answers to one caller")]
pub(super) fn compact(
    connection: &Connection,
    thread: i64,
    before: u64,
    room: usize,
) -> Result<(Vec<(u64, Option<Vec<Encoded>>)>, bool)> {
    let connection = connection.unchecked_transaction()?;
    let mut statement = connection.prepare_cached(
        "SELECT number, run, first, last, compacted = 0 AND ended_at <= ?2 FROM runs \
         WHERE thread = ?1 AND last IS NOT NULL ORDER BY last",
    )?;
    let mut rows = statement.query(params![thread, signed(before)])?;
    let (mut fold, mut reader) = (Fold::new(), EventReader::new());
    let mut done = Vec::new();
    while let Some(row) = rows.next()? {
        let (number, run) = (rows::number_at(row, 0)?, RunId::from(row.get::<_, String>(1)?));
        let (first, last) = (rows::number_at(row, 2)?, rows::number_at(row, 3)?);
        if row.get::<_, bool>(4)? {
            if done.len() == room {
                return Ok((done, true));
            }
            let entries = read(&connection, thread, (first, last), &run)?;
            done.push((number, compact_run(fold.conversation().clone(), &entries)));
        }
        rows::chunks(&connection, thread, first, last, |chunk| {
            for framed in chunk.events() {
                // Every event of a log is sound.
                let _ = fold.push(&rows::event(&mut reader, &chunk.blob[framed?.json])?);
            }
            Ok(true)
        })?;
    }
    Ok((done, false))
}

/// The events of a run.
fn read(
    connection: &Connection,
    thread: i64,
    (first, last): (u64, u64),
    run: &RunId,
) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    rows::chunks(connection, thread, first, last, |chunk| {
        for framed in chunk.events() {
            let Framed { position, kind, json } = framed?;
            let json = chunk.blob[json].to_vec().into();
            entries.push(Entry::new(position, kind, run.clone(), json));
        }
        Ok(true)
    })?;
    Ok(entries)
}

/// The threads to remove, one more than one call removes where there are more.
pub(super) fn doomed(
    connection: &Connection,
    retention: &Retention,
    now: u64,
    ahead: &HashMap<ThreadKey, Ahead>,
) -> Result<Vec<ThreadKey>> {
    let connection = connection.unchecked_transaction()?;
    let unpacked = unpacked(&connection, ahead)?;
    let mut tenants = connection.prepare_cached(
        "SELECT tenant, count(*), coalesce(sum(bytes), 0) FROM threads GROUP BY tenant ORDER BY tenant",
    )?;
    let mut tenants = tenants.query([])?;
    let mut doomed = Vec::new();
    while let Some(row) = tenants.next()? {
        let tenant = Tenant::new(row.get::<_, String>(0)?);
        let (mut count, mut bytes) = (rows::number_at(row, 1)?, rows::number_at(row, 2)?);
        bytes += unpacked.get(&tenant).copied().unwrap_or_default();
        let mut threads = connection.prepare_cached(
            "SELECT t.thread, t.updated_at, t.bytes FROM threads t \
             JOIN runs r ON r.number = t.last_run \
             WHERE t.tenant = ?1 AND r.ended_at IS NOT NULL ORDER BY t.updated_at, t.thread",
        )?;
        let mut threads = threads.query([tenant.as_str()])?;
        while let Some(row) = threads.next()? {
            let updated_at: i64 = row.get(1)?;
            let idle = Duration::from_millis(now.saturating_sub(unsigned(updated_at)));
            if !retention.removes(idle, count, bytes) {
                break;
            }
            count -= 1;
            bytes = bytes.saturating_sub(rows::number_at(row, 2)?);
            doomed.push(ThreadKey::new(tenant.clone(), row.get::<_, String>(0)?));
            if doomed.len() > Retention::MOST {
                return Ok(doomed);
            }
        }
    }
    Ok(doomed)
}

/// How many bytes of JSON text each tenant has that stand in no chunk yet.
fn unpacked(
    connection: &Connection,
    ahead: &HashMap<ThreadKey, Ahead>,
) -> Result<HashMap<Tenant, u64>> {
    let mut unpacked = HashMap::new();
    if ahead.is_empty() {
        return Ok(unpacked);
    }
    let mut statement = connection.prepare_cached(
        "SELECT t.tenant, t.thread, t.head, r.number FROM runs r JOIN threads t ON t.id = r.thread \
         WHERE r.ended_at IS NULL",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let key = ThreadKey::new(Tenant::new(row.get::<_, String>(0)?), row.get::<_, String>(1)?);
        if let Some(ahead) = ahead.get(&key) {
            let (bytes, _) = ahead.beyond(rows::number_at(row, 3)?, rows::number_at(row, 2)?);
            *unpacked.entry(key.tenant).or_default() += bytes;
        }
    }
    Ok(unpacked)
}
