//! A body of either form, cuts and limits: the cuts change nothing, and the fast path reads what the
//! full parser reads.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| agui_wire::fuzzing::seam_split(input));
