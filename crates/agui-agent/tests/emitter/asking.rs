//! Interrupts and their answers.

use agui_agent::emitter::{Answer, expires_in, schema_of};
use agui_agent::{Agent, AgentResult, EmitError, Run, RunContext};
use agui_types::{
    Event, Interrupt, Json, ResumeEntry, ResumeStatus, RunAgentInput, RunFinishedOutcome,
};

use crate::logged::logged;

use super::{finished, input, whole};

#[derive(serde::Deserialize, schemars::JsonSchema, Debug, PartialEq)]
struct Verdict {
    approved: bool,
}

fn resumed(entries: Vec<ResumeEntry>) -> RunAgentInput {
    input().resume(entries)
}

fn resolved(id: &str, payload: &str) -> ResumeEntry {
    ResumeEntry::new(id, ResumeStatus::Resolved).payload(Json::parse(payload).unwrap())
}

async fn run_on(agent: impl Agent, input: RunAgentInput) -> Vec<Event> {
    whole(agent.run(input, RunContext::new())).await
}

#[tokio::test]
async fn a_question_says_what_it_expects_and_until_when() {
    // P-67
    async fn agent(run: Run) -> AgentResult {
        let subagent = run.subagent("helper").await?;
        let interrupt = Interrupt::new("approve", "approval")
            .response_schema(schema_of::<Verdict>())
            .expires_at(expires_in(std::time::Duration::from_secs(60)));
        subagent.interrupt(interrupt.clone())?;
        subagent.suspend(vec!["approve".into()]).await?;
        run.interrupt(Interrupt::new("own", "approval"))?;
        Ok(())
    }
    let events = run_on(agent, input()).await;
    let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished(&events).outcome else {
        panic!("{events:?}")
    };
    let [asked, own] = &outcome.interrupts[..] else { panic!("{outcome:?}") };
    let Event::SubagentStarted(subagent) = &events[1] else { panic!("{events:?}") };
    assert_eq!(asked.subagent_run_id.as_ref(), Some(&subagent.subagent_run_id));
    assert_eq!(own.subagent_run_id, None);
    let schema: serde_json::Value =
        Json::from(asked.response_schema.clone().unwrap()).decode().unwrap();
    assert_eq!(schema["properties"]["approved"]["type"], "boolean");
    assert_eq!(asked.expires_at.as_ref().unwrap().len(), "2026-09-17T10:00:00Z".len());
}

#[tokio::test]
async fn answers_are_read_as_what_they_should_be() {
    // P-69, P-71
    async fn agent(run: Run) -> AgentResult {
        let verdict = run.answer_as::<Verdict>("yes")?;
        assert_eq!(verdict, Some(Answer::Resolved(Verdict { approved: true })));
        assert_eq!(run.answer_as::<Verdict>("no")?, Some(Answer::Cancelled));
        assert_eq!(run.answer_as::<Verdict>("open")?, None);
        assert_eq!(run.answer_as::<Option<Verdict>>("bare")?, Some(Answer::Resolved(None)));
        let wrong = run.answer_as::<Verdict>("wrong").unwrap_err();
        assert!(matches!(&wrong, EmitError::Read { what, .. } if what.contains("wrong")));
        assert_eq!(
            wrong.to_string(),
            "the answer to the interrupt \"wrong\" is not as expected: /resume/4/payload: expected an \
             object, found 7"
        );
        let deep = run.answer_as::<Verdict>("deep").unwrap_err();
        assert!(
            deep.to_string()
                .ends_with("/resume/6/payload/approved: expected a boolean, found a string")
        );
        let odd = run.answer_as::<Verdict>("odd").unwrap_err();
        assert!(odd.to_string().contains("postponed"), "{odd}");
        assert_eq!(run.answer("yes").unwrap().payload.as_ref().unwrap().as_str(), VERDICT);
        Ok(())
    }
    const VERDICT: &str = r#"{"approved":true}"#;
    let entries = vec![
        resolved("yes", VERDICT),
        resolved("yes", r#"{"approved":false}"#),
        ResumeEntry::new("no", ResumeStatus::Cancelled),
        ResumeEntry::new("bare", ResumeStatus::Resolved),
        resolved("wrong", "7"),
        ResumeEntry::new("odd", ResumeStatus::from("postponed")),
        resolved("deep", r#"{"approved":"yes"}"#),
    ];
    finished(&run_on(agent, resumed(entries)).await);
}

#[test]
fn answers_that_nobody_asked_for_are_warned_of() {
    // P-70, P-72
    async fn some(run: Run) -> AgentResult {
        assert!(run.answer("known").is_some());
        Ok(())
    }
    async fn all(run: Run) -> AgentResult {
        assert_eq!(run.answers().count(), 2);
        Ok(())
    }
    async fn fails(_: Run) -> AgentResult {
        Err("before it could ask".into())
    }
    fn warned(agent: impl Agent) -> String {
        let entries = vec![resolved("known", "1"), resolved("unknown", "\"secret\"")];
        logged(tracing::Level::WARN, run_on(agent, resumed(entries)))
    }
    let log = warned(some);
    assert!(log.contains("\"unknown\"") && !log.contains("\"known\""), "{log}");
    assert!(!log.contains("secret"), "{log}");
    assert_eq!(warned(all), "");
    assert!(!warned(fails).contains("unknown"));
}

#[tokio::test]
async fn many_answers_cost_by_their_number() {
    // Looked for one by one, these would take minutes.
    const ANSWERS: usize = 100_000;
    async fn agent(run: Run) -> AgentResult {
        for at in 0..ANSWERS {
            assert!(run.answer(format!("i{at}")).is_some());
            run.interrupt(Interrupt::new(format!("i{at}"), "again"))?;
        }
        Ok(())
    }
    let entries = (0..ANSWERS).map(|at| ResumeEntry::new(format!("i{at}"), ResumeStatus::Resolved));
    let events = run_on(agent, resumed(entries.collect())).await;
    let Some(RunFinishedOutcome::Interrupt(outcome)) = &finished(&events).outcome else { panic!() };
    assert_eq!(outcome.interrupts.len(), ANSWERS);
}
