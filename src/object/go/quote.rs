//! Go's quoted strings: `%q` on the way out, string literals on the way in. Works on bytes: what is not UTF-8
//! becomes `\x..`.

use std::borrow::Cow;
use std::fmt::Write as _;

use super::printable::escape;
pub use super::printable::is_printable;

/// The next character and its length; `None` as character for an invalid byte.
pub fn decode(bytes: &[u8]) -> (Option<char>, usize) {
    let Some(&first) = bytes.first() else { return (None, 0) };
    if first < 0x80 {
        return (Some(char::from(first)), 1);
    }
    let width = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (None, 1),
    };
    match bytes.get(..width).and_then(|b| std::str::from_utf8(b).ok()).and_then(|s| s.chars().next()) {
        Some(c) => (Some(c), width),
        None => (None, 1),
    }
}

/// Go's strconv.Quote, `%q`.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// What Go's encoding/json says of a byte that does not fit; `context` is where in the grammar it stands.
pub fn invalid_character(byte: u8, context: &str) -> String {
    match byte {
        b'\'' => format!("invalid character '\\'' {context}"),
        b'"' => format!("invalid character '\"' {context}"),
        _ => {
            let quoted = quote_bytes(char::from(byte).to_string().as_bytes());
            format!("invalid character '{}' {context}", &quoted[1..quoted.len() - 1])
        }
    }
}

/// `%q` of bytes that may be no UTF-8.
pub fn quote_bytes(bytes: &[u8]) -> String {
    quote_with(bytes, '"', false)
}

/// Go's strconv.QuoteToASCII.
pub fn quote_ascii(bytes: &[u8]) -> String {
    quote_with(bytes, '"', true)
}

/// The quoting of Go's time package: what is not plain ASCII in hex, byte by byte.
pub fn quote_time(bytes: &[u8]) -> String {
    let mut out = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=0x7f => out.push(char::from(*byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

/// Go's strconv.QuoteRune.
pub fn quote_char(c: char, ascii: bool) -> String {
    quote_with(c.encode_utf8(&mut [0; 4]).as_bytes(), '\'', ascii)
}

fn quote_with(mut bytes: &[u8], mark: char, ascii: bool) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push(mark);
    while !bytes.is_empty() {
        let (c, width) = decode(bytes);
        match c {
            None => {
                let _ = write!(out, "\\x{:02x}", bytes[0]);
            }
            Some(c) if c == mark || c == '\\' => {
                out.push('\\');
                out.push(c);
            }
            Some(c) if c.is_ascii() && is_printable(c) => out.push(c),
            Some(c) if !ascii && is_printable(c) => out.push(c),
            Some(c) => escape(&mut out, c),
        }
        bytes = &bytes[width..];
    }
    out.push(mark);
    out
}

/// Go's strconv.Unquote for `"..."` and `` `...` ``: nothing when the literal is not well formed.
pub fn unquote(literal: &str) -> Option<Cow<'_, [u8]>> {
    let inner = literal.get(1..literal.len().checked_sub(1)?)?;
    if literal.starts_with('`') {
        if !literal.ends_with('`') {
            return None;
        }
        return Some(match inner.contains('\r') {
            true => inner.bytes().filter(|b| *b != b'\r').collect(),
            false => inner.as_bytes().into(),
        });
    }
    let Some(plain) = inner.find(['"', '\\', '\n']) else { return Some(inner.as_bytes().into()) };
    let mut out = inner.as_bytes()[..plain].to_vec();
    let mut rest = &inner[plain..];
    while !rest.is_empty() {
        if rest.starts_with('"') || rest.starts_with('\n') {
            return None;
        }
        rest = unescape(rest, '"', &mut out)?;
    }
    Some(out.into())
}

/// The value of a character constant such as `'a'` or `'\n'`.
pub fn unquote_char(literal: &str) -> Option<u32> {
    let inner = literal.strip_prefix('\'')?.strip_suffix('\'')?;
    if inner.is_empty() || inner.starts_with('\'') {
        return None;
    }
    if let Some(code) = byte_escape(inner) {
        return code;
    }
    let mut out = Vec::new();
    if !unescape(inner, '\'', &mut out)?.is_empty() {
        return None;
    }
    std::str::from_utf8(&out).ok()?.chars().next().map(u32::from)
}

/// `\x..` and `\ooo` in a character constant: a number, not a character.
fn byte_escape(inner: &str) -> Option<Option<u32>> {
    let digits = inner.strip_prefix('\\')?;
    match digits.as_bytes().first()? {
        b'x' => Some((digits.len() == 3).then(|| u32::from_str_radix(&digits[1..], 16).ok()).flatten()),
        b'0'..=b'7' => Some(
            (digits.len() == 3).then(|| u32::from_str_radix(digits, 8).ok()).flatten().filter(|n| *n < 256),
        ),
        _ => None,
    }
}

/// Moves one character or escape from `rest` to `out`.
fn unescape<'a>(rest: &'a str, mark: char, out: &mut Vec<u8>) -> Option<&'a str> {
    let first = rest.chars().next()?;
    if first != '\\' {
        out.extend_from_slice(&rest.as_bytes()[..first.len_utf8()]);
        return Some(&rest[first.len_utf8()..]);
    }
    let code = rest[1..].chars().next()?;
    let after = &rest[1 + code.len_utf8()..];
    let digits = |n: usize, radix: u32| -> Option<(u32, &'a str)> {
        let text = after.get(..n)?;
        let ok = text.chars().all(|c| c.is_digit(radix));
        ok.then(|| Some((u32::from_str_radix(text, radix).ok()?, &after[n..]))).flatten()
    };
    let byte = match code {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' | '"' if code == mark => u8::try_from(code).ok()?,
        'x' => {
            let (n, after) = digits(2, 16)?;
            out.push(u8::try_from(n).ok()?);
            return Some(after);
        }
        'u' | 'U' => {
            let (n, after) = digits(if code == 'u' { 4 } else { 8 }, 16)?;
            out.extend_from_slice(char::from_u32(n)?.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(after);
        }
        '0'..='7' => {
            let text = rest.get(1..4)?;
            let n = text.chars().all(|c| c.is_digit(8)).then(|| u32::from_str_radix(text, 8).ok())??;
            out.push(u8::try_from(n).ok()?);
            return Some(&rest[4..]);
        }
        _ => return None,
    };
    out.push(byte);
    Some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_follows_go() {
        assert_eq!(quote("a\"b\\\n\u{1}é\u{200b}😀"), "\"a\\\"b\\\\\\n\\x01é\\u200b😀\"");
        assert_eq!(quote_bytes(b"\xff"), "\"\\xff\"");
        assert_eq!(quote("\u{a0}\u{ad}"), "\"\\u00a0\\u00ad\"");
        assert_eq!(quote_ascii("é😀".as_bytes()), "\"\\u00e9\\U0001f600\"");
        assert_eq!(quote_char('\'', false), "'\\''");
    }

    #[test]
    fn quotes_as_go_does() {
        for (text, wanted) in [
            ("a\"\\\n\0\u{7}\u{7f}", r#""a\"\\\n\x00\a\x7f""#),
            ("é😀\u{a0}\u{200b}\u{feff}", r#""é😀\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quote(text), wanted);
        }
    }

    #[test]
    fn literals_are_read_as_go_reads_them() {
        assert_eq!(unquote(r#""a\tb\x41\u00e9\101\"""#).unwrap(), "a\tbAéA\"".as_bytes());
        assert_eq!(unquote("`a\\n\r\nb`").unwrap(), b"a\\n\nb".as_slice());
        assert_eq!(unquote(r#""\'""#), None);
        assert_eq!(unquote(r#""\z""#), None);
        assert_eq!(unquote_char("'a'"), Some(97));
        assert_eq!(unquote_char(r"'\''"), Some(39));
        assert_eq!(unquote_char(r"'\xFF'"), Some(255));
        assert_eq!(unquote_char("'ab'"), None);
    }
}
