//! Tables, and how they came to be what they are.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::Durability;
use super::chunk::{Chunk, read_kind};
use super::fault::{Failure, Kind};
use super::rows::number_at;

/// A step from one form of the file to the next.
type Migration = fn(&Connection) -> Result<(), Failure>;

/// The steps from an empty file to the newest form; `user_version` says how many were taken.
const MIGRATIONS: &[Migration] = &[|file| Ok(file.execute_batch(FIRST)?), pack_events];

/// The first form.
const FIRST: &str = "
    -- One row, small: it is written anew with every append.
    CREATE TABLE threads (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        thread TEXT NOT NULL,
        name TEXT,
        owner TEXT,
        archived INTEGER NOT NULL DEFAULT 0,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        runs INTEGER NOT NULL DEFAULT 0,
        finished_runs INTEGER NOT NULL DEFAULT 0,
        last_run INTEGER NOT NULL DEFAULT 0,
        -- The position of the last event; positions begin behind `floor`.
        head INTEGER NOT NULL DEFAULT 0,
        floor INTEGER NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0,
        generation INTEGER NOT NULL DEFAULT 0,
        open_interrupts INTEGER NOT NULL DEFAULT 0,
        pending_calls INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, thread)
    ) STRICT;
    CREATE INDEX threads_by_activity ON threads (tenant, updated_at, thread);

    CREATE TABLE runs (
        -- Never used twice, so that a lease cannot be taken for another.
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        thread INTEGER NOT NULL,
        run TEXT NOT NULL,
        agent TEXT NOT NULL,
        began_at INTEGER NOT NULL,
        ended_at INTEGER,
        ending TEXT,
        first INTEGER NOT NULL,
        last INTEGER,
        -- What the log adds to its RUN_STARTED; nothing once it has ended.
        input TEXT,
        compacted INTEGER NOT NULL DEFAULT 0,
        shorter INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX runs_by_place ON runs (thread, last);
    CREATE INDEX runs_going_on ON runs (number) WHERE ended_at IS NULL;
    CREATE INDEX runs_to_compact ON runs (ended_at) WHERE compacted = 0 AND ended_at IS NOT NULL;

    CREATE TABLE events (
        thread INTEGER NOT NULL,
        position INTEGER NOT NULL,
        run INTEGER NOT NULL,
        kind INTEGER NOT NULL,
        json BLOB NOT NULL,
        PRIMARY KEY (thread, position)
    ) STRICT, WITHOUT ROWID;

    -- The thread folded up to the end of its last run.
    CREATE TABLE folded (
        thread INTEGER PRIMARY KEY,
        messages TEXT NOT NULL,
        state TEXT NOT NULL,
        interrupts TEXT NOT NULL,
        calls TEXT NOT NULL
    ) STRICT;

    -- The greatest position of any thread that was removed.
    CREATE TABLE floor (position INTEGER NOT NULL) STRICT;
    INSERT INTO floor VALUES (0);
";

/// The second form: many events are a row.
///
/// From here on `head` and `bytes` of a thread are those of its events in `chunks`. What a run that is
/// going on has behind that is in `recent`, and in memory.
const CHUNKS: &str = "
    -- Laid down in the order in which they are packed, so that what is written at one time is in one
    -- place.
    CREATE TABLE chunks (
        number INTEGER PRIMARY KEY,
        thread INTEGER NOT NULL,
        -- The positions of the first and the last event.
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        run INTEGER NOT NULL,
        -- In the form that the module `chunk` describes.
        events BLOB NOT NULL
    ) STRICT;
    CREATE INDEX chunks_by_place ON chunks (thread, last);

    -- What was committed of runs that go on: a row for each commit, in the form that the module
    -- `recent` describes.
    CREATE TABLE recent (
        number INTEGER PRIMARY KEY,
        events BLOB NOT NULL
    ) STRICT;
";

/// Marks a file as a journal of this crate: `agui`.
const APPLICATION: i64 = 0x6167_7569;

/// How much of the file the one who writes keeps at hand at most: the rows of thousands of threads
/// and runs, and what leads to them.
const WRITER_CACHE_KIB: i64 = 32 * 1024;

/// How many pages of 4 KiB are in the file beside the database when they are taken into it. That is
/// when the disk is waited for, and a page that was written often meanwhile is taken over once.
const CHECKPOINT_PAGES: i64 = 4_000;

/// Opens the file to write it, and brings it to the newest form.
pub(super) fn open_writer(
    path: &std::path::Path,
    durability: Durability,
    max_pages: Option<u64>,
) -> Result<Connection, Failure> {
    let mut connection = Connection::open(path)?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    // What a task would be taken back with is kept for the time of a commit: in a temporary file it
    // is written more often than everything else together.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    migrate(&mut connection)?;
    if let Some(pages) = max_pages {
        connection.pragma_update(None, "max_page_count", pages)?;
    }
    Ok(connection)
}

/// Opens the file to read it, beside the one who writes.
pub(super) fn open_reader(path: &std::path::Path) -> Result<Connection, Failure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), Failure> {
    connection.busy_timeout(super::BUSY)?;
    // Without this, statements are compiled anew whenever a parameter is bound that an index is
    // searched for, to look at its value first: that took more time than the work itself.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn migrate(connection: &mut Connection) -> Result<(), Failure> {
    let transaction = connection.transaction()?;
    let application: i64 =
        transaction.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: usize = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 =
        transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        return Err(Failure::new(Kind::Corrupt, "it is the database of another program"));
    }
    let Some(missing) = MIGRATIONS.get(version..) else {
        return Err(Failure::new(Kind::Corrupt, "it was written by a newer version"));
    };
    for step in missing {
        step(&transaction)?;
    }
    transaction.pragma_update(None, "user_version", MIGRATIONS.len())?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.commit()?;
    Ok(())
}

/// From a row for each event to a row for many: thread by thread, a chunk at a time.
fn pack_events(file: &Connection) -> Result<(), Failure> {
    file.execute_batch(CHUNKS)?;
    {
        let mut statement = file.prepare(
            "SELECT thread, run, position, kind, json FROM events ORDER BY thread, position",
        )?;
        let mut rows = statement.query([])?;
        let (mut chunk, mut of) = (Chunk::default(), (0, 0));
        while let Some(row) = rows.next()? {
            let next = (row.get(0)?, number_at(row, 1)?);
            let (position, kind) = (number_at(row, 2)?, read_kind(number_at(row, 3)?));
            let json = row.get_ref(4)?.as_blob();
            let json = json.map_err(|error| Failure::unreadable("an event", error))?;
            if of != next || !chunk.takes(position, json.len()) {
                chunk.insert(file, of.0, of.1)?;
                of = next;
            }
            chunk.push(position, kind, json);
        }
        chunk.insert(file, of.0, of.1)?;
    }
    Ok(file.execute_batch("DROP TABLE events")?)
}
