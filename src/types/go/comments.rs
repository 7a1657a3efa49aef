//! Comment groups as Go's parser forms them, and which of them are a node's documentation, its markers, or
//! the package's. Knows nothing of what a marker means.

use std::sync::Arc;
use tree_sitter::Node;

/// One comment: bytes and lines (from 0) it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) first_line: usize,
    pub(crate) last_line: usize,
}

/// Comments without a blank line or a token between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) comments: Vec<Comment>,
    /// It begins behind a token on the same line, so that it documents nothing below it.
    pub(crate) trailing: bool,
}

impl Group {
    pub(crate) fn start(&self) -> usize {
        self.comments.first().map_or(0, |comment| comment.start)
    }

    fn last_line(&self) -> usize {
        self.comments.last().map_or(0, |comment| comment.last_line)
    }
}

/// A marker as it stands in the source: `+` and what follows, without space at the ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawMarker {
    pub(crate) text: Arc<str>,
    /// Byte of the `+`.
    pub(crate) at: usize,
    /// It stands in the node's own documentation.
    pub(crate) in_doc: bool,
}

/// Collects comments in the order of the source.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<Group>);

impl Groups {
    pub(crate) fn push(&mut self, node: Node<'_>, text: &str) {
        let comment = Comment {
            start: node.start_byte(),
            end: node.end_byte(),
            first_line: node.start_position().row,
            last_line: node.end_position().row,
        };
        if let Some(group) = self.0.last_mut()
            && let Some(last) = group.comments.last()
            && comment.first_line <= last.last_line + usize::from(!group.trailing)
            && text.get(last.end..comment.start).is_some_and(|between| between.trim().is_empty())
        {
            group.comments.push(comment);
            return;
        }
        let line_start =
            text.get(..comment.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        let trailing = text.get(line_start..comment.start).is_some_and(|before| !before.trim().is_empty());
        self.0.push(Group { comments: vec![comment], trailing });
    }

    pub(crate) fn list(&self) -> &[Group] {
        &self.0
    }
}

/// The comments above one node.
#[derive(Debug, Default)]
pub(crate) struct Above<'a> {
    /// Groups further up.
    pub(crate) free: &'a [Group],
    /// The closest group that is not the documentation.
    pub(crate) closest: Option<&'a Group>,
    /// The documentation.
    pub(crate) doc: Option<&'a Group>,
}

impl Above<'_> {
    /// Where the closest of them begins that can say something of the node.
    pub(crate) fn start(&self) -> Option<usize> {
        self.closest.or(self.doc).map(Group::start)
    }
}

/// Walks down a list of groups, node by node.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    groups: &'a [Group],
    next: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(groups: &'a [Group]) -> Cursor<'a> {
        Cursor { groups, next: 0 }
    }

    /// The comments between the node before and this one.
    pub(crate) fn above(&mut self, start: usize, line: usize) -> Above<'a> {
        let first = self.next;
        while self.groups.get(self.next).is_some_and(|group| group.start() < start) {
            self.next += 1;
        }
        let groups = &self.groups[first..self.next];
        let (groups, doc) = match groups.split_last() {
            Some((last, rest)) if !last.trailing && last.last_line() + 1 == line => (rest, Some(last)),
            _ => (groups, None),
        };
        match groups.split_last() {
            Some((closest, free)) => Above { free, closest: Some(closest), doc },
            None => Above { free: &[], closest: None, doc },
        }
    }

    /// Passes over what is inside the node and what follows it on its last line.
    pub(crate) fn leave(&mut self, end: usize, line: usize) {
        while self.groups.get(self.next).is_some_and(|group| {
            group.start() < end
                || (group.trailing
                    && group.comments.first().is_some_and(|comment| comment.first_line == line))
        }) {
            self.next += 1;
        }
    }

    /// The comments that are left at the end.
    pub(crate) fn rest(&self) -> &'a [Group] {
        &self.groups[self.next..]
    }
}

/// Returns true if a comment's text (with its slashes) is a marker.
pub(crate) fn is_marker(comment: &str) -> bool {
    comment.strip_prefix("//").is_some_and(|rest| rest.trim_start().starts_with('+'))
}

/// The markers of some groups.
pub(crate) fn markers<'a>(
    text: &str,
    groups: impl IntoIterator<Item = &'a Group>,
    in_doc: bool,
    out: &mut Vec<RawMarker>,
) {
    for comment in groups.into_iter().flat_map(|group| &group.comments) {
        let Some(line) = text.get(comment.start..comment.end) else { continue };
        if is_marker(line) {
            let rest = &line[2..];
            let at = comment.start + 2 + (rest.len() - rest.trim_start().len());
            out.push(RawMarker { text: rest.trim().into(), at, in_doc });
        }
    }
}
