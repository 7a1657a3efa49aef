//! Characters that Go shows as they are, and the escapes of all others.

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

/// A character that is not shown as it is, as Go escapes it.
pub(super) fn escape(out: &mut String, c: char) {
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
