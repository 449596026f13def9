//! The file that a journal is in: what it is called, and who has it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::JournalError;
use crate::journal::Result;

/// Takes a file for this process, and makes it where it is missing. Gives its own path, and what is
/// to be held for as long as it is used.
pub(super) fn take(path: &Path) -> Result<(PathBuf, File)> {
    let path = real(path)?;
    let lock = lock(&path)?;
    let names = names(&path)?;
    if names > 1 {
        return Err(JournalError::Linked { path, names });
    }
    Ok((path, lock))
}

/// By how many names the file can be found.
#[cfg(unix)]
fn names(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    // This does not open it.
    Ok(path.metadata().map_err(storage)?.nlink())
}

#[cfg(not(unix))]
fn names(_: &Path) -> Result<u64> {
    Ok(1)
}

fn storage(error: io::Error) -> JournalError {
    JournalError::Storage { source: error.into() }
}

/// The file's own path, whatever links lead to it: the lock is beside the file itself, and no name
/// means something else to SQLite. Makes the file where it is missing.
fn real(path: &Path) -> Result<PathBuf> {
    let real = path.canonicalize().or_else(|error| {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        // SQLite would make it for everybody to read. One that is there is not opened here: closing
        // it would take SQLite's locks from this process.
        drop(private(path)?);
        path.canonicalize()
    });
    real.map_err(storage)
}

/// Takes the file for this process. The system gives it back when the process ends, however it does.
fn lock(path: &Path) -> Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push("-lock");
    let file = private(Path::new(&beside)).map_err(storage)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(JournalError::Contended { source: None }),
        Err(TryLockError::Error(error)) => Err(storage(error)),
    }
}

/// Opens a file to write it, and makes it where it is missing: for its owner alone, since what people
/// say is in it. SQLite gives the files beside the database the same mode.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
