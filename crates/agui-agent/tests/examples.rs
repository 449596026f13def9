//! The examples run and do what they say.
#![allow(dead_code)]

#[path = "../examples/approval.rs"]
mod approval;
#[path = "../examples/frontend_tools.rs"]
mod frontend_tools;
#[path = "../examples/in_process.rs"]
mod in_process;
#[path = "../examples/middleware.rs"]
mod middleware;
#[path = "../examples/shared_state.rs"]
mod shared_state;

#[tokio::test]
async fn shared_state() {
    // P-46, P-49
    let changes = shared_state::example().await.unwrap();
    assert_eq!(
        changes,
        [
            r#"[{"op":"replace","path":"/title","value":"Flatbread"}]"#,
            r#"[{"op":"add","path":"/ingredients/-","value":{"name":"flour","grams":300}}]"#,
            r#"[{"op":"add","path":"/ingredients/-","value":{"name":"water","grams":180}}]"#,
            r#"[{"op":"replace","path":"/ingredients","value":[{"name":"flour","grams":600},{"name":"water","grams":360}]}]"#,
        ]
    );
}

#[tokio::test]
async fn approval() {
    // P-67, P-69
    let said = approval::example().await.unwrap();
    assert_eq!(said, ["Delete the report?", "The report is deleted.", "Then the report stays."]);
}

#[tokio::test]
async fn frontend_tools() {
    // P-31, C-54, C-55
    assert_eq!(frontend_tools::example().await.unwrap(), "It will be teal.");
}

#[tokio::test]
async fn middleware() {
    let [events, refused] = middleware::example().await.unwrap();
    let text: String = events.iter().filter(|it| !it.contains('_')).map(String::as_str).collect();
    assert_eq!(text, "God dag, Kari.");
    assert!(!events.iter().any(|event| event.starts_with("TOOL_CALL")), "{events:?}");
    assert_eq!(refused, [r#"/messages/0: messages of the role "system" are not taken"#]);
}

#[tokio::test]
async fn in_process() {
    // C-33
    let (roles, ending) = in_process::example().await.unwrap();
    assert_eq!((roles.join(" ").as_str(), ending.as_str()), ("user assistant", "completed"));
}
