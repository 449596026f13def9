//! Activity: structured progress that takes its place among the messages.

use crate::{JsonObject, JsonPatch, MessageId};

object! {
    /// `ACTIVITY_SNAPSHOT`: creates or replaces an activity message.
    attributed event ActivitySnapshot = "ACTIVITY_SNAPSHOT" {
        tags {}
        required {
            /// The activity message.
            message_id "messageId": MessageId,
            /// What kind of activity: an open string.
            activity_type "activityType": String,
            /// The payload; its keys are data.
            content "content": JsonObject,
        }
        optional {
            /// Whether to overwrite content that is there. Absent: `true`, which is normative.
            replace "replace": bool,
        }
    }
}

object! {
    /// `ACTIVITY_DELTA`: patches an activity message's content.
    attributed event ActivityDelta = "ACTIVITY_DELTA" {
        tags {}
        required {
            /// The activity message.
            message_id "messageId": MessageId,
            /// What kind of activity; replaces the message's kind.
            activity_type "activityType": String,
            /// The change, against the activity's content.
            patch "patch": JsonPatch,
        }
        optional {}
    }
}
