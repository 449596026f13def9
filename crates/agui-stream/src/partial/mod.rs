//! JSON that is still arriving: the arguments of a tool call, readable after every piece.

mod error;
mod lex;
#[cfg(test)]
mod tests;
mod tree;

use agui_types::json::{MAX_DEPTH, Value};
use indexmap::IndexMap;

pub use error::{PartialError, PartialErrorKind};
use lex::{Digits, Text, Word};
use tree::Tree;

/// Reads a JSON text that comes in pieces, such as the deltas of a tool call's arguments, and holds
/// the value so far.
///
/// A piece costs what it is long, and one step for each level that is open; what came before is not
/// looked at again. Reading the [`value`](Self::value) costs nothing. Holds the text and its tree.
///
/// What is shown of a text that stops in the middle:
///
/// | the text stops | shown | example |
/// | --- | --- | --- |
/// | before a value began | nothing | `{"a": 1, ` is `{"a": 1}` |
/// | in or behind a member name | nothing of that member | `{"a": 1, "b":` is `{"a": 1}` |
/// | in a string | what is there | `["Hel` is `["Hel"]` |
/// | in an escape | the string before it | `"a\u00e` is `"a"` |
/// | behind the first half of a surrogate pair | the string before it | `"a\ud83d` is `"a"` |
/// | in `true`, `false`, `null` | the whole word | `[t` is `[true]` |
/// | in a number | what is there, with a `0` where a digit must follow | `-` is `-0`, `1.` is `1.0`, `2e+` is `2e+0` |
/// | in an object or array | what is there, closed | `{"a": [1` is `{"a": [1]}` |
///
/// A repeated member name takes the place of the earlier one as soon as its value begins. A lone
/// surrogate reads as U+FFFD, which shows once it is known to be alone. Objects and arrays nest at
/// most [`MAX_DEPTH`] deep, a number has at most [`MAX_NUMBER`](Self::MAX_NUMBER) bytes.
///
/// Whether arguments are JSON at all is no affair of the protocol (C-51), and they are not to be
/// acted on before the call ended (C-50): this is for showing them.
///
/// ```
/// use agui_stream::partial::{PartialJson, PartialState};
///
/// let mut arguments = PartialJson::new();
/// arguments.push(r#"{"city": "Ber"#);
/// assert_eq!(arguments.repaired(), r#"{"city": "Ber"}"#);
/// arguments.push(r#"lin", "days": 3}"#);
/// assert_eq!(arguments.state(), PartialState::Complete);
/// let city = arguments.value().and_then(|value| value.get("city"));
/// assert_eq!(city.unwrap().to_string(), r#""Berlin""#);
/// ```
#[derive(Clone, Debug, Default)]
pub struct PartialJson {
    /// What was read, as far as it is JSON.
    text: String,
    tree: Tree,
    step: Step,
    /// How much of the text to keep where the member or element begun last is not to be shown.
    keep: usize,
    /// The member name being read, or of the value that comes next.
    name: String,
    /// The number being read.
    number: String,
    error: Option<PartialError>,
}

/// How far a text has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialState {
    /// Something is missing; an empty text is incomplete too.
    Incomplete,
    /// The text is one JSON value. White space may follow, and digits where the value is a number.
    Complete,
    /// The text cannot become JSON, whatever follows. What was read before still shows.
    Invalid(PartialError),
}

/// What is being read, in the innermost open level.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A value has to come; `or_end`: or the end of the array just opened.
    Value {
        or_end: bool,
    },
    /// A member name has to come; `or_end`: or the end of the object just opened.
    Name {
        or_end: bool,
    },
    InName(Text),
    Colon,
    InString(Text),
    InNumber(Digits),
    InWord(Word),
    /// A value ended: a comma or the end of the level has to come, or outside all levels nothing.
    Behind,
}

impl Default for Step {
    fn default() -> Self {
        Self::Value { or_end: false }
    }
}

impl PartialJson {
    /// How many bytes a number may have; one more makes the text invalid. The number being read is
    /// shown anew with every piece, so without a limit an endless one would cost more and more.
    pub const MAX_NUMBER: usize = 1024;

    /// A reader of a text of which nothing has come.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece of the text. Pieces may end anywhere between two characters.
    ///
    /// Nothing more is taken once the text is [invalid](PartialState::Invalid).
    pub fn push(&mut self, delta: &str) {
        if self.error.is_some() {
            return;
        }
        self.tree.lift();
        let mut at = 0;
        let problem = self.read(delta, &mut at).err();
        if let Step::InNumber(digits) = self.step {
            self.show_number(digits);
        }
        self.tree.settle();
        self.text.push_str(&delta[..at]);
        self.error = problem.map(|kind| PartialError::new(kind, self.text.len()));
    }

    /// The value so far; `None` while none has begun.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.tree.root()
    }

    /// The value so far, given away; `None` where none has begun.
    #[must_use]
    pub fn into_value(self) -> Option<Value> {
        self.tree.into_root()
    }

    /// The text so far, made whole: it reads as [`value`](Self::value), and is empty while no value
    /// has begun. Takes the length of the text.
    #[must_use]
    pub fn repaired(&self) -> String {
        if self.value().is_none() {
            return String::new();
        }
        let (keep, rest) = match self.step {
            Step::Value { or_end: false }
            | Step::Name { or_end: false }
            | Step::InName(_)
            | Step::Colon => (self.keep, ""),
            Step::InString(text) => (text.shown_to().unwrap_or(self.text.len()), "\""),
            Step::InNumber(digits) => (self.text.len(), digits.missing()),
            Step::InWord(word) => (self.text.len(), word.missing()),
            Step::Value { or_end: true } | Step::Name { or_end: true } | Step::Behind => {
                (self.text.len(), "")
            }
        };
        let mut repaired = format!("{}{rest}", &self.text[..keep]);
        repaired.extend(self.tree.closers().iter().rev());
        repaired
    }

    /// How far the text has come.
    #[must_use]
    pub fn state(&self) -> PartialState {
        if let Some(error) = self.error {
            return PartialState::Invalid(error);
        }
        let ended = match self.step {
            Step::Behind => true,
            Step::InNumber(digits) => digits.missing().is_empty(),
            _ => false,
        };
        if ended && self.tree.depth() == 0 {
            PartialState::Complete
        } else {
            PartialState::Incomplete
        }
    }

    /// Reads a piece from `at` on, and leaves `at` behind what is JSON in it.
    fn read(&mut self, delta: &str, at: &mut usize) -> Result<(), PartialErrorKind> {
        while let Some(&byte) = delta.as_bytes().get(*at) {
            // What runs over many bytes takes them as one.
            match &mut self.step {
                Step::InName(text) => {
                    if text.read(delta, at, self.text.len(), &mut self.name)? {
                        self.step = Step::Colon;
                    }
                    continue;
                }
                Step::InString(text) => {
                    let ended = match self.tree.current() {
                        Some(Value::String(shown)) => {
                            text.read(delta, at, self.text.len(), shown)?
                        }
                        _ => true,
                    };
                    if ended {
                        self.step = Step::Behind;
                    }
                    continue;
                }
                Step::InNumber(digits) => {
                    if let Some(next) = digits.next(byte) {
                        if self.number.len() == Self::MAX_NUMBER {
                            return Err(PartialErrorKind::NumberTooLong);
                        }
                        *digits = next;
                        self.number.push(char::from(byte));
                        *at += 1;
                    } else if digits.missing().is_empty() {
                        let digits = *digits;
                        self.show_number(digits);
                        self.step = Step::Behind;
                    } else {
                        return Err(PartialErrorKind::Expected("a digit"));
                    }
                    continue;
                }
                Step::InWord(word) => {
                    if word.next(byte)? {
                        self.step = Step::Behind;
                    }
                    *at += 1;
                    continue;
                }
                _ => {}
            }
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                self.token(byte, self.text.len() + *at)?;
            }
            *at += 1;
        }
        Ok(())
    }

    /// Takes a byte between names, strings, numbers and words. `offset`: where it is in the text.
    fn token(&mut self, byte: u8, offset: usize) -> Result<(), PartialErrorKind> {
        match (self.step, byte) {
            (Step::Value { or_end: true }, b']') | (Step::Name { or_end: true }, b'}') => {
                self.close();
                Ok(())
            }
            (Step::Value { .. }, _) => self.begin(byte),
            (Step::Name { or_end }, b'"') => {
                if or_end {
                    self.keep = offset;
                }
                self.name.clear();
                self.step = Step::InName(Text::default());
                Ok(())
            }
            (Step::Name { .. }, _) => Err(PartialErrorKind::Expected("a member name in quotes")),
            (Step::Colon, b':') => {
                self.step = Step::Value { or_end: false };
                Ok(())
            }
            (Step::Colon, _) => Err(PartialErrorKind::Expected("a colon after the member name")),
            _ => self.behind(byte, offset),
        }
    }

    /// Begins a value.
    fn begin(&mut self, byte: u8) -> Result<(), PartialErrorKind> {
        let name = &mut self.name;
        match byte {
            b'{' | b'[' if self.tree.depth() == MAX_DEPTH => return Err(PartialErrorKind::TooDeep),
            b'{' => {
                self.tree.open(name, Value::Object(IndexMap::new()));
                self.step = Step::Name { or_end: true };
            }
            b'[' => {
                self.tree.open(name, Value::Array(Vec::new()));
                self.step = Step::Value { or_end: true };
            }
            b'"' => {
                self.tree.put(name, Value::String(String::new()));
                self.step = Step::InString(Text::default());
            }
            b'-' | b'0'..=b'9' => {
                self.tree.put(name, Value::Null);
                self.number.clear();
                self.number.push(char::from(byte));
                self.step = Step::InNumber(Digits::first(byte));
            }
            b't' | b'f' | b'n' => {
                let (word, value) = Word::first(byte);
                self.tree.put(name, value);
                self.step = Step::InWord(word);
            }
            _ => return Err(PartialErrorKind::Expected("a JSON value")),
        }
        Ok(())
    }

    /// Behind a value: goes on in the level, or ends it.
    fn behind(&mut self, byte: u8, offset: usize) -> Result<(), PartialErrorKind> {
        let (object, end, expected) = match self.tree.level() {
            Some(Value::Object(_)) => (true, b'}', "a comma or the end of the object"),
            Some(_) => (false, b']', "a comma or the end of the array"),
            None => return Err(PartialErrorKind::Expected("the end of the JSON text")),
        };
        if byte == end {
            self.close();
        } else if byte == b',' {
            self.keep = offset;
            self.step =
                if object { Step::Name { or_end: false } } else { Step::Value { or_end: false } };
        } else {
            return Err(PartialErrorKind::Expected(expected));
        }
        Ok(())
    }

    fn close(&mut self) {
        self.tree.close();
        self.step = Step::Behind;
    }

    /// Shows the number being read as it is now.
    fn show_number(&mut self, digits: Digits) {
        let length = self.number.len();
        self.number.push_str(digits.missing());
        if let (Some(shown), Ok(number)) = (self.tree.current(), Value::parse(&self.number)) {
            *shown = number;
        }
        self.number.truncate(length);
    }
}
