//! How a runtime is set up.

use std::sync::Arc;
use std::time::Duration;

use agui_journal::{BusyPolicy, Journal};

use crate::agents::Hosted;
use crate::run::RunLimits;
use crate::{AgentSource, Anonymous, Authorize, ForwardHeaders, Runtime, Transcriber};

/// How front ends may reach the runtime on its mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transport {
    /// By path and by envelope.
    #[default]
    Both,
    /// By path only. An envelope is told so.
    Rest,
    /// By envelope only.
    Single,
}

/// What can be said about a [`Runtime`] before it is made. Everything has a default.
pub struct RuntimeBuilder {
    pub(crate) agents: Arc<dyn AgentSource>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) authorize: Arc<dyn Authorize>,
    pub(crate) transcriber: Option<Arc<dyn Transcriber>>,
    pub(crate) base: String,
    pub(crate) transport: Transport,
    pub(crate) headers: ForwardHeaders,
    pub(crate) busy: BusyPolicy,
    pub(crate) run_limits: RunLimits,
    pub(crate) lease: Duration,
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) body_limit: usize,
    pub(crate) most_runs: usize,
    pub(crate) most_runs_per_tenant: usize,
    pub(crate) most_viewers: usize,
    pub(crate) most_viewers_per_thread: usize,
    pub(crate) debug: bool,
}

impl RuntimeBuilder {
    pub(crate) fn new(agents: impl AgentSource, journal: Arc<dyn Journal>) -> Self {
        Self {
            agents: Arc::new(agents),
            journal,
            authorize: Arc::new(Anonymous),
            transcriber: None,
            base: "/api/copilotkit".into(),
            transport: Transport::default(),
            headers: ForwardHeaders::new(),
            busy: BusyPolicy::Refuse,
            run_limits: RunLimits { deadline: None, events: 1_000_000, bytes: 256 * 1024 * 1024 },
            lease: Duration::from_secs(30),
            keep_alive: Some(Duration::from_secs(15)),
            body_limit: 10 * 1024 * 1024,
            most_runs: 10_000,
            most_runs_per_tenant: 10_000,
            most_viewers: 20_000,
            most_viewers_per_thread: 2_000,
            debug: false,
        }
    }

    /// Who may do what. Default: [`Anonymous`], who chats but neither lists nor deletes.
    #[must_use]
    pub fn authorize(mut self, authorize: impl Authorize) -> Self {
        self.authorize = Arc::new(authorize);
        self
    }

    /// What turns audio into text. Default: nothing does, and front ends are told so.
    #[must_use]
    pub fn transcriber(mut self, transcriber: impl Transcriber) -> Self {
        self.transcriber = Some(Arc::new(transcriber));
        self
    }

    /// Where the routes are. A slash at its end and the lack of one at its beginning do not matter;
    /// `/` strips nothing. Default: `/api/copilotkit`.
    #[must_use]
    pub fn base_path(mut self, path: &str) -> Self {
        let path = path.trim_matches('/');
        self.base = if path.is_empty() { String::new() } else { format!("/{path}") };
        self
    }

    /// By path, by envelope, or both. Default: both.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = transport;
        self
    }

    /// Which headers of a request its agent gets. Default: `Authorization` and `X-…`, without what
    /// platforms add.
    #[must_use]
    pub fn headers(mut self, policy: ForwardHeaders) -> Self {
        self.headers = policy;
        self
    }

    /// What happens to a run on a thread that has one: it is refused with 409 and the code
    /// [`THREAD_BUSY`](crate::codes::THREAD_BUSY), or takes the place of the other. That one is then
    /// closed and cancelled in the log, its viewers see its end, and its agent is gone before the new
    /// one begins. Default: refused.
    #[must_use]
    pub fn busy(mut self, policy: BusyPolicy) -> Self {
        self.busy = policy;
        self
    }

    /// How long a run may take before it is ended as failed, with the code
    /// [`DEADLINE_EXCEEDED`](crate::codes::DEADLINE_EXCEEDED). Default: as long as it likes.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Duration>>) -> Self {
        self.run_limits.deadline = deadline.into();
        self
    }

    /// How many events an agent may send in one run, its terminal one counted, chunks as what they
    /// are short for. One more, and the run is ended as failed with the code
    /// [`RUN_TOO_LARGE`](crate::codes::RUN_TOO_LARGE); what came before stays. Default: 1,000,000.
    #[must_use]
    pub fn most_run_events(mut self, events: u64) -> Self {
        self.run_limits.events = events;
        self
    }

    /// How many bytes of JSON text the events may be that an agent sends in one run; more end it like
    /// [too many events](Self::most_run_events). Default: 256 MiB.
    #[must_use]
    pub fn most_run_bytes(mut self, bytes: u64) -> Self {
        self.run_limits.bytes = bytes;
        self
    }

    /// For how long a run outlives the process that runs it: after this, it counts as abandoned and
    /// is ended as failed. Default: 30 seconds; at least one.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease.max(Duration::from_secs(1));
        self
    }

    /// Sends a comment whenever nothing was sent for this long, so that nothing on the way takes the
    /// connection for dead (T-17). Default: 15 seconds. `None` or zero: never.
    #[must_use]
    pub fn keep_alive(mut self, silence: impl Into<Option<Duration>>) -> Self {
        self.keep_alive = silence.into().filter(|silence| !silence.is_zero());
        self
    }

    /// Refuses request bodies of more bytes than this. Default: 10 MiB.
    #[must_use]
    pub fn body_limit(mut self, bytes: usize) -> Self {
        self.body_limit = bytes;
        self
    }

    /// How many runs may go on at once; one more is refused with 503 and the code
    /// [`TOO_MANY_RUNS`](crate::codes::TOO_MANY_RUNS). Default: 10,000.
    #[must_use]
    pub fn most_runs(mut self, runs: usize) -> Self {
        self.most_runs = runs;
        self
    }

    /// How many runs of one tenant may go on at once; one more is refused with 429 and the code
    /// [`TOO_MANY_RUNS`](crate::codes::TOO_MANY_RUNS). Default: 10,000, as many as of all together.
    #[must_use]
    pub fn most_runs_per_tenant(mut self, runs: usize) -> Self {
        self.most_runs_per_tenant = runs;
        self
    }

    /// How many may watch at once, those counted who started the run they watch; one more is refused
    /// with 503 and the code [`TOO_MANY_VIEWERS`](crate::codes::TOO_MANY_VIEWERS). Each holds one page
    /// of a log at most (512 events or 256 KiB), however slowly it reads. Default: 20,000.
    #[must_use]
    pub fn most_viewers(mut self, viewers: usize) -> Self {
        self.most_viewers = viewers;
        self
    }

    /// How many may be connected to one thread at once, those not counted who started the run they
    /// watch; one more is refused with 429 and the code
    /// [`TOO_MANY_VIEWERS`](crate::codes::TOO_MANY_VIEWERS). Default: 2,000.
    #[must_use]
    pub fn most_viewers_per_thread(mut self, viewers: usize) -> Self {
        self.most_viewers_per_thread = viewers;
        self
    }

    /// Whether `/cpk-debug-events` shows whoever may ask every event of every run of their tenant, as
    /// it is written; suggestions are no runs. Who reads more than 4 MiB behind is cut off. Default: no, and
    /// the answer is 404.
    #[must_use]
    pub fn debug_events(mut self, shown: bool) -> Self {
        self.debug = shown;
        self
    }

    /// Which headers of a request this agent gets.
    pub(crate) fn headers_for<'a>(&'a self, hosted: &'a Hosted) -> &'a ForwardHeaders {
        hosted.headers.as_ref().unwrap_or(&self.headers)
    }

    /// The runtime.
    #[must_use]
    pub fn build(self) -> Runtime {
        Runtime::new(self)
    }
}

impl std::fmt::Debug for RuntimeBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RuntimeBuilder")
            .field("base", &self.base)
            .field("transport", &self.transport)
            .finish_non_exhaustive()
    }
}
