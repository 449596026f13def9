//! How the protocol's definitions are spelled in this crate.
//!
//! A definition says each member once: its Rust name, its name on the wire, its type, whether it is
//! required, and its documentation. The struct, its constructor, its setters, both readings, the
//! writing, the `serde` bridges and the JSON Schema follow from that.

/// A closed object of the protocol.
///
/// `tags` are members that hold one fixed string and are therefore not stored; the first one is the
/// discriminator of the union the object belongs to. `event` adds the members that every event has,
/// `attributed` the subagent attribution.
macro_rules! object {
    // An event that can be attributed to a subagent.
    (
        $(#[$meta:meta])*
        attributed event $name:ident = $event_type:literal {
            tags { $($tag:literal = $tag_value:literal),* }
            required { $($required:tt)* }
            optional { $($optional:tt)* }
        }
    ) => {
        object! {
            $(#[$meta])*
            event $name = $event_type {
                tags { $($tag = $tag_value),* }
                required { $($required)* }
                optional {
                    $($optional)*
                    /// The subagent invocation this belongs to. Absent: the parent agent itself (P-66).
                    subagent_run_id "subagentRunId": $crate::SubagentRunId,
                }
            }
        }
    };
    // An event: the base members come last and live in `base`.
    (
        $(#[$meta:meta])*
        event $name:ident = $event_type:literal {
            tags { $($tag:literal = $tag_value:literal),* }
            required { $($required:tt)* }
            optional { $($optional:tt)* }
        }
    ) => {
        object! {
            @define $(#[$meta])* $name
            [base: $crate::event::EventBase]
            { "type" = $event_type $(, $tag = $tag_value)* }
            { $($required)* }
            { $($optional)* }
        }

        impl $name {
            /// The event's type on the wire.
            pub const TYPE: $crate::EventType = $crate::EventType::$name;

            /// Sets when the event was created: by convention milliseconds since the Unix epoch.
            #[must_use]
            pub fn timestamp(mut self, timestamp: $crate::Timestamp) -> Self {
                self.base.timestamp = Some(timestamp);
                self
            }

            /// Attaches the provider-native event this one was translated from.
            #[must_use]
            pub fn raw_event(mut self, raw: impl Into<$crate::Json>) -> Self {
                self.base.set_raw_event(Some(raw.into()));
                self
            }

            /// Attaches metadata.
            #[must_use]
            pub fn metadata(mut self, metadata: impl Into<$crate::Metadata>) -> Self {
                self.base.set_metadata(Some(metadata.into()));
                self
            }
        }
    };
    // Any other object.
    (
        $(#[$meta:meta])*
        $name:ident {
            $(tags { $($tag:literal = $tag_value:literal),* })?
            required { $($required:tt)* }
            optional { $($optional:tt)* }
        }
    ) => {
        object! {
            @define $(#[$meta])* $name
            []
            { $($($tag = $tag_value),*)? }
            { $($required)* }
            { $($optional)* }
        }
    };
    // What nothing is required of has a default.
    (@default $name:ident {}) => {
        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
    (@default $name:ident { $($required:ident)+ }) => {};
    (
        @define $(#[$meta:meta])* $name:ident
        [$($base:ident: $base_type:ty)?]
        { $($tag:literal = $tag_value:literal),* }
        { $($(#[doc = $required_doc:literal])* $required:ident $required_name:literal: $required_type:ty,)* }
        { $($(#[doc = $optional_doc:literal])* $optional:ident $optional_name:literal: $optional_type:ty,)* }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $required_doc])* pub $required: $required_type,)*
            $($(#[doc = $optional_doc])* pub $optional: Option<$optional_type>,)*
            $(
                /// What every event can carry: timestamp, raw event, metadata.
                pub $base: $base_type,
            )?
        }

        impl $name {
            /// Makes one from what is required; everything optional is absent.
            #[must_use]
            pub fn new($($required: impl Into<$required_type>),*) -> Self {
                Self {
                    $($required: $required.into(),)*
                    $($optional: None,)*
                    $($base: <$base_type>::default(),)?
                }
            }

            $(
                $(#[doc = $optional_doc])*
                #[must_use]
                pub fn $optional(mut self, $optional: impl Into<$optional_type>) -> Self {
                    self.$optional = Some($optional.into());
                    self
                }
            )*
        }

        object!(@default $name { $($required)* });

        impl $name {
            #[allow(unused_assignments, unused_mut, unused_variables)]
            pub(crate) fn read_members(
                reader: &mut $crate::read::Reader<'_, '_>,
                mut members: $crate::read::Members,
            ) -> Result<Self, $crate::read::ReadError> {
                let tags: &[&'static str] = &[$($tag),*];
                let mut seen = [false; { let tags: &[&str] = &[$($tag),*]; tags.len() }];
                if let Some(discriminator) = seen.first_mut() {
                    *discriminator = members.tagged;
                }
                $(let mut $required: Option<$required_type> = None;)*
                $(let mut $optional: Option<$optional_type> = None;)*
                $(let mut $base = <$base_type>::default();)?
                // Mostly they come in this order: then no name has to be looked up.
                $(if reader.comes(&members, concat!(",\"", $required_name, "\":")) {
                    $required = Some(reader.required($required_name)?);
                })*
                $($base.read_ahead(reader, &members)?;)?
                while let Some(name) = reader.next_member(&mut members)? {
                    match &*name {
                        $($required_name => $required = Some(reader.required($required_name)?),)*
                        $($optional_name => $optional = reader.optional($optional_name)?,)*
                        $($tag => {
                            reader.literal($tag, $tag_value)?;
                            if let Some(at) = tags.iter().position(|tag| *tag == $tag) {
                                seen[at] = true;
                            }
                        })*
                        other => {
                            $(if $base.read_member(reader, other)? { continue; })?
                            reader.unknown_member(other)?;
                        }
                    }
                }
                for (tag, seen) in tags.iter().zip(seen) {
                    if !seen {
                        return Err(reader.missing(tag));
                    }
                }
                Ok(Self {
                    $($required: match $required {
                        Some(value) => value,
                        None => return Err(reader.missing($required_name)),
                    },)*
                    $($optional,)*
                    $($base,)?
                })
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                reader: &mut $crate::read::Reader<'_, '_>,
            ) -> Result<Self, $crate::read::ReadError> {
                let members = reader.open_object()?;
                Self::read_members(reader, members)
            }
        }

        impl $crate::json::write::Write for $name {
            fn write(&self, out: &mut Vec<u8>) {
                let opening = concat!("{", $("\"", $tag, "\":\"", $tag_value, "\",",)*);
                out.extend_from_slice(opening.as_bytes());
                $($crate::json::write::member(
                    out,
                    concat!("\"", $required_name, "\":"),
                    &self.$required,
                );)*
                $(if let Some(value) = &self.$optional {
                    let quoted = concat!("\"", $optional_name, "\":");
                    $crate::json::write::member(out, quoted, value);
                })*
                $(self.$base.write_members(out);)?
                $crate::json::write::close_object(out);
            }
        }

        bridge!($name);

        #[cfg(feature = "schemars")]
        impl $crate::schema::Described for $name {
            #[allow(unused_mut, unused_variables)]
            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                let mut object = $crate::schema::ObjectSchema::default();
                $(object.constant($tag, $tag_value);)*
                $(object.member(
                    $required_name,
                    concat!($($required_doc),*),
                    true,
                    generator.subschema_for::<$required_type>(),
                );)*
                $(object.member(
                    $optional_name,
                    concat!($($optional_doc),*),
                    false,
                    <$optional_type as $crate::schema::OptionalMember>::schema(generator),
                );)*
                $(<$base_type>::describe(&mut object, generator);)?
                object.closed()
            }
        }
    };
}

/// A union of the protocol, told apart by a discriminator; keeps what it does not know.
macro_rules! union {
    (
        $(#[$meta:meta])*
        $name:ident by $discriminator:literal, expected $expected:literal {
            $($(#[$variant_meta:meta])* $tag:literal => $variant:ident($($inner:tt)*),)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant(union!(@stored $($inner)*)),)*
            /// A kind that this version of the protocol does not describe, kept byte for byte.
            Unknown($crate::Unknown),
        }

        impl $name {
            /// The discriminator's value on the wire.
            #[must_use]
            pub fn tag(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $tag,)*
                    Self::Unknown(unknown) => unknown.tag(),
                }
            }
        }

        $(
            impl From<union!(@type $($inner)*)> for $name {
                fn from(value: union!(@type $($inner)*)) -> Self {
                    Self::$variant(value.into())
                }
            }
        )*

        impl $crate::read::Read for $name {
            fn read(
                reader: &mut $crate::read::Reader<'_, '_>,
            ) -> Result<Self, $crate::read::ReadError> {
                let quoted = concat!("\"", $discriminator, "\":");
                reader.kind()?;
                let start = reader.offset();
                let discriminator = match reader.discriminator($discriminator, quoted) {
                    Ok(discriminator) => discriminator,
                    Err(error) => {
                        return reader.untagged($discriminator, start, error).map(Self::Unknown);
                    }
                };
                let members = discriminator.members;
                Ok(match &*discriminator.tag {
                    $($tag => Self::$variant(
                        <union!(@type $($inner)*)>::read_members(reader, members)?.into(),
                    ),)*
                    _ => Self::Unknown(reader.unknown_variant(discriminator, $expected)?),
                })
            }
        }

        impl $crate::json::write::Write for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(value) => value.write(out),)*
                    Self::Unknown(unknown) => unknown.json().write(out),
                }
            }

            fn writes_densely(&self) -> bool {
                !matches!(self, Self::Unknown(_))
            }
        }

        bridge!($name);

        #[cfg(feature = "schemars")]
        impl $crate::schema::Described for $name {
            fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::schema::one_of([
                    $(generator.subschema_for::<union!(@type $($inner)*)>(),)*
                ])
            }
        }
    };
    (@stored box $type:ty) => { Box<$type> };
    (@stored $type:ty) => { $type };
    (@type box $type:ty) => { $type };
    (@type $type:ty) => { $type };
}

/// A closed set of strings; keeps a value it does not know.
macro_rules! closed_set {
    (
        $(#[$meta:meta])*
        $name:ident, expected $expected:literal {
            $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)*
            /// A value that this version of the protocol does not describe.
            Unknown(Box<str>),
        }

        impl $name {
            /// The value on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl From<&str> for $name {
            /// The value, known or not.
            fn from(text: &str) -> Self {
                match text {
                    $($text => Self::$variant,)*
                    other => Self::Unknown(other.into()),
                }
            }
        }

        impl $crate::read::Read for $name {
            fn read(
                reader: &mut $crate::read::Reader<'_, '_>,
            ) -> Result<Self, $crate::read::ReadError> {
                reader.kind()?;
                let offset = reader.offset();
                let value = Self::from(&*reader.string()?);
                if let Self::Unknown(text) = &value {
                    reader.unknown_value(text, offset, $expected)?;
                }
                Ok(value)
            }
        }

        impl $crate::json::write::Write for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::json::write::string(out, self.as_str());
            }
        }

        bridge!($name);

        #[cfg(feature = "schemars")]
        impl $crate::schema::Described for $name {
            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),*] })
            }
        }
    };
}

/// A member that holds one fixed string where it is there at all.
macro_rules! literal {
    ($(#[$meta:meta])* $name:ident = $text:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name;

        impl $crate::read::Read for $name {
            fn read(
                reader: &mut $crate::read::Reader<'_, '_>,
            ) -> Result<Self, $crate::read::ReadError> {
                reader.literal_value($text).map(|()| Self)
            }
        }

        impl $crate::json::write::Write for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::json::write::string(out, $text);
            }
        }

        bridge!($name);

        #[cfg(feature = "schemars")]
        impl $crate::schema::Described for $name {
            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "const": $text })
            }
        }
    };
}

/// An opaque identifier: any string, the empty one included, never parsed (C-20).
macro_rules! id {
    ($($(#[$meta:meta])* $name:ident,)*) => {$(
        $(#[$meta])*
        ///
        /// An opaque string, never parsed (C-20); the empty string is legal. Cloning is cheap.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(std::sync::Arc<str>);

        impl $name {
            /// Takes any string.
            #[must_use]
            pub fn new(id: impl Into<std::sync::Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The string.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(id: &str) -> Self {
                Self(id.into())
            }
        }

        impl From<String> for $name {
            fn from(id: String) -> Self {
                Self(id.into())
            }
        }

        impl From<&$name> for $name {
            fn from(id: &$name) -> Self {
                id.clone()
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl $crate::read::Read for $name {
            #[inline]
            fn read(
                reader: &mut $crate::read::Reader<'_, '_>,
            ) -> Result<Self, $crate::read::ReadError> {
                reader.id().map(Self)
            }
        }

        impl $crate::json::write::Write for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $crate::json::write::string(out, &self.0);
            }
        }

        bridge!($name);

        #[cfg(feature = "schemars")]
        impl $crate::schema::Described for $name {
            fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" })
            }
        }
    )*};
}

/// The bridges from a type that this crate reads and writes to `serde` and the public traits.
macro_rules! bridge {
    ($name:ident) => {
        impl $crate::read::sealed::Sealed for $name {}

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $crate::json::serialize_text(self, serializer)
            }
        }

        /// The tolerant reading without its findings.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let json = $crate::Json::deserialize(deserializer)?;
                <Self as $crate::FromJson>::from_json_tolerant(json.as_str())
                    .map(|reading| reading.value)
                    .map_err(serde::de::Error::custom)
            }
        }

        #[cfg(feature = "schemars")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <Self as $crate::schema::Described>::schema(generator)
            }
        }
    };
}
