//! What the reader of partial JSON allocates, counted for the thread that runs the test.

mod counting;

use agui_stream::partial::{PartialJson, PartialState};
use agui_types::json::MAX_DEPTH;

use counting::{Count, counted};

const MIB: usize = 1 << 20;

/// Reads about a MiB in 10,000 pieces and looks at the value after each.
fn read(text: &str) -> Count {
    let size = text.len().div_ceil(10_000);
    let (partial, count) = counted(|| {
        let mut partial = PartialJson::new();
        for piece in text.as_bytes().chunks(size) {
            partial.push(std::str::from_utf8(piece).expect("ASCII"));
            assert!(partial.value().is_some());
        }
        partial
    });
    assert_eq!(partial.state(), PartialState::Complete);
    assert_eq!(partial.repaired(), text);
    count
}

#[test]
fn a_long_string_in_10_000_pieces_is_linear_work() {
    let text = format!(r#"{{"path":"a.txt","content":"{}"}}"#, "x".repeat(MIB));
    let count = read(&text);
    // The text and the string, each doubled until it fits: less than four times the last block.
    assert!(count.bytes <= 8 * MIB, "{}", count.bytes);
    assert!(count.calls <= 60, "{}", count.calls);
}

#[test]
fn a_long_escaped_string_is_linear_work() {
    let text = format!(r#"["{}"]"#, r"\u00e9\n\ud83d\ude00".repeat(MIB / 20));
    let count = read(&text);
    assert!(count.bytes <= 8 * MIB, "{}", count.bytes);
    assert!(count.calls <= 60, "{}", count.calls);
}

#[test]
fn pieces_of_a_number_cost_at_most_its_bound() {
    let text = format!("[{}]", vec!["7".repeat(1000); MIB / 1000].join(","));
    let count = read(&text);
    // Shown anew with each of the 10,000 pieces, and once more when it ends.
    assert!(count.calls <= 12_000, "{}", count.calls);
    assert!(count.bytes <= 12_000 * 1000 + 8 * MIB, "{}", count.bytes);
}

#[test]
fn twice_the_text_is_twice_the_work() {
    let rows = |count: usize| {
        let row = r#"{"name":"Ada","tags":["a","b"],"n":-1.5e3,"deep":[[[{"ok":true}]]]}"#;
        format!("[{}]", vec![row; count].join(","))
    };
    let (once, twice) = (read(&rows(8_000)), read(&rows(16_000)));
    assert!(twice.bytes <= once.bytes * 21 / 10, "{} {}", once.bytes, twice.bytes);
    assert!(twice.calls <= once.calls * 21 / 10, "{} {}", once.calls, twice.calls);
}

#[test]
fn a_piece_costs_no_memory_for_the_levels_around_it() {
    let mut partial = PartialJson::new();
    partial.push(&"[".repeat(MAX_DEPTH));
    partial.push("\"");
    let ((), count) = counted(|| (0..10_000).for_each(|_| partial.push("x")));
    // The text and the string double; the levels are moved, not copied.
    assert!(count.calls <= 30, "{}", count.calls);
    assert!(count.bytes <= 8 * 10_000, "{}", count.bytes);
}
