//! What SQLite says, in the journal's words.

use std::fmt;

use rusqlite::ErrorCode;

use crate::error::JournalError;

/// Why the storage did not do something. Can be given to everybody who waited for it.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Contended,
    Full,
    Corrupt,
    Storage,
}

impl Failure {
    pub(super) fn new(kind: Kind, message: impl fmt::Display) -> Self {
        Self { kind, message: message.to_string() }
    }

    /// The failure of the storage behind an error; `None` for every other refusal.
    pub(super) fn of(error: &JournalError) -> Option<Self> {
        let (kind, source) = match error {
            JournalError::Contended { source } => (Kind::Contended, source.as_ref()),
            JournalError::Full { source, .. } => (Kind::Full, source.as_ref()),
            JournalError::Corrupt { source, .. } => (Kind::Corrupt, source.as_ref()),
            JournalError::Storage { source } => (Kind::Storage, Some(source)),
            _ => return None,
        };
        Some(source.map_or_else(|| Self::new(kind, error), |source| Self::new(kind, source)))
    }

    /// Whether what is stored is to blame.
    pub(super) fn is_corrupt(&self) -> bool {
        self.kind == Kind::Corrupt
    }

    /// What is stored cannot be read.
    pub(super) fn unreadable(what: &str, error: impl fmt::Display) -> Self {
        Self::new(Kind::Corrupt, format!("{what} cannot be read: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        let kind = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Kind::Contended,
            Some(ErrorCode::DiskFull | ErrorCode::TooBig) => Kind::Full,
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Kind::Corrupt,
            _ => Kind::Storage,
        };
        Self::new(kind, error)
    }
}

impl From<Failure> for JournalError {
    fn from(failure: Failure) -> Self {
        match failure.kind {
            Kind::Contended => Self::Contended { source: Some(failure.into()) },
            Kind::Full => {
                let what = "the database has no room".to_owned();
                Self::Full { what, source: Some(failure.into()) }
            }
            Kind::Corrupt => Self::Corrupt { what: failure.message, source: None },
            Kind::Storage => Self::Storage { source: failure.into() },
        }
    }
}

/// Of an error where the storage is to blame for whatever goes wrong.
impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Self::of(&error).unwrap_or_else(|| Self::new(Kind::Storage, error))
    }
}

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        Failure::from(error).into()
    }
}
