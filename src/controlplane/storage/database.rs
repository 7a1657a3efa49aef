//! The store of a folder: one redb file, one transaction for each batch. The only place of this package that
//! touches files; `salvage` reads what it opens. Never knows what an object means.
//!
//! A file is made under another name and renamed when it is whole, so that a process killed at any moment
//! leaves either none or one that opens. `record` has the checksum of each object; the file also says how
//! many objects it holds and what their checksums add up to, so that one that is missing is noticed. A
//! damaged file is read as far as it can be (`salvage`), and a new one takes its place; the damaged one is
//! kept.

use super::caught::caught;
use super::disk::{Batch, CommitError, Disk, MovedAside, OpenError, Saved};
use super::record::{self, encode_key};
use super::salvage::{Found, Reading, TakeIn};
use redb::backends::FileBackend;
use redb::{Database, DatabaseError, ReadableDatabase, StorageError, TableDefinition};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

const FILE: &str = "store.redb";
/// The file that takes the place of a damaged one, until it is whole.
const PART: &str = "store.part";
/// Records of objects, by their keys.
pub(super) const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
/// Texts that are kept beside them, each behind a checksum of its name and itself.
pub(super) const KEPT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("kept");
/// Numbers about the store itself.
pub(super) const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
pub(super) const FORMAT: u64 = 2;
/// All objects are in memory anyway; the cache only has to hold the inner pages that a commit walks through.
const CACHE: usize = 4 * 1024 * 1024;
/// The first revision of an empty etcd.
const FIRST_REVISION: u64 = 1;

/// An open file.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    /// `None` after a failure, until the file was opened again.
    database: Option<Database>,
    totals: Totals,
}

/// The totals of the objects of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// The newest revision.
    pub revision: u64,
    pub count: u64,
    /// The sum of the checksums of all records.
    pub sum: u64,
}

impl Totals {
    /// A number that only these three give.
    pub(crate) fn check(&self) -> u64 {
        [self.revision, self.count, self.sum].iter().fold(0x9e37_79b9_7f4a_7c15, |check: u64, number| {
            (check.rotate_left(23) ^ number).wrapping_mul(0xd6e8_feb8_6659_fd93)
        })
    }

    fn add(&mut self, record: &[u8]) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(u64::from(record::sum_of(record)));
    }

    fn take_off(&mut self, record: &[u8]) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(u64::from(record::sum_of(record)));
    }
}

/// A folder whose store was opened.
pub(super) struct Opened {
    pub(super) disk: StoreFile,
    pub(super) saved: Saved,
    /// Where the file cannot stay as it is: everything has to be committed to `disk`, which then takes its
    /// place.
    pub(super) mended: Option<Mended>,
}

/// A file that is to be replaced.
pub(super) struct Mended {
    /// Holds the lock on it.
    _old: Option<Database>,
    /// The damage and the lost objects; `None` where it was only of an older format.
    damage: Option<(String, Vec<String>)>,
    back: usize,
}

/// Why a file could not be read.
pub(super) enum Trouble {
    InUse,
    Unusable(String),
    /// The content is not valid.
    Damaged(String),
}

/// Opens the store of a folder, which is made where it is missing.
pub(super) fn open(folder: &Path, into: &mut dyn TakeIn) -> Result<Opened, OpenError> {
    make_folder(folder).map_err(|error| OpenError::Unusable(folder.to_owned(), error.to_string()))?;
    let path = folder.join(FILE);
    let named = |trouble| match trouble {
        Trouble::InUse => OpenError::InUse(path.clone()),
        Trouble::Unusable(why) | Trouble::Damaged(why) => OpenError::Unusable(path.clone(), why),
    };
    if !path.exists() {
        let mut disk = create(&folder.join(PART)).map_err(named)?;
        disk.rename_to(&path).map_err(|error| named(Trouble::Unusable(error.to_string())))?;
        let saved = Saved { revision: FIRST_REVISION, kept: BTreeMap::new() };
        return Ok(Opened { disk, saved, mended: None });
    }
    let mut reading = Reading::new(into);
    let old = match database(&path, false) {
        Ok(database) => {
            reading.all_of(&database);
            Some(database)
        }
        Err(Trouble::Damaged(why)) => {
            reading.damaged(why);
            None
        }
        Err(trouble) => return Err(named(trouble)),
    };
    let found =
        reading.finish(|| fs::read(&path)).map_err(|error| named(Trouble::Unusable(error.to_string())))?;
    let Found { saved, totals, fresh, damage, back } = found;
    match old {
        Some(database) if !fresh => {
            Ok(Opened { disk: StoreFile { path, database: Some(database), totals }, saved, mended: None })
        }
        old => {
            let disk = create(&folder.join(PART)).map_err(named)?;
            Ok(Opened { disk, saved, mended: Some(Mended { _old: old, damage, back }) })
        }
    }
}

/// Deletes the store of a folder that nobody has open, if there is one.
///
/// # Errors
/// Where it cannot be deleted.
pub fn discard(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join(FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes the keys and tokens that the store of a folder keeps, so that the next start makes them anew;
/// objects stay. False where there is no store.
///
/// # Errors
/// Where the store cannot be opened, or cannot be written.
pub fn forget_keys(folder: &Path) -> io::Result<bool> {
    let path = folder.join(FILE);
    if path.symlink_metadata().is_err() {
        return Ok(false);
    }
    let database = database(&path, false).map_err(|trouble| match trouble {
        Trouble::InUse => io::Error::other("another process has it open"),
        Trouble::Unusable(why) | Trouble::Damaged(why) => io::Error::other(why),
    })?;
    let forget = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        transaction.delete_table(KEPT)?;
        transaction.open_table(KEPT)?;
        transaction.commit()?;
        Ok(())
    };
    forget().map_err(io::Error::other)?;
    Ok(true)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder)?;
    // Secrets are in it.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Gives a file a second name, the first one that is free.
fn name_aside(path: &Path) -> io::Result<PathBuf> {
    // A link that leads nowhere takes its name, too.
    let is_free = |to: &PathBuf| to.symlink_metadata().is_err();
    let free = (1..).map(|n| path.with_file_name(format!("{FILE}.damaged-{n}"))).find(is_free);
    let to = free.ok_or_else(|| io::Error::other("no free name to keep it under"))?;
    // Some file systems know no second names.
    fs::hard_link(path, &to).or_else(|_| copy(path, &to))?;
    Ok(to)
}

/// Copies a file to a name that is free. Follows no link there.
fn copy(path: &Path, to: &Path) -> io::Result<()> {
    let mut copy = options(true).open(to)?;
    io::copy(&mut File::open(path)?, &mut copy)?;
    copy.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Makes an empty store.
fn create(path: &Path) -> Result<StoreFile, Trouble> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Trouble::Unusable(error.to_string()));
        }
        _ => {}
    }
    let totals = Totals { revision: FIRST_REVISION, ..Totals::default() };
    let mut made = StoreFile { path: path.to_owned(), database: Some(database(path, true)?), totals };
    let empty = Batch { revision: FIRST_REVISION, ..Batch::default() };
    made.write(&empty).map_err(|error| Trouble::Unusable(error.to_string()))?;
    Ok(made)
}

/// How a file is opened that only its owner may read.
fn options(new: bool) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(new);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    options
}

/// The database in a file that only its owner may read.
fn database(path: &Path, new: bool) -> Result<Database, Trouble> {
    // Only this user writes to the folder, but what is in it may have come with a project.
    if !new && fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
        return Err(Trouble::Unusable("it is a link, which is not followed; remove it".to_owned()));
    }
    let file = options(new).open(path).map_err(|error| Trouble::Unusable(error.to_string()))?;
    if !new && file.metadata().is_ok_and(|about| about.len() == 0) {
        return Err(Trouble::Damaged("the file is empty".to_owned()));
    }
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    // A damaged file can lead the database astray, up to a panic.
    match caught(|| builder.create_with_backend(FileBackend::new(file)?)) {
        Ok(opened) => opened.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => Trouble::InUse,
            DatabaseError::Storage(error) => of_storage(error),
            other => Trouble::Damaged(other.to_string()),
        }),
        Err(_) => Err(Trouble::Damaged("its structure is broken".to_owned())),
    }
}

fn of_storage(error: StorageError) -> Trouble {
    match error {
        StorageError::Io(error)
            if !matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Trouble::Unusable(error.to_string())
        }
        other => Trouble::Damaged(other.to_string()),
    }
}

/// The totals that a file has recorded for its objects.
fn totals_in(database: &Database) -> Result<Totals, redb::Error> {
    let numbers = database.begin_read()?.open_table(NUMBERS)?;
    let number =
        |name: &str| -> Result<u64, redb::Error> { Ok(numbers.get(name)?.map_or(0, |found| found.value())) };
    Ok(Totals { revision: number("revision")?, count: number("count")?, sum: number("sum")? })
}

impl StoreFile {
    fn write(&mut self, batch: &Batch) -> Result<(), redb::Error> {
        // After a failure the database wants to be opened anew.
        let database = match self.database.take() {
            Some(database) => database,
            None => {
                let database = Database::builder().set_cache_size(CACHE).open(&self.path)?;
                // A commit that failed may be in the file nevertheless.
                self.totals = totals_in(&database)?;
                database
            }
        };
        let mut totals = Totals { revision: batch.revision, ..self.totals };
        let transaction = database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut text = Vec::new();
            for ((table, key), object) in &batch.objects {
                let key = encode_key(table, key);
                let before = match object {
                    Some(object) => {
                        record::write(&key, object, &mut text);
                        totals.add(&text);
                        objects.insert(key.as_slice(), text.as_slice())?
                    }
                    None => objects.remove(key.as_slice())?,
                };
                if let Some(before) = before {
                    totals.take_off(before.value());
                }
            }
            let mut kept = transaction.open_table(KEPT)?;
            for (name, bytes) in &batch.kept {
                kept.insert(name.as_str(), record::write_kept(name, bytes).as_slice())?;
            }
            let mut numbers = transaction.open_table(NUMBERS)?;
            for (name, number) in [
                ("format", FORMAT),
                ("revision", totals.revision),
                ("count", totals.count),
                ("sum", totals.sum),
                ("check", totals.check()),
            ] {
                numbers.insert(name, number)?;
            }
        }
        transaction.commit()?;
        (self.database, self.totals) = (Some(database), totals);
        Ok(())
    }

    fn rename_to(&mut self, path: &Path) -> io::Result<()> {
        fs::rename(&self.path, path)?;
        path.clone_into(&mut self.path);
        sync_folder(path)
    }

    /// Puts this file in the place of one that cannot stay, which is kept where it was damaged.
    pub(crate) fn replace(&mut self, mended: Mended) -> io::Result<Option<MovedAside>> {
        let path = self.path.with_file_name(FILE);
        let Mended { damage, back, _old } = mended;
        let moved = match damage {
            Some((why, lost)) => Some(MovedAside { to: name_aside(&path)?, why, back, lost }),
            None => None,
        };
        self.rename_to(&path)?;
        Ok(moved)
    }
}

impl Disk for StoreFile {
    fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        self.write(batch).map_err(|error| CommitError { file: self.path.clone(), cause: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Stored};
    use serde_json::json;
    use std::collections::HashMap;
    use std::sync::Arc;

    #[test]
    fn a_batch_that_is_there_although_its_commit_failed_is_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = create(&folder.path().join(FILE)).ok().unwrap();
        let object = Stored::unsaved(json!({"kind": "A", "metadata": {"name": "a"}}));
        let key: (Arc<str>, Key) = ("as".into(), object.key().clone());
        let objects = HashMap::from([(key, Some(object))]);
        let batch = Batch { revision: 2, objects, ..Batch::default() };
        let before = disk.totals;
        disk.write(&batch).unwrap();
        let after = disk.totals;
        (disk.database, disk.totals) = (None, before);
        disk.write(&batch).unwrap();
        assert_eq!((disk.totals.count, disk.totals), (1, after));
    }
}
