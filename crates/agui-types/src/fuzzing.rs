//! What the fuzz targets and property tests call. Not part of the public interface.

use crate::read::FindingKind;
use crate::{Event, EventReader, FromJson, ToJson};

/// Reads bytes as an event in both ways, writes it and reads it again.
///
/// # Panics
///
/// Where a promise of the crate does not hold: the readings disagree, an error points outside the
/// text, or what is written does not read as the same value.
pub fn event_json(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let exact = Event::from_json_exact(text);
    let reading = match Event::from_json_tolerant(text) {
        Ok(reading) => reading,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset()), "{error}");
            assert!(!error.to_string().is_empty());
            assert!(exact.is_err(), "only the exact reading accepts: {error}");
            return;
        }
    };
    match exact {
        Ok(event) => {
            assert_eq!(event, reading.value);
            assert!(reading.findings.is_empty(), "{:?}", reading.findings);
        }
        Err(error) => {
            assert!(text.is_char_boundary(error.offset()), "{error}");
            assert!(!reading.findings.is_empty(), "only the tolerant reading accepts: {error}");
        }
    }

    let written = reading.value.to_json();
    let again = Event::from_json_tolerant(&written).expect("what we write, we read");
    assert_eq!(again.value, reading.value);
    assert_eq!(again.value.to_json(), written);
    // What was left out is gone; what was kept as unknown is still there.
    for finding in &*again.findings {
        let kept =
            matches!(finding.kind, FindingKind::UnknownVariant(_) | FindingKind::UnknownValue(_));
        assert!(kept, "{finding}");
    }
    if again.findings.is_empty() {
        assert_eq!(Event::from_json_exact(&written).as_ref(), Ok(&reading.value));
    }

    let mut reader = EventReader::new();
    for _ in 0..2 {
        assert_eq!(reader.tolerant(text).as_ref(), Ok(&reading));
    }
    let serialised = serde_json::to_string(&reading.value).expect("any event can be serialised");
    assert_eq!(serialised, written);
    let deserialised: Event = serde_json::from_str(&written).expect("what we write, serde reads");
    assert_eq!(deserialised, reading.value);
}
