//! The threads: listed, read, named, archived, deleted.

use std::sync::Arc;

use agui_journal::{
    Archived, Cursor, Journal, JournalError, Page, PageToken, ReadLimit, Tenant, ThreadInfo,
    ThreadKey, ThreadQuery,
};
use agui_server::ResponseBody;
use agui_types::json::read_string;
use agui_types::{Json, JsonObject, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::{iter, once, unfold};
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

/// `GET /threads/{id}/messages`; of a thread that is not there, none. Written as it is asked for, a piece
/// of [`PIECE`] at a time: beside the folded thread it costs no more than that.
pub(crate) async fn messages(journal: &dyn Journal, thread: &ThreadKey) -> Answer {
    let messages = match journal.snapshot(thread).await {
        Ok(snapshot) => snapshot.messages,
        Err(JournalError::ThreadNotFound) => Vec::new(),
        Err(error) => return failed(&error),
    };
    let mut rows = Rows::of(messages);
    let first = rows.next().unwrap_or_default();
    answer::json_body(if rows.over {
        ResponseBody::whole(first)
    } else {
        ResponseBody::frames(iter(std::iter::once(first).chain(rows)), None)
    })
}

/// How many bytes of a list of messages are written at once, at most; a message that is longer is written
/// by itself.
const PIECE: usize = 64 * 1024;

/// The rows of messages as JSON text, in pieces. What is written of the messages is held no longer.
struct Rows {
    messages: std::vec::IntoIter<Message>,
    /// What is written, and not given out yet: the next piece begins with it.
    next: Vec<u8>,
    first: bool,
    over: bool,
}

impl Rows {
    fn of(messages: Vec<Message>) -> Self {
        let next = b"{\"messages\":[".to_vec();
        Self { messages: messages.into_iter(), next, first: true, over: false }
    }
}

impl Iterator for Rows {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        let mut piece = std::mem::take(&mut self.next);
        for message in self.messages.by_ref() {
            let Some(row) = MessageRow::of(&message) else { continue };
            // Texts and protocol types: writing them cannot fail.
            let row = serde_json::to_vec(&row).unwrap_or_default();
            let comma: &[u8] = if self.first { b"" } else { b"," };
            self.first = false;
            if piece.len() + comma.len() + row.len() > PIECE && !piece.is_empty() {
                self.next = [comma, &row].concat();
                return Some(piece.into());
            }
            piece.extend_from_slice(comma);
            piece.extend_from_slice(&row);
        }
        self.over = true;
        piece.extend_from_slice(b"]}");
        Some(piece.into())
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

#[cfg(test)]
mod tests {
    use agui_types::message::UserMessage;

    use super::*;

    /// The lengths of the pieces that messages with so long rows come in.
    fn pieces(rows: &[usize]) -> Vec<usize> {
        const AROUND: usize = r#"{"id":"m","role":"user","content":""}"#.len();
        let message = |length: &usize| UserMessage::new("m", "x".repeat(length - AROUND)).into();
        Rows::of(rows.iter().map(message).collect()).map(|piece| piece.len()).collect()
    }

    #[test]
    fn pieces_are_as_long_as_they_may_be() {
        const BEGIN: usize = r#"{"messages":["#.len();
        assert_eq!(pieces(&[]), [BEGIN + 2]);
        assert_eq!(pieces(&[PIECE - BEGIN]), [PIECE + 2]);
        assert_eq!(pieces(&[PIECE - BEGIN + 1]), [BEGIN, PIECE - BEGIN + 1 + 2]);
        // A comma is between two.
        assert_eq!(pieces(&[100, PIECE - BEGIN - 101]), [PIECE + 2]);
        assert_eq!(pieces(&[100, PIECE - BEGIN - 100]), [BEGIN + 100, PIECE - BEGIN - 99 + 2]);
        let long = 3 * PIECE;
        assert_eq!(pieces(&[100, long, 100]), [BEGIN + 100, 1 + long, 101 + 2]);
    }
}
