//! A text in pieces: the pieces change nothing, and what is shown is JSON.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_stream::fuzzing::partial_json(input));
