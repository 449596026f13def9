//! An activity message.

use agui_types::event::{ActivityDelta, ActivitySnapshot};
use agui_types::{JsonObject, JsonPatch, MessageId};
use serde::Serialize;

use super::{EmitError, Emitter};

/// An activity message that can be changed for as long as the run lasts. There is nothing to close.
#[derive(Debug)]
pub struct Activity {
    emitter: Emitter,
    id: MessageId,
    activity_type: String,
}

impl Activity {
    pub(super) async fn open(
        emitter: Emitter,
        snapshot: ActivitySnapshot,
    ) -> Result<Self, EmitError> {
        let (id, activity_type) = (snapshot.message_id.clone(), snapshot.activity_type.clone());
        emitter.emit(snapshot).await?;
        Ok(Self { emitter, id, activity_type })
    }

    /// The message's id.
    #[must_use]
    pub fn id(&self) -> &MessageId {
        &self.id
    }

    /// Patches the content, which must stay an object (P-50).
    ///
    /// Fails with [`EmitError::Patch`] where the patch does not apply, or leaves something else.
    pub async fn patch(&mut self, patch: impl Into<JsonPatch>) -> Result<(), EmitError> {
        // P-51: the type is repeated, or the delta would change it.
        self.emitter.emit(ActivityDelta::new(&self.id, self.activity_type.as_str(), patch)).await
    }

    /// Replaces the content, with a value that serialises as an object.
    pub async fn replace<T: Serialize + ?Sized>(&mut self, content: &T) -> Result<(), EmitError> {
        let content = JsonObject::encode(content).map_err(|e| EmitError::Json(e.to_string()))?;
        let snapshot = ActivitySnapshot::new(&self.id, self.activity_type.as_str(), content);
        self.emitter.emit(snapshot).await
    }
}
