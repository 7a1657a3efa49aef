//! Cuts template text into tokens, with Go's rules for delimiters, trim markers and comments.
//! Syntax inside tokens (numbers, escapes) is checked by the parser. Read `parse` next.

use opdev_object::go::quote::is_printable;

/// Kind of token. Keywords come after `Keyword`, as their texts print differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    Eof,
    Field,
    Identifier,
    LeftDelim,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelim,
    RightParen,
    String,
    Text,
    Variable,
    Keyword,
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

/// One token; `text` is empty for errors, whose words are in the lexer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) pos: usize,
    pub(super) text: &'a str,
    pub(super) line: usize,
    /// True if there is space before it, in an action.
    pub(super) spaced: bool,
}

/// The scanner; `error` holds the words of an `Error` token.
pub(super) struct Lexer<'a> {
    input: &'a str,
    pos: usize,
    start: usize,
    line: usize,
    start_line: usize,
    paren_depth: i32,
    inside: bool,
    spaced: bool,
    pub(super) error: String,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

pub(super) fn is_alphanumeric(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || (!c.is_ascii() && c.is_alphanumeric())
}

/// The ASCII characters of words.
static WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        word[byte] = byte == b'_' as usize || (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    word
};

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

/// Where two ASCII characters stand together first. The first of them is rare in what templates are made of.
fn find_pair(text: &str, first: u8, second: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(first, bytes).find(|at| bytes.get(at + 1) == Some(&second))
}

fn keyword(word: &str) -> Option<Kind> {
    Some(match word {
        "." => Kind::Dot,
        "block" => Kind::Block,
        "break" => Kind::Break,
        "continue" => Kind::Continue,
        "define" => Kind::Define,
        "else" => Kind::Else,
        "end" => Kind::End,
        "if" => Kind::If,
        "range" => Kind::Range,
        "nil" => Kind::Nil,
        "template" => Kind::Template,
        "with" => Kind::With,
        _ => return None,
    })
}

impl<'a> Lexer<'a> {
    pub(super) fn new(input: &'a str) -> Lexer<'a> {
        Lexer {
            input,
            pos: 0,
            start: 0,
            line: 1,
            start_line: 1,
            paren_depth: 0,
            inside: false,
            spaced: false,
            error: String::new(),
        }
    }

    /// The next token; after the end or an error it is `Eof`.
    pub(super) fn next_token(&mut self) -> Token<'a> {
        self.spaced = self.inside && self.skip_space();
        if self.inside { self.inside_action() } else { self.text() }
    }

    fn rest(&self) -> &'a str {
        &self.input[self.pos..]
    }

    /// The rest, also from the middle of a character.
    fn bytes(&self) -> &'a [u8] {
        self.input.as_bytes().get(self.pos..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.pos += c.len_utf8();
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn token(&mut self, kind: Kind) -> Token<'a> {
        let text = &self.input[self.start..self.pos];
        let token = Token { kind, pos: self.start, text, line: self.start_line, spaced: self.spaced };
        self.begin();
        token
    }

    /// The next character begins the next token.
    fn begin(&mut self) {
        self.start = self.pos;
        self.start_line = self.line;
    }

    fn ignore(&mut self) {
        self.line += newlines(&self.input[self.start..self.pos]);
        self.begin();
    }

    fn fail(&mut self, words: impl Into<String>) -> Token<'a> {
        self.error = words.into();
        let (kind, spaced) = (Kind::Error, self.spaced);
        let token = Token { kind, pos: self.start, text: "", line: self.start_line, spaced };
        self.start = 0;
        self.pos = 0;
        self.input = "";
        self.inside = false;
        token
    }

    fn text(&mut self) -> Token<'a> {
        loop {
            let Some(x) = find_pair(self.rest(), b'{', b'{') else {
                self.pos = self.input.len();
                if self.pos > self.start {
                    self.line += newlines(&self.input[self.start..self.pos]);
                    return self.token(Kind::Text);
                }
                return self.token(Kind::Eof);
            };
            if x > 0 {
                self.pos += x;
                let mut trim = 0;
                if has_left_trim(&self.input[self.pos + 2..]) {
                    let text = &self.input[self.start..self.pos];
                    trim = text.len() - text.trim_end_matches(SPACES).len();
                }
                self.pos -= trim;
                self.line += newlines(&self.input[self.start..self.pos]);
                let token = self.token(Kind::Text);
                self.pos += trim;
                self.ignore();
                if !token.text.is_empty() {
                    return token;
                }
            }
            if let Some(token) = self.left_delim() {
                return token;
            }
        }
    }

    /// The delimiter; nothing when it opened a comment, which is skipped.
    fn left_delim(&mut self) -> Option<Token<'a>> {
        self.pos += 2;
        let after_marker = if has_left_trim(self.rest()) { 2 } else { 0 };
        if self.rest()[after_marker..].starts_with("/*") {
            self.pos += after_marker;
            self.ignore();
            return self.comment();
        }
        let token = self.token(Kind::LeftDelim);
        self.inside = true;
        self.pos += after_marker;
        self.ignore();
        self.paren_depth = 0;
        Some(token)
    }

    fn comment(&mut self) -> Option<Token<'a>> {
        self.pos += 2;
        let Some(x) = find_pair(self.rest(), b'*', b'/') else { return Some(self.fail("unclosed comment")) };
        self.pos += x + 2;
        let Some(trim) = self.at_right_delim() else {
            return Some(self.fail("comment ends before closing delimiter"));
        };
        self.line += newlines(&self.input[self.start..self.pos]);
        self.token(Kind::Text);
        self.pos += if trim { 4 } else { 2 };
        if trim {
            self.pos += self.rest().len() - self.rest().trim_start_matches(SPACES).len();
        }
        self.ignore();
        None
    }

    /// Two answers: a right delimiter is here, and it trims.
    fn at_right_delim(&self) -> Option<bool> {
        match self.bytes() {
            [b'}', b'}', ..] => Some(false),
            [space, b'-', b'}', b'}', ..] if is_space(*space) => Some(true),
            _ => None,
        }
    }

    fn right_delim(&mut self) -> Token<'a> {
        let trim = self.at_right_delim() == Some(true);
        if trim {
            self.pos += 2;
            self.ignore();
        }
        self.pos += 2;
        let token = self.token(Kind::RightDelim);
        if trim {
            self.pos += self.rest().len() - self.rest().trim_start_matches(SPACES).len();
            self.ignore();
        }
        self.inside = false;
        token
    }

    fn inside_action(&mut self) -> Token<'a> {
        let rest = self.bytes();
        let Some(&byte) = rest.first() else { return self.fail("unclosed action") };
        match byte {
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => return self.identifier(),
            b' ' | b'\t' | b'\r' | b'\n' | b'}' if self.at_right_delim().is_some() => {
                if self.paren_depth == 0 {
                    return self.right_delim();
                }
                return self.fail("unclosed left paren");
            }
            b'.' if rest.len() > 1 && !rest[1].is_ascii_digit() => {
                self.pos += 1;
                return self.field_or_variable(Kind::Field);
            }
            b'.' | b'+' | b'-' | b'0'..=b'9' => return self.number(),
            0x80.. if self.peek().is_some_and(is_alphanumeric) => return self.identifier(),
            _ => {}
        }
        self.next();
        match byte {
            b'=' => self.token(Kind::Assign),
            b':' => {
                if self.next() == Some('=') {
                    self.token(Kind::Declare)
                } else {
                    self.fail("expected :=")
                }
            }
            b'|' => self.token(Kind::Pipe),
            b'"' => self.quoted('"', Kind::String, "unterminated quoted string"),
            b'`' => self.raw_quoted(),
            b'$' => self.field_or_variable(Kind::Variable),
            b'\'' => self.quoted('\'', Kind::CharConstant, "unterminated character constant"),
            b'(' => {
                self.paren_depth += 1;
                self.token(Kind::LeftParen)
            }
            b')' => {
                self.paren_depth -= 1;
                if self.paren_depth < 0 {
                    self.fail("unexpected right paren")
                } else {
                    self.token(Kind::RightParen)
                }
            }
            b' '..=b'~' => self.token(Kind::Char),
            _ => {
                let found = self.input[self.start..self.pos].chars().next();
                self.fail(format!(
                    "unrecognized character in action: {}",
                    found.map_or_else(String::new, code_point)
                ))
            }
        }
    }

    /// Steps over the space before a token, and whether there was any.
    fn skip_space(&mut self) -> bool {
        let rest = self.bytes();
        let mut count = rest.iter().take_while(|byte| is_space(**byte)).count();
        // The last space may belong to a trimming delimiter.
        if count > 0 && rest[count..].starts_with(b"-}}") {
            count -= 1;
        }
        if count == 0 {
            return false;
        }
        self.pos += count;
        self.line += rest[..count].iter().filter(|byte| **byte == b'\n').count();
        self.begin();
        true
    }

    fn identifier(&mut self) -> Token<'a> {
        self.word();
        if !self.at_terminator() {
            return self.bad_character();
        }
        let word = &self.input[self.start..self.pos];
        match keyword(word) {
            Some(kind) => self.token(kind),
            None if word == "true" || word == "false" => self.token(Kind::Bool),
            None => self.token(Kind::Identifier),
        }
    }

    fn field_or_variable(&mut self, kind: Kind) -> Token<'a> {
        if self.at_terminator() {
            return self.token(if kind == Kind::Variable { kind } else { Kind::Dot });
        }
        self.word();
        if self.at_terminator() { self.token(kind) } else { self.bad_character() }
    }

    /// Steps over letters and digits; most are ASCII, and no line ends among those.
    fn word(&mut self) {
        loop {
            let rest = self.bytes();
            let count = rest.iter().take_while(|byte| WORD[usize::from(**byte)]).count();
            self.pos += count;
            if rest.get(count).is_none_or(u8::is_ascii) || !self.peek().is_some_and(is_alphanumeric) {
                return;
            }
            self.next();
        }
    }

    /// Steps over what is no mark, no backslash and no line end.
    fn quiet(&mut self, mark: u8) {
        let rest = self.bytes();
        self.pos += rest.iter().take_while(|b| **b != mark && !matches!(b, b'\\' | b'\n')).count();
    }

    fn bad_character(&mut self) -> Token<'a> {
        let found = self.peek().map_or_else(|| "U+FFFFFFFFFFFFFFFF".to_owned(), code_point);
        self.fail(format!("bad character {found}"))
    }

    fn at_terminator(&self) -> bool {
        matches!(
            self.bytes(),
            [] | [b'.' | b',' | b'|' | b':' | b')' | b'(' | b' ' | b'\t' | b'\r' | b'\n', ..]
                | [b'}', b'}', ..]
        )
    }

    fn quoted(&mut self, mark: char, kind: Kind, unterminated: &str) -> Token<'a> {
        loop {
            self.quiet(mark as u8);
            match self.next() {
                Some('\\') => {
                    if matches!(self.next(), None | Some('\n')) {
                        return self.fail(unterminated);
                    }
                }
                None | Some('\n') => return self.fail(unterminated),
                Some(c) if c == mark => return self.token(kind),
                Some(_) => {}
            }
        }
    }

    fn raw_quoted(&mut self) -> Token<'a> {
        loop {
            match self.next() {
                None => return self.fail("unterminated raw quoted string"),
                Some('`') => return self.token(Kind::RawString),
                Some(_) => {}
            }
        }
    }

    fn accept(&mut self, set: &str) -> bool {
        let found = self.peek().is_some_and(|c| set.contains(c));
        if found {
            self.next();
        }
        found
    }

    fn accept_run(&mut self, set: &str) {
        while self.accept(set) {}
    }

    fn number(&mut self) -> Token<'a> {
        let mut ok = self.scan_number();
        let mut kind = Kind::Number;
        if ok && matches!(self.peek(), Some('+' | '-')) {
            kind = Kind::Complex;
            ok = self.scan_number() && self.input[..self.pos].ends_with('i');
        }
        if ok {
            return self.token(kind);
        }
        let text = &self.input[self.start..self.pos];
        self.fail(format!("bad number syntax: {}", opdev_object::go::quote::quote_bytes(text.as_bytes())))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        if self.accept("0") {
            if self.accept("xX") {
                digits = "0123456789abcdefABCDEF_";
            } else if self.accept("oO") {
                digits = "01234567_";
            } else if self.accept("bB") {
                digits = "01_";
            }
        }
        self.accept_run(digits);
        if self.accept(".") {
            self.accept_run(digits);
        }
        if digits.len() == 11 && self.accept("eE") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        if digits.len() == 23 && self.accept("pP") {
            self.accept("+-");
            self.accept_run("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_alphanumeric) {
            self.next();
            return false;
        }
        true
    }
}

fn has_left_trim(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() >= 2 && b[0] == b'-' && is_space(b[1])
}

/// Go's `%#U`.
fn code_point(c: char) -> String {
    let code = u32::from(c);
    if is_printable(c) { format!("U+{code:04X} '{c}'") } else { format!("U+{code:04X}") }
}
