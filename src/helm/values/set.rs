//! `--set`, `--set-string`, `--set-json` and `--set-file`: Helm's `strvals`.

pub use super::set_error::SetError;

use serde_json::{Map, Value};
use std::error::Error;

pub(super) const MAX_INDEX: usize = 65_536;
pub(super) const MAX_NESTED: usize = 30;

/// The sort of value that the text after `=` becomes.
type Reader<'r> = &'r mut dyn FnMut(&str) -> Result<Value, Box<dyn Error + Send + Sync>>;

/// `--set a.b=1,c[0]=x,d={1,2}`: numbers, booleans and null by their look.
///
/// # Errors
/// The key, index or value that cannot be read. What stands before it is set already.
pub fn parse_set(into: &mut Value, text: &str) -> Result<(), SetError> {
    parse_with(into, text, &mut |text| Ok(typed(text)))
}

/// `--set-string`: every value is text.
///
/// # Errors
/// The key, index or value that cannot be read. What stands before it is set already.
pub fn parse_set_string(into: &mut Value, text: &str) -> Result<(), SetError> {
    parse_with(into, text, &mut |text| Ok(Value::String(text.to_owned())))
}

/// Any reader: `--set-file` hands one that reads files.
///
/// # Errors
/// The key, index or value that cannot be read. What stands before it is set already.
pub fn parse_with(into: &mut Value, text: &str, reader: Reader<'_>) -> Result<(), SetError> {
    let mut parser = Parser { rest: text.chars().collect(), at: 0, reader };
    let Value::Object(data) = into else { return Err(SetError::ValuesNotAMap) };
    loop {
        match parser.key(data, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Wrong(error)) => return Err(error),
        }
    }
}

/// `--set-json 'a=[1],b.c={"d":2}'`, or one JSON object.
///
/// # Errors
/// The key, index or value that cannot be read. What stands before it is set already.
pub fn parse_set_json(into: &mut Value, text: &str) -> Result<(), SetError> {
    let trimmed = text.trim();
    if trimmed.starts_with('{') {
        let value = floats(serde_json::from_str(trimmed)?);
        crate::merge_values::merge(into, value);
        return Ok(());
    }
    let mut rest = text;
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| no_value(rest, false))?;
        let mut stream = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = match stream.next() {
            Some(value) => floats(value?),
            None => Value::Null,
        };
        rest = after[stream.byte_offset()..].trim_start();
        if let Some(tail) = rest.strip_prefix(',') {
            rest = tail;
        } else if !rest.is_empty() {
            return Err(SetError::AfterJson { key: key.to_owned(), text: rest.to_owned() });
        }
        parse_with(into, &format!("{key}=x"), &mut |_| Ok(value.clone()))?;
    }
    Ok(())
}

fn no_value(key: &str, comma: bool) -> SetError {
    SetError::NoValue { key: key.to_owned(), comma }
}

fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => number
            .as_f64()
            .and_then(serde_json::Number::from_f64)
            .map_or(Value::Number(number), Value::Number),
        Value::Array(items) => Value::Array(items.into_iter().map(floats).collect()),
        Value::Object(map) => Value::Object(map.into_iter().map(|(k, v)| (k, floats(v))).collect()),
        other => other,
    }
}

fn typed(text: &str) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" => return Value::Null,
        "0" => return Value::from(0),
        _ => {}
    }
    // A leading zero marks text, such as a version hash.
    if !text.starts_with('0')
        && let Ok(number) = text.parse::<i64>()
    {
        return Value::from(number);
    }
    Value::String(text.to_owned())
}

enum Stop {
    End,
    Wrong(SetError),
}

fn wrong<T>(error: SetError) -> Result<T, Stop> {
    Err(Stop::Wrong(error))
}

struct Parser<'r> {
    rest: Vec<char>,
    at: usize,
    reader: Reader<'r>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.get(self.at).copied();
        self.at += 1;
        c
    }

    /// Text up to one of the stops, and which; `None` at the end. A backslash takes the next character as it
    /// is.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' {
                match self.next() {
                    Some(c) => text.push(c),
                    None => return (text, None),
                }
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    fn read(&mut self, text: &str) -> Result<Value, Stop> {
        (self.reader)(text).map_err(|error| Stop::Wrong(SetError::Value(error)))
    }

    fn key(&mut self, data: &mut Map<String, Value>, nested: usize) -> Result<(), Stop> {
        let (key, last) = self.until(&['=', '[', ',', '.']);
        match last {
            Some('[') => {
                let index = self.index()?;
                let mut list = match data.remove(&key) {
                    None | Some(Value::Null) => Vec::new(),
                    Some(Value::Array(list)) => list,
                    Some(other) => return wrong(conversion(&other, "[]interface {}")),
                };
                let result = self.item(&mut list, index, nested);
                set(data, key, Value::Array(list));
                result
            }
            Some('=') => match self.value() {
                Ok(value) => {
                    set(data, key, value);
                    Ok(())
                }
                Err(Stop::End) => {
                    set(data, key, Value::String(String::new()));
                    Err(Stop::End)
                }
                Err(stop) => Err(stop),
            },
            Some('.') => {
                if nested + 1 > MAX_NESTED {
                    return wrong(SetError::TooDeep);
                }
                let mut inner = match data.remove(&key) {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(map)) => map,
                    Some(other) => return wrong(conversion(&other, "map[string]interface {}")),
                };
                let result = self.key(&mut inner, nested + 1);
                if inner.is_empty() && result.is_ok() {
                    return wrong(SetError::EmptyMap { key });
                }
                if !inner.is_empty() {
                    set(data, key, Value::Object(inner));
                }
                result
            }
            Some(_) => wrong(no_value(&key, true)),
            None if key.is_empty() => Err(Stop::End),
            None => wrong(no_value(&key, false)),
        }
    }

    fn index(&mut self) -> Result<usize, Stop> {
        let (text, last) = self.until(&[']']);
        if last.is_none() {
            return wrong(SetError::IndexWithoutEnd);
        }
        match text.parse::<i64>() {
            Ok(index) if index < 0 => wrong(SetError::NegativeIndex { index }),
            Ok(index) => Ok(usize::try_from(index).unwrap_or(usize::MAX)),
            Err(_) => wrong(SetError::IndexNotANumber { text }),
        }
    }

    /// The value after `=`: a list in braces or one value.
    fn value(&mut self) -> Result<Value, Stop> {
        match self.rest.get(self.at) {
            None => Err(Stop::End),
            Some('{') => {
                self.at += 1;
                self.list()
            }
            Some(_) => {
                let (text, _) = self.until(&[',']);
                self.read(&text)
            }
        }
    }

    fn list(&mut self) -> Result<Value, Stop> {
        let mut items = Vec::new();
        loop {
            let (text, last) = self.until(&[',', '}']);
            match last {
                None => return wrong(SetError::ListWithoutEnd),
                Some('}') => {
                    if self.rest.get(self.at) == Some(&',') {
                        self.at += 1;
                    }
                    items.push(self.read(&text)?);
                    return Ok(Value::Array(items));
                }
                Some(_) => items.push(self.read(&text)?),
            }
        }
    }

    fn item(&mut self, list: &mut Vec<Value>, index: usize, nested: usize) -> Result<(), Stop> {
        if index > MAX_INDEX {
            return wrong(SetError::IndexTooLarge { index });
        }
        let (text, last) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return wrong(SetError::AfterIndex { text });
        }
        if list.len() <= index && last.is_some() {
            list.resize(index + 1, Value::Null);
        }
        match last {
            None => Err(Stop::End),
            Some('=') => match self.value() {
                Ok(value) => {
                    list[index] = value;
                    Ok(())
                }
                Err(Stop::End) => {
                    list[index] = Value::String(String::new());
                    Ok(())
                }
                Err(stop) => Err(stop),
            },
            Some('[') => {
                let next = self.index()?;
                let mut inner = match list[index].take() {
                    Value::Array(inner) => inner,
                    Value::Null => Vec::new(),
                    other => return wrong(conversion(&other, "[]interface {}")),
                };
                let result = self.item(&mut inner, next, nested);
                list[index] = Value::Array(inner);
                result
            }
            Some(_) => {
                let mut inner = match list[index].take() {
                    Value::Object(inner) => inner,
                    _ => Map::new(),
                };
                let result = self.key(&mut inner, nested);
                list[index] = Value::Object(inner);
                result
            }
        }
    }
}

fn set(data: &mut Map<String, Value>, key: String, value: Value) {
    if !key.is_empty() {
        data.insert(key, value);
    }
}

fn conversion(found: &Value, wanted: &'static str) -> SetError {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    SetError::WrongType { found, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(text: &str) -> Result<Value, String> {
        let mut value = json!({});
        parse_set(&mut value, text).map(|()| value).map_err(|error| error.to_string())
    }

    #[test]
    fn reads_what_helm_reads() {
        let cases = [
            (
                "a=1,b=x,c=true,d=null,e=0,f=007,g=1.5",
                json!({"a": 1, "b": "x", "c": true, "d": null, "e": 0, "f": "007", "g": "1.5"}),
            ),
            ("a.b.c=1,a.b.d=2", json!({"a": {"b": {"c": 1, "d": 2}}})),
            ("a={1,x},b=2", json!({"a": [1, "x"], "b": 2})),
            ("a[0].b=1,a[1]=z", json!({"a": [{"b": 1}, "z"]})),
            ("a[2]=1", json!({"a": [null, null, 1]})),
            ("a[0][1]=1", json!({"a": [[null, 1]]})),
            (r"a\.b=1,c=x\,y", json!({"a.b": 1, "c": "x,y"})),
            ("a=", json!({"a": ""})),
            ("a={}", json!({"a": [""]})),
        ];
        for (text, wanted) in cases {
            assert_eq!(parsed(text), Ok(wanted), "{text}");
        }
        assert_eq!(parsed("a"), Err("key \"a\" has no value".to_owned()));
        assert_eq!(parsed("a={1"), Err("list must terminate with '}'".to_owned()));
        let mut value = json!({"a": "x"});
        assert!(parse_set(&mut value, "a.b=1").is_err());
    }

    #[test]
    fn reads_json() {
        let mut value = json!({});
        parse_set_json(&mut value, r#"a={"b":[1]},c.d="x""#).unwrap();
        assert_eq!(value, json!({"a": {"b": [1.0]}, "c": {"d": "x"}}));
    }
}
