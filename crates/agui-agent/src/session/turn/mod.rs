//! What follows when a session is told to do something.

mod begin;
mod progress;

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::Pin;
use std::task::{Context, Poll};

use agui_stream::fold::Conversation;
use agui_stream::observe::Observed;
use agui_types::{Json, MessageId, RunId, ToolCallId};
use futures_core::Stream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::calls::Calling;
use super::reattach::Reports;
use super::update::{Finished, SessionError, Update};
use super::{Session, new_id};
use crate::{CancellationToken, Delivery, DeliveryError, RunFailure};

/// A turn of a [`Session`], which it derefs to, so that everything can be read while it goes on.
///
/// Dropping it ends nothing: the turn stays in the session and goes on when it is
/// [taken up](Session::turn) again. Dropping a future of [`next`](Self::next) loses nothing.
#[must_use = "a turn does nothing unless it is polled"]
pub struct Turn<'s> {
    session: &'s mut Session,
    /// Why it never began.
    refused: Option<SessionError>,
}

impl<'s> Turn<'s> {
    pub(super) fn new(session: &'s mut Session, refused: Option<SessionError>) -> Self {
        Self { session, refused }
    }

    /// What happens next; `None` once the turn is over.
    pub async fn next(&mut self) -> Option<Update> {
        poll_fn(|cx| self.poll_update(cx)).await
    }

    /// Takes the turn to its end, whatever there is still to happen, and says what it came to.
    ///
    /// Fails where the turn never began, or its stream was rejected.
    pub async fn finish(mut self) -> Result<Finished, SessionError> {
        while self.next().await.is_some() {}
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        match self.session.active.take() {
            Some(Active { stage: Stage::Over(outcome), .. }) => *outcome,
            // Only what is over gives nothing more.
            active => {
                self.session.active = active;
                Err(SessionError::Busy)
            }
        }
    }

    /// Ends the turn; see [`Session::cancel`].
    pub fn cancel(&self) {
        self.session.cancel();
    }

    /// What ends the turn from elsewhere: another task, a signal handler.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        let active = self.session.active.as_ref().filter(|_| self.refused.is_none());
        active.map_or_else(CancellationToken::new, |active| active.cancel.clone())
    }

    fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        match self.refused {
            Some(_) => Poll::Ready(None),
            None => self.session.poll_update(cx),
        }
    }
}

impl Deref for Turn<'_> {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session
    }
}

impl Stream for Turn<'_> {
    type Item = Update;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        self.poll_update(cx)
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("session", &self.session)
            .field("refused", &self.refused)
            .finish()
    }
}

/// A turn that is going on, or that nobody has finished.
pub(super) struct Active {
    stage: Stage,
    /// What was not told yet.
    told: VecDeque<Update>,
    cancel: CancellationToken,
    cancelled: Pin<Box<WaitForCancellationFutureOwned>>,
    run_id: RunId,
    runs: u32,
    forwarded_props: Option<Json>,
    /// Whether an event of the run at hand has come.
    delivered: bool,
    /// What the run at hand said when it failed.
    failure: Option<RunFailure>,
    new_messages: Vec<MessageId>,
    attached: Attached,
    /// What is to be told of the connection.
    reports: Reports,
}

/// Whether the agent was connected to, and what was held before.
enum Attached {
    No,
    /// Nothing has come yet.
    Yes,
    /// What comes takes the place of this.
    InPlaceOf(Box<Conversation>),
}

enum Stage {
    /// A run.
    Streaming(Box<Delivery>),
    /// The front-end tools that it has called.
    Calling {
        todo: VecDeque<ToolCallId>,
        current: Option<Box<Calling>>,
        follow_up: bool,
    },
    Over(Box<Result<Finished, SessionError>>),
}

/// How a run ended.
enum End {
    /// As its stream said, or did not say.
    Said,
    Cancelled,
    CutOff(DeliveryError),
    Failed(SessionError),
}

impl Active {
    fn new(forwarded_props: Option<Json>) -> Self {
        let cancel = CancellationToken::new();
        Self {
            stage: Stage::Calling { todo: VecDeque::new(), current: None, follow_up: false },
            told: VecDeque::new(),
            cancelled: Box::pin(cancel.clone().cancelled_owned()),
            cancel,
            run_id: new_id().into(),
            runs: 0,
            forwarded_props,
            delivered: false,
            failure: None,
            new_messages: Vec::new(),
            attached: Attached::No,
            reports: Reports::default(),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    pub(super) fn tell_observed(&mut self, observed: Observed) {
        self.told.extend(observed.errors.into_iter().map(Update::ObserverFailed));
    }
}
