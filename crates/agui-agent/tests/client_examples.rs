//! The examples of the client's side, with agents in this process.
#![cfg(all(feature = "http", feature = "schemars", feature = "session"))]

#[allow(dead_code)]
#[path = "../examples/client_approval.rs"]
mod client_approval;
#[allow(dead_code)]
#[path = "../examples/client_tools.rs"]
mod client_tools;
mod scripted;
#[allow(dead_code)]
#[path = "../examples/terminal_client.rs"]
mod terminal_client;

use agui_agent::session::Session;
use agui_agent::{AgentResult, Run};
use agui_types::{Interrupt, InterruptId};
use client_approval::{Answer as Says, converse};
use client_tools::{Notes, with_notes};
use scripted::{Answer, Scripted, said};

#[tokio::test]
async fn a_conversation_in_the_terminal() {
    async fn agent(run: Run) -> AgentResult {
        match run.prompt().as_deref() {
            Some("fail") => return Err("no money".into()),
            Some("state") => run.state_snapshot(&7).await?,
            said => {
                let mut text = run.text().await?;
                text.push("You said ").await?;
                text.push(said.unwrap_or_default()).await?;
                text.end().await?;
                let mut call = run.tool_call("look").await?;
                call.args(r#"{"at":"it"}"#).await?;
                call.result("seen").await?;
            }
        }
        Ok(())
    }
    let mut session = Session::new(agent);
    let mut out = Vec::new();
    terminal_client::chat(&mut session, &b"hello\nfail\nstate\n"[..], &mut out).await.unwrap();
    let expected =
        "> You said hello\n[look {\"at\":\"it\"}]\n\n> \n(failed: no money)\n> [state 7]\n\n> ";
    assert_eq!(String::from_utf8(out).unwrap(), expected);

    let refused = || agui_agent::AgentError::Status { status: 401, body: "no".into() };
    let mut session = Session::new(Scripted::new([Answer::of(&[]).then(refused)]));
    let mut out = Vec::new();
    terminal_client::chat(&mut session, &b"hello\n"[..], &mut out).await.unwrap();
    let expected = "> \n(the agent gave no stream of events: HTTP 401: no)\n> ";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[tokio::test]
async fn tools_of_the_clients_own() {
    let calls = [
        ("c1", "add_note", r#"{"text":"milk"}"#),
        ("c2", "add_note", r#"{"text":" "}"#),
        ("c3", "list_notes", ""),
    ];
    let agent = Scripted::new([Answer::calls(&calls), Answer::completed(&[])]);
    let asked = agent.asked();
    let notes = Notes::default();
    let mut session = with_notes(agent, &notes);
    let finished = session.send("Note that I need milk").finish().await.unwrap();
    assert!(finished.is_completed());
    assert_eq!((finished.runs, notes.all()), (2, vec!["milk".to_owned()]));
    let asked = asked.lock().unwrap();
    let answers: Vec<_> = asked[1].messages[2..].iter().map(said).collect();
    let expected = ["noted as number 1", "Error: a note has from 1 to 200 bytes", r#"["milk"]"#];
    assert_eq!(answers, expected);
    let schema = asked[0].tools.as_ref().unwrap()[0].parameters.as_ref().unwrap().as_str();
    assert!(schema.contains("What to note, in one line."), "{schema}");
}

#[tokio::test]
async fn questions_are_answered_until_none_is_left() {
    async fn agent(run: Run) -> AgentResult {
        let id = InterruptId::from("sure");
        match run.answer(&id) {
            None => run.interrupt(Interrupt::new("sure", "approval").message("Sure?"))?,
            Some(answer) => {
                let payload = answer.payload.as_ref().map_or("nothing", |it| it.as_str());
                run.say(format!("{}: {payload}", answer.status.as_str())).await?;
            }
        }
        Ok(())
    }
    for (answer, told) in [
        (Says::Yes, r#"resolved: {"approved":true}"#),
        (Says::No, r#"resolved: {"approved":false}"#),
        (Says::Neither, "cancelled: nothing"),
    ] {
        let mut session = Session::new(agent);
        let answer = std::cell::Cell::new(Some(answer));
        let ask = |interrupt: &Interrupt| {
            assert_eq!(interrupt.message.as_deref(), Some("Sure?"));
            answer.take().expect("asked once")
        };
        let finished = converse(&mut session, "delete".into(), ask).await.unwrap();
        assert!(finished.is_completed());
        assert_eq!(said(session.messages().last().unwrap()), told);
    }
}
