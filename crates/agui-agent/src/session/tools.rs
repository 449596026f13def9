//! Front-end tools: what the application lets the agent call.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use agui_types::{ContentPart, Json, MessageContent, RunId, ThreadId, Tool, ToolCallId};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::reading::{Misfit, read};
use crate::{BoxError, BoxFuture};

/// A tool that the application offers to the agent.
///
/// One with a handler is carried out by the session once the run that called it has ended; the
/// agent's next run, which follows by itself, learns of the answer. One without waits: the
/// application answers its calls with [`Session::answer`](crate::Session::answer).
///
/// ```
/// use agui_agent::session::{FrontendTool, ToolOutput};
/// use agui_types::Json;
///
/// #[derive(serde::Deserialize)]
/// struct Place { city: String }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
/// let tool = FrontendTool::new("show_map", "Shows a city on the map", |place: Place, _| async move {
///     Ok(format!("{} is on screen", place.city))
/// })
/// .parameters(Json::parse(schema)?);
/// # Ok(())
/// # }
/// ```
///
/// With the feature `schemars`, [`FrontendTool::typed`] makes the schema from the type.
#[derive(Clone)]
#[must_use]
pub struct FrontendTool {
    pub(super) tool: Tool,
    pub(super) wildcard: bool,
    pub(super) agent: Option<String>,
    pub(super) handler: Option<Handler>,
    pub(super) timeout: Option<Duration>,
    pub(super) follow_up: bool,
}

/// How long a handler may take unless another time is set: 60 s.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) type Handler = Arc<dyn Fn(Json, ToolCallContext) -> Answering + Send + Sync>;
pub(super) type Answering = BoxFuture<'static, Result<ToolOutput, BoxError>>;

impl FrontendTool {
    /// A tool with a handler, whose argument is read from the call's by serde. The schema of the
    /// arguments is given by [`parameters`](Self::parameters); without one it takes none.
    ///
    /// The arguments are untrusted (C-93): that they are read into a type is the first check, and the
    /// handler has to make the others.
    pub fn new<A, F, Fut, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolCallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, BoxError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let mut tool = Self::without_handler(name, description);
        tool.handler = Some(of_type(handler));
        tool
    }

    /// A tool with a handler and the schema of its argument's type.
    #[cfg(feature = "schemars")]
    pub fn typed<A, F, Fut, O>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> Self
    where
        A: DeserializeOwned + schemars::JsonSchema + Send + 'static,
        F: Fn(A, ToolCallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, BoxError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        let mut schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>();
        // Which draft it is says nothing to a model, and some providers refuse it.
        schema.remove("$schema");
        let mut tool = Self::new(name, description, handler);
        // A schema is a value that serialises.
        tool.tool.parameters = Json::encode(&schema).ok();
        tool
    }

    /// A tool whose calls the application answers itself, in its own time.
    pub fn without_handler(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            tool: Tool::new(name, description),
            wildcard: false,
            agent: None,
            handler: None,
            timeout: Some(DEFAULT_TIMEOUT),
            follow_up: true,
        }
    }

    /// A handler for every call that waits for an answer and has no tool of its name. It is not
    /// offered to the agent, so what comes here was not advertised (C-57): look before acting.
    ///
    /// The arguments are those of the call, and the context names the tool.
    pub fn wildcard<A, F, Fut, O>(handler: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        F: Fn(A, ToolCallContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, BoxError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        Self { wildcard: true, ..Self::new("*", "", handler) }
    }

    /// The JSON Schema of the arguments, an object.
    pub fn parameters(mut self, schema: Json) -> Self {
        self.tool.parameters = Some(schema);
        self
    }

    /// Offers the tool only to the agent of this name (see
    /// [`Session::with_agent_name`](crate::Session::with_agent_name)), and in place of one of the same
    /// name for every agent.
    pub fn for_agent(mut self, name: impl Into<String>) -> Self {
        self.agent = Some(name.into());
        self
    }

    /// How long the handler may take; then it is dropped, and the call answered as failed. Default:
    /// [`DEFAULT_TIMEOUT`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Lets the handler take as long as it likes, as one that asks a person needs to.
    pub fn no_timeout(mut self) -> Self {
        self.timeout = None;
        self
    }

    /// Has no run follow for the answer of this tool: the agent learns of it when it is next asked.
    pub fn no_follow_up(mut self) -> Self {
        self.follow_up = false;
        self
    }

    /// What the agent is told of the tool.
    #[must_use]
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    fn is_for(&self, agent: Option<&str>) -> bool {
        self.agent.is_none() || self.agent.as_deref() == agent
    }
}

impl fmt::Debug for FrontendTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontendTool")
            .field("tool", &self.tool)
            .field("agent", &self.agent)
            .field("handler", &self.handler.is_some())
            .field("timeout", &self.timeout)
            .field("follow_up", &self.follow_up)
            .finish()
    }
}

/// A handler that takes any arguments, from one that takes a type.
fn of_type<A, F, Fut, O>(handler: F) -> Handler
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(A, ToolCallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<O, BoxError>> + Send + 'static,
    O: Into<ToolOutput>,
{
    let handler = Arc::new(handler);
    Arc::new(move |arguments, context| {
        let handler = Arc::clone(&handler);
        Box::pin(async move {
            let arguments = read(&arguments).map_err(BadArguments)?;
            Ok(handler(arguments, context).await?.into())
        })
    })
}

#[derive(Debug, thiserror::Error)]
#[error("the arguments are not those of the tool: {0}")]
struct BadArguments(Misfit);

/// What surrounds a call of a front-end tool.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolCallContext {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool's name, as it was called.
    pub tool_name: String,
    /// The thread.
    pub thread_id: ThreadId,
    /// The run that made the call.
    pub run_id: RunId,
    /// Cancelled with the turn. A handler need not watch it: its future is dropped then.
    pub cancel: CancellationToken,
}

/// What a tool answers: a text, or parts.
///
/// A string is one, `()` is an empty text; [`ToolOutput::json`] takes anything that serialises.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutput(pub(super) MessageContent);

impl ToolOutput {
    /// A value as JSON text.
    ///
    /// Fails where it cannot be written as JSON.
    pub fn json<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, BoxError> {
        let json = Json::encode(value)?;
        Ok(json.as_str().into())
    }
}

impl From<&str> for ToolOutput {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<String> for ToolOutput {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<()> for ToolOutput {
    fn from((): ()) -> Self {
        Self("".into())
    }
}

/// As JSON text.
impl From<Json> for ToolOutput {
    fn from(json: Json) -> Self {
        json.as_str().into()
    }
}

/// As JSON text.
impl From<serde_json::Value> for ToolOutput {
    fn from(value: serde_json::Value) -> Self {
        value.to_string().into()
    }
}

impl From<Vec<ContentPart>> for ToolOutput {
    fn from(parts: Vec<ContentPart>) -> Self {
        Self(parts.into())
    }
}

impl From<MessageContent> for ToolOutput {
    fn from(content: MessageContent) -> Self {
        Self(content)
    }
}

/// The front-end tools of a session, in the order they were added.
#[derive(Clone, Debug, Default)]
pub struct Tools(Vec<FrontendTool>);

impl Tools {
    /// None.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one, in place of one with the same name for the same agent.
    pub fn add(&mut self, tool: FrontendTool) {
        self.remove(&tool.tool.name, tool.agent.as_deref());
        self.0.push(tool);
    }

    /// Removes one; `*` is the wildcard. `false` where there is none.
    pub fn remove(&mut self, name: &str, agent: Option<&str>) -> bool {
        let before = self.0.len();
        self.0.retain(|held| held.tool.name != name || held.agent.as_deref() != agent);
        self.0.len() != before
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &FrontendTool> {
        self.0.iter()
    }

    /// What an agent is told of: the tools for it, and those for every agent whose name none of them
    /// has.
    pub(super) fn offered(&self, agent: Option<&str>) -> Vec<Tool> {
        let offered = |held: &&FrontendTool| {
            let own = self.find(&held.tool.name, agent);
            !held.wildcard && own.is_some_and(|own| std::ptr::eq(own, *held))
        };
        self.0.iter().filter(offered).map(|held| held.tool.clone()).collect()
    }

    /// The tool that was offered under a name: for this agent before that for every agent.
    pub(super) fn find(&self, name: &str, agent: Option<&str>) -> Option<&FrontendTool> {
        self.best(agent, |held| !held.wildcard && held.tool.name == name)
    }

    /// The tool that carries out a call: the one of its name, else a wildcard.
    pub(super) fn for_call(&self, name: &str, agent: Option<&str>) -> Option<&FrontendTool> {
        self.find(name, agent).or_else(|| self.best(agent, |held| held.wildcard))
    }

    fn best(
        &self,
        agent: Option<&str>,
        fits: impl Fn(&FrontendTool) -> bool,
    ) -> Option<&FrontendTool> {
        let fitting = self.0.iter().filter(|held| held.is_for(agent) && fits(held));
        fitting.max_by_key(|held| held.agent.is_some())
    }
}

impl FromIterator<FrontendTool> for Tools {
    fn from_iter<T: IntoIterator<Item = FrontendTool>>(tools: T) -> Self {
        let mut all = Self::new();
        tools.into_iter().for_each(|tool| all.add(tool));
        all
    }
}
