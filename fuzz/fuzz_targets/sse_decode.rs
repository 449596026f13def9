//! Any bytes: no panic, and the same frames as a line-by-line reference.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_wire::fuzzing::sse_decode(input));
