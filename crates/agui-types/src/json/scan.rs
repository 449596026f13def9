//! Where a string stops being plain: shared by the lexer and the writer.

/// The position, from `from` on, of the first byte that cannot stand unescaped in a JSON string (a
/// quote, a backslash, a control character), or the end.
///
/// Looks at eight bytes at a time.
#[inline]
pub fn plain_end(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    let (words, tail) = rest.as_chunks::<8>();
    let mut at = from;
    for word in words {
        let plain = plain_bytes(*word);
        at += plain;
        if plain < 8 {
            return at;
        }
    }
    // What is looked at twice in the following is known to be plain the second time.
    if let Some(word) = rest.last_chunk::<8>() {
        return bytes.len() - 8 + plain_bytes(*word);
    }
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (tail.first_chunk(), tail.last_chunk()) {
        let plain = plain_bytes([*a, *b, *c, *d, *e, *f, *g, *h]);
        return if plain < 4 { at + plain } else { bytes.len() + plain - 8 };
    }
    let plain = |byte: &&u8| **byte >= 0x20 && **byte != b'"' && **byte != b'\\';
    at + tail.iter().take_while(plain).count()
}

/// How many of eight bytes come before the first one that is not plain.
#[inline]
pub(super) fn plain_bytes(word: [u8; 8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(word);
    // Flipping bit 1 brings the quote, 0x22, down to the control characters' upper neighbour.
    let control_or_quote = (word ^ (ONES * 0x02)).wrapping_sub(ONES * 0x21);
    let backslash = (word ^ (ONES * 0x5c)).wrapping_sub(ONES);
    let special = (control_or_quote | backslash) & !word & HIGHS;
    // The lowest set bit is exact: a subtraction borrows only from above a true one.
    special.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use super::plain_end;

    #[test]
    fn a_plain_run_ends_at_the_first_special_byte_wherever_it_stands() {
        for byte in 0..=255 {
            let plain = byte >= 0x20 && byte != b'"' && byte != b'\\';
            // Neighbours that a careless word trick would take for hits, or hits for neighbours.
            for other in [b'a', b'!', b'#', b'[', b']', 0x20, 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                for position in 0..20 {
                    let mut bytes = [other; 20];
                    bytes[position] = byte;
                    let end = if plain { 20 } else { position };
                    for from in 0..=position {
                        assert_eq!(plain_end(&bytes, from), end, "{byte:#x} at {position}");
                        assert_eq!(plain_end(&bytes[from..], 0), end - from);
                    }
                    assert_eq!(plain_end(&bytes, position + 1), 20);
                }
            }
        }
        assert_eq!(plain_end(b"abc", 3), 3);
        assert_eq!(plain_end(b"\"\\", 0), 0);
        assert_eq!(plain_end(b"\x00\x00\x00\x00\x00\x00\x00\x00", 0), 0);
    }
}
