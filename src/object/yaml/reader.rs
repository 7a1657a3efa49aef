//! The characters of a YAML text and where they stand. Refuses control characters where go-yaml notices them:
//! it reads ahead in blocks, so a bad character is an error before an earlier mistake in the same block.

/// A place, counted from 0 in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) index: usize,
    pub(super) line: usize,
    pub(super) column: usize,
}

/// The stage that noticed a mistake; go-yaml counts lines differently for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Reader,
    Scanner,
    Parser,
}

/// A mistake in a text, in libyaml's words.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) stage: Stage,
    pub(super) text: String,
    /// Where it was noticed.
    pub(super) mark: Mark,
    /// Where what is wrong began.
    pub(super) context: Mark,
}

/// How much go-yaml takes from its input at once, in bytes.
const BLOCK: usize = 512;

/// Walks through a text.
pub(super) struct Reader<'t> {
    bytes: &'t [u8],
    pos: usize,
    pub(super) mark: Mark,
    /// Where the block with the first control character begins.
    limit: Option<usize>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Reader<'t> {
        let own = text.strip_prefix('\u{feff}').unwrap_or(text);
        let limit = blocked(own, text.len() - own.len());
        Reader { bytes: own.as_bytes(), pos: 0, mark: Mark::default(), limit }
    }

    /// Looks ahead so many characters.
    pub(super) fn ensure(&self, count: usize) -> Result<(), Problem> {
        let Some(limit) = self.limit else { return Ok(()) };
        let mut at = self.pos;
        for _ in 0..count {
            if at >= limit {
                return Err(Problem {
                    stage: Stage::Reader,
                    text: "control characters are not allowed".to_owned(),
                    mark: Mark::default(),
                    context: Mark::default(),
                });
            }
            at += self.width(at).max(1);
        }
        Ok(())
    }

    /// The byte so many bytes ahead; 0 after the end.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.pos + ahead).copied().unwrap_or(0)
    }

    fn width(&self, at: usize) -> usize {
        match self.bytes.get(at) {
            None => 0,
            Some(..0x80) => 1,
            Some(..0xe0) => 2,
            Some(..0xf0) => 3,
            Some(_) => 4,
        }
    }

    /// Returns true if the text ends here.
    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// Returns true if this is the very first character, and a second byte order mark.
    pub(super) fn at_second_mark(&self) -> bool {
        self.pos == 0 && self.bytes.starts_with(b"\xef\xbb\xbf")
    }

    /// Steps over one character.
    pub(super) fn skip(&mut self) {
        self.pos += self.width(self.pos);
        self.mark.index += 1;
        self.mark.column += 1;
    }

    /// Takes one character.
    pub(super) fn read(&mut self, into: &mut Vec<u8>) {
        let end = (self.pos + self.width(self.pos)).min(self.bytes.len());
        into.extend_from_slice(&self.bytes[self.pos..end]);
        self.skip();
    }

    /// Takes ASCII characters of a kind, as many as there are; none where a control character has to be
    /// noticed.
    pub(super) fn run(&mut self, of: impl Fn(u8) -> bool) -> &'t [u8] {
        if self.limit.is_some() {
            return &[];
        }
        let rest = &self.bytes[self.pos..];
        let found = &rest[..rest.iter().take_while(|byte| of(**byte)).count()];
        self.pos += found.len();
        self.mark.index += found.len();
        self.mark.column += found.len();
        found
    }

    fn break_width(&self, ahead: usize) -> usize {
        match (self.byte(ahead), self.byte(ahead + 1), self.byte(ahead + 2)) {
            (b'\r', b'\n', _) => 2,
            (b'\r' | b'\n', _, _) => 1,
            (0xc2, 0x85, _) => 2,
            (0xe2, 0x80, 0xa8 | 0xa9) => 3,
            _ => 0,
        }
    }

    /// Steps over a line break.
    pub(super) fn skip_line(&mut self) {
        let width = self.break_width(0);
        if width > 0 {
            self.mark.index += if self.byte(0) == b'\r' { width } else { 1 };
            self.mark.column = 0;
            self.mark.line += 1;
            self.pos += width;
        }
    }

    /// Takes a line break: all become `\n`, except the two of Unicode.
    pub(super) fn read_line(&mut self, into: &mut Vec<u8>) {
        match self.break_width(0) {
            0 => return,
            3 => into.extend_from_slice(&self.bytes[self.pos..self.pos + 3]),
            _ => into.push(b'\n'),
        }
        self.skip_line();
    }

    pub(super) fn is_break(&self, ahead: usize) -> bool {
        self.break_width(ahead) > 0
    }

    pub(super) fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.byte(ahead), b' ' | b'\t')
    }

    pub(super) fn is_break_or_end(&self, ahead: usize) -> bool {
        self.byte(ahead) == 0 || self.is_break(ahead)
    }

    /// Blank, line break or end.
    pub(super) fn is_space_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// A character of names: letters, digits, `_`, `-`.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.byte(0), b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-')
    }

    /// Returns true if a line begins here with `---` or `...`.
    pub(super) fn at_document_mark(&self) -> bool {
        let three = [self.byte(0), self.byte(1), self.byte(2)];
        self.mark.column == 0 && (three == *b"---" || three == *b"...") && self.is_space_or_end(3)
    }
}

/// Where the block that holds the first control character begins; `skipped` bytes stood before the text.
fn blocked(text: &str, skipped: usize) -> Option<usize> {
    let bad = first_control(text)?;
    let mut start = 0;
    let mut end = BLOCK - skipped;
    loop {
        let boundary = (0..=end.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        if bad < boundary || end >= text.len() {
            return Some(start);
        }
        start = boundary;
        end = boundary + BLOCK;
    }
}

/// Where the first character stands that YAML does not allow.
fn first_control(text: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        at += first_special(&text.as_bytes()[at..])?;
        let c = text[at..].chars().next()?;
        if !is_allowed(c) {
            return Some(at);
        }
        at += c.len_utf8();
    }
}

/// Where the first byte stands that is no everyday ASCII: no tab, line feed, or printable character. Most
/// texts have none, so they are looked through in pieces that the machine compares at once.
pub(super) fn first_special(bytes: &[u8]) -> Option<usize> {
    const PIECE: usize = 64;
    let special = |byte: u8| !matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    let calm = |piece: &&[u8]| !piece.iter().fold(false, |found, byte| found | special(*byte));
    let before = bytes.chunks(PIECE).take_while(calm).count() * PIECE;
    let rest = bytes.get(before..)?;
    rest.iter().position(|byte| special(*byte)).map(|at| before + at)
}

/// Returns true if YAML allows a character.
pub(super) fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{A0}'..='\u{FFFD}' | '\u{10000}'..)
}
