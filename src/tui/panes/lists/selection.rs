//! A selection in a list, and the window of rows around it.

/// A selection that follows its thing, and the window around it.
#[derive(Clone, Debug)]
pub struct Selection<K> {
    pub key: Option<K>,
    pub index: usize,
    pub(crate) offset: usize,
}

impl<K> Default for Selection<K> {
    fn default() -> Self {
        Selection { key: None, index: 0, offset: 0 }
    }
}

impl<K: PartialEq + Clone> Selection<K> {
    /// Finds the selected thing among the present ones; where it is gone, its place keeps the selection.
    pub fn settle(&mut self, count: usize, key_at: impl Fn(usize) -> K) {
        if count == 0 {
            (self.index, self.offset) = (0, 0);
            self.key = None;
            return;
        }
        let held = self.key.as_ref().is_some_and(|key| self.index < count && key_at(self.index) == *key);
        if !held {
            let found = self.key.as_ref().and_then(|key| (0..count).find(|i| key_at(*i) == *key));
            self.index = found.unwrap_or(self.index).min(count - 1);
            self.key = Some(key_at(self.index));
        }
    }

    /// Moves to a row.
    pub(crate) fn go(&mut self, to: usize, count: usize, key_at: impl Fn(usize) -> K) {
        if count > 0 {
            self.index = to.min(count - 1);
            self.key = Some(key_at(self.index));
        }
    }

    /// Scrolls so that the selection is within `height` rows.
    pub fn window(&mut self, count: usize, height: usize) -> std::ops::Range<usize> {
        let height = height.max(1);
        self.offset = self.offset.min(self.index).max((self.index + 1).saturating_sub(height));
        self.offset = self.offset.min(count.saturating_sub(height));
        self.offset..count.min(self.offset + height)
    }
}
