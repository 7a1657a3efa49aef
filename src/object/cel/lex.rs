//! CEL text cut into tokens. Knows nothing of their order.

/// The kind of a token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Name(String),
    /// A name in backquotes, which only fields may have.
    Quoted(String),
    Int(String),
    Uint(String),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
    Sign(&'static str),
    End,
}

/// A token, the character it starts at (counted from 0) and its text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lexed {
    pub(super) token: Token,
    pub(super) at: usize,
    pub(super) text: String,
}

/// An error, and its character.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Fault {
        Fault { at, message: message.into() }
    }
}

const SIGNS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "!", "<", ">", "(", ")", "[", "]", "{", "}",
    ".", ",", ":", "?", "=", "&", "|",
];

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

/// All tokens, `End` last, and what could not be read between them.
pub(super) fn lex(text: &str) -> (Vec<Lexed>, Vec<Fault>) {
    let mut lexer = Lexer { chars: text.chars().collect(), at: 0 };
    let mut tokens = Vec::new();
    let mut faults = Vec::new();
    loop {
        lexer.skip();
        let at = lexer.at;
        let token = match lexer.token() {
            Ok(token) => token,
            Err((fault, length)) => {
                faults.push(fault);
                lexer.at = (at + length.max(1)).min(lexer.chars.len());
                continue;
            }
        };
        let text: String = lexer.chars[at..lexer.at].iter().collect();
        let last = token == Token::End;
        tokens.push(Lexed { token, at, text });
        if last {
            return (tokens, faults);
        }
    }
}

/// An unreadable text: the fault, and the number of characters to pass over.
type Unread = (Fault, usize);

fn unknown(at: usize, text: &str) -> Unread {
    let shown = text.replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r");
    (Fault::new(at, format!("Syntax error: token recognition error at: '{shown}'")), text.chars().count())
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn skip(&mut self) {
        while let Some(c) = self.peek(0) {
            if c == '/' && self.peek(1) == Some('/') {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.at += 1;
                }
            } else if matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}') {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn token(&mut self) -> Result<Token, Unread> {
        let Some(c) = self.peek(0) else { return Ok(Token::End) };
        let after_dot = c == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit());
        if c.is_ascii_digit() || after_dot {
            return self.number();
        }
        if let Some((bytes, raw, skip)) = self.prefix() {
            self.at += skip;
            return self.quoted(bytes, raw);
        }
        if c == '`' {
            let rest = &self.chars[self.at + 1..];
            let length = rest.iter().position(|c| *c == '`').ok_or_else(|| unknown(self.at, "`"))?;
            let name: String = rest[..length].iter().collect();
            self.at += length + 2;
            return Ok(Token::Quoted(name));
        }
        if c.is_ascii_alphabetic() || c == '_' {
            let start = self.at;
            while self.peek(0).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                self.at += 1;
            }
            return Ok(Token::Name(self.chars[start..self.at].iter().collect()));
        }
        for sign in SIGNS {
            if sign.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c)) {
                if matches!(sign, "=" | "&" | "|") {
                    let next: String = self.peek(1).into_iter().collect();
                    return Err(unknown(self.at, &format!("{sign}{next}")));
                }
                self.at += sign.len();
                return Ok(Token::Sign(sign));
            }
        }
        Err(unknown(self.at, &c.to_string()))
    }

    /// The text that starts here, if any: bytes, raw, and the length of the prefix.
    fn prefix(&self) -> Option<(bool, bool, usize)> {
        let (mut bytes, mut raw) = (false, false);
        for ahead in 0..3 {
            match self.peek(ahead)? {
                '"' | '\'' => return Some((bytes, raw, ahead)),
                'b' | 'B' if !bytes => bytes = true,
                'r' | 'R' if !raw => raw = true,
                _ => return None,
            }
        }
        None
    }

    fn digits(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn number(&mut self) -> Result<Token, Unread> {
        let start = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            while self.peek(0).is_some_and(|c| c.is_ascii_hexdigit()) {
                self.at += 1;
            }
            return Ok(self.whole(start));
        }
        self.digits();
        let mut float = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            float = true;
            self.at += 1;
            self.digits();
        }
        if matches!(self.peek(0), Some('e' | 'E')) {
            let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
            if self.peek(1 + sign).is_some_and(|c| c.is_ascii_digit()) {
                float = true;
                self.at += 1 + sign;
                self.digits();
            }
        }
        if !float {
            return Ok(self.whole(start));
        }
        let text: String = self.chars[start..self.at].iter().collect();
        text.parse()
            .map(Token::Double)
            .map_err(|_| (Fault::new(start, "invalid double literal"), text.chars().count()))
    }

    fn whole(&mut self, start: usize) -> Token {
        let text: String = self.chars[start..self.at].iter().collect();
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return Token::Uint(text);
        }
        Token::Int(text)
    }

    fn quoted(&mut self, bytes: bool, raw: bool) -> Result<Token, Unread> {
        let start = self.at;
        let quote = self.chars[start];
        let triple = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        self.at += if triple { 3 } else { 1 };
        let mut out = Vec::new();
        loop {
            let Some(c) = self.peek(0) else {
                let rest: String = self.chars[start..].iter().collect();
                return Err(unknown(start, &rest));
            };
            if triple {
                if c == quote && self.peek(1) == Some(quote) && self.peek(2) == Some(quote) {
                    self.at += 3;
                    break;
                }
            } else if c == quote {
                self.at += 1;
                break;
            } else if matches!(c, '\n' | '\r') {
                let rest: String = self.chars[start..self.at].iter().collect();
                return Err(unknown(start, &rest));
            }
            self.at += 1;
            if c == '\\' && !raw {
                self.escape(bytes, &mut out)?;
            } else {
                out.extend(c.to_string().bytes());
            }
        }
        if bytes {
            return Ok(Token::Bytes(out));
        }
        String::from_utf8(out)
            .map(Token::Text)
            .map_err(|_| (Fault::new(start, "invalid UTF-8 in a string literal"), 1))
    }

    fn escape(&mut self, bytes: bool, out: &mut Vec<u8>) -> Result<(), Unread> {
        let at = self.at - 1;
        let wrong = || (Fault::new(at, "invalid escape sequence in a string literal"), usize::MAX / 2);
        let c = self.peek(0).ok_or_else(wrong)?;
        self.at += 1;
        let plain = match c {
            'a' => 7,
            'b' => 8,
            'f' => 12,
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            'v' => 11,
            '\\' | '\'' | '"' | '`' | '?' => c as u8,
            'x' | 'X' | 'u' | 'U' | '0'..='3' => {
                let (count, radix) = match c {
                    'x' | 'X' => (2, 16),
                    'u' => (4, 16),
                    'U' => (8, 16),
                    _ => (3, 8),
                };
                if radix == 8 {
                    self.at -= 1;
                }
                let text: String = self.chars.iter().skip(self.at).take(count).collect();
                let code = u32::from_str_radix(&text, radix).ok().filter(|_| text.chars().count() == count);
                let code = code.ok_or_else(wrong)?;
                self.at += count;
                if bytes {
                    if matches!(c, 'u' | 'U') {
                        return Err(wrong());
                    }
                    out.push(u8::try_from(code).map_err(|_| wrong())?);
                } else {
                    out.extend(char::from_u32(code).ok_or_else(wrong)?.to_string().bytes());
                }
                return Ok(());
            }
            _ => return Err(wrong()),
        };
        out.push(plain);
        Ok(())
    }
}
