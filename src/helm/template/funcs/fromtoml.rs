//! Reads TOML 1.0 for `fromToml`: integers become `int64`, tables maps; an error goes under the key `Error`.

use super::super::number::{parse_float, parse_int};
use super::super::text::Str;
use super::super::value::{Elem, List, Map, Value};
use std::fmt;

/// The document, or what is wrong with it.
pub(super) fn parse(text: &str) -> Value {
    let mut parser = Parser { text, at: 0, table: Vec::new(), key: Vec::new(), opened: Vec::new() };
    let value = match parser.document() {
        Ok(map) => map,
        Err(reason) => {
            let line = 1 + text[..parser.at.min(text.len())].matches('\n').count();
            let names: Vec<_> = parser.table.iter().chain(&parser.key).map(|name| name.text()).collect();
            let last =
                if names.is_empty() { String::new() } else { format!(" (last key {:?})", names.join(".")) };
            Map::from_entries([("Error", Value::from(format!("toml: line {line}{last}: {reason}")))])
        }
    };
    Value::Map(value)
}

/// The error of a document; `Display` is what go-toml says.
#[derive(Debug)]
enum TomlError {
    /// A mistake that needs no more words than its name.
    Syntax(&'static str),
    /// Something else stands where this may stand; nothing at the end of the document.
    Expected { what: &'static str, found: Option<char> },
    /// Something else stands where this may stand, and go-toml has taken the character by then.
    Beyond { what: &'static str, found: Option<char> },
    /// No value stands where one belongs, but this.
    NoValue { found: String },
    /// A text does not end.
    Unclosed { mark: &'static str },
    /// A key or a table is there already.
    Defined { key: String },
    /// A date or a time that there is not.
    Datetime { text: String },
    /// The character after a backslash has no meaning.
    Escape { character: char },
}

impl fmt::Display for TomlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TomlError::Syntax(what) => f.write_str(what),
            TomlError::Expected { what, found: Some(c) } => {
                write!(f, "expected {what}, but got {c:?} instead")
            }
            TomlError::Expected { what, found: None } => write!(f, "expected {what}, but got end of file"),
            TomlError::Beyond { what, found: Some(c) } => write!(f, "{what}, but got {c:?} instead"),
            TomlError::Beyond { what, found: None } => write!(f, "{what}, but got '\\x00' instead"),
            TomlError::NoValue { found } => write!(f, "expected value but found {found} instead"),
            TomlError::Unclosed { mark } => write!(f, "unexpected EOF; expected '{mark}'"),
            TomlError::Defined { key } => write!(f, "Key '{key}' has already been defined."),
            TomlError::Datetime { text } => write!(f, "Invalid TOML Datetime: \"{text}\"."),
            TomlError::Escape { character } => write!(f, "invalid escape character '{character}'"),
        }
    }
}

impl std::error::Error for TomlError {}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// The table whose keys are being read, for error texts.
    table: Vec<Str>,
    /// The key whose value is being read.
    key: Vec<Str>,
    /// Tables that have had their `[name]`.
    opened: Vec<Vec<Str>>,
}

type Parsed<T> = Result<T, TomlError>;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str, what: &'static str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    fn unexpected(&self, what: &'static str) -> TomlError {
        TomlError::Expected { what, found: self.peek() }
    }

    /// The error of the next character, which go-toml has taken by then.
    fn beyond(&mut self, what: &'static str) -> TomlError {
        let found = self.peek();
        self.at += found.map_or(0, char::len_utf8);
        TomlError::Beyond { what, found }
    }

    /// Spaces and tabs on this line.
    fn blank(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t']).len();
    }

    /// Blank space, comments and line ends.
    fn lines(&mut self) {
        loop {
            self.at += self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\n', '\r']).len();
            if self.peek() != Some('#') {
                return;
            }
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
    }

    fn line_end(&mut self) -> Parsed<()> {
        self.blank();
        if self.peek() == Some('#') {
            self.at += self.rest().find('\n').unwrap_or(self.rest().len());
        }
        if self.rest().is_empty() || self.eat("\n") || self.eat("\r\n") {
            return Ok(());
        }
        Err(self.beyond("expected a top-level item to end with a newline, comment, or EOF"))
    }

    fn document(&mut self) -> Parsed<Map> {
        let root = Map::new();
        let mut table = root.clone();
        loop {
            self.lines();
            match self.peek() {
                None => return Ok(root),
                Some('[') => {
                    self.at += 1;
                    let array = self.eat("[");
                    let path = self.table_name()?;
                    if array && !self.eat("]") {
                        return Err(self.beyond("expected end of table array name delimiter ']'"));
                    }
                    self.table = path[..path.len() - 1].to_vec();
                    if !array && self.opened.contains(&path) {
                        return Err(TomlError::Defined { key: dotted(&path) });
                    }
                    table = open(&root, &path, array)?;
                    if array {
                        // Tables below the last element begin anew.
                        self.opened.retain(|other| !other.starts_with(&path));
                    } else {
                        self.opened.push(path.clone());
                    }
                    self.table = path;
                    self.line_end()?;
                }
                Some(_) => {
                    self.pair(&table)?;
                    self.line_end()?;
                }
            }
        }
    }

    fn pair(&mut self, table: &Map) -> Parsed<()> {
        let path = self.key()?;
        if !self.eat("=") {
            return Err(match self.peek() {
                None => TomlError::Syntax("unexpected EOF; expected key separator '='"),
                Some(_) => self.unexpected("'.' or '='"),
            });
        }
        self.blank();
        let outer = self.key.len();
        self.key.extend(path.iter().cloned());
        let value = self.value(0)?;
        let Some((last, parents)) = path.split_last() else { return Err(TomlError::Syntax("empty key")) };
        let table = if parents.is_empty() { table.clone() } else { open(table, parents, false)? };
        if table.get(last).is_some() {
            let names: Vec<Str> = self.table.iter().chain(&self.key).cloned().collect();
            return Err(TomlError::Defined { key: dotted(&names) });
        }
        table.insert(last.clone(), value);
        self.key.truncate(outer);
        Ok(())
    }

    /// The name of a table after its bracket, up to and with the bracket that closes it.
    fn table_name(&mut self) -> Parsed<Vec<Str>> {
        let mut path = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None | Some(']') => {
                    return Err(TomlError::Syntax(
                        "unexpected end of table name (table names cannot be empty)",
                    ));
                }
                Some('.') => {
                    return Err(TomlError::Syntax(
                        "unexpected table separator (table names cannot be empty)",
                    ));
                }
                Some(_) => {}
            }
            path.push(self.key_part()?);
            self.blank();
            if self.eat("]") {
                return Ok(path);
            }
            if !self.eat(".") {
                return Err(self.beyond("expected '.' or ']' to end table name"));
            }
        }
    }

    /// A dotted key, with the blank space after it.
    fn key(&mut self) -> Parsed<Vec<Str>> {
        let mut path = Vec::new();
        loop {
            self.blank();
            match (self.peek(), path.is_empty()) {
                (None | Some('='), true) => {
                    return Err(TomlError::Syntax("unexpected '=': key name appears blank"));
                }
                (Some('.'), true) => {
                    return Err(TomlError::Syntax("unexpected '.': keys cannot start with a '.'"));
                }
                (None | Some('='), false) => return Err(TomlError::Syntax("unexpected '='")),
                (Some('.'), false) => return Err(TomlError::Syntax("unexpected '.'")),
                (Some(_), _) => path.push(self.key_part()?),
            }
            self.blank();
            if !self.eat(".") {
                return Ok(path);
            }
        }
    }

    fn key_part(&mut self) -> Parsed<Str> {
        Ok(Str::from(match self.peek() {
            Some('"') => self.basic_string()?,
            Some('\'') => self.literal_string()?,
            _ => {
                let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                let length = self.rest().find(|c| !bare(c)).unwrap_or(self.rest().len());
                self.at += length;
                self.text[self.at - length..self.at].to_owned()
            }
        }))
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        if depth > 200 {
            return Err(TomlError::Syntax("nested too deeply"));
        }
        let rest = self.rest();
        match self.peek() {
            Some('"') if rest.starts_with("\"\"\"") => self.long_string("\"\"\"").map(Value::from),
            Some('\'') if rest.starts_with("'''") => self.long_string("'''").map(Value::from),
            Some('"') => self.basic_string().map(Value::from),
            Some('\'') => self.literal_string().map(Value::from),
            Some('[') => self.array(depth),
            Some('{') => self.inline_table(depth),
            _ => self.scalar(),
        }
    }

    fn array(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.lines();
            if self.eat("]") {
                return Ok(Value::list(items));
            }
            items.push(self.value(depth + 1)?);
            self.lines();
            if !self.eat(",") && self.peek() != Some(']') {
                return Err(self.unexpected("a comma (',') or array terminator (']')"));
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let table = Map::new();
        self.blank();
        if self.eat("}") {
            return Ok(Value::Map(table));
        }
        if depth > 100 {
            return Err(TomlError::Syntax("nested too deeply"));
        }
        loop {
            self.pair(&table)?;
            self.blank();
            if self.eat("}") {
                return Ok(Value::Map(table));
            }
            self.expect(",", "a comma (',') or an inline table terminator ('}')")?;
        }
    }

    fn scalar(&mut self) -> Parsed<Value> {
        let end = |c: char| matches!(c, ',' | ']' | '}' | '#' | '\n' | '\r' | ' ' | '\t');
        let mut length = self.rest().find(end).unwrap_or(self.rest().len());
        // A date may be followed by a space and a time.
        let rest = self.rest();
        let date = length == 10 && rest.as_bytes().get(4) == Some(&b'-');
        if date
            && rest[length..].starts_with(' ')
            && rest[length + 1..].starts_with(|c: char| c.is_ascii_digit())
        {
            length += 1 + rest[length + 1..].find(end).unwrap_or(rest.len() - length - 1);
        }
        let word = &rest[..length];
        let plain = word.replace('_', "");
        let value = match word {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "" => {
                return Err(match self.peek() {
                    Some(c) => TomlError::NoValue { found: format!("{c:?}") },
                    None => TomlError::Syntax("unexpected EOF; expected value"),
                });
            }
            "inf" | "+inf" => Value::Float(f64::INFINITY),
            "-inf" => Value::Float(f64::NEG_INFINITY),
            "nan" | "+nan" | "-nan" => Value::Float(f64::NAN),
            _ if word.contains(':') || word.as_bytes().get(4) == Some(&b'-') => {
                super::dates::from_toml(word).ok_or_else(|| TomlError::Datetime { text: word.to_owned() })?
            }
            _ => {
                let digits = plain.trim_start_matches(['+', '-']);
                let octal =
                    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
                let number = parse_int(&plain).filter(|_| !octal).map(Value::Int64);
                let number = number.or_else(|| parse_float(&plain).filter(|_| !octal).map(Value::Float));
                number.ok_or_else(|| TomlError::NoValue { found: format!("\"{word}\"") })?
            }
        };
        self.at += length;
        Ok(value)
    }

    fn literal_string(&mut self) -> Parsed<String> {
        let body = &self.rest()[1..];
        match body.find(['\'', '\n']) {
            Some(end) if body[end..].starts_with('\'') => {
                self.at += end + 2;
                Ok(body[..end].to_owned())
            }
            _ => Err(TomlError::Syntax("strings cannot contain newlines")),
        }
    }

    fn basic_string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => return Err(TomlError::Unclosed { mark: "\"" }),
                Some('\n') => return Err(TomlError::Syntax("strings cannot contain newlines")),
                Some('"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some('\\') => self.escape(&mut out)?,
                Some(c) => {
                    self.at += c.len_utf8();
                    out.push(c);
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Parsed<()> {
        self.at += 1;
        let c = self.peek().unwrap_or(' ');
        let plain = match c {
            'b' => '\u{8}',
            't' => '\t',
            'n' => '\n',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            '"' | '\\' => c,
            'u' | 'U' => {
                let length = if c == 'u' { 4 } else { 8 };
                let digits = self.rest().get(1..=length).and_then(|d| u32::from_str_radix(d, 16).ok());
                out.push(digits.and_then(char::from_u32).ok_or(TomlError::Syntax("invalid unicode escape"))?);
                self.at += 1 + length;
                return Ok(());
            }
            _ => return Err(TomlError::Escape { character: c }),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    fn long_string(&mut self, mark: &'static str) -> Parsed<String> {
        self.at += 3;
        let _ = self.eat("\n") || self.eat("\r\n");
        let mut out = String::new();
        loop {
            if self.rest().starts_with(mark) {
                self.at += 3;
                // Up to two marks may belong to the text.
                while self.eat(&mark[..1]) {
                    out.push_str(&mark[..1]);
                }
                return Ok(out);
            }
            match self.peek() {
                None => return Err(TomlError::Unclosed { mark }),
                Some('\\') if mark == "\"\"\"" => {
                    let after = self.rest()[1..].trim_start_matches([' ', '\t']);
                    if after.starts_with(['\n', '\r']) {
                        self.at += 1;
                        self.at += self.rest().len() - self.rest().trim_start().len();
                    } else {
                        self.escape(&mut out)?;
                    }
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    out.push(c);
                }
            }
        }
    }
}

fn dotted(path: &[Str]) -> String {
    path.iter().map(|name| name.text()).collect::<Vec<_>>().join(".")
}

/// The table at a path, made where it is missing; with `array`, a new last element.
fn open(root: &Map, path: &[Str], array: bool) -> Parsed<Map> {
    let mut table = root.clone();
    for (i, key) in path.iter().enumerate() {
        let last = i + 1 == path.len();
        let next = match table.get(key) {
            None if last && array => {
                let element = Map::new();
                table.insert(key.clone(), array_of(vec![Value::Map(element.clone())]));
                element
            }
            None => {
                let next = Map::new();
                table.insert(key.clone(), Value::Map(next.clone()));
                next
            }
            Some(Value::Map(next)) if !(last && array) => next,
            Some(Value::List(list)) if list.elem() != Elem::Any => {
                let mut items = list.items().to_vec();
                if last && array {
                    items.push(Value::Map(Map::new()));
                }
                let Some(Value::Map(element)) = items.last().cloned() else {
                    return Err(TomlError::Defined { key: key.to_string() });
                };
                table.insert(key.clone(), array_of(items));
                element
            }
            Some(_) => return Err(TomlError::Defined { key: key.to_string() }),
        };
        table = next;
    }
    Ok(table)
}

fn array_of(items: Vec<Value>) -> Value {
    Value::List(List::typed(Elem::Named("map[string]interface {}"), items))
}
