//! JSON as Go's encoding/json writes and reads it, with its escapes, number forms and error texts.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use super::super::context::Compat;
use super::super::error::FuncError;
use super::super::float;
use super::super::go_error::GoError;
use super::super::host::Ty;
use super::super::value::{Elem, List, Map, Value};
use super::{Function, fixed, string};
use opdev_object::go::quote::decode;

pub(super) const FUNCTIONS: &[Function] =
    &[
        fixed("toJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Compact, call.context.compat).unwrap_or_default().into())
        }),
        fixed("mustToJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Compact, call.context.compat)?.into())
        }),
        fixed("toPrettyJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Pretty, call.context.compat).unwrap_or_default().into())
        }),
        fixed("mustToPrettyJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Pretty, call.context.compat)?.into())
        }),
        fixed("toRawJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Raw, call.context.compat)?.into())
        }),
        fixed("mustToRawJson", &[Ty::Any], |call, args| {
            Ok(encode(&args[0], Style::Raw, call.context.compat)?.into())
        }),
        fixed("mustFromJson", &[Ty::Str], |_, args| Ok(parse(&string(args, 0))?)),
        fixed("fromJson", &[Ty::Str], |_, args| {
            let error = match parse(&string(args, 0)) {
                Ok(map @ Value::Map(_)) => return Ok(map),
                Ok(Value::Nil) => return Ok(Value::Map(Map::nil())),
                Ok(other) => cannot(&other, "map[string]interface {}"),
                Err(error) => told(&string(args, 0), &error, "map[string]interface {}"),
            };
            Ok(Value::Map(Map::from_entries([("Error", Value::from(error))])))
        }),
        fixed("fromJsonArray", &[Ty::Str], |_, args| {
            let error = match parse(&string(args, 0)) {
                Ok(list @ Value::List(_)) => return Ok(list),
                Ok(Value::Nil) => return Ok(Value::List(List::nil(Elem::Any))),
                Ok(other) => cannot(&other, "[]interface {}"),
                Err(error) => told(&string(args, 0), &error, "[]interface {}"),
            };
            Ok(Value::list(vec![error.into()]))
        }),
    ];

/// A number beyond float64 is first of all no map or list.
fn told(text: &str, error: &JsonError, target: &str) -> String {
    let number = text.trim_start().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    if number && matches!(error, JsonError::NumberOutOfRange { .. }) {
        return format!("json: cannot unmarshal number into Go value of type {target}");
    }
    error.to_string()
}

fn cannot(value: &Value, target: &str) -> String {
    let kind = match value {
        Value::Bool(_) => "bool",
        Value::Str(_) => "string",
        Value::List(_) => "array",
        Value::Map(_) => "object",
        _ => "number",
    };
    format!("json: cannot unmarshal {kind} into Go value of type {target}")
}

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Compact,
    /// two spaces
    Pretty,
    /// `<`, `>` and `&` as they are
    Raw,
}

/// Deeper values are taken to hold themselves.
const MAX_DEPTH: usize = 500;

/// Returns true if the value has a JSON form: every number is finite, and no map holds itself.
pub(super) fn is_finite(value: &Value) -> bool {
    finite_within(value, MAX_DEPTH)
}

fn finite_within(value: &Value, depth: usize) -> bool {
    match value {
        Value::Float(f) => f.is_finite(),
        Value::List(list) => depth > 0 && list.items().iter().all(|v| finite_within(v, depth - 1)),
        Value::Map(map) => depth > 0 && map.read().values().all(|v| finite_within(v, depth - 1)),
        _ => true,
    }
}

/// Go's json.Marshal. Helm 4.3 is built with Go 1.27, which writes U+FFFD for a byte that is no text. Older
/// ones write its escape.
fn encode(value: &Value, style: Style, compat: Compat) -> Result<String, FuncError> {
    let no_text = if compat == Compat::V4 { "\u{fffd}" } else { "\\ufffd" };
    let mut encoder = Encoder { out: String::new(), style, depth: 0, order: &[], no_text };
    encoder.value(value)?;
    Ok(encoder.out)
}

/// A number as Go's JSON writes it.
pub(super) fn number(f: f64) -> String {
    let abs = f.abs();
    if abs != 0.0 && !(1e-6..1e21).contains(&abs) {
        let text = float::format(f, b'e', None);
        return text.replace("e-0", "e-").replace("e+0", "e+");
    }
    float::format(f, b'f', None)
}

struct Encoder {
    out: String,
    style: Style,
    depth: usize,
    /// The declared order of the fields of the struct being written.
    order: &'static [&'static str],
    /// Stands for a byte that is no text.
    no_text: &'static str,
}

impl Encoder {
    fn line(&mut self) {
        if self.style == Style::Pretty {
            self.out.push('\n');
            for _ in 0..self.depth {
                self.out.push_str("  ");
            }
        }
    }

    fn value(&mut self, value: &Value) -> Result<(), FuncError> {
        if self.depth > MAX_DEPTH {
            let ty = value.type_name();
            return Err(FuncError::new(format!("json: unsupported value: encountered a cycle via {ty}")));
        }
        match value {
            Value::Nil => self.out.push_str("null"),
            Value::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Value::Int(n) | Value::Int64(n) => {
                let _ = write!(self.out, "{n}");
            }
            Value::Uint(_, n) => {
                let _ = write!(self.out, "{n}");
            }
            Value::Float(f) if f.is_finite() => self.out.push_str(&number(*f)),
            Value::Float(f) => {
                return Err(FuncError::new(format!("json: unsupported value: {}", float::shortest(*f))));
            }
            Value::Str(text) => self.string(text),
            Value::List(list) => self.list(list)?,
            Value::Map(map) if map.is_nil() => self.out.push_str("null"),
            Value::Map(map) if self.order.is_empty() => self.entries(&map.snapshot())?,
            Value::Map(map) => {
                let mut entries = map.snapshot();
                let place = |key: &[u8]| self.order.iter().position(|k| k.as_bytes() == key);
                entries.sort_by_key(|(key, _)| place(key).unwrap_or(usize::MAX));
                self.entries(&entries)?;
            }
            Value::Host(host) => {
                let json = Value::from_json(&host.to_json());
                let outer = std::mem::replace(&mut self.order, host.json_order());
                self.value(&json)?;
                self.order = outer;
            }
        }
        Ok(())
    }

    fn list(&mut self, list: &List) -> Result<(), FuncError> {
        if list.is_nil() || list.elem() == Elem::Byte {
            match Value::List(list.clone()).to_json() {
                serde_json::Value::String(text) => self.string(text.as_bytes()),
                _ => self.out.push_str("null"),
            }
            return Ok(());
        }
        self.out.push('[');
        self.depth += 1;
        for (i, item) in list.items().iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.line();
            self.value(item)?;
        }
        self.depth -= 1;
        if !list.items().is_empty() {
            self.line();
        }
        self.out.push(']');
        Ok(())
    }

    fn entries(&mut self, entries: &[(super::super::text::Str, Value)]) -> Result<(), FuncError> {
        self.out.push('{');
        self.depth += 1;
        for (i, (key, item)) in entries.iter().enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            self.line();
            self.string(key);
            self.out.push_str(if self.style == Style::Pretty { ": " } else { ":" });
            self.value(item)?;
        }
        self.depth -= 1;
        if !entries.is_empty() {
            self.line();
        }
        self.out.push('}');
        Ok(())
    }

    fn string(&mut self, mut text: &[u8]) {
        self.out.push('"');
        while !text.is_empty() {
            let (c, width) = decode(text);
            match c {
                None => self.out.push_str(self.no_text),
                Some('"') => self.out.push_str("\\\""),
                Some('\\') => self.out.push_str("\\\\"),
                Some('\n') => self.out.push_str("\\n"),
                Some('\r') => self.out.push_str("\\r"),
                Some('\t') => self.out.push_str("\\t"),
                Some('\u{8}') => self.out.push_str("\\b"),
                Some('\u{c}') => self.out.push_str("\\f"),
                Some(c @ ('\0'..='\u{1f}' | '\u{2028}' | '\u{2029}')) => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(c));
                }
                Some(c @ ('<' | '>' | '&')) if self.style != Style::Raw => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(c));
                }
                Some(c) => self.out.push(c),
            }
            text = &text[width..];
        }
        self.out.push('"');
    }
}

/// Go's json.Unmarshal into `interface {}`.
pub(super) fn parse(text: &str) -> Result<Value, JsonError> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0 };
    parser.space();
    let value = parser.value()?;
    parser.space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.invalid("after top-level value")),
    }
}

/// Why a text is not JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum JsonError {
    /// The text ends before a value does.
    End,
    /// A byte does not fit.
    Character {
        /// The byte; a space at the end of the text within a literal or number.
        byte: u8,
        /// Where in the grammar it stands.
        context: Cow<'static, str>,
    },
    /// Values are nested too deep.
    Depth,
    /// A number does not fit into 64 bits.
    NumberOutOfRange {
        /// The number as it is written.
        number: String,
    },
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonError::End => f.write_str("unexpected end of JSON input"),
            JsonError::Character { byte, context } => {
                f.write_str(&opdev_object::go::quote::invalid_character(*byte, context))
            }
            JsonError::Depth => f.write_str("exceeded max depth"),
            JsonError::NumberOutOfRange { number } => {
                write!(f, "json: cannot unmarshal number {number} into Go value of type float64")
            }
        }
    }
}

impl GoError for JsonError {}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn invalid(&self, context: &'static str) -> JsonError {
        let wrong = |byte| JsonError::Character { byte, context: context.into() };
        self.peek().map_or(JsonError::End, wrong)
    }

    /// As `invalid`, in a literal or number: there Go takes the end for a space.
    fn unfinished(&self, context: impl Into<Cow<'static, str>>) -> JsonError {
        JsonError::Character { byte: self.peek().unwrap_or(b' '), context: context.into() }
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        self.depth += 1;
        if self.depth > 500 {
            return Err(JsonError::Depth);
        }
        let value = match self.peek() {
            None => return Err(JsonError::End),
            Some(b'{') => self.object()?,
            Some(b'[') => self.array()?,
            Some(b'"') => Value::str(self.string()?),
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Nil)?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(_) => return Err(self.invalid("looking for beginning of value")),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self, word: &'static str, value: Value) -> Result<Value, JsonError> {
        for expected in word.bytes() {
            if self.peek() != Some(expected) {
                let wanted = char::from(expected);
                return Err(self.unfinished(format!("in literal {word} (expecting '{wanted}')")));
            }
            self.at += 1;
        }
        Ok(value)
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if !self.digits() {
            return Err(self.unfinished("in numeric literal"));
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return Err(self.unfinished("after decimal point in numeric literal"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.digits() {
                return Err(self.unfinished("in exponent of numeric literal"));
            }
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("0");
        match text.parse::<f64>() {
            Ok(f) if f.is_finite() => Ok(Value::Float(f)),
            _ => Err(JsonError::NumberOutOfRange { number: text.to_owned() }),
        }
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        self.at += 1;
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::list(items));
        }
        loop {
            self.space();
            items.push(self.value()?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.invalid("after array element")),
            }
        }
        self.at += 1;
        Ok(Value::list(items))
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        self.at += 1;
        let map = Map::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Map(map));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return Err(self.invalid("looking for beginning of object key string"));
            }
            let key = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.invalid("after object key"));
            }
            self.at += 1;
            self.space();
            let value = self.value()?;
            map.insert(key.into(), value);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.invalid("after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(Value::Map(map))
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let Some(byte) = self.peek() else { return Err(JsonError::End) };
            match byte {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => {
                    self.at += 1;
                    self.escape(&mut out)?;
                }
                0..0x20 => return Err(self.invalid("in string literal")),
                _ => {
                    let (c, width) = decode(&self.text[self.at..]);
                    out.push(c.unwrap_or('\u{fffd}'));
                    self.at += width;
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<(), JsonError> {
        let Some(byte) = self.peek() else { return Err(JsonError::End) };
        let c = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                let first = self.hex()?;
                let low = self.text[self.at..].starts_with(b"\\u");
                if (0xd800..0xdc00).contains(&first) && low {
                    let back = self.at;
                    self.at += 2;
                    let second = self.hex()?;
                    if (0xdc00..0xe000).contains(&second) {
                        let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        return Ok(());
                    }
                    self.at = back;
                }
                out.push(char::from_u32(first).unwrap_or('\u{fffd}'));
                return Ok(());
            }
            _ => return Err(self.invalid("in string escape code")),
        };
        self.at += 1;
        out.push(c);
        Ok(())
    }

    fn hex(&mut self) -> Result<u32, JsonError> {
        let mut n = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|b| char::from(b).to_digit(16)) else {
                return Err(self.invalid("in \\u hexadecimal character escape"));
            };
            n = n * 16 + digit;
            self.at += 1;
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Compat;
    use crate::golden::render;

    /// Measured with Helm 3.19.0 and 4.1.4 (Go 1.24, 1.25) and 4.3.1 (Go 1.27).
    #[test]
    fn a_byte_that_is_no_text_is_written_as_the_go_of_each_helm_writes_it() {
        let written = |call: &str, compat| {
            let text = format!("{{{{ b64dec \"6WE=\" | {call} }}}}");
            String::from_utf8(render(&text, compat).unwrap()).unwrap()
        };
        for call in ["toJson", "toRawJson", "toPrettyJson", "mustToJson"] {
            for older in [Compat::V3_19, Compat::V3, Compat::V4_1] {
                assert_eq!(written(call, older), "\"\\ufffda\"");
            }
            assert_eq!(written(call, Compat::V4), "\"\u{fffd}a\"");
        }
    }
}
