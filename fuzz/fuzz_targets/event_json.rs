//! Any bytes as an event: no panic, the readings agree, and what is written reads the same.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_types::fuzzing::event_json(input));
