//! The file that `--result` names: whole, or not there.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// A file that is to be written at the end. Whether it can be is found out at the beginning.
///
/// A regular file is written beside its place and moved there. Anything else, such as a pipe or
/// `/dev/null`, is written to as it is.
pub(super) struct ResultFile {
    place: PathBuf,
    moves: bool,
}

impl ResultFile {
    /// Fails where the file could not be written. Nothing is left behind.
    pub(super) fn new(path: &Path) -> Result<Self, Failure> {
        if path.as_os_str() == "-" {
            return Err(Failure::usage("--result takes a file, not standard output")
                .hint("--json prints the events on standard output"));
        }
        Self::try_out(path).map_err(|error| {
            Failure::usage(format!("{} cannot be written", path.display()))
                .because(error)
                .hint("--result takes a file in a folder that is there and can be written to")
        })
    }

    fn try_out(path: &Path) -> io::Result<Self> {
        // A link stays a link: what it leads to is replaced.
        let place = fs::canonicalize(path).unwrap_or_else(|_| path.into());
        let moves = match fs::metadata(&place) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) => found.is_file(),
            Err(_) => true,
        };
        if moves {
            let beside = beside(&place)?;
            File::create_new(&beside)?;
            fs::remove_file(beside)?;
        }
        Ok(Self { place, moves })
    }

    /// Writes it.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        self.try_write(text).map_err(|error| {
            Failure::new(format!("{} could not be written", self.place.display())).because(error)
        })
    }

    fn try_write(&self, text: &str) -> io::Result<()> {
        if !self.moves {
            return File::options().write(true).open(&self.place)?.write_all(text.as_bytes());
        }
        let beside = beside(&self.place)?;
        let moved = File::create_new(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&beside, &self.place));
        moved.inspect_err(|_| {
            // It may not be there, and that is as well.
            let _ = fs::remove_file(&beside);
        })
    }
}

/// A name of its own in the same folder.
fn beside(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut beside = OsString::from(".");
    beside.push(name);
    beside.push(format!(".{}.tmp", uuid::Uuid::now_v7()));
    Ok(place.with_file_name(beside))
}
