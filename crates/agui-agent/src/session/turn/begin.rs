//! How a turn, and each run of one, begins.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use agui_stream::fold::Change;
use agui_stream::{Fault, Outgoing, Pipeline, Warning};
use agui_types::{Json, JsonObject, ResumeEntry, RunAgentInput, RunId, Timestamp, ToolCallId};

use super::{Active, Attached, End, Stage};
use crate::session::reattach::Reattaching;
use crate::session::{Request, Session, SessionError, Update};
use crate::{Delivery, EventStream, RunContext};

impl Session {
    pub(in crate::session) fn begin(&mut self, request: Request) -> Result<(), SessionError> {
        self.free()?;
        let Request { messages, resume, run_id, parent_run_id, forwarded_props } = request;
        // Whether the answers will do is known before anything is changed.
        let mut trial = RunAgentInput::new(&self.thread_id, "", Vec::new());
        trial.resume.clone_from(&resume);
        let open = self.conversation.open_interrupts();
        self.outgoing().prepare(trial, open, &mut Vec::new()).map_err(SessionError::Refused)?;

        self.let_go();
        let mut active = Active::new(forwarded_props);
        for message in messages {
            if let Some(message) = message.id() {
                let position = self.messages().len();
                active.told.push_back(Update::Change(Change::MessageCreated { message, position }));
            }
            let observed = self.add(message);
            active.tell_observed(observed);
        }
        active.told.extend(self.unanswered().map(Update::Warning));
        active.run_id = run_id.unwrap_or(active.run_id);
        self.active = Some(active);
        self.begin_run(parent_run_id, resume);
        Ok(())
    }

    pub(in crate::session) fn begin_connecting(&mut self) -> Result<(), SessionError> {
        self.free()?;
        let mut active = Active::new(None);
        active.attached = Attached::Yes;
        // Whether there is anything to connect to is known before anything is changed.
        let mut connection = self.connection(&active)?;
        self.let_go();
        self.conversation.begin_exchange(&active.run_id, &[]);
        let observed = self.observers.run_initialized(&mut self.conversation, &mut self.applied);
        active.tell_observed(observed);
        if !self.applied.changes.is_empty() {
            active.told.extend(self.applied.changes.drain(..).map(Update::Change));
            // What observers put in place is part of the request. The other is not made unless polled.
            connection = self.connection(&active)?;
        }
        let Connection { stream, warnings } = connection;
        active.told.extend(warnings.into_iter().map(Update::Warning));
        let pipeline = Pipeline::for_run(self.thread_id.clone(), active.run_id.clone());
        let delivery = Delivery::new(stream, pipeline.from_peer(self.peer));
        active.stage = Stage::Streaming(Box::new(delivery));
        self.active = Some(active);
        Ok(())
    }

    fn connection(&self, active: &Active) -> Result<Connection, SessionError> {
        let input = self.input(active.run_id.clone(), None, None, None);
        // What is open is asked again by what comes.
        let mut warnings = Vec::new();
        let input =
            self.outgoing().prepare(input, &[], &mut warnings).map_err(SessionError::Refused)?;
        let context = RunContext::new().with_cancel(active.cancel.clone());
        let connected = self.agent.connect(input.clone(), context.clone());
        let stream = connected.ok_or(SessionError::NothingToConnectTo)?;
        Ok(Connection { stream: self.reattaching(stream, input, context, active), warnings })
    }

    pub(in crate::session) fn begin_calling(&mut self) -> Result<(), SessionError> {
        self.free()?;
        self.let_go();
        let mut active = Active::new(None);
        let todo = self.to_be_called();
        active.stage = Stage::Calling { todo, current: None, follow_up: false };
        self.active = Some(active);
        Ok(())
    }

    /// Fails where a turn is going on that is not to be let go of. One that is over and that nobody
    /// has finished is forgotten.
    fn free(&self) -> Result<(), SessionError> {
        if self.is_busy() && !self.detaching { Err(SessionError::Busy) } else { Ok(()) }
    }

    /// Begins a run of the turn, with the conversation as it is.
    pub(super) fn begin_run(
        &mut self,
        parent_run_id: Option<RunId>,
        resume: Option<Vec<ResumeEntry>>,
    ) {
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
                let stream = self.agent.run(input.clone(), context.clone());
                let stream = self.reattaching(stream, input, context, &active);
                let delivery = Delivery::new(stream, pipeline.from_peer(self.peer));
                Stage::Streaming(Box::new(delivery))
            }
            Err(fault) => return self.run_refused(active, fault),
        };
        self.active = Some(active);
    }

    /// A run that was announced to the observers is not made after all.
    fn run_refused(&mut self, active: Active, fault: Fault) {
        self.active = Some(active);
        let error = SessionError::Refused(fault);
        self.tell_failed(&error);
        self.end_run(End::Failed(error));
    }

    /// A stream that is taken up again where its connection is lost.
    fn reattaching(
        &self,
        stream: EventStream,
        input: RunAgentInput,
        context: RunContext,
        active: &Active,
    ) -> EventStream {
        let Some(policy) = self.reconnect else { return stream };
        let reports = active.reports.clone();
        let agent = Arc::clone(&self.agent);
        Box::pin(Reattaching::new(stream, agent, input, context, policy, reports))
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

    pub(super) fn is_offered(&self, tool: &str) -> bool {
        self.tools.find(tool, self.agent_name.as_deref()).is_some()
    }

    /// The calls that wait for a tool with a handler, in the order made.
    pub(super) fn to_be_called(&self) -> VecDeque<ToolCallId> {
        let agent = self.agent_name.as_deref();
        let handled = self.pending_tool_calls().filter(|(_, call)| {
            let tool = self.tools.for_call(&call.function.name, agent);
            tool.is_some_and(|tool| tool.handler.is_some())
        });
        handled.map(|(_, call)| call.id.clone()).collect()
    }
}

/// A stream of what is connected to.
struct Connection {
    stream: EventStream,
    warnings: Vec<Warning>,
}

fn now() -> Option<Timestamp> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Timestamp::new(i64::try_from(since_epoch.as_millis()).ok()?)
}
