//! Lines of JSON as events: no panic, and what is delivered conforms.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_stream::fuzzing::pipeline(input));
