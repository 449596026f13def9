//! What follows when a session is told to do something.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::{Future, poll_fn};
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{SystemTime, UNIX_EPOCH};

use agui_stream::fold::{Change, Conversation};
use agui_stream::observe::Observed;
use agui_stream::{Ending, Outgoing, Pipeline, Warning};
use agui_types::json::Value;
use agui_types::{
    Event, Json, JsonObject, MessageId, ResumeEntry, RunAgentInput, RunId, Timestamp, ToolCallId,
};
use futures_core::Stream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::calls::Calling;
use super::reattach::Reattaching;
use super::tools::{ToolCallContext, ToolOutput};
use super::update::{Finished, SessionError, Update};
use super::{Request, Session, new_id};
use crate::{
    AgentError, CancellationToken, Delivered, Delivery, DeliveryError, EventStream, RunContext,
    RunFailure,
};

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
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    pub(super) fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    fn tell_observed(&mut self, observed: Observed) {
        self.told.extend(observed.errors.into_iter().map(Update::ObserverFailed));
    }
}

// --- the beginning ---------------------------------------------------------------------------------

impl Session {
    pub(super) fn begin(&mut self, request: Request) -> Result<(), SessionError> {
        self.free()?;
        let Request { messages, resume, run_id, parent_run_id, forwarded_props } = request;
        // Whether the answers will do is known before anything is changed.
        let mut trial = RunAgentInput::new(&self.thread_id, "", Vec::new());
        trial.resume.clone_from(&resume);
        let open = self.conversation.open_interrupts();
        self.outgoing().prepare(trial, open, &mut Vec::new()).map_err(SessionError::Refused)?;

        let mut active = Active::new(forwarded_props);
        for message in messages {
            if let Some(message) = message.id() {
                let position = self.messages().len();
                active.told.push_back(Update::Change(Change::MessageCreated { message, position }));
            }
            self.conversation.push(message);
        }
        active.told.extend(self.unanswered().map(Update::Warning));
        active.run_id = run_id.unwrap_or(active.run_id);
        self.active = Some(active);
        self.begin_run(parent_run_id, resume);
        Ok(())
    }

    pub(super) fn begin_connecting(&mut self) -> Result<(), SessionError> {
        self.free()?;
        let mut active = Active::new(None);
        active.attached = Attached::Yes;
        let input = self.input(active.run_id.clone(), None, None, None);
        // What is open is asked again by what comes.
        let mut warnings = Vec::new();
        let input =
            self.outgoing().prepare(input, &[], &mut warnings).map_err(SessionError::Refused)?;
        let context = RunContext::new().with_cancel(active.cancel.clone());
        let pipeline = Pipeline::for_run(self.thread_id.clone(), active.run_id.clone());
        let connected = self.agent.connect(input, context);
        let stream = connected.ok_or(SessionError::NothingToConnectTo)?;
        active.told.extend(warnings.into_iter().map(Update::Warning));
        self.conversation.begin_exchange(&active.run_id, &[]);
        let observed = self.observers.run_initialized(&mut self.conversation, &mut self.applied);
        active.tell_observed(observed);
        let delivery = Delivery::new(stream, pipeline.from_peer(self.peer));
        active.stage = Stage::Streaming(Box::new(delivery));
        self.active = Some(active);
        Ok(())
    }

    pub(super) fn begin_calling(&mut self) -> Result<(), SessionError> {
        self.free()?;
        let mut active = Active::new(None);
        let todo = self.to_be_called();
        active.stage = Stage::Calling { todo, current: None, follow_up: false };
        self.active = Some(active);
        Ok(())
    }

    /// Fails where a turn is going on. One that is over and that nobody has finished is forgotten.
    fn free(&self) -> Result<(), SessionError> {
        if self.is_busy() { Err(SessionError::Busy) } else { Ok(()) }
    }

    /// Begins a run of the turn, with the conversation as it is.
    fn begin_run(&mut self, parent_run_id: Option<RunId>, resume: Option<Vec<ResumeEntry>>) {
        let Some(mut active) = self.active.take() else { return };
        let run_id = active.run_id.clone();
        self.conversation.begin_exchange(&run_id, resume.as_deref().unwrap_or_default());
        let observed = self.observers.run_initialized(&mut self.conversation, &mut self.applied);
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        active.tell_observed(observed);
        let props = active.forwarded_props.clone();
        let input = self.input(run_id.clone(), parent_run_id, resume, props);
        let mut warnings = Vec::new();
        let open = self.conversation.open_interrupts();
        let ready = self.outgoing().prepare(input, open, &mut warnings);
        active.told.extend(warnings.into_iter().map(Update::Warning));
        active.delivered = false;
        active.failure = None;
        active.stage = match ready {
            Ok(input) => {
                active.runs += 1;
                let context = RunContext::new().with_cancel(active.cancel.clone());
                let pipeline = Pipeline::for_run(self.thread_id.clone(), run_id);
                let delivery =
                    Delivery::new(self.stream(input, context), pipeline.from_peer(self.peer));
                Stage::Streaming(Box::new(delivery))
            }
            Err(fault) => Stage::Over(Box::new(Err(SessionError::Refused(fault)))),
        };
        self.active = Some(active);
    }

    fn stream(&self, input: RunAgentInput, context: RunContext) -> EventStream {
        let Some(policy) = self.reconnect else {
            return self.agent.run(input, context);
        };
        Box::pin(Reattaching::new(Arc::clone(&self.agent), input, context, policy))
    }

    fn outgoing(&self) -> Outgoing {
        let outgoing = Outgoing::new().to_peer(self.peer);
        match now() {
            Some(now) => outgoing.at(now),
            None => outgoing,
        }
    }

    /// The input of a run, with every member that receivers of the 0.x line insist on.
    fn input(
        &self,
        run_id: RunId,
        parent_run_id: Option<RunId>,
        resume: Option<Vec<ResumeEntry>>,
        forwarded_props: Option<Json>,
    ) -> RunAgentInput {
        let messages = self.conversation.messages().to_vec();
        let mut input = RunAgentInput::new(&self.thread_id, run_id, messages);
        input.parent_run_id = parent_run_id;
        input.state = Some(self.conversation.state().to_json());
        input.tools = Some(self.tools.offered(self.agent_name.as_deref()));
        input.context = Some(self.context.clone());
        let props = forwarded_props.or_else(|| self.forwarded_props.clone());
        input.forwarded_props = Some(props.unwrap_or_else(|| JsonObject::empty().into()));
        input.resume = resume;
        input
    }

    /// Warnings of the front-end calls that are sent without an answer (C-55).
    fn unanswered(&self) -> impl Iterator<Item = Warning> {
        let offered =
            self.pending_tool_calls().filter(|(_, call)| self.is_offered(&call.function.name));
        offered.map(|(_, call)| Warning {
            rule: "C-55",
            event: None,
            path: String::new(),
            message: format!(
                "the call {:?} of the tool {:?} is sent without an answer: answer it, if only with \
                 why it was not carried out",
                call.id.as_str(),
                call.function.name
            ),
        })
    }

    fn is_offered(&self, tool: &str) -> bool {
        self.tools.find(tool, self.agent_name.as_deref()).is_some()
    }

    /// The calls that wait for a tool with a handler, in the order made.
    fn to_be_called(&self) -> VecDeque<ToolCallId> {
        let agent = self.agent_name.as_deref();
        let handled = self.pending_tool_calls().filter(|(_, call)| {
            let tool = self.tools.for_call(&call.function.name, agent);
            tool.is_some_and(|tool| tool.handler.is_some())
        });
        handled.map(|(_, call)| call.id.clone()).collect()
    }
}

fn now() -> Option<Timestamp> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Timestamp::new(i64::try_from(since_epoch.as_millis()).ok()?)
}

// --- what happens ----------------------------------------------------------------------------------

impl Session {
    pub(super) fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            let Some(active) = &mut self.active else {
                return Poll::Ready(None);
            };
            if let Some(update) = active.told.pop_front() {
                return Poll::Ready(Some(update));
            }
            let cancelled = !active.is_over() && active.cancelled.as_mut().poll(cx).is_ready();
            match &mut active.stage {
                Stage::Over(_) => return Poll::Ready(None),
                Stage::Streaming(delivery) => match Pin::new(&mut **delivery).poll_next(cx) {
                    Poll::Ready(Some(Ok(Delivered::Event(event)))) => self.take_event(event),
                    Poll::Ready(Some(Ok(Delivered::Warning(warning)))) => {
                        active.told.push_back(Update::Warning(warning));
                    }
                    Poll::Ready(Some(Err(error))) => self.stream_broke(error),
                    Poll::Ready(None) => self.end_run(End::Said),
                    // It has had its chance to say that it was stopped.
                    Poll::Pending if cancelled => self.end_run(End::Cancelled),
                    Poll::Pending => return Poll::Pending,
                },
                Stage::Calling { .. } if cancelled => self.cancel_calls(),
                Stage::Calling { todo, current: None, .. } => match todo.pop_front() {
                    Some(call) => self.begin_call(&call),
                    None => self.go_on(),
                },
                Stage::Calling { current: Some(calling), follow_up, .. } => {
                    let answer = ready!(calling.poll(cx));
                    *follow_up |= calling.follow_up;
                    let call = calling.tool_call.clone();
                    self.end_call(&call, answer);
                }
            }
        }
    }

    fn take_event(&mut self, event: Event) {
        let Some(active) = &mut self.active else { return };
        active.delivered = true;
        if let Attached::Yes = active.attached {
            // It restates all there is.
            let mut fresh = Conversation::new(Vec::new(), Value::Object(Default::default()))
                .with_patch_limits(self.patch_limits);
            fresh.begin_exchange(&active.run_id, &[]);
            let before = std::mem::replace(&mut self.conversation, fresh);
            active.attached = Attached::InPlaceOf(Box::new(before));
            active.told.extend(all_replaced());
        }
        match &event {
            Event::RunStarted(_) => active.failure = None,
            Event::RunError(error) => {
                let (message, code) = (error.message.clone(), error.code.clone());
                active.failure = Some(RunFailure { message, code });
            }
            _ => {}
        }
        let observed = self.observers.apply(&event, &mut self.conversation, &mut self.applied);
        active.tell_observed(observed);
        active.told.extend(self.applied.warnings.drain(..).map(Update::Warning));
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        if is_not_folded(&event) {
            active.told.push_back(Update::Event(event));
        }
    }

    fn stream_broke(&mut self, error: DeliveryError) {
        if let DeliveryError::Agent(AgentError::Cancelled) = error {
            return self.end_run(End::Cancelled);
        }
        let Some(active) = &mut self.active else { return };
        let nothing_came = !active.delivered;
        if nothing_came
            && error.is_cut_off()
            && matches!(active.attached, Attached::Yes)
            && matches!(error, DeliveryError::Fault(_))
        {
            // An agent that has nothing of the thread gives an empty stream.
            return self.end_run(End::Said);
        }
        let observed = self.observers.run_failed(&error, &mut self.conversation, &mut self.applied);
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        let dealt_with = observed.stopped;
        active.tell_observed(observed);
        self.end_run(match error {
            _ if dealt_with => End::Said,
            DeliveryError::Agent(error) if nothing_came => match error {
                AgentError::Decode(_) if !error.is_cut_off() => {
                    End::Failed(SessionError::Rejected(error.into()))
                }
                error => End::Failed(SessionError::NoStream(error)),
            },
            error if error.is_cut_off() => End::CutOff(error),
            error => End::Failed(SessionError::Rejected(error)),
        });
    }

    /// The run is over; calls of front-end tools come next, unless something is amiss.
    fn end_run(&mut self, end: End) {
        let Some(active) = &mut self.active else { return };
        active.new_messages.extend(self.conversation.new_messages().cloned());
        let observed = self.observers.run_finalized(&mut self.conversation, &mut self.applied);
        active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        active.tell_observed(observed);
        match end {
            End::Said => {
                let attached = !matches!(active.attached, Attached::No);
                let called = !attached && !active.cancel.is_cancelled();
                let ending = match active.attached {
                    Attached::Yes => Ending::Completed,
                    _ => self.conversation.end_exchange(),
                };
                if ending == Ending::Completed && called {
                    let todo = self.to_be_called();
                    if let Some(active) = &mut self.active {
                        active.stage = Stage::Calling { todo, current: None, follow_up: false };
                    }
                } else {
                    self.over(ending, None);
                }
            }
            End::Cancelled => {
                let said = self.conversation.ending();
                self.over(said.unwrap_or(Ending::Cancelled), None);
            }
            End::CutOff(error) => {
                let ending = self.conversation.end_exchange();
                self.over(ending, Some(error));
            }
            End::Failed(error) => {
                let attached = std::mem::replace(&mut active.attached, Attached::No);
                if let Attached::InPlaceOf(before) = attached {
                    // What was there before is better than a part of what was to come.
                    self.conversation = *before;
                    active.told.extend(all_replaced());
                }
                active.stage = Stage::Over(Box::new(Err(error)));
            }
        }
    }

    fn begin_call(&mut self, call: &ToolCallId) {
        let Some(active) = &mut self.active else { return };
        // Never twice: an observer or another handler may have brought an answer.
        if !self.conversation.pending_tool_calls().any(|pending| pending == call) {
            return;
        }
        let Some((_, held)) = self.conversation.messages().find_call(call.as_str()) else {
            return;
        };
        let name = &held.function.name;
        let context = ToolCallContext {
            tool_call_id: call.clone(),
            tool_name: name.clone(),
            thread_id: self.thread_id.clone(),
            run_id: active.run_id.clone(),
            cancel: active.cancel.clone(),
        };
        let tool = self.tools.for_call(name, self.agent_name.as_deref());
        let calling = tool.and_then(|it| Calling::new(it, &held.function.arguments, context));
        let Some(calling) = calling else { return };
        let (tool_call, name) = (call.clone(), name.clone());
        active.told.push_back(Update::ToolStarted { tool_call, name });
        if let Stage::Calling { current, .. } = &mut active.stage {
            *current = Some(Box::new(calling));
        }
    }

    fn end_call(&mut self, call: &ToolCallId, answer: Result<ToolOutput, String>) {
        let (content, error) = match answer {
            Ok(output) => (output.0, None),
            Err(error) => (format!("Error: {error}").into(), Some(error)),
        };
        let answered = self.push_answer(call, content, error.clone());
        let Some(active) = &mut self.active else { return };
        if let Stage::Calling { current, .. } = &mut active.stage {
            *current = None;
        }
        if let Some(message) = answered {
            active.new_messages.push(message.clone());
            let tool_call = call.clone();
            active.told.push_back(Update::ToolFinished { tool_call, message, error });
            active.told.extend(self.applied.changes.drain(..).map(Update::Change));
        }
    }

    /// Answers what is being carried out and what was still to be.
    fn cancel_calls(&mut self) {
        let Some(active) = &mut self.active else { return };
        let Stage::Calling { todo, current, .. } = &mut active.stage else { return };
        let current = current.take().map(|calling| calling.tool_call.clone());
        let open: Vec<_> = current.into_iter().chain(todo.drain(..)).collect();
        for call in open {
            self.end_call(&call, Err("the turn was cancelled".into()));
        }
        self.over(Ending::Cancelled, None);
    }

    /// All calls are answered that can be answered here: the agent is told, in another run.
    fn go_on(&mut self) {
        let waiting =
            self.pending_tool_calls().any(|(_, call)| self.is_offered(&call.function.name));
        let most = self.most_follow_ups;
        let Some(active) = &mut self.active else { return };
        let wanted = matches!(active.stage, Stage::Calling { follow_up: true, .. });
        if !wanted || waiting {
            return self.over(Ending::Completed, None);
        }
        if active.runs > most {
            active.told.push_back(Update::FollowUpRefused);
            return self.over(Ending::Completed, None);
        }
        active.run_id = new_id().into();
        self.begin_run(None, None);
    }

    fn over(&mut self, ending: Ending, cut_off: Option<DeliveryError>) {
        let Some(active) = &mut self.active else { return };
        let mut seen = HashSet::new();
        let messages = self.conversation.messages();
        let mut new_messages = std::mem::take(&mut active.new_messages);
        new_messages.retain(|id| messages.find(id.as_str()).is_some() && seen.insert(id.clone()));
        let nothing = matches!(active.attached, Attached::Yes);
        let runs = match active.attached {
            Attached::InPlaceOf(_) => 1,
            _ => active.runs,
        };
        active.stage = Stage::Over(Box::new(Ok(Finished {
            ending,
            failure: active.failure.take().filter(|_| ending == Ending::Failed),
            result: self.conversation.result().filter(|_| !nothing).cloned(),
            new_messages,
            runs,
            cut_off,
        })));
    }
}

/// That everything is to be read anew.
fn all_replaced() -> [Update; 4] {
    [
        Change::MessagesReplaced,
        Change::StateReplaced,
        Change::InterruptsChanged,
        Change::UsageChanged,
    ]
    .map(Update::Change)
}

/// Whether an event changes nothing in a conversation.
fn is_not_folded(event: &Event) -> bool {
    matches!(
        event,
        Event::Custom(_)
            | Event::Raw(_)
            | Event::StepStarted(_)
            | Event::StepFinished(_)
            | Event::SubagentStarted(_)
            | Event::SubagentFinished(_)
            | Event::SubagentError(_)
            | Event::ReasoningStart(_)
            | Event::ReasoningEnd(_)
    )
}
