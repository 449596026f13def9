//! The reader that the protocol's types are read with.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::error::shortened;
use super::finding::{FindingKind, Findings};
use super::ids::RecentIds;
use super::{FREE_ENTRIES, LIST_EXPANSION, ReadError, ReadErrorKind, Reading};
use crate::Unknown;
use crate::json::{Cursor, Json, Kind, LexError, LexProblem};

/// A type that can be read at the reader's position.
pub(crate) trait Read: Sized {
    /// Reads one value and moves past it.
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError>;
}

/// One JSON text being read.
pub(crate) struct Reader<'t, 'i> {
    cursor: Cursor<'t>,
    exact: bool,
    findings: Findings,
    /// Where the object begins that is of an unknown kind and one of too many to be kept.
    surplus: Option<usize>,
    ids: Option<&'i mut RecentIds>,
}

/// How far the members of an object have been read.
#[derive(Clone, Copy)]
pub(crate) struct Members {
    /// No member was read yet.
    pub(crate) first: bool,
    /// The discriminator came first and was read already.
    pub(crate) tagged: bool,
}

/// The discriminator of an object that is about to be read.
pub(crate) struct Discriminator<'t> {
    name: &'static str,
    pub(crate) tag: Cow<'t, str>,
    /// Where its value begins.
    pub(crate) offset: usize,
    /// How far the object has been read.
    pub(crate) members: Members,
    /// Where the object begins.
    start: usize,
}

impl<'t, 'i> Reader<'t, 'i> {
    /// Reads a text tolerantly; ids are shared with those met before, if any are remembered.
    pub(crate) fn tolerant<T: Read>(
        text: &'t str,
        ids: Option<&'i mut RecentIds>,
    ) -> Result<Reading<T>, ReadError> {
        let mut reader = Self::new(text, false, ids);
        let value = reader.whole()?;
        let findings = reader.findings;
        Ok(Reading { value, findings })
    }

    /// Reads a text exactly.
    pub(crate) fn exact<T: Read>(
        text: &'t str,
        ids: Option<&'i mut RecentIds>,
    ) -> Result<T, ReadError> {
        Self::new(text, true, ids).whole()
    }

    fn new(text: &'t str, exact: bool, ids: Option<&'i mut RecentIds>) -> Self {
        let (cursor, findings) = (Cursor::new(text), Findings::default());
        Self { cursor, exact, findings, surplus: None, ids }
    }

    /// Reads the text as one value.
    #[inline]
    fn whole<T: Read>(&mut self) -> Result<T, ReadError> {
        let value = T::read(self).map_err(|error| self.not_json().unwrap_or(error))?;
        self.cursor.end()?;
        Ok(value)
    }

    /// The error of a text that is not JSON to its end: it comes before any error about its
    /// meaning.
    #[cold]
    fn not_json(&self) -> Option<ReadError> {
        let mut text = self.cursor.restarted();
        let end = text.skip().and_then(|_| text.end());
        end.err().map(ReadError::from)
    }

    /// Enters an object; anything else is of the wrong type.
    pub(crate) fn open_object(&mut self) -> Result<Members, ReadError> {
        self.expect(Kind::Object, "an object")?;
        self.cursor.open_object()?;
        Ok(Members { first: true, tagged: false })
    }

    /// The next member's name, or `None` at the end of the object.
    #[inline]
    pub(crate) fn next_member(
        &mut self,
        members: &mut Members,
    ) -> Result<Option<Cow<'t, str>>, ReadError> {
        if let Some(key) = self.cursor.plain_key(members.first) {
            members.first = false;
            return Ok(Some(Cow::Borrowed(key)));
        }
        if self.cursor.plain_end_of_object() {
            return Ok(None);
        }
        self.next_awkward_member(members)
    }

    /// Whether this member comes next, with no white space around its name; then moves past the
    /// name. `separated` is the name with the comma before it, the quotes and the colon.
    #[inline]
    pub(crate) fn comes(&mut self, members: &Members, separated: &'static str) -> bool {
        !members.first && self.cursor.skip_text(separated)
    }

    #[inline(never)]
    fn next_awkward_member(
        &mut self,
        members: &mut Members,
    ) -> Result<Option<Cow<'t, str>>, ReadError> {
        Ok(self.cursor.next_key(&mut members.first)?)
    }

    /// Reads a required member's value.
    #[inline]
    pub(crate) fn required<T: Read>(&mut self, name: &'static str) -> Result<T, ReadError> {
        self.inside(Member(name), T::read)
    }

    /// Reads an optional member's value; `null` is reported and reads as absent.
    #[inline]
    pub(crate) fn optional<T: Read>(&mut self, name: &'static str) -> Result<Option<T>, ReadError> {
        if self.cursor.kind()? == Kind::Null {
            return self.inside(Member(name), |reader| {
                let offset = reader.cursor.offset();
                reader.cursor.null()?;
                if reader.exact {
                    let what = "a value, or the member left out";
                    return Err(ReadError::new(ReadErrorKind::Null, offset, what, "null"));
                }
                reader.findings.push(FindingKind::Null);
                Ok(None)
            });
        }
        self.inside(Member(name), |reader| T::read(reader).map(Some))
    }

    /// Reads a member whose value must be one string.
    pub(crate) fn literal(&mut self, name: &'static str, literal: &str) -> Result<(), ReadError> {
        self.inside(Member(name), |reader| reader.literal_value(literal))
    }

    /// Reads a value that must be one string.
    pub(crate) fn literal_value(&mut self, literal: &str) -> Result<(), ReadError> {
        if self.cursor.kind()? != Kind::String {
            return Err(self.wrong_type(format!("{literal:?}")));
        }
        let offset = self.cursor.offset();
        let text = self.cursor.string()?;
        if text == literal {
            return Ok(());
        }
        let (expected, found) = (format!("{literal:?}"), format!("{:?}", shortened(&text)));
        Err(ReadError::new(ReadErrorKind::InvalidValue, offset, expected, found))
    }

    /// Reads a member the protocol does not describe.
    #[cold]
    pub(crate) fn unknown_member(&mut self, name: &str) -> Result<(), ReadError> {
        let segment = Named(name);
        self.inside(segment, |reader| {
            let offset = reader.cursor.offset();
            let raw = reader.cursor.skip()?;
            if reader.exact {
                let kind = ReadErrorKind::UnknownMember;
                return Err(ReadError::new(kind, offset, "no such member", shortened(raw)));
            }
            reader.findings.push(FindingKind::UnknownMember(Json::from_checked(raw)));
            Ok(())
        })
    }

    /// The error for a required member that did not come.
    #[cold]
    pub(crate) fn missing(&self, name: &'static str) -> ReadError {
        let offset = self.cursor.offset();
        let expected = format!("the member {name:?}");
        ReadError::new(ReadErrorKind::Missing, offset, expected, "").inside(Member(name))
    }

    /// Looks up the discriminator of the object ahead without moving, except past a discriminator
    /// that comes first: then only the members after it are left to read. `quoted` is its name with
    /// the quotes and the colon.
    #[inline]
    pub(crate) fn discriminator(
        &mut self,
        name: &'static str,
        quoted: &'static str,
    ) -> Result<Discriminator<'t>, ReadError> {
        self.cursor.kind()?;
        let start = self.cursor.offset();
        let members = self.open_object()?;
        if self.cursor.skip_text(quoted) {
            let offset = self.cursor.offset();
            if let Some(tag) = self.cursor.plain_string() {
                return Ok(Discriminator {
                    name,
                    tag: Cow::Borrowed(tag),
                    offset,
                    members: Members { first: false, tagged: true },
                    start,
                });
            }
            self.cursor.back_to(start + 1, 0);
        }
        self.searched_discriminator(name, start, members)
    }

    /// What [`Reader::discriminator`] failed at in a union below the event, as an object of a kind
    /// that the protocol does not describe, if it is an object without a discriminator that is a
    /// string (C-24 to C-26). Anything but an object is malformed (C-29).
    #[cold]
    pub(crate) fn untagged(
        &mut self,
        name: &'static str,
        start: usize,
        error: ReadError,
    ) -> Result<Unknown, ReadError> {
        // How far inside the object the search ended.
        let levels = match error.kind() {
            ReadErrorKind::Missing => 0,
            ReadErrorKind::WrongType => 1,
            _ => return Err(error),
        };
        if self.exact || error.path().strip_prefix('/') != Some(name) {
            return Err(error);
        }
        self.cursor.back_to(start, levels);
        self.cursor.skip()?;
        Ok(self.unknown(start, ""))
    }

    /// Keeps the object that was read, of a kind that the protocol does not describe.
    fn unknown(&mut self, start: usize, tag: &str) -> Unknown {
        /// A kind of part that is retired and not unknown (section 12).
        const RETIRED: &str = "binary";
        if self.findings.is_full() && tag != RETIRED {
            self.surplus = Some(start);
        }
        self.findings.push(FindingKind::UnknownVariant(tag.into()));
        Unknown::from_parts(tag, Json::from_checked(self.cursor.since(start)))
    }

    #[inline(never)]
    fn searched_discriminator(
        &mut self,
        name: &'static str,
        start: usize,
        mut members: Members,
    ) -> Result<Discriminator<'t>, ReadError> {
        let inside = self.cursor.offset();
        let mut come_first = true;
        while let Some(key) = self.next_member(&mut members)? {
            if key == name {
                let (offset, tag) = self.inside(Member(name), |reader| {
                    reader.expect(Kind::String, "a string")?;
                    Ok((reader.cursor.offset(), reader.cursor.string()?))
                })?;
                if !come_first {
                    self.cursor.back_to(inside, 0);
                }
                return Ok(Discriminator {
                    name,
                    tag,
                    offset,
                    members: Members { first: !come_first, tagged: come_first },
                    start,
                });
            }
            come_first = false;
            self.cursor.skip()?;
        }
        self.cursor.back_to(start, 0);
        Err(self.missing(name))
    }

    /// Reads the object again, as opaque text: a union member that is not known.
    #[cold]
    pub(crate) fn unknown_variant(
        &mut self,
        discriminator: Discriminator<'t>,
        expected: &'static str,
    ) -> Result<Unknown, ReadError> {
        let Discriminator { name, tag, offset, .. } = discriminator;
        if self.exact {
            let found = format!("{:?}", shortened(&tag));
            let kind = ReadErrorKind::UnknownVariant;
            return Err(ReadError::new(kind, offset, expected, found).inside(Member(name)));
        }
        let start = discriminator.start;
        self.cursor.back_to(start, 1);
        let mut members = self.open_object()?;
        while let Some(key) = self.next_member(&mut members)? {
            if key == name {
                // Repeated with another value, it would name two kinds at once.
                self.literal(name, &tag)?;
            } else {
                self.cursor.skip()?;
            }
        }
        Ok(self.unknown(start, &tag))
    }

    /// Reports a string outside a closed set.
    #[cold]
    pub(crate) fn unknown_value(
        &mut self,
        value: &str,
        offset: usize,
        expected: &'static str,
    ) -> Result<(), ReadError> {
        if self.exact {
            let found = format!("{:?}", shortened(value));
            return Err(ReadError::new(ReadErrorKind::UnknownVariant, offset, expected, found));
        }
        self.findings.push(FindingKind::UnknownValue(value.into()));
        Ok(())
    }

    /// Reads the elements of an array, but for those of unknown kinds that are only counted.
    pub(crate) fn array<T: Read>(&mut self) -> Result<Vec<T>, ReadError> {
        self.expect(Kind::Array, "an array")?;
        let opening = self.cursor.offset();
        self.cursor.open_array()?;
        let (mut first, mut items) = (true, Vec::new());
        let mut count = 0;
        while self.cursor.next_element(&mut first)? {
            self.cursor.kind()?;
            let start = self.cursor.offset();
            let item = self.inside(Index(count), T::read)?;
            count += 1;
            if self.surplus == Some(start) {
                continue;
            }
            items.push(item);
            let length = self.cursor.offset() - opening;
            let room = items.len().saturating_sub(FREE_ENTRIES) * size_of::<T>();
            if room > LIST_EXPANSION * length {
                let found = format!("{} of them in {length} bytes", items.len());
                let (kind, expected) = (ReadErrorKind::InvalidValue, "entries that say something");
                return Err(ReadError::new(kind, opening, expected, found));
            }
        }
        Ok(items)
    }

    pub(crate) fn kind(&mut self) -> Result<Kind, ReadError> {
        Ok(self.cursor.kind()?)
    }

    pub(crate) fn offset(&self) -> usize {
        self.cursor.offset()
    }

    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, ReadError> {
        self.expect(Kind::String, "a string")?;
        Ok(self.cursor.string()?)
    }

    #[inline]
    pub(crate) fn id(&mut self) -> Result<Arc<str>, ReadError> {
        let text = self.string()?;
        Ok(match &mut self.ids {
            Some(ids) => ids.intern(&text),
            None => text.into(),
        })
    }

    pub(crate) fn bool(&mut self) -> Result<bool, ReadError> {
        self.expect(Kind::Bool, "a boolean")?;
        Ok(self.cursor.bool()?)
    }

    pub(crate) fn json(&mut self) -> Result<Json, ReadError> {
        Ok(Json::from_checked(self.cursor.skip()?))
    }

    /// Reads an integer between `least` and `most`; `1.0` and `1e3` are integers, as in JSON Schema.
    pub(crate) fn integer(
        &mut self,
        least: i64,
        most: i64,
        expected: &'static str,
    ) -> Result<i64, ReadError> {
        self.expect(Kind::Number, expected)?;
        let offset = self.cursor.offset();
        if let Some(value) = self.cursor.small_integer() {
            if (least..=most).contains(&value) {
                return Ok(value);
            }
            self.cursor.back_to(offset, 0);
        }
        let text = self.cursor.number()?;
        let value = text.parse::<i64>().ok().or_else(|| whole_double(text));
        match value {
            Some(value) if (least..=most).contains(&value) => Ok(value),
            _ => {
                let found = shortened(text);
                Err(ReadError::new(ReadErrorKind::InvalidValue, offset, expected, found))
            }
        }
    }

    /// Fails unless a value of this kind comes next.
    #[inline]
    pub(crate) fn expect(&mut self, kind: Kind, expected: &'static str) -> Result<(), ReadError> {
        if self.cursor.kind()? == kind {
            return Ok(());
        }
        Err(self.wrong_type(expected))
    }

    /// The error for the value that comes next being of another type.
    #[cold]
    pub(crate) fn wrong_type(&self, expected: impl Into<Cow<'static, str>>) -> ReadError {
        let mut ahead = self.cursor.clone();
        let kind = ahead.kind();
        let offset = ahead.offset();
        let found = match kind {
            Ok(kind @ (Kind::Object | Kind::Array | Kind::Null)) => kind.name().into(),
            Ok(kind) => {
                let raw = ahead.skip().unwrap_or_default();
                format!("{} {}", kind.name().trim_start_matches("a "), shortened(raw))
            }
            Err(error) => return error.into(),
        };
        ReadError::new(ReadErrorKind::WrongType, offset, expected, found)
    }

    /// Runs a reading one level further in, so that what it reports carries the way to it.
    #[inline]
    fn inside<T>(
        &mut self,
        segment: impl fmt::Display,
        read: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let mark = self.findings.len();
        match read(self) {
            Ok(value) => {
                if self.findings.len() > mark {
                    self.findings.inside(mark, segment);
                }
                Ok(value)
            }
            Err(error) => Err(error.inside(segment)),
        }
    }
}

impl From<LexError> for ReadError {
    #[cold]
    fn from(error: LexError) -> Self {
        let kind = match error.problem {
            LexProblem::TooDeep => ReadErrorKind::TooDeep,
            LexProblem::Eof(_) | LexProblem::Expected(_) => ReadErrorKind::Syntax,
        };
        Self::new(kind, error.offset, error.problem.to_string(), "")
    }
}

/// A number written with a point or an exponent that is an integer all the same.
fn whole_double(text: &str) -> Option<i64> {
    let value: f64 = text.parse().ok()?;
    // Beyond 2^53 a double no longer says which integer was meant.
    #[allow(clippy::cast_possible_truncation)]
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i64)
}

/// One step of a JSON Pointer: a described member, whose name needs no escape.
struct Member(&'static str);

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

/// One step of a JSON Pointer: an element of an array.
struct Index(usize);

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0)
    }
}

/// One step of a JSON Pointer: a member of any name, escaped as RFC 6901 says.
struct Named<'a>(&'a str);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}", self.0.replace('~', "~0").replace('/', "~1"))
    }
}
