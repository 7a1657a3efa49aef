//! A Go string: immutable bytes, usually but not always UTF-8, cheap to clone.
//! Template functions cut bytes as Go does, so a value may end in the middle of a character.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// Shared immutable bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Str(Arc<[u8]>);

impl Str {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns true if somebody else has it, too.
    pub(super) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// The text, with each run of invalid bytes shown as U+FFFD.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        text_of(&self.0)
    }
}

/// Bytes as text, with each run of invalid bytes shown as U+FFFD. Nearly all are text, and that is found out
/// faster than where the first invalid byte is.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The first of the private characters that stand for bytes which are no text; no font has them.
const FIRST_KEPT: u32 = 0x10_ff80;
/// The first byte of these characters, which hardly any text has.
const FIRST_BYTE: u8 = 0xf4;

/// The source of a template as text. Go's templates copy bytes that are no text as they are, so each of them
/// stands as a private character, of which `kept_bytes` makes the byte again. Where a source has these
/// characters itself, their bytes do so, too.
pub fn kept_text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && memchr::memchr(FIRST_BYTE, bytes).is_none()
    {
        return Cow::Borrowed(text);
    }
    let private = |byte: &u8| char::from_u32(FIRST_KEPT + u32::from(byte.saturating_sub(0x80)));
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match u32::from(c) >= FIRST_KEPT {
                true => text.extend(c.encode_utf8(&mut [0; 4]).as_bytes().iter().filter_map(private)),
                false => text.push(c),
            }
        }
        text.extend(chunk.invalid().iter().filter_map(private));
    }
    Cow::Owned(text)
}

/// Bytes of a part of a source that [`kept_text`] has made.
pub(super) fn kept_bytes(text: &str) -> Cow<'_, [u8]> {
    if memchr::memchr(FIRST_BYTE, text.as_bytes()).is_none() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c).checked_sub(FIRST_KEPT) {
            Some(kept) => bytes.extend(u8::try_from(kept + 0x80)),
            None => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// A quoted constant of a source: in it Go replaces bytes that are no text.
pub(super) fn without_kept(text: &str) -> Cow<'_, str> {
    match kept_bytes(text) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

impl Default for Str {
    fn default() -> Str {
        Str(Arc::from(&b""[..]))
    }
}

impl Deref for Str {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Str {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Str {
        Str(Arc::from(text.as_bytes()))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Str {
        Str(Arc::from(text.into_bytes()))
    }
}

impl From<Arc<[u8]>> for Str {
    fn from(bytes: Arc<[u8]>) -> Str {
        Str(bytes)
    }
}

impl From<&[u8]> for Str {
    fn from(bytes: &[u8]) -> Str {
        Str(Arc::from(bytes))
    }
}

impl From<Vec<u8>> for Str {
    fn from(bytes: Vec<u8>) -> Str {
        Str(Arc::from(bytes))
    }
}

impl From<Cow<'_, str>> for Str {
    fn from(text: Cow<'_, str>) -> Str {
        Str(Arc::from(text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_source_is_text_and_gives_its_bytes_back() {
        let sources: [&[u8]; 5] = [
            b"plain",
            "caf\u{e9} \u{10ffff}".as_bytes(),
            b"caf\xe9",
            b"\xf4\x8f\xbe",
            b"\xff\x80 \xf0\x9f\x98\x80",
        ];
        for source in sources {
            assert_eq!(&*kept_bytes(&kept_text(source)), source, "{source:?}");
        }
        assert_eq!(without_kept(&kept_text("caf\u{e9} \u{10ffff}".as_bytes())), "caf\u{e9} \u{10ffff}");
        assert_eq!(without_kept(&kept_text(b"caf\xe9")), "caf\u{fffd}");
    }
}
