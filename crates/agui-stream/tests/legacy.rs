//! What the bridge to the protocol from before AG-UI says, and what it warns of.
#![cfg(feature = "legacy")]

use agui_stream::Warning;
use agui_stream::legacy::LegacyBridge;
use agui_types::EventReader;

/// What a run becomes, an event a line, with the rules of what is lost.
fn bridge(lines: &str) -> (Vec<String>, Vec<&'static str>) {
    let mut bridge = LegacyBridge::new("t".into(), "r".into(), "agent");
    let mut warnings: Vec<Warning> = Vec::new();
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty());
    let events = lines.map(|line| EventReader::new().exact(line).expect("an event"));
    let legacy: Vec<_> = events.filter_map(|event| bridge.push(&event, &mut warnings)).collect();
    (
        legacy.iter().map(|event| serde_json::to_string(event).expect("JSON")).collect(),
        warnings.iter().map(|warning| warning.rule).collect(),
    )
}

fn state(node: &str, running: bool, state: &str, active: bool) -> String {
    format!(
        r#"{{"type":"AgentStateMessage","threadId":"t","agentName":"agent","nodeName":"{node}","runId":"r","running":{running},"role":"assistant","state":{state:?},"active":{active}}}"#
    )
}

#[test]
fn texts_and_calls_are_translated_one_to_one() {
    let (events, warned) = bridge(
        r#"
        {"type":"RUN_STARTED","threadId":"t","runId":"r"}
        {"type":"TEXT_MESSAGE_START","messageId":"m","role":"user","name":"Ada"}
        {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"hi"}
        {"type":"TEXT_MESSAGE_END","messageId":"m"}
        {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
        {"type":"TOOL_CALL_END","toolCallId":"c"}
        {"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"c","content":"ok"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(
        events,
        [
            r#"{"type":"TextMessageStart","messageId":"m","role":"user"}"#,
            r#"{"type":"TextMessageContent","messageId":"m","content":"hi"}"#,
            r#"{"type":"TextMessageEnd","messageId":"m"}"#,
            r#"{"type":"ActionExecutionStart","actionExecutionId":"c","actionName":"f","parentMessageId":"m"}"#,
            r#"{"type":"ActionExecutionArgs","actionExecutionId":"c","args":"{}"}"#,
            r#"{"type":"ActionExecutionEnd","actionExecutionId":"c"}"#,
            r#"{"type":"ActionExecutionResult","actionExecutionId":"c","actionName":"f","result":"ok"}"#,
        ]
    );
    assert!(warned.is_empty(), "{warned:?}");
}

/// C-67, P-93: a patch that fails and a state that is no object change nothing, and are told.
#[test]
fn the_state_goes_out_whole() {
    let (events, warned) = bridge(
        r#"
        {"type":"STATE_SNAPSHOT","snapshot":{"n":1.0}}
        {"type":"STEP_STARTED","stepName":"s"}
        {"type":"STATE_DELTA","delta":[{"op":"remove","path":"/x"}]}
        {"type":"STATE_SNAPSHOT","snapshot":7}
        {"type":"STATE_DELTA","delta":[{"op":"add","path":"/m","value":2}]}
        {"type":"CUSTOM","name":"Exit","value":null}
        {"type":"STEP_FINISHED","stepName":"s"}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let (before, after) = (r#"{"n":1.0}"#, r#"{"n":1.0,"m":2}"#);
    assert_eq!(
        events,
        [
            state("", true, before, true),
            state("s", true, before, true),
            state("s", true, before, true),
            state("s", true, after, true),
            r#"{"type":"MetaEvent","name":"Exit","value":null}"#.to_owned(),
            state("s", false, after, false),
            state("s", false, after, false),
        ]
    );
    assert_eq!(warned, ["C-67", "P-93"]);
}

/// The messages restated last go out with the state, at the end as that protocol knows them.
#[test]
fn restated_messages_come_with_the_state() {
    let (events, _) = bridge(
        r#"
        {"type":"MESSAGES_SNAPSHOT","messages":[{"role":"user","id":"u","content":[{"type":"text","text":"hi"}]},{"role":"assistant","id":"a","toolCalls":[{"type":"function","id":"c","function":{"name":"f","arguments":"[1]"}}]},{"role":"tool","id":"x","content":"ok","toolCallId":"c"},{"role":"developer","id":"d","content":"no"},{"role":"system","id":"s","content":""}]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    let last = r#"{"messages":[{"id":"u","role":"user","content":"hi"},{"id":"c","name":"f","arguments":[1],"parentMessageId":"a"},{"id":"x","result":"ok","actionExecutionId":"c","actionName":"f"}]}"#;
    assert_eq!(events[1], state("", true, last, false));
    let (events, _) = bridge(
        r#"
        {"type":"MESSAGES_SNAPSHOT","messages":[{"role":"assistant","id":"a","toolCalls":[{"type":"function","id":"c","function":{"name":"f","arguments":"{bad"}}]}]}
        {"type":"RUN_FINISHED","threadId":"t","runId":"r"}
        "#,
    );
    assert_eq!(
        events[1],
        r#"{"type":"RunError","message":"Failed to parse arguments for tool call 'c' (f): expected a member name in quotes at byte 1"}"#
    );
}

/// P-36, P-93: nothing is lost in silence.
#[test]
fn what_is_lost_is_told() {
    let (events, warned) = bridge(
        r#"
        {"type":"RAW","event":1}
        {"type":"RAW","event":2}
        {"type":"REASONING_START","messageId":"s"}
        {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f"}
        {"type":"STEP_STARTED","stepName":"s"}
        {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}
        {"type":"TOOL_CALL_RESULT","messageId":"x","toolCallId":"d","content":[{"type":"image","source":{"type":"url","value":"u"}}]}
        {"type":"RUN_ERROR","message":"no","code":"E"}
        "#,
    );
    assert_eq!(
        events[2..],
        [
            r#"{"type":"ActionExecutionResult","actionExecutionId":"d","actionName":"unknown","result":""}"#,
            r#"{"type":"RunError","message":"no","code":"E"}"#,
        ]
    );
    assert_eq!(warned, ["P-93", "P-93", "P-93", "P-93", "P-36"]);
}
