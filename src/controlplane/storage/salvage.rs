//! The problem: a process may be killed, or a disk may lie, in the middle of any page. Whatever is left must
//! come back without inventing an object, and without hiding that one is lost.
//!
//! Reads a store's file back: all of it where it is whole, and otherwise every record that verifies, wherever
//! in the file it lies. Says what is lost. Never touches a file: it is given a database, and the bytes.

use super::Key;
use super::caught::caught;
use super::database::{FORMAT, KEPT, NUMBERS, OBJECTS, Totals};
use super::disk::Saved;
use super::record::{self, Record, decode_key, shown_key};
use redb::{Database, ReadOnlyTable, ReadableDatabase, ReadableTable};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

/// In this format the key of an object was in no checksum. It is read, and written anew in today's.
const FIRST_FORMAT: u64 = 1;
/// By how much revisions jump where the newest is not known: none may come twice.
const JUMP: u64 = 1_000_000;

/// Where objects go as they are read.
pub(super) trait TakeIn {
    /// Takes in an object.
    fn take(&mut self, table: &str, key: Key, revision: u64, text: &[u8]);

    /// Waits until all are taken in. The keys, as they are in the file, of those whose text is no object.
    fn refused(&mut self) -> Vec<Vec<u8>>;
}

/// The content of a file.
pub(super) struct Found {
    pub(super) saved: Saved,
    pub(super) totals: Totals,
    /// True if it has to be written anew.
    pub(super) fresh: bool,
    /// The damage, and the objects that are lost.
    pub(super) damage: Option<(String, Vec<String>)>,
    /// How many objects came back.
    pub(super) back: usize,
}

/// A file that is being read.
pub(super) struct Reading<'a> {
    into: &'a mut dyn TakeIn,
    format: Option<u64>,
    /// The totals that the file recorded, if they can be believed.
    totals: Option<Totals>,
    keys: HashSet<Vec<u8>>,
    sum: u64,
    newest: u64,
    kept: BTreeMap<String, Vec<u8>>,
    /// True if all that is kept beside the objects was read.
    kept_read: bool,
    /// Objects of which the key is there, but no record that verifies.
    broken: HashSet<Vec<u8>>,
    lost: Vec<String>,
    why: Option<String>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(into: &'a mut dyn TakeIn) -> Self {
        Reading {
            into,
            format: None,
            totals: None,
            keys: HashSet::new(),
            sum: 0,
            newest: 0,
            kept: BTreeMap::new(),
            kept_read: false,
            broken: HashSet::new(),
            lost: Vec::new(),
            why: None,
        }
    }

    /// Notes what is wrong; the first of it is told.
    pub(super) fn damaged(&mut self, why: impl Into<String>) {
        self.why.get_or_insert(why.into());
    }

    /// Reads what a database gives. Where its structure is broken, that can end in a panic at any place.
    pub(super) fn all_of(&mut self, database: &Database) {
        for part in [Reading::numbers, Reading::objects, Reading::beside] {
            match caught(|| part(self, database)) {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.damaged(error.to_string()),
                Err(_) => self.damaged("its structure is broken"),
            }
        }
    }

    fn numbers(&mut self, database: &Database) -> Result<(), redb::Error> {
        let numbers = database.begin_read()?.open_table(NUMBERS)?;
        let number = |name: &str| -> Result<Option<u64>, redb::Error> {
            Ok(numbers.get(name)?.map(|found| found.value()))
        };
        self.format = number("format")?;
        let totals = (number("revision")?, number("count")?, number("sum")?, number("check")?);
        match (self.format, totals) {
            (Some(FORMAT), (Some(revision), Some(count), Some(sum), Some(check))) => {
                let totals = Totals { revision, count, sum };
                self.totals = Some(totals).filter(|totals| totals.check() == check);
                if self.totals.is_none() {
                    self.damaged("its numbers are broken");
                }
            }
            (Some(FIRST_FORMAT), (revision, ..)) => self.newest = revision.unwrap_or_default(),
            (Some(FORMAT), _) => self.damaged("its numbers are missing"),
            (format, _) => {
                let format = format.map_or_else(|| "unknown".to_owned(), |format| format.to_string());
                let why =
                    format!("another version of opdev wrote it: format {format}, this one reads {FORMAT}");
                self.damaged(why);
            }
        }
        Ok(())
    }

    fn objects(&mut self, database: &Database) -> Result<(), redb::Error> {
        let objects = database.begin_read()?.open_table(OBJECTS)?;
        let forward = caught(|| self.entries(&objects, false));
        if matches!(forward, Ok(Ok(()))) {
            return Ok(());
        }
        self.damaged("its structure is broken");
        // From the other end as far as that goes.
        let backward = caught(|| self.entries(&objects, true));
        backward.unwrap_or(Ok(()))
    }

    fn entries(&mut self, objects: &ReadOnlyTable<&[u8], &[u8]>, backward: bool) -> Result<(), redb::Error> {
        let mut entries = objects.iter()?;
        while let Some(entry) = if backward { entries.next_back() } else { entries.next() } {
            let (key, value) = entry?;
            if backward && self.keys.contains(key.value()) {
                break;
            }
            self.entry(key.value(), value.value());
        }
        Ok(())
    }

    fn entry(&mut self, key: &[u8], value: &[u8]) {
        let read = match self.format {
            Some(FIRST_FORMAT) => record::read_first_format(key, value),
            Some(FORMAT) => record::read(value),
            // The number is broken, or a later opdev wrote it: a checksum tells what a record is.
            _ => record::read(value).or_else(|| record::read_first_format(key, value)),
        };
        match read {
            Some(record) => {
                if record.key != key {
                    self.damaged(format!("the name of {} in it is broken", shown_key(record.key)));
                }
                self.accept(&record);
            }
            None => {
                self.damaged(format!("{} in it is broken", shown_key(key)));
                self.broken.insert(key.to_owned());
            }
        }
    }

    fn accept(&mut self, record: &Record<'_>) {
        if !self.keys.insert(record.key.to_owned()) {
            return;
        }
        match decode_key(record.key) {
            Some((table, key)) => self.into.take(table, key, record.revision, record.text),
            None => self.makes_no_sense(record.key),
        }
        self.newest = self.newest.max(record.revision);
        self.sum = self.sum.wrapping_add(u64::from(record.sum));
    }

    fn makes_no_sense(&mut self, key: &[u8]) {
        self.damaged(format!("{} in it makes no sense", shown_key(key)));
        self.lost.push(shown_key(key));
    }

    fn beside(&mut self, database: &Database) -> Result<(), redb::Error> {
        let kept = database.begin_read()?.open_table(KEPT)?;
        for entry in kept.iter()? {
            let (name, bytes) = entry?;
            let (name, bytes) = (name.value(), bytes.value());
            let read =
                if self.format == Some(FIRST_FORMAT) { Some(bytes) } else { record::read_kept(name, bytes) };
            match read {
                Some(bytes) => drop(self.kept.insert(name.to_owned(), bytes.to_vec())),
                None => {
                    self.damaged(format!("the plane's own {name} in it is broken"));
                    self.lost.push(format!("the plane's own {name}"));
                }
            }
        }
        self.kept_read = true;
        Ok(())
    }

    /// Compares what was read with what the file says of itself; what is missing is looked for in the bytes.
    pub(crate) fn finish(mut self, bytes: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Found> {
        self.into.refused().iter().for_each(|key| self.makes_no_sense(key));
        let count = (self.keys.len() + self.broken.len()) as u64;
        if let Some(totals) = self.totals
            && (totals.count != count || (totals.sum != self.sum && self.broken.is_empty()))
        {
            self.damaged("objects are missing in it");
        }
        if self.why.is_some() && self.format != Some(FIRST_FORMAT) {
            self.look_in(&bytes()?);
            self.into.refused().iter().for_each(|key| self.makes_no_sense(key));
        }
        // An object whose key was broken may have come back under its own.
        let broken = std::mem::take(&mut self.broken);
        let (keys, lost) = (&self.keys, &mut self.lost);
        lost.extend(broken.iter().filter(|key| !keys.contains(*key)).map(|key| shown_key(key)));
        if !self.kept_read {
            self.lost.push("the plane's own keys: it makes new ones".to_owned());
        }
        self.lost.sort();
        let known = self.totals.map(|totals| totals.revision);
        let revision = match (known, &self.why) {
            (Some(revision), _) => revision.max(self.newest),
            (None, None) => self.newest.max(1),
            (None, Some(_)) => self.newest + JUMP,
        };
        let totals = Totals { revision, count: self.keys.len() as u64, sum: self.sum };
        let fresh = self.why.is_some() || self.format != Some(FORMAT);
        let back = self.keys.len();
        let damage = self.why.map(|why| (why, self.lost));
        Ok(Found { saved: Saved { revision, kept: self.kept }, totals, fresh, damage, back })
    }

    /// Takes the newest record of each object that was not read yet. Pages that are free hold older records,
    /// and such of objects that were deleted: where it is known how many objects there are, only so many come
    /// back as are missing beside those whose key was read, those whose checksums add up to what the file
    /// says.
    fn look_in(&mut self, bytes: &[u8]) {
        // A record may have come back under its own key from another place of the tree.
        self.broken.retain(|key| !self.keys.contains(key));
        let mut newest: HashMap<&[u8], Record<'_>> = HashMap::new();
        for record in record::find_all(bytes) {
            let known = self.keys.contains(record.key);
            if !known && newest.get(record.key).is_none_or(|other| other.revision < record.revision) {
                newest.insert(record.key, record);
            }
        }
        let (found, mut others): (Vec<Record<'_>>, Vec<Record<'_>>) =
            newest.into_values().partition(|record| self.broken.contains(record.key));
        others.sort_by_key(|record| std::cmp::Reverse(record.revision));
        if let Some(totals) = self.totals {
            // A key that no object can have tells nothing: its object is looked for under its own key.
            let named = self.broken.iter().filter(|key| record::is_key(key)).count();
            let unnamed = totals.count.saturating_sub((self.keys.len() + named) as u64);
            // A record whose key is there may add anything, so nothing is known then.
            let missing = (named == 0).then(|| totals.sum.wrapping_sub(self.sum));
            others = chosen(others, usize::try_from(unnamed).unwrap_or(usize::MAX), missing);
        }
        found.iter().chain(&others).for_each(|record| self.accept(record));
        let Some(totals) = self.totals else { return self.doubt(&found) };
        // Where as many are there as the file says, a key that no object can have stood for one that came
        // back.
        if self.keys.len() as u64 >= totals.count {
            self.broken.retain(|key| record::is_key(key));
        }
        // A key that is broken itself is one of the missing.
        let unnamed = totals.count.saturating_sub((self.keys.len() + self.still_broken()) as u64);
        if unnamed > 0 {
            self.lost.push(format!("{unnamed} objects whose names are not known"));
        }
        if totals.sum != self.sum {
            self.doubt(&found);
            let doubtful = |record: &Record<'_>| {
                let (key, revision) = (shown_key(record.key), record.revision);
                format!("the deletion of {key}, if it was deleted (it is back as of revision {revision})")
            };
            self.lost.extend(others.iter().map(doubtful));
        }
    }

    fn still_broken(&self) -> usize {
        self.broken.iter().filter(|key| !self.keys.contains(*key)).count()
    }

    /// Says of those whose newest record is broken that an older one may have come back.
    fn doubt(&mut self, found: &[Record<'_>]) {
        for record in found.iter().filter(|record| self.broken.contains(record.key)) {
            let key = shown_key(record.key);
            self.lost
                .push(format!("the newest state of {key} (it is back as of revision {})", record.revision));
        }
    }
}

/// Chooses among records that belong to no key that was read, the newest first: as many as are missing. If
/// the sum of their checksums is known, the chosen ones have that sum, as long as no more than one of the
/// newest was deleted. A single missing record is the one whose checksum is right, or none.
fn chosen<'b>(mut others: Vec<Record<'b>>, count: usize, missing: Option<u64>) -> Vec<Record<'b>> {
    if let (1, Some(missing)) = (count, missing) {
        others.retain(|record| u64::from(record.sum) == missing);
        others.truncate(1);
        return others;
    }
    let older = others.split_off(count.min(others.len()));
    let sum = others.iter().fold(0_u64, |sum, record| sum.wrapping_add(u64::from(record.sum)));
    let Some(missing) = missing.filter(|missing| *missing != sum) else { return others };
    let by_sum: HashMap<u64, &Record<'_>> =
        older.iter().rev().map(|record| (u64::from(record.sum), record)).collect();
    for record in &mut others {
        let wanted = missing.wrapping_sub(sum).wrapping_add(u64::from(record.sum));
        if let Some(older) = by_sum.get(&wanted) {
            *record = **older;
            break;
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::super::record::{self, Record, encode_key};
    use super::super::{Expected, Key, MovedAside, Store, Stored};
    use super::{FIRST_FORMAT, FORMAT, KEPT, NUMBERS, OBJECTS, chosen};
    use crate::indexing;
    use redb::{Database, ReadableDatabase as _};
    use serde_json::json;
    use std::path::Path;

    const COUNT: usize = 300;

    fn fill(folder: &Path) {
        let (store, moved) = Store::open(folder, indexing).unwrap();
        assert_eq!(moved, None);
        for n in 0..COUNT {
            let name = format!("object-{n}");
            let object =
                json!({"kind": "A", "metadata": {"name": name, "namespace": "x"}, "n": "y".repeat(n)});
            store.put("as", &Key::new("x", &name), Expected::Absent, object).unwrap();
        }
        let gone = store.get("as", &Key::new("x", "object-7")).unwrap();
        store.remove("as", gone.key(), gone.revision, None).unwrap();
        store.keep("secret", b"key".to_vec());
        store.close();
    }

    fn names(store: &Store) -> Vec<String> {
        store
            .list("as", None)
            .items
            .iter()
            .map(|object| object.value()["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The store of a folder after its file was damaged.
    fn reopened(folder: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> (Store, Option<MovedAside>) {
        let path = folder.join("store.redb");
        let mut bytes = std::fs::read(&path).unwrap();
        damage(&mut bytes);
        std::fs::write(&path, &bytes).unwrap();
        let opened = Store::open(folder, indexing).unwrap();
        if let Some(moved) = &opened.1 {
            assert!(moved.to.exists());
            opened.0.close();
            // Objects that came back stay in the file.
            let again = Store::open(folder, indexing).unwrap();
            assert_eq!((again.1, names(&again.0)), (None, names(&opened.0)));
            return (again.0, opened.1);
        }
        opened
    }

    fn all_places(bytes: &[u8], what: &[u8]) -> Vec<usize> {
        (0..bytes.len() - what.len()).filter(|at| bytes[*at..].starts_with(what)).collect()
    }

    #[test]
    fn a_large_file_comes_back_whole_and_names_what_is_no_object() {
        const MANY: usize = 3000;
        let folder = tempfile::tempdir().unwrap();
        let name = |n: usize| format!("object-{n:04}");
        {
            let (store, _) = Store::open(folder.path(), indexing).unwrap();
            for n in 0..MANY {
                let metadata =
                    json!({"name": name(n), "namespace": "x", "labels": {"n": (n % 7).to_string()}});
                let object = json!({"kind": "A", "metadata": metadata, "text": name(n).repeat(100)});
                store.put("as", &Key::new("x", &name(n)), Expected::Absent, object).unwrap();
            }
            store.close();
        }
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        assert_eq!(moved, None);
        for (n, object) in store.list("as", None).items.iter().enumerate() {
            let value = object.value();
            assert_eq!(
                (&value["metadata"]["name"], &value["text"]),
                (&json!(name(n)), &json!(name(n).repeat(100)))
            );
            assert_eq!(object.revision, n as u64 + 2);
        }
        assert_eq!(names(&store).len(), MANY);
        store.close();
        drop(store);
        let database = Database::open(folder.path().join("store.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        for odd in ["odd", "odd-2"] {
            let (key, mut text) = (encode_key("as", &Key::new("x", odd)), Vec::new());
            record::write(&key, &Stored::unsaved(json!({})), &mut text);
            // A right checksum over a text that is none.
            *text.last_mut().unwrap() = b'?';
            let mut sum = flate2::Crc::new();
            sum.update(&text[8..]);
            text[4..8].copy_from_slice(&sum.sum().to_le_bytes());
            let mut objects = transaction.open_table(OBJECTS).unwrap();
            objects.insert(key.as_slice(), text.as_slice()).unwrap();
        }
        transaction.commit().unwrap();
        drop(database);
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        let lost = moved.unwrap().lost;
        assert!(lost.contains(&"as x/odd".to_owned()) && lost.contains(&"as x/odd-2".to_owned()), "{lost:?}");
        assert_eq!(names(&store).len(), MANY);
    }

    #[test]
    fn one_flipped_bit_costs_one_object_and_says_which() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let (store, moved) = reopened(folder.path(), |bytes| {
            for at in all_places(bytes, br#""name":"object-42""#) {
                bytes[at + 9] ^= 4;
            }
        });
        let moved = moved.unwrap();
        assert_eq!(moved.lost, ["as x/object-42"]);
        assert_eq!((names(&store).len(), moved.back), (COUNT - 2, COUNT - 2));
        assert_eq!(store.kept("secret"), Some(b"key".to_vec()));
        assert!(moved.to_string().contains("1 are lost: as x/object-42"), "{moved}");
    }

    #[test]
    fn an_object_whose_key_was_damaged_comes_back_under_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let (store, moved) = reopened(folder.path(), |bytes| {
            // The key in the table, not the one in the record, which has the text behind it.
            for at in all_places(bytes, b"as\0x\0object-42") {
                if !bytes[at + 14..].starts_with(b"{\"kind") {
                    bytes[at + 13] ^= 1;
                }
            }
        });
        assert!(names(&store).contains(&"object-42".to_owned()));
        assert!(moved.is_none_or(|moved| moved.lost.is_empty()));
    }

    #[test]
    fn a_file_whose_structure_is_gone_gives_back_every_record_that_verifies() {
        for damage in
            [|bytes: &mut Vec<u8>| bytes[..4096].fill(0xff), |bytes: &mut Vec<u8>| bytes[..16].fill(0)]
        {
            let folder = tempfile::tempdir().unwrap();
            fill(folder.path());
            let (store, moved) = reopened(folder.path(), damage);
            assert!(moved.is_some());
            let names = names(&store);
            (0..COUNT)
                .filter(|n| *n != 7)
                .for_each(|n| assert!(names.contains(&format!("object-{n}")), "{n}"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_damaged_file_is_not_copied_to_where_a_link_leads() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let elsewhere = folder.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, folder.path().join("store.redb.damaged-1")).unwrap();
        let (_store, moved) = reopened(folder.path(), |bytes| bytes[..16].fill(0));
        assert!(moved.unwrap().to.ends_with("store.redb.damaged-2"));
        assert!(!elsewhere.exists());
    }

    /// A store as opdev wrote it before the key of an object was part of its checksum.
    fn fill_in_first_format(folder: &Path, broken: bool) {
        let database = Database::create(folder.join("store.redb")).unwrap();
        let transaction = database.begin_write().unwrap();
        {
            let mut objects = transaction.open_table(OBJECTS).unwrap();
            for (name, revision) in [("a", 7_u64), ("b", 9)] {
                let object = json!({"kind": "A", "metadata":
                    {"name": name, "namespace": "x", "resourceVersion": revision.to_string()}});
                let mut text = object.to_string().into_bytes();
                let mut sum = flate2::Crc::new();
                sum.update(&revision.to_le_bytes());
                sum.update(&text);
                if broken && name == "a" {
                    text[3] ^= 1;
                }
                let record = [&revision.to_le_bytes()[..], &sum.sum().to_le_bytes(), &text].concat();
                objects.insert(encode_key("as", &Key::new("x", name)).as_slice(), record.as_slice()).unwrap();
            }
            transaction.open_table(KEPT).unwrap().insert("secret", &b"key"[..]).unwrap();
            let mut numbers = transaction.open_table(NUMBERS).unwrap();
            numbers.insert("format", FIRST_FORMAT).unwrap();
            numbers.insert("revision", 12).unwrap();
        }
        transaction.commit().unwrap();
    }

    #[test]
    fn the_first_format_is_read_and_written_anew_in_todays() {
        let folder = tempfile::tempdir().unwrap();
        fill_in_first_format(folder.path(), false);
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        assert_eq!(
            (moved, names(&store), store.revision()),
            (None, vec!["a".to_owned(), "b".to_owned()], 12)
        );
        let b = store.get("as", &Key::new("x", "b")).unwrap();
        assert_eq!((b.revision, store.kept("secret")), (9, Some(b"key".to_vec())));
        let c = json!({"kind": "A", "metadata": {"name": "c", "namespace": "x"}});
        assert_eq!(store.put("as", &Key::new("x", "c"), Expected::Absent, c).unwrap().revision, 13);
        store.close();
        {
            let database = Database::open(folder.path().join("store.redb")).unwrap();
            let numbers = database.begin_read().unwrap().open_table(NUMBERS).unwrap();
            assert_eq!(numbers.get("format").unwrap().map(|found| found.value()), Some(FORMAT));
        }
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        assert_eq!((moved, names(&store).len(), store.revision()), (None, 3, 13));
        assert_eq!(store.kept("secret"), Some(b"key".to_vec()));
        let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(files.len(), 1, "nothing is left of the older file: {files:?}");
    }

    #[test]
    fn a_broken_object_of_the_first_format_is_named_and_its_file_kept() {
        let folder = tempfile::tempdir().unwrap();
        fill_in_first_format(folder.path(), true);
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        let moved = moved.unwrap();
        assert_eq!((names(&store), moved.lost), (vec!["b".to_owned()], vec!["as x/a".to_owned()]));
        assert!(moved.to.exists());
    }

    #[test]
    fn objects_of_the_first_format_come_back_where_its_number_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        fill_in_first_format(folder.path(), false);
        {
            let database = Database::open(folder.path().join("store.redb")).unwrap();
            let transaction = database.begin_write().unwrap();
            transaction.delete_table(NUMBERS).unwrap();
            transaction.commit().unwrap();
        }
        let (store, moved) = Store::open(folder.path(), indexing).unwrap();
        let moved = moved.unwrap();
        assert_eq!((names(&store), moved.back), (vec!["a".to_owned(), "b".to_owned()], 2));
        assert!(moved.to.exists());
    }

    /// The records that lie in bytes, the newest first.
    fn records(revisions: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for revision in revisions {
            let (mut record, name) = (Vec::new(), format!("object-{revision}"));
            let object = Stored::unsaved(json!({"metadata": {"name": name}, "n": revision}));
            record::write(&encode_key("as", &Key::new("x", &name)), &object, &mut record);
            bytes.extend(record);
        }
        bytes
    }

    #[test]
    fn the_records_that_come_back_add_up_to_what_the_file_says() {
        let bytes = records(&[9, 8, 7, 6, 5]);
        let all: Vec<_> = record::find_all(&bytes).collect();
        let sum = |which: &[usize]| which.iter().map(|at| u64::from(all[*at].sum)).sum::<u64>();
        let texts = |records: Vec<Record<'_>>| records.iter().map(|record| record.sum).collect::<Vec<_>>();
        let of = |which: &[usize]| which.iter().map(|at| all[*at].sum).collect::<Vec<_>>();
        // The newest record is of a deleted object; the one that is missing is older, or broken itself.
        assert_eq!(texts(chosen(all.clone(), 1, Some(sum(&[3])))), of(&[3]));
        assert_eq!(texts(chosen(all.clone(), 1, Some(12_345))), of(&[]));
        assert_eq!(texts(chosen(all.clone(), 1, None)), of(&[0]));
        assert_eq!(texts(chosen(all.clone(), 3, Some(sum(&[0, 1, 2])))), of(&[0, 1, 2]));
        assert_eq!(texts(chosen(all.clone(), 3, Some(sum(&[0, 4, 2])))), of(&[0, 4, 2]));
        assert_eq!(texts(chosen(all.clone(), 3, Some(1))), of(&[0, 1, 2]));
        assert_eq!(texts(chosen(all.clone(), 9, Some(sum(&[0, 1, 2, 3, 4])))), of(&[0, 1, 2, 3, 4]));
        assert_eq!(texts(chosen(all.clone(), 0, Some(0))), of(&[]));
    }

    #[test]
    fn no_flipped_bit_loses_an_object_silently() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let whole = std::fs::read(folder.path().join("store.redb")).unwrap();
        // A few bits of every page are tried, other ones in each.
        for place in (0..whole.len()).step_by(whole.len() / 150 + 1) {
            let (store, moved) = {
                std::fs::write(folder.path().join("store.redb"), &whole).unwrap();
                reopened(folder.path(), |bytes| bytes[place] ^= 1 << (place % 8))
            };
            let missing = COUNT - 1 - names(&store).iter().filter(|name| *name != "object-7").count();
            let told = moved.as_ref().map_or(0, |moved| moved.lost.len());
            assert!(missing == 0 || told > 0, "byte {place}: {missing} are missing: {moved:?}");
            assert!(missing <= 1, "byte {place}: {missing} are missing: {moved:?}");
            store.close();
        }
    }

    /// How many entries a page has is in its third byte: with another number, its entries are read at wrong
    /// places, and what is read there can ask for more memory than there is.
    #[test]
    fn a_page_that_claims_another_number_of_entries_costs_no_more_than_one_object() {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let whole = std::fs::read(folder.path().join("store.redb")).unwrap();
        let used = |page: &usize| whole[*page..].iter().take(4096).any(|byte| *byte != 0);
        for page in (0..whole.len()).step_by(4096).filter(used) {
            for bit in [1, 2, 6] {
                std::fs::write(folder.path().join("store.redb"), &whole).unwrap();
                let (store, moved) = reopened(folder.path(), |bytes| bytes[page + 2] ^= 1 << bit);
                let missing = COUNT - 1 - names(&store).iter().filter(|name| *name != "object-7").count();
                let told = moved.as_ref().map_or(0, |moved| moved.lost.len());
                assert!(missing == 0 || told > 0, "page {page}, bit {bit}: {missing} are missing: {moved:?}");
                assert!(missing <= 1, "page {page}, bit {bit}: {missing} are missing: {moved:?}");
                store.close();
            }
        }
    }
}
