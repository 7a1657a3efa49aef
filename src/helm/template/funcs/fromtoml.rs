//! Reads TOML 1.0 for `fromToml`: integers become `int64`, tables maps; an error goes under the key `Error`.

use super::super::number::{parse_float, parse_int};
use super::super::text::Str;
use super::super::value::{Elem, List, Map, Value};

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

type Parsed<T> = Result<T, String>;

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

    fn expect(&mut self, text: &str, what: &str) -> Parsed<()> {
        if self.eat(text) { Ok(()) } else { Err(self.unexpected(what)) }
    }

    fn unexpected(&self, what: &str) -> String {
        match self.peek() {
            Some(c) => format!("expected {what}, but got {c:?} instead"),
            None => format!("expected {what}, but got end of file"),
        }
    }

    /// What is wrong with the next character, which go-toml has taken by then.
    fn beyond(&mut self, what: &str) -> String {
        let next = self.peek();
        self.at += next.map_or(0, char::len_utf8);
        format!("{what}, but got {} instead", next.map_or("'\\x00'".to_owned(), |c| format!("{c:?}")))
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
                        return Err(format!("Key '{}' has already been defined.", dotted(&path)));
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
                None => "unexpected EOF; expected key separator '='".to_owned(),
                Some(_) => self.unexpected("'.' or '='"),
            });
        }
        self.blank();
        let outer = self.key.len();
        self.key.extend(path.iter().cloned());
        let value = self.value(0)?;
        let Some((last, parents)) = path.split_last() else { return Err("empty key".to_owned()) };
        let table = if parents.is_empty() { table.clone() } else { open(table, parents, false)? };
        if table.get(last).is_some() {
            let names: Vec<Str> = self.table.iter().chain(&self.key).cloned().collect();
            return Err(format!("Key '{}' has already been defined.", dotted(&names)));
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
                    return Err("unexpected end of table name (table names cannot be empty)".to_owned());
                }
                Some('.') => {
                    return Err("unexpected table separator (table names cannot be empty)".to_owned());
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
                (None | Some('='), true) => return Err("unexpected '=': key name appears blank".to_owned()),
                (Some('.'), true) => return Err("unexpected '.': keys cannot start with a '.'".to_owned()),
                (None | Some('='), false) => return Err("unexpected '='".to_owned()),
                (Some('.'), false) => return Err("unexpected '.'".to_owned()),
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
            return Err("nested too deeply".to_owned());
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
            return Err("nested too deeply".to_owned());
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
                    Some(c) => format!("expected value but found {c:?} instead"),
                    None => "unexpected EOF; expected value".to_owned(),
                });
            }
            "inf" | "+inf" => Value::Float(f64::INFINITY),
            "-inf" => Value::Float(f64::NEG_INFINITY),
            "nan" | "+nan" | "-nan" => Value::Float(f64::NAN),
            _ if word.contains(':') || word.as_bytes().get(4) == Some(&b'-') => {
                super::dates::from_toml(word).ok_or_else(|| format!("Invalid TOML Datetime: \"{word}\"."))?
            }
            _ => {
                let digits = plain.trim_start_matches(['+', '-']);
                let octal =
                    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
                let number = parse_int(&plain).filter(|_| !octal).map(Value::Int64);
                let number = number.or_else(|| parse_float(&plain).filter(|_| !octal).map(Value::Float));
                number.ok_or_else(|| format!("expected value but found \"{word}\" instead"))?
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
            _ => Err("strings cannot contain newlines".to_owned()),
        }
    }

    fn basic_string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => return Err("unexpected EOF; expected '\"'".to_owned()),
                Some('\n') => return Err("strings cannot contain newlines".to_owned()),
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
                out.push(digits.and_then(char::from_u32).ok_or("invalid unicode escape")?);
                self.at += 1 + length;
                return Ok(());
            }
            _ => return Err(format!("invalid escape character '{c}'")),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    fn long_string(&mut self, mark: &str) -> Parsed<String> {
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
                None => return Err(format!("unexpected EOF; expected '{mark}'")),
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
                    return Err(format!("Key '{key}' has already been defined."));
                };
                table.insert(key.clone(), array_of(items));
                element
            }
            Some(_) => return Err(format!("Key '{key}' has already been defined.")),
        };
        table = next;
    }
    Ok(table)
}

fn array_of(items: Vec<Value>) -> Value {
    Value::List(List::typed(Elem::Named("map[string]interface {}"), items))
}
