//! What a JSON text is made of, each resumable between any two characters.

use agui_types::json::Value;

use super::PartialErrorKind;

/// A string, behind its opening quote.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Text {
    escape: Escape,
    /// The first half of a surrogate pair, until the other comes or does not.
    high: Option<u16>,
    /// Where, in the text as a whole, what is held back begins: an escape, or the half of a pair.
    held_from: usize,
}

#[derive(Clone, Copy, Debug, Default)]
enum Escape {
    #[default]
    None,
    /// Behind a backslash.
    Letter,
    /// Behind `\u` and some digits, which come to `unit`.
    Hex { digits: u8, unit: u16 },
}

impl Text {
    /// How much of the whole text shows; `None`: all of it.
    pub(super) fn shown_to(self) -> Option<usize> {
        let held = self.high.is_some() || !matches!(self.escape, Escape::None);
        held.then_some(self.held_from)
    }

    /// Reads a piece from `at` on and appends what it says to `out`; `true` behind the closing
    /// quote, `false` at the end of the piece. `start`: where the piece begins in the whole text.
    pub(super) fn read(
        &mut self,
        delta: &str,
        at: &mut usize,
        start: usize,
        out: &mut String,
    ) -> Result<bool, PartialErrorKind> {
        while let Some(&byte) = delta.as_bytes().get(*at) {
            match self.escape {
                Escape::None => match byte {
                    b'"' => {
                        self.give_up_pair(out);
                        *at += 1;
                        return Ok(true);
                    }
                    b'\\' => {
                        if self.high.is_none() {
                            self.held_from = start + *at;
                        }
                        self.escape = Escape::Letter;
                    }
                    0..0x20 => {
                        return Err(PartialErrorKind::Expected(
                            "no raw control character in a string",
                        ));
                    }
                    _ => {
                        self.give_up_pair(out);
                        let plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
                        let rest = &delta.as_bytes()[*at..];
                        let length = rest.iter().position(|byte| !plain(byte));
                        let end = *at + length.unwrap_or(rest.len());
                        out.push_str(&delta[*at..end]);
                        *at = end;
                        continue;
                    }
                },
                Escape::Letter if byte == b'u' => {
                    self.escape = Escape::Hex { digits: 0, unit: 0 };
                }
                Escape::Letter => {
                    let character = match byte {
                        b'"' | b'\\' | b'/' => char::from(byte),
                        b'b' => '\u{8}',
                        b'f' => '\u{c}',
                        b'n' => '\n',
                        b'r' => '\r',
                        b't' => '\t',
                        _ => return Err(PartialErrorKind::Expected("a valid escape")),
                    };
                    self.give_up_pair(out);
                    out.push(character);
                    self.escape = Escape::None;
                }
                Escape::Hex { digits, unit } => {
                    let Some(digit) = char::from(byte).to_digit(16) else {
                        return Err(PartialErrorKind::Expected("four hexadecimal digits"));
                    };
                    // A digit fits, and four of them fit the unit.
                    let unit = unit << 4 | digit as u16;
                    if digits == 3 {
                        self.unit(unit, start + *at, out);
                        self.escape = Escape::None;
                    } else {
                        let digits = digits + 1;
                        self.escape = Escape::Hex { digits, unit };
                    }
                }
            }
            *at += 1;
        }
        Ok(false)
    }

    /// Takes an escaped UTF-16 unit, whose last digit is at `offset`.
    fn unit(&mut self, unit: u16, offset: usize, out: &mut String) {
        const ESCAPE: usize = r"\u0000".len();
        if let (Some(high), 0xdc00..0xe000) = (self.high, unit) {
            out.extend(char::decode_utf16([high, unit]).flatten());
            self.high = None;
            return;
        }
        self.give_up_pair(out);
        if (0xd800..0xdc00).contains(&unit) {
            self.high = Some(unit);
            self.held_from = offset + 1 - ESCAPE;
        } else {
            out.push(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    /// The other half of a pair did not come.
    fn give_up_pair(&mut self, out: &mut String) {
        if self.high.take().is_some() {
            out.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

/// The part of a number that was read last.
#[derive(Clone, Copy, Debug)]
pub(super) enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigit,
}

impl Digits {
    /// A number's first byte: a minus or a digit.
    pub(super) fn first(byte: u8) -> Self {
        match byte {
            b'-' => Self::Minus,
            b'0' => Self::Zero,
            _ => Self::Whole,
        }
    }

    /// The number with one byte more; `None` where the byte is no part of it.
    pub(super) fn next(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Minus, b'0') => Self::Zero,
            (Self::Minus, b'1'..=b'9') | (Self::Whole, b'0'..=b'9') => Self::Whole,
            (Self::Zero | Self::Whole, b'.') => Self::Point,
            (Self::Point | Self::Fraction, b'0'..=b'9') => Self::Fraction,
            (Self::Zero | Self::Whole | Self::Fraction, b'e' | b'E') => Self::Exponent,
            (Self::Exponent, b'+' | b'-') => Self::ExponentSign,
            (Self::Exponent | Self::ExponentSign | Self::ExponentDigit, b'0'..=b'9') => {
                Self::ExponentDigit
            }
            _ => return None,
        })
    }

    /// What makes it a whole number: a digit where one has to follow.
    pub(super) fn missing(self) -> &'static str {
        match self {
            Self::Minus | Self::Point | Self::Exponent | Self::ExponentSign => "0",
            Self::Zero | Self::Whole | Self::Fraction | Self::ExponentDigit => "",
        }
    }
}

/// `true`, `false` or `null`, read in part.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    word: &'static str,
    rest: &'static str,
    read: usize,
}

impl Word {
    /// The word with this first letter, and what it says.
    pub(super) fn first(letter: u8) -> (Self, Value) {
        let (word, rest, value) = match letter {
            b't' => ("true", "the rest of 'true'", Value::Bool(true)),
            b'f' => ("false", "the rest of 'false'", Value::Bool(false)),
            _ => ("null", "the rest of 'null'", Value::Null),
        };
        (Self { word, rest, read: 1 }, value)
    }

    /// Takes the next byte; `true` where the word is whole with it.
    pub(super) fn next(&mut self, byte: u8) -> Result<bool, PartialErrorKind> {
        if self.missing().as_bytes().first() != Some(&byte) {
            return Err(PartialErrorKind::Expected(self.rest));
        }
        self.read += 1;
        Ok(self.missing().is_empty())
    }

    /// What is missing of it.
    pub(super) fn missing(self) -> &'static str {
        &self.word[self.read..]
    }
}
