//! Lists and maps in brackets, as the quick reader takes them: of words, numbers, quoted text and each other.

use super::block::{Reader, node};
use super::{Kind, Node, Scalar, resolve};

/// Deeper ones are for `compose`.
const MAX_DEPTH: usize = 20;

impl<'t> Reader<'t> {
    /// A list or map in brackets, also over several lines; ends behind it.
    pub(super) fn flow(&mut self) -> Option<Kind> {
        self.flow_below(0)
    }

    fn flow_below(&mut self, depth: usize) -> Option<Kind> {
        if depth > MAX_DEPTH {
            return None;
        }
        let list = self.peek() == Some(b'[');
        self.at += 1;
        let (mut items, mut pairs) = (Vec::new(), Vec::new());
        loop {
            self.flow_space()?;
            match self.peek()? {
                b']' if list => {
                    self.at += 1;
                    return Some(Kind::Sequence(items));
                }
                b'}' if !list => {
                    self.at += 1;
                    return Some(Kind::Mapping(pairs));
                }
                _ => {}
            }
            if list {
                let item = self.flow_value(depth)?;
                if !self.skips {
                    items.push(item);
                }
            } else {
                let key = self.flow_key()?;
                self.flow_space()?;
                let value = self.flow_value(depth)?;
                if !self.skips {
                    pairs.push((key, value));
                }
            }
            self.flow_space()?;
            match self.peek()? {
                b',' => self.at += 1,
                b']' if list => {}
                b'}' if !list => {}
                _ => return None,
            }
        }
    }

    /// Steps over spaces and the ends of lines.
    fn flow_space(&mut self) -> Option<()> {
        self.at += self.spaces();
        while self.at == self.end {
            self.end_line();
            if self.at >= self.text.len() {
                return None;
            }
            // A document may end at the start of a line.
            if matches!(self.peek(), Some(b'-' | b'.')) {
                return None;
            }
            self.at += self.spaces();
        }
        Some(())
    }

    fn flow_value(&mut self, depth: usize) -> Option<Node> {
        let mark = self.mark();
        let kind = match self.peek()? {
            b'[' | b'{' => self.flow_below(depth + 1)?,
            quote @ (b'"' | b'\'') => self.flow_quoted(quote)?,
            _ => {
                let text = self.flow_plain()?;
                self.meaning(text)?
            }
        };
        node(mark, kind)
    }

    /// A key with its colon; what follows the colon is set off.
    fn flow_key(&mut self) -> Option<Node> {
        let mark = self.mark();
        let kind = match self.peek()? {
            quote @ (b'"' | b'\'') => self.flow_quoted(quote)?,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let text = self.flow_plain()?;
                // Words that are not text are rare as keys.
                if resolve(text) != Scalar::String {
                    return None;
                }
                Kind::String(if self.skips { String::new() } else { text.to_owned() })
            }
            _ => return None,
        };
        if self.peek() != Some(b':') || !matches!(self.byte(1), Some(b' ' | b'\n')) {
            return None;
        }
        self.at += 1;
        node(mark, kind)
    }

    /// Quoted text that ends on its line.
    fn flow_quoted(&mut self, quote: u8) -> Option<Kind> {
        let line = self.line;
        if !self.rest().is_ascii() {
            return None;
        }
        let text = self.quoted(quote, usize::MAX)?;
        (self.line == line).then_some(Kind::String(text))
    }

    /// Plain text up to what ends it in brackets.
    fn flow_plain(&mut self) -> Option<&'t str> {
        let line = self.rest();
        if !matches!(line.first()?, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'-' | b'$')
        {
            return None;
        }
        if line[0] == b'-' && !line.get(1)?.is_ascii_alphanumeric() {
            return None;
        }
        let mut end = 0;
        while let Some(byte) = line.get(end) {
            match byte {
                b'a'..=b'z'
                | b'A'..=b'Z'
                | b'0'..=b'9'
                | b'_'
                | b'.'
                | b'/'
                | b'-'
                | b'='
                | b'+'
                | b'*'
                | b'$' => {}
                b' ' => {
                    // Words with spaces between them are one text; a comment or a colon is not worth finding
                    // out.
                    let more = line[end..].iter().take_while(|b| **b == b' ').count();
                    if !line.get(end + more).is_some_and(u8::is_ascii_alphanumeric) {
                        break;
                    }
                }
                b':' => match line.get(end + 1) {
                    None | Some(b' ') => break,
                    Some(next) if next.is_ascii_alphanumeric() || *next == b'/' => {}
                    Some(_) => return None,
                },
                b',' | b']' | b'}' => break,
                _ => return None,
            }
            end += 1;
        }
        let text = self.source.get(self.at..self.at + end)?;
        self.at += end;
        Some(text)
    }
}
