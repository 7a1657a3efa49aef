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

/// The source of a template as text. Go's templates copy bytes that are no text as they are, so each of them
/// stands as a private character, of which [`kept_bytes`] makes the byte again.
pub fn kept_text(bytes: &[u8]) -> Cow<'_, str> {
    let Err(_) = std::str::from_utf8(bytes) else { return text_of(bytes) };
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        let private = |byte: &u8| char::from_u32(FIRST_KEPT + u32::from(byte - 0x80));
        text.extend(chunk.invalid().iter().filter_map(private));
    }
    Cow::Owned(text)
}

/// Bytes of a part of a source that [`kept_text`] has made.
pub(super) fn kept_bytes(text: &str) -> Cow<'_, [u8]> {
    let is_kept = |c: char| u32::from(c) >= FIRST_KEPT;
    // The first byte of these characters, which hardly any text has.
    if memchr::memchr(0xf4, text.as_bytes()).is_none() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match is_kept(c) {
            true => bytes.extend(u8::try_from(u32::from(c) - FIRST_KEPT + 0x80)),
            false => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// A quoted constant of a source: in it Go replaces what is no text.
pub(super) fn without_kept(text: &str) -> Cow<'_, str> {
    if memchr::memchr(0xf4, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if u32::from(c) >= FIRST_KEPT { char::REPLACEMENT_CHARACTER } else { c };
    Cow::Owned(text.chars().map(shown).collect())
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
