//! `toToml`, as BurntSushi/toml writes: direct values first, then tables indented by depth. Reading is in
//! `fromtoml`.

use super::super::context::Compat;
use super::super::error::FuncError;
use super::super::float;
use super::super::host::Ty;
use super::super::value::{Map, Value};
use super::{Function, fixed, fromtoml, string};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("toToml", &[Ty::Any], |call, args| {
        let written = encode(&args[0], call.context.compat);
        if args[0].is_nil() {
            return Ok(written?.into());
        }
        Ok(written.unwrap_or_else(|error| error.to_string()).into())
    }),
    fixed("mustToToml", &[Ty::Any], |call, args| Ok(encode(&args[0], call.context.compat)?.into())),
    fixed("fromToml", &[Ty::Str], |_, args| Ok(fromtoml::parse(&string(args, 0)))),
];

fn encode(value: &Value, compat: Compat) -> Result<String, FuncError> {
    let mut encoder = Encoder { out: String::new(), compat };
    match plain(value) {
        Value::Map(map) => encoder.entries(&map, &mut Vec::new())?,
        Value::Nil => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        other if is_table_array(&other)? => {
            return Err("toml: top-level values must be Go maps or structs".into());
        }
        other => encoder.element(&other)?,
    }
    Ok(encoder.out)
}

/// Hosts as their JSON.
fn plain(value: &Value) -> Value {
    match value {
        Value::Host(host) => match host.underlying() {
            Some(inner) => inner,
            None => Value::from_json(&host.to_json()),
        },
        other => other.clone(),
    }
}

struct Encoder {
    out: String,
    compat: Compat,
}

fn is_table_array(value: &Value) -> Result<bool, FuncError> {
    let Some(list) = value.as_list().filter(|l| !l.items().is_empty()) else { return Ok(false) };
    if list.items().iter().any(Value::is_nil) {
        return Err("toml: cannot encode array with nil element".into());
    }
    Ok(list.items().iter().all(|item| matches!(plain(item), Value::Map(_))))
}

fn key_text(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { key.to_owned() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\0'..='\u{1f}' | '\u{7f}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Encoder {
    fn newline(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn header(&mut self, path: &[String], array: bool) {
        let (open, close) = if array { ("[[", "]]") } else { ("[", "]") };
        self.out.push_str(&"  ".repeat(path.len() - 1));
        self.out.push_str(open);
        self.out.push_str(&path.join("."));
        self.out.push_str(close);
        self.out.push('\n');
    }

    fn entries(&mut self, map: &Map, path: &mut Vec<String>) -> Result<(), FuncError> {
        let (mut direct, mut tables) = (Vec::new(), Vec::new());
        for (key, value) in map.snapshot() {
            let value = plain(&value);
            if matches!(value, Value::Map(_)) || is_table_array(&value)? {
                tables.push((key, value));
            } else if !value.is_nil() {
                direct.push((key, value));
            }
        }
        for (key, value) in direct {
            self.out.push_str(&"  ".repeat(path.len()));
            self.out.push_str(&key_text(&key.text()));
            self.out.push_str(" = ");
            self.element(&value)?;
            self.out.push('\n');
        }
        for (key, value) in tables {
            path.push(key_text(&key.text()));
            if let Value::Map(map) = &value {
                if path.len() == 1 {
                    self.newline();
                }
                self.header(path, false);
                self.entries(map, path)?;
            } else if let Some(list) = value.as_list() {
                for item in list.items() {
                    if let Value::Map(map) = plain(item) {
                        self.newline();
                        self.header(path, true);
                        self.entries(&map, path)?;
                    }
                }
            }
            path.pop();
        }
        Ok(())
    }

    fn element(&mut self, value: &Value) -> Result<(), FuncError> {
        match plain(value) {
            Value::Str(text) => self.out.push_str(&quoted(&text.text())),
            Value::Float(f) => {
                let text = self.float(f);
                self.out.push_str(&text);
            }
            Value::List(list) => {
                is_table_array(&Value::List(list.clone()))?;
                self.out.push('[');
                for (i, item) in list.items().iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.element(item)?;
                }
                self.out.push(']');
            }
            Value::Map(map) => {
                self.out.push('{');
                let entries: Vec<_> = map.snapshot().into_iter().filter(|(_, v)| !v.is_nil()).collect();
                let (tables, direct): (Vec<_>, Vec<_>) =
                    entries.into_iter().partition(|(_, v)| matches!(plain(v), Value::Map(_)));
                for (i, (key, item)) in direct.into_iter().chain(tables).enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.out.push_str(&key_text(&key.text()));
                    self.out.push_str(" = ");
                    self.element(&item)?;
                }
                self.out.push('}');
            }
            Value::Nil => return Err("toml: cannot encode array with nil element".into()),
            other => self.out.push_str(&String::from_utf8_lossy(&super::super::print::sprint(&other))),
        }
        Ok(())
    }

    fn float(&self, f: f64) -> String {
        if f.is_nan() {
            return "nan".to_owned();
        }
        if f.is_infinite() {
            return if f > 0.0 { "inf" } else { "-inf" }.to_owned();
        }
        let form = if self.compat == Compat::V3_19 { b'f' } else { b'g' };
        let text = float::format(f, form, None);
        if text.contains(['.', 'e']) { text } else { text + ".0" }
    }
}
