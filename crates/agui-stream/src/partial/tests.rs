use agui_types::json::{MAX_DEPTH, Value};

use super::{PartialErrorKind, PartialJson, PartialState};

/// Reads a text, and checks that what is shown and its repaired text agree.
fn read(text: &str) -> PartialJson {
    let mut partial = PartialJson::new();
    partial.push(text);
    let repaired = partial.repaired();
    match partial.value() {
        Some(value) => {
            assert_eq!(Value::parse(&repaired).unwrap().to_string(), value.to_string(), "{text}");
        }
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
    assert_eq!(read(r#"{"a":[1],"b":2,"a""#).value().unwrap().to_string(), r#"{"a":[1],"b":2}"#);
    assert_eq!(
        read(r#"{"a":[1],"b":2,"a":{"c":{"d":"#).value().unwrap().to_string(),
        r#"{"a":{"c":{}},"b":2}"#
    );
}

#[test]
fn a_text_is_complete_where_it_is_one_value() {
    for text in ["{}", " [1] ", "12", "-0.5e3", "true", r#""""#, "null "] {
        assert_eq!(read(text).state(), PartialState::Complete, "{text}");
    }
    for text in ["", " ", "{", "[1", "-", "1.", "1e", "tru", r#"""#, r#"{"a""#] {
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
        (r#"{"é":1]"#, 7, expected("a comma or the end of the object")),
        (r#""\x"#, 2, expected("a valid escape")),
        (r#""\u00g"#, 5, expected("four hexadecimal digits")),
        ("\"a\nb", 2, expected("no raw control character in a string")),
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
    let PartialState::Invalid(error) = state else { panic!("{state:?}") };
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
        let PartialState::Invalid(error) = deeper.state() else { panic!("{open} has no bound") };
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
    let PartialState::Invalid(error) = partial.state() else { panic!("a number has no bound") };
    assert_eq!(error.kind(), PartialErrorKind::NumberTooLong);
    assert_eq!(error.offset(), fits.len());
    assert_eq!(partial.repaired(), fits);
    assert!(matches!(read(&format!("[{fits},{fits}]")).state(), PartialState::Complete));
}
