//! Scalars: plain, quoted and block ones, with the folding of lines.

use super::reader::{Mark, Problem};
use super::scan::{Kind, Scanner, Style, Token};

/// The line breaks between two lines of a flow scalar.
#[derive(Default)]
struct Folding {
    /// Blanks seen before any line break.
    blanks: Vec<u8>,
    first: Vec<u8>,
    more: Vec<u8>,
    /// True if a line break was seen.
    broken: bool,
}

impl Folding {
    /// Writes what stands between: a space for one line break, one break less for several.
    fn settle(&mut self, into: &mut Vec<u8>) {
        if !self.broken {
            into.append(&mut self.blanks);
            return;
        }
        if self.first.first() != Some(&b'\n') {
            into.append(&mut self.first);
            into.append(&mut self.more);
        } else if self.more.is_empty() {
            into.push(b' ');
        } else {
            into.append(&mut self.more);
        }
        self.first.clear();
        self.more.clear();
        self.broken = false;
    }
}

/// How a block scalar's last line breaks are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

/// Characters that mean nothing special inside any scalar of a line.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~')
        && !matches!(byte, b':' | b',' | b'?' | b'[' | b']' | b'{' | b'}' | b'"' | b'\'' | b'\\')
}

fn scalar(value: Vec<u8>, style: Style, start: Mark, end: Mark) -> Token {
    let text =
        String::from_utf8(value).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
    Token { kind: Kind::Scalar(text, style), start, end }
}

impl Scanner<'_> {
    /// Takes the blanks and line breaks here; false where the text ends a block.
    fn between(&mut self, folding: &mut Folding, indent: Option<(usize, Mark)>) -> Result<(), Problem> {
        while self.reader.is_blank(0) || self.reader.is_break(0) {
            if self.reader.is_blank(0) {
                if let Some((indent, start)) = indent
                    && folding.broken
                    && self.reader.mark.column < indent
                    && self.reader.byte(0) == b'\t'
                {
                    return Err(self.problem(start, "found a tab character that violates indentation"));
                }
                if folding.broken {
                    self.reader.skip();
                } else {
                    self.reader.read(&mut folding.blanks);
                }
            } else {
                self.reader.ensure(2)?;
                if folding.broken {
                    self.reader.read_line(&mut folding.more);
                } else {
                    folding.blanks.clear();
                    self.reader.read_line(&mut folding.first);
                    folding.broken = true;
                }
            }
            self.reader.ensure(1)?;
        }
        Ok(())
    }

    pub(super) fn plain_scalar(&mut self) -> Result<Token, Problem> {
        let indent = usize::try_from(self.indent + 1).unwrap_or(0);
        let start = self.reader.mark;
        let mut end = start;
        let mut value = Vec::new();
        let mut folding = Folding::default();
        loop {
            self.reader.ensure(4)?;
            if self.reader.at_document_mark() || self.reader.byte(0) == b'#' {
                break;
            }
            while !self.reader.is_space_or_end(0) {
                let c = self.reader.byte(0);
                let flow = self.flow > 0 && matches!(c, b',' | b'?' | b'[' | b']' | b'{' | b'}');
                if flow || (c == b':' && self.reader.is_space_or_end(1)) {
                    break;
                }
                folding.settle(&mut value);
                self.reader.read(&mut value);
                value.extend_from_slice(self.reader.run(is_plain));
                end = self.reader.mark;
                self.reader.ensure(2)?;
            }
            if !(self.reader.is_blank(0) || self.reader.is_break(0)) {
                break;
            }
            self.reader.ensure(1)?;
            self.between(&mut folding, Some((indent, start)))?;
            if self.flow == 0 && self.reader.mark.column < indent {
                break;
            }
        }
        if folding.broken {
            self.key_allowed = true;
        }
        Ok(scalar(value, Style::Plain, start, end))
    }

    pub(super) fn quoted_scalar(&mut self, single: bool) -> Result<Token, Problem> {
        let start = self.reader.mark;
        let quote = if single { b'\'' } else { b'"' };
        self.reader.skip();
        let mut value = Vec::new();
        loop {
            self.reader.ensure(4)?;
            if self.reader.at_document_mark() {
                return Err(self.problem(start, "found unexpected document indicator"));
            }
            if self.reader.at_end() {
                return Err(self.problem(start, "found unexpected end of stream"));
            }
            let mut folding = Folding::default();
            while !self.reader.is_space_or_end(0) {
                let c = self.reader.byte(0);
                if single && c == quote && self.reader.byte(1) == quote {
                    value.push(quote);
                    self.reader.skip();
                    self.reader.skip();
                } else if c == quote {
                    break;
                } else if !single && c == b'\\' && self.reader.is_break(1) {
                    self.reader.ensure(3)?;
                    self.reader.skip();
                    self.reader.skip_line();
                    folding.broken = true;
                    break;
                } else if !single && c == b'\\' {
                    self.escape(start, &mut value)?;
                } else {
                    self.reader.read(&mut value);
                    value.extend_from_slice(self.reader.run(is_plain));
                }
                self.reader.ensure(2)?;
            }
            self.reader.ensure(1)?;
            if self.reader.byte(0) == quote {
                break;
            }
            self.between(&mut folding, None)?;
            folding.settle(&mut value);
        }
        self.reader.skip();
        Ok(scalar(value, Style::Quoted, start, self.reader.mark))
    }

    fn escape(&mut self, start: Mark, value: &mut Vec<u8>) -> Result<(), Problem> {
        let mut push = |text: &str| value.extend_from_slice(text.as_bytes());
        let mut digits = 0;
        match self.reader.byte(1) {
            b'0' => push("\0"),
            b'a' => push("\u{7}"),
            b'b' => push("\u{8}"),
            b't' | b'\t' => push("\t"),
            b'n' => push("\n"),
            b'v' => push("\u{b}"),
            b'f' => push("\u{c}"),
            b'r' => push("\r"),
            b'e' => push("\u{1b}"),
            b' ' => push(" "),
            b'"' => push("\""),
            b'\'' => push("'"),
            b'\\' => push("\\"),
            b'N' => push("\u{85}"),
            b'_' => push("\u{a0}"),
            b'L' => push("\u{2028}"),
            b'P' => push("\u{2029}"),
            b'x' => digits = 2,
            b'u' => digits = 4,
            b'U' => digits = 8,
            _ => return Err(self.problem(start, "found unknown escape character")),
        }
        self.reader.skip();
        self.reader.skip();
        if digits == 0 {
            return Ok(());
        }
        self.reader.ensure(digits)?;
        let mut code = 0u32;
        for ahead in 0..digits {
            let Some(digit) = char::from(self.reader.byte(ahead)).to_digit(16) else {
                return Err(self.problem(start, "did not find expected hexdecimal number"));
            };
            code = (code << 4) | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return Err(self.problem(start, "found invalid Unicode character escape code"));
        };
        value.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        for _ in 0..digits {
            self.reader.skip();
        }
        Ok(())
    }

    /// `|2-` and the like: whether folded, the chomping, and the indentation if it is given.
    fn block_head(&mut self, start: Mark) -> Result<(Chomping, usize), Problem> {
        let mut chomping = Chomping::Clip;
        let mut increment = 0;
        self.reader.ensure(1)?;
        for _ in 0..2 {
            match self.reader.byte(0) {
                sign @ (b'+' | b'-') if chomping == Chomping::Clip => {
                    chomping = if sign == b'+' { Chomping::Keep } else { Chomping::Strip };
                }
                b'0' if increment == 0 => {
                    return Err(self.problem(start, "found an indentation indicator equal to 0"));
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = usize::from(digit - b'0'),
                _ => break,
            }
            self.reader.skip();
            self.reader.ensure(1)?;
        }
        while self.reader.is_blank(0) {
            self.reader.skip();
            self.reader.ensure(1)?;
        }
        self.skip_comment()?;
        if !self.reader.is_break_or_end(0) {
            return Err(self.problem(start, "did not find expected comment or line break"));
        }
        if self.reader.is_break(0) {
            self.reader.ensure(2)?;
            self.reader.skip_line();
        }
        Ok((chomping, increment))
    }

    pub(super) fn block_scalar(&mut self) -> Result<Token, Problem> {
        let start = self.reader.mark;
        let literal = self.reader.byte(0) == b'|';
        self.reader.skip();
        let (chomping, increment) = self.block_head(start)?;
        let mut indent = match increment {
            0 => 0,
            more => usize::try_from(self.indent).unwrap_or(0) + more,
        };
        let (mut value, mut leading, mut trailing) = (Vec::new(), Vec::new(), Vec::new());
        let mut end = self.block_breaks(&mut indent, &mut trailing, start)?;
        self.reader.ensure(1)?;
        let mut after_blank = false;
        while self.reader.mark.column == indent && !self.reader.at_end() {
            let blank = self.reader.is_blank(0);
            if !literal && !after_blank && !blank && leading.first() == Some(&b'\n') {
                if trailing.is_empty() {
                    value.push(b' ');
                }
                leading.clear();
            } else {
                value.append(&mut leading);
            }
            value.append(&mut trailing);
            after_blank = blank;
            while !self.reader.is_break_or_end(0) {
                self.reader.read(&mut value);
                value.extend_from_slice(self.reader.run(|byte| matches!(byte, b' '..=b'~')));
                self.reader.ensure(1)?;
            }
            self.reader.ensure(2)?;
            self.reader.read_line(&mut leading);
            end = self.block_breaks(&mut indent, &mut trailing, start)?;
        }
        if chomping != Chomping::Strip {
            value.append(&mut leading);
        }
        if chomping == Chomping::Keep {
            value.append(&mut trailing);
        }
        Ok(scalar(value, Style::Block, start, end))
    }

    /// Takes empty lines; finds out the indentation where it is not known yet.
    fn block_breaks(
        &mut self,
        indent: &mut usize,
        breaks: &mut Vec<u8>,
        start: Mark,
    ) -> Result<Mark, Problem> {
        let mut end = self.reader.mark;
        let mut widest = 0;
        loop {
            self.reader.ensure(1)?;
            let inside = |column: usize| *indent == 0 || column < *indent;
            while inside(self.reader.mark.column) && self.reader.byte(0) == b' ' {
                self.reader.skip();
                self.reader.ensure(1)?;
            }
            widest = widest.max(self.reader.mark.column);
            if inside(self.reader.mark.column) && self.reader.byte(0) == b'\t' {
                return Err(
                    self.problem(start, "found a tab character where an indentation space is expected")
                );
            }
            if !self.reader.is_break(0) {
                break;
            }
            self.reader.ensure(2)?;
            self.reader.read_line(breaks);
            end = self.reader.mark;
        }
        if *indent == 0 {
            *indent = widest.max(usize::try_from(self.indent + 1).unwrap_or(0)).max(1);
        }
        Ok(end)
    }
}
