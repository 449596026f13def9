//! What an interrupt says about the answer it waits for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The time so long from now, as [`Interrupt::expires_at`](agui_types::Interrupt::expires_at) has
/// it: ISO 8601 in UTC, to the second, such as `2026-09-17T10:00:00Z`. At most the year 9999.
///
/// A consumer that finds the time passed can only give the interrupt up (C-87).
#[must_use]
pub fn expires_in(duration: Duration) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    date_time(now.saturating_add(duration).as_secs())
}

/// The JSON Schema of a type, as
/// [`Interrupt::response_schema`](agui_types::Interrupt::response_schema) has it.
#[cfg(feature = "schemars")]
#[must_use]
pub fn schema_of<T: schemars::JsonSchema>() -> agui_types::JsonObject {
    let schema = schemars::schema_for!(T).to_value();
    // The schema of a type is an object, but for those that anything or nothing fits.
    agui_types::JsonObject::try_from(schema).unwrap_or_else(|_| agui_types::JsonObject::empty())
}

/// Seconds since the Unix epoch as a date and time.
fn date_time(seconds: u64) -> String {
    /// The last second of the year 9999: later ones would take a digit more.
    const LAST: u64 = 253_402_300_799;
    let seconds = seconds.min(LAST);
    let (days, within) = (seconds / 86_400, seconds % 86_400);
    // Years count from March of the year 0, so that the leap day is the last of its year.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hours, minutes, seconds) = (within / 3_600, within / 60 % 60, within % 60);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // Checked against `date -u -d @SECONDS +%FT%TZ`.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_789_648_496, "2026-09-17T12:34:56Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(date_time(seconds), expected);
        }
        assert_eq!(expires_in(Duration::MAX), "9999-12-31T23:59:59Z");
    }
}
