//! A quick reader of everyday YAML: block maps and lists, plain, quoted and literal scalars, lists and maps
//! in brackets. What it is not sure about it leaves alone (`None`), and `compose` decides; so it never
//! reports an error and never reads a text in another way than `compose` does. A test compares both. Scalars
//! are in `block_scalar`, brackets in `block_flow`.

use super::compose::resolved;
use super::reader::first_special;
use super::{Kind, Node, Scalar, resolve};

/// Deeper texts are for `compose`, which knows the limit.
const MAX_DEPTH: usize = 100;
/// A key may be 1024 characters long.
const LONGEST_KEY: usize = 1000;

/// Reads a text that is one map or list in block style.
pub(super) fn parse(text: &str) -> Option<Node> {
    let mut reader = Reader::new(text)?;
    let length = reader.start()?;
    let node = reader.block(length)?;
    reader.next.is_none().then_some(node)
}

/// Reads a map that every conversion to JSON takes, and keeps only what stands under these keys; the values
/// of the others are null.
pub(super) fn skim(text: &str, wanted: &[&str]) -> Option<Node> {
    let mut reader = Reader::new(text)?;
    let length = reader.start()??;
    reader.wanted = wanted;
    reader.strict = true;
    let node = reader.mapping(length)?;
    reader.next.is_none().then_some(node)
}

/// Returns true if there are only characters that mean nothing special to a YAML scanner.
fn is_plain_text(text: &str) -> bool {
    let mut rest = text;
    while let Some(special) = first_special(rest.as_bytes()) {
        let mut characters = rest[special..].chars();
        let plain = characters.next().is_some_and(|c| {
            matches!(c, '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}' | '\u{10000}'..)
        });
        if !plain {
            return false;
        }
        rest = characters.as_str();
    }
    true
}

/// Walks through a text line by line.
pub(super) struct Reader<'t> {
    pub(super) text: &'t [u8],
    pub(super) source: &'t str,
    pub(super) at: usize,
    /// The line at hand, from 0, where it starts and where it ends.
    pub(super) line: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    /// The column of the next content once the reader has advanced to it; nothing at the end.
    next: Option<usize>,
    pub(super) depth: usize,
    /// Keys of the outermost map whose values are kept; all, where none is named.
    wanted: &'t [&'t str],
    /// True to leave values alone that do not become JSON.
    strict: bool,
    /// True if what is read now is not wanted, so that nothing is built.
    pub(super) skips: bool,
}

/// Where a node starts, from 0.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    line: u32,
    column: usize,
}

/// Where a reader stands.
pub(super) type Spot = (usize, u32, usize, usize);

pub(super) fn node(mark: Mark, kind: Kind) -> Option<Node> {
    Some(Node { line: mark.line + 1, column: u32::try_from(mark.column).ok()? + 1, kind })
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Option<Reader<'t>> {
        if !is_plain_text(text) {
            return None;
        }
        let mut reader = Reader {
            text: text.as_bytes(),
            source: text,
            at: 0,
            line: 0,
            start: 0,
            end: 0,
            next: None,
            depth: 0,
            wanted: &[],
            strict: false,
            skips: false,
        };
        reader.find_end();
        if text.starts_with("---\n") {
            reader.end_line();
        }
        Some(reader)
    }

    /// Goes to the first content; the length of the key there, if it is one.
    #[allow(clippy::option_option)]
    fn start(&mut self) -> Option<Option<usize>> {
        self.advance()?;
        self.next?;
        Some(if self.is_entry() { None } else { Some(self.key_length()?) })
    }

    fn find_end(&mut self) {
        let rest = &self.text[self.start..];
        self.end = self.start + memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    pub(super) fn spot(&self) -> Spot {
        (self.at, self.line, self.start, self.end)
    }

    pub(super) fn go_back(&mut self, spot: Spot) {
        (self.at, self.line, self.start, self.end) = spot;
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { line: self.line, column: self.at - self.start }
    }

    /// The rest of the line at hand.
    pub(super) fn rest(&self) -> &'t [u8] {
        &self.text[self.at..self.end]
    }

    /// How many spaces stand here.
    pub(super) fn spaces(&self) -> usize {
        self.rest().iter().take_while(|b| **b == b' ').count()
    }

    /// Goes to the start of the next line.
    pub(super) fn end_line(&mut self) {
        self.at = self.end;
        if self.at < self.text.len() {
            self.at += 1;
            self.line += 1;
            self.start = self.at;
            self.find_end();
        }
    }

    /// From the start of a line to the next content. `None` for what is not for us.
    fn advance(&mut self) -> Option<()> {
        loop {
            if self.at >= self.text.len() {
                self.next = None;
                return Some(());
            }
            let line = self.rest();
            let column = self.spaces();
            match line.get(column) {
                None | Some(b'#') => self.end_line(),
                Some(b'\t') => return None,
                Some(b'%') if column == 0 => return None,
                Some(_) if column == 0 && (line.starts_with(b"---") || line.starts_with(b"...")) => {
                    return None;
                }
                Some(_) => {
                    self.at += column;
                    self.next = Some(column);
                    return Some(());
                }
            }
        }
    }

    /// A map or list whose first content is at hand; a map, where the length of its first key is given.
    fn block(&mut self, key: Option<usize>) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let read = match key {
            None => self.sequence()?,
            Some(length) => self.mapping(length)?,
        };
        self.depth -= 1;
        Some(read)
    }

    fn is_entry(&self) -> bool {
        self.peek() == Some(b'-') && matches!(self.byte(1), None | Some(b' ' | b'\n'))
    }

    /// The line ends here, but for spaces and a comment.
    pub(super) fn ends(&self) -> bool {
        let rest = self.rest();
        let spaces = self.spaces();
        match rest.get(spaces) {
            None => true,
            Some(b'#') => spaces > 0 || self.text.get(self.at.wrapping_sub(1)) == Some(&b' '),
            Some(_) => false,
        }
    }

    fn sequence(&mut self) -> Option<Node> {
        let mark = self.mark();
        let indent = mark.column;
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let after = self.mark();
            let item = if self.ends() {
                self.end_line();
                self.advance()?;
                self.nested(indent, false, after)?
            } else {
                self.at += self.spaces();
                let length = if self.is_entry() { Some(None) } else { self.key_length().map(Some) };
                match length {
                    Some(key) => self.block(key)?,
                    None => self.line_scalar(indent)?,
                }
            };
            if !self.skips {
                items.push(item);
            }
            match self.next {
                Some(column) if column == indent && self.peek() == Some(b'-') => {
                    if !self.is_entry() {
                        return node(mark, Kind::Sequence(items));
                    }
                }
                Some(column) if column > indent => return None,
                _ => return node(mark, Kind::Sequence(items)),
            }
        }
    }

    fn mapping(&mut self, first: usize) -> Option<Node> {
        let mark = self.mark();
        let indent = mark.column;
        let mut pairs = Vec::new();
        let mut length = first;
        loop {
            let skipped = self.skips;
            let key = self.key(length)?;
            if !self.wanted.is_empty() && self.depth == 0 {
                self.skips = !key.as_str().is_some_and(|key| self.wanted.contains(&key));
            }
            let after = self.mark();
            let value = if self.ends() {
                self.end_line();
                self.advance()?;
                self.nested(indent, true, after)?
            } else {
                self.at += self.spaces();
                self.line_scalar(indent)?
            };
            self.skips = skipped;
            if !skipped {
                pairs.push((key, value));
            }
            match self.next {
                Some(column) if column == indent => {
                    if self.is_entry() {
                        return None;
                    }
                    length = self.key_length()?;
                }
                Some(column) if column > indent => return None,
                _ => return node(mark, Kind::Mapping(pairs)),
            }
        }
    }

    /// The node on the lines below a key or dash, if it belongs to it.
    fn nested(&mut self, indent: usize, in_map: bool, empty: Mark) -> Option<Node> {
        let Some(column) = self
            .next
            .filter(|column| *column > indent || (in_map && *column == indent && self.peek() == Some(b'-')))
        else {
            return node(empty, Kind::Null);
        };
        if self.is_entry() {
            return self.block(None);
        }
        if column == indent {
            // A key that starts with a dash: the next one of the map.
            return node(empty, Kind::Null);
        }
        if let Some(length) = self.key_length() {
            return self.block(Some(length));
        }
        // A block scalar counts its indentation from elsewhere.
        if matches!(self.peek(), Some(b'|' | b'>')) { None } else { self.line_scalar(indent) }
    }

    /// How long the key at hand is as written, if there is one.
    fn key_length(&self) -> Option<usize> {
        let line = self.rest();
        match line.first()? {
            quote @ (b'"' | b'\'') => {
                let end = 2 + line[1..].iter().position(|b| b == quote)?;
                let plain = line[..end].iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\\');
                let alone = line.get(end) == Some(&b':') && matches!(line.get(end + 1), None | Some(b' '));
                let spaced = line[..end].windows(2).any(|pair| pair == b" #");
                (end < LONGEST_KEY && plain && alone && !spaced).then_some(end)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'$' | b'-' | b'+' | b'(' => {
                for (i, byte) in line[..line.len().min(LONGEST_KEY)].iter().enumerate() {
                    match byte {
                        b':' if matches!(line.get(i + 1), None | Some(b' ')) => {
                            return (line[i - 1] != b' ').then_some(i);
                        }
                        b'#' if line[i - 1] == b' ' => return None,
                        b' '..=b'~' => {}
                        _ => return None,
                    }
                }
                None
            }
            _ => None,
        }
    }

    /// Reads a key of that length and its colon.
    fn key(&mut self, length: usize) -> Option<Node> {
        let mark = self.mark();
        let written = self.source.get(self.at..self.at + length)?;
        self.at += length + 1;
        let quoted = matches!(written.as_bytes(), [b'"' | b'\'', ..]);
        if self.strict
            && !quoted
            && !matches!(resolve(written), Scalar::String | Scalar::Bool(_) | Scalar::Int(_))
        {
            return None;
        }
        let kind = match written.as_bytes() {
            _ if self.skips => Kind::Null,
            [b'"' | b'\'', inner @ .., _] => Kind::String(String::from_utf8(inner.to_vec()).ok()?),
            _ => resolved(written.to_owned()),
        };
        node(mark, kind)
    }

    /// The value of plain text.
    pub(super) fn meaning(&self, text: &str) -> Option<Kind> {
        if !self.skips {
            return self.kept(resolved(text.to_owned()));
        }
        match resolve(text) {
            Scalar::Float(value) if self.strict && !value.is_finite() => None,
            _ => Some(Kind::Null),
        }
    }

    fn kept(&self, kind: Kind) -> Option<Kind> {
        match kind {
            Kind::Float(value) if self.strict && !value.is_finite() => None,
            kind => Some(kind),
        }
    }

    /// A scalar, and on to the next content.
    fn line_scalar(&mut self, indent: usize) -> Option<Node> {
        let read = self.scalar(indent)?;
        self.advance()?;
        Some(read)
    }
}
