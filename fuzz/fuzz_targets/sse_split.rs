//! A body, cuts and limits: the cuts change nothing.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_wire::fuzzing::sse_split(input));
