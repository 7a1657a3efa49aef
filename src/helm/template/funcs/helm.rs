//! The functions Helm adds: includes, `tpl`, `required`, `fail`, `lookup`, and YAML in and out.

use opdev_object::yaml::{self, encoding};

use super::super::error::{ExecError, FuncError};
use super::super::exec;
use super::super::host::Ty;
use super::super::set::{TPL, without_no_value};
use super::super::text::{Str, kept_text};
use super::super::value::{Elem, List, Map, MapType, Value};
use super::{Call, Function, Outcome, bytes, fixed, string};

/// How often a template may be inside itself, as Helm counts.
const MAX_INCLUDES: u32 = 1000;

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("include", &[Ty::Str, Ty::Any], include),
    fixed("tpl", &[Ty::Str, Ty::Any], tpl),
    fixed("required", &[Ty::Str, Ty::Any], |_, args| match &args[1] {
        Value::Nil => Err(FuncError::failed(string(args, 0))),
        Value::Str(text) if text.is_empty() => Err(FuncError::failed(string(args, 0))),
        value => Ok(value.clone()),
    }),
    fixed("fail", &[Ty::Str], |_, args| Err(FuncError::failed(string(args, 0)))),
    fixed("lookup", &[Ty::Str, Ty::Str, Ty::Str, Ty::Str], lookup),
    fixed("getHostByName", &[Ty::Str], |call, args| {
        Ok(call.context.outside().resolve_host(&string(args, 0)).into())
    }),
    fixed("toYaml", &[Ty::Any], |_, args| Ok(to_yaml(&args[0]).into())),
    fixed("mustToYaml", &[Ty::Any], |_, args| Ok(to_yaml(&args[0]).into())),
    fixed("toYamlPretty", &[Ty::Any], |_, args| {
        let mut writer = yaml::Writer::pretty();
        write(&mut writer, &args[0], true);
        Ok(trimmed(writer.finish()).into())
    }),
    fixed("fromYaml", &[Ty::Str], |_, args| Ok(from_yaml(bytes(args, 0)))),
    fixed("fromYamlArray", &[Ty::Str], |_, args| Ok(from_yaml_array(bytes(args, 0)))),
];

fn include(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let name: &Str = args[0].as_str().ok_or("include without a name")?;
    match call.context.included.get_mut(&**name) {
        Some(count) if *count > MAX_INCLUDES => {
            return Err(FuncError::new(format!(
                "rendering template has a nested reference name: {name}: unable to execute template"
            )));
        }
        Some(count) => *count += 1,
        None => {
            call.context.included.insert(name.to_vec().into(), 1);
        }
    }
    let result = exec::execute(call.set, name, args[1].clone(), call.context);
    if let Some(count) = call.context.included.get_mut(&**name) {
        *count -= 1;
    }
    match result {
        Ok(text) => Ok(text.into()),
        Err(error) => Err(FuncError::wrap("", error)),
    }
}

fn tpl(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let source = args[0].as_str().cloned().unwrap_or_default();
    if !source.windows(2).any(|w| w == b"{{") {
        return Ok(without_no_value(source.to_vec()).into());
    }
    let shown = || opdev_object::go::quote::quote_bytes(&source);
    let text = kept_text(&source);
    let (set, tree) = call.set.overlay(TPL, &text).map_err(|error| {
        FuncError::wrap(format!("cannot parse template {}: ", shown()), ExecError::plain(error.to_string()))
    })?;
    let Some(tree) = tree else { return Ok(Value::str("")) };
    match exec::run(&set, &tree, args[1].clone(), call.context) {
        Ok(text) => Ok(without_no_value(text).into()),
        Err(error) => {
            Err(FuncError::wrap(format!("error during tpl function execution for {}: ", shown()), error))
        }
    }
}

fn lookup(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let env = call.context.outside();
    let found = env.lookup(&string(args, 0), &string(args, 1), &string(args, 2), &string(args, 3));
    match found {
        Ok(serde_json::Value::Null) => Ok(Value::Map(Map::new())),
        Ok(object) => Ok(Value::from_json(&object)),
        Err(error) => Err(error),
    }
}

/// Helm's `toYaml`: without the last line end; nothing when the value has no YAML form.
pub(in super::super) fn to_yaml(value: &Value) -> String {
    if !super::json::is_finite(value) {
        return String::new();
    }
    let mut writer = yaml::Writer::new();
    write(&mut writer, value, false);
    writer.finish_for_template()
}

fn trimmed(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
    }
    text
}

fn write(writer: &mut yaml::Writer, value: &Value, pretty: bool) {
    match value {
        Value::Nil => writer.null(),
        Value::Bool(b) => writer.bool(*b),
        Value::Int(n) | Value::Int64(n) => writer.int(*n),
        Value::Uint(_, n) => writer.uint(*n),
        Value::Float(f) if pretty => writer.plain_float(*f),
        Value::Float(f) => writer.float(*f),
        Value::Str(text) => writer.string(&text.text()),
        Value::List(list) if list.is_nil() && !pretty => writer.null(),
        Value::List(list) if list.elem() == Elem::Byte && !pretty => {
            if let serde_json::Value::String(text) = value.to_json() {
                writer.string(&text);
            }
        }
        Value::List(list) => {
            writer.start_sequence(list.items().is_empty());
            for item in list.items() {
                write(writer, item, pretty);
            }
            writer.end();
        }
        Value::Map(map) if map.is_nil() && !pretty => writer.null(),
        Value::Map(map) => {
            writer.start_mapping(map.is_empty());
            let entries = map.snapshot();
            let mut pairs: Vec<_> = entries.iter().map(|(key, value)| (key.text(), value)).collect();
            yaml::sort_keys(&mut pairs, pretty, |(key, _)| key);
            for (key, value) in pairs {
                writer.key(&key);
                write(writer, value, pretty);
            }
            writer.end();
        }
        Value::Host(host) if pretty && !host.fields().is_empty() && host.text().is_none() => {
            writer.start_mapping(false);
            let exported = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
            for (name, value) in host.fields().into_iter().filter(|(name, _)| exported(name)) {
                writer.key(&name.to_ascii_lowercase());
                write(writer, &value, pretty);
            }
            writer.end();
        }
        Value::Host(host) if pretty && host.type_name() == "time.Time" => match host.to_json() {
            serde_json::Value::String(text) => writer.plain(&text),
            other => write(writer, &Value::from_json(&other), pretty),
        },
        Value::Host(host) => write(writer, &Value::from_json(&host.to_json()), pretty),
    }
}

const DECODING: &str = "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal";

fn json_kind(read: &Value) -> &'static str {
    match read {
        Value::Nil => "null",
        Value::Bool(_) => "bool",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) | Value::Host(_) => "object",
        Value::Int(_) | Value::Int64(_) | Value::Uint(..) | Value::Float(_) => "number",
    }
}

/// The value of everyday YAML, without a tree of JSON in between; nothing where something is to be told of
/// it.
fn everyday(node: &yaml::Node) -> Option<Value> {
    use yaml::Kind;
    Some(match &node.kind {
        Kind::Null => Value::Nil,
        Kind::Bool(value) => Value::Bool(*value),
        Kind::Int(value) => Value::Float(*value as f64),
        Kind::Uint(value) => Value::Float(*value as f64),
        Kind::Float(value) => Value::Float(value.is_finite().then_some(*value)?),
        Kind::String(text) => Value::str(text.as_str()),
        Kind::Sequence(items) => Value::list(items.iter().map(everyday).collect::<Option<_>>()?),
        Kind::Mapping(pairs) => {
            let entries = pairs.iter().map(|(key, value)| Some((Str::from(key.as_str()?), everyday(value)?)));
            Value::Map(Map::typed(MapType::Any, entries.collect::<Option<_>>()?))
        }
    })
}

/// The value of a text of YAML, with every number a float64.
///
/// # Errors
/// The words of Go's library.
fn read_yaml(bytes: &[u8]) -> Result<Value, String> {
    let text = encoding::text(bytes).map_err(|error| format!("error converting YAML to JSON: {error}"))?;
    let node = yaml::parse(&text).map_err(|error| error.to_string())?;
    match everyday(&node) {
        Some(value) => Ok(value),
        None => {
            let json = yaml::to_values(&node).map_err(|error| error.to_string())?;
            Ok(Value::from_json_floats(&json))
        }
    }
}

fn from_yaml(text: &[u8]) -> Value {
    let error = match read_yaml(text) {
        Ok(Value::Nil) => return Value::Map(Map::new()),
        Ok(map @ Value::Map(_)) => return map,
        Ok(other) => {
            format!("{DECODING} {} into Go value of type map[string]interface {{}}", json_kind(&other))
        }
        Err(error) => error,
    };
    Value::Map(Map::from_entries([("Error", Value::from(error))]))
}

fn from_yaml_array(text: &[u8]) -> Value {
    let error = match read_yaml(text) {
        Ok(Value::Nil) => return Value::List(List::new(Vec::new())),
        Ok(list @ Value::List(_)) => return list,
        Ok(other) => format!("{DECODING} {} into Go value of type []interface {{}}", json_kind(&other)),
        Err(error) => error,
    };
    Value::list(vec![error.into()])
}
