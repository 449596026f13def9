//! Front-end tools: what is offered, carried out, answered and told.
#![cfg(feature = "session")]

mod scripted;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agui_agent::session::{
    Finished, FrontendTool, Session, SessionError, ToolCallContext, ToolOutput, Turn, Update,
};
use agui_stream::fold::Change;
use agui_stream::{Ending, Warning};
use agui_types::message::ToolMessage;
use agui_types::{Json, Message, RunAgentInput};
use scripted::{Answer, Scripted, ids, said};

#[derive(serde::Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
struct Sum {
    /// The first.
    a: i64,
    b: i64,
}

fn add() -> FrontendTool {
    FrontendTool::new("add", "Adds two numbers", |sum: Sum, _| async move {
        match sum.a.checked_add(sum.b) {
            Some(sum) => Ok(sum.to_string()),
            None => Err("that is too much".into()),
        }
    })
}

/// The one message that answers a call.
fn result<'a>(session: &'a Session, call: &str) -> &'a ToolMessage {
    let mut results = session.messages().iter().filter_map(|message| match message {
        Message::Tool(message) if message.tool_call_id.as_str() == call => Some(message),
        _ => None,
    });
    let result = results.next().expect("an answer");
    assert!(results.next().is_none(), "answered twice");
    result
}

async fn finished(turn: Turn<'_>) -> Finished {
    turn.finish().await.unwrap()
}

/// A conversation with an agent that answers these, and the inputs it gets.
fn session(answers: impl IntoIterator<Item = Answer>) -> (Session, Arc<Mutex<Vec<RunAgentInput>>>) {
    let agent = Scripted::new(answers);
    let asked = agent.asked();
    (Session::new(agent), asked)
}

#[tokio::test]
async fn calls_are_carried_out_after_the_run_and_the_agent_goes_on() {
    // C-50, C-55
    let calls = Answer::calls(&[
        ("c1", "add", r#"{"a":1,"b":2}"#),
        ("c2", "add", r#"{"a":9223372036854775807,"b":1}"#),
    ]);
    let (session, asked) = session([calls, Answer::completed(&[])]);
    let mut session = session.with_tool(add());
    let mut turn = session.send("sum");
    let mut seen = Vec::new();
    while let Some(update) = turn.next().await {
        seen.push(match update {
            Update::Change(Change::RunStarted { .. }) => "run".into(),
            Update::Change(Change::RunEnded { ending }) => ending.to_string(),
            Update::ToolStarted { tool_call, name } => format!("{name} {tool_call}"),
            Update::ToolFinished { tool_call, message, error } => {
                let position =
                    turn.messages().iter().position(|it| it.id().as_ref() == Some(&message));
                format!("{tool_call} {error:?} {}", position.unwrap())
            }
            _ => continue,
        });
    }
    let expected = [
        "run",
        "completed",
        "add c1",
        "c1 None 2",
        "add c2",
        r#"c2 Some("that is too much") 3"#,
        "run",
        "completed",
    ];
    assert_eq!(seen, expected);
    let done = finished(turn).await;
    assert_eq!((done.ending, done.runs, done.new_messages.len()), (Ending::Completed, 2, 3));
    let (first, second) = (result(&session, "c1"), result(&session, "c2"));
    assert_eq!((first.content.text(), &first.error), ("3".into(), &None));
    assert_eq!(second.content.text(), "Error: that is too much");
    assert_eq!(second.error.as_deref(), Some("that is too much"));
    assert_eq!(session.pending_tool_calls().count(), 0);
    let asked = asked.lock().unwrap();
    assert_eq!(asked[0].tools.as_ref().unwrap()[0].name, "add");
    assert_ne!(asked[0].run_id, asked[1].run_id);
    assert_eq!((asked[1].messages.len(), asked[1].resume.is_none()), (4, true));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_or_takes_too_long_or_is_called_wrongly_has_failed() {
    // C-51, C-55
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let names = ["early", "late", "dropped", "slow", "add", "add", "add", "add"];
    let arguments = ["{}", "{}", "{}", "{}", "{", "[1]", "", r#"{"a":1}"#];
    let ids: Vec<_> = (0..names.len()).map(|at| format!("c{at}")).collect();
    let calls: Vec<_> = ids
        .iter()
        .zip(names)
        .zip(arguments)
        .map(|((id, name), args)| (&**id, name, args))
        .collect();
    let (session, _) = session([Answer::calls(&calls), Answer::completed(&[])]);
    let early = |_: serde_json::Value, _| -> std::future::Ready<Result<(), agui_agent::BoxError>> {
        panic!("early")
    };
    let late = |_: serde_json::Value, _| async {
        tokio::task::yield_now().await;
        if true {
            panic!("late");
        }
        Ok(())
    };
    let dropped = |_: serde_json::Value, _| async {
        let _held = PanicsWhenDropped;
        std::future::pending::<()>().await;
        Ok(())
    };
    let slow = |_: serde_json::Value, _| async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        Ok(())
    };
    let mut session = session
        .with_tool(FrontendTool::new("early", "", early))
        .with_tool(FrontendTool::new("late", "", late))
        .with_tool(FrontendTool::new("dropped", "", dropped).timeout(Duration::from_secs(1)))
        .with_tool(FrontendTool::new("slow", "", slow))
        .with_tool(add());
    let done = finished(session.send("go")).await;
    assert_eq!((done.ending, done.runs), (Ending::Completed, 2));
    let errors: Vec<_> = ids.iter().map(|id| result(&session, id).error.clone().unwrap()).collect();
    assert_eq!(errors[0], "the tool panicked");
    assert_eq!(errors[1], "the tool panicked");
    assert_eq!(errors[2], "the tool did not answer within 1s");
    assert_eq!(errors[3], "the tool did not answer within 60s");
    assert!(errors[4].starts_with("the arguments are no JSON"), "{}", errors[4]);
    assert_eq!(errors[5], "the arguments are no JSON object");
    for error in &errors[6..] {
        assert!(error.contains("is missing"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_without_a_timeout_takes_its_time() {
    let (session, _) = session([Answer::calls(&[("c", "ask", "null")]), Answer::completed(&[])]);
    let ask = FrontendTool::new("ask", "Asks the person", |_: serde_json::Value, _| async {
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        Ok("yes")
    });
    let mut session = session.with_tool(ask.no_timeout());
    assert_eq!(finished(session.send("go")).await.runs, 2);
    assert_eq!(result(&session, "c").content.text(), "yes");
}

#[tokio::test]
async fn a_call_with_a_result_is_not_carried_out() {
    let answered = Answer::completed(&[
        r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"add"}"#,
        r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"a\":1,\"b\":2}"}"#,
        r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
        r#"{"type":"TOOL_CALL_RESULT","messageId":"r","toolCallId":"c","content":"from the agent"}"#,
    ]);
    let (session, _) = session([answered, Answer::interrupted(&["i"])]);
    let mut session = session.with_tool(add());
    assert_eq!(finished(session.send("go")).await.runs, 1);
    assert_eq!(result(&session, "c").id, "r");
    // Nothing is carried out of a run that did not complete.
    assert_eq!(finished(session.send("go")).await.ending, Ending::Interrupted);
}

#[tokio::test]
async fn tools_are_found_by_agent_then_name_then_wildcard() {
    // C-57
    let tool = |name: &str, says: &'static str| {
        FrontendTool::new(
            name,
            says,
            move |_: serde_json::Value, call: ToolCallContext| async move {
                Ok(format!("{says}: {}", call.tool_name))
            },
        )
    };
    let wildcard = |says: &'static str| {
        FrontendTool::wildcard(move |_: serde_json::Value, call: ToolCallContext| async move {
            Ok(format!("{says}: {}", call.tool_name))
        })
    };
    for (agent, a, b, offered) in [
        (None, "all", "any", vec!["a"]),
        (Some("x"), "own", "own any", vec!["a", "only"]),
        (Some("y"), "all", "any", vec!["a"]),
    ] {
        let calls = Answer::calls(&[("c1", "a", "{}"), ("c2", "b", "{}")]);
        let (session, asked) = session([calls, Answer::completed(&[])]);
        let mut session = session
            .with_tool(tool("a", "own").for_agent("x"))
            .with_tool(tool("a", "all"))
            .with_tool(wildcard("any"))
            .with_tool(wildcard("own any").for_agent("x"))
            .with_tool(tool("only", "own").for_agent("x"));
        if let Some(agent) = agent {
            session = session.with_agent_name(agent);
        }
        assert_eq!(finished(session.send("go")).await.runs, 2);
        assert_eq!(result(&session, "c1").content.text(), format!("{a}: a"));
        assert_eq!(result(&session, "c2").content.text(), format!("{b}: b"));
        let asked = asked.lock().unwrap();
        let names: Vec<_> = asked[0].tools.iter().flatten().map(|tool| &*tool.name).collect();
        assert_eq!(names, offered);
    }
}

#[tokio::test]
async fn a_call_of_a_tool_that_nobody_knows_is_left_alone() {
    let (session, _) = session([Answer::calls(&[("c", "theirs", "{}")]), Answer::completed(&[])]);
    let mut session = session.with_tool(add());
    assert_eq!(finished(session.send("go")).await.runs, 1);
    assert_eq!(session.pending_tool_calls().count(), 1);
    // It may be the agent's own: there is nothing to warn of.
    let mut turn = session.send("more");
    while let Some(update) = turn.next().await {
        assert!(!matches!(update, Update::Warning(_)), "{update:?}");
    }
}

#[tokio::test]
async fn the_application_may_answer_itself() {
    // C-55
    let (session, asked) = session([
        Answer::calls(&[
            ("c1", "add", r#"{"a":1,"b":2}"#),
            ("c2", "ask", "{}"),
            ("c3", "ask", "{}"),
        ]),
        Answer::completed(&[]),
        Answer::calls(&[("c4", "ask", "{}")]),
        Answer::completed(&[]),
    ]);
    let mut session =
        session.with_tool(add()).with_tool(FrontendTool::without_handler("ask", "Asks"));
    // What can be carried out is, and the agent waits for the rest.
    assert_eq!(finished(session.send("go")).await.runs, 1);
    let waiting: Vec<_> = session.pending_tool_calls().map(|(_, call)| call.id.clone()).collect();
    assert_eq!(waiting, ["c2", "c3"]);
    assert!(session.answer(&waiting[0], "yes"));
    assert!(!session.answer(&waiting[0], "no"), "once");
    assert!(session.answer_failed(&waiting[1], "the person refused"));
    assert_eq!(result(&session, "c3").error.as_deref(), Some("the person refused"));
    assert_eq!(finished(session.run()).await.runs, 1);
    assert_eq!(asked.lock().unwrap()[1].messages.len(), 5);

    // What is sent without an answer is warned of.
    let _ = finished(session.run()).await;
    let mut turn = session.send("never mind");
    let mut rules = Vec::new();
    while let Some(update) = turn.next().await {
        if let Update::Warning(Warning { rule, message, .. }) = update {
            rules.push(rule);
            assert!(message.contains("c4"), "{message}");
        }
    }
    assert_eq!(rules, ["C-55"]);
}

#[tokio::test]
async fn runs_follow_as_often_as_they_may() {
    let calls = |id| Answer::calls(&[(id, "add", r#"{"a":1,"b":1}"#)]);
    let (session, asked) = session([calls("c1"), calls("c2"), calls("c3")]);
    let mut session = session.with_tool(add()).with_most_follow_ups(2);
    let mut turn = session.send("go");
    let mut refused = 0;
    while let Some(update) = turn.next().await {
        refused += usize::from(matches!(update, Update::FollowUpRefused));
    }
    let done = finished(turn).await;
    assert_eq!((done.ending, done.runs, refused), (Ending::Completed, 3, 1));
    // The last call is answered all the same.
    assert_eq!(result(&session, "c3").content.text(), "2");
    assert_eq!(asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_tool_may_want_no_run_to_follow() {
    let (session, _) = session([Answer::calls(&[("c", "add", r#"{"a":1,"b":1}"#)])]);
    let mut session = session.with_tool(add().no_follow_up());
    assert_eq!(finished(session.send("go")).await.runs, 1);
    assert_eq!(result(&session, "c").content.text(), "2");
}

#[tokio::test]
async fn cancelling_answers_what_is_open() {
    // C-12, C-13, C-55
    let calls = Answer::calls(&[("c1", "wait", "{}"), ("c2", "wait", "{}")]);
    let (session, _) = session([calls]);
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counts(Arc<AtomicUsize>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let counted = Arc::clone(&dropped);
    let wait = move |_: serde_json::Value, _| {
        let counts = Counts(Arc::clone(&counted));
        async move {
            let _counts = counts;
            std::future::pending::<()>().await;
            Ok(())
        }
    };
    let mut session = session.with_tool(FrontendTool::new("wait", "", wait));
    let mut turn = session.send("go");
    while let Some(update) = turn.next().await {
        if matches!(update, Update::ToolStarted { .. }) {
            let cancel = turn.cancellation();
            tokio::spawn(async move { cancel.cancel() });
        }
    }
    let done = finished(turn).await;
    assert_eq!((done.ending, done.runs), (Ending::Cancelled, 1));
    assert_eq!(dropped.load(Ordering::SeqCst), 1, "the second was never called");
    for call in ["c1", "c2"] {
        assert_eq!(result(&session, call).error.as_deref(), Some("the turn was cancelled"));
    }
}

#[tokio::test]
async fn what_a_restored_session_waits_for_can_be_carried_out() {
    let (first, _) = session([Answer::calls(&[("c", "add", r#"{"a":20,"b":22}"#)])]);
    let mut first = first;
    let _ = finished(first.send("go")).await;
    let agent = Scripted::new([Answer::completed(&[])]);
    let mut restored = Session::restore(agent, first.save()).unwrap().with_tool(add());
    let done = finished(restored.run_tools()).await;
    assert_eq!((done.ending, done.runs), (Ending::Completed, 1));
    assert_eq!(result(&restored, "c").content.text(), "42");
    assert_eq!(ids(&restored.messages().to_vec()).len(), 3);
    // Nothing is left to do, so nothing is asked.
    assert_eq!(finished(restored.run_tools()).await.runs, 0);
}

#[tokio::test]
async fn outputs_are_texts_or_parts() {
    let parts: Vec<agui_types::ContentPart> =
        vec![agui_types::message::TextPart::new("part").into()];
    let outputs: [ToolOutput; 6] = [
        "text".into(),
        ().into(),
        serde_json::json!({ "n": null }).into(),
        Json::parse("1.50").unwrap().into(),
        ToolOutput::json(&vec![1, 2]).unwrap(),
        parts.into(),
    ];
    let expected = ["text", "", r#"{"n":null}"#, "1.50", "[1,2]", "part"];
    for (output, expected) in outputs.into_iter().zip(expected) {
        let (session, _) = session([Answer::calls(&[("c", "t", "{}")])]);
        let tool = FrontendTool::new("t", "", move |_: serde_json::Value, _| {
            let output = output.clone();
            async move { Ok(output) }
        });
        let mut session = session.with_tool(tool.no_follow_up());
        let _ = finished(session.send("go")).await;
        assert_eq!(said(session.messages().last().unwrap()), expected);
    }
}

#[tokio::test]
async fn tools_can_be_changed_between_turns() {
    let (session, asked) = session([Answer::completed(&[]), Answer::completed(&[])]);
    let mut session = session.with_tool(add());
    session.tools().add(add().parameters(Json::parse("{}").unwrap()));
    assert_eq!(session.tools().iter().count(), 1, "in its place");
    let _ = finished(session.run()).await;
    assert!(session.tools().remove("add", None) && !session.tools().remove("add", None));
    let _: Result<Finished, SessionError> = session.run().finish().await;
    let asked = asked.lock().unwrap();
    let offered: Vec<_> = asked.iter().map(|it| it.tools.as_ref().unwrap().len()).collect();
    assert_eq!(offered, [1, 0]);
}

#[cfg(feature = "schemars")]
#[test]
fn the_schema_of_a_typed_tool_is_that_of_its_argument() {
    let tool =
        FrontendTool::typed(
            "add",
            "Adds",
            |sum: Sum, _| async move { Ok((sum.a + sum.b).to_string()) },
        );
    let schema: serde_json::Value = tool.tool().parameters.as_ref().unwrap().decode().unwrap();
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], serde_json::json!(["a", "b"]));
    assert_eq!(schema["properties"]["a"]["description"], "The first.");
    assert!(schema.get("$schema").is_none());
}
