//! JSON Schemas of the protocol's definitions, for a user's OpenAPI.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value};

use crate::{Json, JsonObject};

/// A protocol type that can describe itself.
pub(crate) trait Described {
    /// The type's schema, with the definitions it refers to left to the generator.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

/// How a type is described in the place of an optional member.
pub(crate) trait OptionalMember {
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

impl<T: JsonSchema> OptionalMember for T {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let schema = generator.subschema_for::<T>();
        if schema.as_bool() == Some(true) {
            // An optional member may hold any value, but not a whole `null`.
            return json_schema!({ "not": { "type": "null" } });
        }
        schema
    }
}

/// The schema of an object, member by member.
#[derive(Default)]
pub(crate) struct ObjectSchema {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl ObjectSchema {
    pub(crate) fn constant(&mut self, name: &str, value: &str) {
        self.properties.insert(name.into(), serde_json::json!({ "const": value }));
        self.required.push(name.into());
    }

    pub(crate) fn member(&mut self, name: &str, about: &str, required: bool, mut schema: Schema) {
        schema.insert("description".into(), about.trim().into());
        self.properties.insert(name.into(), schema.to_value());
        if required {
            self.required.push(name.into());
        }
    }

    pub(crate) fn closed(self) -> Schema {
        let mut schema = json_schema!({ "type": "object", "additionalProperties": false });
        schema.insert("properties".into(), self.properties.into());
        if !self.required.is_empty() {
            schema.insert("required".into(), self.required.into());
        }
        schema
    }
}

pub(crate) fn one_of<const N: usize>(schemas: [Schema; N]) -> Schema {
    json_schema!({ "oneOf": schemas.map(Schema::to_value).to_vec() })
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::from(true)
    }
}

impl JsonSchema for JsonObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "JsonObject".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}
