//! Go's regular expressions for the `regex` crate: the pattern is walked and written anew, so that classes
//! are ASCII, `\Q…\E` works, and what Go refuses is refused in Go's words.

use regex::bytes::{Regex, RegexBuilder};
use std::fmt;

/// A pattern that Go does not accept: Go's `syntax.Error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// The error.
    pub code: ErrorCode,
    /// The part of the pattern that is wrong.
    pub expression: String,
}

/// The error of a pattern: Go's `syntax.ErrorCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// A class such as `[z-a]`.
    InvalidCharRange,
    /// A backslash before a character that takes none.
    InvalidEscape,
    /// A group whose name is none.
    InvalidNamedCapture,
    /// A group such as `(?=` that Go does not have, or what no engine accepts.
    InvalidPerlOp,
    /// A repetition of a repetition, such as `**`.
    InvalidRepeatOp,
    /// A repetition such as `{2,1}` or `{1001}`.
    InvalidRepeatSize,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A class that does not end.
    MissingBracket,
    /// A group that does not end.
    MissingParen,
    /// A repetition of nothing.
    MissingRepeatArgument,
    /// A backslash at the end of the pattern.
    TrailingBackslash,
    /// The end of a group that does not begin.
    UnexpectedParen,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorCode::InvalidCharRange => "invalid character class range",
            ErrorCode::InvalidEscape => "invalid escape sequence",
            ErrorCode::InvalidNamedCapture => "invalid named capture",
            ErrorCode::InvalidPerlOp => "invalid or unsupported Perl syntax",
            ErrorCode::InvalidRepeatOp => "invalid nested repetition operator",
            ErrorCode::InvalidRepeatSize => "invalid repeat count",
            ErrorCode::InvalidUtf8 => "invalid UTF-8",
            ErrorCode::MissingBracket => "missing closing ]",
            ErrorCode::MissingParen => "missing closing )",
            ErrorCode::MissingRepeatArgument => "missing argument to repetition operator",
            ErrorCode::TrailingBackslash => "trailing backslash at end of expression",
            ErrorCode::UnexpectedParen => "unexpected )",
        })
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error parsing regexp: {}: `{}`", self.code, self.expression)
    }
}

impl std::error::Error for PatternError {}

/// Compiles a Go pattern that is matched against bytes.
///
/// # Errors
/// What Go says of a pattern that it does not accept.
pub fn compile(pattern: &str) -> Result<Regex, PatternError> {
    let translated = translate(pattern)?;
    RegexBuilder::new(&translated)
        .size_limit(64 << 20)
        .build()
        .map_err(|_| fail(ErrorCode::InvalidPerlOp, pattern))
}

/// Compiles a Go pattern that is matched against text.
///
/// # Errors
/// What Go says of a pattern that it does not accept.
pub fn compile_text(pattern: &str) -> Result<regex::Regex, PatternError> {
    let translated = translate(pattern)?;
    regex::RegexBuilder::new(&translated)
        .size_limit(64 << 20)
        .build()
        .map_err(|_| fail(ErrorCode::InvalidPerlOp, pattern))
}

fn fail(code: ErrorCode, expression: &str) -> PatternError {
    PatternError { code, expression: expression.to_owned() }
}

/// Characters that stand for themselves only with a backslash.
const SPECIAL: &str = r"\.+*?()|[]{}^$";

/// Go's regexp.QuoteMeta.
#[must_use]
pub fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 2);
    for byte in text {
        if SPECIAL.as_bytes().contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

fn literal(out: &mut String, c: char) {
    if SPECIAL.contains(c) || matches!(c, '#' | '&' | '-' | '~') {
        out.push('\\');
    }
    out.push(c);
}

struct Walker<'a> {
    pattern: &'a str,
    at: usize,
    out: String,
    open: usize,
    /// True if something stands before that can be repeated.
    atom: bool,
    /// Where the last repetition began, if it was the last thing read.
    repeated: Option<usize>,
    /// Repetitions of the last thing read, multiplied with those in it; `outer` has the most of each group.
    repeats: u64,
    outer: Vec<u64>,
}

/// A Go pattern as the `regex` crate reads it.
///
/// # Errors
/// What Go says of a pattern that it does not accept.
pub fn translate(pattern: &str) -> Result<String, PatternError> {
    let mut walker = Walker {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len() + 8),
        open: 0,
        atom: false,
        repeated: None,
        repeats: 0,
        outer: vec![0],
    };
    while walker.at < pattern.len() {
        walker.step()?;
    }
    if walker.open > 0 {
        return Err(fail(ErrorCode::MissingParen, pattern));
    }
    Ok(walker.out)
}

impl<'a> Walker<'a> {
    fn rest(&self) -> &'a str {
        &self.pattern[self.at..]
    }

    fn atom(&mut self, text: &str) {
        self.passed();
        self.out.push_str(text);
        self.atom = true;
        self.repeated = None;
    }

    /// Something else follows the last thing read.
    fn passed(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        if let Some(most) = self.outer.last_mut() {
            *most = (*most).max(repeats);
        }
    }

    fn step(&mut self) -> Result<(), PatternError> {
        let Some(c) = self.rest().chars().next() else { return Ok(()) };
        match c {
            '(' => return self.group(),
            ')' => {
                if self.open == 0 {
                    return Err(fail(ErrorCode::UnexpectedParen, self.pattern));
                }
                self.open -= 1;
                self.at += 1;
                self.atom(")");
                self.repeats = self.outer.pop().unwrap_or_default();
            }
            '|' => {
                self.passed();
                self.at += 1;
                self.out.push('|');
                self.atom = false;
                self.repeated = None;
            }
            '*' | '+' | '?' => return self.repetition(1),
            '{' => match counts(self.rest()) {
                Some((length, _, _)) => return self.repetition(length),
                None => {
                    self.at += 1;
                    self.atom(r"\{");
                }
            },
            '[' => return self.class(),
            '.' | '^' | '$' => {
                self.at += 1;
                self.atom(c.encode_utf8(&mut [0; 4]));
            }
            '\\' => return self.escape(),
            _ => {
                self.at += c.len_utf8();
                let mut text = String::new();
                literal(&mut text, c);
                self.atom(&text);
            }
        }
        Ok(())
    }

    fn repetition(&mut self, length: usize) -> Result<(), PatternError> {
        let start = self.at;
        let operator = &self.rest()[..length];
        self.at += length;
        let lazy = self.rest().starts_with('?');
        if let Some(before) = self.repeated {
            let end = self.at + usize::from(lazy);
            return Err(fail(ErrorCode::InvalidRepeatOp, &self.pattern[before..end]));
        }
        if !self.atom {
            return Err(fail(ErrorCode::MissingRepeatArgument, operator));
        }
        let bad = |least: u32, most: Option<u32>| {
            least > 1000 || most.is_some_and(|most| most > 1000 || most < least)
        };
        if let Some((_, least, most)) = counts(operator) {
            // Repetitions within one another multiply.
            let times = u64::from(most.unwrap_or(least)).max(1);
            let repeats = if most == Some(0) { 0 } else { times * self.repeats.max(1) };
            let many = least >= 2 || most.is_some_and(|most| most >= 2);
            if bad(least, most) || (many && repeats > 1000) {
                return Err(fail(ErrorCode::InvalidRepeatSize, operator));
            }
            self.repeats = repeats;
        }
        self.out.push_str(operator);
        if lazy {
            self.at += 1;
            self.out.push('?');
        }
        self.repeated = Some(start);
        Ok(())
    }

    fn group(&mut self) -> Result<(), PatternError> {
        let rest = self.rest();
        self.open += 1;
        self.repeated = None;
        self.atom = false;
        if !rest.starts_with("(?") {
            self.enter();
            self.at += 1;
            self.out.push('(');
            return Ok(());
        }
        let name = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
        if let Some(name) = name {
            let start = rest.len() - name.len();
            let Some(end) = name.find('>') else { return Err(fail(ErrorCode::InvalidNamedCapture, rest)) };
            let valid =
                !name[..end].is_empty() && name[..end].chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
            if !valid {
                return Err(fail(ErrorCode::InvalidNamedCapture, &rest[..=start + end]));
            }
            self.enter();
            self.out.push_str("(?P<");
            // A Go name may begin with a digit.
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                self.out.push('_');
            }
            self.out.push_str(&name[..=end]);
            self.at += start + end + 1;
            return Ok(());
        }
        let length =
            rest[2..].find(|c: char| !matches!(c, 'i' | 'm' | 's' | 'U' | '-')).map_or(rest.len(), |n| n + 2);
        match rest[length..].chars().next() {
            Some(end @ (':' | ')')) => {
                self.out.push_str(&rest[..=length]);
                self.at += length + 1;
                if end == ')' {
                    self.open -= 1;
                } else {
                    self.enter();
                }
                Ok(())
            }
            Some(c) => Err(fail(ErrorCode::InvalidPerlOp, &rest[..length + c.len_utf8()])),
            None => Err(fail(ErrorCode::MissingParen, self.pattern)),
        }
    }

    /// A group begins.
    fn enter(&mut self) {
        self.passed();
        self.outer.push(0);
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        let rest = self.rest();
        let Some(c) = rest[1..].chars().next() else {
            return Err(fail(ErrorCode::TrailingBackslash, ""));
        };
        if c == 'Q' {
            let body = &rest[2..];
            let end = body.find("\\E").unwrap_or(body.len());
            for c in body[..end].chars() {
                let mut text = String::new();
                literal(&mut text, c);
                self.atom(&text);
            }
            self.at += (end + 4).min(rest.len());
            return Ok(());
        }
        let simple = match c {
            'A' => Some(r"\A"),
            'z' => Some(r"\z"),
            'b' => Some(r"(?-u:\b)"),
            'B' => Some(r"(?-u:\B)"),
            'E' => Some(""),
            _ => perl_class(c),
        };
        if let Some(text) = simple {
            self.at += 2;
            if c != 'E' {
                self.atom(text);
            }
            return Ok(());
        }
        if matches!(c, 'p' | 'P') {
            let length = property(rest)?;
            self.at += length;
            self.atom(&without_caret(&rest[..length]));
            return Ok(());
        }
        let (code, length) = character(rest)?;
        self.at += length;
        let mut text = String::new();
        literal(&mut text, code);
        self.atom(&text);
        Ok(())
    }

    fn class(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        self.out.push('[');
        self.at += 1;
        if self.rest().starts_with('^') {
            self.out.push('^');
            self.at += 1;
        }
        let mut first = true;
        loop {
            let rest = self.rest();
            let Some(c) = rest.chars().next() else {
                return Err(fail(ErrorCode::MissingBracket, &self.pattern[start..]));
            };
            if c == ']' && !first {
                self.at += 1;
                self.atom("]");
                return Ok(());
            }
            first = false;
            if let Some(end) = rest.find(":]").filter(|_| rest.starts_with("[:")) {
                let name = &rest[..end + 2];
                if !is_posix(name) {
                    return Err(fail(ErrorCode::InvalidCharRange, name));
                }
                self.out.push_str(name);
                self.at += end + 2;
                continue;
            }
            if c == '\\' {
                let after = rest[1..].chars().next();
                if let Some(text) = after.and_then(perl_class_inside) {
                    self.out.push_str(text);
                    self.at += 2;
                    continue;
                }
                if matches!(after, Some('p' | 'P')) {
                    let length = property(rest)?;
                    self.out.push_str(&without_caret(&rest[..length]));
                    self.at += length;
                    continue;
                }
            }
            self.class_range()?;
        }
    }

    /// A character or a range of a class.
    fn class_range(&mut self) -> Result<(), PatternError> {
        let start = self.at;
        let low = self.class_character()?;
        let mut high = low;
        let rest = self.rest();
        if rest.starts_with('-') && rest.len() > 1 && !rest.starts_with("-]") {
            self.at += 1;
            high = self.class_character()?;
            if high < low {
                return Err(fail(ErrorCode::InvalidCharRange, &self.pattern[start..self.at]));
            }
        }
        literal(&mut self.out, low);
        if high != low {
            self.out.push('-');
            literal(&mut self.out, high);
        }
        Ok(())
    }

    fn class_character(&mut self) -> Result<char, PatternError> {
        let rest = self.rest();
        match rest.chars().next() {
            None => Err(fail(ErrorCode::MissingBracket, rest)),
            Some('\\') => {
                let (c, length) = character(rest)?;
                self.at += length;
                Ok(c)
            }
            Some(c) => {
                self.at += c.len_utf8();
                Ok(c)
            }
        }
    }
}

/// `{n}`, `{n,}`, `{n,m}`: length, least, most. Anything else is literal text.
fn counts(text: &str) -> Option<(usize, u32, Option<u32>)> {
    let end = text.find('}')?;
    let body = text.strip_prefix('{')?.get(..end - 1)?;
    let number = |digits: &str| -> Option<u32> {
        let ok = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits == "0" || !digits.starts_with('0'));
        ok.then(|| digits.parse().unwrap_or(u32::MAX))
    };
    let (least, most) = match body.split_once(',') {
        None => {
            let n = number(body)?;
            (n, Some(n))
        }
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((end + 1, least, most))
}

/// ASCII only, as in Go.
fn perl_class(c: char) -> Option<&'static str> {
    Some(match c {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\f\r ]",
        'S' => r"[^\t\n\f\r ]",
        'w' => "[0-9A-Za-z_]",
        'W' => "[^0-9A-Za-z_]",
        _ => return None,
    })
}

/// A Perl class within brackets; nested classes are the crate's.
fn perl_class_inside(c: char) -> Option<&'static str> {
    perl_class(c)
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

fn is_posix(name: &str) -> bool {
    let inner = name.trim_start_matches("[:").trim_start_matches('^').trim_end_matches(":]");
    POSIX.contains(&inner)
}

/// The length of `\pL` or `\p{Greek}`.
fn property(text: &str) -> Result<usize, PatternError> {
    let body = &text[2..];
    let bad = |shown: &str| Err(fail(ErrorCode::InvalidCharRange, shown));
    match body.chars().next() {
        Some('{') => match body.find('}') {
            Some(end) if is_class(&body[1..end]) => Ok(end + 3),
            Some(end) => bad(&text[..end + 3]),
            None => bad(text),
        },
        Some(c) if is_class(&body[..c.len_utf8()]) => Ok(2 + c.len_utf8()),
        Some(c) => bad(&text[..2 + c.len_utf8()]),
        None => bad(text),
    }
}

/// `\p{^Greek}` written as `\P{Greek}`.
fn without_caret(class: &str) -> String {
    match (class.strip_prefix("\\p{^"), class.strip_prefix("\\P{^")) {
        (Some(rest), _) => format!("\\P{{{rest}"),
        (_, Some(rest)) => format!("\\p{{{rest}"),
        (None, None) => class.to_owned(),
    }
}

/// Returns true if Go knows the Unicode class: a general category or a script, perhaps negated.
fn is_class(name: &str) -> bool {
    let name = name.strip_prefix('^').unwrap_or(name);
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let known = |kind: &str| Regex::new(&format!("\\p{{{kind}={name}}}")).is_ok();
    plain && (name == "Any" || known("gc") || known("sc"))
}

/// The character an escape stands for, and its length.
fn character(text: &str) -> Result<(char, usize), PatternError> {
    let Some(c) = text[1..].chars().next() else {
        return Err(fail(ErrorCode::TrailingBackslash, ""));
    };
    let length = 1 + c.len_utf8();
    let bad = || fail(ErrorCode::InvalidEscape, &text[..length]);
    let control = match c {
        'a' => '\u{7}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '0' | '1'..='7' => {
            let next_octal = text[2..].starts_with(|d: char| ('0'..='7').contains(&d));
            if c != '0' && !next_octal {
                return Err(bad());
            }
            let digits = text[1..].chars().take(3).take_while(|d| ('0'..='7').contains(d)).count();
            let code = u32::from_str_radix(&text[1..=digits], 8).ok().and_then(char::from_u32);
            return Ok((code.ok_or_else(bad)?, 1 + digits));
        }
        'x' => {
            let digits = &text[2..];
            let (digits, length) = match digits.strip_prefix('{') {
                Some(body) => {
                    let end = body.find('}').ok_or_else(|| fail(ErrorCode::InvalidEscape, text))?;
                    (&body[..end], end + 4)
                }
                None => (digits.get(..2).ok_or_else(|| fail(ErrorCode::InvalidEscape, text))?, 4),
            };
            let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
            return Ok((code.ok_or_else(|| fail(ErrorCode::InvalidEscape, &text[..length]))?, length));
        }
        c if c.is_ascii_alphanumeric() || !c.is_ascii() => return Err(bad()),
        c => c,
    };
    Ok((control, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_ascii_and_oddities_are_go_s() {
        let matches = |pattern: &str, text: &str| compile(pattern).unwrap().is_match(text.as_bytes());
        assert!(!matches(r"^\w$", "é"));
        assert!(matches(r"^[^\W]$", "a"));
        assert!(matches(r"^[[]$", "["));
        assert!(matches(r"^[]a]$", "]"));
        assert!(matches("^a{,2}$", "a{,2}"));
        assert!(matches(r"^\Qa.b*\E$", "a.b*"));
        assert!(matches("^[a&&b]+$", "&ab"));
        assert!(matches("^[a~~b]+$", "~"));
        assert!(matches(r"^[\d-]+$", "1-2"));
        assert!(matches(r"^[a-]$", "-"));
        assert!(matches(r"^\x{e9}$", "é"));
        assert!(matches(r"^[\x41-\x43]$", "B"));
        assert!(matches("^[[:^alpha:]]$", "1"));
        assert!(matches("^ #$", " #"));
    }

    #[test]
    fn repetitions_within_one_another_multiply() {
        let refused = |pattern: &str| translate(pattern).unwrap_err().expression;
        assert_eq!(refused("(x{0,100}){0,100}"), "{0,100}");
        assert_eq!(refused("((a{1,10}){1,10}){1,11}"), "{1,11}");
        assert_eq!(refused("(?:b|(?i:c{500})d){3,}"), "{3,}");
        assert_eq!(refused("((a{500}){0,}){3}"), "{3}");
        let fine = [
            "((a{1,10}){1,10}){1,10}",
            "(x{0,100})+",
            "(x{0}){1000}",
            "a{1000}b{1000}",
            "(?:a{500}|b)(?:c){3}",
        ];
        for pattern in fine {
            assert!(translate(pattern).is_ok(), "{pattern}");
        }
    }
}
