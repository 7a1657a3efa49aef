//! From characters to tokens, as libyaml and its descendant go-yaml v2 do it: indentation becomes tokens, and
//! a `:` makes what stands before it a key. Keeps their order of checks, so that the same mistake is told in
//! the same words.

use super::reader::{Mark, Problem, Reader, Stage};
use std::collections::{BTreeMap, VecDeque};

/// The style of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Quoted,
    Block,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    StreamEnd,
    Version(u8, u8),
    TagDirective(String, String),
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    /// Handle and suffix.
    Tag(String, String),
    Scalar(String, Style),
}

#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: Mark,
    pub(super) end: Mark,
}

/// A possible key: it is one if a `:` follows on its line.
#[derive(Clone, Copy, Debug)]
struct SimpleKey {
    possible: bool,
    required: bool,
    token: usize,
    mark: Mark,
}

/// How deep lists and maps may be in each other: go-yaml's limit.
const MAX_LEVELS: usize = 10_000;

/// Reads tokens.
pub(super) struct Scanner<'t> {
    pub(super) reader: Reader<'t>,
    tokens: VecDeque<Token>,
    /// How many tokens were taken.
    taken: usize,
    keys: Vec<SimpleKey>,
    /// The key that a token may be, by the token's number.
    key_of: BTreeMap<usize, usize>,
    pub(super) key_allowed: bool,
    /// The column of the present block, -1 outside.
    pub(super) indent: isize,
    indents: Vec<isize>,
    pub(super) flow: usize,
    ended: bool,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str) -> Scanner<'t> {
        let reader = Reader::new(text);
        let first = SimpleKey { possible: false, required: false, token: 0, mark: Mark::default() };
        Scanner {
            reader,
            tokens: VecDeque::new(),
            taken: 0,
            keys: vec![first],
            key_of: BTreeMap::new(),
            key_allowed: true,
            indent: -1,
            indents: Vec::new(),
            flow: 0,
            ended: false,
        }
    }

    /// The next token, left in place; the last one is `StreamEnd`.
    pub(super) fn peek(&mut self) -> Result<&Token, Problem> {
        self.fill()?;
        self.tokens
            .front()
            .ok_or_else(|| self.problem(Mark::default(), "did not find expected <stream-start>"))
    }

    /// Takes the token that was peeked at.
    pub(super) fn take(&mut self) -> Option<Token> {
        // Nobody asks for a key of a token that is gone.
        self.key_of.remove(&self.taken);
        self.taken += 1;
        self.tokens.pop_front()
    }

    /// An error here about something that began at `context`.
    pub(super) fn problem(&self, context: Mark, text: &str) -> Problem {
        Problem { stage: Stage::Scanner, text: text.to_owned(), mark: self.reader.mark, context }
    }

    /// Fetches until the first token can no longer become a key.
    fn fill(&mut self) -> Result<(), Problem> {
        loop {
            if !self.tokens.is_empty() {
                let Some(key) = self.key_of.get(&self.taken).copied() else { return Ok(()) };
                if !self.is_valid(key)? {
                    return Ok(());
                }
            } else if self.ended {
                return Ok(());
            }
            self.fetch()?;
        }
    }

    fn fetch(&mut self) -> Result<(), Problem> {
        self.reader.ensure(1)?;
        self.skip_to_token()?;
        self.unroll(isize::try_from(self.reader.mark.column).unwrap_or(isize::MAX));
        self.reader.ensure(4)?;
        let reader = &self.reader;
        let spaced = reader.is_space_or_end(1);
        match reader.byte(0) {
            _ if reader.at_end() => self.stream_end(),
            b'%' if reader.mark.column == 0 => self.directive(),
            mark @ (b'-' | b'.') if reader.at_document_mark() => self.document_mark(mark),
            b'[' => self.flow_start(Kind::FlowSequenceStart),
            b'{' => self.flow_start(Kind::FlowMappingStart),
            b']' => self.flow_end(Kind::FlowSequenceEnd),
            b'}' => self.flow_end(Kind::FlowMappingEnd),
            b',' => self.flow_entry(),
            b'-' if spaced => self.block_entry(),
            b'?' if self.flow > 0 || spaced => self.key(),
            b':' if self.flow > 0 || spaced => self.value(),
            b'*' | b'&' => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.anchor()?;
                self.push(token);
                Ok(())
            }
            b'!' => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.tag()?;
                self.push(token);
                Ok(())
            }
            b'|' | b'>' if self.flow == 0 => {
                self.remove_key()?;
                self.key_allowed = true;
                let token = self.block_scalar()?;
                self.push(token);
                Ok(())
            }
            quote @ (b'\'' | b'"') => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.quoted_scalar(quote == b'\'')?;
                self.push(token);
                Ok(())
            }
            first if self.may_be_plain(first) => {
                self.save_key()?;
                self.key_allowed = false;
                let token = self.plain_scalar()?;
                self.push(token);
                Ok(())
            }
            _ => Err(self.problem(self.reader.mark, "found character that cannot start any token")),
        }
    }

    fn may_be_plain(&self, first: u8) -> bool {
        let reader = &self.reader;
        match first {
            b'-' => !reader.is_blank(1),
            b'?' | b':' => self.flow == 0 && !reader.is_space_or_end(1),
            b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|' | b'>' | b'\'' | b'"'
            | b'%' | b'@' | b'`' => false,
            _ => !reader.is_space_or_end(0),
        }
    }

    /// Steps over spaces, comments and line breaks. A tab may not stand where a block could begin.
    fn skip_to_token(&mut self) -> Result<(), Problem> {
        loop {
            self.reader.ensure(1)?;
            if self.reader.mark.column == 0 && self.reader.at_second_mark() {
                self.reader.skip();
            }
            self.reader.ensure(1)?;
            let tabs = self.flow > 0 || !self.key_allowed;
            while self.reader.byte(0) == b' ' || (tabs && self.reader.byte(0) == b'\t') {
                self.reader.skip();
                self.reader.run(|byte| byte == b' ');
                self.reader.ensure(1)?;
            }
            self.skip_comment()?;
            if !self.reader.is_break(0) {
                return Ok(());
            }
            self.reader.ensure(2)?;
            self.reader.skip_line();
            if self.flow == 0 {
                self.key_allowed = true;
            }
        }
    }

    /// Steps over a comment, if one stands here.
    pub(super) fn skip_comment(&mut self) -> Result<(), Problem> {
        if self.reader.byte(0) == b'#' {
            while !self.reader.is_break_or_end(0) {
                self.reader.skip();
                self.reader.run(|byte| matches!(byte, b' '..=b'~'));
                self.reader.ensure(1)?;
            }
        }
        Ok(())
    }

    fn push(&mut self, token: Token) {
        self.tokens.push_back(token);
    }

    /// Puts a token before the one with that number; at the end where that one is gone already.
    fn insert(&mut self, number: Option<usize>, kind: Kind, mark: Mark) {
        let token = Token { kind, start: mark, end: mark };
        match number.and_then(|number| number.checked_sub(self.taken)) {
            Some(at) if at <= self.tokens.len() => self.tokens.insert(at, token),
            _ => self.tokens.push_back(token),
        }
    }

    /// Takes `count` characters as one token.
    fn indicator(&mut self, kind: Kind, count: usize) {
        let start = self.reader.mark;
        for _ in 0..count {
            self.reader.skip();
        }
        let end = self.reader.mark;
        self.push(Token { kind, start, end });
    }

    fn is_valid(&mut self, key: usize) -> Result<bool, Problem> {
        let Some(found) = self.keys.get_mut(key) else { return Ok(false) };
        if !found.possible {
            return Ok(false);
        }
        let here = self.reader.mark;
        if found.mark.line < here.line || found.mark.index + 1024 < here.index {
            if found.required {
                let began = found.mark;
                return Err(self.problem(began, "could not find expected ':'"));
            }
            found.possible = false;
            return Ok(false);
        }
        Ok(true)
    }

    /// Remembers that a key may begin here.
    fn save_key(&mut self) -> Result<(), Problem> {
        let column = isize::try_from(self.reader.mark.column).unwrap_or(isize::MAX);
        let required = self.flow == 0 && self.indent == column;
        if !self.key_allowed {
            return Ok(());
        }
        let token = self.taken + self.tokens.len();
        let key = SimpleKey { possible: true, required, token, mark: self.reader.mark };
        self.remove_key()?;
        let last = self.keys.len() - 1;
        self.keys[last] = key;
        self.key_of.insert(token, last);
        Ok(())
    }

    /// Forgets the possible key of this level.
    fn remove_key(&mut self) -> Result<(), Problem> {
        let Some(key) = self.keys.last_mut().filter(|key| key.possible) else { return Ok(()) };
        if key.required {
            let began = key.mark;
            return Err(self.problem(began, "could not find expected ':'"));
        }
        key.possible = false;
        self.key_of.remove(&key.token);
        Ok(())
    }

    /// Opens a block that begins in this column, unless it is open.
    fn roll(&mut self, number: Option<usize>, kind: Kind, mark: Mark) -> Result<(), Problem> {
        let column = isize::try_from(mark.column).unwrap_or(isize::MAX);
        if self.flow > 0 || self.indent >= column {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column;
        if self.indents.len() > MAX_LEVELS {
            let began = self.keys.last().map(|key| key.mark).unwrap_or_default();
            return Err(self.problem(began, &format!("exceeded max depth of {MAX_LEVELS}")));
        }
        self.insert(number, kind, mark);
        Ok(())
    }

    /// Closes the blocks that begin right of this column.
    fn unroll(&mut self, column: isize) {
        while self.flow == 0 && self.indent > column {
            let mark = self.reader.mark;
            self.push(Token { kind: Kind::BlockEnd, start: mark, end: mark });
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn stream_end(&mut self) -> Result<(), Problem> {
        if self.reader.mark.column != 0 {
            self.reader.mark.column = 0;
            self.reader.mark.line += 1;
        }
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.ended = true;
        self.indicator(Kind::StreamEnd, 0);
        Ok(())
    }

    fn directive(&mut self) -> Result<(), Problem> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        let token = self.directive_token()?;
        self.push(token);
        Ok(())
    }

    fn document_mark(&mut self, mark: u8) -> Result<(), Problem> {
        self.unroll(-1);
        self.remove_key()?;
        self.key_allowed = false;
        self.indicator(if mark == b'-' { Kind::DocumentStart } else { Kind::DocumentEnd }, 3);
        Ok(())
    }

    fn flow_start(&mut self, kind: Kind) -> Result<(), Problem> {
        self.save_key()?;
        let token = self.taken + self.tokens.len();
        let mark = self.reader.mark;
        self.keys.push(SimpleKey { possible: false, required: false, token, mark });
        self.flow += 1;
        if self.flow > MAX_LEVELS {
            return Err(self.problem(mark, &format!("exceeded max depth of {MAX_LEVELS}")));
        }
        self.key_allowed = true;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_end(&mut self, kind: Kind) -> Result<(), Problem> {
        self.remove_key()?;
        if self.flow > 0 {
            self.flow -= 1;
            if let Some(key) = self.keys.pop() {
                self.key_of.remove(&key.token);
            }
        }
        self.key_allowed = false;
        self.indicator(kind, 1);
        Ok(())
    }

    fn flow_entry(&mut self) -> Result<(), Problem> {
        self.remove_key()?;
        self.key_allowed = true;
        self.indicator(Kind::FlowEntry, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), Problem> {
        if self.flow == 0 {
            let mark = self.reader.mark;
            if !self.key_allowed {
                return Err(self.problem(mark, "block sequence entries are not allowed in this context"));
            }
            self.roll(None, Kind::BlockSequenceStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = true;
        self.indicator(Kind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Result<(), Problem> {
        if self.flow == 0 {
            let mark = self.reader.mark;
            if !self.key_allowed {
                return Err(self.problem(mark, "mapping keys are not allowed in this context"));
            }
            self.roll(None, Kind::BlockMappingStart, mark)?;
        }
        self.remove_key()?;
        self.key_allowed = self.flow == 0;
        self.indicator(Kind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Result<(), Problem> {
        let last = self.keys.len() - 1;
        if self.is_valid(last)? {
            let key = self.keys[last];
            self.insert(Some(key.token), Kind::Key, key.mark);
            self.roll(Some(key.token), Kind::BlockMappingStart, key.mark)?;
            self.keys[last].possible = false;
            self.key_of.remove(&key.token);
            self.key_allowed = false;
        } else {
            if self.flow == 0 {
                let mark = self.reader.mark;
                if !self.key_allowed {
                    return Err(self.problem(mark, "mapping values are not allowed in this context"));
                }
                self.roll(None, Kind::BlockMappingStart, mark)?;
            }
            self.key_allowed = self.flow == 0;
        }
        self.indicator(Kind::Value, 1);
        Ok(())
    }
}
