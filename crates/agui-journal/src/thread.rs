//! Threads, and how they are found.

use std::fmt;
use std::sync::Arc;

use agui_types::ThreadId;

use crate::run::RunInfo;

/// Whose data it is. What belongs to one tenant is never seen, counted or removed for another.
///
/// An opaque string. The empty one is the tenant of a journal that has a single one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(Arc<str>);

impl Tenant {
    /// Takes any string.
    #[must_use]
    pub fn new(tenant: impl Into<Arc<str>>) -> Self {
        Self(tenant.into())
    }

    /// The string.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Tenant {
    fn default() -> Self {
        Self::new("")
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a thread is found by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadKey {
    /// Whose it is.
    pub tenant: Tenant,
    /// Its id, unique for the tenant.
    pub thread: ThreadId,
}

impl ThreadKey {
    /// The thread of a tenant.
    #[must_use]
    pub fn new(tenant: Tenant, thread: impl Into<ThreadId>) -> Self {
        Self { tenant, thread: thread.into() }
    }
}

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThreadInfo {
    /// Its id.
    pub thread: ThreadId,
    /// The name somebody gave it.
    pub name: Option<String>,
    /// Who it belongs to, as its first run said.
    pub owner: Option<String>,
    /// Whether it was archived.
    pub archived: bool,
    /// When its first run began, in milliseconds since 1970 (UTC).
    pub created_at: u64,
    /// The last activity: when a run last began or ended. Naming and archiving is none.
    pub updated_at: u64,
    /// How many runs have begun.
    pub runs: u64,
    /// How many runs have ended.
    pub finished_runs: u64,
    /// The run that began last. Its agent is the thread's agent.
    pub last_run: RunInfo,
    /// The position of the last event; 0 before the first.
    pub head: u64,
    /// How many bytes of JSON text the log of the thread holds.
    pub bytes: u64,
    /// How many interrupts the last ended run left open.
    pub open_interrupts: usize,
    /// How many tool calls the last ended run left unanswered.
    pub pending_tool_calls: usize,
}

impl ThreadInfo {
    /// A thread whose first run begins now, for journals.
    #[must_use]
    pub fn new(thread: ThreadId, owner: Option<String>, run: RunInfo) -> Self {
        Self {
            thread,
            name: None,
            owner,
            archived: false,
            created_at: run.began_at,
            updated_at: run.began_at,
            runs: 0,
            finished_runs: 0,
            last_run: run,
            head: 0,
            bytes: 0,
            open_interrupts: 0,
            pending_tool_calls: 0,
        }
    }

    /// Whether a run is going on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.last_run.ended_at.is_none()
    }
}

/// Which threads to list, and how many.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ThreadQuery {
    /// Whose.
    pub tenant: Tenant,
    /// Only those whose last run was of this agent.
    pub agent: Option<String>,
    /// Only those that belong to this owner.
    pub owner: Option<String>,
    /// What of those that were archived. Unless set: not those.
    pub archived: Archived,
    /// Only those with a run that has ended.
    pub with_finished_run: bool,
    /// Only those that wait for a person: an interrupt is open, or a tool call unanswered.
    pub waiting: bool,
    /// Where to go on; `None` begins at the newest.
    pub after: Option<PageToken>,
    /// How many at most: 1 to [`ThreadQuery::MOST`]; what is outside is brought to the nearest.
    pub limit: usize,
}

impl ThreadQuery {
    /// How many threads one page has at most.
    pub const MOST: usize = 500;

    /// All threads of a tenant that are not archived, 50 at a time.
    #[must_use]
    pub fn new(tenant: Tenant) -> Self {
        Self {
            tenant,
            agent: None,
            owner: None,
            archived: Archived::Exclude,
            with_finished_run: false,
            waiting: false,
            after: None,
            limit: 50,
        }
    }

    /// Only those whose last run was of this agent.
    #[must_use]
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Only those that belong to this owner.
    #[must_use]
    pub fn owner(mut self, owner: impl Into<String>) -> Self {
        self.owner = Some(owner.into());
        self
    }

    /// Sets what of those that were archived.
    #[must_use]
    pub fn archived(mut self, archived: Archived) -> Self {
        self.archived = archived;
        self
    }

    /// Only those with a run that has ended.
    #[must_use]
    pub fn with_finished_run(mut self) -> Self {
        self.with_finished_run = true;
        self
    }

    /// Only those that wait for a person.
    #[must_use]
    pub fn waiting(mut self) -> Self {
        self.waiting = true;
        self
    }

    /// Sets where to go on.
    #[must_use]
    pub fn after(mut self, token: Option<PageToken>) -> Self {
        self.after = token;
        self
    }

    /// Sets how many at most.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Whether a thread of the tenant is among those asked for; the place to go on is not looked at.
    #[must_use]
    pub fn matches(&self, info: &ThreadInfo) -> bool {
        let same = |asked: &Option<String>, is: Option<&str>| {
            asked.as_deref().is_none_or(|asked| is == Some(asked))
        };
        same(&self.agent, Some(&info.last_run.agent))
            && same(&self.owner, info.owner.as_deref())
            && match self.archived {
                Archived::Exclude => !info.archived,
                Archived::Include => true,
                Archived::Only => info.archived,
            }
            && (!self.with_finished_run || info.finished_runs > 0)
            && (!self.waiting || info.open_interrupts > 0 || info.pending_tool_calls > 0)
    }

    /// [`limit`](Self::limit), within its bounds.
    #[must_use]
    pub fn page_size(&self) -> usize {
        self.limit.clamp(1, Self::MOST)
    }
}

/// What to do with archived threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Archived {
    /// Leave them out.
    #[default]
    Exclude,
    /// Take them with the others.
    Include,
    /// Take only them.
    Only,
}

/// Some threads: the latest activity first, and of the same moment the greatest id.
///
/// Pages are cut by activity: a thread that becomes active while the pages are read moves to the
/// front, and the pages that follow do not have it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadInfo>,
    /// Where the next page begins; `None` where there is none.
    pub next: Option<PageToken>,
}

impl ThreadPage {
    /// A page of `limit` of these threads, which are in order and go one beyond it where there are
    /// more.
    #[must_use]
    pub fn cut(mut threads: Vec<ThreadInfo>, limit: usize) -> Self {
        let more = threads.len() > limit;
        threads.truncate(limit);
        let last = threads.last().filter(|_| more);
        let next = last.map(|last| PageToken::behind(last.updated_at, &last.thread));
        Self { threads, next }
    }
}

/// Where a list of threads goes on. Its text is opaque to whoever carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageToken(Box<str>);

impl PageToken {
    /// Takes the text of a token.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Its text, to give to a client.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Behind a thread.
    #[must_use]
    pub fn behind(updated_at: u64, thread: &ThreadId) -> Self {
        Self(format!("{updated_at:x}.{thread}").into())
    }

    /// The thread it stands behind, by last activity and id; `None` where it was made elsewhere.
    #[must_use]
    pub fn read(&self) -> Option<(u64, &str)> {
        let (updated_at, thread) = self.0.split_once('.')?;
        Some((u64::from_str_radix(updated_at, 16).ok()?, thread))
    }
}
