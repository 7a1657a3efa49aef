//! The contract between the store and the medium that keeps it over a restart: everything at the start, then
//! batch after batch. Knows no file and no format; `database` is the one there is, `writer` the one who calls
//! it.

use super::{Key, Stored};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// One commit. It holds only the newest state of each object: nobody needs the states between after a
/// restart.
#[derive(Debug, Default)]
pub struct Batch {
    /// The newest revision in it.
    pub revision: u64,
    /// Objects by table and key; `None` for one that is gone.
    pub objects: HashMap<(Arc<str>, Key), Option<Arc<Stored>>>,
    /// Texts that are kept beside the objects.
    pub(super) kept: BTreeMap<String, Vec<u8>>,
}

impl Batch {
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.kept.is_empty()
    }
}

/// The content of a store when it was last written.
#[derive(Debug)]
pub(super) struct Saved {
    /// The newest revision.
    pub revision: u64,
    /// Texts that were kept beside the objects.
    pub(super) kept: BTreeMap<String, Vec<u8>>,
}

/// A place that survives the process.
pub trait Disk: Send {
    /// Writes all of a batch or nothing of it. Once this returns, it survives the loss of power. After a
    /// failure the same batch may be handed over again.
    fn commit(&mut self, batch: &Batch) -> Result<(), CommitError>;
}

/// Why a batch was not written.
#[derive(Debug)]
pub struct CommitError {
    /// The file of the store.
    pub file: PathBuf,
    /// The error there.
    pub cause: Box<dyn Error + Send + Sync>,
}

impl fmt::Display for CommitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.cause)
    }
}

impl Error for CommitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.cause)
    }
}

/// Why the store of a folder could not be opened. Nothing in the folder was changed.
#[derive(Debug)]
pub enum OpenError {
    /// Another process has it open.
    InUse(PathBuf),
    /// The folder or the file cannot be read or written.
    Unusable(PathBuf, String),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse(path) => write!(
                f,
                "{} is open in another process; stop that one, or name another folder",
                path.display()
            ),
            OpenError::Unusable(path, why) => write!(f, "{} cannot be used: {why}", path.display()),
        }
    }
}

impl Error for OpenError {}

/// A damaged store that made way for a new one, in which everything is that could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedAside {
    /// Where the damaged file is now.
    pub to: PathBuf,
    /// Its error.
    pub why: String,
    /// How many objects came back.
    pub back: usize,
    /// The objects that did not, each with resource, namespace and name.
    pub lost: Vec<String>,
}

impl fmt::Display for MovedAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// More than this many names say no more.
        const NAMED: usize = 20;
        let MovedAside { to, why, back, lost } = self;
        let to = to.display();
        if *back == 0 {
            return write!(
                f,
                "the objects of before could not be read ({why}); nothing was deleted: they are in {to}, and this control plane started empty"
            );
        }
        write!(f, "the store was damaged ({why}): {back} objects came back, ")?;
        match lost.len() {
            0 => f.write_str("none is lost")?,
            more => {
                write!(f, "{more} are lost: {}", lost[..more.min(NAMED)].join(", "))?;
                if more > NAMED {
                    write!(f, " and {} more", more - NAMED)?;
                }
            }
        }
        write!(f, "; nothing was deleted: the damaged file is {to}")
    }
}
