//! From the body of an answer to events.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use agui_types::event::RunFinished;
use agui_types::{CancelledOutcome, Event, Reading, RunId, ThreadId};
use agui_wire::{DecodeError, Decoded, Decoder, Limits, WireForm};
use bytes::Bytes;
use futures_core::Stream;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use reqwest::Response;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::OnWarning;
use crate::{AgentError, Position, RunContext};

/// How much of a header's value is shown, in characters.
const MOST_SHOWN: usize = 120;

type Sending = Pin<Box<dyn Future<Output = Result<Response, AgentError>> + Send>>;
type Body = Pin<Box<dyn Stream<Item = reqwest::Result<Bytes>> + Send>>;

/// The events of an answer that is still to come. Dropping the stream, or cancelling, closes the
/// connection at once: what was read and not handed out is gone then.
pub(super) struct Events {
    source: Source,
    limits: Limits,
    on_warning: OnWarning,
    idle: Option<Duration>,
    position: Position,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    /// How many frames there were.
    frames: u64,
    /// The media type, where it is not that of an event stream.
    content_type: Option<String>,
    whose: Whose,
}

/// Whose words are read.
pub(crate) enum Whose {
    Agents,
    /// A runtime's, with the run that it speaks of.
    Runtimes(Option<(ThreadId, RunId)>),
}

// One an exchange: the difference in size is of no account.
#[allow(clippy::large_enum_variant)]
enum Source {
    Sending(Sending),
    Body { body: Body, decoder: Decoder, read: Bytes },
    Ended,
}

impl Events {
    pub(super) fn new(
        response: impl Future<Output = Result<Response, AgentError>> + Send + 'static,
        limits: Limits,
        on_warning: OnWarning,
        idle: Option<Duration>,
        context: RunContext,
        whose: Whose,
    ) -> Self {
        Self {
            source: Source::Sending(Box::pin(response)),
            limits,
            on_warning,
            idle,
            position: context.position,
            cancelled: Box::pin(context.cancel.cancelled_owned()),
            frames: 0,
            content_type: None,
            whose,
        }
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Reading<Event>>, AgentError>> {
        loop {
            match &mut self.source {
                Source::Sending(sending) => {
                    let response = ready!(sending.as_mut().poll(cx))?;
                    if let Some(encoding) = compressed(response.headers()) {
                        return Poll::Ready(Err(AgentError::Compressed { encoding }));
                    }
                    let content_type = text_of(response.headers(), &CONTENT_TYPE);
                    // T-23; what is neither of the two may still be server-sent events.
                    let form = WireForm::from_content_type(content_type.as_deref().unwrap_or(""));
                    self.content_type = unexpected(content_type);
                    let decoder = Decoder::new(form, self.limits);
                    let body = Box::pin(response.bytes_stream());
                    self.source = Source::Body { body, decoder, read: Bytes::new() };
                }
                Source::Body { body, decoder, read } => {
                    let mut rest: &[u8] = read;
                    let decoded = decoder.decode(&mut rest);
                    let used = read.len() - rest.len();
                    let decoded = match decoded {
                        Ok(decoded) => decoded,
                        Err(error) => {
                            let stopped = self.whose.stopped(&error).ok_or(error)?;
                            // It failed at the end of a frame.
                            *decoder = Decoder::new(WireForm::Sse, self.limits);
                            *read = read.slice(used..);
                            self.position.set(None);
                            return Poll::Ready(Ok(Some(Event::from(stopped).into())));
                        }
                    };
                    if let Some(decoded) = decoded {
                        self.frames += 1;
                        let event = event(decoded, &self.on_warning, &self.position);
                        *read = read.slice(used..);
                        match event {
                            Some(event) => {
                                self.whose.hear(&event.value);
                                return Poll::Ready(Ok(Some(event)));
                            }
                            None => continue,
                        }
                    }
                    // The decoder has all of it.
                    *read = Bytes::new();
                    match ready!(body.as_mut().poll_next(cx)) {
                        Some(Ok(bytes)) => *read = bytes,
                        None => {
                            let last = match decoder.finish() {
                                Ok(ending) => {
                                    let last = ending.last;
                                    self.frames += u64::from(last.is_some());
                                    last.and_then(|it| event(it, &self.on_warning, &self.position))
                                }
                                Err(error) => {
                                    let stopped = self.whose.stopped(&error).ok_or(error)?;
                                    Some(Event::from(stopped).into())
                                }
                            };
                            self.source = Source::Ended;
                            if last.is_some() {
                                return Poll::Ready(Ok(last));
                            }
                        }
                        Some(Err(error)) => {
                            return Poll::Ready(Err(super::broken(error, self.idle)));
                        }
                    }
                }
                Source::Ended => {
                    return Poll::Ready(match self.content_type.take() {
                        Some(found) if self.frames == 0 => Err(AgentError::ContentType { found }),
                        _ => Ok(None),
                    });
                }
            }
        }
    }

    /// Lets go of the connection; nothing comes any more.
    fn end(&mut self) {
        self.source = Source::Ended;
        self.content_type = None;
    }
}

impl Stream for Events {
    type Item = Result<Reading<Event>, AgentError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !matches!(this.source, Source::Ended) && this.cancelled.as_mut().poll(cx).is_ready() {
            this.end();
            return Poll::Ready(Some(Err(AgentError::Cancelled)));
        }
        let next = ready!(this.poll_event(cx));
        if next.is_err() {
            this.end();
        }
        Poll::Ready(next.transpose())
    }
}

impl Whose {
    fn hear(&mut self, event: &Event) {
        if let (Self::Runtimes(run), Event::RunStarted(started)) = (self, event) {
            *run = Some((started.thread_id.clone(), started.run_id.clone()));
        }
    }

    /// The end of a run that was stopped, where that is what could not be read: the published runtime
    /// ends such runs, and only those, without saying which run it is.
    fn stopped(&self, error: &DecodeError) -> Option<RunFinished> {
        let Self::Runtimes(Some((thread, run))) = self else { return None };
        if error.quote() != r#"{"type":"RUN_FINISHED"}"# {
            return None;
        }
        let mut finished = RunFinished::new(thread, run);
        finished.outcome = Some(CancelledOutcome::new().into());
        Some(finished)
    }
}

/// The event of a frame, after what was amiss with the frame was told and its position noted.
fn event(
    decoded: Decoded<'_>,
    on_warning: &OnWarning,
    position: &Position,
) -> Option<Reading<Event>> {
    for warning in &decoded.warnings {
        on_warning.tell(warning);
    }
    if decoded.event.is_some() || decoded.id.is_some() {
        position.set(decoded.id);
    }
    decoded.event
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The encoding of a body that cannot be read because of it.
pub(super) fn compressed(headers: &HeaderMap) -> Option<String> {
    let encoding = text_of(headers, &CONTENT_ENCODING)?;
    let plain = encoding.trim().is_empty() || encoding.trim().eq_ignore_ascii_case("identity");
    (!plain).then(|| shortened(&encoding, MOST_SHOWN))
}

/// The media type of an answer that is not an event stream, whatever its case and parameters.
fn unexpected(content_type: Option<String>) -> Option<String> {
    let Some(text) = content_type else {
        return Some("of no media type".into());
    };
    let expected = [WireForm::Sse, WireForm::Proto].iter().any(|form| form.is_named_by(&text));
    (!expected).then(|| shortened(&text, MOST_SHOWN))
}

/// The beginning of a text, for a message: at most so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
