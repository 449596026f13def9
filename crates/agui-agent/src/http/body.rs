//! From the body of an answer to events.

use std::future::Future;
use std::pin::Pin;

use agui_types::{Event, Reading};
use agui_wire::{Decoded, Decoder, Limits, WireForm};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::future::{Either, select};
use futures_util::stream::try_unfold;
use http::header::CONTENT_TYPE;
use reqwest::Response;
use tokio_util::sync::CancellationToken;

use super::OnWarning;
use crate::AgentError;

type Sending = Pin<Box<dyn Future<Output = Result<Response, AgentError>> + Send>>;

/// The events of an answer that is still to come. Dropping the stream, or cancelling, closes the
/// connection.
pub(super) fn events(
    response: impl Future<Output = Result<Response, AgentError>> + Send + 'static,
    limits: Limits,
    on_warning: OnWarning,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<Reading<Event>, AgentError>> + Send {
    let answer = Answer {
        source: Source::Sending(Box::pin(response)),
        limits,
        on_warning,
        frames: 0,
        content_type: None,
    };
    try_unfold((answer, cancel), |(mut answer, cancel)| async move {
        let cancelled = Box::pin(cancel.clone().cancelled_owned());
        let next = match select(Box::pin(answer.next()), cancelled).await {
            Either::Left((next, _)) => next?,
            Either::Right(_) => return Err(AgentError::Cancelled),
        };
        Ok(next.map(|event| (event, (answer, cancel))))
    })
}

struct Answer {
    source: Source,
    limits: Limits,
    on_warning: OnWarning,
    /// How many frames there were.
    frames: u64,
    /// The media type, where it is not that of an event stream.
    content_type: Option<String>,
}

// One an exchange: the difference in size is of no account.
#[allow(clippy::large_enum_variant)]
enum Source {
    Sending(Sending),
    Body { response: Response, decoder: Decoder, read: Bytes },
    Ended,
}

impl Answer {
    async fn next(&mut self) -> Result<Option<Reading<Event>>, AgentError> {
        loop {
            match &mut self.source {
                Source::Sending(sending) => {
                    let response = sending.await?;
                    let content_type = content_type(&response);
                    // T-23; what is neither of the two may still be server-sent events.
                    let form = WireForm::from_content_type(content_type.as_deref().unwrap_or(""));
                    self.content_type = unexpected(content_type);
                    let decoder = Decoder::new(form, self.limits);
                    self.source = Source::Body { response, decoder, read: Bytes::new() };
                }
                Source::Body { response, decoder, read } => {
                    let mut rest: &[u8] = read;
                    let decoded = decoder.decode(&mut rest)?;
                    let used = read.len() - rest.len();
                    if let Some(decoded) = decoded {
                        self.frames += 1;
                        let event = event(decoded, &self.on_warning);
                        *read = read.slice(used..);
                        match event {
                            Some(event) => return Ok(Some(event)),
                            None => continue,
                        }
                    }
                    match response.chunk().await {
                        Ok(Some(bytes)) => *read = bytes,
                        Ok(None) => {
                            let last = decoder.finish()?.last;
                            self.frames += u64::from(last.is_some());
                            let last = last.and_then(|last| event(last, &self.on_warning));
                            self.source = Source::Ended;
                            if last.is_some() {
                                return Ok(last);
                            }
                        }
                        Err(error) => {
                            let source = error.without_url().into();
                            return Err(AgentError::Transport { source });
                        }
                    }
                }
                Source::Ended => {
                    return match self.content_type.take() {
                        Some(found) if self.frames == 0 => Err(AgentError::ContentType { found }),
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

/// The event of a frame, after what was amiss with the frame was told.
fn event(decoded: Decoded<'_>, on_warning: &OnWarning) -> Option<Reading<Event>> {
    for warning in &decoded.warnings {
        on_warning.tell(warning);
    }
    decoded.event
}

fn content_type(response: &Response) -> Option<String> {
    let value = response.headers().get(CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The media type of an answer that is not an event stream, whatever its case and parameters.
fn unexpected(content_type: Option<String>) -> Option<String> {
    let Some(text) = content_type else {
        return Some("of no media type".into());
    };
    let expected = [WireForm::Sse, WireForm::Proto].iter().any(|form| form.is_named_by(&text));
    (!expected).then(|| shortened(&text))
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
