//! JSON from outside read as the types of an application, and what is wrong in the words of JSON: who
//! sent it knows nothing of Rust.

use agui_types::json::Token;
use agui_types::{Json, JsonPointer};
use serde::de::DeserializeOwned;

/// Where a value is not what it should be, and what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// The place in the value, as a JSON Pointer; empty for the whole of it.
    pub(crate) path: String,
    pub(crate) problem: String,
}

/// Reads a value as a type.
pub(crate) fn read<T: DeserializeOwned>(json: &Json) -> Result<T, Misfit> {
    json.decode().map_err(|error| Misfit {
        path: place(json, offset(json.as_str(), error.line(), error.column())),
        problem: in_words_of_json(&error.to_string()),
    })
}

impl std::fmt::Display for Misfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Misfit {}

/// How many bytes of the text were read at this line and column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    before.map(str::len).sum::<usize>() + column
}

/// The innermost value that is being read once so many bytes are.
fn place(json: &Json, offset: usize) -> String {
    let mut within: Vec<Step> = Vec::new();
    let mut tokens = json.tokens();
    while tokens.offset() < offset {
        let Some(token) = tokens.next() else { break };
        let closes = matches!(token, Token::CloseArray | Token::CloseObject);
        if let (Some(Step::Element(at)), false) = (within.last_mut(), closes) {
            *at = at.map_or(Some(0), |at| Some(at + 1));
        }
        match token {
            // Where it is what should not be there, it was looked at and not read.
            Token::OpenObject | Token::OpenArray if tokens.offset() > offset => break,
            Token::OpenObject => within.push(Step::Member(None)),
            Token::OpenArray => within.push(Step::Element(None)),
            Token::CloseObject | Token::CloseArray => drop(within.pop()),
            Token::Key(name) => {
                if let Some(Step::Member(member)) = within.last_mut() {
                    *member = Some(name.into_owned());
                }
            }
            _ => {}
        }
    }
    let steps = within.into_iter().map_while(|step| match step {
        Step::Member(name) => name,
        Step::Element(at) => Some(at.unwrap_or_default().to_string()),
    });
    steps.collect::<JsonPointer>().as_str().to_owned()
}

/// Where in a container something is.
enum Step {
    Member(Option<String>),
    Element(Option<usize>),
}

/// What `serde` says, as somebody says it who has JSON before them.
fn in_words_of_json(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(message, _)| message);
    let quoted = |text: &str| text.replace('`', "\"");
    if let Some(rest) = message.strip_prefix("missing field ") {
        return format!("the member {} is missing", quoted(rest));
    }
    if let Some(rest) = message.strip_prefix("duplicate field ") {
        return format!("the member {} comes twice", quoted(rest));
    }
    for kind in ["unknown field ", "unknown variant "] {
        let Some(rest) = message.strip_prefix(kind) else { continue };
        let (found, expected) = rest.split_once(", ").unwrap_or((rest, ""));
        let expected = expected.strip_prefix("expected ").map_or("none".into(), quoted);
        let what = if kind == "unknown field " { "the member " } else { "" };
        return format!("expected {expected}, found {what}{}", quoted(found));
    }
    if message.starts_with("data did not match any variant") {
        return "expected a value of another shape".into();
    }
    for kind in ["invalid type: ", "invalid value: ", "invalid length "] {
        let Some(rest) = message.strip_prefix(kind) else { continue };
        let Some((found, expected)) = rest.rsplit_once(", expected ") else { continue };
        let found = if kind == "invalid length " { found.to_owned() } else { kind_of(found) };
        return format!("expected {}, found {found}", expectation(expected));
    }
    // Said by the application itself.
    message.to_owned()
}

/// What was found: its kind, and the value where it is short.
fn kind_of(found: &str) -> String {
    let (kind, value) = found.split_once(' ').unwrap_or((found, ""));
    match kind {
        "string" => "a string".into(),
        "map" => "an object".into(),
        "sequence" => "an array".into(),
        "unit" | "null" | "Option" => "null".into(),
        "boolean" | "integer" => value.trim_matches('`').to_owned(),
        "floating" => value.trim_start_matches("point ").trim_matches('`').to_owned(),
        _ => "something else".into(),
    }
}

/// What was expected, as JSON has it.
fn expectation(expected: &str) -> String {
    let integer = |least: &str, most: String| format!("an integer from {least} to {most}");
    let (first, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let number = || {
        let mut digits = expected.split(' ').filter(|word| word.parse::<usize>().is_ok());
        digits.next_back().map(|count| format!("an array of length {count}"))
    };
    match expected {
        "u8" => return integer("0", u8::MAX.to_string()),
        "u16" => return integer("0", u16::MAX.to_string()),
        "u32" => return integer("0", u32::MAX.to_string()),
        "i8" => return integer("-128", i8::MAX.to_string()),
        "i16" => return integer("-32768", i16::MAX.to_string()),
        "i32" => return integer("-2147483648", i32::MAX.to_string()),
        "u64" | "usize" | "u128" => return "an integer that is not negative".into(),
        "i64" | "isize" | "i128" => return "an integer".into(),
        "f32" | "f64" => return "a number".into(),
        "a character" | "char" => return "a string of one character".into(),
        "string" | "a borrowed string" | "str" => return "a string".into(),
        "a sequence" | "sequence" => return "an array".into(),
        "a map" | "map" => return "an object".into(),
        "unit" | "null" => return "null".into(),
        "option" => return "a value or null".into(),
        _ => {}
    }
    match (first, rest.split(' ').next().unwrap_or_default()) {
        ("tuple", _) | ("a", "tuple") | ("an", "array") => {
            number().unwrap_or_else(|| "an array".into())
        }
        ("struct", _) => number().unwrap_or_else(|| "an object".into()),
        ("unit", _) => "null".into(),
        ("enum" | "variant" | "newtype", _) => "a value of another shape".into(),
        ("internally" | "adjacently", _) => "an object".into(),
        // Said by the application itself, or fine as it is.
        _ => expected.replace('`', "\""),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        approved: bool,
        #[serde(default)]
        size: Option<u8>,
        #[serde(default)]
        pair: Option<(f64, i32)>,
        #[serde(default)]
        color: Option<Color>,
        #[serde(default)]
        unit: Option<Unit>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Color {
        Red,
        Mixed { parts: Vec<u64> },
    }

    #[derive(Debug, Deserialize)]
    struct Unit;

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[allow(dead_code)]
    enum Either {
        Number(i64),
        Text { text: String },
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind")]
    #[allow(dead_code)]
    enum Tagged {
        One { n: u16 },
    }

    fn misfit<T: DeserializeOwned + Debug>(text: &str) -> String {
        let found = read::<T>(&Json::parse(text).unwrap()).unwrap_err().to_string();
        // None of it is Rust's.
        let rust = ["Inner", "Color", "Unit", "Either", "Tagged", "struct", "enum", "variant"];
        let rust = rust.into_iter().chain(["`", "u8", "u64", "f64", "i32", "at line", "::"]);
        assert!(!rust.into_iter().any(|word| found.contains(word)), "{found}");
        found
    }

    #[test]
    fn a_misfit_is_named_with_its_place() {
        for (text, said) in [
            (r#"{"approved":"yes"}"#, "/approved: expected a boolean, found a string"),
            ("{ \"approved\" :\n  {\"a\":[1]} }", "/approved: expected a boolean, found an object"),
            (r#"{"approved":null}"#, "/approved: expected a boolean, found null"),
            (r#"{"approved":[]}"#, "/approved: expected a boolean, found an array"),
            (r#"{"approved":1.5}"#, "/approved: expected a boolean, found 1.5"),
            ("{}", "the member \"approved\" is missing"),
            ("7", "expected an object, found 7"),
            ("null", "expected an object, found null"),
            (
                r#"{"approved":true,"approved":true}"#,
                "/approved: the member \"approved\" comes twice",
            ),
            (
                r#"{"approved":true,"size":300}"#,
                "/size: expected an integer from 0 to 255, found 300",
            ),
            (
                r#"{"approved":true,"pair":[1,"x"]}"#,
                "/pair/1: expected an integer from -2147483648 to 2147483647, found a string",
            ),
            (r#"{"approved":true,"pair":[1]}"#, "/pair: expected an array of length 2, found 1"),
            (
                r#"{"approved":true,"color":{"mixed":{}}}"#,
                "/color/mixed: the member \"parts\" is missing",
            ),
            (
                r#"{"approved":true,"color":{"mixed":{"parts":[1,2,-3]}}}"#,
                "/color/mixed/parts/2: expected an integer that is not negative, found -3",
            ),
            (
                r#"{"approved":true,"color":"blue"}"#,
                "/color: expected \"red\" or \"mixed\", found \"blue\"",
            ),
            (r#"{"approved":true,"unit":1}"#, "/unit: expected null, found 1"),
        ] {
            assert_eq!(misfit::<Inner>(text), said, "{text}");
        }
        let unknown = misfit::<Inner>(r#"{"approved":true,"more":1}"#);
        assert!(unknown.starts_with("/more: expected one of \"approved\""), "{unknown}");
        let nested = misfit::<Vec<BTreeMap<String, Inner>>>(
            r#"[{}, {"a/b": {"approved": true}, "~": {"approved": 0}}]"#,
        );
        assert_eq!(nested, "/1/~0/approved: expected a boolean, found 0");
        for (text, place) in
            [("[{}]", "/0"), ("[ {}]", "/0"), ("[true,{}]", "/1"), ("[1 , [ ]]", "/0")]
        {
            let found = misfit::<Vec<bool>>(text);
            assert!(found.starts_with(&format!("{place}: expected a boolean, found ")), "{found}");
        }
        assert_eq!(misfit::<Either>("[]"), "expected a value of another shape");
        let tagged = misfit::<Vec<Tagged>>(r#"[{"kind":"One","n":1},{"kind":"One","n":"x"}]"#);
        // What is looked at as a whole before it is read is named as a whole.
        assert_eq!(tagged, "expected an integer from 0 to 65535, found a string");
        assert_eq!(misfit::<Tagged>("{}"), "the member \"kind\" is missing");
    }
}
