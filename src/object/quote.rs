//! Go's quoted text (`%q`) and which characters it shows as they are.

use regex::Regex;
use std::fmt::Write as _;
use std::sync::LazyLock;

static PRINTABLE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[\p{L}\p{M}\p{N}\p{P}\p{S}]$").ok());

/// Go's unicode.IsPrint.
pub fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' | '\u{ad}' => false,
        '\u{a1}'..='\u{17f}' => true,
        _ => PRINTABLE.as_ref().is_some_and(|set| set.is_match(c.encode_utf8(&mut [0; 4]))),
    }
}

/// Go's `%q` for text.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_printable(c) => out.push(c),
            c => escape(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// A character that is not shown as it is, as Go escapes it.
pub fn escape(out: &mut String, c: char) {
    let short = match c {
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\u{c}' => 'f',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{b}' => 'v',
        _ => {
            let code = u32::from(c);
            let _ = match code {
                0..0x20 | 0x7f => write!(out, "\\x{code:02x}"),
                0x20..0x1_0000 => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            };
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
