//! Properties that hold for any text: our lexer beside `serde_json`, the readings beside each other.

use agui_types::json::{Token, Value};
use agui_types::{Event, EventReader, FromJson, Json, JsonObject, ToJson};
use proptest::prelude::*;
use serde::de::IgnoredAny;

/// Any JSON text: odd numbers, escapes, white space, repeated names.
fn json() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_filter("JSON has none", |n| n.is_finite()).prop_map(|n| format!("{n:e}")),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,2})?",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        number,
        string(),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let element = (space(), inner.clone(), space()).prop_map(|(a, value, b)| a + &value + &b);
        let member = (space(), string(), space(), inner, space())
            .prop_map(|(a, name, b, value, c)| format!("{a}{name}{b}:{value}{c}"));
        prop_oneof![
            prop::collection::vec(element, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec(member, 0..6)
                .prop_map(|members| format!("{{{}}}", members.join(","))),
        ]
    })
}

/// A string in quotes, with escapes that it needs and escapes that it does not.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        8 => any::<char>().prop_map(|c| {
            let quoted = serde_json::to_string(&c.to_string()).unwrap();
            quoted[1..quoted.len() - 1].to_owned()
        }),
        4 => "[ -!#-\\[\\]-~]{1,12}",
        1 => any::<char>().prop_map(|c| {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect()
        }),
        1 => Just("\\/".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

/// Texts that are JSON, nearly JSON, or nothing of the kind.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => json(),
        3 => (json(), any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<char>())
            .prop_map(|(text, from, to, c)| damaged(&text, from, to, c)),
        1 => "[\\[\\]{},:\"\\\\0-9eE+.tfnrulasd \\-]{0,20}",
        1 => any::<String>(),
        1 => any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

/// A text with one stretch cut out, one character put in, or both.
fn damaged(text: &str, from: prop::sample::Index, to: prop::sample::Index, c: char) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let (from, to) = (from.index(chars.len() + 1), to.index(chars.len() + 1));
    let most = (from + 4).min(chars.len());
    chars.splice(from..to.clamp(from, most), Some(c).filter(|c| u32::from(*c) % 3 != 0));
    chars.into_iter().collect()
}

/// What `serde_json` says about a text, where it can be asked: it refuses lone surrogates and
/// numbers beyond a double, which we keep.
fn oracle(text: &str) -> Option<bool> {
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Some(true),
        Err(error) if error.to_string().contains("number out of range") => None,
        Err(_) => Some(false),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_lexer_accepts_what_serde_json_accepts(text in text()) {
        let parsed = Json::parse(&text);
        if let Some(verdict) = oracle(&text) {
            prop_assert_eq!(parsed.is_ok(), verdict, "{:?}", parsed);
        }
        if let Err(error) = parsed {
            prop_assert!(error.offset() <= text.len());
            prop_assert!(text.is_char_boundary(error.offset()), "{}", error);
        }
        // The tree and the pieces agree with the text that is only passed over.
        let tree = Value::parse(&text);
        prop_assert_eq!(tree.is_ok(), Json::parse(&text).is_ok());
    }

    #[test]
    fn a_value_is_what_serde_json_says_it_is(text in json()) {
        let json = Json::parse(&text).unwrap();
        prop_assert_eq!(json.as_str(), text.trim_matches([' ', '\t', '\r', '\n']));
        let Ok(theirs) = serde_json::from_str::<serde_json::Value>(&text) else {
            // A number beyond a double.
            return Ok(());
        };
        prop_assert_eq!(&json.decode::<serde_json::Value>().unwrap(), &theirs);

        let tree = Value::parse(&text).unwrap();
        let written = tree.to_json();
        prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(written.as_str()).unwrap(), &theirs);
        prop_assert_eq!(&Value::parse(written.as_str()).unwrap(), &tree);
        prop_assert_eq!(Value::parse(written.as_str()).unwrap().to_json(), written);
        prop_assert_eq!(serde_json::to_value(&tree).unwrap(), theirs.clone());
        // Equality by value: what went through doubles is still equal, if doubles hold it.
        let theirs_as_ours: Value = serde_json::from_value(theirs.clone()).unwrap();
        prop_assert_eq!(serde_json::to_value(&theirs_as_ours).unwrap(), theirs);
    }

    #[test]
    fn the_pieces_of_a_text_make_it_up(text in json()) {
        let again = rebuilt(&Json::parse(&text).unwrap());
        prop_assert_eq!(Value::parse(&again).unwrap().to_json(), Value::parse(&text).unwrap().to_json());
    }

    #[test]
    fn opaque_text_goes_through_an_event_untouched(text in json()) {
        let event = format!(r#"{{"type":"CUSTOM","name":"n","value":{}}}"#, text.trim());
        let reading = Event::from_json_tolerant(&event).unwrap();
        prop_assert_eq!(&*reading.findings, &[][..]);
        prop_assert_eq!(reading.value.to_json(), event);
    }

    #[test]
    fn a_string_is_written_as_serde_json_writes_it(text: String) {
        let event = agui_types::event::StepStarted::new(text.clone());
        let quoted = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(event.to_json(), format!(r#"{{"type":"STEP_STARTED","stepName":{quoted}}}"#));
    }

    #[test]
    fn a_reader_that_remembers_reads_the_same(texts in prop::collection::vec(event(), 1..30)) {
        let mut reader = EventReader::new();
        for text in texts {
            let remembered = reader.tolerant(&text);
            prop_assert_eq!(&remembered, &Event::from_json_tolerant(&text));
            prop_assert_eq!(&reader.exact(&text), &Event::from_json_exact(&text));
            // The exact reading is the tolerant one without findings.
            match (reader.exact(&text), remembered) {
                (Ok(exact), Ok(reading)) => {
                    prop_assert_eq!(&exact, &reading.value);
                    prop_assert_eq!(&*reading.findings, &[][..]);
                }
                (Err(_), Ok(reading)) => prop_assert!(!reading.findings.is_empty()),
                (Err(exact), Err(tolerant)) => {
                    // It may have met something undescribed before what is malformed.
                    prop_assert!(exact.offset() <= tolerant.offset() || exact == tolerant);
                }
                (Ok(exact), Err(error)) => prop_assert!(false, "{exact:?} {error}"),
            }
        }
    }

    #[test]
    fn the_fuzz_target_holds(text in prop_oneof![text(), event()]) {
        agui_types::fuzzing::event_json(text.as_bytes());
    }

    #[test]
    fn no_text_makes_a_reading_panic(text in text()) {
        let _ = agui_types::RunAgentInput::from_json_tolerant(&text);
        let _ = JsonObject::parse(&text).map(|object| object.members().count());
    }

    #[test]
    fn merging_is_what_a_map_does(a in object(), b in object()) {
        // C-76
        let (ours, theirs) = (JsonObject::parse(&a).unwrap(), JsonObject::parse(&b).unwrap());
        let mut merged = ours.clone();
        merged.merge(&theirs);
        for (name, value) in merged.members() {
            let expected = theirs.get(&name).or(ours.get(&name));
            prop_assert_eq!(Some(value), expected);
        }
        let mut names: Vec<_> = ours.members().chain(theirs.members()).map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        prop_assert_eq!(merged.members().count(), names.len());
    }
}

fn object() -> impl Strategy<Value = String> {
    prop::collection::vec((prop_oneof!["\"[a-c]\"", string()], json()), 0..6).prop_map(|members| {
        let members: Vec<_> =
            members.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        format!("{{{}}}", members.join(" , "))
    })
}

/// Events of a few types over a few ids, now and then with something wrong.
fn event() -> impl Strategy<Value = String> {
    let id = prop_oneof!["\"m[0-9]\"", string(), Just("7".to_owned())];
    let kind = prop_oneof![
        Just("TEXT_MESSAGE_CONTENT"),
        Just("TOOL_CALL_ARGS"),
        Just("REASONING_MESSAGE_START"),
        Just("STEP_STARTED"),
        Just("BEACON"),
    ];
    let member = prop_oneof![
        id.clone().prop_map(|id| format!("\"messageId\":{id}")),
        id.prop_map(|id| format!("\"toolCallId\":{id}")),
        string().prop_map(|delta| format!("\"delta\": {delta}")),
        Just("\"role\":\"reasoning\"".to_owned()),
        Just("\"subagentRunId\":null".to_owned()),
        any::<i64>().prop_map(|n| format!("\"timestamp\":{n}")),
        (string(), json()).prop_map(|(name, value)| format!("{name}:{value}")),
    ];
    (kind, prop::collection::vec(member, 0..5), any::<prop::sample::Index>()).prop_map(
        |(kind, mut members, at)| {
            members.insert(at.index(members.len() + 1), format!("\"type\":\"{kind}\""));
            format!("{{{}}}", members.join(","))
        },
    )
}

/// The text that the pieces of a text make.
fn rebuilt(json: &Json) -> String {
    let mut out = String::new();
    for token in json.tokens() {
        if !matches!(token, Token::CloseArray | Token::CloseObject)
            && !out.is_empty()
            && !out.ends_with(['[', '{', ':'])
        {
            out.push(',');
        }
        match token {
            Token::Null => out.push_str("null"),
            Token::Bool(value) => out.push_str(if value { "true" } else { "false" }),
            Token::Number(digits) => out.push_str(digits),
            Token::String(text) => out.push_str(&serde_json::to_string(&text).unwrap()),
            Token::Key(name) => {
                out.push_str(&serde_json::to_string(&name).unwrap());
                out.push(':');
            }
            Token::OpenObject => out.push('{'),
            Token::CloseObject => out.push('}'),
            Token::OpenArray => out.push('['),
            Token::CloseArray => out.push(']'),
        }
    }
    out
}

#[test]
fn what_serde_json_refuses_and_we_keep() {
    // A lone surrogate: `serde_json` cannot hold it, we read U+FFFD and keep the text.
    for text in [r#""\ud83d""#, r#""\udc00x""#, r#"{"\ud83d":1}"#] {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err());
        assert_eq!(Json::parse(text).unwrap().as_str(), text);
        assert!(Json::parse(text).unwrap().decode::<serde_json::Value>().is_ok());
    }
    // A number beyond a double: `serde_json::Value` cannot hold it, we keep its digits.
    for text in ["1e999", "-1e999", "[1E+400]"] {
        assert!(serde_json::from_str::<serde_json::Value>(text).is_err());
        assert_eq!(Json::parse(text).unwrap().as_str(), text);
        assert_eq!(Value::parse(text).unwrap().to_string(), text);
        assert!(Json::parse(text).unwrap().decode::<serde_json::Value>().is_err());
    }
    // The same depth.
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for (depth, accepted) in [(127, true), (128, false)] {
        let text = nested(depth);
        assert_eq!(Json::parse(&text).is_ok(), accepted);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), accepted);
    }
}

#[test]
fn the_seeds_of_the_fuzz_target_hold() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/event_json");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        agui_types::fuzzing::event_json(&std::fs::read(seed.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count >= 10, "{count}");
}
