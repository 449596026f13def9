//! What a JSON Patch does, operation by operation, and what it costs.

use std::borrow::Borrow;

use agui_stream::patch::{self, Document, PatchError, PatchErrorKind, PatchLimits};
use agui_types::json::Value;
use agui_types::{FromJson, JsonPatch, JsonPointer};
use serde_json::json;

fn value(text: &str) -> Value {
    Value::parse(text).expect("a document")
}

/// Tolerant, so that operations nobody knows stay in.
fn patch(text: &str) -> JsonPatch {
    JsonPatch::from_json_tolerant(text).expect("a patch").value
}

fn apply(document: &str, operations: &str, limits: PatchLimits) -> (Value, Result<(), PatchError>) {
    let mut document = Document::new(value(document));
    let applied = document.apply(&patch(operations), &limits);
    assert_eq!(document.size(), Document::new(document.value().clone()).size());
    (document.into_value(), applied)
}

/// Applies; the result is compared with its order and its digits.
fn applies(document: &str, operations: &str, expected: &str) {
    let (result, applied) = apply(document, operations, PatchLimits::default());
    applied.unwrap_or_else(|error| panic!("{document} {operations}: {error}"));
    assert_eq!(result.to_string(), expected, "{document} {operations}");
}

/// Fails, and leaves the document as it was.
fn fails(document: &str, operations: &str) -> PatchError {
    let (result, applied) = apply(document, operations, PatchLimits::default());
    let error = applied.expect_err(operations);
    assert_eq!(result.to_string(), document, "{operations}");
    error
}

fn refused(document: &str, operations: &str, expected: impl Borrow<PatchErrorKind>) {
    assert_eq!(fails(document, operations).kind, *expected.borrow(), "{document} {operations}");
}

#[test]
fn add_makes_members_and_puts_elements_between() {
    for (document, operation, expected) in [
        ("{}", r#"{"op":"add","path":"/a","value":[1.50]}"#, r#"{"a":[1.50]}"#),
        // A member that is there is replaced where it stands.
        (r#"{"a":1,"b":2}"#, r#"{"op":"add","path":"/a","value":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"b":2}"#, r#"{"op":"add","path":"/a","value":null}"#, r#"{"b":2,"a":null}"#),
        ("[1,3]", r#"{"op":"add","path":"/1","value":2}"#, "[1,2,3]"),
        ("[1,3]", r#"{"op":"add","path":"/0","value":0}"#, "[0,1,3]"),
        ("[1,3]", r#"{"op":"add","path":"/2","value":4}"#, "[1,3,4]"),
        ("[1,3]", r#"{"op":"add","path":"/-","value":[4]}"#, "[1,3,[4]]"),
        ("[]", r#"{"op":"add","path":"/0","value":1}"#, "[1]"),
        (r#"{"-":[]}"#, r#"{"op":"add","path":"/-/-","value":1}"#, r#"{"-":[1]}"#),
        ("{}", r#"{"op":"add","path":"/","value":1}"#, r#"{"":1}"#),
        ("{}", r#"{"op":"add","path":"/01","value":1}"#, r#"{"01":1}"#),
        (r#"{"a":1}"#, r#"{"op":"add","path":"","value":[]}"#, "[]"),
        ("null", r#"{"op":"add","path":"","value":{"a":1}}"#, r#"{"a":1}"#),
    ] {
        applies(document, &format!("[{operation}]"), expected);
    }
    let no_place = PatchErrorKind::OutOfRange { len: 2 };
    refused("[1,3]", r#"[{"op":"add","path":"/3","value":2}]"#, &no_place);
    refused("[1,3]", r#"[{"op":"add","path":"/18446744073709551616","value":2}]"#, no_place);
    refused("{}", r#"[{"op":"add","path":"/a/b","value":2}]"#, PatchErrorKind::NoMember);
}

#[test]
fn an_index_is_digits_without_a_leading_zero() {
    for step in ["00", "01", "-1", "+1", "1.0", "1e0", "0x1", " 1", "", "١", "length", "1 "] {
        let adding = format!(r#"[{{"op":"add","path":"/{step}","value":0}}]"#);
        refused("[1,2,3]", &adding, PatchErrorKind::NotAnIndex);
        let removing = format!(r#"[{{"op":"remove","path":"/{step}"}}]"#);
        refused("[1,2,3]", &removing, PatchErrorKind::NotAnIndex);
    }
    for operation in [
        r#"{"op":"remove","path":"/-"}"#,
        r#"{"op":"replace","path":"/-","value":1}"#,
        r#"{"op":"test","path":"/-","value":3}"#,
        r#"{"op":"move","from":"/-","path":"/0"}"#,
        r#"{"op":"copy","from":"/-","path":"/0"}"#,
        r#"{"op":"add","path":"/-/0","value":1}"#,
    ] {
        refused("[1,2,3]", &format!("[{operation}]"), PatchErrorKind::NotAnIndex);
    }
}

#[test]
fn remove_keeps_the_order_of_the_others() {
    applies(
        r#"{"a":1,"b":2,"c":3,"d":4}"#,
        r#"[{"op":"remove","path":"/b"}]"#,
        r#"{"a":1,"c":3,"d":4}"#,
    );
    applies("[1,[2,3],4]", r#"[{"op":"remove","path":"/1/0"}]"#, "[1,[3],4]");
    applies(r#"{"a":null}"#, r#"[{"op":"remove","path":"/a"}]"#, "{}");
    applies(r#"{"a":1}"#, r#"[{"op":"remove","path":""}]"#, "null");
    refused(r#"{"a":1}"#, r#"[{"op":"remove","path":"/b"}]"#, PatchErrorKind::NoMember);
    refused("[1]", r#"[{"op":"remove","path":"/1"}]"#, PatchErrorKind::OutOfRange { len: 1 });
}

#[test]
fn replace_needs_something_to_replace() {
    applies(
        r#"{"a":{"x":1},"b":2}"#,
        r#"[{"op":"replace","path":"/a","value":"s"}]"#,
        r#"{"a":"s","b":2}"#,
    );
    applies("[1,2]", r#"[{"op":"replace","path":"/1","value":null}]"#, "[1,null]");
    applies("7", r#"[{"op":"replace","path":"","value":false}]"#, "false");
    refused("{}", r#"[{"op":"replace","path":"/a","value":1}]"#, PatchErrorKind::NoMember);
    let no_place = PatchErrorKind::OutOfRange { len: 0 };
    refused("[]", r#"[{"op":"replace","path":"/0","value":1}]"#, no_place);
}

#[test]
fn move_takes_a_value_from_here_to_there() {
    for (document, operation, expected) in [
        (
            r#"{"a":{"x":1},"b":{}}"#,
            r#"{"op":"move","from":"/a/x","path":"/b/y"}"#,
            r#"{"a":{},"b":{"y":1}}"#,
        ),
        (r#"{"a":1,"b":2}"#, r#"{"op":"move","from":"/b","path":"/a"}"#, r#"{"a":2}"#),
        // The place is one in the array without the element.
        ("[1,2,3]", r#"{"op":"move","from":"/0","path":"/2"}"#, "[2,3,1]"),
        ("[1,2,3]", r#"{"op":"move","from":"/2","path":"/0"}"#, "[3,1,2]"),
        ("[1,2,3]", r#"{"op":"move","from":"/0","path":"/-"}"#, "[2,3,1]"),
        ("[1,2,3]", r#"{"op":"move","from":"/1","path":"/1"}"#, "[1,2,3]"),
        (r#"{"a":{"b":1}}"#, r#"{"op":"move","from":"/a/b","path":"/a"}"#, r#"{"a":1}"#),
        (r#"{"a":{"b":1}}"#, r#"{"op":"move","from":"/a/b","path":""}"#, "1"),
        (r#"{"a":1}"#, r#"{"op":"move","from":"","path":""}"#, r#"{"a":1}"#),
        // A name that begins like another one is another one.
        (r#"{"a":1,"ab":{}}"#, r#"{"op":"move","from":"/a","path":"/ab/c"}"#, r#"{"ab":{"c":1}}"#),
    ] {
        applies(document, &format!("[{operation}]"), expected);
    }
    let into = PatchErrorKind::IntoItself;
    refused(r#"{"a":{"b":1}}"#, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#, &into);
    refused(r#"{"a":1}"#, r#"[{"op":"move","from":"","path":"/b"}]"#, &into);
    refused("[[0]]", r#"[{"op":"move","from":"/0","path":"/0/-"}]"#, into);
    let no_place = PatchErrorKind::OutOfRange { len: 2 };
    refused("[1,2,3]", r#"[{"op":"move","from":"/0","path":"/3"}]"#, no_place);
    refused("{}", r#"[{"op":"move","from":"/a","path":"/a"}]"#, PatchErrorKind::NoMember);
}

#[test]
fn a_move_that_finds_no_target_loses_nothing() {
    // C-67: the value was taken out already.
    refused(
        r#"{"z":0,"a":1,"b":2}"#,
        r#"[{"op":"move","from":"/a","path":"/x/y"}]"#,
        PatchErrorKind::NoMember,
    );
    // The way to the target leads through what was taken out.
    refused(
        r#"{"a":{"b":{}},"c":1}"#,
        r#"[{"op":"move","from":"/a/b","path":"/a"},{"op":"move","from":"/c","path":"/a/b/d"}]"#,
        PatchErrorKind::NoMember,
    );
}

#[test]
fn copy_is_deep() {
    applies(
        r#"{"a":{"x":[1]}}"#,
        r#"[{"op":"copy","from":"/a","path":"/b"},{"op":"add","path":"/b/x/-","value":2}]"#,
        r#"{"a":{"x":[1]},"b":{"x":[1,2]}}"#,
    );
    applies(r#"{"a":1}"#, r#"[{"op":"copy","from":"","path":"/a"}]"#, r#"{"a":{"a":1}}"#);
    applies("[1,2]", r#"[{"op":"copy","from":"/1","path":"/0"}]"#, "[2,1,2]");
    applies(r#"{"a":false}"#, r#"[{"op":"copy","from":"/a","path":""}]"#, "false");
    refused("{}", r#"[{"op":"copy","from":"/a","path":"/b"}]"#, PatchErrorKind::NoMember);
}

#[test]
fn test_compares_as_json_does() {
    for (document, tested) in [
        (r#"{"a":1}"#, r#"{"path":"/a","value":1.0}"#),
        (r#"{"a":100}"#, r#"{"path":"/a","value":1e2}"#),
        (r#"{"a":-0}"#, r#"{"path":"/a","value":0}"#),
        (r#"{"a":{"x":1,"y":[2]}}"#, r#"{"path":"/a","value":{"y":[2],"x":1}}"#),
        (r#"{"a":null}"#, r#"{"path":"/a","value":null}"#),
        (r#"{"a":"é"}"#, r#"{"path":"/a","value":"\u00e9"}"#),
        ("[]", r#"{"path":"","value":[]}"#),
        (r#"{"a/b":1,"m~n":2}"#, r#"{"path":"/m~0n","value":2}"#),
        (r#"{"a/b":1,"m~n":2}"#, r#"{"path":"/a~1b","value":1}"#),
        (r#"{"~1":1}"#, r#"{"path":"/~01","value":1}"#),
        (r#"{"":{"":1}}"#, r#"{"path":"//","value":1}"#),
        (r#"{"0":["x"]}"#, r#"{"path":"/0/0","value":"x"}"#),
    ] {
        let operations = format!("[{}]", tested.replacen('{', r#"{"op":"test","#, 1));
        applies(document, &operations, document);
    }
    for (document, tested, found) in [
        (r#"{"a":1}"#, r#"{"path":"/a","value":"1"}"#, "1"),
        (r#"{"a":0}"#, r#"{"path":"/a","value":false}"#, "0"),
        (r#"{"a":[1,2]}"#, r#"{"path":"/a","value":[2,1]}"#, "an array of 2"),
        (r#"{"a":{}}"#, r#"{"path":"/a","value":[]}"#, "an object of 0"),
        ("9007199254740993", r#"{"path":"","value":9007199254740992}"#, "9007199254740993"),
        // One code point is not two, though they look the same.
        (r#"{"a":"é"}"#, r#"{"path":"/a","value":"e\u0301"}"#, r#""é""#),
    ] {
        let operations = format!("[{}]", tested.replacen('{', r#"{"op":"test","#, 1));
        refused(document, &operations, PatchErrorKind::TestFailed { found: found.into() });
    }
    // A member that is not there is not `null`.
    refused("{}", r#"[{"op":"test","path":"/a","value":null}]"#, PatchErrorKind::NoMember);
}

#[test]
fn names_of_a_host_language_are_ordinary_names() {
    applies(
        r#"{"__proto__":{"x":1},"constructor":{}}"#,
        r#"[{"op":"replace","path":"/__proto__/x","value":2},{"op":"add","path":"/constructor/prototype","value":0},{"op":"add","path":"/toString","value":1}]"#,
        r#"{"__proto__":{"x":2},"constructor":{"prototype":0},"toString":1}"#,
    );
    for name in ["__proto__", "constructor", "toString", "valueOf"] {
        let operations = format!(r#"[{{"op":"remove","path":"/{name}"}}]"#);
        refused("{}", &operations, PatchErrorKind::NoMember);
    }
}

#[test]
fn a_scalar_holds_nothing() {
    for (document, found) in [
        (r#"{"a":null}"#, "null"),
        (r#"{"a":false}"#, "a boolean"),
        (r#"{"a":0}"#, "a number"),
        (r#"{"a":""}"#, "a string"),
    ] {
        for operation in [
            r#"{"op":"add","path":"/a/b","value":1}"#,
            r#"{"op":"remove","path":"/a/b"}"#,
            r#"{"op":"test","path":"/a/0","value":""}"#,
            r#"{"op":"replace","path":"/a/b/c","value":1}"#,
        ] {
            let kind = PatchErrorKind::NotAContainer { found };
            refused(document, &format!("[{operation}]"), kind);
        }
    }
}

#[test]
fn a_patch_applies_as_a_whole_or_not_at_all() {
    // C-67: with every kind of change to take back, in an order that each depends on.
    let document = r#"{"a":{"x":1,"y":2,"z":3},"list":[1,2,3],"s":"t"}"#;
    let changes = concat!(
        r#"{"op":"remove","path":"/a/y"},"#,
        r#"{"op":"add","path":"/a/w","value":{"deep":[]}},"#,
        r#"{"op":"replace","path":"/s","value":{"now":"an object"}},"#,
        r#"{"op":"move","from":"/a/x","path":"/list/1"},"#,
        r#"{"op":"move","from":"/list/0","path":"/s/now"},"#,
        r#"{"op":"copy","from":"/a","path":"/a/w/deep/-"},"#,
        r#"{"op":"move","from":"/a/w","path":"/a"},"#,
        r#"{"op":"add","path":"/list","value":0},"#,
        r#"{"op":"copy","from":"","path":"/all"},"#,
        r#"{"op":"move","from":"/all","path":""},"#,
        r#"{"op":"replace","path":"","value":[[]]},"#,
        r#"{"op":"move","from":"/0","path":"/-"}"#,
    );
    applies(document, &format!("[{changes}]"), "[[]]");
    let changes: Vec<&str> = changes.split_inclusive("},").collect();
    for count in 0..=changes.len() {
        let good: String = changes[..count].concat();
        let bad = r#"{"op":"test","path":"/no/such/path","value":1}"#;
        let operations = format!("[{},{bad}]", good.trim_end_matches(',')).replace("[,", "[");
        assert_eq!(fails(document, &operations).operation, count);
    }
}

#[test]
fn an_operation_sees_what_the_ones_before_it_did() {
    applies(
        "{}",
        r#"[{"op":"add","path":"/a","value":{}},{"op":"add","path":"/a/b","value":[]},{"op":"add","path":"/a/b/-","value":1}]"#,
        r#"{"a":{"b":[1]}}"#,
    );
    let guarded = r#"[{"op":"test","path":"/v","value":1},{"op":"replace","path":"/v","value":2}]"#;
    applies(r#"{"v":1}"#, guarded, r#"{"v":2}"#);
    assert_eq!(fails(r#"{"v":2}"#, guarded).operation, 0);
    applies("[1]", "[]", "[1]");
}

#[test]
fn an_unknown_operation_is_passed_over_and_extra_members_are_ignored() {
    // C-69, C-30
    applies(
        "{}",
        r#"[{"op":"merge","path":"/a"},{"op":"add","path":"/b","value":1,"from":"/x","why":{}},{"op":"increment"}]"#,
        r#"{"b":1}"#,
    );
}

#[test]
fn an_activity_stays_an_object() {
    // P-50
    let mut document = Document::new(value(r#"{"a":1}"#));
    let limits = PatchLimits::default();
    for operations in [
        r#"[{"op":"add","path":"/b","value":2},{"op":"replace","path":"","value":[]}]"#,
        r#"[{"op":"remove","path":""}]"#,
        r#"[{"op":"move","from":"/a","path":""}]"#,
    ] {
        let error = document.apply_to_object(&patch(operations), &limits).unwrap_err();
        assert_eq!(error.kind, PatchErrorKind::NotAnObject, "{operations}");
        assert_eq!(document.value(), &value(r#"{"a":1}"#));
    }
    let through = r#"[{"op":"replace","path":"","value":[1]},{"op":"add","path":"","value":{}}]"#;
    document.apply_to_object(&patch(through), &limits).unwrap();
    document.apply_to_object(&patch("[]"), &limits).unwrap();
    assert_eq!(document.value(), &value("{}"));
}

#[test]
fn an_error_names_the_operation_the_pointer_and_how_far_it_leads() {
    let document = r#"{"a":{"b/c":[1,{"d":true}]}}"#;
    for (operation, pointer, exists, text) in [
        (
            r#"{"op":"replace","path":"/a/x","value":1}"#,
            "/a/x",
            "/a",
            r#"operation 1 (replace "/a/x"): "/a" has no member "x"; only "add" creates one"#,
        ),
        (
            r#"{"op":"add","path":"/x/y/z","value":1}"#,
            "/x/y/z",
            "",
            r#"operation 1 (add "/x/y/z"): the document has no member "x"; add it before what is inside it"#,
        ),
        (
            r#"{"op":"move","from":"/a/b~1c/7","path":"/a/z"}"#,
            "/a/b~1c/7",
            "/a/b~1c",
            r#"operation 1 (move "/a/b~1c/7"): "/a/b~1c" has 2 elements, so there is no place 7"#,
        ),
        (
            r#"{"op":"copy","from":"/a","path":"/a/b~1c/02"}"#,
            "/a/b~1c/02",
            "/a/b~1c",
            r#"operation 1 (copy "/a/b~1c/02"): "/a/b~1c" is an array and "02" no index; an index is decimal digits without a leading zero"#,
        ),
        (
            r#"{"op":"remove","path":"/a/b~1c/-"}"#,
            "/a/b~1c/-",
            "/a/b~1c",
            r#"operation 1 (remove "/a/b~1c/-"): "-" names the place after the last element of "/a/b~1c"; only adding can"#,
        ),
        (
            r#"{"op":"test","path":"/a/b~1c/1/d","value":false}"#,
            "/a/b~1c/1/d",
            "/a/b~1c/1/d",
            r#"operation 1 (test "/a/b~1c/1/d"): "/a/b~1c/1/d" is true, which is not what was tested for"#,
        ),
        (
            r#"{"op":"add","path":"/a/b~1c/1/d/e","value":false}"#,
            "/a/b~1c/1/d/e",
            "/a/b~1c/1/d",
            r#"operation 1 (add "/a/b~1c/1/d/e"): "/a/b~1c/1/d" is a boolean and has no "e" in it; replace it first"#,
        ),
        (
            r#"{"op":"move","from":"/a","path":"/a/x"}"#,
            "/a",
            "/a",
            r#"operation 1 (move "/a"): a value cannot move into itself; copy it instead"#,
        ),
    ] {
        let first = r#"{"op":"test","path":"/a/b~1c/0","value":1}"#;
        let error = fails(document, &format!("[{first},{operation}]"));
        assert_eq!(error.to_string(), text);
        let found = (error.operation, error.pointer.as_str(), error.exists.as_str());
        assert_eq!(found, (1, pointer, exists), "{operation}");
    }
    let long = format!(r#"{{"a":"{}"}}"#, "é".repeat(100));
    let error = fails(&long, r#"[{"op":"test","path":"/a","value":1}]"#);
    let found = format!("\"{}\"…", "é".repeat(60));
    assert_eq!(error.kind, PatchErrorKind::TestFailed { found });
}

#[test]
fn the_operations_of_a_patch_are_limited() {
    let limits = PatchLimits::default().with_operations(2);
    let operation = r#"{"op":"add","path":"/a","value":1}"#;
    assert_eq!(apply("{}", &format!("[{operation},{operation}]"), limits).1, Ok(()));
    let (document, applied) =
        apply("{}", &format!("[{operation},{operation},{operation}]"), limits);
    let error = applied.unwrap_err();
    assert_eq!(error.kind, PatchErrorKind::TooManyOperations { limit: 2 });
    assert_eq!((error.operation, document.to_string().as_str()), (2, "{}"));
}

#[test]
fn the_depth_of_the_document_is_limited() {
    let limits = PatchLimits::default().with_depth(3);
    let too_deep = Err(PatchErrorKind::TooDeep { limit: 3 });
    for (document, operation, expected) in [
        (r#"{"a":{}}"#, r#"{"op":"add","path":"/a/b","value":[]}"#, Ok(())),
        (r#"{"a":{}}"#, r#"{"op":"add","path":"/a/b","value":[1]}"#, Ok(())),
        (r#"{"a":{}}"#, r#"{"op":"add","path":"/a/b","value":[[]]}"#, too_deep.clone()),
        (r#"{"a":{"b":[]}}"#, r#"{"op":"add","path":"/a/b/-","value":0}"#, Ok(())),
        (r#"{"a":{"b":[0]}}"#, r#"{"op":"replace","path":"/a/b/0","value":{}}"#, too_deep.clone()),
        (r#"{"a":{"b":[]}}"#, r#"{"op":"copy","from":"/a","path":"/c"}"#, Ok(())),
        (r#"{"a":{"b":[]}}"#, r#"{"op":"copy","from":"","path":"/c"}"#, too_deep.clone()),
        (r#"{"a":[],"b":{}}"#, r#"{"op":"move","from":"/a","path":"/b/c"}"#, Ok(())),
        (r#"{"a":[[]],"b":{}}"#, r#"{"op":"move","from":"/a","path":"/b/c"}"#, too_deep.clone()),
    ] {
        let (_, applied) = apply(document, &format!("[{operation}]"), limits);
        assert_eq!(applied.map_err(|error| error.kind), expected, "{document} {operation}");
    }
    // What is nested by copies, a level at a time, can still be read back.
    let deeper = r#"{"op":"copy","from":"","path":"/a"}"#;
    let operations = |count| format!("[{}]", vec![deeper; count].join(","));
    let limits = PatchLimits::default().with_depth(usize::MAX);
    let (document, applied) = apply(r#"{"a":0}"#, &operations(126), limits);
    applied.unwrap();
    assert_eq!(value(&document.to_string()), document);
    let (_, applied) = apply(r#"{"a":0}"#, &operations(127), limits);
    assert_eq!(applied.unwrap_err().kind, PatchErrorKind::TooDeep { limit: 127 });
}

#[test]
fn the_size_of_the_document_is_limited() {
    let document = r#"{"a":"0123456789"}"#;
    let size = Document::new(value(document)).size();
    let limits = PatchLimits::default().with_size(size + 5);
    let add = |text: &str| format!(r#"[{{"op":"add","path":"/b","value":{text}}}]"#);
    // The member's name, its colon and its comma take five.
    let one_more = PatchErrorKind::TooLarge { limit: size + 5 };
    assert_eq!(apply("{}", &add("1"), limits.with_size(8)).1, Ok(()));
    assert!(apply("{}", &add("1"), limits.with_size(7)).1.is_err());
    assert_eq!(apply(document, &add("1"), limits).1.unwrap_err().kind, one_more);
    // A document that is too large already may change, and shrink, but not grow.
    let limits = limits.with_size(15);
    let replace = |text: &str| format!(r#"[{{"op":"replace","path":"/a","value":{text}}}]"#);
    assert_eq!(apply(document, &replace(r#""9876543210""#), limits).1, Ok(()));
    assert_eq!(apply(document, &replace(r#""987""#), limits).1, Ok(()));
    assert!(apply(document, &replace(r#""98765432101""#), limits).1.is_err());
}

#[test]
fn copies_cannot_double_without_end() {
    let double = r#"{"op":"copy","from":"/a","path":"/a/-"}"#;
    let doubled = format!("[{}]", vec![double; 64].join(","));
    let limits = PatchLimits::default();
    let (document, applied) = apply(r#"{"a":["x"]}"#, &doubled, limits);
    assert!(matches!(applied.unwrap_err().kind, PatchErrorKind::TooMuchWork { .. }));
    assert_eq!(document.to_string(), r#"{"a":["x"]}"#);
    // However much may be copied.
    let limits = limits.with_work_per_byte(1 << 20);
    let (document, applied) = apply(r#"{"a":["x"]}"#, &doubled, limits);
    assert_eq!(applied.unwrap_err().kind, PatchErrorKind::TooLarge { limit: limits.size });
    assert_eq!(document.to_string(), r#"{"a":["x"]}"#);
    // Nor by removing each copy before the next: what is undone later has to be kept.
    let swell =
        concat!(r#"{"op":"copy","from":"/a","path":"/b"},"#, r#"{"op":"remove","path":"/b"}"#);
    let limits = limits.with_size(1000);
    let (_, applied) = apply(
        &format!(r#"{{"a":"{}"}}"#, "x".repeat(300)),
        &format!("[{}]", [swell; 10].join(",")),
        limits,
    );
    let error = applied.unwrap_err();
    assert_eq!(error.kind, PatchErrorKind::TooLarge { limit: 1000 });
    assert_eq!(error.operation, 6);
}

#[test]
fn the_work_of_a_patch_is_limited() {
    for (document, operations, work) in [
        // What moves by a place, four of them a step.
        ("[1,2,3,4,5,6,7]", r#"[{"op":"add","path":"/0","value":0}]"#, 1),
        ("[1,2,3,4,5,6,7,8]", r#"[{"op":"add","path":"/0","value":0}]"#, 2),
        ("[1,2,3,4,5,6,7,8]", r#"[{"op":"add","path":"/-","value":0}]"#, 0),
        // And what goes.
        ("[1,2,3,4,5,6,7,8,9]", r#"[{"op":"remove","path":"/0"}]"#, 2 + 1),
        ("[1,2,3,40]", r#"[{"op":"remove","path":"/3"}]"#, 2),
        (
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5}"#,
            r#"[{"op":"remove","path":"/a"},{"op":"remove","path":"/b"}]"#,
            1 + 1 + 1,
        ),
        (r#"{"a":"xyz"}"#, r#"[{"op":"replace","path":"/a","value":1}]"#, 5),
        (r#"{"a":"xyz"}"#, r#"[{"op":"add","path":"/a","value":1}]"#, 5),
        (r#"{"a":"xyz"}"#, r#"[{"op":"add","path":"/b","value":"xyz"}]"#, 0),
        (r#"{"a":"xyz"}"#, r#"[{"op":"test","path":"/a","value":"xyz"}]"#, 0),
        (r#"{"a":"xyz"}"#, r#"[{"op":"copy","from":"/a","path":"/b"}]"#, 5),
        (r#"{"a":"xyz"}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, 0),
        ("[1,2,3]", r#"[{"op":"move","from":"/0","path":"/0"}]"#, 0),
        ("[1,2,3,4,5,6,7,8,9]", r#"[{"op":"move","from":"/0","path":"/1"}]"#, 2 + 1),
        // What moves deeper is looked through.
        (r#"{"b":{},"a":"x"}"#, r#"[{"op":"move","from":"/a","path":"/b/c"}]"#, 3),
    ] {
        let limits = PatchLimits::default();
        let (_, applied) = apply(document, operations, limits.with_work(work));
        assert_eq!(applied, Ok(()), "{document} {operations}");
        let Some(less) = work.checked_sub(1) else {
            continue;
        };
        let (result, applied) = apply(document, operations, limits.with_work(less));
        let too_much = PatchErrorKind::TooMuchWork { limit: less };
        assert_eq!(applied.map_err(|error| error.kind), Err(too_much), "{document} {operations}");
        assert_eq!(result.to_string(), document);
    }
}

#[test]
fn work_is_earned_by_what_is_received() {
    let limits = PatchLimits::default().with_work_per_byte(1);
    let zeros = vec!["0"; 4_000].join(",");
    let mut document = Document::new(value(&format!(r#"{{"l":[{zeros}]}}"#)));
    let insert = patch(r#"[{"op":"add","path":"/l/0","value":1}]"#);
    let extend = patch(r#"[{"op":"add","path":"/l/-","value":1}]"#);
    // The document itself has earned eight insertions at the front, of a thousand steps each.
    assert_eq!(document.size(), 8_009);
    (0..8).for_each(|_| document.apply(&insert, &limits).unwrap());
    let error = document.apply(&insert, &limits).unwrap_err();
    let PatchErrorKind::TooMuchWork { limit } = error.kind else { panic!("{error}") };
    assert!((1..1_002).contains(&limit), "{limit}");
    // What costs nothing still goes, and earns what comes: each of these about seventy.
    let mut patches = 0;
    while document.apply(&insert, &limits).is_err() {
        document.apply(&extend, &limits).unwrap();
        patches += 1;
        assert!(patches < 10);
    }
    assert!(patches > 1, "{patches}");
    // What is not used is kept, but for no more than one patch.
    let limits = limits.with_work(2_000);
    (0..200).for_each(|_| document.apply(&extend, &limits).unwrap());
    document.apply(&insert, &limits).unwrap();
    document.apply(&insert, &limits).unwrap_err();
}

#[test]
fn ordinary_patches_are_never_refused() {
    // A list with the newest first, of which the oldest goes; a table; a counter.
    let limits = PatchLimits::default();
    let rows: Vec<String> = (0..5_000).map(|n| format!(r#""row {n}":{{"n":{n}}}"#)).collect();
    let lines = vec![r#""a line of a log, as long as lines of logs are""#; 2_000].join(",");
    let blob = "x".repeat(10_000_000);
    let text =
        format!(r#"{{"n":0,"log":[{lines}],"rows":{{{}}},"blob":"{blob}"}}"#, rows.join(","));
    let mut document = Document::new(value(&text));
    for n in 0..2_000 {
        let patch = JsonPatch::new()
            .replace(["n"], json!(n))
            .add(["log", "0"], json!(format!("line {n}, as long as lines of logs are")))
            .remove(["log", "2000"])
            .remove(["rows", &*format!("row {n}")])
            .add(["rows", &*format!("row {}", n + 5_000)], json!({ "n": n }));
        document.apply(&patch, &limits).unwrap();
    }
}

#[test]
fn the_one_shot_form_does_the_same() {
    let mut state = value(r#"{"a":1}"#);
    let limits = PatchLimits::default();
    patch::apply(&mut state, &patch(r#"[{"op":"remove","path":"/a"}]"#), &limits).unwrap();
    assert_eq!(state.to_string(), "{}");
    patch::apply(&mut state, &patch(r#"[{"op":"remove","path":"/a"}]"#), &limits).unwrap_err();
    assert_eq!(state.to_string(), "{}");
}

#[test]
fn a_pointer_leads_to_a_value_or_nowhere() {
    let document = value(r#"{"a/b":[{"":null}],"~":1}"#);
    let resolve = |text: &str| patch::resolve(&document, &text.parse::<JsonPointer>().unwrap());
    assert_eq!(resolve(""), Some(&document));
    assert_eq!(resolve("/a~1b/0/"), Some(&Value::Null));
    assert_eq!(resolve("/~0"), Some(&value("1")));
    for nowhere in ["/a", "/a~1b/1", "/a~1b/00", "/a~1b/-", "/~0/0", "/a~1b/0//"] {
        assert_eq!(resolve(nowhere), None, "{nowhere}");
    }
}
