//! Events of every type, as JSON.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A member of an object that is there or not.
type Member = BoxedStrategy<Option<(String, Value)>>;

/// Text, mostly short, sometimes with what needs an escape or several bytes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{0,6}",
        2 => prop::sample::select(vec!["", "m1", "tool", "user", "success", "interrupt", "é☕😀"])
            .prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[\\x00-\\x1f\"\\\\/]{0,4}",
        1 => "[a-z]{120,140}",
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::from),
        (-9_007_199_254_740_991..=9_007_199_254_740_991i64).prop_map(Value::from),
        any::<f64>()
            .prop_filter_map("finite", |n| serde_json::Number::from_f64(n).map(Value::from)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec((text(), value()), 0..4)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// A member that is there or not.
fn perhaps(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    prop::option::weighted(0.5, value).prop_map(|it| it.map(|it| (name.into(), it))).boxed()
}

fn always(name: &'static str, value: impl Strategy<Value = Value> + 'static) -> Member {
    value.prop_map(move |value| Some((name.to_owned(), value))).boxed()
}

fn members(fixed: Value, members: Vec<Member>) -> BoxedStrategy<Value> {
    members
        .prop_map(move |members| {
            let mut all: Map<String, Value> = fixed.as_object().cloned().unwrap_or_default();
            all.extend(members.into_iter().flatten());
            Value::Object(all)
        })
        .boxed()
}

fn string() -> impl Strategy<Value = Value> {
    text().prop_map(Value::from)
}

fn strings() -> impl Strategy<Value = Value> {
    prop::collection::vec(string(), 0..3).prop_map(Value::from)
}

fn list(item: BoxedStrategy<Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(item, 0..3).prop_map(Value::from)
}

fn part() -> BoxedStrategy<Value> {
    let source = prop_oneof![
        members(
            json!({"type": "data"}),
            vec![always("value", string()), always("mimeType", string())]
        ),
        members(
            json!({"type": "url"}),
            vec![always("value", string()), perhaps("mimeType", string())]
        ),
        members(
            json!({"type": "file"}),
            vec![always("value", string()), perhaps("provider", string())]
        ),
        members(json!({"type": "hologram"}), vec![]),
    ];
    let media = ["image", "audio", "video", "document"].map(|kind| json!({ "type": kind }));
    let media = (prop::sample::select(media.to_vec()), source.boxed(), value()).prop_map(
        |(mut part, source, metadata)| {
            part["source"] = source;
            part["metadata"] = metadata;
            part
        },
    );
    prop_oneof![
        3 => members(json!({"type": "text"}), vec![always("text", string()), perhaps("id", string())]),
        2 => media,
        1 => members(json!({"type": "binary", "mimeType": "a/b"}), vec![perhaps("data", string()), perhaps("url", string())]),
        1 => Just(json!({"type": "scent"})),
    ]
    .boxed()
}

fn content() -> BoxedStrategy<Value> {
    prop_oneof![string(), list(part())].boxed()
}

fn message() -> BoxedStrategy<Value> {
    let shared = || {
        vec![
            always("id", string()),
            perhaps("metadata", object()),
            perhaps("subagentRunId", string()),
            perhaps("encryptedValue", string()),
            perhaps("encryptedValueType", string()),
        ]
    };
    let with = |more: Vec<BoxedStrategy<_>>| shared().into_iter().chain(more).collect::<Vec<_>>();
    let call = members(
        json!({"type": "function", "function": {"name": "f", "arguments": "{}"}}),
        vec![
            always("id", string()),
            perhaps("metadata", object()),
            perhaps("encryptedValue", string()),
        ],
    );
    prop_oneof![
        members(
            json!({"role": "developer"}),
            with(vec![always("content", string()), perhaps("name", string())])
        ),
        members(json!({"role": "system"}), with(vec![always("content", string())])),
        members(
            json!({"role": "assistant"}),
            with(vec![perhaps("content", string()), perhaps("toolCalls", list(call))])
        ),
        members(
            json!({"role": "user"}),
            with(vec![always("content", content()), perhaps("name", string())])
        ),
        members(
            json!({"role": "tool"}),
            with(vec![
                always("content", content()),
                always("toolCallId", string()),
                perhaps("error", string())
            ])
        ),
        members(
            json!({"role": "activity"}),
            vec![
                always("id", string()),
                always("activityType", string()),
                always("content", object())
            ]
        ),
        members(json!({"role": "reasoning"}), with(vec![always("content", string())])),
        members(
            json!({"role": "robot"}),
            with(vec![
                perhaps("content", value()),
                perhaps("name", value()),
                perhaps("more", value())
            ])
        ),
    ]
    .boxed()
}

fn operation() -> BoxedStrategy<Value> {
    let pointer = || prop::sample::select(vec!["", "/a", "/a~1b/0"]).prop_map(Value::from);
    prop_oneof![
        members(
            json!({"op": "add"}),
            vec![always("path", pointer()), always("value", value()), perhaps("from", value())]
        ),
        members(
            json!({"op": "remove"}),
            vec![always("path", pointer()), perhaps("value", value()), perhaps("x", value())]
        ),
        members(
            json!({"op": "replace"}),
            vec![always("path", pointer()), always("value", value())]
        ),
        members(json!({"op": "move"}), vec![always("path", pointer()), always("from", pointer())]),
        members(json!({"op": "copy"}), vec![always("path", pointer()), always("from", pointer())]),
        members(json!({"op": "test"}), vec![always("path", pointer()), always("value", value())]),
    ]
    .boxed()
}

fn usage() -> BoxedStrategy<Value> {
    let count = || (0..=9_007_199_254_740_991i64).prop_map(Value::from);
    members(
        json!({}),
        vec![
            perhaps("provider", string()),
            perhaps("inputTokens", count()),
            perhaps("cacheWriteInputTokens", count()),
        ],
    )
}

fn interrupt() -> BoxedStrategy<Value> {
    members(
        json!({}),
        vec![
            always("id", string()),
            always("reason", string()),
            perhaps("message", string()),
            perhaps("responseSchema", object()),
            perhaps("metadata", object()),
            perhaps("expiresAt", string()),
        ],
    )
}

fn input() -> BoxedStrategy<Value> {
    let tool = members(
        json!({"name": "t", "description": ""}),
        vec![perhaps("parameters", object()), perhaps("metadata", object())],
    );
    let resume = members(
        json!({"status": "resolved"}),
        vec![always("interruptId", string()), perhaps("payload", value())],
    );
    members(
        json!({}),
        vec![
            always("threadId", string()),
            always("runId", string()),
            always("messages", list(message())),
            perhaps("state", value()),
            perhaps("tools", list(tool)),
            perhaps("context", list(Just(json!({"description": "d", "value": ""})).boxed())),
            perhaps("forwardedProps", value()),
            perhaps("resume", list(resume)),
            perhaps("protocolVersion", string()),
        ],
    )
}

/// An event of any type, conforming but for kinds that nobody knows.
pub(crate) fn event() -> BoxedStrategy<Value> {
    let outcome = prop_oneof![
        members(json!({"type": "success"}), vec![perhaps("pendingToolCallIds", strings())]),
        prop::collection::vec(interrupt(), 1..3)
            .prop_map(|list| json!({"type": "interrupt", "interrupts": list})),
        Just(json!({"type": "cancelled"})),
        members(
            json!({"type": "paused"}),
            vec![perhaps("interrupts", list(interrupt())), perhaps("x", value())]
        ),
    ];
    let subagent_outcome = prop_oneof![
        Just(json!({"type": "success"})),
        members(json!({"type": "suspended"}), vec![perhaps("interruptIds", strings())]),
        members(json!({"type": "paused"}), vec![perhaps("interruptIds", strings())]),
    ];
    let role =
        || prop::sample::select(vec!["user", "assistant", "wizard", ""]).prop_map(Value::from);
    let kinds: Vec<(&str, Vec<Member>)> = vec![
        (
            "TEXT_MESSAGE_START",
            vec![always("messageId", string()), perhaps("role", role()), perhaps("name", string())],
        ),
        ("TEXT_MESSAGE_CONTENT", vec![always("messageId", string()), always("delta", string())]),
        ("TEXT_MESSAGE_END", vec![always("messageId", string())]),
        (
            "TEXT_MESSAGE_CHUNK",
            vec![
                perhaps("messageId", string()),
                perhaps("delta", string()),
                perhaps("role", role()),
            ],
        ),
        (
            "TOOL_CALL_START",
            vec![
                always("toolCallId", string()),
                always("toolCallName", string()),
                perhaps("parentMessageId", string()),
            ],
        ),
        ("TOOL_CALL_ARGS", vec![always("toolCallId", string()), always("delta", string())]),
        ("TOOL_CALL_END", vec![always("toolCallId", string())]),
        (
            "TOOL_CALL_CHUNK",
            vec![
                perhaps("toolCallId", string()),
                perhaps("toolCallName", string()),
                perhaps("delta", string()),
            ],
        ),
        (
            "TOOL_CALL_RESULT",
            vec![
                always("messageId", string()),
                always("toolCallId", string()),
                always("content", content()),
                perhaps("role", Just(json!("tool"))),
            ],
        ),
        ("STATE_SNAPSHOT", vec![always("snapshot", value())]),
        ("STATE_DELTA", vec![always("delta", list(operation()))]),
        ("MESSAGES_SNAPSHOT", vec![always("messages", list(message()))]),
        (
            "ACTIVITY_SNAPSHOT",
            vec![
                always("messageId", string()),
                always("activityType", string()),
                always("content", object()),
                perhaps("replace", any::<bool>().prop_map(Value::from)),
            ],
        ),
        (
            "ACTIVITY_DELTA",
            vec![
                always("messageId", string()),
                always("activityType", string()),
                always("patch", list(operation())),
            ],
        ),
        ("RAW", vec![always("event", value()), perhaps("source", string())]),
        ("CUSTOM", vec![always("name", string()), always("value", value())]),
        (
            "RUN_STARTED",
            vec![
                always("threadId", string()),
                always("runId", string()),
                perhaps("parentRunId", string()),
                perhaps("input", input()),
                perhaps("protocolVersion", string()),
            ],
        ),
        (
            "RUN_FINISHED",
            vec![
                always("threadId", string()),
                always("runId", string()),
                perhaps("result", value()),
                perhaps("outcome", outcome),
                perhaps("usage", list(usage())),
            ],
        ),
        (
            "RUN_ERROR",
            vec![
                always("message", string()),
                perhaps("code", string()),
                perhaps("usage", list(usage())),
            ],
        ),
        ("STEP_STARTED", vec![always("stepName", string())]),
        ("STEP_FINISHED", vec![always("stepName", string())]),
        ("REASONING_START", vec![always("messageId", string())]),
        (
            "REASONING_MESSAGE_START",
            vec![always("messageId", string()), always("role", Just(json!("reasoning")))],
        ),
        (
            "REASONING_MESSAGE_CONTENT",
            vec![always("messageId", string()), always("delta", string())],
        ),
        ("REASONING_MESSAGE_END", vec![always("messageId", string())]),
        (
            "REASONING_MESSAGE_CHUNK",
            vec![perhaps("messageId", string()), perhaps("delta", string())],
        ),
        ("REASONING_END", vec![always("messageId", string())]),
        (
            "REASONING_ENCRYPTED_VALUE",
            vec![
                always("subtype", Just(json!("message"))),
                always("entityId", string()),
                always("encryptedValue", string()),
                perhaps("encryptedValueType", string()),
            ],
        ),
        (
            "SUBAGENT_STARTED",
            vec![
                always("subagentRunId", string()),
                always("name", string()),
                perhaps("description", string()),
                perhaps("parentToolCallId", string()),
            ],
        ),
        (
            "SUBAGENT_FINISHED",
            vec![
                always("subagentRunId", string()),
                perhaps("result", value()),
                perhaps("outcome", subagent_outcome),
            ],
        ),
        (
            "SUBAGENT_ERROR",
            vec![
                always("subagentRunId", string()),
                always("message", string()),
                perhaps("code", string()),
            ],
        ),
    ];
    let unattributed = ["MESSAGES_SNAPSHOT", "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR"];
    let kinds = kinds.into_iter().map(|(kind, mut own)| {
        if !unattributed.contains(&kind) && !kind.starts_with("SUBAGENT") {
            own.push(perhaps("subagentRunId", string()));
        }
        own.push(perhaps(
            "timestamp",
            (-9_007_199_254_740_991..=9_007_199_254_740_991i64).prop_map(Value::from),
        ));
        own.push(perhaps("rawEvent", value()));
        own.push(perhaps("metadata", object()));
        members(json!({ "type": kind }), own)
    });
    proptest::strategy::Union::new(kinds).boxed()
}
