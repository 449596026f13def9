//! Writing JSON text into a caller's buffer.

use super::scan::{plain_bytes, plain_end};

/// Writes a value as JSON text, without white space, to the end of a buffer.
pub(crate) trait Write {
    /// Appends the value's JSON text.
    fn write(&self, out: &mut Vec<u8>);

    /// Whether what is written, where it is an object, has no white space and no needless escape
    /// around its members: true for everything but text that came from elsewhere.
    fn writes_densely(&self) -> bool {
        true
    }
}

/// Appends a string in quotes; escapes what JSON requires and nothing more.
#[inline]
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    string_content(out, text);
    out.push(b'"');
}

/// [`string`] without its quotes.
#[inline]
pub fn string_content(out: &mut Vec<u8>, text: &str) {
    const SHORT: usize = 16;

    let (start, text) = (out.len(), text.as_bytes());
    if text.len() <= SHORT {
        out.extend_from_slice(&[0; SHORT]);
        if let Some(len) = put_plain(&mut out[start..], text) {
            return out.truncate(start + len);
        }
        out.truncate(start);
    }
    escaped(out, text);
}

/// Puts a text that needs no escape at the start of a room, and returns its length. `None` where it
/// needs one, or the room is smaller than the text or than eight bytes; what the room holds behind
/// the text, or then at all, is anything.
///
/// For short texts: it is looked at and copied in whole words, whatever its length. Most deltas are
/// a few bytes long, and a copy of an unknown length costs more than they do.
#[inline]
pub fn put_plain(room: &mut [u8], text: &[u8]) -> Option<usize> {
    if text.len() >= 8 {
        return put_words(room, text);
    }
    let word = short_word(text);
    *room.first_chunk_mut()? = word;
    // What stands above the text is zero, and so not plain.
    (plain_bytes(word) == text.len()).then_some(text.len())
}

/// [`put_plain`] for eight bytes and more.
#[inline(never)]
fn put_words(room: &mut [u8], text: &[u8]) -> Option<usize> {
    let room = room.get_mut(..text.len())?;
    let words = text.as_chunks::<8>().0;
    for (place, word) in room.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        if plain_bytes(*word) < 8 {
            return None;
        }
        *place = *word;
    }
    let last = *text.last_chunk::<8>()?;
    *room.last_chunk_mut()? = last;
    (plain_bytes(last) == 8).then_some(text.len())
}

/// A text shorter than eight bytes, with zeros behind it.
#[inline]
fn short_word(text: &[u8]) -> [u8; 8] {
    let len = text.len();
    let word = if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        first | last << (8 * (len - 4))
    } else if let (Some(first), Some(middle), Some(last)) =
        (text.first(), text.get(len / 2), text.last())
    {
        let [first, middle, last] = [first, middle, last].map(|byte| u64::from(*byte));
        first | middle << (8 * (len / 2)) | last << (8 * (len - 1))
    } else {
        0
    };
    word.to_le_bytes()
}

/// What may be long, and what has something to escape.
#[inline(never)]
fn escaped(out: &mut Vec<u8>, text: &[u8]) {
    // With the quote behind it: a long text is not to grow the buffer twice.
    out.reserve(text.len() + 1);
    let mut start = 0;
    loop {
        let end = plain_end(text, start);
        out.extend_from_slice(&text[start..end]);
        let Some(&byte) = text.get(end) else { return };
        escape(out, byte);
        start = end + 1;
    }
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Appends a member of an object that was opened with `{`, and a comma: the next member follows, or
/// [`close_object`]. `quoted` is the name in quotes with the colon; names of described members need
/// no escape.
#[inline]
pub(crate) fn member(out: &mut Vec<u8>, quoted: &'static str, value: &(impl Write + ?Sized)) {
    out.extend_from_slice(quoted.as_bytes());
    value.write(out);
    out.push(b',');
}

/// Appends a member of any name, and a comma.
pub(crate) fn any_member(out: &mut Vec<u8>, name: &str, value: &(impl Write + ?Sized)) {
    string(out, name);
    out.push(b':');
    value.write(out);
    out.push(b',');
}

/// Closes an object, in the place of the last member's comma.
#[inline]
pub(crate) fn close_object(out: &mut Vec<u8>) {
    match out.last_mut() {
        Some(last @ b',') => *last = b'}',
        _ => out.push(b'}'),
    }
}

/// Appends an array.
pub(crate) fn array<T: Write>(out: &mut Vec<u8>, items: &[T]) {
    out.push(b'[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        item.write(out);
    }
    out.push(b']');
}

/// A value that is written already.
pub(crate) struct Written<'a>(pub(crate) &'a str);

impl Write for Written<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.as_bytes());
    }
}

impl Write for str {
    fn write(&self, out: &mut Vec<u8>) {
        string(out, self);
    }
}

impl Write for String {
    fn write(&self, out: &mut Vec<u8>) {
        string(out, self);
    }
}

impl Write for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

impl Write for i64 {
    fn write(&self, out: &mut Vec<u8>) {
        // From the end on: a sign and at most 19 digits.
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), self.unsigned_abs());
        while rest >= 10 {
            let pair = (rest % 100) as u8;
            rest /= 100;
            at -= 2;
            digits[at] = b'0' + pair / 10;
            digits[at + 1] = b'0' + pair % 10;
        }
        if rest > 0 || at == digits.len() {
            at -= 1;
            digits[at] = b'0' + rest as u8;
        }
        if *self < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        out.extend_from_slice(&digits[at..]);
    }
}

impl<T: Write> Write for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        array(out, self);
    }
}

impl<T: Write + ?Sized> Write for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        (**self).write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_written_as_the_standard_library_does() {
        let mut numbers = vec![0, 1, -1, 9, 10, 11, -10, 99, 100, i64::MAX, i64::MIN, i64::MIN + 1];
        numbers.extend((0..19).flat_map(|power| {
            let ten = 10_i64.pow(power);
            [ten, ten - 1, -ten, 1 - ten, ten / 7]
        }));
        for number in numbers {
            let mut out = b"x".to_vec();
            number.write(&mut out);
            assert_eq!(out, format!("x{number}").into_bytes());
        }
    }

    #[test]
    fn a_plain_text_needs_room_for_itself_and_for_a_word() {
        for len in 0..40 {
            let text = "abcdefghij".repeat(4).into_bytes();
            let mut room = [0; 40];
            assert_eq!(put_plain(&mut room, &text[..len]), Some(len));
            assert_eq!(room[..len], text[..len]);
            let enough = len.max(8);
            assert_eq!(put_plain(&mut room[..enough], &text[..len]), Some(len));
            assert_eq!(put_plain(&mut room[..enough - 1], &text[..len]), None);
            for at in 0..len {
                let mut text = text[..len].to_vec();
                text[at] = b'"';
                assert_eq!(put_plain(&mut room, &text), None);
            }
        }
    }

    #[test]
    fn a_string_is_escaped_as_serde_json_does() {
        let codes = (0..0x100).chain([0x2028, 0xd7ff, 0xfffd, 0x1_f600]);
        for special in codes.filter_map(char::from_u32) {
            for before in 0..20 {
                for behind in 0..20 {
                    let text = format!("{}{special}{}", "a".repeat(before), "b".repeat(behind));
                    let mut out = b"x".to_vec();
                    string(&mut out, &text);
                    assert_eq!(out[1..], serde_json::to_vec(&text).unwrap(), "{text:?}");
                }
            }
        }
        let mut out = Vec::new();
        string(&mut out, "");
        assert_eq!(out, b"\"\"");
    }
}
