//! Few elements in order, each with something. A tree of them would have nodes for eleven; most places of an
//! object have one or two, and each write makes sets of them to throw them away.

use super::Element;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sorted<T>(Vec<(Element, T)>);

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Sorted(Vec::new())
    }
}

impl<T> Sorted<T> {
    /// Where an element is, or where it would be.
    fn find(&self, element: &Element) -> Result<usize, usize> {
        match self.0.last() {
            // They mostly come in order.
            None => Err(0),
            Some((last, _)) if last < element => Err(self.0.len()),
            Some(_) => self.0.binary_search_by(|(known, _)| known.cmp(element)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, element: &Element) -> bool {
        self.find(element).is_ok()
    }

    pub(super) fn get(&self, element: &Element) -> Option<&T> {
        self.find(element).ok().map(|at| &self.0[at].1)
    }

    pub(super) fn get_mut(&mut self, element: &Element) -> Option<&mut T> {
        self.find(element).ok().map(|at| &mut self.0[at].1)
    }

    /// Adds an element, or replaces what it had.
    pub(super) fn insert(&mut self, element: Element, with: T) {
        match self.find(&element) {
            Ok(at) => self.0[at].1 = with,
            Err(at) => self.0.insert(at, (element, with)),
        }
    }

    /// Adds what another one has; `join` where both have something.
    pub(super) fn extend(&mut self, other: Sorted<T>, mut join: impl FnMut(&mut T, T)) {
        let mut new = Vec::new();
        for (element, theirs) in other.0 {
            match self.find(&element) {
                Ok(at) => join(&mut self.0[at].1, theirs),
                Err(_) => new.push((element, theirs)),
            }
        }
        let in_order = match (self.0.last(), new.first()) {
            (Some((last, _)), Some((first, _))) => last < first,
            (None, _) | (_, None) => true,
        };
        self.0.extend(new);
        if !in_order {
            self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
    }

    /// Takes away the elements of another one. One pass: there may be thousands of both.
    pub(super) fn remove_all<U>(&mut self, other: &Sorted<U>) {
        if self.0.is_empty() || other.0.is_empty() {
            return;
        }
        let mut theirs = other.0.iter().peekable();
        self.0.retain(|(element, _)| {
            while theirs.next_if(|(their, _)| their < element).is_some() {}
            theirs.peek().is_none_or(|(their, _)| their != element)
        });
    }

    pub(super) fn retain(&mut self, mut keep: impl FnMut(&Element, &mut T) -> bool) {
        self.0.retain_mut(|(element, with)| keep(element, with));
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Element, &T)> {
        self.0.iter().map(|(element, with)| (element, with))
    }

    pub(super) fn elements(&self) -> impl Iterator<Item = &Element> {
        self.0.iter().map(|(element, _)| element)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, with)| with)
    }
}

impl<T: Default> Sorted<T> {
    /// The value of an element, made where there is none.
    pub(super) fn at(&mut self, element: &Element) -> &mut T {
        let at = self.find(element).unwrap_or_else(|at| {
            self.0.insert(at, (element.clone(), T::default()));
            at
        });
        &mut self.0[at].1
    }
}

/// Collects elements that come in order.
impl<T> FromIterator<(Element, T)> for Sorted<T> {
    fn from_iter<I: IntoIterator<Item = (Element, T)>>(all: I) -> Self {
        let mut sorted = Sorted::default();
        all.into_iter().for_each(|(element, with)| sorted.insert(element, with));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &str) -> Sorted<usize> {
        let all = names.chars().map(|name| (Element::Field(name.to_string()), 1));
        all.collect()
    }

    fn shown(sorted: &Sorted<usize>) -> String {
        let part = |(element, with): (&Element, &usize)| format!("{element}{with}").replace('.', "");
        sorted.iter().map(part).collect()
    }

    #[test]
    fn elements_are_in_order_however_they_came() {
        let mut sorted = of("cab");
        assert_eq!(shown(&sorted), "a1b1c1");
        *sorted.at(&Element::Field("b".to_owned())) += 1;
        sorted.extend(of("fbd"), |ours, theirs| *ours += theirs);
        assert_eq!(shown(&sorted), "a1b3c1d1f1");
        sorted.extend(of("gh"), |_, _| unreachable!());
        sorted.remove_all(&of("acehx"));
        assert_eq!(shown(&sorted), "b3d1f1g1");
        sorted.remove_all(&of(""));
        assert!(sorted.contains(&Element::Field("g".to_owned())) && sorted.get(&Element::Index(1)).is_none());
    }
}
