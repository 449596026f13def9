//! Every behaviour in `docs/demo-agent.md`, through the rules and the fold. Time is paused: pauses
//! between words take none.

use agui_agent::{Agent, CancellationToken, RunContext};
use agui_stream::fold::{Applied, Conversation};
use agui_stream::{Ending, Verifier};
use agui_types::message::{
    ContentPart, ImagePart, MessageContent, TextPart, ToolMessage, UrlSource, UserMessage,
};
use agui_types::{
    Event, EventType, Json, Message, ResumeEntry, ResumeStatus, RunAgentInput, RunFinishedOutcome,
    Tool,
};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use super::speech::MOST_PIECES;
use super::{WORDS, agent, capabilities};

/// What a run gave.
struct Seen {
    events: Vec<Event>,
    conversation: Conversation,
}

impl Seen {
    fn types(&self) -> Vec<EventType> {
        self.events.iter().filter_map(Event::event_type).collect()
    }

    fn count(&self, event_type: EventType) -> usize {
        self.types().into_iter().filter(|found| *found == event_type).count()
    }

    fn position(&self, event_type: EventType) -> usize {
        self.types().iter().position(|found| *found == event_type).unwrap()
    }

    fn messages(&self) -> Vec<Message> {
        self.conversation.messages().to_vec()
    }

    fn roles(&self) -> Vec<String> {
        self.messages().iter().map(|message| message.tag().into()).collect()
    }

    /// The text of the last message, which is the assistant's.
    fn answer(&self) -> String {
        match self.messages().last() {
            Some(Message::Assistant(message)) => message.content.clone().unwrap(),
            other => panic!("no answer: {other:?}"),
        }
    }

    fn outcome(&self) -> Option<RunFinishedOutcome> {
        match self.events.last() {
            Some(Event::RunFinished(finished)) => finished.outcome.clone(),
            other => panic!("not finished: {other:?}"),
        }
    }

    fn state(&self) -> Value {
        self.conversation.state().to_json().decode().unwrap()
    }
}

fn user(text: &str) -> Message {
    UserMessage::new(format!("u-{text}"), text).into()
}

fn input(messages: Vec<Message>) -> RunAgentInput {
    RunAgentInput::new("thread", "run", messages)
}

async fn say(text: &str) -> Seen {
    run(input(vec![user(text)])).await
}

async fn run(input: RunAgentInput) -> Seen {
    run_until(input, CancellationToken::new()).await
}

/// Runs the agent; every event keeps the rules and folds without a warning.
async fn run_until(input: RunAgentInput, cancel: CancellationToken) -> Seen {
    let mut verifier = Verifier::for_run(input.thread_id.clone(), input.run_id.clone());
    let mut conversation = Conversation::from_input(&input).unwrap();
    let mut stream = agent().run(input, RunContext::new().with_cancel(cancel));
    let (mut events, mut applied) = (Vec::new(), Applied::default());
    while let Some(reading) = stream.next().await {
        let event = reading.unwrap().value;
        verifier.push(&event).unwrap();
        conversation.apply(&event, &mut applied);
        assert_eq!(applied.warnings, [], "{event:?}");
        events.push(event);
    }
    verifier.finish().unwrap();
    match &events[0] {
        Event::RunStarted(started) => {
            assert_eq!(started.protocol_version.as_ref().unwrap().as_str(), "1.0");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(events.iter().filter(|event| event.is_terminal()).count(), 1);
    Seen { events, conversation }
}

#[tokio::test(start_paused = true)]
async fn anything_unknown_is_echoed_word_by_word() {
    let seen = say("Good morning, 世界 🌍").await;
    assert_eq!(seen.roles(), ["user", "assistant"]);
    assert!(seen.answer().starts_with("You said: Good morning, 世界 🌍\n"), "{}", seen.answer());
    assert!(seen.answer().contains("help"));
    assert!(seen.count(EventType::TextMessageContent) > 5);
    assert_eq!(seen.conversation.ending(), Some(Ending::Completed));
}

#[tokio::test(start_paused = true)]
async fn a_word_is_the_first_of_the_last_user_message() {
    let seen = say("  help me\nplease").await;
    assert!(seen.answer().starts_with("Say one of these words"));
    assert!(say("helpful").await.answer().starts_with("You said: helpful"));

    let reminder = agui_types::message::SystemMessage::new("s", "Be brief.").into();
    let seen = run(input(vec![user("help"), reminder])).await;
    assert!(seen.answer().starts_with("Say one of these words"));
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_text_is_answered_too() {
    // P-79
    let image = ImagePart::new(UrlSource::new("https://example.org/cat.png"));
    let parts = |parts: Vec<ContentPart>| {
        input(vec![UserMessage::new("u", MessageContent::Parts(parts)).into()])
    };
    assert!(run(parts(vec![image.clone().into()])).await.answer().contains("nothing I can read"));
    let seen = run(parts(vec![image.into(), TextPart::new("steps").into()])).await;
    assert_eq!(seen.count(EventType::StepStarted), 3);
    assert!(run(input(Vec::new())).await.answer().contains("nothing I can read"));
}

#[tokio::test(start_paused = true)]
async fn a_long_echo_takes_seconds_and_not_hours() {
    let began = Instant::now();
    let seen = say(&"word ".repeat(100_000)).await;
    assert!(seen.count(EventType::TextMessageContent) <= MOST_PIECES);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn help_lists_every_word() {
    let seen = say("help").await;
    assert_eq!(seen.roles(), ["user", "assistant"]);
    for (word, _) in WORDS {
        assert!(seen.answer().contains(&format!("- {word}: ")), "{word}");
        assert_eq!(seen.count(EventType::TextMessageStart), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn every_word_shows_something_of_its_own() {
    for (word, _) in WORDS {
        let seen = say(word).await;
        let echoed = seen.messages().iter().any(|message| {
            matches!(message, Message::Assistant(message)
                if message.content.as_deref().unwrap_or_default().starts_with("You said"))
        });
        assert!(!echoed, "{word}");
    }
}

#[tokio::test(start_paused = true)]
async fn reasoning_is_a_span_with_a_message_and_its_artefact() {
    let seen = say("reasoning").await;
    assert_eq!(seen.roles(), ["user", "reasoning", "assistant"]);
    assert!(seen.count(EventType::ReasoningMessageContent) > 1);
    assert!(
        seen.position(EventType::ReasoningStart) < seen.position(EventType::ReasoningMessageStart)
    );
    assert!(seen.position(EventType::ReasoningMessageEnd) < seen.position(EventType::ReasoningEnd));
    match &seen.messages()[1] {
        Message::Reasoning(thought) => assert!(thought.encrypted_value.is_some()),
        other => panic!("{other:?}"),
    }
    assert!(!seen.answer().is_empty());
}

#[tokio::test(start_paused = true)]
async fn tools_are_two_calls_at_once_on_one_message() {
    let seen = say("tools").await;
    assert_eq!(seen.roles(), ["user", "assistant", "tool", "tool", "assistant"]);
    let Message::Assistant(asking) = &seen.messages()[1] else { panic!("no assistant") };
    assert!(!asking.content.as_ref().unwrap().is_empty());
    let calls = asking.tool_calls.as_ref().unwrap();
    let arguments: Vec<&str> = calls.iter().map(|call| &*call.function.arguments).collect();
    assert_eq!(arguments, [r#"{"city":"Paris"}"#, r#"{"city":"Oslo"}"#]);
    let fragments: Vec<_> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolCallArgs(args) => Some(args.tool_call_id.clone()),
            _ => None,
        })
        .collect();
    assert!(fragments.windows(2).all(|pair| pair[0] != pair[1]), "interleaved");
    assert_eq!(seen.conversation.pending_tool_calls().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_front_end_tool_is_left_to_the_application() {
    // P-30 to P-32, P-37
    let schema = Json::from(json!({ "type": "object", "properties": { "a": { "const": 1 } } }));
    let tools =
        vec![Tool::new("ask", "asks").parameters(schema), Tool::new("other", "is not the first")];
    let asked = run(input(vec![user("frontend")]).tools(tools.clone())).await;
    let Message::Assistant(asking) = &asked.messages()[1] else { panic!("no assistant") };
    let call = &asking.tool_calls.as_ref().unwrap()[0];
    assert_eq!((&*call.function.name, &*call.function.arguments), ("ask", r#"{"a":1}"#));
    assert_eq!(asked.count(EventType::ToolCallResult), 0);
    match asked.outcome() {
        Some(RunFinishedOutcome::Success(success)) => {
            assert_eq!(success.pending_tool_call_ids.as_deref(), Some(&[call.id.clone()][..]));
        }
        other => panic!("{other:?}"),
    }

    let answer = |answer: ToolMessage| {
        let mut messages = asked.messages();
        messages.push(answer.into());
        run(input(messages).tools(tools.clone()))
    };
    let text = ToolMessage::new("a", "teal, please", &call.id);
    let answered = answer(text.clone()).await;
    assert_eq!(answered.answer(), "Your tool answered: teal, please");
    assert_eq!(answered.count(EventType::ToolCallStart), 0);
    assert_eq!(answered.conversation.pending_tool_calls().len(), 0);

    // C-56
    let image = ImagePart::new(UrlSource::new("https://example.org/red.png"));
    let parts = vec![TextPart::new("dark ").into(), image.into(), TextPart::new("red").into()];
    let parts = ToolMessage::new("a", MessageContent::Parts(parts), &call.id);
    assert_eq!(answer(parts).await.answer(), "Your tool answered: dark red");
    let failed = answer(text.error("no such colour")).await;
    assert_eq!(failed.answer(), "Your tool failed: no such colour");
}

#[tokio::test(start_paused = true)]
async fn with_no_tool_on_offer_a_text_says_so() {
    for tools in [None, Some(Vec::new())] {
        let mut input = input(vec![user("frontend")]);
        input.tools = tools;
        let seen = run(input).await;
        assert_eq!(seen.count(EventType::ToolCallStart), 0);
        assert!(seen.answer().contains("tool"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_state_is_restated_and_patched() {
    let state = json!({ "kept": [1, { "a/b": null }], "demo": "replaced" });
    let seen = run(input(vec![user("state")]).state(Json::from(state))).await;
    let [Event::StateSnapshot(snapshot)] = &seen
        .events
        .iter()
        .filter(|event| matches!(event, Event::StateSnapshot(_)))
        .cloned()
        .collect::<Vec<_>>()[..]
    else {
        panic!("one snapshot")
    };
    assert_eq!(
        snapshot.snapshot.decode::<Value>().unwrap(),
        json!({ "kept": [1, { "a/b": null }], "demo": { "progress": 0, "log": [] } })
    );
    assert_eq!(seen.count(EventType::StateDelta), 4);
    let state = seen.state();
    assert_eq!(state["kept"], json!([1, { "a/b": null }]));
    assert_eq!(state["demo"]["progress"], 100);
    assert_eq!(state["demo"]["log"].as_array().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_no_object_is_replaced() {
    for state in [json!([1, 2]), json!("text"), json!(0)] {
        let seen = run(input(vec![user("state")]).state(Json::from(state))).await;
        assert_eq!(seen.state()["demo"]["progress"], 100);
    }
    assert_eq!(say("state").await.state()["demo"]["progress"], 100);
}

#[tokio::test(start_paused = true)]
async fn steps_overlap_and_close() {
    let seen = say("steps").await;
    let steps: Vec<String> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            Event::StepStarted(step) => Some(format!("{} starts", step.step_name)),
            Event::StepFinished(step) => Some(format!("{} ends", step.step_name)),
            _ => None,
        })
        .collect();
    assert_eq!(
        steps,
        [
            "plan starts",
            "gather starts",
            "plan ends",
            "gather ends",
            "answer starts",
            "answer ends"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_activity_is_patched() {
    let seen = say("activity").await;
    assert_eq!(seen.count(EventType::ActivityDelta), 3);
    let Message::Activity(activity) = &seen.messages()[1] else { panic!("no activity") };
    assert_eq!(activity.activity_type, "SEARCH");
    let content: Value = activity.content.decode().unwrap();
    assert_eq!(content["query"], "agui");
    assert_eq!(content["hits"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn subagents_stream_at_once_and_nest() {
    let seen = say("subagents").await;
    let started: Vec<_> = seen
        .events
        .iter()
        .filter_map(|event| match event {
            Event::SubagentStarted(started) => Some(started.clone()),
            _ => None,
        })
        .collect();
    let names: Vec<&str> = started.iter().map(|started| &*started.name).collect();
    assert_eq!(names, ["researcher", "writer", "fact-checker"]);
    assert_eq!(
        started[2].parent_subagent_run_id.as_ref(),
        Some(&started[0].subagent_run_id),
        "P-64"
    );
    assert_eq!(seen.count(EventType::SubagentFinished), 3);
    for started in &started {
        let owned = seen
            .messages()
            .iter()
            .any(|message| message.attribution() == Some(&started.subagent_run_id));
        assert!(owned, "{}", started.name);
    }
    let owners: Vec<_> = seen
        .events
        .iter()
        .filter(|event| matches!(event, Event::TextMessageContent(_)))
        .map(|event| event.attribution().cloned())
        .collect();
    assert!(owners.windows(2).filter(|pair| pair[0] != pair[1]).count() > 4, "interleaved");
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_asked_for_and_taken_up() {
    let asked = say("approval").await;
    let interrupts = asked.conversation.open_interrupts().to_vec();
    let [interrupt] = &interrupts[..] else { panic!("one interrupt") };
    let Message::Assistant(asking) = &asked.messages()[1] else { panic!("no assistant") };
    let call = &asking.tool_calls.as_ref().unwrap()[0];
    assert_eq!(call.function.name, "delete_file");
    assert_eq!(interrupt.reason, "tool_call");
    assert_eq!(interrupt.tool_call_id.as_ref(), Some(&call.id));
    assert!(interrupt.message.is_some() && interrupt.response_schema.is_some());
    assert_eq!(asked.count(EventType::ToolCallResult), 0);

    let resolved = |payload: Option<Value>| {
        let mut entry = ResumeEntry::new(&interrupt.id, ResumeStatus::Resolved);
        entry.payload = payload.map(Json::from);
        entry
    };
    let answers = [
        (resolved(Some(json!({ "approved": true }))), "deleted"),
        (resolved(Some(json!(true))), "deleted"),
        (resolved(Some(json!({ "approved": false }))), "refused"),
        (resolved(Some(json!({ "approved": "true" }))), "refused"),
        (resolved(Some(json!(false))), "refused"),
        (resolved(Some(json!("yes"))), "refused"),
        (resolved(Some(json!(1))), "refused"),
        (resolved(None), "refused"),
        (ResumeEntry::new(&interrupt.id, ResumeStatus::Cancelled), "refused"),
        (
            ResumeEntry::new(&interrupt.id, ResumeStatus::Cancelled)
                .payload(Json::from(json!(true))),
            "refused",
        ),
    ];
    for (entry, outcome) in answers {
        // P-69: the history is enough, and so is the entry alone.
        for messages in [asked.messages(), Vec::new()] {
            let seen = run(input(messages).resume(vec![entry.clone()])).await;
            let results: Vec<Message> = seen
                .messages()
                .into_iter()
                .filter(|message| matches!(message, Message::Tool(_)))
                .collect();
            let [Message::Tool(result)] = &results[..] else { panic!("one result") };
            assert_eq!(result.tool_call_id, call.id);
            assert_eq!(result.content.text(), outcome);
            assert!(seen.answer().contains(outcome), "{}", seen.answer());
            assert_eq!(seen.count(EventType::ToolCallStart), 0);
            assert_eq!(seen.conversation.ending(), Some(Ending::Completed));
        }
    }

    // A front end may put the decision into the history itself, besides resuming.
    let mut messages = asked.messages();
    messages.push(ToolMessage::new("decision", r#"{"approved":true}"#, &call.id).into());
    let entry = resolved(Some(json!({ "approved": true })));
    let seen = run(input(messages.clone()).resume(vec![entry])).await;
    assert!(seen.answer().contains("deleted"), "{}", seen.answer());
    assert_eq!(seen.count(EventType::ToolCallResult), 0, "it has a result");
    let seen = run(input(messages)).await;
    assert!(seen.answer().starts_with("Your tool answered"), "{}", seen.answer());

    // Answered once, it is not taken up again (P-72).
    let entry = resolved(Some(json!(true)));
    let mut messages = run(input(asked.messages()).resume(vec![entry.clone()])).await.messages();
    messages.push(user("hello"));
    let seen = run(input(messages).resume(vec![entry])).await;
    assert!(seen.answer().starts_with("You said: hello"));
}

#[tokio::test(start_paused = true)]
async fn a_question_left_open_is_asked_again() {
    // P-71
    let asked = say("approval").await;
    let mut messages = asked.messages();
    messages.push(user("hello"));
    let seen = run(input(messages)).await;
    assert_eq!(seen.conversation.ending(), Some(Ending::Interrupted));
    assert_eq!(seen.conversation.open_interrupts(), asked.conversation.open_interrupts());
    assert_eq!(seen.count(EventType::ToolCallResult), 0);
}

#[tokio::test(start_paused = true)]
async fn an_answer_to_a_question_nobody_asked_is_passed_over() {
    // P-70
    for id in ["nobody", "approve-nobody", ""] {
        let entry = ResumeEntry::new(id, ResumeStatus::Resolved).payload(Json::from(json!(true)));
        let seen = run(input(vec![user("hello")]).resume(vec![entry])).await;
        assert!(seen.answer().starts_with("You said: hello"), "{id}");
    }
}

#[tokio::test(start_paused = true)]
async fn history_restates_the_conversation_with_an_answer() {
    // P-53
    let before = vec![user("hi"), user("history")];
    let seen = run(input(before.clone())).await;
    let [Event::RunStarted(_), Event::MessagesSnapshot(snapshot), Event::RunFinished(_)] =
        &seen.events[..]
    else {
        panic!("{:?}", seen.types())
    };
    assert_eq!(snapshot.messages[..2], before);
    assert_eq!(seen.messages(), snapshot.messages);
    assert!(seen.answer().contains("2 messages"));
}

#[tokio::test(start_paused = true)]
async fn custom_and_raw_events_go_out() {
    let seen = say("custom").await;
    assert_eq!(seen.count(EventType::Custom), 1);
    assert_eq!(seen.count(EventType::Raw), 1);
    let named = |event: &Event| matches!(event, Event::Custom(it) if it.name == "demo.greeting");
    assert!(seen.events.iter().any(named));
    assert!(!seen.answer().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_result_comes_with_usage() {
    let seen = run(input(vec![user("two words"), user("result please")])).await;
    let result: Value = seen.conversation.result().unwrap().decode().unwrap();
    assert_eq!(result, json!({ "answer": 42 }));
    let [usage] = seen.conversation.usage() else { panic!("one entry") };
    assert_eq!(usage.provider.as_deref(), Some("agui"));
    assert_eq!(usage.model.as_deref(), Some("demo"));
    assert_eq!(usage.input_tokens.unwrap().get(), 4);
    let said = seen.answer().split_whitespace().count();
    assert_eq!(usage.output_tokens.unwrap().get(), said as u64);
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_in_the_middle_of_a_text() {
    let seen = say("error").await;
    let Some(Event::RunError(error)) = seen.events.last() else { panic!("no error") };
    assert_eq!(error.code.as_deref(), Some("DEMO_ERROR"));
    assert!(!error.message.is_empty());
    assert!(!seen.answer().is_empty(), "what was said stays");
    assert_eq!(seen.conversation.ending(), Some(Ending::Failed));
}

#[tokio::test(start_paused = true)]
async fn slow_takes_a_second_a_word() {
    for (text, seconds) in [
        ("slow 3", 3),
        ("slow", 10),
        ("slow 0", 0),
        ("slow down", 10),
        ("slow -1", 10),
        ("slow 300", 300),
        ("slow 301", 300),
        ("slow 99999999999999999999999", 300),
    ] {
        let began = Instant::now();
        let seen = say(text).await;
        assert_eq!(began.elapsed(), Duration::from_secs(seconds), "{text}");
        assert_eq!(seen.count(EventType::TextMessageContent) as u64, seconds + 1, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_says_so() {
    // P-11, P-13
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        later.cancel();
    });
    let seen = run_until(input(vec![user("slow 300")]), cancel).await;
    assert!(matches!(seen.outcome(), Some(RunFinishedOutcome::Cancelled(_))));
    assert_eq!(seen.answer(), "1 2 3 ");
}

#[tokio::test]
async fn its_capabilities_are_declared() {
    let declared = agent().capabilities().await.unwrap();
    assert_eq!(declared, capabilities());
    assert_eq!(declared.transport.unwrap().streaming, Some(true));
    assert_eq!(declared.tools.unwrap().client_provided, Some(true));
    assert_eq!(declared.human_in_the_loop.unwrap().interrupts, Some(true));
}
