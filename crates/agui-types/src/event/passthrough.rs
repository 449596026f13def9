//! Events that carry what the protocol does not describe.

use crate::Json;

object! {
    /// `RAW`: a provider's own event, untranslated.
    attributed event Raw = "RAW" {
        tags {}
        required {
            /// The provider's event: any JSON value, `null` included.
            event "event": Json,
        }
        optional {
            /// The provider or framework it came from.
            source "source": String,
        }
    }
}

object! {
    /// `CUSTOM`: an application's own event.
    attributed event Custom = "CUSTOM" {
        tags {}
        required {
            /// What the event is. Unprefixed names belong to the protocol (P-89).
            name "name": String,
            /// The payload: any JSON value, `null` included.
            value "value": Json,
        }
        optional {}
    }
}
