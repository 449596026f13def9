//! Properties of the SSE decoder and encoder over generated bodies and cuts.

use agui_wire::fuzzing::{self, read, reference};
use agui_wire::sse::{Encoder, Limits};
use proptest::prelude::*;

/// A piece of a body: pieces of the grammar, and bytes that are none.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let bytes = |text: &'static str| Just(text.as_bytes().to_vec());
    prop_oneof![
        6 => prop_oneof![bytes("\n"), bytes("\r"), bytes("\r\n"), bytes("\n\n"), bytes("\r\n\r\n")],
        4 => prop_oneof![bytes("data: "), bytes("data:"), bytes("data"), bytes("dat"), bytes("datax:")],
        4 => prop_oneof![
            bytes("id: "), bytes("id:"), bytes("id"), bytes("event: "), bytes("event"),
            bytes("retry: "), bytes("retry:"), bytes(":"), bytes(" "), bytes("foo: "),
        ],
        2 => prop_oneof![bytes("{}"), bytes("{\"type\":\"RAW\"}"), bytes("17"), bytes("\0"), bytes("é☕😀")],
        1 => prop_oneof![bytes("\u{feff}"), Just(b"\xEF\xBB".to_vec()), Just(b"\xF0\x9F\x98".to_vec())],
        1 => prop::collection::vec(any::<u8>(), 0..4),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..40).prop_map(|pieces| pieces.concat())
}

/// Cuts `body` into reads of these sizes, again and again.
fn cut<'a>(body: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = body;
    let mut reads = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (read, left) = rest.split_at((*size).min(rest.len()));
        reads.push(read);
        rest = left;
    }
    reads
}

fn limits() -> impl Strategy<Value = Limits> {
    let size = || prop_oneof![4 => 0usize..24, 1 => Just(usize::MAX)];
    (size(), size(), size(), size(), size()).prop_map(|(frame, line, comment, id, event)| {
        Limits::default()
            .with_frame_bytes(frame)
            .with_line_bytes(line)
            .with_comment_bytes(comment)
            .with_id_bytes(id)
            .with_event_bytes(event)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn t14_t15_t16_the_decoder_agrees_with_a_line_by_line_reference(body in body()) {
        prop_assert_eq!(read(Limits::default(), [&body[..]]), reference(&body));
    }

    #[test]
    fn arbitrary_bytes_read_like_the_reference(body in prop::collection::vec(any::<u8>(), 0..64)) {
        prop_assert_eq!(read(Limits::default(), [&body[..]]), reference(&body));
    }

    #[test]
    fn t15_cuts_change_nothing(body in body(), sizes in prop::collection::vec(1usize..9, 1..6)) {
        let whole = read(Limits::default(), [&body[..]]);
        prop_assert_eq!(&read(Limits::default(), cut(&body, &sizes)), &whole);
        prop_assert_eq!(&read(Limits::default(), body.chunks(1)), &whole);
    }

    #[test]
    fn cuts_do_not_change_which_limit_is_exceeded_and_where(
        limits in limits(),
        body in body(),
        sizes in prop::collection::vec(1usize..9, 1..6),
    ) {
        let whole = read(limits, [&body[..]]);
        prop_assert_eq!(&read(limits, cut(&body, &sizes)), &whole);
        prop_assert_eq!(&read(limits, body.chunks(1)), &whole);
    }

    #[test]
    fn t13_what_is_encoded_decodes_to_the_same(
        data in any::<String>(),
        id in proptest::option::of("[^\r\n\0]{0,20}"),
    ) {
        fuzzing::round_trip(&data, id.as_deref());
    }

    #[test]
    fn t13_t16_t17_a_body_of_frames_and_comments_decodes_to_its_frames(
        frames in prop::collection::vec((any::<String>(), "[^\r\n\0]{1,9}", any::<String>()), 0..6),
        sizes in prop::collection::vec(1usize..40, 1..6),
    ) {
        let mut body = Vec::new();
        for (data, field, comment) in &frames {
            Encoder::comment(&mut body, comment);
            let encoder = Encoder::new().id(field).and_then(|encoder| encoder.event(field));
            encoder.expect("valid").frame(&mut body, data);
        }
        let reading = read(Limits::default(), cut(&body, &sizes));
        prop_assert_eq!(reading.frames.len(), frames.len());
        for (seen, (data, field, _)) in reading.frames.iter().zip(&frames) {
            prop_assert_eq!(&seen.data, &data.replace(['\r', '\n'], " "));
            prop_assert_eq!(seen.id.as_ref(), Some(field));
            prop_assert_eq!(seen.event.as_ref(), Some(field));
        }
    }
}

#[test]
#[allow(clippy::print_stderr)]
fn the_seeds_of_the_fuzz_targets_hold() {
    let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let run = |target: &str, call: fn(&[u8])| {
        let Ok(files) = std::fs::read_dir(format!("{seeds}/{target}")) else {
            eprintln!("skipped: no seeds of {target}");
            return;
        };
        let mut count = 0;
        for file in files {
            let path = file.expect("a file").path();
            call(&std::fs::read(&path).expect("readable"));
            count += 1;
        }
        assert!(count > 10, "{target}: {count} seeds");
    };
    run("sse_decode", fuzzing::sse_decode);
    run("sse_split", fuzzing::sse_split);
}
