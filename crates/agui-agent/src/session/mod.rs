//! A conversation with an agent, from the side of the one who consumes it.
//!
//! A [`Session`] holds the thread: its messages, its state, what it waits for. A [`Turn`] is what
//! follows when it is told to do something: a run of the agent, and where the agent calls tools of
//! the application, those, and the runs that follow. A turn gives [`Update`]s one by one; the session
//! can be read between any two of them.
//!
//! ```
//! use agui_agent::session::{Session, Update};
//! use agui_agent::{AgentResult, Run};
//! use agui_stream::Ending;
//!
//! # async fn greeter(run: Run) -> AgentResult { run.say("Hello!").await?; Ok(()) }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), agui_agent::session::SessionError> {
//! // Any agent will do: an `HttpAgent`, or one in this process.
//! let mut session = Session::new(greeter);
//!
//! let mut turn = session.send("hello");
//! while let Some(update) = turn.next().await {
//!     if let Update::Change(change) = update {
//!         print!("{}", turn.appended(&change).unwrap_or_default());
//!     }
//! }
//! let finished = turn.finish().await?;
//! assert_eq!(finished.ending, Ending::Completed);
//! assert_eq!(session.messages().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # One turn at a time
//!
//! A turn borrows the session, so that two cannot overlap by accident, and lives in it, so that
//! nothing is lost when it is dropped: [`Session::turn`] gives the one that is going on. Starting
//! another one is refused with [`SessionError::Busy`]; it would leave a history that lacks the end of
//! the first (P-77, C-12). [`Session::cancel`] ends one at once, [`Session::detach`] leaves it be.
//!
//! ```compile_fail,E0499
//! # async fn overlapping(mut session: agui_agent::Session) {
//! let mut first = session.send("hello");
//! let mut second = session.send("and hello again");
//! first.next().await;
//! # }
//! ```

mod answers;
mod appended;
mod calls;
mod reattach;
mod request;
mod saved;
mod tools;
mod turn;
mod update;

use std::fmt;
use std::sync::Arc;

use agui_stream::fold::{Applied, Conversation, Messages};
use agui_stream::observe::{Observed, ObserverHandle};
use agui_stream::patch::PatchLimits;
use agui_stream::{Observer, Observers, PeerVersion};
use agui_types::json::Value;
use agui_types::message::{AssistantMessage, ToolMessage};
use agui_types::{
    Context, Interrupt, Json, JsonError, Message, MessageContent, MessageId, ResumeEntry, ThreadId,
    TokenUsage, ToolCall, ToolCallId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::{Agent, RetryPolicy};

pub use answers::{decline, resolve};
pub use request::Request;
pub use saved::SavedSession;
pub use tools::{DEFAULT_TIMEOUT, FrontendTool, ToolCallContext, ToolOutput, Tools};
pub use turn::Turn;
pub use update::{Finished, SessionError, Update};

use turn::Active;

/// A conversation with an agent: everything of its thread, and the means to go on with it.
///
/// Nothing is done unless a [`Turn`] is polled; no task is spawned. Timers are those of tokio, so
/// turns with front-end tools or lost connections are to be polled within its runtime.
///
/// A token costs the same in a long conversation as in a short one; each run's request holds a
/// copy of the history (P-77).
pub struct Session {
    agent: Arc<dyn Agent>,
    agent_name: Option<String>,
    peer: PeerVersion,
    thread_id: ThreadId,
    conversation: Conversation,
    observers: Observers<'static>,
    tools: Tools,
    context: Vec<Context>,
    forwarded_props: Option<Json>,
    most_follow_ups: u32,
    reconnect: Option<RetryPolicy>,
    patch_limits: PatchLimits,
    detaching: bool,
    active: Option<Active>,
    /// Used again with every event.
    applied: Applied,
}

/// How many runs may follow by themselves in one turn unless another number is set.
pub const DEFAULT_FOLLOW_UPS: u32 = 100;

impl Session {
    /// A new conversation on a thread with an id of its own, with no messages and the state `{}`.
    pub fn new(agent: impl Agent) -> Self {
        let state = Value::Object(Default::default());
        Self::of(Arc::new(agent), new_id().into(), Conversation::new(Vec::new(), state))
    }

    /// A conversation taken up where it was [saved](Self::save).
    ///
    /// Fails where the saved state nests deeper than a state may.
    pub fn restore(agent: impl Agent, saved: SavedSession) -> Result<Self, JsonError> {
        let thread_id = saved.thread_id.clone();
        Ok(Self::of(Arc::new(agent), thread_id, saved.conversation()?))
    }

    fn of(agent: Arc<dyn Agent>, thread_id: ThreadId, conversation: Conversation) -> Self {
        Self {
            agent,
            agent_name: None,
            peer: PeerVersion::CURRENT,
            thread_id,
            conversation,
            observers: Observers::new(),
            tools: Tools::new(),
            context: Vec::new(),
            forwarded_props: None,
            most_follow_ups: DEFAULT_FOLLOW_UPS,
            reconnect: Some(RetryPolicy::default()),
            patch_limits: PatchLimits::default(),
            detaching: false,
            active: None,
            applied: Applied::default(),
        }
    }

    /// Sets the thread's id. Default: a new one.
    #[must_use]
    pub fn with_thread_id(mut self, id: impl Into<ThreadId>) -> Self {
        self.thread_id = id.into();
        self
    }

    /// Sets the messages the conversation begins with.
    #[must_use]
    pub fn with_messages(mut self, messages: Vec<Message>) -> Self {
        self.conversation.set_messages(messages);
        self
    }

    /// Sets the state the conversation begins with. Default: `{}`.
    #[must_use]
    pub fn with_state(mut self, state: Value) -> Self {
        self.conversation.set_state(state);
        self
    }

    /// Adds a front-end tool, in place of one with the same name for the same agent.
    #[must_use]
    pub fn with_tool(mut self, tool: FrontendTool) -> Self {
        self.tools.add(tool);
        self
    }

    /// Adds an observer: see [`observe`](Self::observe), which also says how to remove one.
    #[must_use]
    pub fn with_observer(mut self, observer: impl Observer + Send + 'static) -> Self {
        self.observe(observer);
        self
    }

    /// Sets what the agent is told about the application. Default: nothing.
    #[must_use]
    pub fn with_context(mut self, context: Vec<Context>) -> Self {
        self.context = context;
        self
    }

    /// Sets what is passed through to the agent with every run. Default: `{}`.
    #[must_use]
    pub fn with_forwarded_props(mut self, props: Json) -> Self {
        self.forwarded_props = Some(props);
        self
    }

    /// Names the agent, for [tools](FrontendTool::for_agent) that are for one of several. Default: no
    /// name.
    #[must_use]
    pub fn with_agent_name(mut self, name: impl Into<String>) -> Self {
        self.agent_name = Some(name.into());
        self
    }

    /// Says that the agent speaks at most this version: what it cannot read is left out or reshaped
    /// (P-92). Default: the current one (C-83).
    #[must_use]
    pub fn with_peer(mut self, peer: PeerVersion) -> Self {
        self.peer = peer;
        self
    }

    /// How many runs may follow by themselves in one turn, because front-end tools were answered.
    /// Default: [`DEFAULT_FOLLOW_UPS`].
    #[must_use]
    pub fn with_most_follow_ups(mut self, most: u32) -> Self {
        self.most_follow_ups = most;
        self
    }

    /// When a run whose connection was lost is taken up again, or `None` for never. Default:
    /// [`RetryPolicy::default`].
    ///
    /// Only where the agent has said at which [position](crate::Position) it was with the last event,
    /// and can be [connected to](Agent::connect): then nothing comes twice and nothing is lost. Any
    /// other run that is cut off is truncated (T-9).
    #[must_use]
    pub fn with_reconnect(mut self, policy: Option<RetryPolicy>) -> Self {
        self.reconnect = policy;
        self
    }

    /// Has what begins a turn [let go](Self::detach) of one that is going on, where it would be
    /// refused as [busy](SessionError::Busy) otherwise, which is the default. So do the front ends of
    /// a [runtime](crate::runtime), whose runs go on without readers. A turn that is refused for
    /// another reason lets go of none.
    #[must_use]
    pub fn with_detaching(mut self, detaching: bool) -> Self {
        self.detaching = detaching;
        self
    }

    /// Sets the limits of the patches that come as deltas.
    #[must_use]
    pub fn with_patch_limits(mut self, limits: PatchLimits) -> Self {
        self.patch_limits = limits;
        self.conversation = self.conversation.with_patch_limits(limits);
        self
    }

    /// Says something: begins a turn with a message of the user's.
    pub fn send(&mut self, content: impl Into<MessageContent>) -> Turn<'_> {
        self.start(Request::new().text(content))
    }

    /// Has the agent go on with the conversation as it is: after messages were added, after calls
    /// were answered, or once more after a turn that failed.
    pub fn run(&mut self) -> Turn<'_> {
        self.start(Request::new())
    }

    /// Answers the open interrupts, all of them (C-85); see [`resolve`] and [`decline`].
    pub fn resume(&mut self, answers: impl IntoIterator<Item = ResumeEntry>) -> Turn<'_> {
        self.start(Request::new().resume(answers))
    }

    /// Begins a turn with anything a turn can begin with.
    ///
    /// Where that is refused, the turn gives no update, its [`finish`](Turn::finish) the reason, and
    /// nothing has changed. Calls of front-end tools that nobody has answered are sent unanswered,
    /// with a warning (C-55).
    pub fn start(&mut self, request: Request) -> Turn<'_> {
        let refused = self.begin(request).err();
        Turn::new(self, refused)
    }

    /// Attaches to what the agent has done and does on this thread, where it
    /// [can be](Agent::connect): its history takes the place of what is held here, and what goes on
    /// is followed to its end. An agent that has nothing leaves everything as it is, and so does one
    /// that breaks off, or is cancelled or detached from, before it has restated what is held here.
    ///
    /// Calls of front-end tools are not carried out then, since another application may have done
    /// it; [`run_tools`](Self::run_tools) does.
    pub fn connect(&mut self) -> Turn<'_> {
        let refused = self.begin_connecting().err();
        Turn::new(self, refused)
    }

    /// Carries out the calls that wait for tools with handlers, as at the end of a run, and has the
    /// agent go on: after [`restore`](Self::restore) or [`connect`](Self::connect).
    pub fn run_tools(&mut self) -> Turn<'_> {
        let refused = self.begin_calling().err();
        Turn::new(self, refused)
    }

    /// The turn that is going on, or that nobody has finished; `None` where there is none.
    pub fn turn(&mut self) -> Option<Turn<'_>> {
        self.active.is_some().then(|| Turn::new(self, None))
    }

    /// Whether a turn is going on.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.active.as_ref().is_some_and(|active| !active.is_over())
    }

    /// Ends the turn that is going on: the connection is closed, or an agent in this process stopped,
    /// the handler of a tool dropped and its call answered as failed. Takes effect when the turn is
    /// next polled, at once; everything that came before stays (C-12).
    pub fn cancel(&self) {
        if let Some(active) = &self.active {
            active.cancellation().cancel();
        }
    }

    /// Lets go of the turn that is going on: what came stays as it is (C-12), nothing more is looked
    /// at, calls that are being carried out are left without an answer, and another turn may begin.
    /// `false` where there is none.
    ///
    /// The agent is not told to stop, but nobody reads it any more: over HTTP its connection is
    /// closed, one in this process is dropped. An agent whose runs go on without readers can be
    /// [connected to](Self::connect) again.
    pub fn detach(&mut self) -> bool {
        let was_busy = self.is_busy();
        self.let_go();
        was_busy
    }

    /// Answers a call of a front-end tool. Have the agent [go on](Self::run) once none is left.
    ///
    /// `false`, and nothing changes, where no such call waits for an answer.
    pub fn answer(&mut self, call: &ToolCallId, output: impl Into<ToolOutput>) -> bool {
        self.push_answer(call, output.into().0, None).is_some()
    }

    /// Answers a call of a front-end tool with why it was not carried out: it failed, or somebody
    /// refused it (C-55).
    ///
    /// `false`, and nothing changes, where no such call waits for an answer.
    pub fn answer_failed(&mut self, call: &ToolCallId, why: impl Into<String>) -> bool {
        let why = why.into();
        self.push_answer(call, format!("Error: {why}").into(), Some(why)).is_some()
    }

    fn push_answer(
        &mut self,
        call: &ToolCallId,
        content: MessageContent,
        error: Option<String>,
    ) -> Option<MessageId> {
        if !self.conversation.pending_tool_calls().any(|pending| pending == call) {
            return None;
        }
        let id = MessageId::from(new_id());
        let mut message = ToolMessage::new(&id, content, call);
        message.error = error;
        let position = self.conversation.push_result(message, &mut self.applied);
        let observed = self.observers.added(position, &self.conversation);
        self.report(observed);
        Some(id)
    }

    /// Adds a message of the application's own, which is sent with the next run.
    pub fn push(&mut self, message: impl Into<Message>) {
        let observed = self.add(message.into());
        self.report(observed);
    }

    fn add(&mut self, message: Message) -> Observed {
        let position = self.messages().len();
        self.conversation.push(message);
        self.observers.added(position, &self.conversation)
    }

    /// Replaces the messages.
    pub fn set_messages(&mut self, messages: Vec<Message>) {
        self.conversation.set_messages(messages);
        let observed = self.observers.messages_replaced(&self.conversation);
        self.report(observed);
    }

    /// Replaces the state with anything that serialises; the next run is sent it.
    ///
    /// Fails where the value cannot be written as JSON, or nests deeper than a state may.
    pub fn set_state<T: Serialize + ?Sized>(&mut self, state: &T) -> Result<(), crate::BoxError> {
        self.conversation.set_state(Value::try_from(&Json::encode(state)?)?);
        let observed = self.observers.state_replaced(&self.conversation);
        self.report(observed);
        Ok(())
    }

    /// Which observers failed: the turn says it, or where there is none, the log.
    fn report(&mut self, observed: Observed) {
        match &mut self.active {
            Some(active) if !active.is_over() => active.tell_observed(observed),
            _ => {
                for error in observed.errors {
                    let source = error.source.as_ref() as &dyn std::error::Error;
                    tracing::warn!(error = source, callback = error.callback, "an observer failed");
                }
            }
        }
    }

    /// Replaces what the agent is told about the application.
    pub fn set_context(&mut self, context: Vec<Context>) {
        self.context = context;
    }

    /// Replaces what is passed through to the agent with every run.
    pub fn set_forwarded_props(&mut self, props: Option<Json>) {
        self.forwarded_props = props;
    }

    /// Adds an observer, to be asked after those that are there: see [`agui_stream::observe`] for
    /// what it is told and may change. What the application itself adds or puts in place in the
    /// session, it is told as well. The failure it is told of is a [`SessionError`] where nothing was
    /// sent, else a [`DeliveryError`](crate::DeliveryError).
    ///
    /// One that fails or panics has failed in that callback, and nothing else comes of it: the turn
    /// [says so](Update::ObserverFailed), outside of one a line of the log.
    ///
    /// The handle removes it again, also while a turn goes on, and from elsewhere: another task, or
    /// the observer itself.
    pub fn observe(&mut self, observer: impl Observer + Send + 'static) -> ObserverHandle {
        self.observers.add(observer)
    }

    /// The front-end tools, to change them: what is offered with the next run.
    pub fn tools(&mut self) -> &mut Tools {
        &mut self.tools
    }

    /// The thread.
    #[must_use]
    pub fn thread_id(&self) -> &ThreadId {
        &self.thread_id
    }

    /// The messages, in order.
    #[must_use]
    pub fn messages(&self) -> &Messages {
        self.conversation.messages()
    }

    /// The state.
    #[must_use]
    pub fn state(&self) -> &Value {
        self.conversation.state()
    }

    /// The state as a type.
    ///
    /// Fails where it is none of that type. State is untrusted (C-93).
    pub fn state_as<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        self.conversation.state().to_json().decode()
    }

    /// The interrupts nobody has answered, in the order they were raised. While there are any, only
    /// [`resume`](Self::resume) begins a run.
    #[must_use]
    pub fn open_interrupts(&self) -> &[Interrupt] {
        self.conversation.open_interrupts()
    }

    /// The calls that wait for an answer from here, in the order made, each with the message that
    /// holds it.
    pub fn pending_tool_calls(&self) -> impl Iterator<Item = (&AssistantMessage, &ToolCall)> {
        let messages = self.conversation.messages();
        self.conversation.pending_tool_calls().filter_map(|call| messages.find_call(call.as_str()))
    }

    /// What the thread's runs have used, one entry for each provider and model.
    #[must_use]
    pub fn usage(&self) -> &[TokenUsage] {
        self.conversation.usage()
    }

    /// All of the above, and what the run at hand has said so far.
    #[must_use]
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// The conversation as a value to be kept. While a turn is going on it is that of the moment.
    #[must_use]
    pub fn save(&self) -> SavedSession {
        SavedSession::of(&self.thread_id, &self.conversation)
    }
}

/// Shows which thread it is, not what was said.
impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("thread_id", &self.thread_id)
            .field("messages", &self.messages().len())
            .field("open_interrupts", &self.open_interrupts().len())
            .field("busy", &self.is_busy())
            .finish_non_exhaustive()
    }
}

/// A fresh id: a UUID of version 7.
fn new_id() -> String {
    Uuid::now_v7().to_string()
}
