//! Writing JSON text into a caller's buffer.

use super::scan::plain_end;

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
pub fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut plain = plain_end(bytes, 0);
    out.extend_from_slice(&bytes[..plain]);
    while let Some(&byte) = bytes.get(plain) {
        escape(out, byte);
        let start = plain + 1;
        plain = plain_end(bytes, start);
        out.extend_from_slice(&bytes[start..plain]);
    }
    out.push(b'"');
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
    fn a_string_is_escaped_as_serde_json_does() {
        for length in 0..20 {
            for code in (0..0x100).chain([0x2028, 0xd7ff, 0xfffd, 0x1_f600]) {
                let special = char::from_u32(code).unwrap();
                let text = format!("{}{special}b{special}", "a".repeat(length));
                let mut out = Vec::new();
                string(&mut out, &text);
                assert_eq!(out, serde_json::to_vec(&text).unwrap(), "{text:?}");
            }
        }
    }
}
