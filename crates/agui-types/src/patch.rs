//! JSON Patch (RFC 6902) and JSON Pointer (RFC 6901) as they travel. Applying them is not done
//! here.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use crate::json::write::{self, Write, Written};
use crate::read::{Discriminator, Members, Read, ReadError, ReadErrorKind, Reader};
use crate::{Json, JsonObject, Unknown};

/// A JSON Patch: operations to be applied in order and atomically (C-67). Derefs to a slice.
///
/// ```
/// use agui_types::{JsonPatch, ToJson};
/// use serde_json::json;
///
/// let patch = JsonPatch::new()
///     .replace(["steps", "0", "status"], json!("done"))
///     .add(["steps", "-"], json!({ "title": "rest" }))
///     .remove(["and/or"]);
/// assert_eq!(patch[2].to_json(), r#"{"op":"remove","path":"/and~1or"}"#);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonPatch(pub Vec<PatchOperation>);

impl JsonPatch {
    /// A patch without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Then adds a member, or inserts an element before the one at the path; `-` as the last step
    /// stands for the place behind the last element.
    #[must_use]
    pub fn add(self, path: impl Into<JsonPointer>, value: impl Into<Json>) -> Self {
        self.then(PatchOp::Add { path: path.into(), value: value.into() })
    }

    /// Then removes the value at the path.
    #[must_use]
    pub fn remove(self, path: impl Into<JsonPointer>) -> Self {
        self.then(PatchOp::Remove { path: path.into() })
    }

    /// Then replaces the value at the path, which must be there.
    #[must_use]
    pub fn replace(self, path: impl Into<JsonPointer>, value: impl Into<Json>) -> Self {
        self.then(PatchOp::Replace { path: path.into(), value: value.into() })
    }

    /// Then moves a value to the path.
    #[must_use]
    pub fn move_from(self, from: impl Into<JsonPointer>, path: impl Into<JsonPointer>) -> Self {
        self.then(PatchOp::Move { from: from.into(), path: path.into() })
    }

    /// Then copies a value to the path.
    #[must_use]
    pub fn copy_from(self, from: impl Into<JsonPointer>, path: impl Into<JsonPointer>) -> Self {
        self.then(PatchOp::Copy { from: from.into(), path: path.into() })
    }

    /// Then fails the patch unless the value at the path is equal.
    #[must_use]
    pub fn test(self, path: impl Into<JsonPointer>, value: impl Into<Json>) -> Self {
        self.then(PatchOp::Test { path: path.into(), value: value.into() })
    }

    fn then(mut self, op: PatchOp) -> Self {
        self.0.push(op.into());
        self
    }
}

impl Deref for JsonPatch {
    type Target = [PatchOperation];

    fn deref(&self) -> &[PatchOperation] {
        &self.0
    }
}

impl<T: Into<Vec<PatchOperation>>> From<T> for JsonPatch {
    fn from(operations: T) -> Self {
        Self(operations.into())
    }
}

impl Read for JsonPatch {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        Read::read(reader).map(Self)
    }
}

impl Write for JsonPatch {
    fn write(&self, out: &mut Vec<u8>) {
        write::array(out, &self.0);
    }
}

bridge!(JsonPatch);

/// One operation of a JSON Patch, with the members that its `op` does not define: RFC 6902 has them
/// ignored, the protocol has them kept (C-30).
#[derive(Clone, Debug, PartialEq)]
pub struct PatchOperation {
    /// What to do.
    pub op: PatchOp,
    /// Members beside those of the operation; never empty where present.
    pub extra: Option<Box<JsonObject>>,
}

/// What a patch operation does.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum PatchOp {
    /// Adds a member, or inserts an element.
    Add {
        /// Where.
        path: JsonPointer,
        /// What.
        value: Json,
    },
    /// Removes the value.
    Remove {
        /// Where.
        path: JsonPointer,
    },
    /// Replaces the value.
    Replace {
        /// Where.
        path: JsonPointer,
        /// With what.
        value: Json,
    },
    /// Moves a value.
    Move {
        /// From where.
        from: JsonPointer,
        /// To where.
        path: JsonPointer,
    },
    /// Copies a value.
    Copy {
        /// From where.
        from: JsonPointer,
        /// To where.
        path: JsonPointer,
    },
    /// Fails the patch unless the value is equal.
    Test {
        /// Where.
        path: JsonPointer,
        /// To what.
        value: Json,
    },
    /// An `op` that the protocol does not describe; dropped when applied (C-69).
    Unknown(Unknown),
}

impl From<PatchOp> for PatchOperation {
    fn from(op: PatchOp) -> Self {
        Self { op, extra: None }
    }
}

impl PatchOp {
    /// The `op` member.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Add { .. } => "add",
            Self::Remove { .. } => "remove",
            Self::Replace { .. } => "replace",
            Self::Move { .. } => "move",
            Self::Copy { .. } => "copy",
            Self::Test { .. } => "test",
            Self::Unknown(unknown) => unknown.tag(),
        }
    }

    /// Where it acts; `None` for an unknown operation.
    #[must_use]
    pub fn path(&self) -> Option<&JsonPointer> {
        match self {
            Self::Add { path, .. }
            | Self::Remove { path }
            | Self::Replace { path, .. }
            | Self::Move { path, .. }
            | Self::Copy { path, .. }
            | Self::Test { path, .. } => Some(path),
            Self::Unknown(_) => None,
        }
    }

    /// Where it takes its value from, for `move` and `copy`.
    #[must_use]
    pub fn from(&self) -> Option<&JsonPointer> {
        match self {
            Self::Move { from, .. } | Self::Copy { from, .. } => Some(from),
            _ => None,
        }
    }

    /// Its value, for `add`, `replace` and `test`.
    #[must_use]
    pub fn value(&self) -> Option<&Json> {
        match self {
            Self::Add { value, .. } | Self::Replace { value, .. } | Self::Test { value, .. } => {
                Some(value)
            }
            _ => None,
        }
    }
}

impl Read for PatchOperation {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.kind()?;
        let start = reader.offset();
        let discriminator = match reader.discriminator("op", "\"op\":") {
            Ok(discriminator) => discriminator,
            Err(error) => {
                return Ok(PatchOp::Unknown(reader.untagged("op", start, error)?).into());
            }
        };
        let (has_from, has_value) = match &*discriminator.tag {
            "add" | "replace" | "test" => (false, true),
            "move" | "copy" => (true, false),
            "remove" => (false, false),
            _ => {
                let unknown = reader.unknown_variant(discriminator, "a JSON Patch operation")?;
                return Ok(PatchOp::Unknown(unknown).into());
            }
        };
        let Discriminator { tag, members, .. } = discriminator;
        let parts = OperationMembers::read(reader, &tag, members, has_from, has_value)?;
        let path = parts.path.ok_or_else(|| reader.missing("path"))?;
        let from = || reader.missing("from");
        let value = || reader.missing("value");
        let op = match &*tag {
            "add" => PatchOp::Add { path, value: parts.value.ok_or_else(value)? },
            "replace" => PatchOp::Replace { path, value: parts.value.ok_or_else(value)? },
            "test" => PatchOp::Test { path, value: parts.value.ok_or_else(value)? },
            "move" => PatchOp::Move { from: parts.from.ok_or_else(from)?, path },
            "copy" => PatchOp::Copy { from: parts.from.ok_or_else(from)?, path },
            _ => PatchOp::Remove { path },
        };
        Ok(Self { op, extra: parts.extra })
    }
}

/// The members of an operation as they come.
struct OperationMembers {
    path: Option<JsonPointer>,
    from: Option<JsonPointer>,
    value: Option<Json>,
    extra: Option<Box<JsonObject>>,
}

impl OperationMembers {
    fn read(
        reader: &mut Reader<'_, '_>,
        op: &str,
        mut members: Members,
        has_from: bool,
        has_value: bool,
    ) -> Result<Self, ReadError> {
        let mut parts = Self { path: None, from: None, value: None, extra: None };
        let mut extra = Vec::new();
        while let Some(name) = reader.next_member(&mut members)? {
            match &*name {
                "op" => reader.literal("op", op)?,
                "path" => parts.path = Some(reader.required("path")?),
                "from" if has_from => parts.from = Some(reader.required("from")?),
                "value" if has_value => parts.value = Some(reader.required("value")?),
                other => {
                    if extra.is_empty() {
                        extra.push(b'{');
                    }
                    write::any_member(&mut extra, other, &reader.json()?);
                }
            }
        }
        if !extra.is_empty() {
            write::close_object(&mut extra);
            let json = Json::from_checked(&crate::json::into_string(extra));
            parts.extra = Some(Box::new(JsonObject::from_checked(json)));
        }
        Ok(parts)
    }
}

impl Write for PatchOperation {
    fn write(&self, out: &mut Vec<u8>) {
        if let PatchOp::Unknown(unknown) = &self.op {
            return unknown.json().write(out);
        }
        out.push(b'{');
        write::member(out, "\"op\":", self.op.name());
        if let Some(from) = self.op.from() {
            write::member(out, "\"from\":", from);
        }
        if let Some(path) = self.op.path() {
            write::member(out, "\"path\":", path);
        }
        if let Some(value) = self.op.value() {
            write::member(out, "\"value\":", value);
        }
        for (name, value) in self.extra.iter().flat_map(|extra| extra.members()) {
            write::any_member(out, &name, &Written(value));
        }
        write::close_object(out);
    }

    fn writes_densely(&self) -> bool {
        !matches!(self.op, PatchOp::Unknown(_))
    }
}

bridge!(PatchOperation);

/// A JSON Pointer: empty for the whole document, else steps that each begin with `/`, with `~0` for
/// `~` and `~1` for `/` in a step. Made from its text, which is parsed, or from its steps as they
/// are.
///
/// ```
/// use agui_types::JsonPointer;
///
/// let parsed: JsonPointer = "/steps/0/and~1or".parse()?;
/// assert_eq!(JsonPointer::from(["steps", "0", "and/or"]), parsed);
/// # Ok::<(), agui_types::PointerError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct JsonPointer(Box<str>);

impl JsonPointer {
    /// The pointer as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The steps, unescaped. None for the whole document.
    pub fn steps(&self) -> impl Iterator<Item = std::borrow::Cow<'_, str>> {
        self.0.split('/').skip(1).map(|step| {
            if step.contains('~') {
                step.replace("~1", "/").replace("~0", "~").into()
            } else {
                step.into()
            }
        })
    }

    /// The pointer one step further in.
    #[must_use]
    pub fn join(&self, step: &str) -> Self {
        let escaped = step.replace('~', "~0").replace('/', "~1");
        Self(format!("{}/{escaped}", self.0).into())
    }
}

impl<S: AsRef<str>> FromIterator<S> for JsonPointer {
    /// The pointer with these steps, which are escaped here.
    fn from_iter<T: IntoIterator<Item = S>>(steps: T) -> Self {
        let mut text = String::new();
        for step in steps {
            text.push('/');
            text.push_str(&step.as_ref().replace('~', "~0").replace('/', "~1"));
        }
        Self(text.into())
    }
}

impl<S: AsRef<str>, const N: usize> From<[S; N]> for JsonPointer {
    /// The pointer with these steps, which are escaped here.
    fn from(steps: [S; N]) -> Self {
        steps.into_iter().collect()
    }
}

impl From<&Self> for JsonPointer {
    fn from(pointer: &Self) -> Self {
        pointer.clone()
    }
}

impl FromStr for JsonPointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Self, PointerError> {
        let rooted = text.is_empty() || text.starts_with('/');
        let escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        if rooted && escaped { Ok(Self(text.into())) } else { Err(PointerError(text.into())) }
    }
}

impl fmt::Debug for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for JsonPointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Read for JsonPointer {
    fn read(reader: &mut Reader<'_, '_>) -> Result<Self, ReadError> {
        reader.kind()?;
        let offset = reader.offset();
        let text = reader.string()?;
        text.parse().map_err(|PointerError(found)| {
            let kind = ReadErrorKind::InvalidValue;
            ReadError::new(kind, offset, "a JSON Pointer", format!("{found:?}"))
        })
    }
}

impl Write for JsonPointer {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
    }
}

bridge!(JsonPointer);

/// A string is not a JSON Pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no JSON Pointer: it must be empty or begin with '/', and '~' must be followed by '0' or '1'"
)]
pub struct PointerError(Box<str>);

#[cfg(feature = "schemars")]
mod schemas {
    use super::{JsonPatch, JsonPointer, PatchOperation};
    use crate::schema::{Described, one_of};
    use schemars::{Schema, SchemaGenerator, json_schema};

    impl Described for JsonPatch {
        fn schema(generator: &mut SchemaGenerator) -> Schema {
            generator.subschema_for::<Vec<PatchOperation>>()
        }
    }

    impl Described for PatchOperation {
        fn schema(generator: &mut SchemaGenerator) -> Schema {
            let pointer = generator.subschema_for::<JsonPointer>();
            let operation = |op: &str, more: Option<&str>| {
                let required: Vec<&str> = ["op", "path"].into_iter().chain(more).collect();
                let mut schema = json_schema!({
                    "type": "object",
                    "properties": { "op": { "const": op }, "path": pointer },
                    "required": required,
                });
                if more == Some("from") {
                    schema.insert(
                        "properties".into(),
                        serde_json::json!({
                            "op": { "const": op }, "path": pointer, "from": pointer
                        }),
                    );
                }
                schema
            };
            one_of([
                operation("add", Some("value")),
                operation("remove", None),
                operation("replace", Some("value")),
                operation("move", Some("from")),
                operation("copy", Some("from")),
                operation("test", Some("value")),
            ])
        }
    }

    impl Described for JsonPointer {
        fn schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({ "type": "string", "pattern": "^(/([^/~]|~[01])*)*$" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FromJson, ToJson};

    #[test]
    fn a_pointer_is_checked_and_unescaped() {
        // C-68
        for text in ["", "/", "/a/b", "/a~1b/~0", "//"] {
            assert!(text.parse::<JsonPointer>().is_ok(), "{text}");
        }
        for text in ["a", "/~", "/~2", "/a~", "a/b", "~0"] {
            assert!(text.parse::<JsonPointer>().is_err(), "{text}");
        }
        let pointer: JsonPointer = "/a~1b/~01/0/".parse().unwrap();
        assert_eq!(pointer.steps().collect::<Vec<_>>(), ["a/b", "~1", "0", ""]);
        assert_eq!(JsonPointer::default().join("x~/y").as_str(), "/x~0~1y");
    }

    #[test]
    fn extra_members_of_an_operation_are_kept() {
        // C-30
        let text = r#"[{"op":"remove","path":"/a","value":1.0,"from":"nonsense"}]"#;
        let patch = JsonPatch::from_json_exact(text).unwrap();
        assert_eq!(patch[0].op, PatchOp::Remove { path: "/a".parse().unwrap() });
        assert_eq!(patch.to_json(), text);
    }

    #[test]
    fn a_malformed_operation_is_an_error_with_its_path() {
        // C-68
        for (text, path) in [
            (r#"{"op":"add","path":"/a"}"#, ""),
            (r#"[{"op":"add","path":"/a"}]"#, "/0/value"),
            (r#"[{"op":"add","path":"a","value":1}]"#, "/0/path"),
            (r#"[{"op":"remove","path":""},{"op":"move","path":"/a","from":null}]"#, "/1/from"),
            (r#"[7]"#, "/0"),
        ] {
            assert_eq!(JsonPatch::from_json_tolerant(text).unwrap_err().path(), path, "{text}");
        }
    }

    #[test]
    fn an_unknown_operation_is_kept_whole() {
        // C-69
        let text = r#"[{"op":"merge","deep":{"a":[1]}}]"#;
        let reading = JsonPatch::from_json_tolerant(text).unwrap();
        assert_eq!(reading.findings[0].path, "/0");
        assert_eq!(reading.value.to_json(), text);
        assert!(JsonPatch::from_json_exact(text).is_err());
    }
}
