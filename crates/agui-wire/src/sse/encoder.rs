//! From payloads to the bytes of a body.

use std::fmt;
use std::time::Duration;

use memchr::{memchr2, memchr3};

/// Writes frames, appending to a buffer that the caller owns and reuses.
///
/// An encoder is what stands before the data line: nothing, or an `id`, or an `event` name.
/// It is a plain value, cheap to make for each frame.
///
/// ```
/// use agui_wire::sse::Encoder;
///
/// let mut body = Vec::new();
/// Encoder::new().frame(&mut body, r#"{"type":"RUN_STARTED"}"#);
/// Encoder::new().id("41")?.frame_with(&mut body, |body| {
///     serde_json::to_writer(body, &serde_json::json!({"type": "RUN_FINISHED"}))
/// })?;
/// assert_eq!(
///     body,
///     b"data: {\"type\":\"RUN_STARTED\"}\n\nid: 41\ndata: {\"type\":\"RUN_FINISHED\"}\n\n",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Lines end with LF (T-15). Every frame has exactly one data line, so that it is whole for
/// readers that know no more of the grammar than `data: ` and a blank line. A payload is one
/// JSON text (T-13): there, a raw CR or LF can only be insignificant white space, since strings
/// escape theirs, and each is written as a space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encoder<'a> {
    id: Option<&'a str>,
    event: Option<&'a str>,
}

impl<'a> Encoder<'a> {
    /// An encoder of frames that are a data line alone.
    #[must_use]
    pub const fn new() -> Self {
        Self { id: None, event: None }
    }

    /// Puts an `id: ` line before the data: a position in the stream. Plain clients ignore it
    /// (T-16).
    ///
    /// # Errors
    ///
    /// When `id` has a CR, an LF or a NUL.
    pub fn id(self, id: &'a str) -> Result<Self, FieldError> {
        check(Field::Id, id)?;
        Ok(Self { id: Some(id), ..self })
    }

    /// Puts an `event: ` line before the data. This protocol does not use it (T-16), and a
    /// browser's `EventSource` hands such frames only to listeners of that name.
    ///
    /// # Errors
    ///
    /// When `name` has a CR, an LF or a NUL.
    pub fn event(self, name: &'a str) -> Result<Self, FieldError> {
        check(Field::Event, name)?;
        Ok(Self { event: Some(name), ..self })
    }

    /// Appends a frame with this payload.
    pub fn frame(self, body: &mut Vec<u8>, payload: impl AsRef<[u8]>) {
        let payload = payload.as_ref();
        let start = self.open(body, payload.len());
        body.extend_from_slice(payload);
        close(body, start);
    }

    /// Appends a frame whose payload `write` puts into the buffer: no copy in between.
    ///
    /// `write` must do nothing but append to the buffer. Its CR and LF bytes are replaced
    /// afterwards, like those of [`frame`](Self::frame).
    ///
    /// # Errors
    ///
    /// When `write` fails, with its error; the buffer is then as it was before.
    pub fn frame_with<T, E>(
        self,
        body: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<T, E>,
    ) -> Result<T, E> {
        let before = body.len();
        let start = self.open(body, 0);
        match write(body) {
            Ok(value) => {
                close(body, start);
                Ok(value)
            }
            Err(error) => {
                body.truncate(before);
                Err(error)
            }
        }
    }

    /// Appends a comment, such as a keep-alive (T-17): `: text` and a blank line, without which
    /// some readers keep it in their buffer. A CR or LF in `text` is written as a space.
    pub fn comment(body: &mut Vec<u8>, text: &str) {
        body.extend_from_slice(if text.is_empty() { b":" } else { b": " });
        let start = body.len();
        body.extend_from_slice(text.as_bytes());
        close(body, start);
    }

    /// Appends a frame without data that asks browsers to wait this long before they
    /// reconnect; in whole milliseconds, and at most [`u64::MAX`] of them. Plain clients ignore
    /// it (T-16).
    pub fn retry(body: &mut Vec<u8>, wait: Duration) {
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        body.extend_from_slice(format!("retry: {millis}\n\n").as_bytes());
    }

    /// Writes all that stands before the payload, and returns where that starts.
    fn open(self, body: &mut Vec<u8>, payload: usize) -> usize {
        let fields = [("id: ", self.id), ("event: ", self.event)];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let head: usize = fields.clone().map(|(name, value)| name.len() + value.len() + 1).sum();
        body.reserve(head + "data: ".len() + payload + "\n\n".len());
        for (name, value) in fields {
            body.extend_from_slice(name.as_bytes());
            body.extend_from_slice(value.as_bytes());
            body.push(b'\n');
        }
        body.extend_from_slice(b"data: ");
        body.len()
    }
}

/// A field whose value is not free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Field {
    /// The `id` line.
    Id,
    /// The `event` line.
    Event,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Id => "id",
            Self::Event => "event",
        })
    }
}

/// A value that cannot be written as a field: it would end the line, or be ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an SSE {field} cannot hold the byte {byte:#04x} (at {at}): take out CR, LF and NUL")]
#[non_exhaustive]
pub struct FieldError {
    /// The field.
    pub field: Field,
    /// The byte: CR, LF or NUL.
    pub byte: u8,
    /// Its place in the value.
    pub at: usize,
}

fn check(field: Field, value: &str) -> Result<(), FieldError> {
    match memchr3(b'\r', b'\n', 0, value.as_bytes()) {
        None => Ok(()),
        Some(at) => Err(FieldError { field, byte: value.as_bytes()[at], at }),
    }
}

/// Keeps what was written since `start` on one line, and ends the frame.
fn close(body: &mut Vec<u8>, start: usize) {
    let mut rest = body.get_mut(start..).unwrap_or_default();
    while let Some(at) = memchr2(b'\r', b'\n', rest) {
        rest[at] = b' ';
        rest = &mut rest[at + 1..];
    }
    body.extend_from_slice(b"\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut body = Vec::new();
        write(&mut body);
        String::from_utf8(body).expect("text")
    }

    #[test]
    fn t13_t15_a_frame_is_one_data_line_and_a_blank_line_with_lf() {
        assert_eq!(written(|body| Encoder::new().frame(body, "{}")), "data: {}\n\n");
        assert_eq!(written(|body| Encoder::new().frame(body, "")), "data: \n\n");
        assert_eq!(written(|body| Encoder::new().frame(body, " {}")), "data:  {}\n\n");
    }

    #[test]
    fn t13_raw_line_ends_in_a_payload_become_spaces() {
        let pretty = "{\r\n \"a\": 1,\r \"b\": \"\\n\"\n}\n";
        let framed = "data: {   \"a\": 1,  \"b\": \"\\n\" } \n\n";
        assert_eq!(written(|body| Encoder::new().frame(body, pretty)), framed);
        let with = written(|body| {
            let write = |body: &mut Vec<u8>| -> Result<(), ()> {
                body.extend_from_slice(pretty.as_bytes());
                Ok(())
            };
            Encoder::new().frame_with(body, write).expect("cannot fail");
        });
        assert_eq!(with, framed);
    }

    #[test]
    fn frames_are_appended_and_earlier_line_ends_stay() {
        let mut body = b"data: 1\n\n".to_vec();
        Encoder::new().frame(&mut body, "2");
        assert_eq!(body, b"data: 1\n\ndata: 2\n\n");
    }

    #[test]
    fn id_and_event_come_before_the_data_when_asked() {
        let encoder = Encoder::new().event("tick").and_then(|e| e.id("run-1/7")).expect("valid");
        let body = written(|body| encoder.frame(body, "{}"));
        assert_eq!(body, "id: run-1/7\nevent: tick\ndata: {}\n\n");
        let encoder = Encoder::new().id("").expect("valid");
        assert_eq!(written(|body| encoder.frame(body, "{}")), "id: \ndata: {}\n\n");
    }

    #[test]
    fn fields_that_would_break_the_framing_are_refused() {
        for (value, byte, at) in [("a\nb", b'\n', 1), ("\rb", b'\r', 0), ("ab\0", 0, 2)] {
            let expected = |field| Err(FieldError { field, byte, at });
            assert_eq!(Encoder::new().id(value), expected(Field::Id));
            assert_eq!(Encoder::new().event(value), expected(Field::Event));
        }
        let error = Encoder::new().id("a\nb").expect_err("line feed");
        assert_eq!(
            error.to_string(),
            "an SSE id cannot hold the byte 0x0a (at 1): take out CR, LF and NUL"
        );
    }

    #[test]
    fn a_failed_payload_leaves_no_trace() {
        let mut body = b"data: 1\n\n".to_vec();
        let failed: Result<(), _> =
            Encoder::new().id("2").expect("valid").frame_with(&mut body, |body| {
                body.extend_from_slice(b"{\"half");
                Err("no")
            });
        assert_eq!(failed, Err("no"));
        assert_eq!(body, b"data: 1\n\n");
    }

    #[test]
    fn t17_a_comment_is_one_line_and_a_blank_line() {
        assert_eq!(written(|body| Encoder::comment(body, "keep-alive")), ": keep-alive\n\n");
        assert_eq!(written(|body| Encoder::comment(body, "")), ":\n\n");
        assert_eq!(written(|body| Encoder::comment(body, "a\r\ndata: b")), ": a  data: b\n\n");
    }

    #[test]
    fn retry_is_in_milliseconds() {
        let retry = |wait| written(|body| Encoder::retry(body, wait));
        assert_eq!(retry(Duration::from_secs(3)), "retry: 3000\n\n");
        assert_eq!(retry(Duration::from_micros(1999)), "retry: 1\n\n");
        assert_eq!(retry(Duration::MAX), "retry: 18446744073709551615\n\n");
    }
}
