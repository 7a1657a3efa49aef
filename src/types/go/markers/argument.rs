//! Arguments of markers: strings, numbers, lists in two spellings, maps, and values whose type is guessed.
//! Follows controller-tools' reading to the letter, its oddities included, since CRDs in the field are
//! written by it.

use super::scanner::{Scanner, Token, unquote};
use serde_json::{Map, Value};

/// How deep lists and maps may be nested.
const DEPTH: usize = 48;

/// The type of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Int,
    Number,
    Text,
    Bool,
    /// Guessed.
    Any,
    /// A list of texts.
    Texts,
    /// A list of guessed values.
    Anys,
}

/// Reads a limit as Go's `strconv` does; what follows a `#` in a declarative marker is a comment.
pub(crate) fn limit(what: &str, kind: Kind, marker: &str, rest: &str) -> Result<Value, String> {
    let text = if marker.starts_with("k8s:") { rest.split('#').next().unwrap_or_default() } else { rest };
    let text = text.trim();
    let (parsed, function) = match kind {
        Kind::Int => (text.parse::<i64>().ok().map(Value::from), "Atoi"),
        _ => (text.parse::<f64>().ok().and_then(number), "ParseFloat"),
    };
    parsed
        .ok_or_else(|| format!("invalid {what} value: strconv.{function}: parsing {text:?}: invalid syntax"))
}

/// The type that a value looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    Int,
    Number,
    Text,
    Bool,
    Any,
    List(Box<Shape>),
    Map,
}

/// Reads one argument. Errors are noted in the scanner.
#[derive(Debug)]
pub(crate) struct Reader {
    /// Number-like words (`100Mi`, `2024-01-15`) stay words.
    pub(crate) careful_numbers: bool,
}

impl Reader {
    pub(crate) fn read(&self, scanner: &mut Scanner<'_>, kind: Kind) -> Value {
        let shape = match kind {
            Kind::Int => Shape::Int,
            Kind::Number => Shape::Number,
            Kind::Text => Shape::Text,
            Kind::Bool => Shape::Bool,
            Kind::Any => Shape::Any,
            Kind::Texts => Shape::List(Box::new(Shape::Text)),
            Kind::Anys => Shape::List(Box::new(Shape::Any)),
        };
        self.value(scanner, &shape, false, 0)
    }

    fn value(&self, scanner: &mut Scanner<'_>, shape: &Shape, in_list: bool, depth: usize) -> Value {
        if depth > DEPTH {
            scanner.fail("nested too deeply");
            return Value::Null;
        }
        match shape {
            Shape::Number => self.number(scanner),
            Shape::Int => self.integer(scanner),
            Shape::Text => Value::from(self.text(scanner, false)),
            Shape::Bool => {
                if scanner.scan() != Token::Ident {
                    let found = scanner.token().to_owned();
                    scanner.fail(format!("expected true or false, got {found:?}"));
                    return Value::Null;
                }
                match scanner.token() {
                    "true" => Value::Bool(true),
                    "false" => Value::Bool(false),
                    other => {
                        scanner.fail(format!("expected true or false, got {other:?}"));
                        Value::Null
                    }
                }
            }
            Shape::Any => {
                let guess = self.guess(scanner, !in_list, depth);
                self.value(scanner, &guess, false, depth + 1)
            }
            Shape::List(item) => self.list(scanner, item, depth),
            Shape::Map => self.map(scanner, depth),
        }
    }

    fn sign(scanner: &mut Scanner<'_>) -> &'static str {
        if scanner.peek() == Some('-') {
            scanner.scan();
            return "-";
        }
        ""
    }

    fn number(&self, scanner: &mut Scanner<'_>) -> Value {
        let sign = Reader::sign(scanner);
        if !matches!(scanner.scan(), Token::Int | Token::Float) {
            let found = scanner.token().to_owned();
            scanner.fail(format!("expected integer or float, got {found:?}"));
            return Value::Null;
        }
        let text = format!("{sign}{}", scanner.token());
        match text.parse::<f64>().ok().and_then(number) {
            Some(number) => number,
            None => {
                scanner.fail(format!("unable to parse number: {text:?} is not a number"));
                Value::Null
            }
        }
    }

    fn integer(&self, scanner: &mut Scanner<'_>) -> Value {
        let sign = Reader::sign(scanner);
        if scanner.scan() != Token::Int {
            let found = scanner.token().to_owned();
            scanner.fail(format!("expected integer, got {found:?}"));
            return Value::Null;
        }
        let text = format!("{sign}{}", scanner.token());
        match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => {
                scanner.fail(format!("unable to parse integer: {text:?} is not a whole number"));
                Value::Null
            }
        }
    }

    /// Quoted, raw, or bare words up to the next delimiter.
    fn text(&self, scanner: &mut Scanner<'_>, in_map: bool) -> String {
        if matches!(scanner.scan_no_numbers(), Token::Text | Token::Raw) {
            return match unquote(scanner.token()) {
                Some(text) => text,
                None => {
                    scanner.fail("unable to parse string: invalid syntax");
                    String::new()
                }
            };
        }
        let start = scanner.start();
        loop {
            match scanner.peek_no_space() {
                None | Some(',' | ';' | '}') => break,
                Some(':') if in_map || !self.careful_numbers => break,
                Some(_) => {
                    scanner.scan_no_numbers();
                }
            }
        }
        scanner.whole().get(start..scanner.end()).unwrap_or_default().to_owned()
    }

    fn list(&self, scanner: &mut Scanner<'_>, item: &Shape, depth: usize) -> Value {
        let mut list = Vec::new();
        if scanner.peek_no_space() == Some('{') {
            scanner.scan();
            while !matches!(scanner.peek_no_space(), Some('}') | None) {
                list.push(self.value(scanner, item, true, depth + 1));
                if scanner.error.is_some() || scanner.peek_no_space() == Some('}') {
                    break;
                }
                if !expect(scanner, ',', "comma") {
                    return Value::Null;
                }
            }
            if !expect(scanner, '}', "close curly brace") {
                return Value::Null;
            }
            return Value::Array(list);
        }
        while !matches!(scanner.peek_no_space(), Some(',' | '}') | None) {
            list.push(self.value(scanner, item, true, depth + 1));
            let next = scanner.peek_no_space();
            if scanner.error.is_some() || matches!(next, Some(',' | '}') | None) {
                break;
            }
            scanner.scan();
            if next != Some(';') {
                let found = scanner.token().to_owned();
                scanner.fail(format!("expected comma, got {found:?}"));
                return Value::Null;
            }
        }
        Value::Array(list)
    }

    fn map(&self, scanner: &mut Scanner<'_>, depth: usize) -> Value {
        let mut map = Map::new();
        if !expect(scanner, '{', "open curly brace") {
            return Value::Null;
        }
        while !matches!(scanner.peek_no_space(), Some('}') | None) {
            let key = self.text(scanner, true);
            if !expect(scanner, ':', "colon") {
                return Value::Null;
            }
            map.insert(key, self.value(scanner, &Shape::Any, false, depth + 1));
            if scanner.error.is_some() || scanner.peek_no_space() == Some('}') {
                break;
            }
            if !expect(scanner, ',', "comma") {
                return Value::Null;
            }
        }
        if !expect(scanner, '}', "close curly brace") {
            return Value::Null;
        }
        Value::Object(map)
    }

    /// Guesses the type of the next value.
    fn guess(&self, scanner: &Scanner<'_>, allow_list: bool, depth: usize) -> Shape {
        if depth > DEPTH {
            return Shape::Text;
        }
        let mut ahead = Scanner::new(scanner.rest());
        if allow_list {
            let item = self.guess(scanner, false, depth + 1);
            loop {
                match ahead.scan() {
                    Token::Char(';') => return Shape::List(Box::new(item)),
                    Token::Char(',') | Token::End => return item,
                    _ => {}
                }
            }
        }
        let first = ahead.peek_no_space();
        match first {
            Some('"' | '\'' | '`') => return Shape::Text,
            Some('{') => {
                ahead.scan();
                let second = ahead.peek_no_space();
                let item = self.guess(&ahead, false, depth + 1);
                if item == Shape::Text {
                    self.text(&mut ahead, true);
                    if ahead.scan() == Token::Char(':') || second == Some('}') {
                        return Shape::Map;
                    }
                }
                return Shape::List(Box::new(item));
            }
            Some('t' | 'f') => {
                ahead.scan();
                return if matches!(ahead.token(), "true" | "false") { Shape::Bool } else { Shape::Text };
            }
            _ => {}
        }
        let mut token = ahead.scan();
        if token == Token::Char('-') {
            token = ahead.scan();
        }
        let shape = match token {
            Token::Int => Shape::Int,
            Token::Float => Shape::Number,
            _ => return Shape::Text,
        };
        if self.careful_numbers {
            let delimited = matches!(ahead.peek_no_space(), Some(',' | ';' | '}') | None);
            if ahead.error.is_some() || !delimited {
                return Shape::Text;
            }
        }
        shape
    }
}

/// A number as JSON writes it: whole ones without a fraction.
pub(crate) fn number(value: f64) -> Option<Value> {
    // 2^53: up to here every whole number is exact.
    if value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0 {
        #[allow(clippy::cast_possible_truncation)]
        return Some(Value::from(value as i64));
    }
    serde_json::Number::from_f64(value).map(Value::Number)
}

/// Takes the next token if it is the wanted character, else notes what was expected.
pub(crate) fn expect(scanner: &mut Scanner<'_>, wanted: char, name: &str) -> bool {
    if scanner.scan() == Token::Char(wanted) {
        return true;
    }
    let found = scanner.token().to_owned();
    scanner.fail(format!("expected {name}, got {found:?}"));
    false
}
