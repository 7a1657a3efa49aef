//! A map in pieces: a clone shares all of them, a change copies one. Keeps snapshots cheap at ten thousand
//! objects.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

const PIECES: usize = 128;

/// The map.
#[derive(Clone, Debug)]
pub(super) struct Shards<K, V> {
    pieces: Arc<Vec<Arc<BTreeMap<K, V>>>>,
}

impl<K, V> Default for Shards<K, V> {
    fn default() -> Self {
        Shards { pieces: Arc::new((0..PIECES).map(|_| Arc::new(BTreeMap::new())).collect()) }
    }
}

fn piece<Q: Hash + ?Sized>(key: &Q) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    (hasher.finish() % PIECES as u64) as usize
}

impl<K: Ord + Hash + Clone, V: Clone> Shards<K, V> {
    /// The value of a key.
    pub(super) fn get<Q>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        self.pieces[piece(key)].get(key)
    }

    /// The piece that holds a key, to change.
    pub(super) fn piece_mut<Q>(&mut self, key: &Q) -> &mut BTreeMap<K, V>
    where
        K: Borrow<Q>,
        Q: Ord + Hash + ?Sized,
    {
        let pieces = Arc::make_mut(&mut self.pieces);
        Arc::make_mut(&mut pieces[piece(key)])
    }

    /// All pairs, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// All values, to change; copies every piece that is shared.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        Arc::make_mut(&mut self.pieces).iter_mut().flat_map(|piece| Arc::make_mut(piece).values_mut())
    }

    /// How many pairs.
    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Returns true if two maps are the very same, without looking inside.
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pieces, &other.pieces)
    }
}
