//! Scalars of the quick reader: plain, quoted and literal ones, over one line or several.

use super::block::{Reader, node};
use super::{Kind, Node};

impl<'t> Reader<'t> {
    /// A scalar, or a list or map in brackets, after a key or dash of a map or list at `indent`; ends at the
    /// start of a line.
    pub(super) fn scalar(&mut self, indent: usize) -> Option<Node> {
        let mark = self.mark();
        let kind = match self.peek()? {
            b'|' => self.literal(indent)?,
            quote @ (b'"' | b'\'') => {
                let text = self.quoted(quote, indent)?;
                self.close(Kind::String(text))?
            }
            b'[' | b'{' => {
                let kind = self.flow()?;
                self.close(kind)?
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
    pub(super) fn quoted(&mut self, quote: u8, indent: usize) -> Option<String> {
        self.at += 1;
        let mut text = Vec::new();
        // How much of it stays where a line ends: blanks there do not count.
        let mut solid = 0;
        loop {
            let rest = self.rest();
            let run = memchr::memchr3(quote, b'\\', b'\t', rest).map_or(rest, |end| &rest[..end]);
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
        if self.skips { Some(String::new()) } else { String::from_utf8(text).ok() }
    }

    /// From the end of a line of quoted text to where the next one goes on: a space, or the empty lines
    /// between.
    fn fold(&mut self, indent: usize, text: &mut Vec<u8>) -> Option<()> {
        let mut empty = 0;
        loop {
            self.end_line();
            let line = self.rest();
            let column = self.spaces();
            match line.get(column) {
                None if self.end >= self.text.len() => return None,
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
        self.end_line();
        let mut text = String::new();
        loop {
            let mut blank = 0;
            let here = self.spot();
            let column = loop {
                if self.at >= self.text.len() {
                    break None;
                }
                let column = self.spaces();
                if self.at + column < self.end {
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
                self.go_back(here);
                return self.meaning(if text.is_empty() { first } else { &text });
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
            if text.is_empty() {
                text.push_str(first);
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
        for i in memchr::memchr3_iter(b':', b'#', b'\t', line) {
            match line[i] {
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
        let (mut blank, mut own, mut any) = (0, None, false);
        let mut ended = false;
        while self.at < self.text.len() {
            let line = self.rest();
            let column = self.spaces();
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
            if own <= indent || line.get(column) == Some(&b'\t') && column == own && !any {
                return None;
            }
            ended = self.at + line.len() < self.text.len();
            if column == line.len() && !ended {
                return None;
            }
            if !self.skips {
                if any {
                    text.push('\n');
                }
                text.extend(std::iter::repeat_n('\n', blank));
                text.push_str(self.source.get(self.at + own..self.end)?);
            }
            any = true;
            blank = 0;
            self.end_line();
        }
        if !any {
            return None;
        }
        if ended && !strip {
            text.push('\n');
        }
        Some(Kind::String(text))
    }
}
