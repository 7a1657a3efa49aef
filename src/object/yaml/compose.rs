//! From parser events to nodes: anchors, merge keys, tags, the alias limit, and go-yaml's error texts.
//! The only place that names the YAML parser.

use super::guard;
use super::resolve::{Scalar, resolve};
use super::{Error, Kind, Node};
use base64::Engine;
use libyaml_safer::{ErrorKind, Event, EventData, Mark, Parser, ScalarStyle};
use std::borrow::Cow;
use std::collections::HashMap;

const PREFIX: &str = "tag:yaml.org,2002:";
/// How deep a document may be. Helm allows 10000 levels; here each takes some of a thread's stack, and opdev's client
/// reads no JSON beyond 128.
const MAX_DEPTH: usize = 250;

/// Reads the first document of a text; an empty text is null.
pub fn parse(text: &str) -> Result<Node, Error> {
    let padded = pad(text);
    let mut composer = Composer::new(&padded, text)?;
    Ok(composer.document()?.unwrap_or(Node { line: 1, column: 1, kind: Kind::Null }))
}

/// Reads every document of a text; documents without content are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, Error> {
    let padded = pad(text);
    let mut composer = Composer::new(&padded, text)?;
    let mut found = Vec::new();
    while let Some(node) = composer.document()? {
        if node.kind != Kind::Null {
            found.push(node);
        }
    }
    Ok(found)
}

/// The parser cannot end a block scalar without a line break; `unpad` takes it back.
fn pad(text: &str) -> Cow<'_, str> {
    if text.ends_with('\n') || !text.contains(['|', '>']) || !text.lines().any(opens_block) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{text}\n"))
}

/// Whether a line may be the head of a block scalar: `|` or `>`, signs and digits, perhaps a comment.
fn opens_block(line: &str) -> bool {
    let line = line.split(" #").next().unwrap_or(line).trim_end();
    line.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-')).ends_with(['|', '>'])
}

/// The value of a block scalar that ends with the text, without the line break that `pad` added.
fn unpad(mut value: String, text: &str) -> String {
    let last = |text: &str| text.rsplit('\n').next().unwrap_or_default().to_owned();
    let content = value.strip_suffix('\n').map(last).unwrap_or_default();
    let blank = last(text).trim().is_empty();
    let own = if blank { content.is_empty() || content.trim().is_empty() } else { true };
    if own && value.ends_with('\n') {
        value.pop();
    }
    value
}

/// An anchored node, once it is complete.
struct Anchored {
    node: Option<Node>,
    size: usize,
    /// How many levels of lists and maps it has.
    height: usize,
}

struct Composer<'t> {
    parser: Parser<&'t [u8]>,
    /// The text as it was given; the parser's may be one line break longer.
    text: &'t str,
    anchors: HashMap<String, Anchored>,
    decoded: usize,
    through_aliases: usize,
    depth: usize,
    /// The end of the last event.
    reached: Mark,
    /// The first value that does not fit its tag; reported once the document is known to be well formed.
    refused: Option<Error>,
}

impl<'t> Composer<'t> {
    fn new(padded: &'t str, text: &'t str) -> Result<Self, Error> {
        let mut parser = Parser::<&'t [u8]>::new();
        parser.set_input(padded.as_bytes());
        let mut composer = Self {
            parser,
            text,
            anchors: HashMap::new(),
            decoded: 0,
            through_aliases: 0,
            depth: 0,
            reached: Mark::default(),
            refused: None,
        };
        composer.next()?;
        Ok(composer)
    }

    fn next(&mut self) -> Result<Event, Error> {
        // After a panic the parser is not asked again: the error ends the reading.
        let parser = &mut self.parser;
        match guard::run(|| parser.parse()) {
            Ok(Ok(event)) => {
                self.reached = event.end_mark;
                Ok(event)
            }
            Ok(Err(error)) => Err(syntax(&error, self.text)),
            Err(guard::Panicked) => Err(unread(self.reached, self.text)),
        }
    }

    fn document(&mut self) -> Result<Option<Node>, Error> {
        match self.next()?.data {
            EventData::DocumentStart { .. } => {}
            _ => return Ok(None),
        }
        self.anchors.clear();
        let event = self.next()?;
        let (node, _) = self.node(event)?;
        self.next()?;
        self.refused.take().map_or(Ok(Some(node)), Err)
    }

    /// The node an event starts, and how many nodes it holds.
    fn node(&mut self, event: Event) -> Result<(Node, usize), Error> {
        let mark = event.start_mark;
        let at_end = event.end_mark.index > self.text.len() as u64;
        self.decoded += 1;
        let (anchor, kind, size) = match event.data {
            EventData::Alias { anchor } => return self.alias(&anchor, mark),
            EventData::Scalar { anchor, tag, value, plain_implicit, style, .. } => {
                let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let value = if block && at_end { unpad(value, self.text) } else { value };
                let kind = scalar(value, tag.as_deref(), plain_implicit, mark).unwrap_or_else(|error| {
                    self.refused.get_or_insert(error);
                    Kind::Null
                });
                (anchor, kind, 1)
            }
            EventData::SequenceStart { anchor, .. } => {
                self.open(anchor.as_deref(), mark)?;
                let (items, size) = self.sequence()?;
                (anchor, Kind::Sequence(items), size)
            }
            EventData::MappingStart { anchor, .. } => {
                self.open(anchor.as_deref(), mark)?;
                let (pairs, size) = self.mapping()?;
                (anchor, Kind::Mapping(pairs), size)
            }
            _ => return Err(failure(mark, "attempted to parse unknown event")),
        };
        let node = Node { line: place(mark.line), column: place(mark.column), kind };
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, Anchored { node: Some(node.clone()), size, height: height(&node) });
        }
        Ok((node, size))
    }

    fn open(&mut self, anchor: Option<&str>, mark: Mark) -> Result<(), Error> {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor.to_owned(), Anchored { node: None, size: 0, height: 0 });
        }
        self.depth += 1;
        within_depth(self.depth, mark)
    }

    fn alias(&mut self, anchor: &str, mark: Mark) -> Result<(Node, usize), Error> {
        let Some(found) = self.anchors.get(anchor) else {
            return Err(failure(mark, &format!("unknown anchor '{anchor}' referenced")));
        };
        let Some(node) = &found.node else {
            return Err(failure(mark, &format!("anchor '{anchor}' value contains itself")));
        };
        within_depth(self.depth + found.height, mark)?;
        self.decoded += found.size;
        self.through_aliases += found.size;
        let share = self.through_aliases as f64 / self.decoded as f64;
        if self.through_aliases > 100 && self.decoded > 1000 && share > allowed_share(self.decoded) {
            return Err(failure(mark, "document contains excessive aliasing"));
        }
        Ok((node.clone(), found.size + 1))
    }

    fn sequence(&mut self) -> Result<(Vec<Node>, usize), Error> {
        let mut items = Vec::new();
        let mut size = 1;
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::SequenceEnd) {
                self.depth -= 1;
                return Ok((items, size));
            }
            let (node, inner) = self.node(event)?;
            items.push(node);
            size += inner;
        }
    }

    fn mapping(&mut self) -> Result<(Vec<(Node, Node)>, usize), Error> {
        let mut pairs = Vec::new();
        let mut size = 1;
        loop {
            let event = self.next()?;
            if matches!(event.data, EventData::MappingEnd) {
                self.depth -= 1;
                return Ok((pairs, size));
            }
            let mark = event.start_mark;
            let merge = is_merge(&event.data);
            let (key, key_size) = self.node(event)?;
            let event = self.next()?;
            let (value, value_size) = self.node(event)?;
            size += key_size + value_size;
            if merge {
                merge_into(&mut pairs, value, mark)?;
                continue;
            }
            if matches!(key.kind, Kind::Sequence(_) | Kind::Mapping(_)) {
                return Err(failure(mark, &format!("invalid map key: {}", go_syntax(&key))));
            }
            pairs.push((key, value));
        }
    }
}

fn within_depth(depth: usize, mark: Mark) -> Result<(), Error> {
    if depth <= MAX_DEPTH {
        return Ok(());
    }
    Err(failure(mark, &format!("lists and maps are more than {MAX_DEPTH} levels deep")))
}

fn height(node: &Node) -> usize {
    let tallest = match &node.kind {
        Kind::Sequence(items) => items.iter().map(height).max(),
        Kind::Mapping(pairs) => pairs.iter().map(|(_, value)| height(value)).max(),
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) | Kind::String(_) => {
            return 0;
        }
    };
    tallest.unwrap_or(0) + 1
}

fn is_merge(event: &EventData) -> bool {
    match event {
        EventData::Scalar { tag, value, plain_implicit, .. } => {
            value == "<<"
                && (*plain_implicit
                    || tag.as_deref().is_some_and(|tag| tag.strip_prefix(PREFIX) == Some("merge")))
        }
        _ => false,
    }
}

fn merge_into(pairs: &mut Vec<(Node, Node)>, value: Node, mark: Mark) -> Result<(), Error> {
    let wrong = || failure(mark, "map merge requires map or sequence of maps as the value");
    match value.kind {
        Kind::Mapping(more) => pairs.extend(more),
        Kind::Sequence(items) => {
            // Earlier maps win, so they come last.
            for item in items.into_iter().rev() {
                let Kind::Mapping(more) = item.kind else { return Err(wrong()) };
                pairs.extend(more);
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) | Kind::String(_) => {
            return Err(wrong());
        }
    }
    Ok(())
}

fn scalar(value: String, tag: Option<&str>, plain: bool, mark: Mark) -> Result<Kind, Error> {
    let Some(tag) = tag else {
        return Ok(if plain { resolved(value) } else { Kind::String(value) });
    };
    let Some(short) = tag.strip_prefix(PREFIX) else { return Ok(Kind::String(value)) };
    match short {
        "binary" => match base64::engine::general_purpose::STANDARD
            .decode(value.replace(['\n', '\r'], "").as_bytes())
        {
            Ok(bytes) => Ok(Kind::String(String::from_utf8_lossy(&bytes).into_owned())),
            Err(_) => Err(failure(mark, "!!binary value contains invalid base64 data")),
        },
        "bool" | "int" | "float" | "null" | "timestamp" => {
            let kind = resolved(value.clone());
            match (short, kind) {
                ("bool", kind @ Kind::Bool(_))
                | ("int", kind @ (Kind::Int(_) | Kind::Uint(_)))
                | ("float", kind @ Kind::Float(_))
                | ("null", kind @ Kind::Null) => Ok(kind),
                ("float", Kind::Int(number)) => Ok(Kind::Float(number as f64)),
                ("timestamp", kind @ Kind::String(_)) if resolve(&value) == Scalar::Timestamp => Ok(kind),
                (_, kind) => Err(failure(
                    mark,
                    &format!("cannot decode {} `{value}` as a !!{short}", short_tag(&kind)),
                )),
            }
        }
        _ => Ok(Kind::String(value)),
    }
}

fn resolved(value: String) -> Kind {
    match resolve(&value) {
        Scalar::Null => Kind::Null,
        Scalar::Bool(value) => Kind::Bool(value),
        Scalar::Int(value) => Kind::Int(value),
        Scalar::Uint(value) => Kind::Uint(value),
        Scalar::Float(value) => Kind::Float(value),
        Scalar::Timestamp | Scalar::String => Kind::String(value),
    }
}

fn short_tag(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "!!null",
        Kind::Bool(_) => "!!bool",
        Kind::Int(_) | Kind::Uint(_) => "!!int",
        Kind::Float(_) => "!!float",
        Kind::String(_) => "!!str",
        Kind::Sequence(_) => "!!seq",
        Kind::Mapping(_) => "!!map",
    }
}

/// A key that is a list or a map, as Go's `%#v` shows it.
fn go_syntax(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "interface {}(nil)".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::Uint(value) => format!("{value:#x}"),
        Kind::Float(value) => super::number::format_g(*value),
        Kind::String(text) => format!("{text:?}"),
        Kind::Sequence(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Kind::Mapping(pairs) => {
            let pairs: Vec<_> =
                pairs.iter().map(|(k, v)| format!("{}:{}", go_syntax(k), go_syntax(v))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

/// How much of a document may come through aliases, by its size.
fn allowed_share(decoded: usize) -> f64 {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    let decoded = decoded as f64;
    if decoded <= LOW {
        0.99
    } else if decoded >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * (decoded - LOW) / (HIGH - LOW)
    }
}

fn place(number: u64) -> u32 {
    u32::try_from(number + 1).unwrap_or(u32::MAX)
}

fn failure(mark: Mark, problem: &str) -> Error {
    Error { line: place(mark.line), column: place(mark.column), message: format!("yaml: {problem}") }
}

/// A parser error in go-yaml's words; its line is go-yaml's, ours is the true one.
fn syntax(error: &libyaml_safer::Error, text: &str) -> Error {
    let problem = match error.kind() {
        ErrorKind::Reader if error.problem().contains("UTF-8") => error.problem(),
        ErrorKind::Reader => "control characters are not allowed",
        _ => error.problem(),
    };
    let mark = error.problem_mark().unwrap_or_default();
    let context = error.context_mark().unwrap_or_default();
    let said =
        if mark.line != 0 { mark.line + u64::from(error.kind() == ErrorKind::Scanner) } else { context.line };
    let message =
        if said == 0 { format!("yaml: {problem}") } else { format!("yaml: line {said}: {problem}") };
    if error.kind() == ErrorKind::Reader {
        let (line, column) = control_character(text);
        return Error { line, column, message };
    }
    Error { line: place(mark.line), column: place(mark.column), message }
}

/// What the parser gave up on without an error of its own, after the last event it read.
fn unread(reached: Mark, text: &str) -> Error {
    let after = usize::try_from(reached.index).ok().and_then(|at| text.get(at..)).unwrap_or_default();
    if let Some(tag) = tag_before_comma(after) {
        let before = &after[..tag];
        let lines = before.matches('\n').count() as u64;
        let last = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64;
        let column = if lines == 0 { reached.column + last } else { last };
        let line = place(reached.line + lines);
        let message =
            format!("yaml: line {line}: a tag stands right before a comma; put a space between them");
        return Error { line, column: place(column), message };
    }
    if text.trim_end_matches('\n').ends_with('\\') {
        return failure(reached, "found unknown escape character");
    }
    let line = place(reached.line);
    failure(reached, &format!("line {line}: what follows here cannot be read"))
}

/// Where a text has `!` and what may be part of a tag, then a comma.
fn tag_before_comma(text: &str) -> Option<usize> {
    let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '{' | '}' | '"');
    text.match_indices('!').map(|(at, _)| at).find(|at| {
        let tag = &text[*at..];
        tag.find(ends).is_some_and(|end| tag[end..].starts_with(','))
    })
}

fn control_character(text: &str) -> (u32, u32) {
    let allowed = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}' | '\u{10000}'..);
    for (number, line) in text.split('\n').enumerate() {
        if let Some(column) = line.chars().position(|c| !allowed(c)) {
            return (place(number as u64), place(column as u64));
        }
    }
    (0, 0)
}
