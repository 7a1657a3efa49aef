//! From parser events to nodes: anchors, merge keys, tags, the alias limit, and go-yaml's error texts.
//! A mistake in the value of a node is told only if the whole document is well formed, as go-yaml does.

use super::events::{Event, Parser, What};
use super::reader::{Mark, Problem, Stage, is_allowed};
use super::resolve::{Scalar, resolve};
use super::{Error, Kind, Node};
use crate::go::quote::quote;
use base64::Engine;
use std::cmp::Ordering;
use std::collections::HashMap;

const PREFIX: &str = "tag:yaml.org,2002:";
/// How deep a document may be. Helm allows 10000 levels; here each takes some of a thread's stack, and
/// opdev's client reads no JSON beyond 128.
const MAX_DEPTH: usize = 250;

/// Reads the first document of a text; an empty text is null.
pub fn parse(text: &str) -> Result<Node, Error> {
    match super::block::parse(text) {
        Some(node) => Ok(node),
        None => first(text),
    }
}

/// Reads the first document of a text for what stands under some keys of its map; the values of other keys
/// may be left out as null. Refuses what `parse` or `check` refuses.
pub fn parse_head(text: &str, wanted: &[&str]) -> Result<Node, Error> {
    if let Some(node) = super::block::skim(text, wanted) {
        return Ok(node);
    }
    let node = parse(text)?;
    super::check(&node)?;
    Ok(node)
}

/// Reads the first document with the parser alone.
pub(super) fn first(text: &str) -> Result<Node, Error> {
    let mut composer = Composer::new(text);
    Ok(composer.document()?.unwrap_or(Node { line: 1, column: 1, kind: Kind::Null }))
}

/// Reads every document of a text; documents without content are left out.
pub fn documents(text: &str) -> Result<Vec<Node>, Error> {
    let mut composer = Composer::new(text);
    let mut found = Vec::new();
    while let Some(node) = composer.document()? {
        if node.kind != Kind::Null {
            found.push(node);
        }
    }
    Ok(found)
}

/// An anchored node, once it is complete.
struct Anchored {
    node: Option<Node>,
    size: usize,
    /// How many levels of lists and maps it has.
    height: usize,
}

struct Composer<'t> {
    parser: Parser<'t>,
    text: &'t str,
    anchors: HashMap<String, Anchored>,
    decoded: usize,
    through_aliases: usize,
    depth: usize,
    /// The first value that cannot be taken; told once the document is known to be well formed.
    refused: Option<Error>,
}

impl<'t> Composer<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            parser: Parser::new(text),
            text,
            anchors: HashMap::new(),
            decoded: 0,
            through_aliases: 0,
            depth: 0,
            refused: None,
        }
    }

    fn next(&mut self) -> Result<Event, Error> {
        self.parser.next().map_err(|problem| told(&problem, self.text))
    }

    fn refuse(&mut self, mark: Mark, problem: &str) {
        self.refused.get_or_insert_with(|| failure(mark, problem));
    }

    fn document(&mut self) -> Result<Option<Node>, Error> {
        if self.next()?.what != What::DocumentStart {
            return Ok(None);
        }
        self.anchors.clear();
        let event = self.next()?;
        let (node, _) = self.node(event)?;
        self.next()?;
        self.refused.take().map_or(Ok(Some(node)), Err)
    }

    /// The node an event starts, and how many nodes it holds.
    fn node(&mut self, event: Event) -> Result<(Node, usize), Error> {
        let mark = event.start;
        self.decoded += 1;
        let (anchor, kind, size) = match event.what {
            What::Alias(anchor) => return self.alias(&anchor, mark),
            What::Scalar { anchor, tag, value, implicit } => {
                let kind = scalar(value, tag.as_deref(), implicit, mark).unwrap_or_else(|error| {
                    self.refused.get_or_insert(error);
                    Kind::Null
                });
                (anchor, kind, 1)
            }
            What::SequenceStart { anchor } => {
                self.open(anchor.as_deref(), mark)?;
                let (items, size) = self.sequence()?;
                (anchor, Kind::Sequence(items), size)
            }
            What::MappingStart { anchor } => {
                self.open(anchor.as_deref(), mark)?;
                let (pairs, size) = self.mapping()?;
                (anchor, Kind::Mapping(pairs), size)
            }
            What::StreamEnd
            | What::DocumentStart
            | What::DocumentEnd
            | What::SequenceEnd
            | What::MappingEnd => return Err(failure(mark, "attempted to parse unknown event")),
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
            self.refuse(mark, &format!("anchor '{anchor}' value contains itself"));
            return Ok((Node { line: place(mark.line), column: place(mark.column), kind: Kind::Null }, 1));
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
            if event.what == What::SequenceEnd {
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
            if event.what == What::MappingEnd {
                self.depth -= 1;
                return Ok((pairs, size));
            }
            let mark = event.start;
            let merge = is_merge(&event.what);
            let (key, key_size) = self.node(event)?;
            let strange = matches!(key.kind, Kind::Sequence(_) | Kind::Mapping(_));
            if strange && self.refused.is_none() {
                self.refuse(mark, &format!("invalid map key: {}", go_syntax(&key)));
            }
            let event = self.next()?;
            if merge {
                size += key_size + self.merge(event, mark, &mut pairs)?;
                continue;
            }
            let (value, value_size) = self.node(event)?;
            size += key_size + value_size;
            pairs.push((key, value));
        }
    }

    /// The value of a merge key. What is no map is told before what is wrong inside it.
    fn merge(&mut self, event: Event, mark: Mark, pairs: &mut Vec<(Node, Node)>) -> Result<usize, Error> {
        let alias = matches!(event.what, What::Alias(_));
        let before = self.refused.take();
        let (value, size) = self.node(event)?;
        let fits =
            matches!(value.kind, Kind::Mapping(_)) || (!alias && matches!(value.kind, Kind::Sequence(_)));
        if !fits || !merge_into(pairs, value) {
            self.refused = None;
            self.refuse(mark, "map merge requires map or sequence of maps as the value");
        }
        if before.is_some() {
            self.refused = before;
        }
        Ok(size)
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

fn is_merge(key: &What) -> bool {
    match key {
        What::Scalar { tag, value, implicit, .. } => {
            value == "<<"
                && (*implicit || tag.as_deref().is_some_and(|tag| tag.strip_prefix(PREFIX) == Some("merge")))
        }
        _ => false,
    }
}

/// Takes over the pairs of a map, or of each map of a list; false for anything else.
fn merge_into(pairs: &mut Vec<(Node, Node)>, value: Node) -> bool {
    match value.kind {
        Kind::Mapping(more) => pairs.extend(more),
        Kind::Sequence(items) => {
            // Earlier maps win, so they come last.
            for item in items.into_iter().rev() {
                let Kind::Mapping(more) = item.kind else { return false };
                pairs.extend(more);
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) | Kind::String(_) => {
            return false;
        }
    }
    true
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
            Ok(bytes) => Ok(Kind::String(replaced(&bytes))),
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

/// The text with each byte that is no UTF-8 replaced, as Go does.
fn replaced(mut bytes: &[u8]) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => return text + rest,
            Err(error) => {
                let (good, bad) = bytes.split_at(error.valid_up_to());
                text.push_str(&String::from_utf8_lossy(good));
                text.push('\u{fffd}');
                bytes = &bad[1..];
            }
        }
    }
}

/// The type and value of a plain scalar.
pub(super) fn resolved(value: String) -> Kind {
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
pub(super) fn go_syntax(node: &Node) -> String {
    match &node.kind {
        Kind::Null => "interface {}(nil)".to_owned(),
        Kind::Bool(value) => value.to_string(),
        Kind::Int(value) => value.to_string(),
        Kind::Uint(value) => format!("{value:#x}"),
        Kind::Float(value) => super::number::format_g(*value),
        Kind::String(text) => quote(text),
        Kind::Sequence(items) => {
            let items: Vec<_> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Kind::Mapping(pairs) => {
            let mut sorted: Vec<_> = unique(pairs).collect();
            sorted.sort_by(|(a, _), (b, _)| key_rank(&a.kind, &b.kind));
            let pairs: Vec<_> =
                sorted.iter().map(|(k, v)| format!("{}:{}", go_syntax(k), go_syntax(v))).collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", pairs.join(", "))
        }
    }
}

/// The pairs of a mapping that count: of equal keys the last one.
pub(super) fn unique(pairs: &[(Node, Node)]) -> impl Iterator<Item = &(Node, Node)> {
    pairs
        .iter()
        .enumerate()
        .filter(|(i, (key, _))| !pairs[i + 1..].iter().any(|(later, _)| later.kind == key.kind))
        .map(|(_, pair)| pair)
}

/// The order in which Go prints keys of different types: by where Helm's binaries hold the types, then by
/// value.
fn key_rank(a: &Kind, b: &Kind) -> Ordering {
    let rank = |kind: &Kind| match kind {
        Kind::Null => 0,
        Kind::String(_) => 1,
        Kind::Uint(_) => 2,
        Kind::Int(_) => 3,
        Kind::Float(_) => 4,
        Kind::Bool(_) => 5,
        Kind::Sequence(_) | Kind::Mapping(_) => 6,
    };
    match (a, b) {
        (Kind::String(a), Kind::String(b)) => a.cmp(b),
        (Kind::Uint(a), Kind::Uint(b)) => a.cmp(b),
        (Kind::Int(a), Kind::Int(b)) => a.cmp(b),
        (Kind::Float(a), Kind::Float(b)) if a.is_nan() || b.is_nan() => b.is_nan().cmp(&a.is_nan()),
        (Kind::Float(a), Kind::Float(b)) => a.total_cmp(b),
        (Kind::Bool(a), Kind::Bool(b)) => a.cmp(b),
        _ => rank(a).cmp(&rank(b)),
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

fn place(number: usize) -> u32 {
    u32::try_from(number + 1).unwrap_or(u32::MAX)
}

fn failure(mark: Mark, problem: &str) -> Error {
    Error { line: place(mark.line), column: place(mark.column), message: format!("yaml: {problem}") }
}

/// A mistake in go-yaml's words; its line is go-yaml's, ours is the true one.
fn told(problem: &Problem, text: &str) -> Error {
    let Problem { stage, text: words, mark, context } = problem;
    let said = match mark.line {
        0 => context.line,
        line => line + usize::from(*stage == Stage::Scanner),
    };
    let message = if said == 0 { format!("yaml: {words}") } else { format!("yaml: line {said}: {words}") };
    if *stage == Stage::Reader {
        let (line, column) = control_character(text);
        return Error { line, column, message };
    }
    Error { line: place(mark.line), column: place(mark.column), message }
}

fn control_character(text: &str) -> (u32, u32) {
    for (number, line) in text.split('\n').enumerate() {
        if let Some(column) = line.chars().position(|c| !is_allowed(c)) {
            return (place(number), place(column));
        }
    }
    (0, 0)
}
