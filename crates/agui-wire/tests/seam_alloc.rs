//! What decoding and encoding events allocate, in either form.

mod corpus;
mod counting;

use agui_types::event::{RunError, StateSnapshot, TextMessageContent, ToolCallArgs};
use agui_types::{Event, EventReader, Json};
use agui_wire::{DecodeErrorKind, Decoder, Encoder, Limit, Limits, WireForm, proto::Problem};

use counting::{Count, counted};

const FORMS: [WireForm; 2] = [WireForm::Sse, WireForm::Proto];

fn drain(decoder: &mut Decoder, mut read: &[u8]) -> usize {
    let mut events = 0;
    while let Some(decoded) = decoder.decode(&mut read).expect("within the limits") {
        events += usize::from(decoded.event.is_some());
    }
    events
}

fn decoded(form: WireForm, body: &[u8], size: usize) -> (usize, Count) {
    let mut decoder = Decoder::new(form, Limits::default());
    counted(|| body.chunks(size).map(|read| drain(&mut decoder, read)).sum())
}

fn encoded(form: WireForm, events: &[Event]) -> Vec<u8> {
    let (mut encoder, mut body) = (Encoder::new(form), Vec::new());
    for event in events {
        encoder.encode(event, None, &mut body).expect("a form");
    }
    body
}

#[test]
fn a_token_takes_one_allocation_its_text() {
    for form in FORMS {
        for event in [
            Event::from(TextMessageContent::new("message-1", "token")),
            ToolCallArgs::new("call-1", "{\"a\":").into(),
        ] {
            let body = encoded(form, &vec![event; 1000]);
            for size in [1 << 14, 100, 7] {
                let (events, count) = decoded(form, &body, size);
                assert_eq!(events, 1000);
                // The id once; a buffer for frames that are cut, which grows a few times.
                assert!(count.calls <= 1000 + 4, "{form}, reads of {size}: {}", count.calls);
            }
        }
    }
}

#[test]
fn the_token_workload_takes_one_allocation_a_token() {
    let Some(body) = corpus::unpacked("workloads/w1-token-stream.sse.gz") else { return };
    let (events, count) = decoded(WireForm::Sse, &body, 16 << 10);
    assert_eq!(events, 50_004);
    assert!(count.calls <= events + 16, "{}", count.calls);

    let text = std::str::from_utf8(&body).expect("text");
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut reader = EventReader::new();
    let events: Vec<Event> =
        lines.map(|line| reader.tolerant(line).expect("an event").value).collect();
    let body = encoded(WireForm::Proto, &events);
    let (events, count) = decoded(WireForm::Proto, &body, 16 << 10);
    assert_eq!(events, 50_004);
    assert!(count.calls <= events + 16, "{}", count.calls);
}

#[test]
fn encoding_into_a_reused_buffer_allocates_nothing() {
    let value = Json::parse(&format!("[{:?},{{\"a\":1}}]", "x".repeat(300))).expect("JSON");
    let events: [Event; 3] = [
        TextMessageContent::new("message-1", "token").into(),
        RunError::new("no \"more\"\n").code("x").into(),
        StateSnapshot::new(value).into(),
    ];
    for form in FORMS {
        let (mut encoder, mut body) = (Encoder::new(form), Vec::new());
        let mut pass = || {
            body.clear();
            for event in &events {
                encoder.encode(event, Some("run-1/7"), &mut body).expect("a form");
            }
            encoder.keep_alive(&mut body);
        };
        pass();
        let ((), count) = counted(|| (0..100).for_each(|_| pass()));
        assert_eq!(count.calls, 0, "{form}");
    }
}

/// How much of a long stream is decoded: all of the gigabyte where `AGUI_LONG_TESTS` is set.
fn long_stream() -> usize {
    if std::env::var_os("AGUI_LONG_TESTS").is_some() { 1 << 30 } else { 64 << 20 }
}

#[test]
fn a_long_stream_of_small_frames_holds_no_memory() {
    for form in FORMS {
        let events: Vec<Event> = (0..1000)
            .map(|n| TextMessageContent::new(format!("message-{n}"), "token \"é\"").into())
            .collect();
        let body = encoded(form, &events);
        // Reads that cut frames in ever other places.
        let mut decoder = Decoder::new(form, Limits::default());
        let (bytes, count) = counted(|| {
            let mut bytes = 0;
            while bytes < long_stream() {
                for read in body.chunks(4093) {
                    drain(&mut decoder, read);
                }
                bytes += body.len();
            }
            bytes
        });
        assert!(bytes >= 64 << 20);
        // One event at a time, the ids met last, one cut frame.
        assert!(count.peak <= 16 << 10, "{form}: {}", count.peak);
        assert!(count.held <= 8 << 10, "{form}: {}", count.held);
    }
}

#[test]
fn an_endless_frame_stops_at_the_limit_in_either_form() {
    const LIMIT: usize = 10 << 20;
    let read = vec![b'1'; 1 << 20];
    let ((reads, error), count) = counted(|| {
        let mut decoder = Decoder::new(WireForm::Sse, Limits::default());
        drain(&mut decoder, b"data: ");
        let mut reads = (0..1000).map(|n| (n, decoder.decode(&mut &read[..]).err()));
        reads.find_map(|(n, error)| Some((n, error?))).expect("stops")
    });
    assert!(reads <= 10, "{reads}");
    assert_eq!(error.limit().expect("a limit").limit, Limit::FrameBytes);
    assert!(count.peak <= 2 * LIMIT + 1024, "{}", count.peak);

    // Protobuf says in advance how long it will be.
    let bomb = (LIMIT as u32 - 3).to_be_bytes();
    let (error, count) = counted(|| {
        let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
        let error = decoder.decode(&mut &bomb[..]).expect_err("announced");
        assert_eq!(decoder.decode(&mut &read[..]).expect_err("stays failed"), error);
        error
    });
    assert_eq!(error.kind(), DecodeErrorKind::Limit);
    assert!(count.peak < 1024, "refused on the header: {}", count.peak);
}

#[test]
fn t27_a_frame_at_the_limit_passes_and_one_byte_more_does_not() {
    let event = [TextMessageContent::new("m", "x".repeat(1000)).into()];
    for form in FORMS {
        let body = encoded(form, &event);
        let size = match form {
            // The line, without its end and the blank line.
            WireForm::Sse => body.len() - 2,
            _ => body.len(),
        };
        let limits = Limits::default().with_frame_bytes(size);
        assert_eq!(drain(&mut Decoder::new(form, limits), &body), 1, "{form}");
        let limits = Limits::default().with_frame_bytes(size - 1);
        let error = Decoder::new(form, limits).decode(&mut &body[..]).expect_err("too long");
        let exceeded = error.limit().expect("a limit");
        assert_eq!(
            (exceeded.limit, exceeded.max, exceeded.offset),
            (Limit::FrameBytes, size - 1, 0)
        );
        let text = std::error::Error::source(&error).expect("a source").to_string();
        assert!(text.contains(&format!("frame_bytes = {}", size - 1)), "{text}");
    }
}

#[test]
fn what_is_announced_is_not_held_before_it_comes() {
    let mut body = (9u32 << 20).to_be_bytes().to_vec();
    body.resize(4 + 3000, 0x0a);
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let (events, count) =
        counted(|| body.chunks(100).map(|read| drain(&mut decoder, read)).sum::<usize>());
    assert_eq!(events, 0);
    assert!(count.peak <= 3 * 4096, "{}", count.peak);
    let error = decoder.finish().expect_err("cut");
    assert_eq!((error.kind(), error.offset()), (DecodeErrorKind::TruncatedFrame, 0));
}

#[test]
fn a_large_frame_in_small_reads_is_linear_work() {
    const SIZE: usize = 8 << 20;
    let text = Json::encode(&"x".repeat(SIZE)).expect("JSON");
    for form in FORMS {
        let body = encoded(form, &[StateSnapshot::new(text.clone()).into()]);
        let (events, count) = decoded(form, &body, 1 << 10);
        assert_eq!(events, 1);
        // The frame once with the doublings of its buffer, and the value out of it.
        assert!(count.total <= 6 * SIZE, "{form}: {}", count.total);
        assert!(count.calls <= 60, "{form}: {}", count.calls);
    }
}

#[test]
fn short_spellings_of_large_things_are_counted() {
    // Usage entries of two bytes each, and patch operations merged out of as many pieces.
    let tags: [(&[u8], &[u8]); 2] =
        [(b"\x0a\x02\x08\x0c", b"\x3a\x00"), (b"\x0a\x02\x08\x0c", b"\x22\x00")];
    for (base, item) in tags {
        let limits = Limits::default().with_list_items(1000);
        let mut at_the_limit = None;
        for items in [1000, 1001, 1002, 4 << 20] {
            let mut event = base.to_vec();
            event.extend(item.repeat(items));
            let mut message = vec![0x6a];
            let mut length = event.len();
            while length >= 0x80 {
                message.push((length & 0x7f) as u8 | 0x80);
                length >>= 7;
            }
            message.push(length as u8);
            message.extend_from_slice(&event);
            let body = agui_wire::fuzzing::framed(&message);
            let (result, count) = counted(|| {
                let mut decoder = Decoder::new(WireForm::Proto, limits);
                decoder.decode(&mut &body[..]).map(|_| ())
            });
            match result {
                Ok(()) => at_the_limit = Some(items),
                Err(error) => {
                    let exceeded = error.limit().expect("a limit");
                    assert_eq!((exceeded.limit, exceeded.max), (Limit::ListItems, 1000));
                }
            }
            assert!(count.peak < 1 << 20, "{items} items: {}", count.peak);
        }
        // What merges is counted from the second on.
        assert_eq!(at_the_limit, Some(if item[0] == 0x22 { 1001 } else { 1000 }));
    }
}

#[test]
fn t29_a_truncated_header_is_told_apart_from_a_clean_end() {
    let event = encoded(WireForm::Proto, &[RunError::new("x").into()]);
    for cut in 0..=event.len() {
        let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
        let events = drain(&mut decoder, &event[..cut]);
        let end = decoder.finish();
        match cut {
            0 => assert!(end.is_ok()),
            _ if cut == event.len() => assert!(end.is_ok() && events == 1),
            _ => {
                let error = end.expect_err("T-29");
                assert_eq!(error.kind(), DecodeErrorKind::TruncatedFrame);
                let source = std::error::Error::source(&error).expect("a source").to_string();
                assert!(source.starts_with(&format!("{cut} bytes of ")), "{source}");
            }
        }
    }
    let mut decoder = Decoder::new(WireForm::Proto, Limits::default());
    let error =
        decoder.decode(&mut &b"\0\0\0\x02\x0a\x05"[..]).expect_err("T-31: whole, but no message");
    assert_eq!(error.proto_error().expect("a fault").problem, Problem::Length);
}
