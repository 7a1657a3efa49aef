//! From tokens to events: which list, map or scalar begins or ends where, with tags resolved. The grammar is
//! libyaml's, as a machine of states, so that depth costs memory of the heap only. Read `compose` next.

use super::reader::{Mark, Problem, Stage};
use super::scan::{Kind, Scanner, Style, Token};

/// The events of a document, in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    StreamEnd,
    DocumentStart,
    DocumentEnd,
    Alias(String),
    Scalar {
        anchor: Option<String>,
        tag: Option<String>,
        value: String,
        /// Plain and without a tag, or with the tag `!`: what it means is found out from its text.
        implicit: bool,
    },
    SequenceStart {
        anchor: Option<String>,
    },
    SequenceEnd,
    MappingStart {
        anchor: Option<String>,
    },
    MappingEnd,
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) what: What,
    pub(super) start: Mark,
}

#[derive(Clone, Copy, Debug)]
enum State {
    DocumentStart { implicit: bool },
    DocumentContent,
    DocumentEnd,
    BlockNode,
    BlockSequenceEntry { first: bool },
    IndentlessSequenceEntry,
    BlockMappingKey { first: bool },
    BlockMappingValue,
    FlowSequenceEntry { first: bool },
    FlowPairKey,
    FlowPairValue,
    FlowPairEnd,
    FlowMappingKey { first: bool },
    FlowMappingValue { empty: bool },
    End,
}

/// Where a node stands, which decides what it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a block; a list may not begin at the parent's own column.
    Block,
    /// The key or value of a block map, where it may.
    BlockPair,
    Flow,
}

/// Reads events.
pub(super) struct Parser<'t> {
    scanner: Scanner<'t>,
    state: State,
    states: Vec<State>,
    marks: Vec<Mark>,
    /// Handles of tags and what they stand for.
    handles: Vec<(String, String)>,
}

const DEFAULTS: [(&str, &str); 2] = [("!", "!"), ("!!", "tag:yaml.org,2002:")];

type Read<T> = Result<T, Problem>;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str) -> Parser<'t> {
        Parser {
            scanner: Scanner::new(text),
            state: State::DocumentStart { implicit: true },
            states: Vec::new(),
            marks: Vec::new(),
            handles: Vec::new(),
        }
    }

    /// The next event; after `StreamEnd` only that.
    pub(super) fn next(&mut self) -> Read<Event> {
        match self.state {
            State::DocumentStart { implicit } => self.document_start(implicit),
            State::DocumentContent => self.document_content(),
            State::DocumentEnd => self.document_end(),
            State::BlockNode => self.node(Place::Block),
            State::BlockSequenceEntry { first } => self.block_sequence_entry(first),
            State::IndentlessSequenceEntry => self.indentless_entry(),
            State::BlockMappingKey { first } => self.block_mapping_key(first),
            State::BlockMappingValue => self.block_mapping_value(),
            State::FlowSequenceEntry { first } => self.flow_sequence_entry(first),
            State::FlowPairKey => self.flow_pair_key(),
            State::FlowPairValue => self.flow_pair_value(),
            State::FlowPairEnd => {
                let start = self.peek()?.start;
                self.state = State::FlowSequenceEntry { first: false };
                Ok(Event { what: What::MappingEnd, start })
            }
            State::FlowMappingKey { first } => self.flow_mapping_key(first),
            State::FlowMappingValue { empty } => self.flow_mapping_value(empty),
            State::End => Ok(Event { what: What::StreamEnd, start: self.scanner.reader.mark }),
        }
    }

    fn peek(&mut self) -> Read<&Token> {
        self.scanner.peek()
    }

    /// Takes the present token and looks at the next one.
    fn step(&mut self) -> Read<&Token> {
        self.scanner.take();
        self.scanner.peek()
    }

    fn problem<T>(mark: Mark, context: Mark, text: &str) -> Read<T> {
        Err(Problem { stage: Stage::Parser, text: text.to_owned(), mark, context })
    }

    fn back(&mut self) {
        self.state = self.states.pop().unwrap_or(State::End);
    }

    fn enter(&mut self) -> Read<()> {
        let start = self.peek()?.start;
        self.marks.push(start);
        self.scanner.take();
        Ok(())
    }

    /// Ends a collection with the present token.
    fn leave(&mut self, what: What) -> Read<Event> {
        let start = self.peek()?.start;
        self.back();
        self.marks.pop();
        self.scanner.take();
        Ok(Event { what, start })
    }

    fn empty(&mut self, start: Mark, then: State) -> Event {
        self.state = then;
        let what = What::Scalar { anchor: None, tag: None, value: String::new(), implicit: true };
        Event { what, start }
    }

    fn node_then(&mut self, place: Place, then: State) -> Read<Event> {
        self.states.push(then);
        self.node(place)
    }

    fn document_start(&mut self, implicit: bool) -> Read<Event> {
        if !implicit {
            while self.peek()?.kind == Kind::DocumentEnd {
                self.scanner.take();
            }
        }
        let token = self.peek()?;
        let start = token.start;
        if token.kind == Kind::StreamEnd {
            self.scanner.take();
            self.state = State::End;
            return Ok(Event { what: What::StreamEnd, start });
        }
        let starts = matches!(token.kind, Kind::Version(..) | Kind::TagDirective(..) | Kind::DocumentStart);
        self.directives()?;
        self.states.push(State::DocumentEnd);
        if implicit && !starts {
            self.state = State::BlockNode;
        } else {
            let token = self.peek()?;
            if token.kind != Kind::DocumentStart {
                let mark = token.start;
                return Self::problem(mark, Mark::default(), "did not find expected <document start>");
            }
            self.scanner.take();
            self.state = State::DocumentContent;
        }
        Ok(Event { what: What::DocumentStart, start })
    }

    fn directives(&mut self) -> Read<()> {
        let mut versioned = false;
        let mut handles: Vec<(String, String)> = Vec::new();
        loop {
            let token = self.peek()?;
            let mark = token.start;
            match &token.kind {
                Kind::Version(major, minor) => {
                    if versioned {
                        return Self::problem(mark, Mark::default(), "found duplicate %YAML directive");
                    }
                    if (*major, *minor) != (1, 1) {
                        return Self::problem(mark, Mark::default(), "found incompatible YAML document");
                    }
                    versioned = true;
                }
                Kind::TagDirective(handle, prefix) => {
                    if handles.iter().any(|(known, _)| known == handle) {
                        return Self::problem(mark, Mark::default(), "found duplicate %TAG directive");
                    }
                    handles.push((handle.clone(), prefix.clone()));
                }
                _ => break,
            }
            self.scanner.take();
        }
        for (handle, prefix) in DEFAULTS {
            if !handles.iter().any(|(known, _)| known == handle) {
                handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        self.handles = handles;
        Ok(())
    }

    fn document_content(&mut self) -> Read<Event> {
        let token = self.peek()?;
        let start = token.start;
        if matches!(
            token.kind,
            Kind::Version(..)
                | Kind::TagDirective(..)
                | Kind::DocumentStart
                | Kind::DocumentEnd
                | Kind::StreamEnd
        ) {
            let then = self.states.pop().unwrap_or(State::End);
            return Ok(self.empty(start, then));
        }
        self.node(Place::Block)
    }

    fn document_end(&mut self) -> Read<Event> {
        let token = self.peek()?;
        let start = token.start;
        if token.kind == Kind::DocumentEnd {
            self.scanner.take();
        }
        self.handles.clear();
        self.state = State::DocumentStart { implicit: false };
        Ok(Event { what: What::DocumentEnd, start })
    }

    /// A node's anchor and tag, in either order, and where the first of them stands.
    #[allow(clippy::type_complexity)]
    fn properties(&mut self) -> Read<(Option<String>, Option<(String, String, Mark)>, Mark)> {
        let (mut anchor, mut tag) = (None, None);
        let start = self.peek()?.start;
        loop {
            let token = self.peek()?;
            match &token.kind {
                Kind::Anchor(name) if anchor.is_none() => anchor = Some(name.clone()),
                Kind::Tag(handle, suffix) if tag.is_none() => {
                    tag = Some((handle.clone(), suffix.clone(), token.start));
                }
                _ => return Ok((anchor, tag, start)),
            }
            self.scanner.take();
        }
    }

    fn node(&mut self, place: Place) -> Read<Event> {
        let token = self.peek()?;
        if let Kind::Alias(name) = &token.kind {
            let event = Event { what: What::Alias(name.clone()), start: token.start };
            self.back();
            self.scanner.take();
            return Ok(event);
        }
        let (anchor, tag, start) = self.properties()?;
        let tag = match tag {
            None => None,
            Some((handle, suffix, _)) if handle.is_empty() => Some(suffix),
            Some((handle, suffix, mark)) => {
                let known = self.handles.iter().find(|(known, _)| *known == handle);
                match known.map(|(_, prefix)| format!("{prefix}{suffix}")).filter(|tag| !tag.is_empty()) {
                    Some(tag) => Some(tag),
                    None => return Self::problem(mark, start, "found undefined tag handle"),
                }
            }
        };
        let tag = tag.filter(|tag| !tag.is_empty());
        let token = self.peek()?;
        let here = token.start;
        let (what, state) = match &token.kind {
            Kind::BlockEntry if place == Place::BlockPair => {
                (What::SequenceStart { anchor }, State::IndentlessSequenceEntry)
            }
            Kind::Scalar(_, style) => {
                let implicit = match tag.as_deref() {
                    None => *style == Style::Plain,
                    Some(tag) => tag == "!",
                };
                self.back();
                let value = match self.scanner.take() {
                    Some(Token { kind: Kind::Scalar(value, _), .. }) => value,
                    _ => String::new(),
                };
                return Ok(Event { what: What::Scalar { anchor, tag, value, implicit }, start });
            }
            Kind::FlowSequenceStart => {
                (What::SequenceStart { anchor }, State::FlowSequenceEntry { first: true })
            }
            Kind::FlowMappingStart => (What::MappingStart { anchor }, State::FlowMappingKey { first: true }),
            Kind::BlockSequenceStart if place != Place::Flow => {
                (What::SequenceStart { anchor }, State::BlockSequenceEntry { first: true })
            }
            Kind::BlockMappingStart if place != Place::Flow => {
                (What::MappingStart { anchor }, State::BlockMappingKey { first: true })
            }
            _ if anchor.is_some() || tag.is_some() => {
                let implicit = tag.is_none();
                self.back();
                let what = What::Scalar { anchor, tag, value: String::new(), implicit };
                return Ok(Event { what, start });
            }
            _ => return Self::problem(here, start, "did not find expected node content"),
        };
        self.state = state;
        Ok(Event { what, start })
    }

    fn block_sequence_entry(&mut self, first: bool) -> Read<Event> {
        if first {
            self.enter()?;
        }
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::BlockEntry => {
                let then = State::BlockSequenceEntry { first: false };
                match self.step()?.kind {
                    Kind::BlockEntry | Kind::BlockEnd => Ok(self.empty(end, then)),
                    _ => self.node_then(Place::Block, then),
                }
            }
            Kind::BlockEnd => self.leave(What::SequenceEnd),
            _ => {
                let began = self.marks.pop().unwrap_or_default();
                Self::problem(start, began, "did not find expected '-' indicator")
            }
        }
    }

    fn indentless_entry(&mut self) -> Read<Event> {
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        if token.kind != Kind::BlockEntry {
            self.back();
            return Ok(Event { what: What::SequenceEnd, start });
        }
        let then = State::IndentlessSequenceEntry;
        match self.step()?.kind {
            Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd => Ok(self.empty(end, then)),
            _ => self.node_then(Place::Block, then),
        }
    }

    fn block_mapping_key(&mut self, first: bool) -> Read<Event> {
        if first {
            self.enter()?;
        }
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        match token.kind {
            Kind::Key => match self.step()?.kind {
                Kind::Key | Kind::Value | Kind::BlockEnd => Ok(self.empty(end, State::BlockMappingValue)),
                _ => self.node_then(Place::BlockPair, State::BlockMappingValue),
            },
            Kind::BlockEnd => self.leave(What::MappingEnd),
            _ => {
                let began = self.marks.pop().unwrap_or_default();
                Self::problem(start, began, "did not find expected key")
            }
        }
    }

    fn block_mapping_value(&mut self) -> Read<Event> {
        let then = State::BlockMappingKey { first: false };
        let token = self.peek()?;
        let (start, end) = (token.start, token.end);
        if token.kind != Kind::Value {
            return Ok(self.empty(start, then));
        }
        match self.step()?.kind {
            Kind::Key | Kind::Value | Kind::BlockEnd => Ok(self.empty(end, then)),
            _ => self.node_then(Place::BlockPair, then),
        }
    }

    /// Steps over the comma between two entries.
    fn flow_comma(&mut self, first: bool, missing: &str) -> Read<()> {
        let token = self.peek()?;
        if first {
            return Ok(());
        }
        if token.kind == Kind::FlowEntry {
            self.step()?;
            return Ok(());
        }
        let start = token.start;
        let began = self.marks.pop().unwrap_or_default();
        Self::problem(start, began, missing)
    }

    fn flow_sequence_entry(&mut self, first: bool) -> Read<Event> {
        if first {
            self.enter()?;
        }
        if self.peek()?.kind != Kind::FlowSequenceEnd {
            self.flow_comma(first, "did not find expected ',' or ']'")?;
            let token = self.peek()?;
            let start = token.start;
            match token.kind {
                Kind::Key => {
                    self.scanner.take();
                    self.state = State::FlowPairKey;
                    return Ok(Event { what: What::MappingStart { anchor: None }, start });
                }
                Kind::FlowSequenceEnd => {}
                _ => return self.node_then(Place::Flow, State::FlowSequenceEntry { first: false }),
            }
        }
        self.leave(What::SequenceEnd)
    }

    fn flow_pair_key(&mut self) -> Read<Event> {
        let token = self.peek()?;
        let end = token.end;
        match token.kind {
            Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd => {
                // The token is lost, as in go-yaml: a pair without a key has no value either.
                self.scanner.take();
                Ok(self.empty(end, State::FlowPairValue))
            }
            _ => self.node_then(Place::Flow, State::FlowPairValue),
        }
    }

    fn flow_pair_value(&mut self) -> Read<Event> {
        let token = self.peek()?;
        let start = token.start;
        if token.kind == Kind::Value && !matches!(self.step()?.kind, Kind::FlowEntry | Kind::FlowSequenceEnd)
        {
            return self.node_then(Place::Flow, State::FlowPairEnd);
        }
        Ok(self.empty(start, State::FlowPairEnd))
    }

    fn flow_mapping_key(&mut self, first: bool) -> Read<Event> {
        if first {
            self.enter()?;
        }
        if self.peek()?.kind != Kind::FlowMappingEnd {
            self.flow_comma(first, "did not find expected ',' or '}'")?;
            match self.peek()?.kind {
                Kind::Key => {
                    let then = State::FlowMappingValue { empty: false };
                    let token = self.step()?;
                    let start = token.start;
                    return match token.kind {
                        Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd => Ok(self.empty(start, then)),
                        _ => self.node_then(Place::Flow, then),
                    };
                }
                Kind::FlowMappingEnd => {}
                _ => return self.node_then(Place::Flow, State::FlowMappingValue { empty: true }),
            }
        }
        self.leave(What::MappingEnd)
    }

    fn flow_mapping_value(&mut self, empty: bool) -> Read<Event> {
        let then = State::FlowMappingKey { first: false };
        let mut start = self.peek()?.start;
        if !empty && self.peek()?.kind == Kind::Value {
            let token = self.step()?;
            if !matches!(token.kind, Kind::FlowEntry | Kind::FlowMappingEnd) {
                return self.node_then(Place::Flow, then);
            }
            start = token.start;
        }
        Ok(self.empty(start, then))
    }
}
