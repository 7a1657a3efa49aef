//! YAML into typed fields the way Go's JSON decoder does it: scalars become strings where the field is one,
//! keys match whatever their case, and a wrong type is named with the Go field.

use opdev_object::yaml::{Error, Kind, Node, to_values};
use serde_json::Value;

/// Why a field does not fit; the place is the value's.
#[derive(Debug)]
pub(super) struct Mismatch {
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) message: String,
}

impl From<Error> for Mismatch {
    fn from(error: Error) -> Self {
        Mismatch { line: error.line, column: error.column, message: error.to_string() }
    }
}

/// A mapping with the Go path that leads to it.
pub(super) struct Fields<'n> {
    pairs: &'n [(Node, Node)],
    path: String,
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool(_) => "bool",
        Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) => "number",
        Kind::String(_) => "string",
        Kind::Sequence(_) => "array",
        Kind::Mapping(_) => "object",
    }
}

fn mismatch(node: &Node, target: &str) -> Mismatch {
    Mismatch {
        line: node.line,
        column: node.column,
        message: format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into {target}",
            kind_name(&node.kind)
        ),
    }
}

impl<'n> Fields<'n> {
    /// The fields of a mapping; null has none. `go_type` names the whole, `path` its fields.
    pub(super) fn read(node: &'n Node, go_type: &str, path: &str) -> Result<Fields<'n>, Mismatch> {
        match &node.kind {
            Kind::Mapping(pairs) => Ok(Fields { pairs, path: path.to_owned() }),
            Kind::Null => Ok(Fields { pairs: &[], path: path.to_owned() }),
            Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Float(_)
            | Kind::String(_)
            | Kind::Sequence(_) => Err(mismatch(node, go_type)),
        }
    }

    /// A field's value; null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'n Node> {
        let exact = |k: &Node| k.as_str() == Some(key);
        let loose = |k: &Node| k.as_str().is_some_and(|k| k.eq_ignore_ascii_case(key));
        let found = self.pairs.iter().rev().find(|(k, _)| exact(k));
        let found = found.or_else(|| self.pairs.iter().rev().find(|(k, _)| loose(k)))?;
        Some(&found.1).filter(|node| node.kind != Kind::Null)
    }

    fn target(&self, key: &str, go_type: &str) -> String {
        format!("Go struct field {}.{key} of type {go_type}", self.path)
    }

    /// A text field; left alone where absent.
    pub(super) fn text(&self, key: &str, into: &mut String) -> Result<(), Mismatch> {
        if let Some(node) = self.get(key) {
            *into = node.to_text().ok_or_else(|| mismatch(node, &self.target(key, "string")))?;
        }
        Ok(())
    }

    /// A boolean field.
    pub(super) fn boolean(&self, key: &str, into: &mut bool) -> Result<(), Mismatch> {
        if let Some(node) = self.get(key) {
            let Kind::Bool(value) = node.kind else { return Err(mismatch(node, &self.target(key, "bool"))) };
            *into = value;
        }
        Ok(())
    }

    /// The nodes of a list field.
    pub(super) fn list(&self, key: &str, go_type: &str) -> Result<Option<&'n [Node]>, Mismatch> {
        match self.get(key) {
            None => Ok(None),
            Some(node) => match &node.kind {
                Kind::Sequence(items) => Ok(Some(items)),
                Kind::Null
                | Kind::Bool(_)
                | Kind::Int(_)
                | Kind::Uint(_)
                | Kind::Float(_)
                | Kind::String(_)
                | Kind::Mapping(_) => Err(mismatch(node, &self.target(key, go_type))),
            },
        }
    }

    /// A list of texts.
    pub(super) fn texts(&self, key: &str, into: &mut Vec<String>) -> Result<(), Mismatch> {
        if let Some(items) = self.list(key, "[]string")? {
            *into = items
                .iter()
                .map(|item| match item.kind {
                    Kind::Null => Ok(String::new()),
                    _ => item.to_text().ok_or_else(|| mismatch(item, &self.target(key, "string"))),
                })
                .collect::<Result<_, _>>()?;
        }
        Ok(())
    }

    /// A map of texts.
    pub(super) fn text_map(
        &self,
        key: &str,
        into: &mut std::collections::BTreeMap<String, String>,
    ) -> Result<(), Mismatch> {
        let Some(node) = self.get(key) else { return Ok(()) };
        let Kind::Mapping(pairs) = &node.kind else {
            return Err(mismatch(node, &self.target(key, "map[string]string")));
        };
        for (name, value) in pairs {
            let text = match value.kind {
                Kind::Null => String::new(),
                _ => value.to_text().ok_or_else(|| mismatch(value, &self.target(key, "string")))?,
            };
            into.insert(name.to_text().unwrap_or_default(), text);
        }
        Ok(())
    }

    /// A list of anything.
    pub(super) fn values(&self, key: &str, into: &mut Vec<Value>) -> Result<(), Mismatch> {
        if let Some(items) = self.list(key, "[]interface {}")? {
            *into = items.iter().map(to_values).collect::<Result<_, _>>()?;
        }
        Ok(())
    }
}
