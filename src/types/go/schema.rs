//! An OpenAPI v3 schema as CRDs have it, cheap to copy, with the place each property was declared at.
//! Holds no rules; `build` makes schemas, `flatten` merges them.

use super::package::TypeId;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A text that may be missing.
pub(crate) type Text = Option<Arc<str>>;

/// The field a property was declared by: its place in its struct, as where that stands changes with every
/// edit above.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) of: TypeId,
    pub(crate) field: usize,
}

/// A CEL rule.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule(pub(crate) Value);

/// Values of a map.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    Anything,
    Schema(Arc<Schema>),
}

/// One schema.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    pub(crate) reference: Option<TypeId>,
    pub(crate) description: Text,
    pub(crate) kind: Text,
    pub(crate) format: Text,
    pub(crate) title: Text,
    pub(crate) default: Option<Arc<Value>>,
    pub(crate) maximum: Option<Value>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<Value>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) max_length: Option<Value>,
    pub(crate) min_length: Option<Value>,
    pub(crate) pattern: Text,
    pub(crate) max_items: Option<Value>,
    pub(crate) min_items: Option<Value>,
    pub(crate) unique_items: bool,
    pub(crate) multiple_of: Option<Value>,
    pub(crate) choices: Vec<Value>,
    pub(crate) max_properties: Option<Value>,
    pub(crate) min_properties: Option<Value>,
    pub(crate) required: Vec<Arc<str>>,
    pub(crate) items: Option<Arc<Schema>>,
    pub(crate) all_of: Vec<Arc<Schema>>,
    pub(crate) any_of: Vec<Arc<Schema>>,
    pub(crate) properties: BTreeMap<Arc<str>, Arc<Schema>>,
    pub(crate) additional: Option<Additional>,
    pub(crate) external_docs: Option<Arc<Value>>,
    pub(crate) example: Option<Arc<Value>>,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: Option<bool>,
    pub(crate) embedded_resource: bool,
    pub(crate) int_or_string: bool,
    pub(crate) list_map_keys: Vec<Arc<str>>,
    pub(crate) list_type: Text,
    pub(crate) map_type: Text,
    pub(crate) rules: Vec<Rule>,
    pub(crate) origin: Option<Origin>,
}

impl Schema {
    /// A schema of one type.
    pub(crate) fn with_type(kind: &str) -> Schema {
        Schema { kind: Some(kind.into()), ..Schema::default() }
    }

    /// The type; empty where there is none.
    pub(crate) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    /// The schema as JSON, without what is empty.
    pub(crate) fn to_json(&self) -> Value {
        let mut map = Map::new();
        self.texts(&mut map);
        self.numbers(&mut map);
        let list = |schemas: &[Arc<Schema>]| Value::from_iter(schemas.iter().map(|schema| schema.to_json()));
        let names = |names: &[Arc<str>]| Value::from_iter(names.iter().map(|name| Value::from(&**name)));
        let mut flag = |name: &str, on: bool| {
            if on {
                map.insert(name.to_owned(), Value::Bool(true));
            }
        };
        flag("exclusiveMaximum", self.exclusive_maximum);
        flag("exclusiveMinimum", self.exclusive_minimum);
        flag("uniqueItems", self.unique_items);
        flag("nullable", self.nullable);
        flag("x-kubernetes-embedded-resource", self.embedded_resource);
        flag("x-kubernetes-int-or-string", self.int_or_string);
        let mut put = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                map.insert(name.to_owned(), value);
            }
        };
        put("x-kubernetes-preserve-unknown-fields", self.preserve_unknown.map(Value::Bool));
        put("default", self.default.as_deref().cloned());
        put("example", self.example.as_deref().cloned());
        put("externalDocs", self.external_docs.as_deref().cloned());
        put("enum", (!self.choices.is_empty()).then(|| Value::from(self.choices.clone())));
        put("required", (!self.required.is_empty()).then(|| names(&self.required)));
        put("items", self.items.as_ref().map(|items| items.to_json()));
        put("allOf", (!self.all_of.is_empty()).then(|| list(&self.all_of)));
        put("anyOf", (!self.any_of.is_empty()).then(|| list(&self.any_of)));
        let properties = self.properties.iter();
        let properties: Map<String, Value> =
            properties.map(|(name, schema)| (name.to_string(), schema.to_json())).collect();
        put("properties", (!properties.is_empty()).then_some(Value::Object(properties)));
        put(
            "additionalProperties",
            self.additional.as_ref().map(|additional| match additional {
                Additional::Anything => Value::Bool(true),
                Additional::Schema(schema) => schema.to_json(),
            }),
        );
        put(
            "x-kubernetes-list-map-keys",
            (!self.list_map_keys.is_empty()).then(|| names(&self.list_map_keys)),
        );
        let rules = self.rules.iter().map(|rule| rule.0.clone());
        put("x-kubernetes-validations", (!self.rules.is_empty()).then(|| Value::from_iter(rules)));
        Value::Object(map)
    }

    fn texts(&self, map: &mut Map<String, Value>) {
        for (name, text) in [
            ("description", &self.description),
            ("type", &self.kind),
            ("format", &self.format),
            ("title", &self.title),
            ("pattern", &self.pattern),
            ("x-kubernetes-list-type", &self.list_type),
            ("x-kubernetes-map-type", &self.map_type),
        ] {
            if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
                map.insert(name.to_owned(), Value::from(text));
            }
        }
    }

    fn numbers(&self, map: &mut Map<String, Value>) {
        for (name, number) in [
            ("maximum", &self.maximum),
            ("minimum", &self.minimum),
            ("maxLength", &self.max_length),
            ("minLength", &self.min_length),
            ("maxItems", &self.max_items),
            ("minItems", &self.min_items),
            ("multipleOf", &self.multiple_of),
            ("maxProperties", &self.max_properties),
            ("minProperties", &self.min_properties),
        ] {
            if let Some(number) = number {
                map.insert(name.to_owned(), number.clone());
            }
        }
    }
}

/// A CEL rule with a message.
pub(crate) fn rule(rule: &str, message: &str) -> Rule {
    Rule(json!({"rule": rule, "message": message}))
}
