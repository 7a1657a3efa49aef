//! Writes a stream of values as go-yaml v2 does (libyaml's emitter: indent 2, width 80, lists not indented in
//! maps). Knows nothing of where values come from: JSON here, the template engine's own values elsewhere.
//! Keys must come in `sort_keys` order; see `scalar` for styles.

use super::number;
use super::order::sort_keys;
use super::scalar::{Style, is_break, is_printable, is_simple_key, string_style};
use serde_json::Value;
use std::borrow::Cow;

const WIDTH: usize = 80;
const INDENT: usize = 2;

/// Where the next value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    Value,
}

#[derive(Debug, Clone, Copy)]
struct Level {
    sequence: bool,
    indent: usize,
}

/// Writes one document.
#[derive(Debug)]
pub struct Writer {
    out: String,
    levels: Vec<Level>,
    place: Place,
    column: usize,
    /// True if the last character was white or an indicator that needs no space after it.
    whitespace: bool,
    /// True if only indentation stands on the line so far.
    indention: bool,
    /// go-yaml v3's manner: lists indented in maps, nothing folded.
    pretty: bool,
    /// True if a string held a character that go-yaml refuses to read back.
    unreadable: bool,
}

impl Default for Writer {
    fn default() -> Self {
        Self::new()
    }
}

impl Writer {
    /// A scalar as it is; the caller knows that it needs no quotes.
    pub fn plain(&mut self, text: &str) {
        self.word(text);
    }

    /// An empty document.
    pub fn new() -> Self {
        Self {
            out: String::new(),
            levels: Vec::new(),
            place: Place::Root,
            column: 0,
            whitespace: true,
            indention: true,
            pretty: false,
            unreadable: false,
        }
    }

    /// An empty document in the manner of `toYamlPretty`.
    pub fn pretty() -> Self {
        Self { pretty: true, ..Self::new() }
    }

    /// The document, with the final newline.
    pub fn finish(mut self) -> String {
        self.write_indent(0);
        self.out
    }

    /// The document as a template's `toYaml` gives it: without the final newline, and empty where Helm fails
    /// (it reads its own JSON as YAML, which may hold no control characters).
    pub fn finish_for_template(self) -> String {
        if self.unreadable {
            return String::new();
        }
        let mut text = self.finish();
        text.pop();
        text
    }

    /// Writes `null`.
    pub fn null(&mut self) {
        self.word("null");
    }

    /// Writes a boolean.
    pub fn bool(&mut self, value: bool) {
        self.word(if value { "true" } else { "false" });
    }

    /// Writes an integer.
    pub fn int(&mut self, value: i64) {
        self.word(&value.to_string());
    }

    /// Writes an integer beyond `i64`.
    pub fn uint(&mut self, value: u64) {
        self.word(&value.to_string());
    }

    /// Writes a float that went through JSON, as everything in `toYaml` does: whole numbers lose their point.
    pub fn float(&mut self, value: f64) {
        if self.pretty {
            return self.plain_float(value);
        }
        self.word(&super::resolve::json_number(value));
    }

    /// Writes a float in Go's `%g`.
    pub fn plain_float(&mut self, value: f64) {
        self.word(&number::format_g(value));
    }

    /// Writes a string.
    pub fn string(&mut self, text: &str) {
        let text = &*self.through_json(text);
        let indent = self.before_value();
        let scalar_indent = if self.levels.is_empty() { INDENT } else { indent + INDENT };
        match string_style(text, false, self.pretty) {
            Style::Plain => self.write_plain(text, true, scalar_indent),
            Style::Single => self.write_single(text, true, scalar_indent),
            Style::Double => self.write_double(text, true, scalar_indent),
            Style::Literal => self.write_literal(text, scalar_indent),
        }
    }

    /// Opens a list; `empty` where nothing will follow before `end`.
    pub fn start_sequence(&mut self, empty: bool) {
        self.start(true, empty);
    }

    /// Opens a map; `empty` where nothing will follow before `end`.
    pub fn start_mapping(&mut self, empty: bool) {
        self.start(false, empty);
    }

    fn start(&mut self, sequence: bool, empty: bool) {
        let parent = self.before_value();
        if empty {
            self.indicator(if sequence { "[]" } else { "{}" }, true, false, false);
            self.levels.push(Level { sequence, indent: parent });
            return;
        }
        let indent = if self.levels.is_empty() {
            0
        } else if sequence && self.place == Place::Value && !self.indention && !self.pretty {
            parent
        } else {
            parent + INDENT
        };
        self.levels.push(Level { sequence, indent });
    }

    /// Closes the innermost list or map.
    pub fn end(&mut self) {
        self.levels.pop();
    }

    /// Writes a map's key; its value comes next.
    pub fn key(&mut self, text: &str) {
        self.unreadable |= !is_json_key_readable(text);
        let text = &*self.through_json(text);
        let indent = self.levels.last().map_or(0, |level| level.indent);
        self.write_indent(indent);
        if is_simple_key(text) {
            match string_style(text, true, self.pretty) {
                Style::Plain => self.write_plain(text, false, indent),
                Style::Single => self.write_single(text, false, indent),
                Style::Double | Style::Literal => self.write_double(text, false, indent),
            }
            self.indicator(":", false, false, false);
        } else {
            self.indicator("?", true, false, true);
            let scalar_indent = indent + INDENT;
            match string_style(text, false, self.pretty) {
                Style::Plain => self.write_plain(text, true, scalar_indent),
                Style::Single => self.write_single(text, true, scalar_indent),
                Style::Double => self.write_double(text, true, scalar_indent),
                Style::Literal => self.write_literal(text, scalar_indent),
            }
            self.write_indent(indent);
            self.indicator(":", true, false, true);
        }
        self.place = Place::Value;
    }

    /// The string after its way through JSON that is read as YAML.
    fn through_json<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        if text.is_ascii() && !text.contains('\u{7f}') {
            return Cow::Borrowed(text);
        }
        self.unreadable |= !self.pretty && text.chars().any(is_refused);
        if self.pretty || !text.contains('\u{85}') {
            return Cow::Borrowed(text);
        }
        Cow::Owned(fold_next_lines(text))
    }

    /// Writes what stands before a value and gives the indent of its surroundings.
    fn before_value(&mut self) -> usize {
        match self.levels.last().copied() {
            None => {
                self.place = Place::Root;
                0
            }
            Some(level) if level.sequence => {
                self.write_indent(level.indent);
                self.indicator("-", true, false, true);
                self.place = Place::Item;
                level.indent
            }
            Some(level) => level.indent,
        }
    }

    fn width(&self) -> usize {
        if self.pretty { usize::MAX } else { WIDTH }
    }

    fn word(&mut self, text: &str) {
        self.before_value();
        if !self.whitespace {
            self.put(' ');
        }
        self.put_text(text);
        self.whitespace = false;
        self.indention = false;
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += if text.is_ascii() { text.len() } else { text.chars().count() };
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self, indent: usize) {
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        if self.column < indent {
            self.out.extend(std::iter::repeat_n(' ', indent - self.column));
            self.column = indent;
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, space_before: bool, whitespace: bool, indention: bool) {
        if space_before && !self.whitespace {
            self.put(' ');
        }
        self.put_text(text);
        self.whitespace = whitespace;
        self.indention = self.indention && indention;
    }

    /// Plain text holds no line breaks; a line that is full goes on at the next single space.
    fn write_plain(&mut self, text: &str, may_break: bool, indent: usize) {
        if !self.whitespace {
            self.put(' ');
        }
        let mut rest = text;
        let mut after_space = false;
        while let Some(at) = memchr::memchr(b' ', rest.as_bytes()) {
            self.put_text(&rest[..at]);
            after_space &= at == 0;
            rest = &rest[at + 1..];
            if may_break && !after_space && self.column > self.width() && !rest.starts_with(' ') {
                self.write_indent(indent);
            } else {
                self.put(' ');
            }
            after_space = true;
        }
        self.put_text(rest);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_single(&mut self, text: &str, may_break: bool, indent: usize) {
        self.indicator("'", true, false, false);
        let (mut spaces, mut breaks) = (false, false);
        let mut characters = text.chars().peekable();
        let mut first = true;
        while let Some(c) = characters.next() {
            let inside = !first && characters.peek().is_some_and(|next| *next != ' ');
            first = false;
            if c == ' ' {
                if may_break && !spaces && self.column > self.width() && inside {
                    self.write_indent(indent);
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(indent);
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_double(&mut self, text: &str, may_break: bool, indent: usize) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let mut characters = text.chars().peekable();
        let mut first = true;
        // A quirk of go-yaml: after a leading byte order mark it escapes everything.
        let marked = text.starts_with('\u{feff}');
        while let Some(c) = characters.next() {
            let inside = !first && characters.peek().is_some();
            first = false;
            if marked || !is_printable(c) || is_break(c) || c == '"' || c == '\\' {
                let escaped = escape(c);
                self.put_text(&escaped);
                spaces = false;
            } else if c == ' ' {
                if may_break && !spaces && self.column > self.width() && inside {
                    self.write_indent(indent);
                    if characters.peek() == Some(&' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn write_literal(&mut self, text: &str, indent: usize) {
        self.indicator("|", true, false, false);
        if text.starts_with(|c| c == ' ' || is_break(c)) {
            self.put('2');
        }
        let mut from_end = text.chars().rev();
        match (from_end.next(), from_end.next()) {
            (Some(last), _) if !is_break(last) => self.put('-'),
            (Some(_), None) => self.put('+'),
            (Some(_), Some(before)) if is_break(before) => self.put('+'),
            (None, _) => self.put('-'),
            _ => {}
        }
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        if text.is_ascii() && !text.contains('\r') {
            return self.write_lines(text, indent);
        }
        let mut breaks = true;
        for c in text.chars() {
            if is_break(c) {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent(indent);
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }

    /// Lines that end with a line feed each, or with the text.
    fn write_lines(&mut self, text: &str, indent: usize) {
        for line in text.split_inclusive('\n') {
            let content = line.strip_suffix('\n').unwrap_or(line);
            if !content.is_empty() {
                self.write_indent(indent);
                self.put_text(content);
                self.indention = false;
            }
            if content.len() < line.len() {
                self.put_break();
                self.indention = true;
            }
        }
    }
}

/// Returns true if go-yaml takes a string of JSON for a key: it must stand on one line and end within 1024
/// characters.
fn is_json_key_readable(text: &str) -> bool {
    const LONGEST: usize = 1022;
    if text.contains('\u{85}') {
        return false;
    }
    let width = |c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..' ' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => 6,
        _ => 1,
    };
    text.len() * 6 <= LONGEST || text.chars().map(width).sum::<usize>() <= LONGEST
}

/// Characters go-yaml's reader refuses; all other control characters are escaped in JSON.
fn is_refused(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// U+0085 ends a line in YAML, so a quoted string that holds one is folded.
fn fold_next_lines(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{85}') {
        let (before, after) = rest.split_at(at);
        folded.push_str(before.trim_end_matches(' '));
        let tail = after.trim_start_matches([' ', '\u{85}']);
        let breaks = after[..after.len() - tail.len()].matches('\u{85}').count();
        match breaks {
            1 => folded.push(' '),
            more => folded.extend(std::iter::repeat_n('\n', more - 1)),
        }
        rest = tail;
    }
    folded.push_str(rest);
    folded
}

pub(super) fn escape(c: char) -> String {
    match c {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{a0}' => "\\_".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        c if (c as u32) <= 0xff => format!("\\x{:02X}", c as u32),
        c if (c as u32) <= 0xffff => format!("\\u{:04X}", c as u32),
        c => format!("\\U{:08X}", c as u32),
    }
}

/// Writes a JSON value.
pub fn write_json(writer: &mut Writer, value: &Value) {
    match value {
        Value::Null => writer.null(),
        Value::Bool(value) => writer.bool(*value),
        Value::Number(number) => {
            if let Some(value) = number.as_i64() {
                writer.int(value);
            } else if let Some(value) = number.as_u64() {
                writer.uint(value);
            } else {
                writer.float(number.as_f64().unwrap_or_default());
            }
        }
        Value::String(text) => writer.string(text),
        Value::Array(items) => {
            writer.start_sequence(items.is_empty());
            for item in items {
                write_json(writer, item);
            }
            writer.end();
        }
        Value::Object(map) => {
            writer.start_mapping(map.is_empty());
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            sort_keys(&mut pairs, writer.pretty, |(key, _)| key.as_str());
            for (key, value) in pairs {
                writer.key(key);
                write_json(writer, value);
            }
            writer.end();
        }
    }
}
