//! A quick reader of everyday block YAML: maps, lists, one-line scalars, folded plain text and literal blocks.
//! What it is not sure about it leaves alone (`None`), and `compose` decides; so it never reports an error and never
//! reads a text in another way than `compose` does. A test compares both.

use super::compose::resolved;
use super::reader::first_special;
use super::{Kind, Node};

/// Deeper texts are for `compose`, which knows the limit.
const MAX_DEPTH: usize = 100;
/// A key may be 1024 characters long.
const LONGEST_KEY: usize = 1000;

/// Reads a text that is one map or list in block style.
pub(super) fn parse(text: &str) -> Option<Node> {
    if !is_plain_text(text) {
        return None;
    }
    let mut reader = Reader { text: text.as_bytes(), source: text, at: 0, line: 0, start: 0, depth: 0 };
    if text.starts_with("---\n") {
        reader.at = 4;
        reader.line = 1;
        reader.start = 4;
    }
    let indent = reader.next_content()??;
    let node = reader.block(indent)?;
    match reader.next_content()? {
        None => Some(node),
        Some(_) => None,
    }
}

/// Whether there are only characters that mean nothing special to a YAML scanner.
fn is_plain_text(text: &str) -> bool {
    let Some(special) = first_special(text.as_bytes()) else { return true };
    text[special..].chars().all(|c| {
        matches!(c, '\n' | '\t' | ' '..='~' | '\u{A0}'..='\u{2027}' | '\u{202A}'..='\u{FEFE}' | '\u{FF00}'..='\u{FFFD}' | '\u{10000}'..)
    })
}

struct Reader<'t> {
    text: &'t [u8],
    source: &'t str,
    at: usize,
    /// The line at hand, from 0, and where it starts.
    line: u32,
    start: usize,
    depth: usize,
}

/// Where a node starts, from 0.
#[derive(Clone, Copy)]
struct Mark {
    line: u32,
    column: usize,
}

fn node(mark: Mark, kind: Kind) -> Option<Node> {
    Some(Node { line: mark.line + 1, column: u32::try_from(mark.column).ok()? + 1, kind })
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn mark(&self) -> Mark {
        Mark { line: self.line, column: self.at - self.start }
    }

    /// The rest of the line at hand.
    fn rest(&self) -> &'t [u8] {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        &rest[..end]
    }

    /// Goes to the start of the next line.
    fn end_line(&mut self) {
        self.at += self.rest().len();
        if self.at < self.text.len() {
            self.at += 1;
            self.line += 1;
            self.start = self.at;
        }
    }

    /// From the start of a line to the next content: its column, or that there is none.
    /// `None` for what is not for us.
    #[allow(clippy::option_option)]
    fn next_content(&mut self) -> Option<Option<usize>> {
        loop {
            if self.at >= self.text.len() {
                return Some(None);
            }
            let line = self.rest();
            let column = line.iter().take_while(|b| **b == b' ').count();
            match line.get(column) {
                None | Some(b'#') => {
                    self.end_line();
                }
                Some(b'\t') => return None,
                Some(b'%') if column == 0 => return None,
                Some(_) if column == 0 && (line.starts_with(b"---") || line.starts_with(b"...")) => {
                    return None;
                }
                Some(_) => {
                    self.at += column;
                    return Some(Some(column));
                }
            }
            if self.at >= self.text.len() {
                return Some(None);
            }
        }
    }

    /// Looks at the next content and stays where it is.
    #[allow(clippy::option_option)]
    fn peek_content(&mut self) -> Option<Option<(usize, u8)>> {
        let here = (self.at, self.line, self.start);
        let found = self.next_content()?.map(|column| (column, self.text[self.at]));
        (self.at, self.line, self.start) = here;
        Some(found)
    }

    /// A map or list whose first content is at hand.
    fn block(&mut self, indent: usize) -> Option<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        let read = if self.is_entry() { self.sequence(indent)? } else { self.mapping(indent)? };
        self.depth -= 1;
        Some(read)
    }

    fn is_entry(&self) -> bool {
        self.peek() == Some(b'-') && matches!(self.byte(1), None | Some(b' ' | b'\n'))
    }

    /// The line ends here, but for spaces and a comment.
    fn ends(&self) -> bool {
        let rest = self.rest();
        let spaces = rest.iter().take_while(|b| **b == b' ').count();
        match rest.get(spaces) {
            None => true,
            Some(b'#') => spaces > 0 || self.text.get(self.at.wrapping_sub(1)) == Some(&b' '),
            Some(_) => false,
        }
    }

    fn skip_spaces(&mut self) {
        self.at += self.rest().iter().take_while(|b| **b == b' ').count();
    }

    fn sequence(&mut self, indent: usize) -> Option<Node> {
        let mark = self.mark();
        let mut items = Vec::new();
        loop {
            self.at += 1;
            let after = self.mark();
            if self.ends() {
                self.end_line();
                items.push(self.nested(indent, false, after)?);
            } else {
                self.skip_spaces();
                let column = self.at - self.start;
                if self.is_entry() || self.key_length().is_some() {
                    items.push(self.block(column)?);
                } else {
                    items.push(self.scalar(indent)?);
                }
            }
            match self.peek_content()? {
                Some((column, b'-')) if column == indent => {
                    self.next_content()?;
                    if !self.is_entry() {
                        self.at = self.start;
                        return node(mark, Kind::Sequence(items));
                    }
                }
                Some((column, _)) if column > indent => return None,
                _ => return node(mark, Kind::Sequence(items)),
            }
        }
    }

    fn mapping(&mut self, indent: usize) -> Option<Node> {
        let mark = self.mark();
        let mut pairs = Vec::new();
        loop {
            let key = self.key()?;
            let after = self.mark();
            let value = if self.ends() {
                self.end_line();
                self.nested(indent, true, after)?
            } else {
                self.skip_spaces();
                self.scalar(indent)?
            };
            pairs.push((key, value));
            match self.peek_content()? {
                Some((column, _)) if column == indent => {
                    self.next_content()?;
                    if self.is_entry() {
                        return None;
                    }
                }
                Some((column, _)) if column > indent => return None,
                _ => return node(mark, Kind::Mapping(pairs)),
            }
        }
    }

    /// What stands on the lines below a key or dash, if it belongs to it.
    fn nested(&mut self, indent: usize, in_map: bool, empty: Mark) -> Option<Node> {
        match self.peek_content()? {
            Some((column, first)) if column > indent || (in_map && column == indent && first == b'-') => {
                self.next_content()?;
                if self.is_entry() || (column > indent && self.key_length().is_some()) {
                    self.block(column)
                } else if column == indent {
                    // A key that starts with a dash: the next one of the map.
                    self.at = self.start;
                    node(empty, Kind::Null)
                } else {
                    None
                }
            }
            _ => node(empty, Kind::Null),
        }
    }

    /// How long the key at hand is as written, if there is one.
    fn key_length(&self) -> Option<usize> {
        let line = self.rest();
        let end = match line.first()? {
            quote @ (b'"' | b'\'') => {
                let close = 1 + line[1..].iter().position(|b| b == quote)?;
                if line[..close].contains(&b'\\') {
                    return None;
                }
                close + 1
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'/' | b'$' | b'-' | b'+' | b'(' => {
                let ends = |i: &usize| line[*i] == b':' && matches!(line.get(i + 1), None | Some(b' '));
                (0..line.len().min(LONGEST_KEY)).find(ends)?
            }
            _ => return None,
        };
        let plain = line[..end].iter().all(|b| matches!(b, b' '..=b'~'));
        let fits = end < LONGEST_KEY && plain && line.get(end) == Some(&b':');
        let alone = matches!(line.get(end + 1), None | Some(b' '));
        let spaced = line[..end].windows(2).any(|pair| pair == b" #") || line[end - 1] == b' ';
        (fits && alone && !spaced).then_some(end)
    }

    /// Reads a key and its colon.
    fn key(&mut self) -> Option<Node> {
        let length = self.key_length()?;
        let mark = self.mark();
        let written = self.source.get(self.at..self.at + length)?;
        self.at += length + 1;
        let kind = match written.as_bytes() {
            [b'"' | b'\'', inner @ .., _] => Kind::String(String::from_utf8(inner.to_vec()).ok()?),
            _ => resolved(written.to_owned()),
        };
        node(mark, kind)
    }

    /// A scalar, or `[]` or `{}`, after a key or dash of a map or list at `indent`; ends at the start of a line.
    fn scalar(&mut self, indent: usize) -> Option<Node> {
        let mark = self.mark();
        let kind = match self.peek()? {
            b'|' => self.literal(indent)?,
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote, indent)?;
                self.close(Kind::String(text))?
            }
            b'[' if self.byte(1) == Some(b']') => {
                self.at += 2;
                self.close(Kind::Sequence(Vec::new()))?
            }
            b'{' if self.byte(1) == Some(b'}') => {
                self.at += 2;
                self.close(Kind::Mapping(Vec::new()))?
            }
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'_'
            | b'.'
            | b'/'
            | b'$'
            | b'+'
            | b'('
            | b'~'
            | b'<'
            | b'='
            | b'^' => self.plain(indent)?,
            b'-' if !matches!(self.byte(1), None | Some(b' ' | b'\n' | b'\t')) => self.plain(indent)?,
            _ => return None,
        };
        node(mark, kind)
    }

    /// After a scalar nothing may follow on its line or be part of it on the next ones.
    fn close(&mut self, kind: Kind) -> Option<Kind> {
        if !self.ends() {
            return None;
        }
        self.end_line();
        Some(kind)
    }

    /// Text in quotes, over several lines if the next ones stand deeper than `indent`.
    fn quoted(&mut self, quote: u8, indent: usize) -> Option<String> {
        self.at += 1;
        let mut text = Vec::new();
        // How much of it stays where a line ends: blanks there do not count.
        let mut solid = 0;
        loop {
            let run = self.rest().iter().position(|b| *b == quote || matches!(b, b'\\' | b'\t'));
            let run = run.map_or(self.rest(), |end| &self.rest()[..end]);
            text.extend_from_slice(run);
            if let Some(last) = run.iter().rposition(|b| *b != b' ') {
                solid = text.len() - run.len() + last + 1;
            }
            self.at += run.len();
            match self.peek()? {
                b'\n' => {
                    text.truncate(solid);
                    self.fold(indent, &mut text)?;
                    solid = text.len();
                }
                b'\'' if quote == b'\'' && self.byte(1) == Some(b'\'') => {
                    text.push(b'\'');
                    solid = text.len();
                    self.at += 2;
                }
                b'\\' if quote == b'\'' => {
                    text.push(b'\\');
                    solid = text.len();
                    self.at += 1;
                }
                b'\\' => {
                    text.push(match self.byte(1)? {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'"' => b'"',
                        b'\\' => b'\\',
                        _ => return None,
                    });
                    solid = text.len();
                    self.at += 2;
                }
                b'\t' => return None,
                _ => break,
            }
        }
        self.at += 1;
        String::from_utf8(text).ok()
    }

    /// From the end of a line of quoted text to where the next one goes on: a space, or the empty lines between.
    fn fold(&mut self, indent: usize, text: &mut Vec<u8>) -> Option<()> {
        let mut empty = 0;
        loop {
            self.end_line();
            let line = self.rest();
            let column = line.iter().take_while(|b| **b == b' ').count();
            match line.get(column) {
                None if self.at + line.len() >= self.text.len() => return None,
                None => empty += 1,
                Some(b'\t') => return None,
                Some(_) if column <= indent => return None,
                Some(_) => {
                    self.at += column;
                    break;
                }
            }
        }
        if empty == 0 {
            text.push(b' ');
        } else {
            text.extend(std::iter::repeat_n(b'\n', empty));
        }
        Some(())
    }

    /// Plain text, over several lines if the next ones stand deeper than `indent`.
    fn plain(&mut self, indent: usize) -> Option<Kind> {
        let (first, commented) = self.plain_line()?;
        let mut text = String::new();
        text.push_str(first);
        self.end_line();
        loop {
            let mut blank = 0;
            let here = (self.at, self.line, self.start);
            let column = loop {
                if self.at >= self.text.len() {
                    break None;
                }
                let line = self.rest();
                let column = line.iter().take_while(|b| **b == b' ').count();
                if column < line.len() {
                    break Some(column);
                }
                blank += 1;
                self.end_line();
                if self.at >= self.text.len() {
                    break None;
                }
            };
            let deeper = column.filter(|column| *column > indent);
            let Some(column) = deeper else {
                (self.at, self.line, self.start) = here;
                return Some(resolved(text));
            };
            self.at += column;
            if commented || matches!(self.peek(), Some(b'#' | b'\t')) {
                return None;
            }
            let (more, ended) = self.plain_line()?;
            if ended {
                // Only a comment may follow; whether it does is not worth finding out.
                return None;
            }
            if blank == 0 {
                text.push(' ');
            } else {
                text.extend(std::iter::repeat_n('\n', blank));
            }
            text.push_str(more);
            self.end_line();
        }
    }

    /// The plain text of the line at hand, and whether a comment ends it.
    fn plain_line(&self) -> Option<(&'t str, bool)> {
        let line = self.rest();
        let mut end = line.len();
        let mut commented = false;
        for (i, byte) in line.iter().enumerate() {
            match byte {
                b'\t' => return None,
                b':' if matches!(line.get(i + 1), None | Some(b' ')) => return None,
                b'#' if i > 0 && line[i - 1] == b' ' => {
                    end = i;
                    commented = true;
                    break;
                }
                _ => {}
            }
        }
        let trimmed = line[..end].iter().rev().take_while(|b| **b == b' ').count();
        Some((self.source.get(self.at..self.at + end - trimmed)?, commented))
    }

    /// A block of lines taken as they are.
    fn literal(&mut self, indent: usize) -> Option<Kind> {
        let strip = match self.rest().trim_ascii_end() {
            b"|" => false,
            b"|-" => true,
            _ => return None,
        };
        self.end_line();
        let mut text = String::new();
        let (mut blank, mut own) = (0, None);
        let mut ended = false;
        while self.at < self.text.len() {
            let line = self.rest();
            let column = line.iter().take_while(|b| **b == b' ').count();
            if column == line.len() && own.is_none_or(|own| column <= own) {
                if own.is_none() && column > 0 {
                    return None;
                }
                blank += 1;
                self.end_line();
                continue;
            }
            let own = *own.get_or_insert(column);
            if column < own {
                if line.get(column) == Some(&b'\t') {
                    return None;
                }
                break;
            }
            if own <= indent || line.get(column) == Some(&b'\t') && column == own && text.is_empty() {
                return None;
            }
            ended = self.at + line.len() < self.text.len();
            if column == line.len() && !ended {
                return None;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.extend(std::iter::repeat_n('\n', blank));
            blank = 0;
            text.push_str(self.source.get(self.at + own..self.at + line.len())?);
            self.end_line();
        }
        if text.is_empty() {
            return None;
        }
        if ended && !strip {
            text.push('\n');
        }
        Some(Kind::String(text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::compose::first;
    use super::parse;

    /// Whether the quick reader took the text; what it read is what the parser reads.
    fn taken(text: &str) -> bool {
        let Some(quick) = parse(text) else { return false };
        let whole = first(text);
        assert_eq!(format!("{:?}", Ok::<_, ()>(quick)), format!("{:?}", whole.map_err(drop)), "{text:?}");
        true
    }

    #[test]
    fn takes_what_charts_and_objects_are_made_of() {
        for text in [
            "a: 1\nb:\n  c: yes\n  d: \"x\\n\"\nlist:\n- a\n- b: 1\n  c:\n  - 2\n-\n  x: 'it''s'\nnothing:\nlast: ~\n",
            "---\n# c\na:   # d\n\n  b: http://x/y#z # e\n  c: long text\n    that goes on\n\n    and on\n  d: {}\n  e: []\n",
            "- - 1\n  - 2\n- a: |\n    x\n\n      y\n    # z\n  b: |-\n    z\n\n- \"k\": v",
            "a: |\n  x",
            "a: |\n  x\n ",
            "a: -1\nb: -x\nc: 0o17\n-d: 1\nn: 1\n",
            "a: naïve “text”\nb: x\n",
            "a: 'x  \n  y: ''z''\n\n\n    # no comment  '\nb: \"x\\n\n  \\\"y\n\n  z\" # c\n",
            "- 'a\n  b'\n- \"\n  c\"\n",
        ] {
            assert!(taken(text), "{text}");
        }
    }

    #[test]
    fn leaves_the_rest_alone() {
        for text in [
            "",
            "a",
            "a: b: c\n",
            "a: *x\n",
            "a: &x 1\n",
            "<<: 1\n",
            "a:\tb\n",
            "a: 1\n b: 2\n",
            "a: 1\n---\nb: 2\n",
            "a: 'x\ny'\n",
            "a: 'x\n\ty'\n",
            "a: \"x\\\n  y\"\n",
            "a: 'x\n\n",
            "? a\n: b\n",
            "a: [1]\n",
            "a: >\n  x\n",
            "a: |2\n   x\n",
            "a: |+\n  x\n",
            "a: x\n  # c\n  y\n",
            "a: |\n\tx\n",
            "a: \"x\" y\n",
            "%YAML 1.1\n",
            "a: \u{2028}\n",
            "é: 1\n",
        ] {
            assert!(!taken(text), "{text}");
        }
    }

    #[test]
    fn reads_as_the_parser_does() {
        const PARTS: [&str; 50] = [
            "a:", "b: ", "c: 1", "- ", "-", "- x", "\n", "\n", "\n", "\n  ", "\n  ", "\n    ", "\n- ",
            "\n  - ", " ", "  ", "# c", " # d", "|", "|-", ">", "\"q\"", "'s'", "'", "\"", "\\n", "{}", "[]",
            "x y", "x", ":", ": ", "1.5", "yes", "~", "\t", "é", "-x", "--- ", "\n---\n", "...", "a.b/c: d",
            "\"k\": v", "- a: 1", "\n\n", "#", "\n  y'", "\n   z\"", "a: 'x", "b: \"x ",
        ];
        let mut seed = 88_172_645_463_325_252_u64;
        let mut draw = |below: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below as u64).unwrap()
        };
        let mut count = 0;
        for _ in 0..60_000 {
            let length = draw(14) + 1;
            let text: String = (0..length).map(|_| PARTS[draw(PARTS.len())]).collect();
            count += usize::from(taken(&text));
        }
        assert!(count > 1000, "{count} texts were taken");
    }
}
