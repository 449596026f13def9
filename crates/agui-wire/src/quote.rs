//! Pieces of hostile text, for messages.

use std::fmt::Write as _;

/// At most `most` characters of a text around a byte offset, control characters escaped, with an
/// ellipsis where something is left out.
pub(crate) fn shortened(text: &str, around: usize, most: usize) -> String {
    let around = (0..=around.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let around = around.unwrap_or_default();
    let before = text[..around].char_indices().rev().take(most / 2).last();
    let start = before.map_or(around, |(at, _)| at);
    // Where the beginning is near, it is of more use than a cut.
    let start = if text[..start].chars().count() <= most / 4 { 0 } else { start };
    let mut quote = String::new();
    if start > 0 {
        quote.push('…');
    }
    let mut rest = text[start..].chars();
    for c in rest.by_ref().take(most) {
        if c.is_control() {
            // Writing to a string does not fail.
            let _ = write!(quote, "{}", c.escape_default());
        } else {
            quote.push(c);
        }
    }
    if rest.next().is_some() {
        quote.push('…');
    }
    quote
}

/// The first bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const MOST: usize = 16;
    let mut quote = String::new();
    for byte in bytes.iter().take(MOST) {
        let _ = write!(quote, "{byte:02x}");
    }
    if bytes.len() > MOST {
        quote.push('…');
    }
    quote
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_is_bounded_and_shows_the_place() {
        assert_eq!(shortened("short", 3, 20), "short");
        assert_eq!(shortened("", 9, 20), "");
        assert_eq!(shortened("a\nb", 0, 20), "a\\nb");
        let long: String = ('a'..='z').chain('A'..='Z').collect();
        assert_eq!(shortened(&long, 0, 20), "abcdefghijklmnopqrst…");
        assert_eq!(shortened(&long, 15, 20), "abcdefghijklmnopqrst…");
        assert_eq!(shortened(&long, 26, 20), "…qrstuvwxyzABCDEFGHIJ…");
        assert_eq!(shortened(&long, 99, 20), "…QRSTUVWXYZ");
        assert_eq!(shortened("ééééé", 1, 4), "éééé…");
        assert_eq!(hex(b"\x00\xffa"), "00ff61");
        assert_eq!(hex(&[0; 17]).chars().count(), 33);
    }
}
