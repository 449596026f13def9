//! What each event does to a conversation, rule by rule.

use agui_stream::Ending;
use agui_stream::fold::{Applied, Change, Conversation};
use agui_stream::patch::PatchLimits;
use agui_types::event::{Event, RunFinished, StateSnapshot};
use agui_types::json::{MAX_DEPTH, Value};
use agui_types::message::ToolMessage;
use agui_types::{
    EventReader, FromJson, Interrupt, Json, Message, ResumeEntry, RunAgentInput, RunId, ToJson,
};

/// A conversation and what the last events told about it.
struct Folded {
    conversation: Conversation,
    changes: Vec<Change>,
    /// As printed, with the rule at the end.
    warnings: Vec<String>,
}

impl Folded {
    fn new(messages: &str, state: &str) -> Self {
        let conversation = Conversation::new(list(messages), Value::parse(state).unwrap());
        Self { conversation, changes: Vec::new(), warnings: Vec::new() }
    }

    fn empty() -> Self {
        Self::new("[]", "{}")
    }

    /// Folds events, given as one JSON array.
    fn fold(&mut self, events: &str) -> &mut Self {
        self.changes.clear();
        self.warnings.clear();
        let mut applied = Applied::default();
        let events: Vec<serde_json::Value> = serde_json::from_str(events).expect(events);
        for event in events {
            let text = event.to_string();
            let event = EventReader::new().tolerant(&text).expect(&text).value;
            self.conversation.apply(&event, &mut applied);
            self.changes.extend(applied.changes.iter().cloned());
            self.warnings.extend(applied.warnings.iter().map(|warning| {
                format!("{}: {} ({})", warning.path, warning.message, warning.rule)
            }));
        }
        self
    }

    #[track_caller]
    fn holds(&mut self, messages: &str) -> &mut Self {
        assert_eq!(self.conversation.messages().to_vec(), list(messages));
        self
    }

    #[track_caller]
    fn state(&mut self, state: &str) -> &mut Self {
        assert_eq!(self.conversation.state().to_string(), state);
        self
    }

    #[track_caller]
    fn quiet(&mut self) -> &mut Self {
        assert_eq!(self.warnings, Vec::<String>::new());
        self
    }

    /// One warning of this rule, at this path, with these words in it.
    #[track_caller]
    fn warned(&mut self, rule: &str, path: &str, words: &str) -> &mut Self {
        let [warning] = &self.warnings[..] else {
            panic!("{:?}", self.warnings);
        };
        assert!(warning.starts_with(&format!("{path}: ")), "{warning}");
        assert!(warning.ends_with(&format!("({rule})")), "{warning}");
        assert!(warning.contains(words), "{warning}");
        self
    }

    #[track_caller]
    fn changed(&mut self, changes: &[Change]) -> &mut Self {
        assert_eq!(self.changes, changes);
        self
    }

    fn pending(&self) -> Vec<&str> {
        self.conversation.pending_tool_calls().map(|id| id.as_str()).collect()
    }

    fn open(&self) -> Vec<&str> {
        self.conversation.open_interrupts().iter().map(|open| open.id.as_str()).collect()
    }

    fn new_messages(&self) -> Vec<&str> {
        self.conversation.new_messages().map(|id| id.as_str()).collect()
    }

    fn begin(&mut self, run: &str, resume: &str) -> &mut Self {
        let resume: Vec<ResumeEntry> = serde_json::from_str(resume).unwrap();
        self.conversation.begin_exchange(&RunId::from(run), &resume);
        self
    }
}

fn list(messages: &str) -> Vec<Message> {
    serde_json::from_str(messages).expect(messages)
}

/// A run around events.
fn run(id: &str, events: &str, finish: &str) -> String {
    let events = events.trim().trim_start_matches('[').trim_end_matches(']');
    let comma = if events.is_empty() { "" } else { "," };
    format!(
        r#"[{{"type":"RUN_STARTED","threadId":"t","runId":"{id}"}},{events}{comma}{{"type":"RUN_FINISHED","threadId":"t","runId":"{id}"{finish}}}]"#
    )
}

fn created(message: &str, position: usize) -> Change {
    Change::MessageCreated { message: message.into(), position }
}

fn appended(message: &str, bytes: usize) -> Change {
    Change::TextAppended { message: message.into(), bytes }
}

// Text and reasoning.

#[test]
fn text_is_appended_as_it_comes() {
    // C-40: byte for byte, nothing normalised, an empty delta changes nothing.
    Folded::empty()
        .fold(
            r#"[
            {"type":"TEXT_MESSAGE_START","messageId":"m"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"e"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\u0301 "},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":""},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"👩‍👧\n"},
            {"type":"TEXT_MESSAGE_END","messageId":"m"}]"#,
        )
        .changed(&[
            created("m", 0),
            appended("m", 1),
            appended("m", 3),
            appended("m", 12),
            Change::TextEnded { message: "m".into() },
        ])
        .quiet()
        .holds("[{\"id\":\"m\",\"role\":\"assistant\",\"content\":\"e\u{301} 👩‍👧\\n\"}]");
}

#[test]
fn a_started_message_holds_the_empty_string_and_has_the_role_it_was_given() {
    // C-49, section 11
    Folded::empty()
        .fold(
            r#"[
            {"type":"TEXT_MESSAGE_START","messageId":"a"},
            {"type":"TEXT_MESSAGE_START","messageId":"u","role":"user","name":"Ada"},
            {"type":"TEXT_MESSAGE_START","messageId":"s","role":"system"},
            {"type":"TEXT_MESSAGE_START","messageId":"d","role":"developer","subagentRunId":"sub"},
            {"type":"TEXT_MESSAGE_START","messageId":"n","role":"narrator"},
            {"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning","subagentRunId":"sub"}]"#,
        )
        .quiet()
        .holds(
            r#"[
            {"id":"a","role":"assistant","content":""},
            {"id":"u","role":"user","content":"","name":"Ada"},
            {"id":"s","role":"system","content":""},
            {"id":"d","role":"developer","content":"","subagentRunId":"sub"},
            {"id":"n","role":"assistant","content":""},
            {"id":"r","role":"reasoning","content":"","subagentRunId":"sub"}]"#,
        );
}

#[test]
fn a_reopened_message_goes_on_and_what_was_established_stands() {
    // C-41
    let mut folded = Folded::new(
        r#"[{"id":"m","role":"user","content":"Before","name":"Ada","subagentRunId":"sub"},
            {"id":"t","role":"assistant"}]"#,
        "{}",
    );
    folded
        .fold(
            r#"[
            {"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant","name":"Bot"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":", after"},
            {"type":"TEXT_MESSAGE_START","messageId":"t"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"t","delta":"Calling"}]"#,
        )
        .quiet()
        .changed(&[appended("m", 7), appended("t", 7)])
        .holds(
            r#"[{"id":"m","role":"user","content":"Before, after","name":"Ada","subagentRunId":"sub"},
                {"id":"t","role":"assistant","content":"Calling"}]"#,
        );
    assert!(folded.new_messages().is_empty());
}

#[test]
fn text_goes_on_behind_parts() {
    // C-40: nothing that is there gets lost.
    let image = r#"{"type":"image","source":{"type":"url","value":"https://files.example/p.png"}}"#;
    Folded::new(&format!(r#"[{{"id":"u","role":"user","content":[{image}]}}]"#), "{}")
        .fold(
            r#"[{"type":"TEXT_MESSAGE_START","messageId":"u","role":"user"},
                {"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"a"},
                {"type":"TEXT_MESSAGE_CONTENT","messageId":"u","delta":"b"}]"#,
        )
        .quiet()
        .holds(&format!(
            r#"[{{"id":"u","role":"user","content":[{image},{{"type":"text","text":"ab"}}]}}]"#
        ));
}

#[test]
fn text_for_an_activity_is_dropped() {
    // P-28; section 14: nothing of it is applied, its metadata neither.
    let activity = r#"[{"id":"m","role":"activity","activityType":"plan","content":{"n":1}}]"#;
    let mut folded = Folded::new(activity, "{}");
    for event in [
        r#"{"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"k":1}}"#,
        r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x","metadata":{"k":1}}"#,
        r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}"#,
        r#"{"type":"REASONING_MESSAGE_END","messageId":"m","metadata":{"k":1}}"#,
    ] {
        folded.fold(&format!("[{event}]")).warned("P-28", "/messageId", "activity").changed(&[]);
    }
    folded.holds(activity);
}

#[test]
fn text_for_a_message_that_a_snapshot_dropped_is_dropped_too() {
    // C-71: nothing removed is resurrected.
    let mut folded = Folded::empty();
    folded.fold(
        r#"[{"type":"TEXT_MESSAGE_START","messageId":"m"},
            {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"},
            {"type":"MESSAGES_SNAPSHOT","messages":[]}]"#,
    );
    folded.fold(r#"[{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"x"}]"#).warned(
        "C-71",
        "/messageId",
        "\"m\"",
    );
    folded.fold(r#"[{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}]"#).warned(
        "C-71",
        "/toolCallId",
        "\"c\"",
    );
    folded.fold(r#"[{"type":"TEXT_MESSAGE_END","messageId":"m"}]"#).warned(
        "C-71",
        "/messageId",
        "m",
    );
    folded.holds("[]");
}

// Tool calls.

#[test]
fn a_call_is_held_by_the_message_it_names() {
    // Section 11: content stays absent where nobody said anything.
    let mut folded = Folded::new(
        r#"[{"id":"m","role":"assistant","content":"Let me look."},{"id":"u","role":"user","content":"q"}]"#,
        "{}",
    );
    folded
        .fold(
            r#"[
            {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"look","parentMessageId":"m"},
            {"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"find","parentMessageId":"new","subagentRunId":"sub"},
            {"type":"TOOL_CALL_START","toolCallId":"c3","toolCallName":"go"}]"#,
        )
        .quiet()
        .holds(
            r#"[
            {"id":"m","role":"assistant","content":"Let me look.","toolCalls":[
                {"id":"c1","type":"function","function":{"name":"look","arguments":""}}]},
            {"id":"u","role":"user","content":"q"},
            {"id":"new","role":"assistant","subagentRunId":"sub","toolCalls":[
                {"id":"c2","type":"function","function":{"name":"find","arguments":""}}]},
            {"id":"c3","role":"assistant","toolCalls":[
                {"id":"c3","type":"function","function":{"name":"go","arguments":""}}]}]"#,
        );
    folded.changed(&[
        Change::ToolCallStarted { message: "m".into(), tool_call: "c1".into() },
        created("new", 2),
        Change::ToolCallStarted { message: "new".into(), tool_call: "c2".into() },
        created("c3", 3),
        Change::ToolCallStarted { message: "c3".into(), tool_call: "c3".into() },
    ]);
    let (message, call) = folded.conversation.messages().find_call("c2").unwrap();
    assert_eq!((message.id.as_str(), call.function.name.as_str()), ("new", "find"));
    // A message that comes to have the call's id goes on as any other.
    folded.fold(
        r#"[{"type":"TEXT_MESSAGE_START","messageId":"c3"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"c3","delta":"Going"}]"#,
    );
    assert_eq!(
        folded.conversation.messages()[3].to_json(),
        r#"{"role":"assistant","id":"c3","content":"Going","toolCalls":[{"type":"function","id":"c3","function":{"name":"go","arguments":""}}]}"#
    );
}

#[test]
fn a_call_that_names_another_kind_of_message_gets_its_own() {
    // P-28
    let mut folded = Folded::new(r#"[{"id":"u","role":"user","content":"q"}]"#, "{}");
    folded
        .fold(r#"[{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":"u"}]"#)
        .warned("P-28", "/parentMessageId", "\"user\"")
        .holds(
            r#"[{"id":"u","role":"user","content":"q"},
                {"id":"c","role":"assistant","toolCalls":[
                    {"id":"c","type":"function","function":{"name":"n","arguments":""}}]}]"#,
        );
    // Its own id may be taken too: the call is held all the same.
    folded
        .fold(
            r#"[{"type":"TOOL_CALL_START","toolCallId":"u","toolCallName":"n"},
                  {"type":"TOOL_CALL_ARGS","toolCallId":"u","delta":"[]"}]"#,
        )
        .warned("P-28", "/toolCallId", "\"u\"");
    let (message, call) = folded.conversation.messages().find_call("u").unwrap();
    assert_eq!((message.id.as_str(), call.function.arguments.as_str()), ("u", "[]"));
    assert_eq!(folded.conversation.messages().len(), 3);
}

#[test]
fn fragments_of_arguments_belong_to_their_call() {
    // C-50, C-51
    let mut folded = Folded::empty();
    folded
        .fold(
            r#"[
            {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"a","parentMessageId":"m"},
            {"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"b","parentMessageId":"m"},
            {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"{\"loc"},
            {"type":"TOOL_CALL_ARGS","toolCallId":"c2","delta":"not json"},
            {"type":"TOOL_CALL_ARGS","toolCallId":"c1","delta":"\":1}"},
            {"type":"TOOL_CALL_END","toolCallId":"c2"}]"#,
        )
        .quiet();
    let arguments =
        |id| &folded.conversation.messages().find_call(id).unwrap().1.function.arguments;
    assert_eq!((arguments("c1").as_str(), arguments("c2").as_str()), ("{\"loc\":1}", "not json"));
    let m = || "m".into();
    assert_eq!(
        folded.changes[3..],
        [
            Change::ArgumentsAppended { message: m(), tool_call: "c1".into(), bytes: 5 },
            Change::ArgumentsAppended { message: m(), tool_call: "c2".into(), bytes: 8 },
            Change::ArgumentsAppended { message: m(), tool_call: "c1".into(), bytes: 4 },
            Change::ToolCallEnded { message: m(), tool_call: "c2".into() },
        ]
    );
}

#[test]
fn a_call_that_is_there_already_goes_on() {
    // C-41
    let held = r#"[{"id":"u","role":"user","content":"send it"},
        {"id":"m","role":"assistant","toolCalls":[
            {"id":"c","type":"function","function":{"name":"send","arguments":"{\"to\":\"x\"}"}}]}]"#;
    let mut folded = Folded::new(held, "{}");
    folded
        .fold(
            r#"[{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"send"},
                {"type":"TOOL_CALL_END","toolCallId":"c"}]"#,
        )
        .quiet()
        .holds(held);
    assert_eq!(folded.pending(), ["c"]);
    folded
        .fold(r#"[{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"sent"}]"#);
    assert!(folded.pending().is_empty());
    // Answered, it waits for nothing when it is told again.
    folded.fold(r#"[{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"send"}]"#);
    assert!(folded.pending().is_empty());
}

#[test]
fn a_result_goes_behind_its_call_and_the_results_there() {
    // C-52
    let mut folded = Folded::new(r#"[{"id":"u","role":"user","content":"compare"}]"#, "{}");
    folded
        .fold(
            r#"[
            {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"a","parentMessageId":"m1"},
            {"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"b","parentMessageId":"m1"},
            {"type":"TEXT_MESSAGE_START","messageId":"m2"},
            {"type":"TOOL_CALL_RESULT","messageId":"r1","toolCallId":"c1","content":"A"},
            {"type":"TOOL_CALL_RESULT","messageId":"r2","toolCallId":"c2","content":"B","role":"tool","subagentRunId":"sub"},
            {"type":"TOOL_CALL_RESULT","messageId":"r3","toolCallId":"nobody's","content":"C"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m2","delta":"Sum"}]"#,
        )
        .quiet();
    let ids: Vec<_> = folded.conversation.messages().iter().filter_map(Message::id).collect();
    assert_eq!(ids, ["u", "m1", "r1", "r2", "m2", "r3"]);
    assert_eq!(folded.new_messages(), ["m1", "r1", "r2", "m2", "r3"]);
    let position = |change: &Change| match change {
        Change::MessageCreated { position, .. } => Some(*position),
        _ => None,
    };
    let positions: Vec<_> = folded.changes.iter().filter_map(position).collect();
    assert_eq!(positions, [1, 2, 2, 3, 5]);
    assert_eq!(
        folded.conversation.messages().find("r2").unwrap().to_json(),
        r#"{"role":"tool","id":"r2","content":"B","toolCallId":"c2","subagentRunId":"sub"}"#
    );
}

#[test]
fn a_result_keeps_its_parts() {
    // C-53
    let parts = r#"[{"type":"document","source":{"type":"file","value":"f-1","provider":"acme"}},{"type":"text","text":""}]"#;
    for content in [parts, "[]", r#""""#] {
        let event = format!(
            r#"[{{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":{content}}}]"#
        );
        Folded::empty().fold(&event).quiet().holds(&format!(
            r#"[{{"id":"r","role":"tool","toolCallId":"c","content":{content}}}]"#
        ));
    }
}

#[test]
fn a_result_with_an_id_that_is_taken_is_kept_and_told() {
    // P-28
    let result = r#"{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"1"}"#;
    let mut folded = Folded::empty();
    folded.fold(&format!("[{result},{result}]")).warned("P-28", "/messageId", "\"r\"");
    assert_eq!(folded.new_messages(), ["r", "r"]);

    // Of two with one id, the first in order is the one that is found.
    let history = r#"{"role":"assistant","id":"a","toolCalls":[{"type":"function","id":"c","function":{"name":"f","arguments":""}}]},{"role":"reasoning","id":"r","content":""}"#;
    let mut folded = Folded::new(&format!("[{history}]"), "{}");
    let value = r#"{"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"r","encryptedValue":"v"}"#;
    folded.fold(&format!("[{result},{value}]"));
    let messages = folded.conversation.messages();
    assert_eq!(messages.find("r"), messages.get(1));
    assert!(messages[1].to_json().contains(r#""encryptedValue":"v""#), "{messages:?}");
}

#[test]
fn pending_calls_are_those_started_and_not_answered() {
    // C-54
    let calls = r#"[
        {"type":"TOOL_CALL_START","toolCallId":"c1","toolCallName":"a","parentMessageId":"m"},
        {"type":"TOOL_CALL_START","toolCallId":"c2","toolCallName":"b","parentMessageId":"m"},
        {"type":"TOOL_CALL_START","toolCallId":"c3","toolCallName":"c","parentMessageId":"m"},
        {"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c2","content":""}]"#;
    for (outcome, pending) in [
        ("", vec!["c1", "c3"]),
        (r#","outcome":{"type":"success"}"#, vec!["c1", "c3"]),
        (r#","outcome":{"type":"success","pendingToolCallIds":[]}"#, vec!["c1", "c3"]),
        (r#","outcome":{"type":"success","pendingToolCallIds":["c3"]}"#, vec!["c3"]),
        // A call that is to be approved waits for that.
        (
            r#","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"approval","toolCallId":"c1"}]}"#,
            vec!["c3"],
        ),
    ] {
        let mut folded = Folded::empty();
        folded.fold(&run("r1", calls, outcome)).quiet();
        assert_eq!(folded.pending(), pending, "{outcome}");
    }
}

#[test]
fn a_pending_call_waits_until_a_tool_message_answers_it() {
    // C-55
    let mut folded = Folded::empty();
    let call = |id: &str| {
        format!(r#"[{{"type":"TOOL_CALL_START","toolCallId":"{id}","toolCallName":"a"}}]"#)
    };
    folded.fold(&run("r1", &call("c1"), ""));
    folded.begin("r2", "[]");
    let declares = r#","outcome":{"type":"success","pendingToolCallIds":["c2"]}"#;
    folded.fold(&run("r2", &call("c2"), declares));
    assert_eq!(folded.pending(), ["c1", "c2"], "what a run declares is its own");
    folded
        .conversation
        .push(list(r#"[{"id":"a1","role":"tool","toolCallId":"c1","content":"1"}]"#).remove(0));
    assert_eq!(folded.pending(), ["c2"]);
    folded.fold(
        r#"[{"type":"MESSAGES_SNAPSHOT","messages":[
            {"id":"c2","role":"assistant","toolCalls":[{"id":"c2","type":"function","function":{"name":"a","arguments":""}}]},
            {"id":"a2","role":"tool","toolCallId":"c2","content":"2"}]}]"#,
    );
    assert!(folded.pending().is_empty());
    // Nor does one that is no longer held.
    folded.fold(&call("c3")).fold(r#"[{"type":"MESSAGES_SNAPSHOT","messages":[]}]"#);
    assert!(folded.pending().is_empty());
}

// Encrypted values.

#[test]
fn an_encrypted_value_is_stored_with_its_target() {
    // C-59, C-64: a new value without a type leaves no type behind.
    let mut folded = Folded::new(
        r#"[{"id":"u","role":"user","content":""},{"id":"t","role":"tool","toolCallId":"c","content":""},
            {"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":""}}]}]"#,
        "{}",
    );
    let value = |subtype: &str, id: &str, value: &str, more: &str| {
        format!(
            r#"[{{"type":"REASONING_ENCRYPTED_VALUE","subtype":"{subtype}","entityId":"{id}","encryptedValue":"{value}"{more}}}]"#
        )
    };
    folded
        .fold(&value("message", "u", "one", r#","encryptedValueType":"acme.sig""#))
        .quiet()
        .changed(&[Change::MessageChanged { message: "u".into() }]);
    folded.fold(&value("message", "t", "", "")).quiet();
    folded
        .fold(&value("tool-call", "c", "two", r#","encryptedValueType":"acme.sig""#))
        .quiet()
        .changed(&[Change::ToolCallChanged { message: "m".into(), tool_call: "c".into() }])
        .holds(
            r#"[{"id":"u","role":"user","content":"","encryptedValue":"one","encryptedValueType":"acme.sig"},
                {"id":"t","role":"tool","toolCallId":"c","content":"","encryptedValue":""},
                {"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function",
                    "function":{"name":"n","arguments":""},"encryptedValue":"two","encryptedValueType":"acme.sig"}]}]"#,
        );
    folded.fold(&value("message", "u", "three", "")).fold(&value("tool-call", "c", "four", ""));
    let messages = folded.conversation.messages();
    assert!(messages[0].to_json().ends_with(r#""encryptedValue":"three"}"#));
    assert!(messages[2].to_json().ends_with(r#""encryptedValue":"four"}]}"#));
    // C-61: the snapshot's copy replaces the message, its value included.
    folded.fold(
        r#"[{"type":"MESSAGES_SNAPSHOT","messages":[{"id":"u","role":"user","content":""}]}]"#,
    );
    folded.holds(r#"[{"id":"u","role":"user","content":""}]"#);
}

#[test]
fn an_encrypted_value_without_a_place_is_told() {
    // C-60, C-62
    let messages = r#"[{"id":"a","role":"activity","activityType":"x","content":{}},{"id":"u","role":"user","content":""}]"#;
    let mut folded = Folded::new(messages, "{}");
    folded.fold(r#"[{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"x","patch":[]}]"#);
    for (subtype, id) in [("message", "a"), ("message", "nobody"), ("tool-call", "u")] {
        folded
            .fold(&format!(
                r#"[{{"type":"REASONING_ENCRYPTED_VALUE","subtype":"{subtype}","entityId":"{id}","encryptedValue":"v"}}]"#
            ))
            .warned("C-60", "/entityId", id)
            .holds(messages);
    }
}

// Snapshots of messages.

#[test]
fn a_snapshot_reconciles_in_place() {
    // C-71
    let mut folded = Folded::new(
        r#"[{"id":"a","role":"user","content":"why?"},{"id":"stale","role":"assistant","content":"old"},
            {"id":"b","role":"assistant","content":"b"},{"id":"c","role":"user","content":"c"}]"#,
        "{}",
    );
    folded
        .fold(
            r#"[{"type":"MESSAGES_SNAPSHOT","messages":[
                {"id":"n1","role":"assistant","content":"new"},
                {"id":"c","role":"user","content":"c"},
                {"id":"b","role":"system","content":"B"},
                {"id":"a","role":"user","content":"why?"},
                {"id":"n2","role":"assistant"}]}]"#,
        )
        .quiet()
        .holds(
            r#"[{"id":"a","role":"user","content":"why?"},{"id":"b","role":"system","content":"B"},
                {"id":"c","role":"user","content":"c"},{"id":"n1","role":"assistant","content":"new"},
                {"id":"n2","role":"assistant"}]"#,
        )
        .changed(&[
            Change::MessageRemoved { message: "stale".into() },
            Change::MessageReplaced { message: "b".into() },
            created("n1", 3),
            created("n2", 4),
        ]);
    assert_eq!(folded.new_messages(), ["n1", "n2"]);
    // What comes back was there before.
    folded.fold(r#"[{"type":"TEXT_MESSAGE_START","messageId":"stale"}]"#);
    assert_eq!(folded.new_messages(), ["n1", "n2"]);
}

#[test]
fn reasoning_and_activity_stay_where_the_snapshot_has_none() {
    // C-71: per role, and only then.
    let reasoning = r#"{"id":"r","role":"reasoning","content":"hm"}"#;
    let activity = r#"{"id":"act","role":"activity","activityType":"plan","content":{"done":0}}"#;
    let gone = r#"{"id":"u","role":"user","content":""}"#;
    let start = format!("[{reasoning},{gone},{activity}]");
    let snapshot =
        |messages: &str| format!(r#"[{{"type":"MESSAGES_SNAPSHOT","messages":[{messages}]}}]"#);
    Folded::new(&start, "{}").fold(&snapshot("")).holds(&format!("[{reasoning},{activity}]"));
    let other = r#"{"id":"act2","role":"activity","activityType":"plan","content":{}}"#;
    Folded::new(&start, "{}").fold(&snapshot(other)).holds(&format!("[{reasoning},{other}]"));
    let other = r#"{"id":"r2","role":"reasoning","content":""}"#;
    Folded::new(&start, "{}").fold(&snapshot(other)).holds(&format!("[{activity},{other}]"));
    // Under patches too.
    Folded::new(&start, "{}")
        .fold(r#"[{"type":"ACTIVITY_DELTA","messageId":"act","activityType":"plan","patch":[{"op":"replace","path":"/done","value":1}]}]"#)
        .fold(&snapshot(""))
        .holds(&format!("[{reasoning},{}]", activity.replace("0}", "1}")));
}

#[test]
fn items_go_on_after_a_snapshot_that_restates_them() {
    // C-71: what was found by its id before, is found after.
    let mut folded = Folded::empty();
    folded
        .fold(
            r#"[
            {"type":"TEXT_MESSAGE_START","messageId":"x"},
            {"type":"TEXT_MESSAGE_START","messageId":"m"},
            {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":"m"},
            {"type":"MESSAGES_SNAPSHOT","messages":[{"id":"m","role":"assistant","content":"A","toolCalls":[
                {"id":"c0","type":"function","function":{"name":"n","arguments":""}},
                {"id":"c","type":"function","function":{"name":"n","arguments":"["}}]}]},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"B"},
            {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"]"}]"#,
        )
        .quiet()
        .holds(
            r#"[{"id":"m","role":"assistant","content":"AB","toolCalls":[
                {"id":"c0","type":"function","function":{"name":"n","arguments":""}},
                {"id":"c","type":"function","function":{"name":"n","arguments":"[]"}}]}]"#,
        );
}

// State.

#[test]
fn a_state_snapshot_replaces_whatever_its_value() {
    // C-66
    let mut folded = Folded::new("[]", r#"{"a":1}"#);
    for state in ["null", "0", "false", r#""""#, "[]", r#"{"b":1.50}"#] {
        folded
            .fold(&format!(r#"[{{"type":"STATE_SNAPSHOT","snapshot":{state}}}]"#))
            .quiet()
            .changed(&[Change::StateReplaced])
            .state(&state.replace("1.50", "1.5"));
    }
    // Digits stay, where the event's reader keeps them.
    let mut applied = Applied::default();
    let event: Event = StateSnapshot::new(Json::parse(r#"{"n":1.50}"#).unwrap()).into();
    folded.conversation.apply(&event, &mut applied);
    folded.state(r#"{"n":1.50}"#);
}

#[test]
fn a_state_delta_applies_as_a_whole_or_not_at_all() {
    // C-67, C-70
    let mut folded = Folded::new("[]", r#"{"list":[1]}"#);
    folded
        .fold(
            r#"[{"type":"STATE_DELTA","delta":[
                {"op":"test","path":"/list/0","value":1},
                {"op":"add","path":"/list/-","value":2},
                {"op":"move","from":"/list/0","path":"/first"}]}]"#,
        )
        .quiet()
        .changed(&[Change::StatePatched {
            paths: ["/list/-", "/list/0", "/first"].map(|path| path.parse().unwrap()).into(),
        }])
        .state(r#"{"list":[2],"first":1}"#);
    folded
        .fold(
            r#"[{"type":"STATE_DELTA","delta":[
                {"op":"add","path":"/x","value":2},
                {"op":"replace","path":"/steps","value":["a"]}]}]"#,
        )
        .warned("C-67", "/delta/1", r#"replace "/steps""#)
        .changed(&[])
        .state(r#"{"list":[2],"first":1}"#);
    folded.fold(r#"[{"type":"STATE_DELTA","delta":[]}]"#).quiet().changed(&[]);
    folded
        .fold(r#"[{"type":"STATE_SNAPSHOT","snapshot":{"steps":["a"]}}]"#)
        .quiet()
        .state(r#"{"steps":["a"]}"#);
}

#[test]
fn an_unknown_patch_operation_is_dropped_and_the_rest_applies() {
    // C-69
    Folded::empty()
        .fold(
            r#"[{"type":"STATE_DELTA","delta":[
                {"op":"merge","path":"/a","value":{}},{"op":"add","path":"/b","value":1}]}]"#,
        )
        .warned("C-69", "/delta/0", "\"merge\"")
        .state(r#"{"b":1}"#);
}

#[test]
fn patches_stay_within_their_limits() {
    let mut folded = Folded::empty();
    folded.conversation =
        folded.conversation.with_patch_limits(PatchLimits::default().with_size(20));
    let add = |value: &str| {
        format!(
            r#"[{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"/a","value":"{value}"}}]}}]"#
        )
    };
    folded.fold(&add("12345678901")).quiet();
    folded.fold(&add("123456789012")).warned("C-67", "/delta/0", "20 bytes");
}

/// Arrays inside one another.
fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn what_is_folded_can_be_sent_back() {
    // C-67: the state stands one level deep in an input, and deeper in no event that brought it.
    let start = format!(r#"[{{"type":"STATE_SNAPSHOT","snapshot":{}}}]"#, nested(100));
    let grow = |levels: usize| {
        let (path, value) = ("/0".repeat(99), nested(levels));
        format!(
            r#"[{{"type":"STATE_DELTA","delta":[{{"op":"add","path":"{path}/0","value":{value}}}]}}]"#
        )
    };
    let mut folded = Folded::empty();
    folded.fold(&start).quiet();
    folded.fold(&grow(MAX_DEPTH - 100)).warned("C-67", "/delta/0", "deeper than 126 levels");
    folded.fold(&grow(MAX_DEPTH - 101)).quiet();
    let sent_back = |folded: &Folded| {
        let mut input = RunAgentInput::new("t", "r", folded.conversation.messages().to_vec());
        input.state = Some(folded.conversation.state().to_json());
        let text = input.to_json();
        RunAgentInput::from_json_exact(&text).map(|read| read == input)
    };
    assert_eq!(sent_back(&folded), Ok(true));

    // C-76: metadata stands three levels deep, that of a call five.
    let with_metadata = |levels: usize| {
        let metadata = format!(r#"{{"a":{}}}"#, nested(levels - 1));
        format!(
            r#"[{{"type":"TEXT_MESSAGE_START","messageId":"m{levels}","metadata":{metadata}}},
            {{"type":"TOOL_CALL_START","toolCallId":"c{levels}","toolCallName":"tool","metadata":{metadata}}},
            {{"type":"TOOL_CALL_RESULT","toolCallId":"c{levels}","messageId":"t{levels}","content":"","metadata":{metadata}}}]"#
        )
    };
    folded.fold(&with_metadata(MAX_DEPTH - 5)).quiet();
    assert_eq!(sent_back(&folded), Ok(true));
    folded.fold(&with_metadata(MAX_DEPTH - 4));
    assert_eq!(folded.warnings.len(), 3);
    assert!(folded.warnings.iter().all(|it| it.contains("122 levels") && it.contains("C-76")));
    assert_eq!(sent_back(&folded), Ok(true));
}

#[test]
fn what_nobody_knows_is_folded_without_a_fall() {
    // C-24, C-69: enforcement removes these; whoever folds without it is not to fall over them.
    let unknown = r#"{"role":"oracle","id":"o","content":"?"},{"role":"oracle"},{},{"id":"n"}"#;
    Folded::empty()
        .fold(&format!(
            r#"[{{"type":"RUN_STARTED","threadId":"t","runId":"r",
                    "input":{{"threadId":"t","runId":"r","messages":[{unknown}]}}}},
                {{"type":"MESSAGES_SNAPSHOT","messages":[{unknown}]}},
                {{"type":"MESSAGES_SNAPSHOT","messages":[{unknown},{unknown}]}},
                {{"type":"TEXT_MESSAGE_CONTENT","messageId":"o","delta":"x","metadata":{{"a":1}}}},
                {{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"tool","parentMessageId":"o"}},
                {{"type":"TOOL_CALL_RESULT","toolCallId":"c","messageId":"o","content":[{{}},{{"type":"x"}}]}},
                {{"type":"ACTIVITY_DELTA","messageId":"o","activityType":"a","patch":[{{"op":"x"}},{{}}]}},
                {{"type":"ACTIVITY_SNAPSHOT","messageId":"o","activityType":"a","content":{{}}}},
                {{"type":"ACTIVITY_DELTA","messageId":"o","activityType":"a","patch":[{{"op":"x"}},{{}}]}},
                {{"type":"STATE_DELTA","delta":[{{"op":"x"}},{{}},{{"op":1}}]}},
                {{"type":"REASONING_ENCRYPTED_VALUE","subtype":"oracle","entityId":"o","encryptedValue":"x"}},
                {{"type":"RUN_FINISHED","threadId":"t","runId":"r","outcome":{{"type":"oracle"}}}},
                {{"type":"MESSAGES_SNAPSHOT","messages":[]}}]"#
        ))
        .state("{}");
}

// Activity.

const PLAN: &str = r#"{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"plan","content":{"n":0},"metadata":{"k":1},"subagentRunId":"sub"}"#;

#[test]
fn an_activity_snapshot_creates_replaces_or_leaves() {
    // C-72
    let mut folded = Folded::empty();
    folded.fold(&format!("[{PLAN}]")).quiet().changed(&[created("a", 0)]).holds(
        r#"[{"id":"a","role":"activity","activityType":"plan","content":{"n":0},"metadata":{"k":1},"subagentRunId":"sub"}]"#,
    );
    // Content, type and owner are left; metadata merges.
    folded
        .fold(r#"[{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"card","content":{},"replace":false,"metadata":{"l":2}}]"#)
        .quiet()
        .changed(&[Change::MessageChanged { message: "a".into() }])
        .holds(
            r#"[{"id":"a","role":"activity","activityType":"plan","content":{"n":0},"metadata":{"k":1,"l":2},"subagentRunId":"sub"}]"#,
        );
    // Metadata survives the replacement, ownership does not.
    folded
        .fold(r#"[{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"card","content":{"m":1},"metadata":{"k":null}}]"#)
        .quiet()
        .changed(&[Change::MessageReplaced { message: "a".into() }])
        .holds(
            r#"[{"id":"a","role":"activity","activityType":"card","content":{"m":1},"metadata":{"k":null,"l":2}}]"#,
        );
}

#[test]
fn an_activity_snapshot_on_another_message_takes_its_place() {
    // P-28, C-72: with nothing of what was there.
    let mut folded = Folded::new(
        r#"[{"id":"a","role":"assistant","metadata":{"x":1},"toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":""}}]},
            {"id":"u","role":"user","content":""}]"#,
        "{}",
    );
    folded.fold(r#"[{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n"}]"#);
    folded
        .fold(r#"[{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"card","content":{},"replace":false,"metadata":{"k":1}}]"#)
        .warned("P-28", "/messageId", "no activity")
        .changed(&[]);
    assert_eq!(folded.pending(), ["c"]);
    folded.fold(&format!("[{PLAN}]")).warned("P-28", "/messageId", "\"assistant\"").holds(
        r#"[{"id":"a","role":"activity","activityType":"plan","content":{"n":0},"metadata":{"k":1},"subagentRunId":"sub"},
            {"id":"u","role":"user","content":""}]"#,
    );
    assert!(folded.pending().is_empty());
    folded.fold(r#"[{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{}"}]"#).warned(
        "C-71",
        "/toolCallId",
        "\"c\"",
    );
}

#[test]
fn an_activity_delta_patches_content_and_sets_the_type() {
    // C-73, C-72
    let mut folded = Folded::empty();
    folded.fold(&format!("[{PLAN}]"));
    let delta = |kind: &str, patch: &str, more: &str| {
        format!(
            r#"[{{"type":"ACTIVITY_DELTA","messageId":"a","activityType":"{kind}","patch":[{patch}]{more}}}]"#
        )
    };
    folded
        .fold(&delta(
            "card",
            r#"{"op":"add","path":"/z","value":[1.0]},{"op":"replace","path":"/n","value":1}"#,
            "",
        ))
        .quiet()
        .changed(&[Change::ActivityPatched {
            message: "a".into(),
            paths: ["/z", "/n"].map(|path| path.parse().unwrap()).into(),
        }]);
    // Read, then patched again, then read again.
    let text = |folded: &Folded| folded.conversation.messages()[0].to_json();
    assert!(text(&folded).contains(r#""activityType":"card","content":{"n":1,"z":[1.0]}"#));
    folded.fold(&delta("card", r#"{"op":"remove","path":"/z"}"#, r#","metadata":{"m":0}"#)).quiet();
    assert!(text(&folded).contains(r#""content":{"n":1},"metadata":{"k":1,"m":0}"#));
    // A patch that fails leaves content and type; the metadata is the event's own.
    folded
        .fold(&delta("plan", r#"{"op":"remove","path":"/z"}"#, r#","metadata":{"m":1}"#))
        .warned("C-67", "/patch/0", r#"no member "z""#)
        .changed(&[Change::MessageChanged { message: "a".into() }]);
    assert!(
        text(&folded)
            .contains(r#""activityType":"card","content":{"n":1},"metadata":{"k":1,"m":1}"#)
    );
    // P-50
    folded.fold(&delta("card", r#"{"op":"replace","path":"","value":7}"#, "")).warned(
        "C-67",
        "/patch/0",
        "stay an object",
    );
    folded.fold(&delta("list", "", "")).quiet();
    folded.fold(r#"[{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"x","content":{},"replace":false,"metadata":{"z":1}}]"#);
    folded.holds(
        r#"[{"id":"a","role":"activity","activityType":"list","content":{"n":1},"metadata":{"k":1,"m":1,"z":1},"subagentRunId":"sub"}]"#,
    );
}

#[test]
fn an_activity_delta_without_its_activity_is_skipped() {
    // C-73
    let messages = r#"[{"id":"u","role":"user","content":""}]"#;
    for (id, found) in [("nobody", "not there"), ("u", "\"user\"")] {
        Folded::new(messages, "{}")
            .fold(&format!(
                r#"[{{"type":"ACTIVITY_DELTA","messageId":"{id}","activityType":"x","patch":[],"metadata":{{"k":1}}}}]"#
            ))
            .warned("C-73", "/messageId", found)
            .changed(&[])
            .holds(messages);
    }
}

#[test]
fn what_is_not_patched_keeps_its_text() {
    let mut folded = Folded::empty();
    let mut applied = Applied::default();
    let content = r#"{ "n" : 1.50e1 }"#;
    let text = format!(
        r#"{{"type":"ACTIVITY_SNAPSHOT","messageId":"a","activityType":"x","content":{content}}}"#
    );
    folded.conversation.apply(&Event::from_json_exact(&text).unwrap(), &mut applied);
    assert!(folded.conversation.messages()[0].to_json().contains(content));
}

// Metadata.

#[test]
fn metadata_merges_into_the_item_it_streams() {
    // C-76, section 8
    let mut folded = Folded::empty();
    folded
        .fold(
            r#"[
            {"type":"TEXT_MESSAGE_START","messageId":"m","metadata":{"a":{"x":1},"b":1}},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"","metadata":{"a":{"y":2}}},
            {"type":"TEXT_MESSAGE_END","messageId":"m","metadata":{"b":null,"c":[]}},
            {"type":"REASONING_MESSAGE_START","messageId":"r","role":"reasoning","metadata":{"a":1}},
            {"type":"REASONING_MESSAGE_CONTENT","messageId":"r","delta":"h","metadata":{"b":1}},
            {"type":"REASONING_MESSAGE_END","messageId":"r","metadata":{"a":2}},
            {"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"n","parentMessageId":"m","metadata":{"a":1}},
            {"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"","metadata":{"b":1}},
            {"type":"TOOL_CALL_END","toolCallId":"c","metadata":{"a":2}},
            {"type":"TOOL_CALL_RESULT","messageId":"t","toolCallId":"c","content":"","metadata":{"d":{}}},
            {"type":"CUSTOM","name":"n","value":1,"metadata":{"no":1}},
            {"type":"STEP_STARTED","stepName":"m","metadata":{"no":1}},
            {"type":"REASONING_START","messageId":"m","metadata":{"no":1}},
            {"type":"REASONING_ENCRYPTED_VALUE","subtype":"message","entityId":"m","encryptedValue":"v","metadata":{"no":1}},
            {"type":"STATE_SNAPSHOT","snapshot":{},"metadata":{"no":1}}]"#,
        )
        .quiet()
        .holds(
            r#"[{"id":"m","role":"assistant","content":"","encryptedValue":"v","metadata":{"a":{"y":2},"b":null,"c":[]},
                 "toolCalls":[{"id":"c","type":"function","function":{"name":"n","arguments":""},"metadata":{"a":2,"b":1}}]},
                {"id":"t","role":"tool","toolCallId":"c","content":"","metadata":{"d":{}}},
                {"id":"r","role":"reasoning","content":"h","metadata":{"a":2,"b":1}}]"#,
        );
}

// Runs.

#[test]
fn a_run_ends_in_one_of_five_ways() {
    // C-11, C-13, C-15, C-16
    for (finish, ending, word) in [
        ("", Ending::Completed, "completed"),
        (r#","outcome":{"type":"success"}"#, Ending::Completed, "completed"),
        (r#","outcome":{"type":"something-new"}"#, Ending::Completed, "completed"),
        (
            r#","outcome":{"type":"interrupt","interrupts":[{"id":"i","reason":"r"}]}"#,
            Ending::Interrupted,
            "interrupted",
        ),
        (r#","outcome":{"type":"cancelled"}"#, Ending::Cancelled, "cancelled"),
    ] {
        let mut folded = Folded::empty();
        folded.fold(r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r"}]"#);
        folded.changed(&[Change::RunStarted { thread: "t".into(), run: "r".into() }]);
        assert_eq!(folded.conversation.ending(), None);
        folded.fold(&format!(r#"[{{"type":"RUN_FINISHED","threadId":"t","runId":"r"{finish}}}]"#));
        assert_eq!(folded.changes.last(), Some(&Change::RunEnded { ending }));
        assert_eq!(folded.conversation.ending(), Some(ending));
        assert_eq!((ending.as_str(), folded.conversation.end_exchange()), (word, ending));
    }
    let mut folded = Folded::empty();
    folded.fold(r#"[{"type":"RUN_ERROR","message":"no model"}]"#);
    assert_eq!(folded.conversation.end_exchange(), Ending::Failed);
    assert_eq!(Ending::Failed.to_string(), "failed");
    assert_eq!(Ending::from(&RunFinished::new("t", "r")), Ending::Completed);
}

#[test]
fn a_stream_that_stops_is_no_success_and_what_came_stays() {
    // C-12, C-14, C-15
    let mut folded = Folded::empty();
    folded.fold(
        r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r"},
            {"type":"TEXT_MESSAGE_START","messageId":"m"},
            {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Sending 50,0"}]"#,
    );
    assert_eq!(folded.conversation.ending(), None);
    assert_eq!(folded.conversation.end_exchange(), Ending::Truncated);
    assert_eq!(folded.conversation.ending(), Some(Ending::Truncated));
    folded.holds(r#"[{"id":"m","role":"assistant","content":"Sending 50,0"}]"#);
    // Also after a run that finished, and where nothing came at all.
    folded.begin("r2", "[]").fold(&run("r2", "", ""));
    folded.fold(r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r3"}]"#);
    assert_eq!(folded.conversation.end_exchange(), Ending::Truncated);
    assert_eq!(Folded::empty().conversation.end_exchange(), Ending::Truncated);
}

#[test]
fn an_error_after_the_end_counts() {
    // C-4; what the run has used is not counted twice.
    let mut folded = Folded::empty();
    let usage = r#","usage":[{"model":"m","inputTokens":10,"outputTokens":1}]"#;
    folded
        .fold(&run("r", "", usage))
        .fold(&format!(r#"[{{"type":"RUN_ERROR","message":"late"{usage}}}]"#));
    assert_eq!(folded.conversation.ending(), Some(Ending::Failed));
    assert_eq!(folded.conversation.usage()[0].input_tokens, Some(10.into()));
}

#[test]
fn usage_adds_up_over_runs_by_provider_and_model() {
    // C-90: what is absent stays absent.
    let mut folded = Folded::empty();
    folded.fold(&run("r1", "", r#","usage":[{"model":"a","inputTokens":1,"outputTokens":2},{"model":"b","inputTokens":5}]"#));
    folded.begin("r2", "[]");
    folded.fold(&run("r2", "", r#","usage":[{"model":"a","inputTokens":10}]"#));
    folded.fold(
        r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r3"},
            {"type":"RUN_ERROR","message":"x","usage":[{"model":"a","inputTokens":100}]}]"#,
    );
    assert!(folded.changes.contains(&Change::UsageChanged));
    let usage: Vec<_> = folded.conversation.usage().iter().map(ToJson::to_json).collect();
    assert_eq!(
        usage,
        [r#"{"model":"a","inputTokens":111,"outputTokens":2}"#, r#"{"model":"b","inputTokens":5}"#]
    );
}

#[test]
fn the_result_is_that_of_the_last_success() {
    let mut folded = Folded::empty();
    let result = |folded: &Folded| folded.conversation.result().map(ToString::to_string);
    folded.fold(&run("r1", "", r#","result":{"ok":true}"#));
    assert_eq!(result(&folded).as_deref(), Some(r#"{"ok":true}"#));
    folded.fold(&run("r2", "", r#","outcome":{"type":"cancelled"}"#));
    folded.fold(r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r3"},{"type":"RUN_ERROR","message":"x"}]"#);
    assert_eq!(result(&folded).as_deref(), Some(r#"{"ok":true}"#));
    folded.fold(&run("r4", "", ""));
    assert_eq!(result(&folded), None);
    folded.fold(&run("r5", "", r#","result":0"#)).begin("r6", "[]");
    assert_eq!(result(&folded), None, "each exchange has its own");
}

#[test]
fn messages_and_state_accumulate_over_runs() {
    // C-5, C-88
    let mut folded = Folded::empty();
    folded.fold(&run(
        "r1",
        r#"[{"type":"TEXT_MESSAGE_START","messageId":"m1"},{"type":"STATE_SNAPSHOT","snapshot":{"n":1}}]"#,
        "",
    ));
    folded.fold(&run(
        "r2",
        r#"[{"type":"TEXT_MESSAGE_START","messageId":"m2"},{"type":"STATE_DELTA","delta":[{"op":"add","path":"/m","value":2}]}]"#,
        "",
    ));
    assert_eq!(folded.new_messages(), ["m1", "m2"]);
    folded.state(r#"{"n":1,"m":2}"#).begin("r3", "[]");
    assert!(folded.new_messages().is_empty());
}

#[test]
fn an_echoed_input_adds_what_is_not_held() {
    let mut folded = Folded::new(r#"[{"id":"h","role":"user","content":"hi"}]"#, r#"{"n":1}"#);
    folded
        .fold(
            r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r","input":{"threadId":"t","runId":"r","state":{"ignored":true},
                "messages":[{"id":"h","role":"user","content":"CHANGED"},{"id":"e","role":"user","content":"echoed"}]}}]"#,
        )
        .quiet()
        .state(r#"{"n":1}"#)
        .holds(r#"[{"id":"h","role":"user","content":"hi"},{"id":"e","role":"user","content":"echoed"}]"#);
    assert_eq!(folded.changes[1..], [created("e", 1)]);
}

#[test]
fn interrupts_stay_open_until_a_run_that_answers_them_finishes() {
    // C-85, C-86, C-89
    let asks = |ids: &[&str]| {
        let all: Vec<_> = ids.iter().map(|id| format!(r#"{{"id":"{id}","reason":"r"}}"#)).collect();
        format!(r#","outcome":{{"type":"interrupt","interrupts":[{}]}}"#, all.join(","))
    };
    let mut folded = Folded::empty();
    folded.fold(&run("r1", "", &asks(&["i1", "i2"])));
    assert_eq!(folded.open(), ["i1", "i2"]);
    assert!(folded.changes.contains(&Change::InterruptsChanged));
    // Nobody answered: a later run on the stream closes nothing.
    folded.fold(&run("r2", "", ""));
    assert_eq!(folded.open(), ["i1", "i2"]);
    assert!(!folded.changes.contains(&Change::InterruptsChanged));
    // A run that fails answered nothing.
    let answers = r#"[{"interruptId":"i1","status":"resolved","payload":false},{"interruptId":"?","status":"cancelled"}]"#;
    folded.begin("r3", answers);
    folded.fold(r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r3"},{"type":"RUN_ERROR","message":"x"}]"#);
    assert_eq!(folded.open(), ["i1", "i2"]);
    // It is the run that was asked for that answers, not one that is replayed before it.
    folded.begin("r4", answers).fold(&run("r1", "", ""));
    assert_eq!(folded.open(), ["i1", "i2"]);
    folded.fold(&run("r4", "", &asks(&["i3"])));
    assert_eq!(folded.open(), ["i2", "i3"]);
    // Or its echo says what it answers.
    folded.fold(
        r#"[{"type":"RUN_STARTED","threadId":"t","runId":"r5","input":{"threadId":"t","runId":"r5","messages":[],
                "resume":[{"interruptId":"i2","status":"cancelled"}]}},
            {"type":"RUN_FINISHED","threadId":"t","runId":"r5"}]"#,
    );
    assert_eq!(folded.open(), ["i3"]);
    // Raised again, it is the same one.
    folded.fold(&run("r6", "", &asks(&["i3", "i4"])));
    assert_eq!(folded.open(), ["i3", "i4"]);
    folded.fold(&run("r7", "", r#","outcome":{"type":"cancelled"}"#));
    assert!(folded.open().is_empty());
}

#[test]
fn a_conversation_goes_on_from_where_it_was() {
    let input = RunAgentInput::from_json_exact(
        r#"{"threadId":"t","runId":"r","messages":[{"id":"h","role":"user","content":"hi"}],"state":{"n":1},
            "resume":[{"interruptId":"i","status":"resolved"}]}"#,
    )
    .unwrap();
    let mut conversation = Conversation::from_input(&input)
        .unwrap()
        .with_open_interrupts(vec![Interrupt::new("i", "approval"), Interrupt::new("j", "input")]);
    assert_eq!(conversation.state().to_string(), r#"{"n":1}"#);
    assert_eq!(conversation.messages().len(), 1);
    let mut applied = Applied::default();
    for event in serde_json::from_str::<Vec<Event>>(&run("r", "", "")).unwrap() {
        conversation.apply(&event, &mut applied);
    }
    assert_eq!(conversation.open_interrupts(), [Interrupt::new("j", "input")]);

    conversation.set_messages(list(
        r#"[{"id":"h","role":"user","content":"hi"},{"id":"n","role":"user","content":""}]"#,
    ));
    conversation.set_state(Value::parse("[]").unwrap());
    let new: Vec<_> = conversation.new_messages().map(ToString::to_string).collect();
    assert_eq!(
        (conversation.state().to_string().as_str(), &new[..]),
        ("[]", &["n".to_owned()][..])
    );

    let bare = RunAgentInput::new("t", "r", Vec::new());
    assert_eq!(Conversation::from_input(&bare).unwrap().state().to_string(), "{}");
}

#[test]
fn chunks_are_expanded_elsewhere() {
    // C-43
    for event in [
        r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#,
        r#"{"type":"TOOL_CALL_CHUNK","toolCallId":"c","toolCallName":"n"}"#,
        r#"{"type":"REASONING_MESSAGE_CHUNK","messageId":"m","delta":"x"}"#,
    ] {
        Folded::empty().fold(&format!("[{event}]")).warned("C-43", "", "expanded").holds("[]");
    }
}

#[test]
fn messages_read_like_a_slice() {
    let folded = Folded::new(
        r#"[{"id":"a","role":"user","content":""},{"id":"b","role":"assistant"}]"#,
        "{}",
    );
    let messages = folded.conversation.messages();
    assert_eq!((messages.len(), messages.is_empty()), (2, false));
    assert_eq!(messages.get(1), messages.last());
    assert_eq!(messages.get(2), None);
    assert_eq!(messages.find("a"), Some(&messages[0]));
    assert_eq!(messages.find("c"), None);
    assert!(messages.find_call("a").is_none());
    assert!(messages.iter().rev().eq([&messages[1], &messages[0]]));
    assert_eq!(format!("{messages:?}"), format!("{:?}", messages.to_vec()));
}

#[test]
fn a_conversation_can_be_read_from_several_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Conversation>();
}

#[test]
fn an_answer_of_the_applications_own_goes_behind_its_call() {
    // C-55, section 11
    let messages = r#"[
        {"id":"a","role":"assistant","toolCalls":[
            {"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},
            {"id":"d","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"id":"r","role":"tool","content":"1","toolCallId":"c"},
        {"id":"b","role":"assistant","content":"..."}]"#;
    let pending = ["c", "d", "x"].map(Into::into);
    let mut conversation = Conversation::new(list(messages), Value::Null)
        .with_pending_tool_calls(pending)
        .with_usage(Vec::new());
    let open: Vec<_> = conversation.pending_tool_calls().map(|call| call.as_str()).collect();
    assert_eq!(open, ["d"], "what is answered, or held by no message, does not wait");

    let mut applied = Applied::default();
    conversation.push_result(ToolMessage::new("s", "2", "d"), &mut applied);
    let created =
        |message: &str, position| Change::MessageCreated { message: message.into(), position };
    assert_eq!(applied.changes, [created("s", 2)]);
    assert_eq!(conversation.pending_tool_calls().len(), 0);
    conversation.push_result(ToolMessage::new("t", "3", "nobody"), &mut applied);
    assert_eq!(applied.changes, [created("t", 4)]);
}
