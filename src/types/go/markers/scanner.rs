//! The tokens of marker arguments, cut as Go's `text/scanner` cuts them: identifiers, numbers, strings, raw
//! strings and single characters. Never fails; what is wrong is kept with its byte.

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    End,
    Ident,
    Int,
    Float,
    Text,
    Raw,
    Char(char),
}

/// Reads tokens off one text.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'t> {
    text: &'t str,
    /// Byte of the next character.
    at: usize,
    /// Start of the last token.
    start: usize,
    /// End of the last token; `None` once space behind it was passed over.
    end: Option<usize>,
    /// The first error, and its byte.
    pub(crate) error: Option<(usize, String)>,
}

impl<'t> Scanner<'t> {
    pub(crate) fn new(text: &'t str) -> Scanner<'t> {
        Scanner { text, at: 0, start: 0, end: None, error: None }
    }

    /// Notes an error; the first one stays.
    pub(crate) fn fail(&mut self, message: impl Into<String>) {
        if self.error.is_none() {
            self.error = Some((self.start, message.into()));
        }
    }

    /// The whole text.
    pub(crate) fn whole(&self) -> &'t str {
        self.text
    }

    /// The text that is not yet read.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The next character.
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The next character that is not space; the space before it is gone then.
    pub(crate) fn peek_no_space(&mut self) -> Option<char> {
        while let Some(next) = self.peek() {
            if !matches!(next, ' ' | '\t' | '\r' | '\n') {
                return Some(next);
            }
            self.at += 1;
            self.end = None;
        }
        None
    }

    /// Where the last token starts.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where the last token ends; its start once space behind it was read, which is where bare strings lose
    /// their last word.
    pub(crate) fn end(&self) -> usize {
        self.end.unwrap_or(self.start)
    }

    /// The last token's text.
    pub(crate) fn token(&self) -> &'t str {
        self.end.map_or("", |end| &self.text[self.start..end])
    }

    /// The next token.
    pub(crate) fn scan(&mut self) -> Token {
        self.next(true)
    }

    /// The next token, numbers being no tokens but single digits.
    pub(crate) fn scan_no_numbers(&mut self) -> Token {
        self.next(false)
    }

    fn next(&mut self, numbers: bool) -> Token {
        self.peek_no_space();
        self.start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(first) if first == '_' || first.is_alphabetic() => {
                self.skip(|c| c == '_' || c.is_alphanumeric());
                Token::Ident
            }
            Some(first) if numbers && first.is_ascii_digit() => self.number(),
            Some('"') => {
                self.at += 1;
                self.quoted();
                Token::Text
            }
            Some('`') => {
                self.at += 1;
                match self.rest().find('`') {
                    Some(end) => self.at += end + 1,
                    None => {
                        self.at = self.text.len();
                        self.fail("literal not terminated");
                    }
                }
                Token::Raw
            }
            Some('.') if numbers && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                self.number()
            }
            Some(other) => {
                self.at += other.len_utf8();
                Token::Char(other)
            }
        };
        self.end = Some(self.at);
        token
    }

    fn skip(&mut self, wanted: impl Fn(char) -> bool) -> usize {
        let rest = self.rest();
        let length = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += length;
        length
    }

    fn quoted(&mut self) {
        loop {
            match self.peek() {
                None | Some('\n') => return self.fail("literal not terminated"),
                Some('"') => {
                    self.at += 1;
                    return;
                }
                Some('\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(
                            'a'
                            | 'b'
                            | 'f'
                            | 'n'
                            | 'r'
                            | 't'
                            | 'v'
                            | '\\'
                            | '"'
                            | '0'..='7'
                            | 'x'
                            | 'u'
                            | 'U',
                        ) => {
                            self.at += 1;
                        }
                        _ => self.fail("invalid char escape"),
                    }
                }
                Some(other) => self.at += other.len_utf8(),
            }
        }
    }

    /// A number with its base, its fraction and its exponent.
    fn number(&mut self) -> Token {
        let mut token = Token::Int;
        let mut base = 10;
        let mut legacy_octal = false;
        let mut digits = 0;
        if self.peek() == Some('0') {
            self.at += 1;
            match self.peek().map(|c| c.to_ascii_lowercase()) {
                Some('x') => base = 16,
                Some('o') => base = 8,
                Some('b') => base = 2,
                _ => legacy_octal = true,
            }
            if legacy_octal {
                digits = 1;
            } else {
                self.at += 1;
            }
        }
        let from = self.at;
        digits += self.digits(base);
        let mut bad = self.text[from..self.at].chars().find(|c| c.to_digit(base).is_none() && *c != '_');
        if legacy_octal {
            bad = self.text[from..self.at].chars().find(|c| matches!(c, '8' | '9'));
        }
        if self.peek() == Some('.') {
            token = Token::Float;
            self.at += 1;
            digits += self.digits(base);
        }
        if digits == 0 {
            self.fail("number has no digits");
        }
        let exponent = self.peek().map(|c| c.to_ascii_lowercase());
        if (exponent == Some('e') && base != 16) || exponent == Some('p') {
            self.at += 1;
            token = Token::Float;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.digits(10) == 0 {
                self.fail("exponent has no digits");
            }
        }
        if let Some(bad) = bad.filter(|_| token == Token::Int) {
            let name = if base == 2 { "binary" } else { "octal" };
            self.fail(format!("invalid digit {bad:?} in {name} literal"));
        }
        token
    }

    fn digits(&mut self, base: u32) -> usize {
        if base == 16 {
            self.skip(|c| c.is_ascii_hexdigit() || c == '_')
        } else {
            self.skip(|c| c.is_ascii_digit() || c == '_')
        }
    }
}

/// The value of a quoted or raw Go string.
pub(crate) fn unquote(literal: &str) -> Option<String> {
    if let Some(raw) = literal.strip_prefix('`') {
        return Some(raw.strip_suffix('`')?.replace('\r', ""));
    }
    let inner = literal.strip_prefix('"')?;
    let inner = inner.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let escape = chars.next()?;
        let (digits, radix) = match escape {
            'a' => (0, 7),
            'b' => (0, 8),
            'f' => (0, 12),
            'n' => (0, 10),
            'r' => (0, 13),
            't' => (0, 9),
            'v' => (0, 11),
            '\\' => (0, u32::from(b'\\')),
            '"' => (0, u32::from(b'"')),
            'x' => (2, 16),
            'u' => (4, 16),
            'U' => (8, 16),
            '0'..='7' => (2, 8),
            _ => return None,
        };
        if digits == 0 {
            bytes.push(u8::try_from(radix).ok()?);
            continue;
        }
        let mut value = if radix == 8 { escape.to_digit(8)? } else { 0 };
        for _ in 0..digits {
            value = value.checked_mul(radix)?.checked_add(chars.next()?.to_digit(radix)?)?;
        }
        if digits == 2 {
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.extend_from_slice(char::from_u32(value)?.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
