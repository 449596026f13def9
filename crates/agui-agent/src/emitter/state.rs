//! The shared state as a type of the application's.

use std::ops::Deref;

use agui_types::Json;
use agui_types::json::Value;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::request::read;
use super::scope::json;
use super::{EmitError, Emitter};

/// The shared state as a `T`, which it derefs to. Made by [`Emitter::state`].
///
/// Changes are made with [`update`](Self::update) and reach the front end as the smallest event that
/// says them: a patch, or a snapshot where that is shorter. What the state holds beside what `T`
/// describes stays as it is, and so does what others change meanwhile: another handle, a subagent, a
/// [patch](Emitter::state_delta).
///
/// An update costs by the size of the state. Who changes little of a large state often does better
/// with patches.
///
/// ```
/// use agui_agent::{AgentResult, Run};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, Default)]
/// #[serde(default)]
/// struct Plan {
///     steps: Vec<String>,
///     done: usize,
/// }
///
/// async fn planner(run: Run) -> AgentResult {
///     let mut plan = run.state::<Plan>()?;
///     plan.update(|plan| plan.steps.push("look".into())).await?;
///     plan.update(|plan| plan.done += 1).await?;
///     assert_eq!(plan.steps.len(), plan.done);
///     Ok(())
/// }
/// ```
///
/// There is no other way to change the value, so that nothing is changed that the front end is not
/// told:
///
/// ```compile_fail,E0594
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Plan { done: usize }
/// # fn forgets(mut plan: agui_agent::emitter::State<Plan>) {
/// plan.done += 1;
/// # }
/// ```
pub struct State<T> {
    emitter: Emitter,
    value: T,
    /// The value as JSON, when it was last read or published.
    known: Value,
    /// The shared state's revision then.
    revision: u64,
}

impl<T: Serialize + DeserializeOwned> State<T> {
    pub(super) fn open(emitter: Emitter) -> Result<Self, EmitError> {
        let (json, revision) = shared(&emitter);
        let value = read(&json, || "the state".into(), "/state")?;
        let known = tree(&value)?;
        Ok(Self { emitter, value, known, revision })
    }

    /// Changes the value, and emits what changed; nothing where nothing did. Gives what `change`
    /// gives.
    ///
    /// Where the state was changed elsewhere since the handle looked last, `change` sees that.
    ///
    /// Fails where the value cannot be written as JSON, the state has come to be something that is
    /// no `T`, or the run is over. The value keeps what `change` did, and the next update brings it.
    pub async fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> Result<R, EmitError> {
        self.refresh()?;
        let given = change(&mut self.value);
        self.publish().await?;
        Ok(given)
    }

    /// Takes another value, and emits what is different.
    ///
    /// Fails as [`update`](Self::update) does.
    pub async fn set(&mut self, value: T) -> Result<(), EmitError> {
        self.update(|held| *held = value).await
    }

    /// Takes over what was changed elsewhere since the handle looked last.
    ///
    /// Fails where the state has come to be something that is no `T`.
    pub fn refresh(&mut self) -> Result<(), EmitError> {
        if self.emitter.channel.with_shared(|shared| shared.revision()) == self.revision {
            return Ok(());
        }
        let (json, revision) = shared(&self.emitter);
        self.value = read(&json, || "the state".into(), "/state")?;
        self.known = tree(&self.value)?;
        self.revision = revision;
        Ok(())
    }

    /// Emits the whole state as a snapshot: for a front end that may hold another one, as after an
    /// error (P-48).
    pub async fn snapshot(&self) -> Result<(), EmitError> {
        let (json, _) = shared(&self.emitter);
        self.emitter.state_snapshot(&json).await
    }

    async fn publish(&mut self) -> Result<(), EmitError> {
        let after = tree(&self.value)?;
        let (before, next, emitter) = (&self.known, &after, &self.emitter);
        let seen = self.revision;
        let revision = emitter.channel.when_room(|state| {
            let Some(event) = state.shared().change(before, next) else {
                return Ok(seen);
            };
            // Where others changed the state meanwhile, the handle still has to look at that.
            let current = state.shared().revision() == seen;
            state.push(emitter.attributed(event))?;
            Ok(if current { state.shared().revision() } else { seen })
        });
        let revision = revision.await?;
        self.revision = revision;
        self.known = after;
        Ok(())
    }
}

impl<T> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for State<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("State").field(&self.value).finish()
    }
}

/// The shared state as it is now, and its revision.
fn shared(emitter: &Emitter) -> (Json, u64) {
    emitter.channel.with_shared(|shared| (shared.value().to_json(), shared.revision()))
}

fn tree<T: Serialize>(value: &T) -> Result<Value, EmitError> {
    Value::try_from(&json(value)?).map_err(|error| EmitError::Json(error.to_string()))
}
