//! The table `agents`.

use std::sync::Arc;
use std::time::Duration;

use agui_agent::{Agent, BuildError, HttpAgent};
use agui_runtime::{Agents, ForwardHeaders};

use super::reader::{At, Section};
use super::setting::{Bound, Expanded, Positive, Secret};
use super::tree::Origin;
use crate::args::is_agent_name;
use crate::demo;
use crate::serve::agents::{DEMO, Served};

/// The kinds of agents, and how the rest of the table of each is read.
const KINDS: [(&str, Kind); 2] = [("demo", read_demo), ("http", read_http)];

/// Reads what is particular to a kind; none where that fails.
type Kind = fn(&mut Section<'_>) -> Option<Of>;

/// For how long an agent behind a URL may be silent unless somebody says otherwise. Models think for
/// minutes, and a keep-alive comment is a sign of life.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// What a kind of agent comes to.
struct Of {
    agent: Arc<dyn Agent>,
    /// What is said about it where the configuration says nothing.
    description: String,
    forward: Forward,
}

/// Which headers of a request an agent gets.
#[derive(Clone, Debug, Default)]
struct Forward {
    policy: ForwardHeaders,
    /// Whether `Authorization` goes on; where nobody says, that depends on whom it is for.
    authorization: Option<bool>,
}

impl Forward {
    /// The policy of a server that `Authorization` is for itself, or not.
    fn policy(self, known_by_authorization: bool) -> ForwardHeaders {
        match self.authorization.unwrap_or(!known_by_authorization) {
            true => self.policy,
            false => self.policy.deny("authorization"),
        }
    }
}

/// Reads all agents. Where there is none, there is the demo agent.
pub(super) fn read(
    sections: Vec<(At<String>, Section<'_>)>,
    known_by_authorization: bool,
) -> Vec<Served> {
    let mut agents = Vec::new();
    for (name, mut section) in sections {
        if !is_agent_name(&name.value) {
            let what = "a name has up to 64 letters, digits, -, _ and ., and no . at its beginning";
            section.problem_at(name.origin, "", what, "give it another name");
        }
        let description = section.optional::<String>("description");
        let kind = section.required::<String>("kind");
        let read = kind.as_ref().and_then(|kind| {
            let known = KINDS.iter().find(|(word, _)| *word == kind.value);
            if known.is_none() {
                let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
                let what = format!("there is no kind {:?} of agents", kind.value);
                let fix = format!("the kinds are {}", words.join(", "));
                section.problem_at(kind.origin.clone(), "kind", what, fix);
            }
            known.map(|(_, read)| read)
        });
        // What belongs to a kind that nobody knows is not judged.
        let Some(of) = read.map(|read| read(&mut section)) else { continue };
        section.finish();
        let Some(Of { agent, description: usual, forward }) = of else { continue };
        agents.push(Served {
            id: name.value,
            description: description.map_or(usual, |at| at.value),
            agent,
            headers: forward.policy(known_by_authorization),
        });
    }
    agents
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of the kinds, of which others fail")]
fn read_demo(_: &mut Section<'_>) -> Option<Of> {
    Some(Of {
        agent: Arc::new(demo::agent()),
        description: "Shows what an agent can do: say help".into(),
        forward: Forward::default(),
    })
}

/// An agent behind a URL.
fn read_http(section: &mut Section<'_>) -> Option<Of> {
    let url = section.required::<Expanded>("url");
    let connect = section.get("connect-timeout", Positive(Duration::from_secs(10))).value;
    let idle = section.get("idle-timeout", Bound(Some(Positive(IDLE)))).value;
    let headers = section.named::<Secret>("headers");
    let forward = read_forward(section.section("forward"));
    let url = url?;
    let mut builder = HttpAgent::builder(&url.value.value).connect_timeout(connect.0);
    if let Bound(Some(Positive(idle))) = idle {
        builder = builder.idle_timeout(idle);
    }
    for (name, value) in &headers {
        builder = builder.header(&name.value, &value.value.value);
    }
    let agent = builder.build().map_err(|error| {
        let (at, key, fix) = match &error {
            BuildError::Header { name, .. } => {
                let origin = header_origin(&headers, name);
                (origin, format!("headers.{name}"), "name and value are those of an HTTP header")
            }
            _ => (
                Some(url.origin.clone()),
                "url".into(),
                "write for example url = \"http://127.0.0.1:8000/agent\"",
            ),
        };
        let at = at.unwrap_or_else(|| section.origin().clone());
        section.problem_at(at, &key, crate::failure::chain(&error), fix);
    });
    let agent = agent.ok()?;
    let description = format!("The agent at {}", agent.display_url());
    Some(Of { agent: Arc::new(agent), description, forward })
}

/// Where the header stands that the error names, which shortens the name of a wrong one.
fn header_origin(headers: &[(At<String>, At<Secret>)], name: &str) -> Option<Origin> {
    let named = headers.iter().find(|(at, _)| at.value.starts_with(name.trim_end_matches('…')));
    named.map(|(at, _)| at.origin.clone())
}

fn read_forward(mut section: Section<'_>) -> Forward {
    let authorization = section.optional::<bool>("authorization").map(|at| at.value);
    let list = |section: &mut Section<'_>, key| section.get::<Vec<String>>(key, Vec::new()).value;
    let mut policy = ForwardHeaders::new();
    policy = list(&mut section, "allow").iter().fold(policy, ForwardHeaders::allow);
    policy = list(&mut section, "deny").iter().fold(policy, ForwardHeaders::deny);
    policy = list(&mut section, "deny-prefixes").iter().fold(policy, ForwardHeaders::deny_prefix);
    policy = policy.platform_headers(section.get("platform-headers", false).value);
    section.finish();
    Forward { policy, authorization }
}

/// The agent that a front end gets which names none.
pub(super) fn default_agent(
    agents: &[Served],
    named: Option<&At<String>>,
    first_of_flags: Option<&str>,
    section: &Section<'_>,
) -> Option<String> {
    let known = |name: &str| agents.iter().any(|agent| agent.id == name);
    if known(Agents::DEFAULT) {
        if let Some(named) = named.filter(|named| named.value != Agents::DEFAULT) {
            let what = "there is an agent called default already";
            let fix = "remove default-agent, or give that agent another name";
            section.problem_at(named.origin.clone(), "default-agent", what, fix);
        }
        return Some(Agents::DEFAULT.into());
    }
    if let Some(named) = named {
        if !known(&named.value) {
            let what = format!("there is no agent {:?}", named.value);
            let names: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
            let fix = format!("the agents are {}", names.join(", "));
            section.problem_at(named.origin.clone(), "default-agent", what, fix);
        }
        return Some(named.value.clone());
    }
    let first = || agents.iter().find(|agent| agent.id != DEMO).or(agents.first());
    first_of_flags.map(str::to_owned).or_else(|| first().map(|agent| agent.id.clone()))
}
