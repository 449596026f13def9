//! Which of the two forms a body has, and how the two sides agree on one.

use std::fmt;

/// The media type of the JSON form: server-sent events (T-12).
pub const EVENT_STREAM: &str = "text/event-stream";

/// The media type of the binary form: length-prefixed protobuf (T-23).
pub const EVENT_PROTO: &str = "application/vnd.ag-ui.event+proto";

/// How events are written as bytes. Which of the two changes nothing about what they mean (T-5).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WireForm {
    /// Server-sent events, each one JSON object. Everyone reads and writes these (T-6, T-26).
    #[default]
    Sse,
    /// Frames of protobuf.
    Proto,
}

impl WireForm {
    /// The media type, as a `Content-Type` has it: without parameters (T-12, T-23).
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Sse => EVENT_STREAM,
            Self::Proto => EVENT_PROTO,
        }
    }

    /// The `Accept` of a client that wants this form.
    ///
    /// A producer answers in protobuf whenever that is admitted (T-24), so a client that prefers
    /// server-sent events names nothing else; one that prefers protobuf names both, as it has to
    /// cope with either (T-11, T-26). There is no wildcard in it (T-25).
    #[must_use]
    pub const fn accept(self) -> &'static str {
        match self {
            Self::Sse => EVENT_STREAM,
            Self::Proto => "application/vnd.ag-ui.event+proto, text/event-stream",
        }
    }

    /// The form of a body with this `Content-Type`, whatever its case and parameters (T-23).
    ///
    /// Anything but the media type of protobuf is read as server-sent events: what is something
    /// else altogether holds no frame, or one that is no event.
    #[must_use]
    pub fn from_content_type(content_type: &str) -> Self {
        if has_essence(content_type, EVENT_PROTO) { Self::Proto } else { Self::Sse }
    }

    /// Whether a `Content-Type` names this form, whatever its case and parameters.
    #[must_use]
    pub fn is_named_by(self, content_type: &str) -> bool {
        has_essence(content_type, self.media_type())
    }
}

/// Prints the media type.
impl fmt::Display for WireForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.media_type())
    }
}

fn has_essence(content_type: &str, media_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case(media_type)
}

/// The form in which a producer that has both answers a request with this `Accept` header (T-24):
/// protobuf where the header admits it with a quality above zero, by name or by wildcard, else
/// server-sent events. No header, an empty one and one that admits neither mean server-sent events.
///
/// The quality of the one is not weighed against that of the other. Where several ranges match,
/// the most specific one decides, then the highest quality. Parameters other than `q` are part of
/// what is asked for, and neither form has any. Several header lines are to be joined with a comma.
///
/// ```
/// use agui_wire::{WireForm, negotiate};
///
/// assert_eq!(negotiate(None), WireForm::Sse);
/// assert_eq!(negotiate(Some("text/event-stream")), WireForm::Sse);
/// assert_eq!(negotiate(Some("text/event-stream, */*;q=0.1")), WireForm::Proto);
/// assert_eq!(negotiate(Some("*/*, application/*;q=0")), WireForm::Sse);
/// ```
#[must_use]
pub fn negotiate(accept: Option<&str>) -> WireForm {
    let mut best: Option<Range> = None;
    for range in quoted_split(accept.unwrap_or_default(), ',').filter_map(Range::matching) {
        // The last one wins where neither is better, and a quality that is no number is never so.
        let better = best.as_ref().is_none_or(|best| {
            range.specificity > best.specificity
                || range.specificity == best.specificity
                    && !matches!(
                        range.quality.partial_cmp(&best.quality),
                        Some(std::cmp::Ordering::Less)
                    )
        });
        if better {
            best = Some(range);
        }
    }
    if best.is_some_and(|range| range.quality > 0.0) { WireForm::Proto } else { WireForm::Sse }
}

/// A media range of an `Accept` header that covers the media type of protobuf.
struct Range {
    /// Which parts are named and no wildcard: 4 the type, 2 the subtype, 1 a parameter.
    specificity: u8,
    /// As given, 1 by default; NaN where it is no number, which admits nothing.
    quality: f64,
}

impl Range {
    fn matching(text: &str) -> Option<Self> {
        let (media_type, parameters) = match text.split_once(';') {
            Some((media_type, parameters)) => (media_type, Some(parameters)),
            None => (text, None),
        };
        let (kind, subtype) = media_type.trim().split_once('/')?;
        let malformed = |part: &str| part.is_empty() || part.contains(char::is_whitespace);
        if malformed(kind) || malformed(subtype) {
            return None;
        }
        let (own_kind, own_subtype) = EVENT_PROTO.split_once('/')?;
        let mut specificity = 0;
        for (part, own, weight) in [(kind, own_kind, 4), (subtype, own_subtype, 2)] {
            if part.eq_ignore_ascii_case(own) {
                specificity |= weight;
            } else if part != "*" {
                return None;
            }
        }
        let mut quality = 1.0;
        let mut asked: Vec<(&str, &str)> = Vec::new();
        let parameters = parameters.filter(|text| !text.is_empty());
        for parameter in parameters.into_iter().flat_map(|text| quoted_split(text, ';')) {
            let (name, value) = parameter.trim().split_once('=').unwrap_or((parameter.trim(), ""));
            let value = unquoted(value);
            if name.eq_ignore_ascii_case("q") {
                quality = leading_number(value);
                // What follows the quality is an extension, not part of the range.
                break;
            }
            // The last one of a name counts.
            asked.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
            asked.push((name, value));
        }
        if !asked.is_empty() {
            specificity |= 1;
        }
        // The media type has no parameter: none may be asked for, unless its value does not matter.
        if !asked.iter().all(|(_, value)| matches!(*value, "" | "*")) {
            return None;
        }
        Some(Self { specificity, quality })
    }
}

/// Splits at a separator that does not stand between quotes.
fn quoted_split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |c| {
        quoted ^= c == '"';
        c == separator && !quoted
    })
}

fn unquoted(value: &str) -> &str {
    let quoted = value.starts_with('"') && value.ends_with('"');
    if quoted { value.get(1..value.len() - 1).unwrap_or_default() } else { value }
}

/// The longest beginning that is a decimal number, as the reference reads a quality; NaN where
/// there is none.
fn leading_number(text: &str) -> f64 {
    let text = text.trim_start();
    if text.strip_prefix('+').unwrap_or(text).starts_with("Infinity") {
        return f64::INFINITY;
    }
    let bytes = text.as_bytes();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = sign + digits(sign);
    let mut any = end > sign;
    if bytes.get(end) == Some(&b'.') {
        let fraction = digits(end + 1);
        any |= fraction > 0;
        end += 1 + fraction;
    }
    if !any {
        return f64::NAN;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let from = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(from);
        if exponent > 0 {
            end = from + exponent;
        }
    }
    text[..end].parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t23_a_content_type_is_read_whatever_its_case_and_parameters() {
        for (text, form) in [
            ("application/vnd.ag-ui.event+proto", WireForm::Proto),
            (" Application/VND.ag-ui.Event+Proto ; charset=binary", WireForm::Proto),
            ("application/vnd.ag-ui.event+proto;", WireForm::Proto),
            ("application/vnd.ag-ui.event+json", WireForm::Sse),
            ("text/event-stream; charset=utf-8", WireForm::Sse),
            ("text/html", WireForm::Sse),
            ("", WireForm::Sse),
        ] {
            assert_eq!(WireForm::from_content_type(text), form, "{text:?}");
        }
        assert!(WireForm::Sse.is_named_by("Text/Event-Stream;charset=utf-8"));
        assert!(!WireForm::Sse.is_named_by("text/html"));
        assert_eq!(WireForm::from_content_type(WireForm::Proto.media_type()), WireForm::Proto);
    }

    #[test]
    fn t25_a_client_names_what_it_reads_and_gets_it() {
        for form in [WireForm::Sse, WireForm::Proto] {
            assert!(!form.accept().contains('*'));
            assert_eq!(negotiate(Some(form.accept())), form);
        }
        assert!(WireForm::Proto.accept().contains(EVENT_STREAM), "T-26");
    }

    #[test]
    fn t24_the_most_specific_range_decides_and_then_the_highest_quality() {
        let proto = EVENT_PROTO;
        for (accept, form) in [
            (format!("*/*;q=1, {proto};q=0"), WireForm::Sse),
            (format!("{proto};q=0, {proto};q=0.001"), WireForm::Proto),
            (format!("{proto};q=0.001, {proto};q=0"), WireForm::Proto),
            // A quality that is no number does not compare: the later range wins.
            (format!("{proto};q=1, {proto};q=x"), WireForm::Sse),
            (format!("{proto};q=x, {proto};q=1"), WireForm::Proto),
            (format!("{proto};v=1"), WireForm::Sse),
            (format!("{proto};v=*"), WireForm::Proto),
            (format!("{proto};v=\"\""), WireForm::Proto),
            (format!("{proto};v=\""), WireForm::Proto),
            (format!("{proto};v=1;V=*"), WireForm::Proto),
            (format!("{proto};v=*;V=1"), WireForm::Sse),
            (format!("{proto};"), WireForm::Proto),
            (format!("{proto};q=Infinity"), WireForm::Proto),
            (format!("{proto};q=1;v=1"), WireForm::Proto),
            (format!("{proto};q=\"0\""), WireForm::Sse),
            (format!("{proto} ;q=.5"), WireForm::Proto),
            (format!("{proto};q=-1"), WireForm::Sse),
            ("a/b;c=\",*/*\"".into(), WireForm::Sse),
            ("a/b;c=\"\\\",*/*".into(), WireForm::Proto),
            ("*".into(), WireForm::Sse),
            ("*/ *".into(), WireForm::Sse),
            ("/".into(), WireForm::Sse),
            ("*/*/*".into(), WireForm::Sse),
        ] {
            assert_eq!(negotiate(Some(&accept)), form, "{accept}");
        }
    }

    #[test]
    fn a_quality_is_the_number_it_begins_with() {
        for (text, number) in [
            ("1e-3", 0.001),
            ("+1", 1.0),
            ("00", 0.0),
            ("0.5x", 0.5),
            ("5.", 5.0),
            ("1e", 1.0),
            ("1e+", 1.0),
            ("1e400", f64::INFINITY),
            (" 1", 1.0),
        ] {
            assert_eq!(leading_number(text), number, "{text}");
        }
        for text in ["", "x", ".", "+", "-.e1", "inf", "NaN"] {
            assert!(leading_number(text).is_nan(), "{text}");
        }
    }
}
