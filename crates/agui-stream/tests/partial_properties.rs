//! What holds for every JSON text, however it is cut, and for every text that is none.

use agui_stream::partial::{PartialJson, PartialState};
use agui_types::json::Value;
use proptest::collection::vec;
use proptest::prelude::*;

/// JSON as a model may write it: white space anywhere, any escapes, repeated names.
fn json() -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        number(),
        string(),
    ];
    let value = scalar.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            (vec((space(), inner.clone(), space()), 0..5), space()).prop_map(|(items, empty)| {
                let items = items.iter().map(|(a, value, b)| format!("{a}{value}{b}"));
                let items = items.collect::<Vec<_>>().join(",");
                format!("[{empty}{items}]")
            }),
            (vec((space(), name(), inner, space()), 0..5), space()).prop_map(|(members, empty)| {
                let members =
                    members.iter().map(|(a, name, value, b)| format!("{a}{name}{b}:{a}{value}{b}"));
                let members = members.collect::<Vec<_>>().join(",");
                format!("{{{empty}{members}}}")
            }),
        ]
    });
    (space(), value, space()).prop_map(|(a, value, b)| format!("{a}{value}{b}"))
}

fn space() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\n\t"), 1 => Just("\r")]
}

fn number() -> impl Strategy<Value = String> {
    "-?(0|[1-9][0-9]{0,6})([.][0-9]{1,4})?([eE][+-]?[0-9]{1,3})?"
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z {}\\[\\],:]{0,4}",
        Just("é漢😀".to_owned()),
        r#"\\["\\/bfnrt]"#,
        r"\\u[0-9a-fA-F]{4}",
        r"\\ud[89ab][0-9a-f]{2}",
        r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}",
    ];
    vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![2 => Just("\"a\"".to_owned()), 1 => Just("\"\"".to_owned()), 2 => string()]
}

/// Mostly not JSON: a text with something in it replaced, or anything at all.
fn text() -> impl Strategy<Value = String> {
    let noise = prop_oneof![r#"[\[\]{}:,"\\tfn0-9eE+.ux -]{0,6}"#, any::<String>()];
    prop_oneof![
        (json(), any::<prop::sample::Index>(), 0..4usize, noise.clone()).prop_map(
            |(json, at, length, noise)| {
                let mut characters: Vec<char> = json.chars().collect();
                let at = at.index(characters.len() + 1);
                let end = (at + length).min(characters.len());
                characters.splice(at..end, noise.chars());
                characters.into_iter().collect()
            }
        ),
        noise,
    ]
}

fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let mut at: Vec<usize> = vec![0, text.len()];
    if !boundaries.is_empty() {
        at.extend(cuts.iter().map(|cut| *cut.get(&boundaries)));
    }
    at.sort_unstable();
    at.windows(2).map(|piece| text[piece[0]..piece[1]].to_owned()).collect()
}

/// Pushes the pieces, and checks after each that what is shown and its text agree.
fn push_all(pieces: &[String]) -> PartialJson {
    let mut partial = PartialJson::new();
    for piece in pieces {
        partial.push(piece);
        agrees(&partial);
    }
    partial
}

fn agrees(partial: &PartialJson) {
    let repaired = partial.repaired();
    match partial.value() {
        Some(value) => {
            let parsed = Value::parse(&repaired).expect("repaired text is JSON");
            assert_eq!(parsed.to_string(), value.to_string());
        }
        None => assert_eq!(repaired, ""),
    }
}

fn whole(text: &str) -> PartialJson {
    push_all(&[text.to_owned()])
}

proptest! {
    #[test]
    fn the_pieces_of_a_text_give_the_tree_of_the_whole(
        text in json(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let partial = push_all(&cut(&text, &cuts));
        let expected = Value::parse(&text).expect("JSON");
        prop_assert_eq!(partial.state(), PartialState::Complete);
        prop_assert_eq!(partial.repaired(), text);
        let found = partial.into_value().expect("a value");
        // As text, so that order and digits count.
        prop_assert_eq!(found.to_string(), expected.to_string());
    }

    #[test]
    fn each_beginning_of_a_text_is_shown_as_json(text in json()) {
        let mut partial = PartialJson::new();
        for character in text.chars() {
            partial.push(character.encode_utf8(&mut [0; 4]));
            agrees(&partial);
            prop_assert!(!matches!(partial.state(), PartialState::Invalid(_)));
        }
    }

    #[test]
    fn a_text_that_is_not_json_is_told_at_its_first_wrong_byte(
        text in text(),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let partial = push_all(&cut(&text, &cuts));
        prop_assert_eq!(partial.state(), whole(&text).state());
        prop_assert_eq!(partial.repaired(), whole(&text).repaired());
        match partial.state() {
            PartialState::Complete => prop_assert!(Value::parse(&text).is_ok()),
            PartialState::Incomplete => prop_assert!(Value::parse(&text).is_err()),
            PartialState::Invalid(error) => {
                let told = Value::parse(&text).expect_err("not JSON either").offset();
                // A word or an escape is told at its beginning there, or at the end of the text.
                prop_assert!(told.abs_diff(error.offset()) < 6, "{} {}", told, error);
                let before = whole(&text[..error.offset()]);
                prop_assert!(!matches!(before.state(), PartialState::Invalid(_)));
                prop_assert_eq!(before.repaired(), partial.repaired());
            }
        }
    }
}
