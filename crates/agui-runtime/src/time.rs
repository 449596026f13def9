//! Times as front ends read them.

/// Milliseconds since 1970 (UTC) as ISO 8601, `2026-01-01T10:00:00.000Z`, which sorts as text.
pub(crate) fn iso(millis: u64) -> String {
    let (days, millis) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hours, millis) = (millis / 3_600_000, millis % 3_600_000);
    let (minutes, millis) = (millis / 60_000, millis % 60_000);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
}

/// The date of a day counted from the first of January 1970, in the Gregorian calendar.
///
/// Years are counted from the first of March, so that the day that a leap year adds is its last.
fn civil(days: u64) -> (u64, u64, u64) {
    const ERA: u64 = 146_097; // 400 years.
    let days = days + 719_468; // From 0000-03-01.
    let (era, day) = (days / ERA, days % ERA);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_iso_8601() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_767_261_600_123, "2026-01-01T10:00:00.123Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso(millis), text);
        }
    }
}
