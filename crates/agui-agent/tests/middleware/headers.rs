//! Which headers go on.

use agui_agent::middleware::{AgentHeaders, HeaderPolicy, InvalidHeader, RequestHeaders};
use agui_agent::{Agent, AgentExt, AgentResult, Run, RunContext};
use futures_util::StreamExt;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::input;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs
        .iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
    pairs.collect()
}

fn names(headers: &HeaderMap) -> Vec<&str> {
    let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn only_what_is_allowed_goes_on() {
    let client = headers(&[
        ("authorization", "Bearer s3cret"),
        ("cookie", "session"),
        ("host", "here.example"),
        ("x-trace", "1"),
        ("x-tenant", "theirs"),
        ("content-length", "7"),
    ]);
    assert!(HeaderPolicy::new().apply(&client).is_empty());
    let policy = HeaderPolicy::new().allow("Authorization").allow_prefix("X-");
    assert_eq!(names(&policy.apply(&client)), ["authorization", "x-tenant", "x-trace"]);
    // Everything does not mean what belongs to the connection, nor cookies unless they are named.
    let policy = HeaderPolicy::new().allow_prefix("").allow("host");
    assert_eq!(names(&policy.apply(&client)), ["authorization", "x-tenant", "x-trace"]);
    assert!(policy.allow("cookie").apply(&client).contains_key("cookie"));
}

#[test]
fn what_the_server_sets_beats_what_the_client_sends() {
    let client = headers(&[("x-tenant", "theirs"), ("x-other", "theirs")]);
    let policy = HeaderPolicy::new().allow_prefix("x-").set("X-Tenant", "ours").unwrap();
    let applied = policy.apply(&client);
    assert_eq!(applied.get_all("x-tenant").iter().collect::<Vec<_>>(), ["ours"]);
    assert_eq!(applied["x-other"], "theirs");
    assert_eq!(policy.apply(&HeaderMap::new())["x-tenant"], "ours");
    let refused = HeaderPolicy::new().set("not a name", "x").unwrap_err();
    assert_eq!(refused.to_string(), "the name of the header is not one that HTTP allows");
    let refused: InvalidHeader = HeaderPolicy::new().set("x", "s3cret\n").unwrap_err();
    assert!(!format!("{refused:?} {refused}").contains("s3cret"));
}

#[tokio::test]
async fn the_policy_puts_them_with_the_run_and_none_is_shown() {
    async fn agent(run: Run) -> AgentResult {
        let sent = run.context().extensions.get::<AgentHeaders>().ok_or("no headers")?;
        assert_eq!(sent.0["authorization"], "Bearer s3cret");
        assert!(sent.0["authorization"].is_sensitive());
        assert!(!format!("{sent:?}").contains("s3cret"));
        Ok(())
    }
    let request = RequestHeaders(headers(&[("authorization", "Bearer s3cret")]));
    assert!(!format!("{request:?}").contains("s3cret"));
    let policy = HeaderPolicy::new().allow("authorization").set("x-key", "k3y").unwrap();
    assert!(!format!("{policy:?}").contains("k3y"));
    let context = RunContext::new().with_extension(request);
    let events: Vec<_> = agent.with(policy).run(input(), context).collect().await;
    assert_eq!(events.last().unwrap().as_ref().unwrap().value.type_name(), "RUN_FINISHED");
}
