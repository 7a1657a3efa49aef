//! `toYamlPretty`: go-yaml v3 with an indent of 2, lists indented inside maps, nothing folded.

use super::Writer;
use super::emit::write_json;
use serde_json::Value;

/// Writes a value as Helm's `toYamlPretty` does, with the final newline.
pub fn to_string_pretty(value: &Value) -> String {
    let mut writer = Writer::pretty();
    write_json(&mut writer, value);
    writer.finish()
}
