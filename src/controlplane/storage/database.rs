//! The store of a folder: one redb file, one transaction for each batch. The only place of this package that
//! touches files, and the only home of redb. Never knows what an object means.
//!
//! A file is made under another name and renamed when it is whole, so that a process killed at any moment leaves
//! either none or one that opens. Each object carries a checksum, for damage that the database does not notice.

use super::disk::{Batch, Disk, MovedAside, OpenError, Saved};
use super::{Key, Stored};
use redb::{
    Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const FILE: &str = "store.redb";
/// Objects by table, namespace and name with a zero byte between them.
const OBJECTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("objects");
/// What is kept beside them.
const KEPT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("kept");
/// Numbers about the store itself.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const FORMAT: u64 = 1;
/// All objects are in memory anyway; the cache only has to hold the inner pages that a commit walks through.
const CACHE: usize = 4 * 1024 * 1024;
/// Revision and checksum in front of an object's text.
const HEAD: usize = 12;

/// An open file.
#[derive(Debug)]
pub(super) struct StoreFile {
    path: PathBuf,
    /// `None` after a failure, until the file was opened again.
    database: Option<Database>,
}

/// A folder whose store was opened.
pub(super) struct Opened {
    pub(super) disk: StoreFile,
    pub(super) saved: Saved,
    pub(super) moved: Option<MovedAside>,
}

/// Why a file could not be read.
enum Trouble {
    InUse,
    Unusable(String),
    /// What is in it makes no sense.
    Damaged(String),
}

/// Opens the store of a folder, which is made where it is missing. A store that makes no sense is moved aside.
pub(super) fn open(folder: &Path) -> Result<Opened, OpenError> {
    make_folder(folder).map_err(|error| OpenError::Unusable(folder.to_owned(), error.to_string()))?;
    let path = folder.join(FILE);
    let named = |trouble| match trouble {
        Trouble::InUse => OpenError::InUse(path.clone()),
        Trouble::Unusable(why) | Trouble::Damaged(why) => OpenError::Unusable(path.clone(), why),
    };
    let mut moved = None;
    if path.exists() {
        match read(&path) {
            Ok((disk, saved)) => return Ok(Opened { disk, saved, moved }),
            Err(Trouble::Damaged(why)) => {
                let to = move_aside(&path).map_err(|error| named(Trouble::Unusable(error.to_string())))?;
                moved = Some(MovedAside { to, why });
            }
            Err(trouble) => return Err(named(trouble)),
        }
    }
    create(&path).map_err(&named)?;
    let (disk, saved) = read(&path).map_err(&named)?;
    Ok(Opened { disk, saved, moved })
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

/// Removes the keys and tokens that the store of a folder keeps, so that the next start makes them anew; objects stay.
/// False where there is no store.
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

/// Renames a file to the first free name.
fn move_aside(path: &Path) -> io::Result<PathBuf> {
    let free = (1..).map(|n| path.with_file_name(format!("{FILE}.damaged-{n}"))).find(|to| !to.exists());
    let to = free.ok_or_else(|| io::Error::other("no free name to move it to"))?;
    fs::rename(path, &to)?;
    sync_folder(path)?;
    Ok(to)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Makes an empty store.
fn create(path: &Path) -> Result<(), Trouble> {
    let part = path.with_extension("part");
    if part.exists() {
        fs::remove_file(&part).map_err(|error| Trouble::Unusable(error.to_string()))?;
    }
    let database = database(&part, true)?;
    let write = || -> Result<(), redb::Error> {
        let transaction = database.begin_write()?;
        {
            let mut numbers = transaction.open_table(NUMBERS)?;
            numbers.insert("format", FORMAT)?;
            // What an empty etcd starts at.
            numbers.insert("revision", 1)?;
            transaction.open_table(OBJECTS)?;
            transaction.open_table(KEPT)?;
        }
        transaction.commit()?;
        Ok(())
    };
    write().map_err(|error| Trouble::Unusable(error.to_string()))?;
    drop(database);
    fs::rename(&part, path)
        .and_then(|()| sync_folder(path))
        .map_err(|error| Trouble::Unusable(error.to_string()))
}

/// The database in a file that only its owner may read.
fn database(path: &Path, new: bool) -> Result<Database, Trouble> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(new);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    // Only this user writes to the folder, but what is in it may have come with a project.
    if !new && fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink()) {
        return Err(Trouble::Unusable("it is a link, which is not followed; remove it".to_owned()));
    }
    let file = options.open(path).map_err(|error| Trouble::Unusable(error.to_string()))?;
    if !new && file.metadata().is_ok_and(|about| about.len() == 0) {
        return Err(Trouble::Damaged("the file is empty".to_owned()));
    }
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE);
    // A damaged file can lead the database astray, up to a panic.
    match std::panic::catch_unwind(AssertUnwindSafe(|| builder.create_file(file))) {
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

fn of_any(error: redb::Error) -> Trouble {
    match error {
        redb::Error::Io(error) => of_storage(StorageError::Io(error)),
        other => Trouble::Damaged(other.to_string()),
    }
}

/// Opens a file and reads all of it.
fn read(path: &Path) -> Result<(StoreFile, Saved), Trouble> {
    let database = database(path, false)?;
    let saved = std::panic::catch_unwind(AssertUnwindSafe(|| load(&database)))
        .unwrap_or_else(|_| Err(Trouble::Damaged("its structure is broken".to_owned())))?;
    Ok((StoreFile { path: path.to_owned(), database: Some(database) }, saved))
}

fn load(database: &Database) -> Result<Saved, Trouble> {
    let any = |error: redb::Error| of_any(error);
    let reading = database.begin_read().map_err(|error| any(error.into()))?;
    let numbers = match reading.open_table(NUMBERS) {
        Ok(numbers) => numbers,
        Err(TableError::Storage(error)) => return Err(of_storage(error)),
        Err(other) => return Err(Trouble::Damaged(format!("it is no store of opdev: {other}"))),
    };
    let number = |name: &str| numbers.get(name).map(|found| found.map(|found| found.value()));
    match number("format").map_err(of_storage)? {
        Some(FORMAT) => {}
        found => {
            let found = found.map_or_else(|| "unknown".to_owned(), |found| found.to_string());
            let why = format!("another version of opdev wrote it: format {found}, this one reads {FORMAT}");
            return Err(Trouble::Damaged(why));
        }
    }
    let revision = number("revision").map_err(of_storage)?;
    let revision = revision.ok_or_else(|| Trouble::Damaged("its revision is missing".to_owned()))?;
    let mut saved = Saved { revision, objects: Vec::new(), kept: BTreeMap::new() };
    let objects = reading.open_table(OBJECTS).map_err(|error| any(error.into()))?;
    for entry in objects.iter().map_err(of_storage)? {
        let (key, object) = entry.map_err(of_storage)?;
        let (table, key) = decode_key(key.value())
            .ok_or_else(|| Trouble::Damaged("an object's name is broken".to_owned()))?;
        let object = decode(object.value())
            .ok_or_else(|| Trouble::Damaged(format!("{} {:?} in it is broken", table, &*key.name)))?;
        if object.revision > revision {
            return Err(Trouble::Damaged(format!("{table} {:?} in it is newer than it", &*key.name)));
        }
        saved.objects.push((table, key, object));
    }
    let kept = reading.open_table(KEPT).map_err(|error| any(error.into()))?;
    for entry in kept.iter().map_err(of_storage)? {
        let (name, bytes) = entry.map_err(of_storage)?;
        saved.kept.insert(name.value().to_owned(), bytes.value().to_vec());
    }
    Ok(saved)
}

fn encode_key(table: &str, key: &Key) -> Vec<u8> {
    [table.as_bytes(), key.namespace.as_bytes(), key.name.as_bytes()].join(&0)
}

fn decode_key(bytes: &[u8]) -> Option<(String, Key)> {
    let mut parts = std::str::from_utf8(bytes).ok()?.splitn(3, '\0');
    let (table, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((table.to_owned(), Key::new(namespace, name)))
}

fn checksum(revision: &[u8], text: &[u8]) -> [u8; 4] {
    let mut sum = flate2::Crc::new();
    sum.update(revision);
    sum.update(text);
    sum.sum().to_le_bytes()
}

/// Puts an object behind its revision and a checksum.
fn encode(object: &Stored, into: &mut Vec<u8>) -> Result<(), String> {
    into.clear();
    let revision = object.revision.to_le_bytes();
    into.extend_from_slice(&revision);
    into.extend_from_slice(&[0; HEAD - 8]);
    object.write_json(into).map_err(|error| error.to_string())?;
    let sum = checksum(&revision, &into[HEAD..]);
    into[8..HEAD].copy_from_slice(&sum);
    Ok(())
}

fn decode(bytes: &[u8]) -> Option<Arc<Stored>> {
    let (head, text) = bytes.split_at_checked(HEAD)?;
    let (revision, sum) = head.split_at(8);
    if checksum(revision, text) != sum {
        return None;
    }
    let revision = u64::from_le_bytes(revision.try_into().ok()?);
    let value: Value = serde_json::from_slice(text).ok()?;
    Some(Stored::saved(value, revision))
}

impl StoreFile {
    fn write(&mut self, batch: &Batch) -> Result<(), redb::Error> {
        // After a failure the database wants to be opened anew.
        let database = match self.database.take() {
            Some(database) => database,
            None => Database::builder().set_cache_size(CACHE).open(&self.path)?,
        };
        let transaction = database.begin_write()?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut text = Vec::new();
            for ((table, key), object) in &batch.objects {
                let key = encode_key(table, key);
                match object {
                    Some(object) => {
                        encode(object, &mut text).map_err(|why| redb::Error::Io(io::Error::other(why)))?;
                        objects.insert(key.as_slice(), text.as_slice())?;
                    }
                    None => drop(objects.remove(key.as_slice())?),
                }
            }
            let mut kept = transaction.open_table(KEPT)?;
            for (name, bytes) in &batch.kept {
                kept.insert(name.as_str(), bytes.as_slice())?;
            }
            transaction.open_table(NUMBERS)?.insert("revision", batch.revision)?;
        }
        transaction.commit()?;
        self.database = Some(database);
        Ok(())
    }
}

impl Disk for StoreFile {
    fn commit(&mut self, batch: &Batch) -> Result<(), String> {
        self.write(batch).map_err(|error| format!("{}: {error}", self.path.display()))
    }
}
