//! Bytes as text, the way Go's YAML reads them: UTF-16 has a mark at its begin, and what is not UTF-8 is
//! refused.

use std::borrow::Cow;
use std::fmt;

/// Why bytes are no text of YAML, in the words of Go's library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingError {
    /// A byte that begins no character.
    Leading,
    /// The bytes end within a character.
    Incomplete,
    /// A byte that does not go on with the character before it.
    Trailing,
    /// A character in more bytes than it takes.
    Length,
    /// A number that is no character.
    Character,
    /// The bytes of UTF-16 end within a character.
    IncompleteUtf16,
    /// Half of a pair of UTF-16.
    Surrogate,
}

impl fmt::Display for EncodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            EncodingError::Leading => "yaml: invalid leading UTF-8 octet",
            EncodingError::Incomplete => "yaml: incomplete UTF-8 octet sequence",
            EncodingError::Trailing => "yaml: invalid trailing UTF-8 octet",
            EncodingError::Length => "yaml: invalid length of a UTF-8 sequence",
            EncodingError::Character => "yaml: invalid Unicode character",
            EncodingError::IncompleteUtf16 => "yaml: incomplete UTF-16 character",
            EncodingError::Surrogate => "yaml: unexpected low surrogate area",
        })
    }
}

impl std::error::Error for EncodingError {}

/// The text of bytes.
///
/// # Errors
/// The first bytes that are no text.
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>, EncodingError> {
    if let Some(rest) = bytes.strip_prefix(b"\xff\xfe") {
        return utf16(rest, u16::from_le_bytes).map(Cow::Owned);
    }
    if let Some(rest) = bytes.strip_prefix(b"\xfe\xff") {
        return utf16(rest, u16::from_be_bytes).map(Cow::Owned);
    }
    utf8(bytes).map(Cow::Borrowed)
}

/// The text of bytes that are UTF-8.
///
/// # Errors
/// The first bytes that are none.
pub fn utf8(bytes: &[u8]) -> Result<&str, EncodingError> {
    std::str::from_utf8(bytes).map_err(|error| reason(&bytes[error.valid_up_to()..]))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, EncodingError> {
    let pairs = bytes.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return Err(EncodingError::IncompleteUtf16);
    }
    let units = pairs.filter_map(|pair| pair.try_into().ok()).map(unit);
    char::decode_utf16(units).collect::<Result<_, _>>().map_err(|_| EncodingError::Surrogate)
}

/// Errors of a character that is none.
fn reason(bytes: &[u8]) -> EncodingError {
    let first = bytes.first().copied().unwrap_or_default();
    let (width, mut number) = match first {
        0xc0..=0xdf => (2, u32::from(first & 0x1f)),
        0xe0..=0xef => (3, u32::from(first & 0x0f)),
        0xf0..=0xf7 => (4, u32::from(first & 0x07)),
        _ => return EncodingError::Leading,
    };
    let Some(rest) = bytes.get(1..width) else { return EncodingError::Incomplete };
    for byte in rest {
        if byte & 0xc0 != 0x80 {
            return EncodingError::Trailing;
        }
        number = number << 6 | u32::from(byte & 0x3f);
    }
    let least = [0, 0, 0x80, 0x800, 0x1_0000][width];
    if number < least { EncodingError::Length } else { EncodingError::Character }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_refused_in_the_words_of_go() {
        let said = |bytes: &[u8]| text(bytes).unwrap_err().to_string();
        assert_eq!(said(b"a: caf\xe9\n"), "yaml: incomplete UTF-8 octet sequence");
        assert_eq!(said(b"a: caf\xe9\nb: 1"), "yaml: invalid trailing UTF-8 octet");
        assert_eq!(said(b"a: \x80"), "yaml: invalid leading UTF-8 octet");
        assert_eq!(said(b"a: \xc0\x80"), "yaml: invalid length of a UTF-8 sequence");
        assert_eq!(said(b"a: \xed\xa0\x80"), "yaml: invalid Unicode character");
        assert_eq!(said(b"\xff\xfea"), "yaml: incomplete UTF-16 character");
        assert_eq!(text(b"\xff\xfea\0:\0").unwrap(), "a:");
        assert_eq!(text(b"\xfe\xff\0a\0:").unwrap(), "a:");
        assert_eq!(text("zwölf".as_bytes()).unwrap(), "zwölf");
    }
}
