//! Texts of objects in little memory: objects of one kind say much the same, so the text of one of them is
//! the dictionary of the others. LZ4, because a text has to be there again in microseconds. Never decides
//! what is packed, nor when: who keeps objects does.

use lz4_flex::block::{
    compress, compress_into_with_dict, decompress_into_with_dict, get_maximum_output_size,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Shorter texts are left as they are, unless told otherwise: what packing them saves is less than what it
/// needs.
const SHORTEST: usize = 256;
/// Nor are very long ones compared with others: what LZ4 looks back at ends here.
const LONGEST_DICTIONARY: usize = 48 * 1024;
/// How many dictionaries a table has at most.
const MOST: usize = 8;
/// How many of them are tried for one text.
const TRIES: usize = 2;
/// Once there are enough, one in so many texts that none of them suits takes the place of the oldest.
const RENEWED: usize = 256;

/// A packed text.
#[derive(Debug)]
pub struct Packed {
    dictionary: Arc<[u8]>,
    bytes: Box<[u8]>,
    size: u32,
}

impl Packed {
    /// How many bytes the text has.
    pub fn size(&self) -> usize {
        self.size as usize
    }

    /// How many bytes it takes, without its share of the dictionary.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// The text. It was packed with this dictionary, in this process; an empty text is what a fault of the
    /// memory would leave.
    pub fn whole(&self) -> Vec<u8> {
        let mut text = vec![0; self.size()];
        let done = decompress_into_with_dict(&self.bytes, &mut text, &self.dictionary);
        if !done.is_ok_and(|length| length == self.size()) {
            text.clear();
        }
        text
    }
}

/// A text in whichever shape takes less.
#[derive(Debug)]
pub enum Kept {
    /// As it is.
    Whole(Box<[u8]>),
    /// Packed.
    Packed(Packed),
}

impl Kept {
    /// The text.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self {
            Kept::Whole(text) => Cow::Borrowed(text),
            Kept::Packed(packed) => Cow::Owned(packed.whole()),
        }
    }

    /// How many bytes it takes, without its share of the dictionary.
    pub fn held(&self) -> usize {
        match self {
            Kept::Whole(text) => text.len(),
            Kept::Packed(packed) => packed.held(),
        }
    }
}

/// The dictionaries of several kinds of texts, such as those of several kinds of objects.
#[derive(Debug)]
pub struct ByKind {
    shortest: usize,
    kinds: Mutex<HashMap<Box<str>, Arc<Dictionaries>>>,
}

impl ByKind {
    /// See `Dictionaries::new`.
    pub fn new(shortest: usize) -> ByKind {
        ByKind { shortest, kinds: Mutex::default() }
    }

    /// The dictionaries of one kind, made where there are none.
    pub fn of(&self, kind: &str) -> Arc<Dictionaries> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kinds.get(kind) {
            return Arc::clone(known);
        }
        let new = Arc::new(Dictionaries::new(self.shortest));
        kinds.insert(kind.into(), Arc::clone(&new));
        new
    }
}

/// The dictionaries that the texts of each kind are packed with.
#[derive(Debug)]
pub struct Dictionaries {
    shortest: usize,
    known: Mutex<Known>,
}

impl Default for Dictionaries {
    fn default() -> Self {
        Dictionaries::new(SHORTEST)
    }
}

#[derive(Debug, Default)]
struct Known {
    /// The one that served last comes first.
    all: Vec<Arc<[u8]>>,
    unsuited: usize,
}

impl Dictionaries {
    /// For texts of at least so many bytes; shorter ones are not packed.
    pub fn new(shortest: usize) -> Dictionaries {
        Dictionaries { shortest, known: Mutex::default() }
    }

    /// A text in whichever shape takes less.
    pub fn keep(&self, text: &[u8]) -> Kept {
        self.pack(text).map_or_else(|| Kept::Whole(text.into()), Kept::Packed)
    }

    /// Packs a text; `None` where that is not worth it.
    pub fn pack(&self, text: &[u8]) -> Option<Packed> {
        if text.len() < self.shortest {
            return None;
        }
        let size = u32::try_from(text.len()).ok()?;
        let tried: Vec<Arc<[u8]>> = self.known(|known| known.all.iter().take(TRIES).cloned().collect());
        let mut best: Option<Packed> = None;
        for dictionary in tried {
            let bytes = packed(text, &dictionary);
            let served = bytes.len() * 3 <= text.len();
            if best.as_ref().is_none_or(|best| bytes.len() < best.bytes.len()) {
                best = Some(Packed { dictionary: dictionary.clone(), bytes, size });
            }
            if served {
                self.known(|known| known.first(&dictionary));
                return best;
            }
        }
        if text.len() <= LONGEST_DICTIONARY && self.known(Known::wants_another) {
            let dictionary: Arc<[u8]> = text.into();
            self.known(|known| known.add(dictionary.clone()));
            return Some(Packed { bytes: packed(text, &dictionary), dictionary, size });
        }
        self.known(Known::turn);
        let alone = compress(text);
        if best.as_ref().is_none_or(|best| alone.len() < best.bytes.len()) {
            best = Some(Packed { dictionary: Arc::default(), bytes: alone.into(), size });
        }
        best.filter(|best| best.bytes.len() * 8 <= text.len() * 7)
    }

    fn known<T>(&self, work: impl FnOnce(&mut Known) -> T) -> T {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Known {
    fn first(&mut self, served: &Arc<[u8]>) {
        if let Some(at) = self.all.iter().position(|known| Arc::ptr_eq(known, served)) {
            self.all[..=at].rotate_right(1);
        }
    }

    /// Has others tried next time.
    fn turn(&mut self) {
        let tries = TRIES.min(self.all.len());
        self.all.rotate_left(tries);
    }

    fn wants_another(&mut self) -> bool {
        if self.all.len() < MOST {
            return true;
        }
        self.unsuited += 1;
        self.unsuited.is_multiple_of(RENEWED)
    }

    fn add(&mut self, dictionary: Arc<[u8]>) {
        self.all.truncate(MOST - 1);
        self.all.insert(0, dictionary);
    }
}

/// A buffer of just its size: what a buffer was larger at first, allocators keep.
fn packed(text: &[u8], dictionary: &[u8]) -> Box<[u8]> {
    thread_local! {
        static ROOM: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    ROOM.with_borrow_mut(|room| {
        room.resize(get_maximum_output_size(text.len()), 0);
        match compress_into_with_dict(text, room, dictionary) {
            Ok(length) => {
                let bytes = room[..length].into();
                // One long text does not cost a long buffer for good.
                if room.len() > 64 * 1024 {
                    *room = Vec::new();
                }
                bytes
            }
            Err(_) => compress(text).into(),
        }
    })
}

/// How long the pieces are in which a text is compared with another one.
const PIECE: usize = 32 * 1024;
/// How far a piece may have moved against the other text. LZ4 looks back at 64 KiB.
const MARGIN: usize = 12 * 1024;

/// A text as what makes it of another one that says much the same, such as the next version of an object.
#[derive(Debug)]
pub struct Difference {
    /// The length of each piece's bytes, as a `usize`, and then the bytes.
    bytes: Box<[u8]>,
    size: usize,
}

impl Difference {
    /// The difference from `other` to `text`.
    pub fn new(text: &[u8], other: &[u8]) -> Difference {
        let mut bytes = Vec::new();
        for (at, piece) in text.chunks(PIECE).enumerate() {
            let packed = packed(piece, beside(at, other));
            bytes.extend(packed.len().to_le_bytes());
            bytes.extend(packed);
        }
        Difference { bytes: bytes.into(), size: text.len() }
    }

    /// The text, of the one that it was compared with. An empty text is what a fault of the memory would
    /// leave.
    pub fn whole(&self, other: &[u8]) -> Vec<u8> {
        let mut text = vec![0; self.size];
        let mut rest = &self.bytes[..];
        for (at, piece) in text.chunks_mut(PIECE).enumerate() {
            let packed = rest.split_first_chunk().and_then(|(length, after)| {
                let (packed, after) = after.split_at_checked(usize::from_le_bytes(*length))?;
                rest = after;
                Some(packed)
            });
            let done = packed.map(|packed| decompress_into_with_dict(packed, piece, beside(at, other)));
            if !done.is_some_and(|done| done.is_ok_and(|length| length == piece.len())) {
                return Vec::new();
            }
        }
        text
    }

    /// How many bytes it takes.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }
}

/// Where the piece of this number would stand in the other text.
fn beside(at: usize, other: &[u8]) -> &[u8] {
    let start = (at * PIECE).saturating_sub(MARGIN).min(other.len());
    let end = (at * PIECE + PIECE + MARGIN).min(other.len());
    &other[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(mut state: u32, length: usize) -> String {
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            char::from(b'a' + (state >> 24) as u8 % 26)
        };
        (0..length).map(|_| next()).collect()
    }

    #[test]
    fn what_alike_texts_say_is_kept_once() {
        let dictionaries = Dictionaries::default();
        let said = noise(1, 4000);
        let text = |n: u32| format!("{n}{said}{}", noise(n + 2, 20));
        for n in 0..100 {
            let packed = dictionaries.pack(text(n).as_bytes()).unwrap();
            assert_eq!(packed.whole(), text(n).as_bytes());
            assert_eq!(packed.size(), text(n).len());
            assert!(packed.bytes.len() < 200, "{}", packed.bytes.len());
        }
        assert_eq!(dictionaries.known(|known| known.all.len()), 1);
    }

    #[test]
    fn texts_that_have_nothing_in_common_do_not_gather_dictionaries() {
        let dictionaries = Dictionaries::default();
        for n in 0..1000 {
            let text = noise(n, 1100 + n as usize);
            if let Some(packed) = dictionaries.pack(text.as_bytes()) {
                assert_eq!(packed.whole(), text.as_bytes());
            }
        }
        assert!(dictionaries.known(|known| known.all.len()) <= MOST);
    }

    #[test]
    fn short_texts_stay_as_they_are_and_long_ones_are_no_dictionaries() {
        let dictionaries = Dictionaries::default();
        assert!(dictionaries.pack(b"{}").is_none());
        let long = "abc".repeat(100_000);
        let packed = dictionaries.pack(long.as_bytes()).unwrap();
        assert_eq!(packed.whole(), long.as_bytes());
        assert!(dictionaries.known(|known| known.all.is_empty()));
    }

    #[test]
    fn a_text_comes_back_from_one_that_says_much_the_same() {
        let there_and_back = |text: &str, other: &str| {
            let difference = Difference::new(text.as_bytes(), other.as_bytes());
            assert_eq!(difference.whole(other.as_bytes()), text.as_bytes());
            difference.held()
        };
        let said = noise(1, 4_000);
        assert!(there_and_back(&format!("{said}1{said}"), &format!("{said}2{said}")) < 100);
        assert!(there_and_back(&said, &said) < 40);
        for (text, other) in [("", ""), ("", "a"), ("a", ""), ("a", "b"), (&*said, "")] {
            there_and_back(text, other);
        }
        // Longer than LZ4 looks back, changed at its start and at its end.
        let long = noise(2, 300_000);
        assert!(there_and_back(&format!("a{long}b"), &format!("{}{long}", noise(3, 500))) < 3_000);
        for length in [PIECE - 1, PIECE, PIECE + 1, 2 * PIECE] {
            there_and_back(&long[..length], &long[1..]);
        }
        let other = Difference::new(b"abc", b"abd");
        assert!(Difference { bytes: Box::default(), ..other }.whole(b"abd").is_empty());
    }
}
