//! What the SSE decoder and encoder allocate, counted for the thread that runs the test.

mod counting;

use agui_wire::sse::{Decoder, Encoder, Limit, Limits};

use counting::counted;

fn drain(decoder: &mut Decoder, mut read: &[u8]) -> usize {
    let mut bytes = 0;
    while let Some(frame) = decoder.decode(&mut read).expect("within the limits") {
        bytes += frame.data.len();
    }
    bytes
}

#[test]
fn a_steady_stream_allocates_nothing() {
    let mut body = Vec::new();
    for n in 0..200 {
        Encoder::comment(&mut body, "keep-alive");
        let id = format!("run-1/{n:04}");
        let encoder = Encoder::new().id(&id).and_then(|encoder| encoder.event("e"));
        let event = format!("{{\"type\":\"TEXT_MESSAGE_CONTENT\",\"delta\":\"{n:04}\"}}");
        encoder.expect("valid").frame(&mut body, event);
        body.extend_from_slice(b"data: {\r\ndata:\"a\": 1}\r\nretry: 7\r\n\r\n");
        body.extend_from_slice(b"data: {\"b\": \"\xff\"}\n\n");
    }
    for size in [7, 100, 1 << 14, body.len()] {
        let mut decoder = Decoder::default();
        body.chunks(size).for_each(|read| assert!(drain(&mut decoder, read) < body.len()));
        let (bytes, count) = counted(|| {
            let reads = body.chunks(size);
            reads.map(|read| drain(&mut decoder, read)).sum::<usize>()
        });
        assert!(bytes > 200 * 40, "{bytes}");
        assert_eq!(count.calls, 0, "in reads of {size}");
    }
}

#[test]
fn a_frame_inside_one_read_allocates_nothing_at_all() {
    let body = b"data: {\"type\":\"RUN_STARTED\"}\n\n: x\n\ndata: {}\r\n\r\n";
    let (bytes, count) = counted(|| drain(&mut Decoder::default(), body));
    assert_eq!((bytes, count.calls), (24, 0));
}

#[test]
fn a_large_frame_in_small_reads_is_linear_work() {
    const SIZE: usize = 8 << 20;
    let mut body = b"data: ".to_vec();
    body.resize(6 + SIZE, b'x');
    body.extend_from_slice(b"\n\n");
    let (bytes, count) = counted(|| {
        let mut decoder = Decoder::default();
        body.chunks(1 << 10).map(|read| drain(&mut decoder, read)).sum::<usize>()
    });
    assert_eq!(bytes, SIZE);
    // 1 KiB doubled to 8 MiB: the sum of all blocks is less than twice the last.
    assert!(count.total <= 2 * SIZE, "{}", count.total);
    assert!(count.calls <= 14, "{}", count.calls);
}

#[test]
fn an_endless_frame_stops_at_the_limit_with_bounded_memory() {
    const LIMIT: usize = 10 << 20;
    for start in
        ["data: ", "data: {\ndata: ", "foo: ", "id: ", "event: ", "retry: ", ": ", "data\ndat"]
    {
        let read = vec![b'1'; 1 << 20];
        let ((reads, limit), count) = counted(|| {
            let mut decoder = Decoder::default();
            drain(&mut decoder, start.as_bytes());
            (0..1000)
                .find_map(|n| decoder.decode(&mut &read[..]).err().map(|error| (n, error.limit)))
                .expect("stops")
        });
        let expected = match start {
            ": " => Limit::CommentBytes,
            "id: " => Limit::IdBytes,
            "event: " => Limit::EventBytes,
            _ => Limit::FrameBytes,
        };
        assert_eq!(limit, expected, "{start:?}");
        assert!(reads <= 10, "{start:?}: {reads}");
        // Growing takes a new block of at most the limit beside the old one.
        assert!(count.peak <= 2 * LIMIT, "{start:?}: {}", count.peak);
        assert!(count.total <= 3 * LIMIT, "{start:?}: {}", count.total);
    }
}

#[test]
fn endless_lines_of_one_frame_stop_at_the_limit_with_bounded_memory() {
    const LIMIT: usize = 1 << 16;
    for line in ["data\n", "data: 1\n", "foo\n", "id: 1\n", "event: x\r\n", "retry: 1\r"] {
        let read = line.repeat(1000);
        let ((), count) = counted(|| {
            let mut decoder = Decoder::new(Limits::default().with_frame_bytes(LIMIT));
            let mut body = std::iter::repeat_n(read.as_bytes(), LIMIT);
            let error = body.find_map(|mut read| decoder.decode(&mut read).err()).expect("stops");
            assert_eq!((error.limit, error.offset), (Limit::FrameBytes, 0));
        });
        assert!(count.peak <= 2 * LIMIT, "{line:?}: {}", count.peak);
    }
}

#[test]
fn endless_comments_and_blank_lines_hold_no_memory() {
    for line in [": keep-alive\n", ":\r\n\r\n", "\n", "\r"] {
        let read = line.repeat(1000);
        let (frames, count) = counted(|| {
            let mut decoder = Decoder::new(Limits::default().with_frame_bytes(64));
            (0..1000).map(|_| drain(&mut decoder, read.as_bytes())).sum::<usize>()
        });
        assert_eq!((frames, count.calls), (0, 0), "{line:?}");
    }
}

#[test]
fn encoding_into_a_reused_buffer_allocates_nothing() {
    let mut body = Vec::with_capacity(256);
    let ((), count) = counted(|| {
        for _ in 0..100 {
            body.clear();
            Encoder::comment(&mut body, "keep-alive");
            let encoder = Encoder::new().id("run-1/7").expect("valid");
            encoder.frame(&mut body, "{\n}");
            let written: Result<(), std::io::Error> = encoder.frame_with(&mut body, |body| {
                body.extend_from_slice(b"{\r\n}");
                Ok(())
            });
            written.expect("written");
        }
    });
    assert_eq!(count.calls, 0);
    assert_eq!(body, b": keep-alive\n\nid: run-1/7\ndata: { }\n\nid: run-1/7\ndata: {  }\n\n");
}
