//! Lines of JSON as events: compacting them keeps what they fold to.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_stream::fuzzing::compaction(input));
