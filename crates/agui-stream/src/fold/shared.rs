//! State, snapshots and activity.

use agui_types::event::{
    ActivityDelta, ActivitySnapshot, MessagesSnapshot, StateDelta, StateSnapshot,
};
use agui_types::json::{MAX_DEPTH, Value};
use agui_types::message::ActivityMessage;
use agui_types::{JsonPatch, JsonPointer, PatchOp};

use super::change::{Applied, Change};
use super::conversation::Conversation;
use super::edit;
use crate::patch::{PatchError, PatchLimits};

impl Conversation {
    /// `STATE_SNAPSHOT`: replaces, whatever the value (C-66, C-70).
    pub(super) fn state_snapshot(&mut self, event: &StateSnapshot, applied: &mut Applied) {
        match Value::try_from(&event.snapshot) {
            Ok(state) => {
                self.set_state(state);
                applied.change(Change::StateReplaced);
            }
            Err(error) => {
                let message = format!("the state stays as it was: the new one has {error}");
                applied.warn("C-66", "/snapshot", message);
            }
        }
    }

    /// `STATE_DELTA`: applies as a whole or not at all (C-67).
    pub(super) fn state_delta(&mut self, event: &StateDelta, applied: &mut Applied) {
        warn_of_unknown_operations(&event.delta, "delta", applied);
        let limits = self.limits_within(STATE);
        match self.state.apply(&event.delta, &limits) {
            Ok(()) => {
                let paths = changed(&event.delta);
                if !paths.is_empty() {
                    applied.change(Change::StatePatched { paths });
                }
            }
            Err(error) => warn_of_failure(&error, "delta", "state", applied),
        }
    }

    /// `MESSAGES_SNAPSHOT`: reconciles (C-71), and answers the calls that it holds results of.
    pub(super) fn messages_snapshot(&mut self, event: &MessagesSnapshot, applied: &mut Applied) {
        self.messages.reconcile(&event.messages, applied);
        event.messages.iter().for_each(|message| self.answer(message));
        self.drop_pending_without_call();
    }

    /// `ACTIVITY_SNAPSHOT`: makes the activity or replaces it (C-72). What it has gathered of
    /// metadata stays; whose it is does not.
    pub(super) fn activity_snapshot(&mut self, event: &ActivitySnapshot, applied: &mut Applied) {
        let id = &event.message_id;
        let newer = event.base.metadata();
        let key = self.messages.key(id);
        let activity = key.and_then(|key| self.messages.activity_mut(key));
        if event.replace == Some(false) && key.is_some() {
            match (activity, newer) {
                (Some(activity), Some(newer)) => {
                    if edit::merge(&mut activity.metadata, newer, applied) {
                        applied.change(Change::MessageChanged { message: id.clone() });
                    }
                }
                (Some(_), None) => {}
                (None, _) => {
                    let message = format!("the message {id:?} is no activity and stays as it is");
                    applied.warn("P-28", "/messageId", message);
                }
            }
            return;
        }
        let mut message =
            ActivityMessage::new(id, event.activity_type.as_str(), event.content.clone());
        message.subagent_run_id = event.subagent_run_id.clone();
        message.metadata = activity.and_then(|activity| activity.metadata.take());
        if let Some(newer) = newer {
            edit::merge(&mut message.metadata, newer, applied);
        }
        let Some(key) = key else {
            let position = self.messages.len();
            self.messages.push(message.into());
            return applied.change(Change::MessageCreated { message: id.clone(), position });
        };
        let other = self.messages.activity_mut(key).is_none();
        if other {
            let role = self.messages.role(key);
            let message = format!(
                "the message {id:?} had the role {role:?} and gives way to the activity; use an id \
                 of its own"
            );
            applied.warn("P-28", "/messageId", message);
        }
        for call in self.messages.replace(key, message) {
            self.pending_answered(&call);
        }
        applied.change(Change::MessageReplaced { message: id.clone() });
    }

    /// `ACTIVITY_DELTA`: patches the content and sets the type (C-73). The metadata is the event's
    /// own, and merges whether the patch applies or not.
    pub(super) fn activity_delta(&mut self, event: &ActivityDelta, applied: &mut Applied) {
        let id = &event.message_id;
        warn_of_unknown_operations(&event.patch, "patch", applied);
        let key = self.messages.key(id);
        let Some(key) = key.filter(|key| self.messages.activity_mut(*key).is_some()) else {
            let found = match key {
                Some(key) => format!("has the role {:?}", self.messages.role(key)),
                None => "is not there".to_owned(),
            };
            let message = format!(
                "the patch of the activity {id:?} is skipped: that message {found}; send an \
                 ACTIVITY_SNAPSHOT first"
            );
            return applied.warn("C-73", "/messageId", message);
        };
        if let (Some(newer), Some(activity)) =
            (event.base.metadata(), self.messages.activity_mut(key))
            && edit::merge(&mut activity.metadata, newer, applied)
        {
            applied.change(Change::MessageChanged { message: id.clone() });
        }
        let limits = self.limits_within(CONTENT);
        match self.messages.live_mut(key) {
            Some(Ok(activity)) => {
                match activity.content_mut().apply_to_object(&event.patch, &limits) {
                    Ok(()) => {
                        activity.message_mut().activity_type.clone_from(&event.activity_type);
                        let (message, paths) = (id.clone(), changed(&event.patch));
                        applied.change(Change::ActivityPatched { message, paths });
                    }
                    Err(error) => warn_of_failure(&error, "patch", "activity", applied),
                }
            }
            Some(Err(error)) => {
                let message = format!("the activity stays as it was: it has {error}");
                applied.warn("C-67", "/patch", message);
            }
            None => {}
        }
    }

    /// The limits of a patch on what stands so many levels deep in a run's input, or in a snapshot
    /// of the messages: it has to be readable there too.
    fn limits_within(&self, levels: usize) -> PatchLimits {
        self.limits.with_depth(self.limits.depth.min(MAX_DEPTH - levels))
    }
}

/// How deep the state stands in a run's input.
const STATE: usize = 1;

/// How deep an activity's content stands in a snapshot of the messages.
const CONTENT: usize = 3;

fn warn_of_failure(error: &PatchError, member: &str, what: &str, applied: &mut Applied) {
    let path = format!("/{member}/{}", error.operation);
    let message = format!("Failed to apply {what} patch: {error}; the {what} stays as it was");
    applied.warn("C-67", &path, message);
}

fn warn_of_unknown_operations(patch: &JsonPatch, member: &str, applied: &mut Applied) {
    for (at, operation) in patch.iter().enumerate() {
        if let PatchOp::Unknown(unknown) = &operation.op {
            let message = format!("the unknown patch operation {:?} is dropped", unknown.tag());
            applied.warn("C-69", &format!("/{member}/{at}"), message);
        }
    }
}

/// Where a patch changed something.
fn changed(patch: &JsonPatch) -> Vec<JsonPointer> {
    let mut paths = Vec::with_capacity(patch.len());
    for operation in patch.iter() {
        match &operation.op {
            PatchOp::Test { .. } => {}
            PatchOp::Move { from, path } => paths.extend([from.clone(), path.clone()]),
            op => paths.extend(op.path().cloned()),
        }
    }
    paths
}
