//! The typed state handle.

use agui_agent::{Agent, AgentResult, EmitError, Run, RunContext};
use agui_types::{Event, FromJson, Json, JsonPatch, ToJson};
use serde::{Deserialize, Serialize};

use super::{finished, folded, input, whole};

#[derive(Serialize, Deserialize, Default, Debug, PartialEq)]
#[serde(default)]
struct Plan {
    title: String,
    steps: Vec<Step>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Serialize, Deserialize, Default, Debug, PartialEq)]
struct Step {
    name: String,
    done: bool,
}

fn step(name: &str) -> Step {
    Step { name: name.into(), done: false }
}

/// Runs an agent on a state. Gives the state events, and the state that a consumer holds.
async fn run_on(agent: impl Agent, state: Option<&str>) -> (Vec<String>, String) {
    let mut input = input();
    input.state = state.map(|state| Json::parse(state).unwrap());
    let events = whole(agent.run(input.clone(), RunContext::new())).await;
    finished(&events);
    let state = folded(&input, &events).state().to_string();
    let events = events.iter().filter_map(|event| match event {
        Event::StateDelta(delta) => Some(delta.delta.to_json()),
        Event::StateSnapshot(snapshot) => Some(format!("= {}", snapshot.snapshot)),
        _ => None,
    });
    (events.collect(), state)
}

#[tokio::test]
async fn changes_go_out_as_the_smallest_patch() {
    // P-46, P-49
    async fn agent(run: Run) -> AgentResult {
        let mut plan = run.state::<Plan>()?;
        plan.update(|plan| plan.title = "Lunch".into()).await?;
        plan.update(|plan| plan.steps.extend([step("look"), step("leap")])).await?;
        plan.update(|plan| plan.steps[1].done = true).await?;
        plan.update(|_| ()).await?;
        plan.update(|plan| plan.note = Some("soon".into())).await?;
        let steps = plan.update(|plan| std::mem::take(&mut plan.note)).await?;
        assert_eq!(steps.as_deref(), Some("soon"));
        assert_eq!(plan.steps.len(), 2);
        Ok(())
    }
    let (events, state) =
        run_on(agent, Some(r#"{"title":"a title","theirs":{"x":1.10,"longer":"than any patch"}}"#))
            .await;
    assert_eq!(
        events,
        [
            r#"[{"op":"replace","path":"/title","value":"Lunch"}]"#,
            r#"[{"op":"add","path":"/steps","value":[{"name":"look","done":false},{"name":"leap","done":false}]}]"#,
            r#"[{"op":"replace","path":"/steps/1/done","value":true}]"#,
            r#"[{"op":"add","path":"/note","value":"soon"}]"#,
            r#"[{"op":"remove","path":"/note"}]"#,
        ]
    );
    let expected = r#"{"title":"Lunch","theirs":{"x":1.10,"longer":"than any patch"},"steps":[{"name":"look","done":false},{"name":"leap","done":true}]}"#;
    assert_eq!(state, expected);
}

#[tokio::test]
async fn a_snapshot_goes_out_where_it_is_shorter() {
    async fn agent(run: Run) -> AgentResult {
        let mut point = run.state::<[i32; 3]>()?;
        point.set([4, 5, 6]).await?;
        point.snapshot().await?;
        Ok(())
    }
    let (events, _) = run_on(agent, Some("[1,2,3]")).await;
    assert_eq!(events, ["= [4,5,6]", "= [4,5,6]"]);
}

#[tokio::test]
async fn an_absent_state_is_an_empty_object() {
    // P-46
    async fn agent(run: Run) -> AgentResult {
        assert_eq!(*run.state::<Plan>()?, Plan::default());
        let refused = run.state::<Step>().unwrap_err();
        assert!(matches!(&refused, EmitError::Read { what, .. } if what == "the state"));
        assert!(refused.to_string().contains("name"), "{refused}");
        run.state::<Plan>()?.update(|plan| plan.title.push('x')).await?;
        Ok(())
    }
    let (events, state) = run_on(agent, None).await;
    // As long as the patch would be, or shorter.
    assert_eq!(events, [r#"= {"title":"x"}"#]);
    assert_eq!(state, r#"{"title":"x"}"#);
}

#[tokio::test]
async fn what_others_change_meanwhile_stays() {
    // C-79
    async fn agent(run: Run) -> AgentResult {
        let mut plan = run.state::<Plan>()?;
        let subagent = run.subagent("helper").await?;
        let mut theirs = subagent.state::<Plan>()?;
        theirs.update(|plan| plan.steps.push(step("theirs"))).await?;
        plan.update(|plan| plan.steps.push(step("ours"))).await?;
        assert_eq!(plan.steps, [step("theirs"), step("ours")]);
        let patch = r#"[{"op":"add","path":"/mood","value":"good"}]"#;
        run.state_delta(JsonPatch::from_json_exact(patch)?).await?;
        plan.update(|plan| plan.title = "both".into()).await?;
        theirs.refresh()?;
        assert_eq!(theirs.title, "both");

        run.state_snapshot(&"a text").await?;
        let lost = plan.update(|plan| plan.title.clear()).await;
        assert!(matches!(lost, Err(EmitError::Read { .. })), "{lost:?}");
        run.state_snapshot(&Plan { title: "back".into(), ..Plan::default() }).await?;
        plan.update(|plan| assert_eq!(plan.title, "back")).await?;
        subagent.finish().await?;
        Ok(())
    }
    run_on(agent, Some(r#"{"title":"","steps":[],"filler":"so that a patch is shorter"}"#)).await;
}

#[tokio::test]
async fn updates_from_many_tasks_are_all_there() {
    async fn agent(run: Run) -> AgentResult {
        let writers = (0..8).map(|writer| {
            let run = run.clone();
            tokio::spawn(async move {
                let mut counts = run.state::<std::collections::BTreeMap<String, u32>>().unwrap();
                for _ in 0..20 {
                    let count = |counts: &mut std::collections::BTreeMap<String, u32>| {
                        *counts.entry(format!("w{writer}")).or_default() += 1;
                    };
                    counts.update(count).await.unwrap();
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await?;
        }
        Ok(())
    }
    let (_, state) = run_on(agent, None).await;
    let state: std::collections::BTreeMap<String, u32> = serde_json::from_str(&state).unwrap();
    assert_eq!(state.len(), 8);
    assert!(state.values().all(|count| *count == 20), "{state:?}");
}

#[tokio::test]
async fn a_change_that_was_not_published_comes_with_the_next() {
    async fn agent(run: Run) -> AgentResult {
        let mut plan = run.state::<Plan>()?;
        {
            // The queue is full before the update, which then waits and is given up.
            for at in 0..agui_agent::emitter::CAPACITY {
                run.custom("app.fill", &at).await?;
            }
            let update = plan.update(|plan| plan.title = "kept".into());
            assert!(futures_util::FutureExt::now_or_never(update).is_none());
        }
        tokio::task::yield_now().await;
        plan.update(|plan| plan.note = Some("too".into())).await?;
        Ok(())
    }
    let (_, state) = run_on(agent, None).await;
    assert_eq!(state, r#"{"title":"kept","note":"too"}"#);
}
