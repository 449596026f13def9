//! The runtime itself: what all its requests share.

use std::sync::Arc;
use std::time::Duration;

use agui_agent::middleware::AgentHeaders;
use agui_agent::{CancellationToken, RunContext};
use agui_journal::{Begun, Journal, JournalError, NewRun, Tenant, ThreadKey};
use agui_types::RunAgentInput;
use http::HeaderMap;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::agents::Hosted;
use crate::builder::RuntimeBuilder;
use crate::debug::DebugFeed;
use crate::quota::{Quota, Share};
use crate::run::Job;
use crate::run::going::Going;
use crate::run::unended::Unended;
use crate::{AgentSource, Principal, RuntimeService};

/// Many agents, their threads, and whoever looks at them. Cheap to clone: all clones are one.
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) settings: RuntimeBuilder,
    pub(crate) debug: DebugFeed,
    /// The runs that go on in this process.
    runs: TaskTracker,
    /// Cancelled when the runtime is to end.
    pub(crate) closing: CancellationToken,
    going: Going,
    unended: Unended,
    pub(crate) run_slots: Arc<Semaphore>,
    tenant_runs: Quota<Tenant>,
    viewer_slots: Arc<Semaphore>,
    thread_viewers: Quota<ThreadKey>,
}

/// A place among those who watch.
pub(crate) struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_thread: Option<Share<ThreadKey>>,
}

/// A place among the runs that go on.
pub(crate) struct RunPlace {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: Share<Tenant>,
}

/// There is no place: too many have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TooMany {
    /// Of all together.
    OfAll,
    /// Of this tenant, or of this thread.
    OfOne,
}

/// Why a run does not begin.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// Too many go on.
    Full(TooMany),
    /// The journal says no.
    Journal(JournalError),
}

impl Runtime {
    /// A runtime with these agents whose runs are kept in this journal.
    #[must_use]
    pub fn builder(agents: impl AgentSource, journal: Arc<dyn Journal>) -> RuntimeBuilder {
        RuntimeBuilder::new(agents, journal)
    }

    pub(crate) fn new(settings: RuntimeBuilder) -> Self {
        let slots = |most: usize| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
        Self(Arc::new(Shared {
            debug: DebugFeed::default(),
            runs: TaskTracker::new(),
            closing: CancellationToken::new(),
            going: Going::default(),
            unended: Unended::new(),
            run_slots: slots(settings.most_runs),
            tenant_runs: Quota::new(),
            viewer_slots: slots(settings.most_viewers),
            thread_viewers: Quota::new(),
            settings,
        }))
    }

    /// The routes, as a tower service.
    #[must_use]
    pub fn service(&self) -> RuntimeService {
        RuntimeService(self.clone())
    }

    /// The run log.
    #[must_use]
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.0.settings.journal
    }

    /// Ends the runs of processes that are gone: at once, and then as often as leases can lapse,
    /// until the runtime [ends](Self::shutdown). To be spawned, where the journal is shared or
    /// outlives its process.
    pub async fn recover(self) {
        let every = self.0.settings.lease.min(Duration::from_secs(10));
        loop {
            match self.journal().recover().await {
                Ok(ended) => {
                    for run in ended {
                        self.0.unended.clear(&run.thread);
                        tracing::warn!(thread = %run.thread.thread, run = %run.run, "an abandoned run was ended");
                    }
                }
                Err(error) => tracing::error!(%error, "abandoned runs cannot be looked for"),
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.0.closing.cancelled() => return,
            }
        }
    }

    /// Ends the runs that go on here as cancelled, and waits until the log says so. Runs that would
    /// begin afterwards are refused.
    pub async fn shutdown(&self) {
        self.0.run_slots.close();
        self.0.closing.cancel();
        self.0.runs.close();
        self.0.runs.wait().await;
    }

    /// Starts a run that belongs to the journal from now on, and gives where its events are.
    pub(crate) async fn start(
        &self,
        principal: &Principal,
        agent_id: &str,
        hosted: &Hosted,
        input: RunAgentInput,
        headers: &HeaderMap,
    ) -> Result<Begun, NotBegun> {
        let shared = &self.0;
        let settings = &shared.settings;
        let tenant = Tenant::new(&*principal.tenant);
        let place = self.run_place(&tenant).map_err(NotBegun::Full)?;
        let mut new =
            NewRun::new(tenant, agent_id, input.clone()).lease(settings.lease).busy(settings.busy);
        new.owner = principal.name.clone();
        let begun = settings.journal.begin(new).await.map_err(NotBegun::Journal)?;
        shared.unended.clear(begun.lease.thread());
        let (present, earlier) = shared.going.enter(begun.lease.thread());
        let context = RunContext::new()
            .with_cancel(CancellationToken::new())
            .with_extension(AgentHeaders(settings.headers_for(hosted).choose(headers)));
        let job = Job {
            journal: Arc::clone(&settings.journal),
            lease: begun.lease.clone(),
            lease_for: settings.lease,
            agent_id: agent_id.to_owned(),
            agent: Arc::clone(hosted.agent()),
            input,
            context,
            earlier,
            unended: shared.unended.clone(),
            limits: settings.run_limits,
            closing: shared.closing.clone(),
            debug: shared.debug.clone(),
        };
        let (thread, run) = (begun.lease.thread().thread.as_str(), begun.lease.run().as_str());
        let span = tracing::error_span!("run", agent = agent_id, thread, run);
        let running = async move {
            job.run().await;
            // Who waits for its end finds its place free.
            drop((place, present));
        };
        shared.runs.spawn(running.instrument(span));
        Ok(begun)
    }

    /// Waits until the end of the thread's run cannot be written.
    pub(crate) fn unended(&self, thread: &ThreadKey) -> impl Future<Output = ()> + Send + use<> {
        self.0.unended.of(thread, self.journal())
    }

    /// Waits until the runs that go on on a thread in this process are gone.
    pub(crate) async fn gone(&self, thread: &ThreadKey) {
        self.0.going.on(thread).gone().await;
    }

    /// A place for one more run of a tenant.
    pub(crate) fn run_place(&self, tenant: &Tenant) -> Result<RunPlace, TooMany> {
        let shared = &self.0;
        let of_all = Arc::clone(&shared.run_slots).try_acquire_owned();
        let of_all = of_all.map_err(|_| TooMany::OfAll)?;
        let most = shared.settings.most_runs_per_tenant;
        let of_tenant = shared.tenant_runs.take(tenant, most).ok_or(TooMany::OfOne)?;
        Ok(RunPlace { _of_all: of_all, _of_tenant: of_tenant })
    }

    /// A place for one more viewer, of a thread where it comes to watch one.
    pub(crate) fn place(&self, thread: Option<&ThreadKey>) -> Result<Place, TooMany> {
        let shared = &self.0;
        let of_all = Arc::clone(&shared.viewer_slots).try_acquire_owned();
        let of_all = of_all.map_err(|_| TooMany::OfAll)?;
        let most = shared.settings.most_viewers_per_thread;
        let take = |thread| shared.thread_viewers.take(thread, most).ok_or(TooMany::OfOne);
        Ok(Place { _of_all: of_all, _of_thread: thread.map(take).transpose()? })
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime")
            .field("settings", &self.0.settings)
            .field("runs", &self.0.runs.len())
            .finish_non_exhaustive()
    }
}
