//! Integers of the protocol: within what a JSON number survives a round trip through a double.

use std::fmt;
use std::num::NonZeroI64;

use crate::json::write::Write;
use crate::read::{Read, ReadError, Reader};

/// The largest integer that every JSON implementation reads back as written: 2^53 − 1.
pub const MAX_SAFE_INTEGER: i64 = 9_007_199_254_740_991;

/// When an event was created. The protocol leaves the unit open; by convention milliseconds since
/// the Unix epoch. Informational: it never orders anything (C-18).
///
/// Between −(2^53 − 1) and 2^53 − 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
// Stored with the sign bit flipped: no legal value is then zero, and an absent one costs no room.
pub struct Timestamp(NonZeroI64);

impl Timestamp {
    /// `None` where the value is outside ±(2^53 − 1).
    #[must_use]
    pub const fn new(value: i64) -> Option<Self> {
        if value < -MAX_SAFE_INTEGER || value > MAX_SAFE_INTEGER {
            return None;
        }
        match NonZeroI64::new(value ^ i64::MIN) {
            Some(stored) => Some(Self(stored)),
            None => None,
        }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0.get() ^ i64::MIN
    }
}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.get().cmp(&other.get())
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Read for Timestamp {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        const EXPECTED: &str = "an integer within ±(2^53 − 1)";
        let value = reader.integer(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER, EXPECTED)?;
        Self::new(value).ok_or_else(|| reader.wrong_type(EXPECTED))
    }
}

impl Write for Timestamp {
    fn write(&self, out: &mut Vec<u8>) {
        self.get().write(out);
    }
}

/// A count of the protocol: tokens, iterations, milliseconds. Between 0 and 2^53 − 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Count(u64);

impl Count {
    /// The largest count.
    pub const MAX: Self = Self(MAX_SAFE_INTEGER.unsigned_abs());

    /// `None` where the value is above 2^53 − 1.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value > Self::MAX.0 { None } else { Some(Self(value)) }
    }

    /// The value.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum, at most [`Count::MAX`].
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        // Two values below 2^53 cannot overflow 64 bits.
        match Self::new(self.0 + other.0) {
            Some(sum) => sum,
            None => Self::MAX,
        }
    }
}

impl From<u32> for Count {
    fn from(value: u32) -> Self {
        Self(value.into())
    }
}

impl Read for Count {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        let value = reader.integer(0, MAX_SAFE_INTEGER, "an integer between 0 and 2^53 − 1")?;
        Ok(Self(value.unsigned_abs()))
    }
}

impl Write for Count {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.cast_signed().write(out);
    }
}

bridge!(Timestamp);
bridge!(Count);

#[cfg(feature = "schemars")]
impl crate::schema::Described for Timestamp {
    fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer", "minimum": -MAX_SAFE_INTEGER, "maximum": MAX_SAFE_INTEGER
        })
    }
}

#[cfg(feature = "schemars")]
impl crate::schema::Described for Count {
    fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer", "minimum": 0, "maximum": MAX_SAFE_INTEGER })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromJson, ReadErrorKind, ToJson};

    #[test]
    fn integers_are_bounded_at_the_safe_range() {
        for value in [0, -1, 1_700_000_000_000, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER] {
            let timestamp = Timestamp::new(value).unwrap();
            assert_eq!(timestamp.get(), value);
            assert_eq!(timestamp.to_json(), value.to_string());
            assert_eq!(Timestamp::from_json_exact(&value.to_string()).unwrap(), timestamp);
        }
        assert!(Timestamp::new(MAX_SAFE_INTEGER + 1).is_none());
        assert!(Timestamp::new(-MAX_SAFE_INTEGER - 1).is_none());
        for text in ["9007199254740992", "-9007199254740992", "1.5", "1e300", "1e999"] {
            let error = Timestamp::from_json_tolerant(text).unwrap_err();
            assert_eq!(error.kind(), ReadErrorKind::InvalidValue, "{text}");
        }
        assert_eq!(Count::from_json_exact("-1").unwrap_err().kind(), ReadErrorKind::InvalidValue);
    }

    #[test]
    fn an_integer_may_be_written_with_a_point_or_exponent() {
        // JSON Schema: a number without a fractional part is an integer.
        assert_eq!(Timestamp::from_json_exact("1.0").unwrap().get(), 1);
        assert_eq!(Count::from_json_exact("12e2").unwrap().get(), 1200);
        assert_eq!(Timestamp::from_json_exact("1.0").unwrap().to_json(), "1");
    }

    #[test]
    fn an_absent_timestamp_costs_no_room() {
        assert_eq!(size_of::<Option<Timestamp>>(), 8);
    }
}
