//! The recorded answers to `Accept` headers.

use agui_wire::{WireForm, negotiate};
use serde_json::Value;

const VECTORS: &str = include_str!("data/accept-headers.jsonl");

#[test]
fn t24_every_recorded_accept_header_is_answered_as_recorded() {
    let mut counts = [0, 0];
    for line in VECTORS.lines() {
        let line: Value = serde_json::from_str(line).expect("a vector");
        let form = negotiate(line["input"]["accept"].as_str());
        assert_eq!(form.media_type(), line["expect"]["contentType"], "{line}");
        let kind = if form == WireForm::Proto { "proto" } else { "sse" };
        assert_eq!(kind, line["expect"]["kind"], "{line}");
        counts[usize::from(form == WireForm::Proto)] += 1;
    }
    assert_eq!(counts.iter().sum::<i32>(), 200);
    assert!(counts[0] > 50 && counts[1] > 50, "{counts:?}");
}
