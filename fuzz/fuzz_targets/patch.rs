//! A document and a patch: all of it applies or nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_stream::fuzzing::patch(input));
