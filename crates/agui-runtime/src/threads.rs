//! The threads: listed, read, named, archived, deleted.

use std::sync::Arc;

use agui_journal::{
    Archived, Cursor, Journal, JournalError, Page, PageToken, ReadLimit, Tenant, ThreadInfo,
    ThreadKey, ThreadQuery,
};
use agui_server::ResponseBody;
use agui_types::json::read_string;
use agui_types::{Json, JsonObject};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::{once, unfold};
use http::StatusCode;
use serde::Serialize;

use crate::answer::{self, Answer, Problem};
use crate::inspect::MessageRow;
use crate::service::failed;
use crate::time::iso;

/// A thread in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    id: &'a str,
    name: Option<&'a str>,
    agent_id: &'a str,
    organization_id: &'a str,
    created_by_id: &'a str,
    archived: bool,
    created_at: String,
    updated_at: String,
    last_run_at: String,
}

impl<'a> Row<'a> {
    fn of(info: &'a ThreadInfo) -> Self {
        Self {
            id: info.thread.as_str(),
            name: info.name.as_deref(),
            agent_id: &info.last_run.agent,
            organization_id: "",
            created_by_id: info.owner.as_deref().unwrap_or_default(),
            archived: info.archived,
            created_at: iso(info.created_at),
            updated_at: iso(info.updated_at),
            last_run_at: iso(info.last_run.began_at),
        }
    }
}

/// `GET /threads`: those with a run that has ended, the latest activity first.
pub(crate) async fn list(journal: &dyn Journal, tenant: &str, query: Option<&str>) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct List<'a> {
        threads: Vec<Row<'a>>,
        next_cursor: Option<&'a str>,
    }
    let mut asked = ThreadQuery::new(Tenant::new(tenant)).with_finished_run();
    for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
        match &*name {
            "agentId" if !value.is_empty() => asked = asked.agent(value.into_owned()),
            "includeArchived" if value == "true" => asked = asked.archived(Archived::Include),
            "cursor" if !value.is_empty() => {
                asked = asked.after(Some(PageToken::new(value.into_owned())));
            }
            "limit" => match value.parse() {
                Ok(limit) if limit > 0 => asked = asked.limit(limit),
                _ => return invalid("\"limit\" is no positive number"),
            },
            _ => {}
        }
    }
    match journal.threads(asked).await {
        Ok(page) => answer::json(
            StatusCode::OK,
            &List {
                threads: page.threads.iter().map(Row::of).collect(),
                next_cursor: page.next.as_ref().map(PageToken::as_str),
            },
        ),
        Err(JournalError::PageToken) => invalid("\"cursor\" is none that was given out here"),
        Err(error) => failed(&error),
    }
}

/// `POST /threads/clear`: deletes all of a tenant's.
pub(crate) async fn clear(journal: &dyn Journal, tenant: &str) -> Answer {
    match journal.clear(&Tenant::new(tenant), None).await {
        Ok(_) => answer::empty(StatusCode::NO_CONTENT),
        Err(error) => failed(&error),
    }
}

/// `PATCH /threads/{id}`: a name, or whether it is archived, or both.
pub(crate) async fn update(journal: &dyn Journal, thread: &ThreadKey, body: &[u8]) -> Answer {
    let Some(body) = std::str::from_utf8(body).ok().and_then(|text| JsonObject::parse(text).ok())
    else {
        return invalid("the body is no JSON object");
    };
    let name = match body.get("name") {
        None => None,
        Some("null") => Some(None),
        Some(name) => match read_string(name) {
            Some(name) if name.len() <= LONGEST_NAME => Some(Some(name.into_owned())),
            _ => return invalid("\"name\" is no string, or longer than 1,000 bytes"),
        },
    };
    let archived = match body.get("archived") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return invalid("\"archived\" is neither true nor false"),
    };
    let mut info = None;
    if let Some(name) = name {
        info = Some(journal.rename(thread, name).await);
    }
    if let Some(archived) = archived
        && !matches!(info, Some(Err(_)))
    {
        info = Some(journal.archive(thread, archived).await);
    }
    let info = match info {
        Some(info) => info,
        None => journal.thread(thread).await,
    };
    match info {
        Ok(info) => answer::json(StatusCode::OK, &Row::of(&info)),
        Err(error) => missing(&error),
    }
}

/// The longest name of a thread, in bytes.
const LONGEST_NAME: usize = 1000;

/// `POST /threads/{id}/archive`
pub(crate) async fn archive(journal: &dyn Journal, thread: &ThreadKey) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Archived<'a> {
        thread_id: &'a str,
        archived: bool,
    }
    match journal.archive(thread, true).await {
        Ok(info) => answer::json(
            StatusCode::OK,
            &Archived { thread_id: info.thread.as_str(), archived: info.archived },
        ),
        Err(error) => missing(&error),
    }
}

/// `DELETE /threads/{id}`
pub(crate) async fn delete(journal: &dyn Journal, thread: &ThreadKey) -> Answer {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Deleted<'a> {
        thread_id: &'a str,
        deleted: bool,
    }
    match journal.delete(thread).await {
        Ok(()) => answer::json(
            StatusCode::OK,
            &Deleted { thread_id: thread.thread.as_str(), deleted: true },
        ),
        Err(error) => missing(&error),
    }
}

/// `GET /threads/{id}/messages`; of a thread that is not there, none.
pub(crate) async fn messages(journal: &dyn Journal, thread: &ThreadKey) -> Answer {
    #[derive(Serialize)]
    struct Messages<'a> {
        messages: Vec<MessageRow<'a>>,
    }
    match journal.snapshot(thread).await {
        Ok(snapshot) => {
            let messages = snapshot.messages.iter().filter_map(MessageRow::of).collect();
            answer::json(StatusCode::OK, &Messages { messages })
        }
        Err(JournalError::ThreadNotFound) => {
            answer::json(StatusCode::OK, &Messages { messages: Vec::new() })
        }
        Err(error) => failed(&error),
    }
}

/// `GET /threads/{id}/events`; of a thread that is not there, none. Written as it is read, a page of
/// the log at a time: a thread may be larger than the memory that one answer may take.
pub(crate) async fn events(journal: &Arc<dyn Journal>, thread: ThreadKey) -> Answer {
    let begin = match journal.read(&thread, Cursor::START, ReadLimit::default()).await {
        Ok(page) => Rest::Page(page),
        Err(JournalError::ThreadNotFound) => Rest::End,
        Err(error) => return failed(&error),
    };
    let journal = Arc::clone(journal);
    let rest = unfold((begin, true), move |(rest, first)| {
        let (journal, thread) = (Arc::clone(&journal), thread.clone());
        async move {
            let end = (Bytes::from_static(b"]}"), (Rest::Over, first));
            let page = match rest {
                Rest::Page(page) => page,
                Rest::Behind(from) => match journal.read(&thread, from, ReadLimit::default()).await
                {
                    Ok(page) => page,
                    Err(JournalError::ThreadNotFound) => return Some(end),
                    Err(error) => {
                        // What was sent stays without its end, and is not taken for the whole.
                        tracing::error!(%error, "the events of a thread cannot be read on");
                        return None;
                    }
                },
                Rest::End => return Some(end),
                Rest::Over => return None,
            };
            let mut text = String::new();
            for entry in &page.entries {
                if !first || !text.is_empty() {
                    text.push(',');
                }
                text.push_str(entry.text());
            }
            let first = first && text.is_empty();
            let rest = if page.is_last() { Rest::End } else { Rest::Behind(page.next) };
            Some((Bytes::from(text), (rest, first)))
        }
    });
    let begin = once(ready(Bytes::from_static(b"{\"events\":[")));
    answer::json_body(ResponseBody::frames(begin.chain(rest), None))
}

/// What is still to be written of a thread's events.
enum Rest {
    Page(Page),
    /// What the log has behind this.
    Behind(Cursor),
    /// The end of the list.
    End,
    Over,
}

/// `GET /threads/{id}/state`; `null` where there is none, or no object.
pub(crate) async fn state(journal: &dyn Journal, thread: &ThreadKey) -> Answer {
    #[derive(Serialize)]
    struct State {
        state: Option<Json>,
    }
    match journal.snapshot(thread).await {
        Ok(snapshot) => {
            let state = Some(snapshot.state).filter(Json::is_object);
            answer::json(StatusCode::OK, &State { state })
        }
        Err(JournalError::ThreadNotFound) => answer::json(StatusCode::OK, &State { state: None }),
        Err(error) => failed(&error),
    }
}

fn invalid(details: &str) -> Answer {
    Problem::new("Invalid request").details(details).with(StatusCode::BAD_REQUEST)
}

fn missing(error: &JournalError) -> Answer {
    match error {
        JournalError::ThreadNotFound => Problem::new("Thread not found")
            .message("there is no such thread")
            .with(StatusCode::NOT_FOUND),
        error => failed(error),
    }
}
