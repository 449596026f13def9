//! JSON that is still arriving: the arguments of a tool call, readable after every piece.

mod error;
mod lex;
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
            self.step = if object {
                Step::Name { or_end: false }
            } else {
                Step::Value { or_end: false }
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows a text and each of its beginnings, and checks what holds for all of them.
    fn read(text: &str) -> PartialJson {
        let mut partial = PartialJson::new();
        partial.push(text);
        let repaired = partial.repaired();
        match partial.value() {
            Some(value) => assert_eq!(
                Value::parse(&repaired).unwrap().to_string(),
                value.to_string(),
                "{text}"
            ),
            None => assert_eq!(repaired, "", "{text}"),
        }
        partial
    }

    #[test]
    fn a_text_that_stops_in_the_middle_is_made_whole() {
        // What the reference shows (npm untruncate-json 0.0.1), in its very text.
        for (text, repaired) in [
            ("{", "{}"),
            ("{ ", "{ }"),
            (r#"{ ""#, "{ }"),
            (r#"{"a"#, "{}"),
            (r#"{"a""#, "{}"),
            (r#"{"a":"#, "{}"),
            (r#"{ "a" : "#, "{ }"),
            (r#"{"a": 1"#, r#"{"a": 1}"#),
            (r#"{ "a" : 1 "#, r#"{ "a" : 1 }"#),
            (r#"{ "a" : 1 , "#, r#"{ "a" : 1 }"#),
            (r#"{ "a" : 1 , "b" : "#, r#"{ "a" : 1 }"#),
            (r#"{"a": 1, "b": [t"#, r#"{"a": 1, "b": [true]}"#),
            (r#"{"a": 1, "b": [true, "#, r#"{"a": 1, "b": [true]}"#),
            (r#"{"a": 1, "b": [true, ""#, r#"{"a": 1, "b": [true, ""]}"#),
            (r#"{"k": {"d": fal"#, r#"{"k": {"d": false}}"#),
            (r#"{"k": {"d": 1}, "#, r#"{"k": {"d": 1}}"#),
            ("[", "[]"),
            ("[ ", "[ ]"),
            ("[1, 2 , [ ", "[1, 2 , [ ]]"),
            ("[1, 2 , [ ] ,", "[1, 2 , [ ] ]"),
            ("[nu", "[null]"),
            ("-", "-0"),
            ("-0.", "-0.0"),
            ("[1e", "[1e0]"),
            ("[1E+", "[1E+0]"),
            ("[1E+5", "[1E+5]"),
            (r#""\"#, r#""""#),
            (r#""x\u00e"#, r#""x""#),
            (r#""x\u00e9"#, r#""x\u00e9""#),
            (r#"{"":{"":["#, r#"{"":{"":[]}}"#),
            (r#"{"a":1,"a":{"#, r#"{"a":1,"a":{}}"#),
            (" {} ", " {} "),
        ] {
            assert_eq!(read(text).repaired(), repaired, "{text}");
        }
    }

    #[test]
    fn where_the_reference_gives_no_json_we_do() {
        for (text, repaired) in [
            // Escapes behind an escaped character.
            (r#""\u00e9\"#, r#""\u00e9""#),
            (r#""\ud83d\ude0"#, r#""""#),
            // Nothing began.
            ("", ""),
            (" \n", ""),
            // What cannot become JSON is not shown.
            ("[1}", "[1]"),
            (r#"{"a":1}}"#, r#"{"a":1}"#),
            ("{,", "{}"),
            ("[01", "[0]"),
            ("x", ""),
        ] {
            assert_eq!(read(text).repaired(), repaired, "{text}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_waits_for_the_other() {
        for (text, shown) in [
            (r#""a\ud83d"#, "a"),
            (r#""a\ud83d\ude0"#, "a"),
            (r#""a\ud83d\ude00"#, "a😀"),
            (r#""a\ud83dx"#, "a\u{fffd}x"),
            (r#""a\ud83d""#, "a\u{fffd}"),
            (r#""a\ud83d\n"#, "a\u{fffd}\n"),
            (r#""a\ud83d\ud83d"#, "a\u{fffd}"),
            (r#""a\ud83d\ud83d\ude00"#, "a\u{fffd}😀"),
            (r#""a\ude00"#, "a\u{fffd}"),
        ] {
            match read(text).value() {
                Some(Value::String(found)) => assert_eq!(found, shown, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_repeated_member_shows_from_its_values_beginning() {
        assert_eq!(
            read(r#"{"a":[1],"b":2,"a""#).value().unwrap().to_string(),
            r#"{"a":[1],"b":2}"#
        );
        assert_eq!(
            read(r#"{"a":[1],"b":2,"a":{"c":{"d":"#)
                .value()
                .unwrap()
                .to_string(),
            r#"{"a":{"c":{}},"b":2}"#
        );
    }

    #[test]
    fn a_text_is_complete_where_it_is_one_value() {
        for text in ["{}", " [1] ", "12", "-0.5e3", "true", r#""""#, "null "] {
            assert_eq!(read(text).state(), PartialState::Complete, "{text}");
        }
        for text in [
            "", " ", "{", "[1", "-", "1.", "1e", "tru", r#"""#, r#"{"a""#,
        ] {
            assert_eq!(read(text).state(), PartialState::Incomplete, "{text}");
        }
    }

    #[test]
    fn invalid_text_is_told_at_the_byte() {
        let expected = PartialErrorKind::Expected;
        for (text, offset, kind) in [
            ("x", 0, expected("a JSON value")),
            ("  ]", 2, expected("a JSON value")),
            ("trux", 3, expected("the rest of 'true'")),
            ("[nil", 2, expected("the rest of 'null'")),
            ("[1}", 2, expected("a comma or the end of the array")),
            ("[1,]", 3, expected("a JSON value")),
            ("[01", 2, expected("a comma or the end of the array")),
            ("-x", 1, expected("a digit")),
            ("1.e", 2, expected("a digit")),
            ("{,", 1, expected("a member name in quotes")),
            (r#"{"a":1,}"#, 7, expected("a member name in quotes")),
            (r#"{"a" x"#, 5, expected("a colon after the member name")),
            (
                r#"{"é":1]"#,
                7,
                expected("a comma or the end of the object"),
            ),
            (r#""\x"#, 2, expected("a valid escape")),
            (r#""\u00g"#, 5, expected("four hexadecimal digits")),
            (
                "\"a\nb",
                2,
                expected("no raw control character in a string"),
            ),
            ("{} 1", 3, expected("the end of the JSON text")),
            ("12 3", 3, expected("the end of the JSON text")),
        ] {
            let PartialState::Invalid(error) = read(text).state() else {
                panic!("{text} is not invalid")
            };
            assert_eq!((error.offset(), error.kind()), (offset, kind), "{text}");
            assert!(Value::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_is_taken_behind_invalid_text() {
        let mut partial = read("[1,x");
        let state = partial.state();
        partial.push("2]");
        assert_eq!(partial.state(), state);
        assert_eq!(partial.repaired(), "[1]");
        let PartialState::Invalid(error) = state else {
            panic!("{state:?}")
        };
        assert_eq!(error.to_string(), "expected a JSON value at byte 3");
    }

    #[test]
    fn levels_are_bounded() {
        for open in ["[", r#"{"a":"#] {
            let fits = open.repeat(MAX_DEPTH);
            let partial = read(&fits);
            assert_eq!(partial.state(), PartialState::Incomplete);
            let mut deeper = partial;
            deeper.push("[");
            let PartialState::Invalid(error) = deeper.state() else {
                panic!("{open} has no bound")
            };
            assert_eq!(error.kind(), PartialErrorKind::TooDeep);
            assert_eq!(error.offset(), fits.len());
        }
    }

    #[test]
    fn numbers_are_bounded() {
        let fits = "7".repeat(PartialJson::MAX_NUMBER);
        let mut partial = read(&fits);
        assert_eq!(partial.state(), PartialState::Complete);
        partial.push("7");
        let PartialState::Invalid(error) = partial.state() else {
            panic!("a number has no bound")
        };
        assert_eq!(error.kind(), PartialErrorKind::NumberTooLong);
        assert_eq!(error.offset(), fits.len());
        assert_eq!(partial.repaired(), fits);
        assert!(matches!(
            read(&format!("[{fits},{fits}]")).state(),
            PartialState::Complete
        ));
    }
}
