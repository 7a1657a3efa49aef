//! `--set`, `--set-string`, `--set-json` and `--set-file`: Helm's `strvals`.

use serde_json::{Map, Value};

const MAX_INDEX: usize = 65_536;
const MAX_NESTED: usize = 30;

/// What the text after `=` becomes.
type Reader<'r> = &'r mut dyn FnMut(&str) -> Result<Value, String>;

/// `--set a.b=1,c[0]=x,d={1,2}`: numbers, booleans and null by their look.
pub fn parse_set(into: &mut Value, text: &str) -> Result<(), String> {
    parse_with(into, text, &mut |text| Ok(typed(text)))
}

/// `--set-string`: every value is text.
pub fn parse_set_string(into: &mut Value, text: &str) -> Result<(), String> {
    parse_with(into, text, &mut |text| Ok(Value::String(text.to_owned())))
}

/// Any reader: `--set-file` hands one that reads files.
pub fn parse_with(into: &mut Value, text: &str, reader: Reader<'_>) -> Result<(), String> {
    let mut parser = Parser { rest: text.chars().collect(), at: 0, reader };
    let Value::Object(data) = into else { return Err("values are not a table".to_owned()) };
    loop {
        match parser.key(data, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Wrong(message)) => return Err(message),
        }
    }
}

/// `--set-json 'a=[1],b.c={"d":2}'`, or one JSON object.
pub fn parse_set_json(into: &mut Value, text: &str) -> Result<(), String> {
    let trimmed = text.trim();
    if trimmed.starts_with('{') {
        let value = json(trimmed)?;
        crate::merge_values::merge(into, value);
        return Ok(());
    }
    let mut rest = text;
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| format!("key {rest:?} has no value"))?;
        let mut stream = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = match stream.next() {
            Some(value) => floats(value.map_err(|error| error.to_string())?),
            None => Value::Null,
        };
        rest = after[stream.byte_offset()..].trim_start();
        if let Some(tail) = rest.strip_prefix(',') {
            rest = tail;
        } else if !rest.is_empty() {
            return Err(format!("unexpected data after the value of {key:?}: {rest:?}"));
        }
        parse_with(into, &format!("{key}=x"), &mut |_| Ok(value.clone()))?;
    }
    Ok(())
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map(floats).map_err(|error| error.to_string())
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
    Wrong(String),
}

fn wrong<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Wrong(message.into()))
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

    /// Text up to one of the stops, and which; `None` at the end. A backslash takes the next character as it is.
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
        (self.reader)(text).map_err(Stop::Wrong)
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
                    return wrong(format!(
                        "value name nested level is greater than maximum supported nested level of {MAX_NESTED}"
                    ));
                }
                let mut inner = match data.remove(&key) {
                    None | Some(Value::Null) => Map::new(),
                    Some(Value::Object(map)) => map,
                    Some(other) => return wrong(conversion(&other, "map[string]interface {}")),
                };
                let result = self.key(&mut inner, nested + 1);
                if inner.is_empty() && result.is_ok() {
                    return wrong(format!("key map {key:?} has no value"));
                }
                if !inner.is_empty() {
                    set(data, key, Value::Object(inner));
                }
                result
            }
            Some(_) => wrong(format!("key {key:?} has no value (cannot end with ,)")),
            None if key.is_empty() => Err(Stop::End),
            None => wrong(format!("key {key:?} has no value")),
        }
    }

    fn index(&mut self) -> Result<usize, Stop> {
        let (text, last) = self.until(&[']']);
        if last.is_none() {
            return wrong("error parsing index: EOF");
        }
        match text.parse::<i64>() {
            Ok(index) if index < 0 => wrong(format!("negative {index} index not allowed")),
            Ok(index) => Ok(usize::try_from(index).unwrap_or(usize::MAX)),
            Err(_) => wrong(format!("error parsing index: strconv.Atoi: parsing {text:?}: invalid syntax")),
        }
    }

    /// What follows `=`: a list in braces or one value.
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
                None => return wrong("list must terminate with '}'"),
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
            return wrong(format!("index of {index} is greater than maximum supported index of {MAX_INDEX}"));
        }
        let (text, last) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            return wrong(format!("unexpected data at end of array index: {text:?}"));
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

fn conversion(found: &Value, wanted: &str) -> String {
    let found = match found {
        Value::Null => "nil",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    format!("unable to parse key: interface conversion: interface {{}} is {found}, not {wanted}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed(text: &str) -> Result<Value, String> {
        let mut value = json!({});
        parse_set(&mut value, text).map(|()| value)
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
