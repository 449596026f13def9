//! The SSE decoder, rule by rule.

use std::time::Duration;

use agui_wire::fuzzing::{OwnedFrame, read};
use agui_wire::sse::{Decoder, End, Limit, LimitExceeded, Limits};

/// The data of all frames of a body, the same whether it comes in one read or byte by byte.
fn data(body: impl AsRef<[u8]>) -> Vec<String> {
    let (frames, _) = decode(body);
    frames.into_iter().map(|frame| frame.data).collect()
}

fn end(body: impl AsRef<[u8]>) -> End {
    decode(body).1
}

fn decode(body: impl AsRef<[u8]>) -> (Vec<OwnedFrame>, End) {
    let body = body.as_ref();
    let whole = read(Limits::default(), [body]);
    assert_eq!(read(Limits::default(), body.chunks(1)), whole);
    let (_, end) = whole.end.clone().expect("within the limits");
    (whole.frames().cloned().collect(), end)
}

/// The error that a body ends in, the same whether it comes in one read or byte by byte.
fn failure(limits: Limits, body: impl AsRef<[u8]>) -> Option<(Limit, usize, u64)> {
    let body = body.as_ref();
    let whole = read(limits, [body]);
    assert_eq!(read(limits, body.chunks(1)), whole);
    whole.end.err().map(|LimitExceeded { limit, max, offset, .. }| (limit, max, offset))
}

#[test]
fn t14_the_space_after_the_colon_is_optional_and_only_one_is_dropped() {
    assert_eq!(
        data("data:{}\n\ndata: {}\n\ndata:  {}\n\ndata:\t{}\n\n"),
        ["{}", "{}", " {}", "\t{}"]
    );
}

#[test]
fn t14_several_data_lines_join_with_a_line_feed() {
    assert_eq!(data("data: {\r\ndata: \"a\":1\rdata:}\n\n"), ["{\n\"a\":1\n}"]);
    assert_eq!(data("data: a\nid: 1\n: x\ndata: b\n\n"), ["a\nb"]);
    assert_eq!(data("data: a\ndata\ndata:\ndata: b\n\n"), ["a\n\n\nb"]);
}

#[test]
fn t15_lines_end_with_lf_crlf_or_cr() {
    for eol in ["\n", "\r\n", "\r"] {
        let body = ["data: 1", "", "data: 2", "data: 3", "", ""].join(eol);
        assert_eq!(data(&body), ["1", "2\n3"], "{eol:?}");
        assert_eq!(end(&body), End::Clean, "{eol:?}");
    }
    assert_eq!(data("data: 1\r\n\ndata: 2\n\r\ndata: 3\r\r\ndata: 4\r\n\r"), ["1", "2", "3", "4"]);
    assert_eq!(data("data: 1\x0b\x0c\u{85}\u{2028}2\n\n"), ["1\x0b\x0c\u{85}\u{2028}2"]);
}

#[test]
fn t15_a_cr_ends_its_line_without_waiting_for_more() {
    let mut decoder = Decoder::default();
    let frame = decoder.decode(&mut &b"data: 1\r\n\r"[..]).expect("valid");
    assert_eq!(frame.expect("complete").data, "1");
    assert_eq!(decoder.decode(&mut &b"\n"[..]), Ok(None));
    let frame = decoder.decode(&mut &b"data: 2\r\r"[..]).expect("valid").expect("complete");
    assert_eq!((frame.data, frame.offset), ("2", 11));
}

#[test]
fn t16_event_id_retry_comments_and_unknown_fields_change_no_data() {
    let noise =
        "event: error\nid: 1\nretry: 5\n: x\n:\nfoo: bar\ndatax: 1\ndat: 1\nData: 1\n data: 1\nx\n";
    let body = format!("{noise}data: {{}}\n{noise}\n");
    assert_eq!(data(body), ["{}"]);
    assert_eq!(data(format!("{noise}\n")), Vec::<String>::new(), "no data line, no frame");
}

#[test]
fn t16_an_event_name_is_reported_with_its_frame_only() {
    let (frames, _) = decode(
        "event: a\nevent: b\ndata: 1\n\ndata: 2\n\nevent\ndata: 3\n\nevent: c\n\ndata: 4\n\n",
    );
    let names: Vec<_> = frames.iter().map(|frame| frame.event.as_deref()).collect();
    assert_eq!(names, [Some("b"), None, None, None]);
}

#[test]
fn t21_the_last_event_id_persists_and_tells_whose_it_is() {
    let body = "data: 1\n\nid: a\ndata: 2\n\ndata: 3\n\nid: b\n\ndata: 4\n\nid\ndata: 5\n\nid: c\nid: d\0\ndata: 6\n\n";
    let (frames, _) = decode(body);
    let ids: Vec<_> = frames.iter().map(|f| (f.id.as_deref(), f.last_event_id.as_str())).collect();
    let expected =
        [(None, ""), (Some("a"), "a"), (None, "a"), (None, "b"), (Some(""), ""), (Some("c"), "c")];
    assert_eq!(ids, expected);
}

#[test]
fn t21_the_last_event_id_of_the_decoder_waits_for_the_blank_line() {
    let mut decoder = Decoder::default();
    let mut input = &b"id: 1\ndata: 1\n\nid: 2\ndata: {"[..];
    assert!(decoder.decode(&mut input).expect("valid").is_some());
    assert_eq!(decoder.last_event_id(), "1");
    assert_eq!(decoder.decode(&mut input), Ok(None));
    assert_eq!(decoder.last_event_id(), "1", "frame 2 has not arrived");
    let ending = decoder.finish().expect("valid");
    let frame = ending.frame.expect("unfinished");
    assert_eq!((frame.id, frame.last_event_id), (Some("2"), "2"));
    assert_eq!(decoder.last_event_id(), "1");
}

#[test]
fn retry_takes_ascii_digits_only() {
    let retry = |body: &str| read(Limits::default(), [body.as_bytes()]).retry;
    assert_eq!(retry("retry: 3000\n\n"), Some(Duration::from_secs(3)));
    assert_eq!(retry("retry: 007"), None, "half a line is not believed");
    let still = Some(Duration::from_millis(7));
    for bad in ["-1", "+1", "1.5", " 1", "1 ", "", "x", "١"] {
        assert_eq!(retry(&format!("retry:007\nretry: {bad}\n\n")), still, "{bad:?}");
    }
    assert_eq!(retry("retry: 99999999999999999999\n"), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn one_byte_order_mark_at_the_start_is_skipped() {
    assert_eq!(data("\u{feff}data: 1\n\n"), ["1"]);
    assert_eq!(data("\u{feff}\u{feff}data: 1\n\ndata: 2\n\n"), ["2"]);
    assert_eq!(data("data: 1\n\n\u{feff}data: 2\n\ndata: \u{feff}3\n\n"), ["1", "\u{feff}3"]);
    assert_eq!(data(b"\xEF\xBBdata: 1\n\ndata: 2\n\n"), ["2"], "the start of a mark is no mark");
    assert_eq!(end("\u{feff}"), End::Clean);
    assert_eq!(end(b"\xEF\xBB"), End::MidLine);
    assert_eq!(end(b"\xEF\xBB\n"), End::UnterminatedFrame);
}

#[test]
fn an_empty_data_line_dispatches_and_a_bare_one_does_not() {
    assert_eq!(data("data:\n\n"), [""]);
    assert_eq!(data("data: \n\n"), [""]);
    assert_eq!(data("data\n\ndata\ndata\n\ndata: 1\n\n"), ["1"]);
    assert_eq!(data("data\ndata: 1\n\n"), ["\n1"]);
    assert_eq!(data("\n\n\r\n\r\r"), Vec::<String>::new());
}

#[test]
fn ill_formed_utf_8_becomes_replacement_characters_as_in_a_browser() {
    let cases: [(&[u8], &str); 7] = [
        (b"<\xff>", "<\u{fffd}>"),
        (b"<\xe6\x97>", "<\u{fffd}>"),
        (b"<\xc0\xaf>", "<\u{fffd}\u{fffd}>"),
        (b"<\xed\xa0\xbd>", "<\u{fffd}\u{fffd}\u{fffd}>"),
        (b"<\xf0\x9f\x98", "<\u{fffd}"),
        (b"<\xf0\x9f\x98\ndata: \x80>", "<\u{fffd}\n\u{fffd}>"),
        ("<日本語 😀>".as_bytes(), "<日本語 😀>"),
    ];
    for (bytes, text) in cases {
        let (frames, _) = decode([b"data: ", bytes, b"\n\n"].concat());
        assert_eq!(frames[0].data, text);
        assert_eq!(frames[0].replaced, text.contains('\u{fffd}'));
    }
    let (frames, _) = decode(b":\xff\xfe\n\nid: \xff\nevent: \xff\ndata: 1\n\n");
    assert_eq!(frames[0].id.as_deref(), Some("\u{fffd}"));
    assert_eq!(frames[0].event.as_deref(), Some("\u{fffd}"));
    assert!(!frames[0].replaced);
}

#[test]
fn t9_a_last_frame_without_blank_line_is_dispatched_and_the_end_told_apart() {
    let cases = [
        ("", vec![], End::Clean),
        ("data: 1\n\n", vec!["1"], End::Clean),
        ("data: 1\r\r", vec!["1"], End::Clean),
        ("data: 1\n\n: bye\n", vec!["1"], End::Clean),
        ("data: 1\n", vec!["1"], End::UnterminatedFrame),
        ("data: 1\r", vec!["1"], End::UnterminatedFrame),
        ("data: 1\nid: 5\n", vec!["1"], End::UnterminatedFrame),
        ("id: 5\n", vec![], End::UnterminatedFrame),
        ("data: 1", vec!["1"], End::MidLine),
        ("data: {\ndata: \"a", vec!["{\n\"a"], End::MidLine),
        ("data:", vec![""], End::MidLine),
        ("data: 1\ndata:", vec!["1\n"], End::MidLine),
        ("data", vec![], End::MidLine),
        ("data: 1\ndata", vec!["1"], End::MidLine),
        ("data: 1\n\n: bye", vec!["1"], End::MidLine),
        ("data: 1\n\nda", vec!["1"], End::MidLine),
        ("{\"type\":\"RUN_STARTED\"}\n", vec![], End::UnterminatedFrame),
    ];
    for (body, frames, place) in cases {
        assert_eq!(data(body), frames, "{body:?}");
        assert_eq!(end(body), place, "{body:?}");
    }
}

#[test]
fn half_an_id_or_event_at_the_end_is_not_believed() {
    let (frames, end) = decode("id: 1\nevent: a\ndata: 1\nid: 12");
    assert_eq!((frames[0].id.as_deref(), end), (Some("1"), End::MidLine));
    let (frames, _) = decode("event: a\ndata: 1\nevent: ab");
    assert_eq!(frames[0].event.as_deref(), Some("a"));
}

#[test]
fn offsets_name_the_first_line_and_the_first_value_of_a_frame() {
    let body = "\u{feff}\r\n: x\r\nid: 1\r\ndata: ab\r\ndata: c\r\n\r\n: y\n\ndata:d\n\n";
    let (frames, _) = decode(body);
    for (frame, (line, value)) in frames.iter().zip([("id: 1", "ab"), ("data:d", "d\n")]) {
        assert_eq!(frame.offset, body.find(line).expect("there") as u64);
        assert_eq!(frame.data_offset, body.rfind(value).expect("there") as u64);
    }
}

#[test]
fn a_frame_inside_one_read_is_borrowed_from_it() {
    let mut decoder = Decoder::default();
    let body = b": x\nid: 1\ndata: {\"a\":1}\nevent: e\n\n".to_vec();
    let mut input = &body[..];
    let frame = decoder.decode(&mut input).expect("valid").expect("complete");
    let place = frame.data.as_bytes().as_ptr_range();
    assert!(body.as_ptr_range().start < place.start && place.end < body.as_ptr_range().end);
    assert!(input.is_empty());
}

#[test]
fn breaking_out_leaves_the_rest_in_the_input() {
    let mut decoder = Decoder::default();
    let mut input = &b"data: 1\n\ndata: 2\n\n"[..];
    assert_eq!(decoder.decode(&mut input).expect("valid").expect("frame").data, "1");
    assert_eq!(input, b"data: 2\n\n");
    assert_eq!(decoder.decode(&mut input).expect("valid").expect("frame").data, "2");
    assert_eq!(decoder.decode(&mut input), Ok(None));
    assert_eq!(decoder.decode(&mut input), Ok(None));
}

#[test]
fn after_its_end_a_decoder_takes_another_body() {
    let mut decoder = Decoder::default();
    for body in ["\u{feff}id: 7\nretry: 9\ndata: 1\n\ndata: cu", "\u{feff}data: 2\r"] {
        let mut input = body.as_bytes();
        while let Some(frame) = decoder.decode(&mut input).expect("valid") {
            assert_eq!((frame.data, frame.offset), ("1", 3));
        }
        let ending = decoder.finish().expect("valid");
        let frame = ending.frame.expect("unfinished");
        assert_eq!(frame.data, if body.len() > 20 { "cu" } else { "2" });
        assert_eq!(frame.last_event_id, "7");
    }
    assert_eq!(decoder.decode(&mut &b"\ndata: 3"[..]), Ok(None), "no LF was awaited");
    let ending = decoder.finish().expect("valid");
    assert_eq!(ending.frame.expect("unfinished").offset, 1);
    assert_eq!(decoder.finish().expect("valid").end, End::Clean);
    assert_eq!(decoder.retry(), Some(Duration::from_millis(9)));
}

#[test]
fn the_frame_limit_counts_the_lines_of_one_frame_but_no_comments_or_line_ends() {
    let limits = Limits::default().with_frame_bytes(20);
    // 7 + 6 + 7 bytes.
    assert_eq!(failure(limits, "data: 1\r\nfoo: x\r\ndata: 2\r\n\r\n"), None);
    assert_eq!(failure(limits, "data: 1\nfoo: x\n: a long comment line\ndata: 2\n\n"), None);
    assert_eq!(failure(limits, "data: 1\n\n".repeat(9)), None);
    let exceeded = Some((Limit::FrameBytes, 20, 2));
    assert_eq!(failure(limits, "\n\ndata: 1\nfoo: x\ndata: 23"), exceeded);
    assert_eq!(failure(limits, "\n\nfoo: 1\n: x\nfoo: x\nfoo: 234x\n"), exceeded);
    assert_eq!(failure(limits, "\n\ndata: 012345678901234"), exceeded);
    assert_eq!(failure(limits, "\n\ndata: 01234567890123"), None);
    let empty_lines = "data\n".repeat(6);
    assert_eq!(failure(limits, empty_lines), Some((Limit::FrameBytes, 20, 0)));
}

#[test]
fn the_line_limit_counts_one_field_line() {
    let limits = Limits::default().with_line_bytes(8);
    assert_eq!(failure(limits, "data: 12\r\n: a long comment\ndata: 34\nid: 5678\n\n"), None);
    assert_eq!(failure(limits, "id: 1\ndata: 123\n\n"), Some((Limit::LineBytes, 8, 6)));
    assert_eq!(failure(limits, "id: 1\nunknown: x\n\n"), Some((Limit::LineBytes, 8, 6)));
}

#[test]
fn t16_the_comment_limit_counts_one_comment_and_keep_alives_never_add_up() {
    let limits = Limits::default().with_comment_bytes(6).with_frame_bytes(10);
    assert_eq!(failure(limits, ": ping\n".repeat(100)), None);
    assert_eq!(failure(limits, ":\n\n".repeat(100)), None);
    assert_eq!(failure(limits, format!("data: 1\n{}\n", ": ping\n".repeat(100))), None);
    assert_eq!(failure(limits, "\n: pings"), Some((Limit::CommentBytes, 6, 1)));
    assert_eq!(failure(limits, "data: 1\n: pings\n"), Some((Limit::CommentBytes, 6, 8)));
}

#[test]
fn the_id_and_event_limits_count_the_value() {
    let limits = Limits::default().with_id_bytes(3).with_event_bytes(4);
    assert_eq!(failure(limits, "id: 123\nid:123\nevent: 1234\nevent:1234\ndata: 12345\n\n"), None);
    assert_eq!(failure(limits, "\nid: 1234\n"), Some((Limit::IdBytes, 3, 1)));
    assert_eq!(failure(limits, "\nid:1234"), Some((Limit::IdBytes, 3, 1)));
    assert_eq!(failure(limits, "\nid:\0\0\0\0"), Some((Limit::IdBytes, 3, 1)));
    assert_eq!(failure(limits, "event: 12345\n"), Some((Limit::EventBytes, 4, 0)));
}

#[test]
fn of_several_limits_the_one_passed_first_is_named() {
    let limits = Limits::default().with_line_bytes(9).with_id_bytes(6).with_frame_bytes(12);
    assert_eq!(failure(limits, "id: 1234567890"), Some((Limit::LineBytes, 9, 0)));
    assert_eq!(failure(limits, "id:1234567890"), Some((Limit::LineBytes, 9, 0)));
    let limits = limits.with_id_bytes(5);
    assert_eq!(failure(limits, "id:1234567890"), Some((Limit::IdBytes, 5, 0)));
    assert_eq!(failure(limits, "foo:1\nid:1234567890"), Some((Limit::FrameBytes, 12, 0)));
}

#[test]
fn frames_before_the_failure_are_handed_out_and_the_decoder_stays_failed() {
    let mut decoder = Decoder::new(Limits::default().with_frame_bytes(16));
    let mut input = &b"data: 1\n\ndata: 2\n\ndata: {\"type\":\"RAW\"}\n\ndata: 3\n\n"[..];
    assert_eq!(decoder.decode(&mut input).expect("valid").expect("frame").data, "1");
    assert_eq!(decoder.decode(&mut input).expect("valid").expect("frame").data, "2");
    let error = decoder.decode(&mut input).expect_err("too long");
    assert_eq!((error.limit, error.max, error.offset), (Limit::FrameBytes, 16, 18));
    assert_eq!(
        error.to_string(),
        "the frame that starts at byte 18 of the body exceeds frame_bytes = 16: \
         the sender must end its frames sooner, or the limit be raised"
    );
    assert_eq!(decoder.decode(&mut &b"data: 4\n\n"[..]), Err(error));
    assert_eq!(decoder.finish(), Err(error));
    assert_eq!(decoder.error(), Some(error));
}

#[test]
fn the_defaults_are_those_documented() {
    let limits = Limits::default();
    assert_eq!(limits.frame_bytes, 10 * 1024 * 1024);
    assert_eq!(limits.line_bytes, 10 * 1024 * 1024);
    assert_eq!(limits.comment_bytes, 10 * 1024 * 1024);
    assert_eq!(limits.id_bytes, 64 * 1024);
    assert_eq!(limits.event_bytes, 64 * 1024);
}
