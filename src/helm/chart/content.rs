//! The content of a chart's file: at hand, or read when somebody asks for it.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The bytes of a file. A clone shares them.
#[derive(Clone)]
pub struct Content(Bytes);

#[derive(Clone)]
enum Bytes {
    Here(Arc<[u8]>),
    Late(Arc<Late>),
}

/// A file that nobody has asked for yet.
struct Late {
    path: PathBuf,
    read: OnceLock<Arc<[u8]>>,
    unread: Unread,
}

/// The outcome for files that are read late. One that cannot be read then is empty to who asks, so who asks
/// has to look here before the outcome is used.
#[derive(Debug, Clone, Default)]
pub struct Unread(Arc<OnceLock<String>>);

impl Unread {
    /// Why a file could not be read, if that was so.
    pub fn failed(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

impl Content {
    /// The content of a file, once somebody asks.
    pub(super) fn late(path: PathBuf, unread: &Unread) -> Content {
        let read = OnceLock::new();
        Content(Bytes::Late(Arc::new(Late { path, read, unread: unread.clone() })))
    }

    /// The bytes, read now at the latest.
    pub fn bytes(&self) -> &Arc<[u8]> {
        match &self.0 {
            Bytes::Here(bytes) => bytes,
            Bytes::Late(late) => late.read.get_or_init(|| late.read()),
        }
    }

    /// Returns true if it is not read yet.
    pub(super) fn is_late(&self) -> bool {
        matches!(&self.0, Bytes::Late(late) if late.read.get().is_none())
    }

    /// Returns true if both are the same bytes at the same place.
    pub(crate) fn is(&self, other: &Content) -> bool {
        match (&self.0, &other.0) {
            (Bytes::Here(one), Bytes::Here(other)) => Arc::ptr_eq(one, other),
            (Bytes::Late(one), Bytes::Late(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Late {
    fn read(&self) -> Arc<[u8]> {
        let read = super::read::file(&self.path).map(|data| without_mark(&data));
        read.unwrap_or_else(|error| {
            let _ = self.unread.0.set(format!("open {}: {error}", self.path.display()));
            Arc::default()
        })
    }
}

/// Without a byte order mark.
pub(super) fn without_mark(data: &Arc<[u8]>) -> Arc<[u8]> {
    data.strip_prefix(b"\xef\xbb\xbf").map_or_else(|| Arc::clone(data), Arc::from)
}

impl Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl From<Arc<[u8]>> for Content {
    fn from(bytes: Arc<[u8]>) -> Content {
        Content(Bytes::Here(bytes))
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Content {
        Content(Bytes::Here(bytes.into()))
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Content {
        Content(Bytes::Here(bytes.into()))
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        self.is(other) || self.bytes() == other.bytes()
    }
}

impl Eq for Content {}

impl Hash for Content {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_late() { f.write_str("Late") } else { self.bytes().fmt(f) }
    }
}
