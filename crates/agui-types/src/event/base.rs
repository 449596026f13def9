//! What every event can carry.

use crate::json::write;
use crate::read::{Members, ReadError, Reader};
use crate::{Json, Metadata, Timestamp};

/// The members that every event can have beside its own: `timestamp`, `rawEvent`, `metadata`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventBase {
    /// When the event was created.
    pub timestamp: Option<Timestamp>,
    // Rare, so behind one pointer: an event stays small.
    rest: Option<Box<Rest>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Rest {
    raw_event: Option<Json>,
    metadata: Option<Metadata>,
}

impl EventBase {
    /// The provider-native event this one was translated from, verbatim. Must not drive behaviour
    /// (C-19).
    #[must_use]
    pub fn raw_event(&self) -> Option<&Json> {
        self.rest.as_ref()?.raw_event.as_ref()
    }

    /// Sets or removes the provider-native event.
    pub fn set_raw_event(&mut self, raw: Option<Json>) {
        self.change(|rest| rest.raw_event = raw);
    }

    /// The event's metadata.
    #[must_use]
    pub fn metadata(&self) -> Option<&Metadata> {
        self.rest.as_ref()?.metadata.as_ref()
    }

    /// Sets or removes the metadata.
    pub fn set_metadata(&mut self, metadata: Option<Metadata>) {
        self.change(|rest| rest.metadata = metadata);
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.timestamp.is_none() && self.rest.is_none()
    }

    fn change(&mut self, change: impl FnOnce(&mut Rest)) {
        let mut rest = self.rest.take().unwrap_or_default();
        change(&mut rest);
        self.rest = (*rest != Rest::default()).then_some(rest);
    }

    /// Reads a member if it is one of these.
    pub(crate) fn read_member(
        &mut self,
        reader: &mut Reader<'_, '_>,
        name: &str,
    ) -> Result<bool, ReadError> {
        match name {
            "timestamp" => self.timestamp = reader.optional("timestamp")?,
            "rawEvent" => {
                let raw = reader.optional("rawEvent")?;
                self.set_raw_event(raw);
            }
            "metadata" => {
                let metadata = reader.optional("metadata")?;
                self.set_metadata(metadata);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Reads the timestamp if it comes next.
    #[inline]
    pub(crate) fn read_ahead(
        &mut self,
        reader: &mut Reader<'_, '_>,
        members: &Members,
    ) -> Result<(), ReadError> {
        if reader.comes(members, ",\"timestamp\":") {
            self.timestamp = reader.optional("timestamp")?;
        }
        Ok(())
    }

    pub(crate) fn write_members(&self, out: &mut Vec<u8>) {
        if let Some(timestamp) = self.timestamp {
            write::member(out, "\"timestamp\":", &timestamp);
        }
        if let Some(raw) = self.raw_event() {
            write::member(out, "\"rawEvent\":", raw);
        }
        if let Some(metadata) = self.metadata() {
            write::member(out, "\"metadata\":", metadata);
        }
    }

    #[cfg(feature = "schemars")]
    pub(crate) fn describe(
        object: &mut crate::schema::ObjectSchema,
        generator: &mut schemars::SchemaGenerator,
    ) {
        use crate::schema::OptionalMember;

        let about = " When the event was created.";
        object.member("timestamp", about, false, generator.subschema_for::<Timestamp>());
        let about = " The provider-native event this one was translated from.";
        object.member("rawEvent", about, false, <Json as OptionalMember>::schema(generator));
        let about = " Extra information attached to this event.";
        object.member("metadata", about, false, generator.subschema_for::<Metadata>());
    }
}
