//! What is written to the log, and what is not.

mod common;
#[path = "../../agui-agent/tests/logged/mod.rs"]
mod logged;

use common::*;
use logged::logged;
use serde_json::{Value, json};
use tracing::Level;

/// What is logged while a viewer connects with this member in its body; in an envelope, too.
fn connecting_with(name: &'static str, value: impl Fn(&str) -> Value) -> String {
    logged(Level::WARN, async {
        let fixture = fixture();
        let asked = request("POST", "/agent/default/run", input("t", "r", &[("m1", "Go")]));
        let ran = ask(&fixture, asked).await;
        let place = ran.body.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
        let mut body = input("t", "x", &[]);
        body[name] = value(place);
        let envelope = json!({
            "method": "agent/connect", "params": {"agentId": "default"}, "body": body,
        });
        let connecting = request("POST", "/agent/default/connect", body);
        let answer = ask(&fixture, connecting).await;
        assert_eq!(ask(&fixture, request("POST", "", envelope)).await.body, answer.body);
        let seen = if name == "lastSeenEventId" { 1 } else { 0 };
        assert_eq!(answer.types(), ran.types()[seen..]);
    })
}

/// C-23: a member that the runtime reads itself is none that nobody knows, and is passed over in silence
/// at each return of a viewer; others are warned about.
#[test]
fn the_place_of_a_viewer_is_no_unknown_member() {
    assert_eq!(connecting_with("lastSeenEventId", |place| json!(place)), "");
    let warned = connecting_with("lastSeen", |place| json!(place));
    assert!(warned.contains("C-23") && warned.contains("/lastSeen"), "{warned}");
}
