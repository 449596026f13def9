//! Writing JSON text into a caller's buffer.

/// Writes a value as JSON text, without white space, to the end of a buffer.
pub(crate) trait Write {
    /// Appends the value's JSON text.
    fn write(&self, out: &mut Vec<u8>);
}

/// Appends a string in quotes; escapes what JSON requires and nothing more.
pub fn string(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let mut written = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..at]);
        written = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Appends `,` unless the object was just opened, then the member's name and a colon.
///
/// `name` must need no escape; names of described members do not.
pub(crate) fn member(out: &mut Vec<u8>, name: &'static str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
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
