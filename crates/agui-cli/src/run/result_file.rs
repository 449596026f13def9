//! The file that `--result` names: whole, or as it was.

use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::stop::{Saving, Stop};
use crate::failure::Failure;

/// A file that is to be written at the end. Whether it can be is found out at the beginning.
///
/// A regular file is written beside its place and moved there, with the mode and the owner of the
/// one it replaces; links to it stay links to it. Where that cannot be, since the file has a second
/// name or the folder takes no new one, it is written where it is. Anything else, such as a pipe or
/// `/dev/null`, is written to as it is.
pub(super) struct ResultFile {
    /// The path as it was given.
    path: PathBuf,
    /// What it leads to.
    place: PathBuf,
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Written beside its place, then moved there.
    Moved,
    /// A regular file, written where it is.
    InPlace,
    /// No regular file: it may make the writer wait.
    Special,
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
        let place = end_of_links(path)?;
        let found = match fs::metadata(&place) {
            Ok(found) => Some(found),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let how = match &found {
            Some(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Some(found) if !found.is_file() => How::Special,
            Some(found) => {
                // One that must not be written is not replaced either.
                File::options().write(true).open(&place)?;
                if has_one_name(found) && create_beside(&place, Some(found)).is_ok() {
                    How::Moved
                } else {
                    How::InPlace
                }
            }
            None => {
                // Also a name that is too long shows here.
                File::create_new(&place).and_then(|_| fs::remove_file(&place))?;
                create_beside(&place, None)?;
                How::Moved
            }
        };
        Ok(Self { path: path.into(), place, how })
    }

    /// Writes it. What is half-written is not kept, also where `stop` ends the program meanwhile.
    pub(super) fn write(&self, text: &str, stop: &Stop) -> Result<(), Failure> {
        self.try_write(text, stop).map_err(|error| {
            Failure::new(format!("{} could not be written", self.path.display())).because(error)
        })
    }

    fn try_write(&self, text: &str, stop: &Stop) -> io::Result<()> {
        match self.how {
            How::Moved => {
                let like = fs::metadata(&self.place).ok();
                let mut beside = Beside::create(&self.place, like.as_ref())?;
                stop.set_saving(Some(Saving::Beside(beside.path.clone())));
                let moved = beside
                    .file
                    .write_all(text.as_bytes())
                    .and_then(|()| fs::rename(&beside.path, &self.place));
                stop.set_saving(None);
                moved
            }
            How::InPlace => {
                stop.set_saving(Some(Saving::InPlace(self.place.clone())));
                let mut file = File::options().write(true).truncate(true).open(&self.place)?;
                let written = file.write_all(text.as_bytes()).inspect_err(|_| {
                    // Empty is better than half.
                    let _ = file.set_len(0);
                });
                stop.set_saving(None);
                written
            }
            How::Special => {
                File::options().write(true).open(&self.place)?.write_all(text.as_bytes())
            }
        }
    }
}

/// A file beside the one it is to replace; it is gone with this, unless it was moved.
struct Beside {
    file: File,
    path: PathBuf,
}

impl Beside {
    /// A file with the mode and the owner of `like`.
    fn create(place: &Path, like: Option<&Metadata>) -> io::Result<Self> {
        // Short: the name it stands for may be as long as names can be.
        let id = uuid::Uuid::now_v7().simple().to_string();
        let path = place.with_file_name(format!(".agui-{}", &id[20..]));
        let beside = Self { file: File::create_new(&path)?, path };
        if let Some(like) = like {
            take_after(&beside.file, like)?;
        }
        Ok(beside)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        // Where it was moved it is not there any more.
        let _ = fs::remove_file(&self.path);
    }
}

fn create_beside(place: &Path, like: Option<&Metadata>) -> io::Result<()> {
    Beside::create(place, like).map(drop)
}

/// What a path leads to, also where nothing is there yet.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    /// As many as Linux follows.
    const MOST_LINKS: usize = 40;
    let mut place = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(target) = fs::read_link(&place) else {
            place.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            return Ok(place);
        };
        // A relative target is one from where the link stands.
        place = place.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(io::Error::other("too many links lead to one another"))
}

#[cfg(unix)]
fn has_one_name(file: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.nlink() == 1
}

#[cfg(not(unix))]
fn has_one_name(_: &Metadata) -> bool {
    true
}

#[cfg(unix)]
fn take_after(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(file, Some(like.uid()), Some(like.gid()))?;
    }
    // Behind the owner, whose change takes some bits away.
    file.set_permissions(like.permissions())
}

#[cfg(not(unix))]
fn take_after(file: &File, like: &Metadata) -> io::Result<()> {
    file.set_permissions(like.permissions())
}
