//! The threads of a runtime.

use agui_types::{Event, FromJson, Json, Reading};
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::operation::{Id, Operation, quoted};
use super::{RuntimeClient, RuntimeError, RuntimeInfo};

/// Which threads to list. A new one lists what the runtime lists by itself.
///
/// ```
/// use agui_agent::runtime::ListThreads;
///
/// let list = ListThreads::new().agent("default").limit(20);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ListThreads {
    query: Vec<(&'static str, String)>,
}

impl ListThreads {
    /// Those that are not archived, of all agents.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of this agent.
    pub fn agent(self, id: impl Into<String>) -> Self {
        self.with("agentId", id.into())
    }

    /// At most so many, where the runtime has pages.
    pub fn limit(self, most: u32) -> Self {
        self.with("limit", most.to_string())
    }

    /// Those behind a page, which gave this [cursor](ThreadPage::next_cursor).
    pub fn after(self, cursor: impl Into<String>) -> Self {
        self.with("cursor", cursor.into())
    }

    /// Archived ones as well.
    pub fn with_archived(self) -> Self {
        self.with("includeArchived", "true".into())
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.query.retain(|(other, _)| *other != name);
        self.query.push((name, value));
        self
    }
}

/// Some of the threads, the latest first.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<ThreadRow>,
    /// What the next page is [asked for](ListThreads::after) with; `None` where this is the last.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A thread in a list. Times are as the runtime writes them, which is ISO 8601.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThreadRow {
    /// Its id.
    pub id: String,
    /// Its name, where it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// The agent that ran on it last.
    #[serde(default)]
    pub agent_id: Option<String>,
    /// Whether it is archived.
    #[serde(default)]
    pub archived: bool,
    /// When it began.
    #[serde(default)]
    pub created_at: Option<String>,
    /// When it last changed.
    #[serde(default)]
    pub updated_at: Option<String>,
    /// When its last run began.
    #[serde(default)]
    pub last_run_at: Option<String>,
}

/// A message of a thread, in the flat form that runtimes show it in. To go on with a conversation,
/// [connect](crate::session::Session::connect) to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MessageRow {
    /// Its id.
    pub id: String,
    /// Whose it is: `user`, `assistant`, `tool`, …
    pub role: String,
    /// Its content: a text, parts, or what an activity holds.
    #[serde(default)]
    pub content: Option<Json>,
    /// The calls that an assistant made.
    #[serde(default)]
    pub tool_calls: Vec<ToolCallRow>,
    /// The call that a tool answers.
    #[serde(default)]
    pub tool_call_id: Option<String>,
    /// What kind of activity it is.
    #[serde(default)]
    pub activity_type: Option<String>,
}

/// A tool call in a [`MessageRow`].
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ToolCallRow {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The text of its arguments.
    #[serde(default)]
    pub args: String,
}

/// What is asked of threads fails with [`RuntimeError::NotOffered`] where the runtime says that it
/// does not do it over the transport that is used, and with [`RuntimeError::Invalid`], before anything
/// is sent, where the thread's id is `""`, `"."` or `".."`.
impl RuntimeClient {
    /// Lists threads.
    pub async fn threads(&self, list: &ListThreads) -> Result<ThreadPage, RuntimeError> {
        self.offered(|it| it.threads.list, LIST).await?;
        let query = list.query.clone();
        let list =
            Operation::Threads { method: Method::GET, thread: None, what: None, query, body: None };
        self.answer(&list, LIST).await
    }

    /// The messages of a thread; none, where the runtime has not seen it.
    pub async fn thread_messages(&self, thread: &str) -> Result<Vec<MessageRow>, RuntimeError> {
        #[derive(Deserialize)]
        struct Answer {
            messages: Vec<MessageRow>,
        }
        let answer: Answer = self.inspect(thread, "messages").await?;
        Ok(answer.messages)
    }

    /// The events of a thread, in order, as far as they are kept; none, where the runtime has not
    /// seen it.
    pub async fn thread_events(&self, thread: &str) -> Result<Vec<Reading<Event>>, RuntimeError> {
        #[derive(Deserialize)]
        struct Answer {
            events: Vec<Json>,
        }
        let answer: Answer = self.inspect(thread, "events").await?;
        let read = |(position, event): (usize, &Json)| {
            Event::from_json_tolerant(event.as_str())
                .map_err(|error| RuntimeError::unreadable(&format!("/events/{position}"), error))
        };
        answer.events.iter().enumerate().map(read).collect()
    }

    /// The state of a thread; `None` where it has none, or none that is an object.
    pub async fn thread_state(&self, thread: &str) -> Result<Option<Json>, RuntimeError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            state: Option<Json>,
        }
        let answer: Answer = self.inspect(thread, "state").await?;
        Ok(answer.state)
    }

    /// Names a thread of an agent.
    pub async fn rename_thread(
        &self,
        thread: &str,
        agent: &str,
        name: &str,
    ) -> Result<(), RuntimeError> {
        let body = format!("{{\"agentId\":{},\"name\":{}}}", quoted(agent), quoted(name));
        self.change(Method::PATCH, thread, None, body).await
    }

    /// Archives a thread of an agent.
    pub async fn archive_thread(&self, thread: &str, agent: &str) -> Result<(), RuntimeError> {
        self.change(Method::POST, thread, Some("archive"), of_agent(agent)).await
    }

    /// Takes a thread of an agent out of the archive.
    pub async fn unarchive_thread(&self, thread: &str, agent: &str) -> Result<(), RuntimeError> {
        let body = format!("{{\"agentId\":{},\"archived\":false}}", quoted(agent));
        self.change(Method::PATCH, thread, None, body).await
    }

    /// Deletes a thread of an agent, for good.
    pub async fn delete_thread(&self, thread: &str, agent: &str) -> Result<(), RuntimeError> {
        self.change(Method::DELETE, thread, None, of_agent(agent)).await
    }

    /// Deletes all threads, for good.
    pub async fn clear_threads(&self) -> Result<(), RuntimeError> {
        self.offered(|it| it.threads.list, LIST).await?;
        let clear = Operation::Threads {
            method: Method::POST,
            thread: None,
            what: Some("clear"),
            query: Vec::new(),
            body: None,
        };
        self.text(&clear, LIST).await.map(drop)
    }

    async fn inspect<T: DeserializeOwned>(
        &self,
        thread: &str,
        what: &'static str,
    ) -> Result<T, RuntimeError> {
        let read = Operation::Threads {
            method: Method::GET,
            thread: Some(Id::new(thread)?),
            what: Some(what),
            query: Vec::new(),
            body: None,
        };
        self.offered(|it| it.threads.inspect, INSPECT).await?;
        self.answer(&read, INSPECT).await
    }

    async fn change(
        &self,
        method: Method,
        thread: &str,
        what: Option<&'static str>,
        body: String,
    ) -> Result<(), RuntimeError> {
        let thread = Some(Id::new(thread)?);
        let change =
            Operation::Threads { method, thread, what, query: Vec::new(), body: Some(body) };
        self.offered(|it| it.threads.mutations, MUTATIONS).await?;
        // Only the status says something.
        self.text(&change, MUTATIONS).await.map(drop)
    }

    /// Fails where the runtime does not say that it does this.
    pub(super) async fn offered(
        &self,
        offers: fn(&RuntimeInfo) -> bool,
        what: &'static str,
    ) -> Result<(), RuntimeError> {
        if offers(&*self.info().await?) {
            return Ok(());
        }
        Err(RuntimeError::NotOffered { what, message: String::new() })
    }

    /// An answer that is JSON.
    pub(super) async fn answer<T: DeserializeOwned>(
        &self,
        operation: &Operation<'_>,
        what: &'static str,
    ) -> Result<T, RuntimeError> {
        read(&self.text(operation, what).await?, what)
    }

    async fn text(
        &self,
        operation: &Operation<'_>,
        what: &'static str,
    ) -> Result<String, RuntimeError> {
        let request = operation.request(self.via().await?, &self.base);
        self.ask(request, Self::MOST_ANSWER, |error| RuntimeError::of(error, what)).await
    }
}

/// The answer to what was asked for.
pub(super) fn read<T: DeserializeOwned>(answer: &str, what: &str) -> Result<T, RuntimeError> {
    // By way of our own reading, which takes lone surrogates.
    Json::parse(answer)?.decode().map_err(|error| RuntimeError::unreadable(what, error))
}

const LIST: &str = "lists of threads";
const INSPECT: &str = "reading of threads";
const MUTATIONS: &str = "changes of threads";

fn of_agent(agent: &str) -> String {
    format!("{{\"agentId\":{}}}", quoted(agent))
}
