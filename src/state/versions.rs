//! Every version of an object that was seen: the newest whole and shared, older ones as what leads back to
//! them. Bounded for each object and over all; the oldest go first. A deleted object's versions stay for a
//! while (`Gone`). Never reads a clock: the times are those of the events.

use super::Seen;
use super::conditions::Line;
use super::shards::Shards;
use jiff::Timestamp;
use opdev_event::{Body, Parsed};
use opdev_object::meta::{self, ObjectKey};
use opdev_object::pack::Difference;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes of one kept version beside its text, roughly.
const OVERHEAD: usize = 112;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct VersionLimits {
    /// Versions of one object, the newest included.
    pub per_object: usize,
    /// Bytes of all older versions together; the budget of all history bounds them, too.
    pub bytes: usize,
    /// Deleted objects.
    pub gone: usize,
}

impl Default for VersionLimits {
    fn default() -> Self {
        VersionLimits { per_object: 50, bytes: usize::MAX, gone: 100 }
    }
}

/// The versions of one object.
#[derive(Clone, Debug)]
pub struct Versions {
    newest: Body,
    /// Its uid: a successor of the same name begins anew.
    uid: Option<Box<str>>,
    /// When the newest was seen.
    at: Timestamp,
    /// The place of the newest among all that were seen, counted from 1.
    number: u64,
    order: u64,
    /// Older ones, the oldest first.
    older: VecDeque<Older>,
}

#[derive(Clone, Debug)]
struct Older {
    at: Timestamp,
    order: u64,
    /// The difference that leads here from the text of the next newer version.
    difference: Arc<Difference>,
}

/// One version, made whole.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its place among all that were seen, counted from 1.
    pub number: u64,
    /// When it was seen.
    pub at: Timestamp,
    /// The object, masked.
    pub object: Arc<Value>,
}

impl Versions {
    fn new(object: Parsed<'_>, at: Timestamp, order: u64) -> Self {
        let uid = meta::uid(object.value).map(Box::from);
        Versions { newest: object.body.clone(), uid, at, number: 1, order, older: VecDeque::new() }
    }

    /// How many are kept.
    pub fn count(&self) -> usize {
        self.older.len() + 1
    }

    /// The number of the newest.
    pub fn newest(&self) -> u64 {
        self.number
    }

    /// The number of the oldest that is kept.
    pub fn oldest(&self) -> u64 {
        self.number - self.older.len() as u64
    }

    /// The version of a number, and the one before it where that is kept.
    pub fn pair(&self, number: u64) -> Option<(Version, Option<Version>)> {
        let back = usize::try_from(self.number.checked_sub(number)?).ok()?;
        let mut all = self.backwards().skip(back);
        Some((all.next()?, all.next()))
    }

    /// All of them, the newest first; each is made from the one before.
    pub fn backwards(&self) -> impl Iterator<Item = Version> + '_ {
        let newest =
            Version { number: self.number, at: self.at, object: Arc::new(self.newest.value().clone()) };
        let mut number = newest.number;
        let mut text = self.newest.bytes().into_owned();
        let older = self.older.iter().rev().map(move |older| {
            text = older.difference.whole(&text);
            number -= 1;
            let object = serde_json::from_slice(&text).unwrap_or_default();
            Version { number, at: older.at, object: Arc::new(object) }
        });
        std::iter::once(newest).chain(older)
    }
}

/// An object that is gone, as it was last.
#[derive(Debug)]
pub struct Gone {
    /// The object.
    pub seen: Arc<Seen>,
    /// When that was noticed.
    pub at: Timestamp,
    /// Its versions.
    pub versions: Arc<Versions>,
    /// Its conditions.
    pub conditions: Arc<Vec<Line>>,
}

/// The versions of all objects.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    by_object: Shards<Arc<ObjectKey>, Arc<Versions>>,
    gone: Arc<VecDeque<Arc<Gone>>>,
    /// Bytes of older versions of objects that are there, and how many there are.
    bytes: usize,
    older: usize,
    /// Bytes of what is gone.
    gone_bytes: usize,
    /// How many older versions, and how many deleted objects, are no longer kept.
    forgotten: (u64, u64),
    /// Counts all versions, so that the oldest can be told.
    order: u64,
}

impl Archive {
    /// The versions of an object that is there.
    pub fn of(&self, key: &ObjectKey) -> Option<&Arc<Versions>> {
        self.by_object.get(key)
    }

    /// Objects that are gone, the one that went last at the end.
    pub fn gone(&self) -> &VecDeque<Arc<Gone>> {
        &self.gone
    }

    /// The newest object of this key that is gone.
    pub fn gone_of(&self, key: &ObjectKey) -> Option<&Arc<Gone>> {
        self.gone.iter().rev().find(|gone| *gone.seen.key == *key)
    }

    /// Bytes of older versions.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many older versions.
    pub fn older_count(&self) -> usize {
        self.older
    }

    /// How many older versions are no longer kept, though their object is there.
    pub fn forgotten_versions(&self) -> u64 {
        self.forgotten.0
    }

    /// How many deleted objects are no longer kept.
    pub fn forgotten_objects(&self) -> u64 {
        self.forgotten.1
    }

    /// Bytes of deleted objects with their versions.
    pub(super) fn gone_bytes(&self) -> usize {
        self.gone_bytes
    }

    /// Returns true if two archives know the very same objects as gone.
    pub fn same_gone(&self, other: &Archive) -> bool {
        Arc::ptr_eq(&self.gone, &other.gone)
    }

    /// Takes in a version. One that is equal to the newest, as after a list, is none.
    pub(super) fn seen(
        &mut self,
        key: &Arc<ObjectKey>,
        object: Parsed<'_>,
        at: Timestamp,
        limits: &VersionLimits,
    ) {
        self.order += 1;
        let order = self.order;
        let piece = self.by_object.piece_mut(key.as_ref());
        if let Some(known) = piece.get_mut(key.as_ref()).filter(|known| known.newest.same(object.body)) {
            Arc::make_mut(known).newest = object.body.clone();
            return;
        }
        let known =
            piece.get_mut(key.as_ref()).filter(|known| known.uid.as_deref() == meta::uid(object.value));
        let Some(known) = known else {
            let versions = Versions::new(object, at, order);
            let before = piece.insert(Arc::clone(key), Arc::new(versions));
            self.leave(before.as_deref());
            return;
        };
        let difference = Difference::new(&known.newest.bytes(), &object.body.bytes());
        let known = Arc::make_mut(known);
        known.newest = object.body.clone();
        let older = Older { at: known.at, order: known.order, difference: Arc::new(difference) };
        self.bytes += older.size();
        self.older += 1;
        known.older.push_back(older);
        (known.at, known.order, known.number) = (at, order, known.number + 1);
        while known.count() > limits.per_object.max(1) {
            self.bytes -= known.older.pop_front().map_or(0, |older| older.size());
            self.older -= 1;
            self.forgotten.0 += 1;
        }
        if self.bytes > limits.bytes {
            // A quarter at once, so that this is rare.
            self.shrink(limits.bytes / 4 * 3);
        }
    }

    /// The versions of an object are kept no longer.
    fn leave(&mut self, known: Option<&Versions>) {
        let older = known.into_iter().flat_map(|known| known.older.iter().map(Older::size));
        let (count, bytes) = older.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size));
        self.older -= count;
        self.bytes -= bytes;
    }

    /// Forgets an object that is there, but concerns nobody any more.
    pub(super) fn forget(&mut self, key: &ObjectKey) {
        let known = self.by_object.piece_mut(key).remove(key);
        self.leave(known.as_deref());
    }

    /// Notes that an object is gone.
    pub(super) fn gone_now(
        &mut self,
        seen: Arc<Seen>,
        conditions: Arc<Vec<Line>>,
        at: Timestamp,
        limits: &VersionLimits,
    ) {
        self.order += 1;
        let known = self.by_object.piece_mut(seen.key.as_ref()).remove(seen.key.as_ref());
        self.leave(known.as_deref());
        // One that was never read whole has its metadata to show.
        let versions = known.unwrap_or_else(|| {
            Arc::new(Versions::new(Parsed { body: &seen.object, value: &seen.object.read() }, at, self.order))
        });
        let gone = Arc::new(Gone { seen, at, versions, conditions });
        self.gone_bytes += gone.size();
        Arc::make_mut(&mut self.gone).push_back(gone);
        while self.gone.len() > limits.gone {
            self.forget_oldest_gone();
        }
    }

    /// Forgets the objects that went first, until no more than this many bytes of such are left.
    pub(super) fn shed_gone(&mut self, goal: usize) {
        while self.gone_bytes > goal && !self.gone.is_empty() {
            self.forget_oldest_gone();
        }
    }

    fn forget_oldest_gone(&mut self) {
        if let Some(oldest) = Arc::make_mut(&mut self.gone).pop_front() {
            self.gone_bytes -= oldest.size();
            self.forgotten.1 += 1;
        }
    }

    /// Drops the oldest versions of all until no more than this many bytes are left.
    pub(super) fn shrink(&mut self, goal: usize) {
        let mut all: Vec<(u64, usize)> = Vec::new();
        for (_, versions) in self.by_object.iter() {
            all.extend(versions.older.iter().map(|older| (older.order, older.size())));
        }
        all.sort_unstable();
        let mut over = self.bytes.saturating_sub(goal);
        let kept_from = all.iter().find(|(_, size)| {
            let drop = over > 0;
            over = over.saturating_sub(*size);
            !drop
        });
        let kept_from = kept_from.map_or(u64::MAX, |(order, _)| *order);
        for versions in self.by_object.values_mut() {
            if versions.older.front().is_some_and(|older| older.order < kept_from) {
                let versions = Arc::make_mut(versions);
                while versions.older.front().is_some_and(|older| older.order < kept_from) {
                    self.bytes -= versions.older.pop_front().map_or(0, |older| older.size());
                    self.older -= 1;
                    self.forgotten.0 += 1;
                }
            }
        }
    }
}

impl Gone {
    fn size(&self) -> usize {
        let older: usize = self.versions.older.iter().map(Older::size).sum();
        size_of::<Gone>() + size_of::<Seen>() + self.seen.object.held() + older
    }
}

impl Older {
    fn size(&self) -> usize {
        self.difference.held() + OVERHEAD
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::meta::ObjectRef;
    use serde_json::json;

    fn key(name: &str) -> Arc<ObjectKey> {
        Arc::new(ObjectKey { kind: "A".to_owned(), name: name.to_owned(), ..ObjectKey::default() })
    }

    fn object(uid: &str, size: u64) -> Arc<Value> {
        Arc::new(json!({"metadata": {"uid": uid}, "spec": {"size": size, "text": "x".repeat(100)}}))
    }

    fn see(
        archive: &mut Archive,
        key: &Arc<ObjectKey>,
        object: &Value,
        at: Timestamp,
        limits: &VersionLimits,
    ) {
        archive.seen(key, Parsed { body: &Body::new(object), value: object }, at, limits);
    }

    fn second(n: i64) -> Timestamp {
        Timestamp::from_second(n).unwrap()
    }

    fn sizes(versions: &Versions) -> Vec<(u64, u64)> {
        versions.backwards().map(|v| (v.number, v.object["spec"]["size"].as_u64().unwrap())).collect()
    }

    #[test]
    fn versions_come_back_as_they_were() {
        let (mut archive, limits) =
            (Archive::default(), VersionLimits { per_object: 4, ..VersionLimits::default() });
        for (i, size) in [1, 2, 2, 3, 4, 5].into_iter().enumerate() {
            see(&mut archive, &key("a"), &object("u", size), second(i as i64), &limits);
        }
        let versions = Arc::clone(archive.of(&key("a")).unwrap());
        assert_eq!(
            sizes(&versions),
            [(5, 5), (4, 4), (3, 3), (2, 2)],
            "the equal one is none, the oldest is dropped"
        );
        assert_eq!((versions.oldest(), versions.newest(), versions.count()), (2, 5, 4));
        let (version, before) = versions.pair(3).unwrap();
        assert_eq!((version.at, before.unwrap().at), (second(3), second(1)));
        assert!(versions.pair(2).unwrap().1.is_none(), "what is before it is not kept");
        assert!(versions.pair(1).is_none() && versions.pair(6).is_none());
        // A successor of the same name begins anew.
        see(&mut archive, &key("a"), &object("v", 9), second(9), &limits);
        assert_eq!(sizes(archive.of(&key("a")).unwrap()), [(1, 9)]);
        assert_eq!(archive.bytes(), 0);
    }

    #[test]
    fn all_together_stay_within_the_bytes() {
        let limits = VersionLimits { per_object: 1_000, bytes: 20_000, gone: 2 };
        let mut archive = Archive::default();
        for i in 0..2_000 {
            see(&mut archive, &key(&format!("n{}", i % 7)), &object("u", i), second(i as i64), &limits);
            assert!(archive.bytes() <= limits.bytes);
        }
        let counted: usize =
            archive.by_object.iter().flat_map(|(_, v)| v.older.iter().map(Older::size)).sum();
        assert_eq!(archive.bytes(), counted);
        assert!(counted > limits.bytes / 2, "{counted}");
        let newest = archive.of(&key("n4")).unwrap();
        let sizes = sizes(newest);
        assert!(sizes.windows(2).all(|pair| pair[0].1 == pair[1].1 + 7), "{sizes:?}");
    }

    #[test]
    fn what_is_gone_stays_for_a_while() {
        let limits = VersionLimits { gone: 2, ..VersionLimits::default() };
        let mut archive = Archive::default();
        for name in ["a", "b", "c"] {
            see(&mut archive, &key(name), &object(name, 1), second(1), &limits);
            see(&mut archive, &key(name), &object(name, 2), second(2), &limits);
            let (value, object_ref) = (object(name, 2), ObjectRef::default());
            let seen =
                Seen::new(key(name), object_ref, Parsed { body: &Body::new(&value), value: &value }, false);
            archive.gone_now(Arc::new(seen), Arc::default(), second(3), &limits);
        }
        assert!(archive.of(&key("c")).is_none() && archive.gone_of(&key("a")).is_none());
        let gone = archive.gone_of(&key("c")).unwrap();
        assert_eq!((gone.at, sizes(&gone.versions)), (second(3), vec![(2, 2), (1, 1)]));
        assert_eq!(archive.bytes(), 0);
    }
}
