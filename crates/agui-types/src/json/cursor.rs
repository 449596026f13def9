//! The lexer below every reading: a cursor over one JSON text.
//!
//! It is our own, and not `serde_json`'s, for four reasons that the readings rest on. The exact text
//! of any value is a slice of the input, so opaque JSON survives byte for byte without a second
//! pass. A lone surrogate escape, which real producers send when they cut a string in two, becomes
//! U+FFFD instead of an error. A fault knows its byte offset and what was expected, as data. And a
//! discriminator can be looked up ahead of the members before it, without buffering them.

use std::borrow::Cow;

use super::scan::plain_end;

/// Objects and arrays may nest this deep in one JSON text; one level more is refused.
///
/// The same bound as `serde_json`'s, so that a text accepted here can be decoded there.
pub const MAX_DEPTH: usize = 127;

/// Where and why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LexError {
    pub(crate) problem: LexProblem,
    pub(crate) offset: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LexProblem {
    /// The text stops where this was expected.
    Eof(&'static str),
    /// Something else stands where this was expected.
    Expected(&'static str),
    /// More than [`MAX_DEPTH`] levels.
    TooDeep,
}

/// The kind of the value that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A position in one JSON text. Cloning it is how a reader looks ahead.
#[derive(Clone)]
pub(crate) struct Cursor<'t> {
    text: &'t str,
    pos: usize,
    depth: usize,
}

type Lexed<T> = Result<T, LexError>;

/// The string that a JSON text is, decoded; borrowed where it holds no escape. A lone surrogate
/// escape reads as U+FFFD. `None` where the text is no string, or anything more.
pub fn read_string(text: &str) -> Option<Cow<'_, str>> {
    let mut cursor = Cursor::new(text);
    let string = cursor.string().ok()?;
    cursor.end().ok()?;
    Some(string)
}

impl<'t> Cursor<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, pos: 0, depth: 0 }
    }

    pub(crate) fn offset(&self) -> usize {
        self.pos
    }

    /// A cursor at the beginning of the same text.
    pub(crate) fn restarted(&self) -> Self {
        Self::new(self.text)
    }

    /// Goes back to an earlier offset, as many levels further out as have been entered since.
    #[inline]
    pub(crate) fn back_to(&mut self, offset: usize, levels: usize) {
        self.pos = offset;
        self.depth -= levels;
    }

    /// The kind of the next value; does not move past it.
    #[inline]
    pub(crate) fn kind(&mut self) -> Lexed<Kind> {
        match self.peek() {
            Some(b'"') => Ok(Kind::String),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b't' | b'f') => Ok(Kind::Bool),
            Some(b'n') => Ok(Kind::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            _ => Err(self.expected("a JSON value")),
        }
    }

    /// Nothing but white space may be left.
    pub(crate) fn end(&mut self) -> Lexed<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the JSON text")),
        }
    }

    /// Enters an object: `{`.
    #[inline]
    pub(crate) fn open_object(&mut self) -> Lexed<()> {
        self.open(b'{', "an object")
    }

    /// Enters an array: `[`.
    pub(crate) fn open_array(&mut self) -> Lexed<()> {
        self.open(b'[', "an array")
    }

    /// The next member's name, or `None` after `}`. `first` says that no member was read yet.
    pub(crate) fn next_key(&mut self, first: &mut bool) -> Lexed<Option<Cow<'t, str>>> {
        if !self.next_in(b'}', first, "a comma or the end of the object")? {
            return Ok(None);
        }
        if self.peek() != Some(b'"') {
            return Err(self.expected("a member name in quotes"));
        }
        let key = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.expected("a colon after the member name"));
        }
        self.pos += 1;
        Ok(Some(key))
    }

    /// Moves past this text if it comes next, without white space before it.
    #[inline]
    pub(crate) fn skip_text(&mut self, text: &'static str) -> bool {
        let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        let comes = rest.starts_with(text.as_bytes());
        if comes {
            self.pos += text.len();
        }
        comes
    }

    /// The next member's name where there is no white space around it and no escape in it; else
    /// `None`, without having moved. What [`Cursor::next_key`] would give, at a lower price.
    #[inline]
    pub(crate) fn plain_key(&mut self, first: bool) -> Option<&'t str> {
        let bytes = self.text.as_bytes();
        let quote = self.pos + usize::from(!first);
        if !first && self.byte() != Some(b',') || bytes.get(quote) != Some(&b'"') {
            return None;
        }
        let end = plain_end(bytes, quote + 1);
        if bytes.get(end) != Some(&b'"') || bytes.get(end + 1) != Some(&b':') {
            return None;
        }
        self.pos = end + 2;
        self.text.get(quote + 1..end)
    }

    /// Leaves the object if its end comes next, without white space before it.
    #[inline]
    pub(crate) fn plain_end_of_object(&mut self) -> bool {
        let ends = self.byte() == Some(b'}');
        if ends {
            self.pos += 1;
            self.depth -= 1;
        }
        ends
    }

    /// Whether another element follows; `false` after `]`.
    #[inline]
    pub(crate) fn next_element(&mut self, first: &mut bool) -> Lexed<bool> {
        self.next_in(b']', first, "a comma or the end of the array")
    }

    /// Reads `null`.
    pub(crate) fn null(&mut self) -> Lexed<()> {
        self.peek();
        self.word("null")
    }

    /// Reads `true` or `false`.
    pub(crate) fn bool(&mut self) -> Lexed<bool> {
        if self.peek() == Some(b't') {
            self.word("true").map(|()| true)
        } else {
            self.word("false").map(|()| false)
        }
    }

    /// Reads a number and gives its text.
    pub(crate) fn number(&mut self) -> Lexed<&'t str> {
        self.peek();
        let start = self.pos;
        self.skip_number()?;
        Ok(&self.text[start..self.pos])
    }

    /// Reads an integer of at most 18 digits, without point and exponent; else gives `None`,
    /// without having moved.
    pub(crate) fn small_integer(&mut self) -> Option<i64> {
        let rest = self.text.as_bytes().get(self.pos..)?;
        let (negative, digits) = match rest {
            [b'-', digits @ ..] => (true, digits),
            digits => (false, digits),
        };
        let (mut value, mut length) = (0, 0);
        if let Some(first) = digits.first_chunk().copied().and_then(eight_digits) {
            (value, length) = (first, 8);
        }
        while let Some(digit @ b'0'..=b'9') = digits.get(length) {
            if length == 18 {
                return None;
            }
            value = value * 10 + i64::from(digit - b'0');
            length += 1;
        }
        let leading_zero = length > 1 && digits[0] == b'0';
        let more = matches!(digits.get(length), Some(b'.' | b'e' | b'E'));
        if length == 0 || leading_zero || more {
            return None;
        }
        self.pos += length + usize::from(negative);
        Some(if negative { -value } else { value })
    }

    /// Reads a string and decodes it; borrows where it holds no escape.
    #[inline]
    pub(crate) fn string(&mut self) -> Lexed<Cow<'t, str>> {
        match self.plain_string() {
            Some(plain) => Ok(Cow::Borrowed(plain)),
            None => self.escaped_string().map(Cow::Owned),
        }
    }

    /// Reads a string that holds no escape; else gives `None`, without having moved past anything
    /// but white space.
    pub(crate) fn plain_string(&mut self) -> Option<&'t str> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let bytes = self.text.as_bytes();
        let start = self.pos + 1;
        let end = plain_end(bytes, start);
        if bytes.get(end) != Some(&b'"') {
            return None;
        }
        self.pos = end + 1;
        self.text.get(start..end)
    }

    #[inline(never)]
    fn escaped_string(&mut self) -> Lexed<String> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        // Decoded it is never longer: one allocation will do.
        let mut ahead = self.clone();
        ahead.skip_string()?;
        let mut decoded = String::with_capacity(ahead.pos - self.pos);
        self.pos += 1;
        loop {
            let run = self.pos;
            self.scan_plain();
            decoded.push_str(&self.text[run..self.pos]);
            match self.byte() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(_) => return Err(self.expected("no raw control character in a string")),
                None => return Err(self.expected("the closing quote of a string")),
            }
        }
    }

    /// The text from an offset on up to here.
    pub(crate) fn since(&self, offset: usize) -> &'t str {
        &self.text[offset..self.pos]
    }

    /// Moves past one value of any kind and gives its exact text, without the white space around it.
    pub(crate) fn skip(&mut self) -> Lexed<&'t str> {
        self.peek();
        let start = self.pos;
        let base = self.depth;
        // One bit a level: set for an object, clear for an array.
        let mut levels = 0u128;
        loop {
            match self.kind()? {
                Kind::String => self.skip_string()?,
                Kind::Number => self.skip_number()?,
                Kind::Bool => drop(self.bool()?),
                Kind::Null => self.null()?,
                kind @ (Kind::Object | Kind::Array) => {
                    let object = kind == Kind::Object;
                    if object {
                        self.open_object()?;
                    } else {
                        self.open_array()?;
                    }
                    levels = levels << 1 | u128::from(object);
                    if self.skip_to_value(&mut levels, true)? {
                        continue;
                    }
                }
            }
            loop {
                if self.depth == base {
                    return Ok(&self.text[start..self.pos]);
                }
                if self.skip_to_value(&mut levels, false)? {
                    break;
                }
            }
        }
    }

    /// Inside the innermost container: moves to its next value, or past its end (`false`).
    fn skip_to_value(&mut self, levels: &mut u128, mut first: bool) -> Lexed<bool> {
        if *levels & 1 == 1 {
            if !self.next_in(b'}', &mut first, "a comma or the end of the object")? {
                *levels >>= 1;
                return Ok(false);
            }
            if self.peek() != Some(b'"') {
                return Err(self.expected("a member name in quotes"));
            }
            self.skip_string()?;
            if self.peek() != Some(b':') {
                return Err(self.expected("a colon after the member name"));
            }
            self.pos += 1;
        } else if !self.next_element(&mut first)? {
            *levels >>= 1;
            return Ok(false);
        }
        Ok(true)
    }

    #[inline]
    fn open(&mut self, bracket: u8, what: &'static str) -> Lexed<()> {
        if self.peek() != Some(bracket) {
            return Err(self.expected(what));
        }
        if self.depth == MAX_DEPTH {
            return Err(LexError { problem: LexProblem::TooDeep, offset: self.pos });
        }
        self.depth += 1;
        self.pos += 1;
        Ok(())
    }

    #[inline]
    fn next_in(&mut self, close: u8, first: &mut bool, what: &'static str) -> Lexed<bool> {
        match self.peek() {
            Some(byte) if byte == close => {
                self.pos += 1;
                self.depth -= 1;
                Ok(false)
            }
            _ if std::mem::take(first) => Ok(true),
            Some(b',') => {
                self.pos += 1;
                // A trailing comma is left for the caller: what follows is no name and no value.
                Ok(true)
            }
            _ => Err(self.expected(what)),
        }
    }

    /// The byte at the cursor after white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        match self.byte() {
            Some(byte) if byte > b' ' => Some(byte),
            _ => self.peek_past_space(),
        }
    }

    #[inline(never)]
    fn peek_past_space(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.pos += 1,
                other => return other,
            }
        }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn word(&mut self, word: &'static str) -> Lexed<()> {
        if self.text.as_bytes()[self.pos..].starts_with(word.as_bytes()) {
            self.pos += word.len();
            Ok(())
        } else {
            Err(self.expected("a JSON value"))
        }
    }

    fn skip_number(&mut self) -> Lexed<()> {
        if self.byte() == Some(b'-') {
            self.pos += 1;
        }
        match self.byte() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.expected("a digit")),
        }
        if self.byte() == Some(b'.') {
            self.pos += 1;
            self.some_digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.some_digits()?;
        }
        Ok(())
    }

    fn some_digits(&mut self) -> Lexed<()> {
        if !matches!(self.byte(), Some(b'0'..=b'9')) {
            return Err(self.expected("a digit"));
        }
        self.skip_digits();
        Ok(())
    }

    fn skip_digits(&mut self) {
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
    }

    fn skip_string(&mut self) -> Lexed<()> {
        self.pos += 1;
        loop {
            self.scan_plain();
            match self.byte() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(());
                }
                Some(b'\\') => drop(self.escape()?),
                Some(_) => return Err(self.expected("no raw control character in a string")),
                None => return Err(self.expected("the closing quote of a string")),
            }
        }
    }

    /// Moves to the next quote, backslash or control character.
    #[inline]
    fn scan_plain(&mut self) {
        self.pos = plain_end(self.text.as_bytes(), self.pos);
    }

    /// Reads one escape, or two that form a surrogate pair. A lone surrogate reads as U+FFFD.
    fn escape(&mut self) -> Lexed<char> {
        let start = self.pos;
        self.pos += 1;
        let Some(letter) = self.byte() else {
            return Err(self.expected("an escape letter"));
        };
        self.pos += 1;
        Ok(match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.hex4()?;
                if (0xd800..0xdc00).contains(&unit) {
                    let mut ahead = self.clone();
                    if ahead.text.as_bytes()[ahead.pos..].starts_with(b"\\u") {
                        ahead.pos += 2;
                        let low = ahead.hex4()?;
                        if (0xdc00..0xe000).contains(&low) {
                            self.pos = ahead.pos;
                            let scalar = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
                            return Ok(
                                char::from_u32(scalar).unwrap_or(char::REPLACEMENT_CHARACTER)
                            );
                        }
                    }
                }
                char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => {
                self.pos = start;
                return Err(self.expected("a valid escape"));
            }
        })
    }

    fn hex4(&mut self) -> Lexed<u32> {
        let digits = self.text.as_bytes().get(self.pos..self.pos + 4);
        let Some(digits) = digits else {
            self.pos = self.text.len();
            return Err(self.expected("four hexadecimal digits"));
        };
        let mut unit = 0;
        for &digit in digits {
            let Some(value) = char::from(digit).to_digit(16) else {
                return Err(self.expected("four hexadecimal digits"));
            };
            unit = unit << 4 | value;
        }
        self.pos += 4;
        Ok(unit)
    }

    #[cold]
    fn expected(&self, what: &'static str) -> LexError {
        let problem = if self.pos >= self.text.len() {
            LexProblem::Eof(what)
        } else {
            LexProblem::Expected(what)
        };
        LexError { problem, offset: self.pos }
    }
}

/// The number that eight digits make, by adding up neighbours: digits, pairs, fours.
fn eight_digits(text: [u8; 8]) -> Option<i64> {
    let digits = u64::from_le_bytes(text) ^ 0x3030_3030_3030_3030;
    if (digits | digits.wrapping_add(0x7676_7676_7676_7676)) & 0x8080_8080_8080_8080 != 0 {
        return None;
    }
    let pairs = (digits * 10 + (digits >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    i64::try_from((fours * 10_000 + (fours >> 32)) & 0xffff_ffff).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_are_read_as_any_number_is() {
        let mut texts: Vec<String> = (0..=20).map(|length| "9".repeat(length)).collect();
        texts.extend((1..=20).map(|length| format!("1{}", "0".repeat(length))));
        texts.extend(
            (0..20).map(|length| format!("{}5", "12345678901234567890".split_at(length).0)),
        );
        for seed in 0..8 {
            for odd in ["/", ":", "a", "-", ".", "e", "E", " ", ",", "é"] {
                texts.push(format!("{}{odd}5678", "1234567".split_at(seed).0));
            }
        }
        for text in ["0", "00", "01", "0.5", "-", "", "--1", "1e3", "+1", "0,", "10}"] {
            texts.push(text.into());
        }
        for text in texts.iter().flat_map(|text| [text.trim().to_owned(), format!("-{text}")]) {
            let (mut quick, mut slow) = (Cursor::new(&text), Cursor::new(&text));
            let slow_value = slow.number().ok().and_then(|digits| digits.parse::<i64>().ok());
            match quick.small_integer() {
                Some(value) => {
                    assert_eq!(Some(value), slow_value, "{text}");
                    assert_eq!(quick.offset(), slow.offset(), "{text}");
                }
                None => {
                    assert_eq!(quick.offset(), 0, "{text}");
                    // Left to the general reading: no integer, a long one, or a zero before it.
                    let digits = text.trim_start_matches('-');
                    let long = digits.bytes().take_while(u8::is_ascii_digit).count() > 18;
                    let padded = digits.starts_with('0');
                    assert!(slow_value.is_none() || long || padded, "{text}");
                }
            }
        }
    }

    fn skip_all(text: &str) -> Lexed<&str> {
        let mut cursor = Cursor::new(text);
        let raw = cursor.skip()?;
        cursor.end()?;
        Ok(raw)
    }

    #[test]
    fn a_value_is_given_back_as_written() {
        for text in ["1.50e+10", "\"\\u0041\"", "{\"b\" : 1,\n\"a\":[ ]}", "[[],{}]", "-0", "null"]
        {
            assert_eq!(skip_all(&format!(" \t{text}\r\n")), Ok(text));
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_refused_where_it_breaks() {
        for (text, offset) in [
            ("", 0),
            ("tru", 0),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\":1,}", 7),
            ("{\"a\" 1}", 5),
            ("{a:1}", 1),
            ("\"a", 2),
            ("\"\n\"", 1),
            ("\"\\x\"", 1),
            ("\"\\u12\"", 6),
            ("{} {}", 3),
            ("[}", 1),
            ("+1", 0),
        ] {
            assert_eq!(skip_all(text).unwrap_err().offset, offset, "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_at_max_depth() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(skip_all(&nested(MAX_DEPTH)).is_ok());
        let error = skip_all(&nested(MAX_DEPTH + 1)).unwrap_err();
        assert_eq!(error, LexError { problem: LexProblem::TooDeep, offset: MAX_DEPTH });
        assert_eq!(skip_all(&nested(100_000)).unwrap_err().problem, LexProblem::TooDeep);
        let objects = "{\"a\":".repeat(MAX_DEPTH + 1);
        assert_eq!(skip_all(&objects).unwrap_err().problem, LexProblem::TooDeep);
    }

    #[test]
    fn escapes_decode_and_a_lone_surrogate_becomes_the_replacement_character() {
        let decode = |text: &str| Cursor::new(text).string().map(Cow::into_owned);
        assert_eq!(decode(r#""a\"\\\/\b\f\n\r\t\u0041z""#).unwrap(), "a\"\\/\u{8}\u{c}\n\r\tAz");
        assert_eq!(decode(r#""\ud83d\ude00""#).unwrap(), "😀");
        assert_eq!(decode(r#""a\ud83d""#).unwrap(), "a\u{fffd}");
        assert_eq!(decode(r#""\ude00b""#).unwrap(), "\u{fffd}b");
        assert_eq!(decode(r#""\ud83d\u0041""#).unwrap(), "\u{fffd}A");
        assert_eq!(decode(r#""\ud83d\ud83d\ude00""#).unwrap(), "\u{fffd}😀");
        assert!(decode(r#""\u00g0""#).is_err());
    }

    #[test]
    fn a_string_is_read_only_where_it_is_the_whole_text() {
        assert_eq!(read_string(r#""a b""#), Some(Cow::Borrowed("a b")));
        assert_eq!(read_string(r#""a\nb\ud83d""#).unwrap(), "a\nb\u{fffd}");
        for text in ["", "1", r#""a"#, r#""a" 1"#, r#""a""b""#, r#""\q""#, "\"\n\""] {
            assert_eq!(read_string(text), None, "{text}");
        }
    }
}
