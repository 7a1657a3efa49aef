//! YAML as Helm and kubectl read and write it: sigs.k8s.io/yaml over go-yaml v2, so YAML 1.1 booleans and
//! octals, last duplicate key wins, keys become strings, long plain scalars are folded when written. Read
//! `compose` for reading, `resolve` for what a plain scalar means, `emit` for writing.

mod block;
mod block_flow;
mod block_scalar;
#[cfg(test)]
mod block_tests;
mod compose;
pub mod emit;
pub mod encoding;
mod events;
#[cfg(test)]
mod hostile;
mod json;
pub mod number;
mod order;
mod plain;
mod pretty;
mod reader;
mod resolve;
mod scalar;
mod scan;
mod scan_scalar;
mod scan_tag;

pub use compose::{documents, parse, parse_head};
pub use emit::Writer;
pub use json::{check, to_json, to_values};
pub use order::{key_order, sort_keys};
pub use pretty::to_string_pretty;
pub use resolve::{Scalar, resolve};

use serde_json::Value;
use std::fmt;

/// A value with the place where it stands (lines and columns count from 1).
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The line its first character stands on.
    pub line: u32,
    /// The column of its first character.
    pub column: u32,
    /// The kind of the node.
    pub kind: Kind,
}

/// The kind of a node, after resolution by YAML 1.1 rules.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `null`, `~` or nothing.
    Null,
    /// Also `yes`, `on`, `n`, …
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer beyond `i64`.
    Uint(u64),
    /// A floating point number.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// Pairs as written, merge keys expanded; of equal keys the last one counts.
    Mapping(Vec<(Node, Node)>),
}

impl Node {
    /// The value of a mapping's key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// A mapping's key and value; the key's place is where an error about the field should point.
    pub fn entry(&self, key: &str) -> Option<(&Node, &Node)> {
        match &self.kind {
            Kind::Mapping(pairs) => pairs
                .iter()
                .rev()
                .find(|(k, _)| match &k.kind {
                    Kind::String(text) => text == key,
                    // As JSON such a key is a text: `on:` is `true`, `1:` is `1`.
                    Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) => k.to_text().as_deref() == Some(key),
                    Kind::Null | Kind::Float(_) | Kind::Sequence(_) | Kind::Mapping(_) => false,
                })
                .map(|(k, v)| (k, v)),
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Float(_)
            | Kind::String(_)
            | Kind::Sequence(_) => None,
        }
    }

    /// The elements of a sequence; nothing for any other kind.
    pub fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::Sequence(items) => items,
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Float(_)
            | Kind::String(_)
            | Kind::Mapping(_) => &[],
        }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            Kind::Null
            | Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Float(_)
            | Kind::Sequence(_)
            | Kind::Mapping(_) => None,
        }
    }

    /// A scalar as a Go `string` field receives it (`1.10` gives `1.1`); `None` for null, lists and maps.
    pub fn to_text(&self) -> Option<String> {
        match &self.kind {
            Kind::String(text) => Some(text.clone()),
            Kind::Bool(value) => Some(value.to_string()),
            Kind::Int(value) => Some(value.to_string()),
            Kind::Uint(value) => Some(value.to_string()),
            Kind::Float(value) => Some(number::format_g(*value)),
            Kind::Null | Kind::Sequence(_) | Kind::Mapping(_) => None,
        }
    }
}

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The line, counted from 1; 0 where the parser does not know.
    pub line: u32,
    /// The column, counted from 1; 0 where the parser does not know.
    pub column: u32,
    /// The text go-yaml gives: `yaml: line 1: did not find expected ',' or ']'`.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error converting YAML to JSON: {}", self.message)
    }
}

impl std::error::Error for Error {}

impl Error {
    /// The words for a file of the user: its place, and the reason without the parser's own place and name.
    pub fn in_file(&self, file: impl fmt::Display) -> String {
        let why = self.message.strip_prefix("yaml: ").unwrap_or(&self.message);
        let own = why.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
        let why = own.filter(|(line, _)| line.parse::<u32>().is_ok()).map_or(why, |(_, why)| why);
        match (self.line, self.column) {
            (0, _) => format!("{file}: this is no YAML: {why}"),
            (line, 0) => format!("{file}:{line}: this is no YAML: {why}"),
            (line, column) => format!("{file}:{line}:{column}: this is no YAML: {why}"),
        }
    }
}

/// Reads the first document as a Kubernetes object is read: integers stay integers.
pub fn from_str(text: &str) -> Result<Value, Error> {
    match plain::read(text) {
        Some(value) => Ok(value),
        None => to_json(&parse(text)?),
    }
}

/// Returns true if a text may be read as JSON in place of YAML, which takes a tenth of the time: should it be
/// JSON at all, both mean the same.
pub fn is_plain_json(text: &str) -> bool {
    plain::means_the_same(text)
}

/// Reads the first document as Helm reads values: every number is a float64.
pub fn values_from_str(text: &str) -> Result<Value, Error> {
    to_values(&parse(text)?)
}

/// Writes a value as Helm's `toYaml` does, with the final newline.
pub fn to_string(value: &Value) -> String {
    let mut writer = Writer::new();
    emit::write_json(&mut writer, value);
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_in_a_file_of_the_user_has_its_place_once() {
        let told = |text: &str| from_str(text).unwrap_err().in_file("opdev.yaml");
        assert_eq!(
            told("a: 1\nb: c: d\n"),
            "opdev.yaml:2:5: this is no YAML: mapping values are not allowed in this context"
        );
        let error =
            Error { line: 0, column: 0, message: "yaml: control characters are not allowed".to_owned() };
        assert_eq!(error.in_file("x"), "x: this is no YAML: control characters are not allowed");
        assert!(told("a: [\n").starts_with("opdev.yaml:"), "{}", told("a: [\n"));
    }

    #[test]
    fn reads_yaml_1_1() {
        let text = "a: yes\nn: 017\nb: [0o17, 1_000, 1:30, 2020-01-01, ~]\nc: 1.0\nd: 08\n1: x\nb: 2\n";
        assert_eq!(
            from_str(text).unwrap(),
            json!({"a": true, "false": 15, "b": 2, "c": 1, "d": 8, "1": "x"})
        );
        let node = parse("x:\n  - p: 5\n").unwrap();
        let p = node.get("x").unwrap().items()[0].get("p").unwrap();
        assert_eq!((p.line, p.column), (2, 8));
    }

    /// Each line: a value, what Helm's `toYaml` gives for it, what `toYamlPretty` gives.
    #[test]
    fn writes_what_helm_writes() {
        let lines = include_str!("../../../tests/golden/yaml/to_yaml.jsonl").lines();
        let mut count = 0;
        for line in lines {
            let case: Value = serde_json::from_str(line).unwrap();
            let mut writer = Writer::new();
            emit::write_json(&mut writer, &case[0]);
            assert_eq!(writer.finish_for_template(), case[1].as_str().unwrap(), "{}", case[0]);
            assert_eq!(
                to_string_pretty(&case[0]).trim_end_matches('\n'),
                case[2].as_str().unwrap().trim_end_matches('\n')
            );
            count += 1;
        }
        assert!(count > 300, "{count} cases");
    }

    #[test]
    fn merges_in_go_yamls_order() {
        let text = "d: &d {a: 1, b: 2}\ne: {<<: *d, b: 3}\nf: {b: 3, <<: *d}\n";
        let value = from_str(text).unwrap();
        assert_eq!(value["e"], json!({"a": 1, "b": 3}));
        assert_eq!(value["f"], json!({"a": 1, "b": 2}));
    }

    #[test]
    fn block_scalars_may_end_with_the_text() {
        let value = |text: &str| from_str(text).unwrap()["a"].clone();
        for (text, wanted) in [
            ("a: |\n  x", "x"),
            ("a: |-\n  x", "x"),
            ("a: |+\n  x\n  ", "x\n"),
            ("a: |\n  x\n ", "x\n"),
            ("a: >\n  x\n  y", "x y"),
            ("a: |\n  x\n", "x\n"),
            ("a: |\n  x\n# c", "x\n"),
            ("a: |", ""),
            ("a: '|'", "|"),
        ] {
            assert_eq!(value(text), json!(wanted), "{text:?}");
        }
    }

    #[test]
    fn errors_speak_go_yaml() {
        let said = |text: &str| from_str(text).unwrap_err().message;
        assert_eq!(said("a: [1, 2\nb: c\n"), "yaml: line 1: did not find expected ',' or ']'");
        assert_eq!(said("a: *nope\n"), "yaml: unknown anchor 'nope' referenced");
        assert_eq!(said("a: .inf\n"), "json: unsupported value: +Inf");
    }

    #[test]
    fn refuses_alias_bombs() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for i in 1..9 {
            let row = vec![format!("*a{}", i - 1); 9].join(", ");
            text.push_str(&format!("a{i}: &a{i} [{row}]\n"));
        }
        assert_eq!(from_str(&text).unwrap_err().message, "yaml: document contains excessive aliasing");
    }
}
