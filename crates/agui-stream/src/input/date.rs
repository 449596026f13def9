//! Reading a date, to tell whether an interrupt has expired.

/// Milliseconds since the Unix epoch of an ISO 8601 date (`2026-09-17`) or date and time
/// (`2026-09-17T10:00:00.5+02:00`). Without an offset it is taken as UTC. `None` for anything else,
/// and outside the years 0 to 9999.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let valid = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    let midnight = days_since_epoch(year, month, day) * 86_400_000;
    let within = match time {
        Some(time) => time_of_day(time)?,
        None => 0,
    };
    valid.then_some(midnight + within)
}

/// Milliseconds since midnight, UTC; the offset may take it to another day.
fn time_of_day(text: &str) -> Option<i64> {
    let at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (clock, offset) = text.split_at(at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let [hours, minutes, seconds] = numbers(clock, ':', [2, 2, 2]).or_else(|| {
        let [hours, minutes] = numbers(clock, ':', [2, 2])?;
        Some([hours, minutes, 0])
    })?;
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    // A leap second counts as the first of the next minute.
    let valid = hours < 24 && minutes < 60 && seconds <= 60 && digits;
    let milliseconds = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    let seconds = (hours * 60 + minutes) * 60 + seconds - offset_in_minutes(offset)? * 60;
    valid.then_some(seconds * 1_000 + milliseconds)
}

fn offset_in_minutes(text: &str) -> Option<i64> {
    let Some(sign) = text.chars().next().filter(|sign| !"Zz".contains(*sign)) else {
        return (text.len() <= 1).then_some(0);
    };
    let digits = text[1..].replace(':', "");
    let [hours, minutes] = match digits.len() {
        2 => [digits.as_str(), "0"],
        4 => [&digits[..2], &digits[2..]],
        _ => return None,
    }
    .map(|digits| digits.parse::<u8>().ok());
    let (hours, minutes) = (i64::from(hours?), i64::from(minutes?));
    let minutes = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
    Some(if sign == '-' { -minutes } else { minutes })
}

/// Numbers of so many digits between separators, and nothing else.
fn numbers<const N: usize>(text: &str, separator: char, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| plain)?;
    }
    parts.next().is_none().then_some(numbers)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01, in the Gregorian calendar; years count from March for the leap day's sake.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::milliseconds;

    #[test]
    fn dates_are_read() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01", 0),
            ("1969-12-31T23:59:59.999Z", -1),
            ("2001-01-01T00:00:00Z", 978_307_200_000),
            ("2026-09-17T12:34:56.789Z", 1_789_648_496_789),
            ("2026-09-17T14:34:56.789123+02:00", 1_789_648_496_789),
            ("2026-09-17T07:04:56,7-0530", 1_789_648_496_700),
            ("2026-09-17 12:34+00", 1_789_648_440_000),
            ("2000-02-29t00:00:00z", 951_782_400_000),
            ("9999-12-31T23:59:60Z", 253_402_300_800_000),
        ] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "soon",
            "T",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-00-10",
            "2026-1-1",
            "2026-09-17T",
            "2026-09-17T24:00:00Z",
            "2026-09-17T12:60Z",
            "2026-09-17T12:00:00.Z",
            "2026-09-17T12:00:00Zz",
            "2026-09-17T12:00:00+1",
            "2026-09-17T12:00:00+aa:bb",
            "2026-09-17T12:00:00+2460",
            "+2026-09-17",
            "2026-09-17T12:00:00.é",
            "é",
            "99999-01-01",
        ] {
            assert_eq!(milliseconds(text), None, "{text}");
        }
    }
}
