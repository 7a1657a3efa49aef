//! The delete dialog: what goes along, who has to let go first, how long containers get. The focus starts on Cancel.
//! For an object that is to go already and does not, it offers to remove what it waits for, with the same care.

use super::answer::Answer;
use crate::event::{Propagation, Request};
use crate::state::{Seen, State, tree};
use crate::tui::keys::Key;
use crossterm::event::KeyCode;
use opdev_object::meta::{self, ObjectRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The delete dialog.
#[derive(Clone, Debug)]
pub struct Delete {
    /// Which objects, with their uids.
    pub objects: Vec<ObjectRef>,
    /// What belongs to them: kind and how many.
    pub owned: Vec<(String, usize)>,
    /// Who has to let go of them first.
    pub finalizers: Vec<String>,
    /// What happens to what they own.
    pub propagation: Propagation,
    /// Seconds for containers to end, as typed; empty leaves it to the object.
    pub grace: String,
    /// Whether more is owned than was counted.
    pub more: bool,
    /// Since when it is to go: a single object that hangs.
    pub hangs: Option<String>,
    /// Why nobody answers the finalizers for now.
    pub paused: bool,
    /// Whether the focus is on Delete; it starts on Cancel.
    pub on_delete: bool,
}

impl Delete {
    /// For some objects, with what will go along.
    pub(in crate::tui) fn of(all: &[Arc<Seen>], state: &State) -> Self {
        let mut owned: BTreeMap<String, usize> = BTreeMap::new();
        let mut finalizers: Vec<String> = Vec::new();
        let mut more = false;
        for seen in all {
            let nodes = tree::owned(state, &seen.key);
            more |= nodes.len() >= tree::MOST;
            for node in nodes {
                if !all.iter().any(|marked| marked.key == node.seen.key) {
                    *owned.entry(node.seen.key.kind.clone()).or_default() += 1 + node.older;
                }
            }
            for name in meta::finalizers(&seen.object) {
                if !finalizers.iter().any(|known| known == name) {
                    finalizers.push(name.to_owned());
                }
            }
        }
        let hangs = match all {
            [one] => meta::deletion_timestamp(&one.object).map(str::to_owned),
            _ => None,
        };
        Delete {
            objects: all.iter().map(|seen| seen.object_ref.clone()).collect(),
            owned: owned.into_iter().collect(),
            more,
            paused: all.iter().any(|seen| state.paused(&seen.key).is_some()),
            hangs: hangs.filter(|_| !finalizers.is_empty()),
            finalizers,
            propagation: Propagation::Background,
            grace: String::new(),
            on_delete: false,
        }
    }

    /// What is asked for once the dialog is confirmed.
    fn request(&self) -> Request {
        let grace = self.grace.parse().ok();
        let propagation = self.propagation;
        let one = |object: &ObjectRef| match self.hangs {
            Some(_) => {
                Request::DropFinalizers { object: object.clone(), finalizers: self.finalizers.clone() }
            }
            None => Request::Delete { object: object.clone(), propagation, grace },
        };
        match self.objects.as_slice() {
            [object] => one(object),
            objects => Request::Each { requests: objects.iter().map(one).collect() },
        }
    }

    pub(super) fn key(&mut self, key: Key) -> Answer {
        use Propagation::{Background, Foreground, Orphan};
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => return Answer::Close,
            (KeyCode::Enter, _) if self.on_delete => return Answer::Ask(self.request()),
            (KeyCode::Enter, _) => return Answer::Close,
            (KeyCode::Left | KeyCode::Right | KeyCode::Tab | KeyCode::BackTab, _) | (_, Some('h' | 'l')) => {
                self.on_delete = !self.on_delete;
            }
            (KeyCode::Down, _) | (_, Some('j')) => {
                self.propagation = match self.propagation {
                    Background => Foreground,
                    Foreground | Orphan => Orphan,
                };
            }
            (KeyCode::Up, _) | (_, Some('k')) => {
                self.propagation = match self.propagation {
                    Orphan => Foreground,
                    Foreground | Background => Background,
                };
            }
            (KeyCode::Backspace, _) => {
                self.grace.pop();
            }
            (_, Some(c)) if c.is_ascii_digit() && self.grace.len() < 5 => self.grace.push(c),
            _ => {}
        }
        Answer::Stay
    }
}
