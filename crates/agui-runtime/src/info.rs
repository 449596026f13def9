//! `/info`: what is here.

use std::time::Duration;

use agui_server::caught;
use agui_types::AgentCapabilities;
use futures_util::future::join_all;
use indexmap::IndexMap;
use serde::Serialize;
use tokio::time::timeout;

use crate::agents::{Agents, Hosted};

/// How long an agent may take to say what it can do, so that discovery stays quick.
const PROBE: Duration = Duration::from_secs(2);

/// What the runtime can do, as a front end has to know it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    pub(crate) transcribes: bool,
    pub(crate) single_route: bool,
    /// Whether the thread routes are there for this mount.
    pub(crate) threads: ThreadEndpoints,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ThreadEndpoints {
    pub(crate) list: bool,
    pub(crate) inspect: bool,
    pub(crate) mutations: bool,
    pub(crate) realtime_metadata: bool,
}

impl ThreadEndpoints {
    pub(crate) const NONE: Self =
        Self { list: false, inspect: false, mutations: false, realtime_metadata: false };
    pub(crate) const ALL: Self =
        Self { list: true, inspect: true, mutations: true, realtime_metadata: false };
}

/// The answer. All that only the vendor's service can mean is absent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Info<'a> {
    version: &'static str,
    agents: IndexMap<&'a str, AgentInfo<'a>>,
    audio_file_transcription_enabled: bool,
    mode: &'static str,
    thread_endpoints: ThreadEndpoints,
    suggestions: bool,
    a2ui_enabled: bool,
    #[serde(rename = "openGenerativeUIEnabled")]
    open_generative_ui_enabled: bool,
    telemetry_disabled: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    single_route: Option<SingleRoute>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AgentInfo<'a> {
    name: &'a str,
    description: &'a str,
    class_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<AgentCapabilities>,
}

/// What a front end of the single route may tunnel.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SingleRoute {
    resource_operations: bool,
    thread_endpoints: ThreadEndpoints,
}

impl<'a> Info<'a> {
    /// Asks every agent what it can do. One that fails, panics or takes too long is listed all the
    /// same, without capabilities.
    pub(crate) async fn gather(agents: &'a Agents, abilities: Abilities) -> Self {
        let listed = agents.iter().map(async |(id, hosted)| (id, AgentInfo::of(id, hosted).await));
        let single = abilities.single_route;
        Self {
            version: env!("CARGO_PKG_VERSION"),
            agents: join_all(listed).await.into_iter().collect(),
            audio_file_transcription_enabled: abilities.transcribes,
            mode: "sse",
            thread_endpoints: if single { ThreadEndpoints::NONE } else { abilities.threads },
            suggestions: true,
            a2ui_enabled: false,
            open_generative_ui_enabled: false,
            telemetry_disabled: true,
            single_route: single.then_some(SingleRoute {
                resource_operations: true,
                thread_endpoints: abilities.threads,
            }),
        }
    }
}

impl<'a> AgentInfo<'a> {
    async fn of(id: &'a str, hosted: &'a Hosted) -> Self {
        let probe = caught(async { hosted.agent.capabilities().await });
        let capabilities = match timeout(PROBE, probe).await {
            Ok(Ok(capabilities)) => capabilities,
            Ok(Err(panic)) => {
                tracing::error!(
                    agent = id,
                    panic,
                    "the agent panicked while it declared its capabilities"
                );
                None
            }
            Err(_) => {
                tracing::warn!(agent = id, "the agent takes too long to declare its capabilities");
                None
            }
        };
        Self { name: id, description: &hosted.description, class_name: "Agent", capabilities }
    }
}
