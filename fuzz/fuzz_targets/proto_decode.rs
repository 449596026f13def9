//! Any bytes as a message of protobuf: no panic, and what was read is written and read again.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_wire::fuzzing::proto_decode(input));
