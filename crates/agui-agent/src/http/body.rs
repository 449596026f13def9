//! From the body of an answer to events.

use std::future::Future;
use std::pin::Pin;

use agui_types::{Event, EventReader, Reading};
use agui_wire::sse::{Decoder, Frame, Limits};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::future::{Either, select};
use futures_util::stream::try_unfold;
use http::header::CONTENT_TYPE;
use reqwest::Response;
use tokio_util::sync::CancellationToken;

use super::EVENT_STREAM;
use crate::AgentError;

type Sending = Pin<Box<dyn Future<Output = Result<Response, AgentError>> + Send>>;

/// The events of an answer that is still to come. Dropping the stream, or cancelling, closes the
/// connection.
pub(super) fn events(
    response: impl Future<Output = Result<Response, AgentError>> + Send + 'static,
    limits: Limits,
    cancel: CancellationToken,
) -> impl Stream<Item = Result<Reading<Event>, AgentError>> + Send {
    let answer = Answer {
        source: Source::Sending(Box::pin(response)),
        frames: Frames::new(limits),
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
    frames: Frames,
    /// The media type, where it is not the expected one.
    content_type: Option<String>,
}

enum Source {
    Sending(Sending),
    Body(Response),
    Ended,
}

impl Answer {
    async fn next(&mut self) -> Result<Option<Reading<Event>>, AgentError> {
        loop {
            if let Some(event) = self.frames.next()? {
                return Ok(Some(event));
            }
            match &mut self.source {
                Source::Sending(sending) => {
                    let response = sending.await?;
                    self.content_type = unexpected_content_type(&response);
                    self.source = Source::Body(response);
                }
                Source::Body(response) => {
                    let read = response.chunk().await;
                    match read {
                        Ok(Some(bytes)) => self.frames.feed(bytes),
                        Ok(None) => {
                            self.source = Source::Ended;
                            if let Some(event) = self.frames.finish()? {
                                return Ok(Some(event));
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
                        Some(found) if self.frames.count == 0 => {
                            Err(AgentError::ContentType { found })
                        }
                        _ => Ok(None),
                    };
                }
            }
        }
    }
}

/// Bytes to frames to events.
struct Frames {
    decoder: Decoder,
    reader: EventReader,
    read: Bytes,
    count: u64,
}

impl Frames {
    fn new(limits: Limits) -> Self {
        let (decoder, reader) = (Decoder::new(limits), EventReader::new());
        Self { decoder, reader, read: Bytes::new(), count: 0 }
    }

    fn feed(&mut self, read: Bytes) {
        self.read = read;
    }

    fn next(&mut self) -> Result<Option<Reading<Event>>, AgentError> {
        let mut rest: &[u8] = &self.read;
        let frame = self.decoder.decode(&mut rest).map_err(limit)?;
        let event = frame.map(|frame| read_event(&mut self.reader, self.count, &frame));
        let used = self.read.len() - rest.len();
        self.read = self.read.slice(used..);
        self.count += u64::from(event.is_some());
        event.transpose()
    }

    /// The last frame, where the body ended before the blank line behind it.
    fn finish(&mut self) -> Result<Option<Reading<Event>>, AgentError> {
        let ending = self.decoder.finish().map_err(limit)?;
        let Some(frame) = ending.frame else {
            return Ok(None);
        };
        let event = read_event(&mut self.reader, self.count, &frame);
        self.count += 1;
        event.map(Some)
    }
}

fn read_event(
    reader: &mut EventReader,
    index: u64,
    frame: &Frame<'_>,
) -> Result<Reading<Event>, AgentError> {
    reader.tolerant(frame.data).map_err(|source| AgentError::Decode {
        index,
        offset: frame.data_offset,
        quote: shortened(frame.data),
        source,
    })
}

fn limit(error: agui_wire::sse::LimitExceeded) -> AgentError {
    AgentError::Limit { source: error.into() }
}

/// The media type of an answer that is not an event stream, whatever its case and parameters.
fn unexpected_content_type(response: &Response) -> Option<String> {
    let Some(value) = response.headers().get(CONTENT_TYPE) else {
        return Some("of no media type".into());
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let essence = text.split(';').next().unwrap_or_default().trim();
    (!essence.eq_ignore_ascii_case(EVENT_STREAM)).then(|| shortened(&text))
}

/// The beginning of a text, for a message.
fn shortened(text: &str) -> String {
    const MOST: usize = 120;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
