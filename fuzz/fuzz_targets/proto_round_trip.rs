//! Any text as an event: what it becomes on either form reads as the same again.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_wire::fuzzing::proto_round_trip(input));
