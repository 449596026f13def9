//! Whether a session is busy: while a turn goes on, and not a moment longer, however it ends.
#![cfg(feature = "session")]

mod scripted;

use agui_agent::session::{FrontendTool, Session, SessionError, ToolCallContext, Update};
use agui_agent::{AgentError, AgentResult, Run};
use agui_stream::Ending;
use agui_stream::fold::Change;
use agui_types::Json;
use scripted::{Answer, Scripted};

const STARTED: &str = r#"{"type":"RUN_STARTED","threadId":"$thread","runId":"$run"}"#;

/// Takes the turn of a session to its last update, and does not finish it.
async fn to_the_end(session: &mut Session) {
    let mut turn = session.turn().unwrap();
    assert!(turn.is_busy(), "it goes on before it is polled");
    while turn.next().await.is_some() {}
    assert!(!turn.is_busy(), "nothing more comes");
}

/// It is over, says how it ended although that is asked late, and another one begins at once.
async fn is_free(session: &mut Session) -> Result<Ending, SessionError> {
    assert!(!session.is_busy());
    let ended = session.turn().unwrap().finish().await.map(|finished| finished.ending);
    assert!(!session.is_busy() && session.turn().is_none());
    ended
}

#[tokio::test]
async fn right_after_each_of_the_five_endings_and_after_none() {
    let finished = r#"{"type":"RUN_FINISHED","threadId":"$thread","runId":"$run","outcome":{"type":"cancelled"}}"#;
    let content = r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"ghost","delta":"x"}"#;
    let broken = || AgentError::Transport { source: "reset".into() };
    let refused = || AgentError::Status { status: 401, body: "no".into() };
    let endings = [
        (Answer::completed(&[]), Some(Ending::Completed)),
        (Answer::interrupted(&["i"]), Some(Ending::Interrupted)),
        (Answer::of(&[STARTED, finished]), Some(Ending::Cancelled)),
        (Answer::of(&[STARTED, r#"{"type":"RUN_ERROR","message":"no"}"#]), Some(Ending::Failed)),
        (Answer::of(&[STARTED]), Some(Ending::Truncated)),
        (Answer::of(&[STARTED]).then(broken), Some(Ending::Truncated)),
        (Answer::completed(&[content]), None),
        (Answer::of(&[]).then(refused), None),
    ];
    for (answer, ending) in endings {
        let mut session = Session::new(Scripted::new([answer, Answer::completed(&[])]));
        assert!(!session.is_busy() && session.turn().is_none());
        let _ = session.run();
        to_the_end(&mut session).await;
        assert_eq!(is_free(&mut session).await.ok(), ending);
        if ending != Some(Ending::Interrupted) {
            assert!(session.run().finish().await.unwrap().is_completed());
        }
        assert!(!session.is_busy());
    }
}

/// A run is over when its stream is: more may follow its terminal event.
#[tokio::test]
async fn while_a_run_says_that_it_ended_the_turn_goes_on() {
    let mut session = Session::new(Scripted::new([Answer::completed(&[])]));
    let mut turn = session.run();
    let mut ended = false;
    while let Some(update) = turn.next().await {
        ended |= matches!(update, Update::Change(Change::RunEnded { .. }));
        assert!(turn.is_busy());
    }
    assert!(ended && !turn.is_busy());
}

/// A turn that is over and that nobody has finished stands in nobody's way.
#[tokio::test]
async fn what_is_over_is_forgotten_by_the_next_turn() {
    let answers = [Answer::interrupted(&["i"]), Answer::completed(&[])];
    let mut session = Session::new(Scripted::new(answers));
    let _ = session.run();
    to_the_end(&mut session).await;
    let open = session.open_interrupts()[0].clone();
    let turn = session.resume([agui_agent::session::decline(&open)]);
    assert_eq!(turn.finish().await.unwrap().ending, Ending::Completed);
}

async fn endless(run: Run) -> AgentResult {
    run.say("so").await?;
    std::future::pending::<()>().await;
    Ok(())
}

async fn panics(_: Run) -> AgentResult {
    panic!("oh");
}

async fn until_text(session: &mut Session) {
    let mut turn = session.turn().unwrap();
    while let Some(update) = turn.next().await {
        if matches!(update, Update::Change(Change::TextAppended { .. })) {
            return;
        }
    }
    panic!("no text came");
}

#[tokio::test]
async fn after_cancelling() {
    let mut session = Session::new(endless);
    let _ = session.run();
    until_text(&mut session).await;
    session.cancel();
    // It takes effect when the turn is polled.
    assert!(session.is_busy());
    to_the_end(&mut session).await;
    assert_eq!(is_free(&mut session).await.unwrap(), Ending::Cancelled);
    // Nothing is left that could be cancelled, nor of the cancelling.
    session.cancel();
    let _ = session.run();
    until_text(&mut session).await;
    assert!(session.is_busy());
}

#[tokio::test]
async fn after_detaching() {
    let mut session = Session::new(endless);
    assert!(!session.detach(), "there is nothing to detach from");
    let _ = session.run();
    until_text(&mut session).await;
    assert!(session.detach());
    assert!(!session.is_busy() && session.turn().is_none() && !session.detach());
    assert_eq!(session.messages().len(), 1, "what came stays");
    assert_eq!(session.conversation().ending(), None);
    // The next one begins at once, with what came in its history.
    let _ = session.run();
    until_text(&mut session).await;
    assert!(session.is_busy());
}

#[tokio::test]
async fn a_turn_takes_the_place_of_the_one_that_goes_on_where_that_is_wanted() {
    let mut session = Session::new(endless).with_detaching(true);
    let _ = session.run();
    for messages in [1, 2] {
        until_text(&mut session).await;
        assert!(session.is_busy());
        assert_eq!(session.messages().len(), messages);
        let turn = session.run();
        assert!(turn.is_busy() && turn.conversation().ending().is_none());
    }
    // What cannot begin lets go of none.
    let refused = session.connect().finish().await.unwrap_err();
    assert!(matches!(refused, SessionError::NothingToConnectTo), "{refused:?}");
    assert!(session.is_busy());
    session.cancel();
    to_the_end(&mut session).await;
    assert_eq!(is_free(&mut session).await.unwrap(), Ending::Cancelled);

    // Connecting too: only what it brings is there then.
    let held =
        Answer::completed(&[r#"{"type":"TEXT_MESSAGE_CHUNK","messageId":"held","delta":"Held"}"#]);
    let (agent, said) = (Scripted::new([Answer::of(&[STARTED])]).connecting([held]), "hello");
    let mut session = Session::new(agent).with_detaching(true);
    let _ = session.send(said);
    assert!(session.is_busy());
    assert!(session.connect().finish().await.unwrap().is_completed());
    assert_eq!(session.messages().len(), 1);
    assert!(!session.is_busy() && session.messages().find("held").is_some());
}

#[tokio::test]
async fn after_detaching_from_a_tool() {
    let (dropped, mut gone) = tokio::sync::oneshot::channel::<()>();
    let dropped = std::sync::Arc::new(std::sync::Mutex::new(Some(dropped)));
    let tool = FrontendTool::new("ask", "", move |_: Json, _: ToolCallContext| {
        let held = dropped.lock().unwrap().take();
        async move {
            std::future::pending::<()>().await;
            drop(held);
            Ok("never")
        }
    });
    let agent = Scripted::new([Answer::calls(&[("c", "ask", "{}")])]);
    let mut session = Session::new(agent).with_tool(tool.no_timeout());
    let mut turn = session.run();
    while !matches!(turn.next().await, Some(Update::ToolStarted { .. })) {}
    // The handler is called.
    assert!(futures_util::poll!(std::pin::pin!(turn.next())).is_pending());
    assert!(session.is_busy() && gone.try_recv().is_err());
    assert!(session.detach() && !session.is_busy());
    assert!(gone.await.is_err(), "its future is dropped");
    assert_eq!(session.pending_tool_calls().count(), 1, "it is left without an answer");
}

#[tokio::test]
async fn after_letting_go_of_the_turn_and_of_its_future() {
    let mut session = Session::new(endless);
    let mut turn = session.run();
    let next = turn.next();
    drop(next);
    assert!(turn.is_busy());
    drop(turn);
    assert!(session.is_busy());
    until_text(&mut session).await;
    assert!(session.is_busy());
    let error = session.run().finish().await.unwrap_err();
    assert!(matches!(error, SessionError::Busy));
    assert!(session.is_busy(), "the refusal is not the turn's");
}

#[tokio::test]
async fn after_a_panic_of_the_agent() {
    let mut session = Session::new(panics);
    let _ = session.run();
    to_the_end(&mut session).await;
    assert_eq!(is_free(&mut session).await.unwrap(), Ending::Failed);
}

#[tokio::test]
async fn after_a_panic_of_a_tool_handler() {
    async fn late(_: Json, _: ToolCallContext) -> Result<String, agui_agent::BoxError> {
        tokio::task::yield_now().await;
        panic!("later")
    }
    fn at_once(
        _: Json,
        _: ToolCallContext,
    ) -> std::future::Ready<Result<String, agui_agent::BoxError>> {
        panic!("at once")
    }
    let tools = [FrontendTool::new("ask", "", late), FrontendTool::new("ask", "", at_once)];
    for tool in tools {
        let answers = [Answer::calls(&[("c", "ask", "{}")]), Answer::completed(&[])];
        let mut session = Session::new(Scripted::new(answers)).with_tool(tool);
        let _ = session.run();
        to_the_end(&mut session).await;
        assert_eq!(is_free(&mut session).await.unwrap(), Ending::Completed);
    }
}

#[tokio::test]
async fn after_connecting() {
    let answers = [Answer::of(&[]), Answer::completed(&[]), Answer::of(&[STARTED])];
    let mut session = Session::new(Scripted::new([]).connecting(answers));
    for ending in [Ending::Completed, Ending::Completed, Ending::Truncated] {
        let _ = session.connect();
        to_the_end(&mut session).await;
        assert_eq!(is_free(&mut session).await.unwrap(), ending);
    }
    // What never began leaves nothing behind.
    let mut session = Session::new(Scripted::new([]));
    let _ = session.connect();
    assert!(!session.is_busy() && session.turn().is_none());
}
