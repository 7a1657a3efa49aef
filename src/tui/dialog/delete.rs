//! The delete dialog: what goes along, who has to let go first, how long containers get. `y` deletes; enter
//! alone does not. For an object that is to go already and does not, it offers to remove what it waits for,
//! with the same care.

use super::answer::Answer;
use crate::draw::boxes::{Choice, boxed, choices, named};
use crate::layer::{Canvas, Layer};
use crate::view::ViewState;
use crossterm::event::KeyCode;
use opdev_event::{ObjectTask, Propagation, Task};
use opdev_object::meta::{self, ObjectRef};
use opdev_panes::keys::chord::Key;
use opdev_panes::text::{Row, wrap};
use opdev_panes::theme::Role;
use opdev_state::{Seen, State, tree};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The delete dialog.
#[derive(Clone, Debug)]
pub(crate) struct Delete {
    /// The objects, with their uids.
    pub objects: Vec<ObjectRef>,
    /// Objects that belong to them: kind and how many.
    pub owned: Vec<(String, usize)>,
    /// The finalizers that have to go first.
    pub finalizers: Vec<String>,
    /// The outcome for what they own.
    pub propagation: Propagation,
    /// Seconds for containers to end, as typed; empty leaves it to the object.
    pub grace: String,
    /// True if more is owned than was counted.
    pub more: bool,
    /// Since when it is to go: a single object that hangs.
    pub hangs: Option<String>,
    /// Why nobody answers the finalizers for now.
    pub paused: bool,
}

impl Delete {
    /// For some objects, with what will go along.
    pub(crate) fn of(all: &[Arc<Seen>], state: &State) -> Self {
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
        }
    }

    /// The request once the dialog is confirmed.
    fn task(&self) -> Task {
        let grace = self.grace.parse().ok();
        let propagation = self.propagation;
        let one = |object: &ObjectRef| {
            Task::from(match self.hangs {
                Some(_) => {
                    ObjectTask::DropFinalizers { object: object.clone(), finalizers: self.finalizers.clone() }
                }
                None => ObjectTask::Delete { object: object.clone(), propagation, grace },
            })
        };
        match self.objects.as_slice() {
            [object] => one(object),
            objects => Task::Each { tasks: objects.iter().map(one).collect() },
        }
    }
}

impl Layer for Delete {
    fn key(&mut self, key: Key, _view: &mut ViewState, _state: &State) -> Answer {
        use opdev_event::Propagation::{Background, Foreground, Orphan};
        match (key.code, key.typed()) {
            (KeyCode::Esc, _) | (_, Some('q' | 'n')) => return Answer::Close,
            (_, Some('y')) => return Answer::Ask(self.task().into()),
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

    fn draw(&self, _state: &State, view: &mut ViewState, canvas: &mut Canvas<'_>) {
        let cells = (canvas.body.width as usize).saturating_sub(8).min(70);
        let text = |text: &str, role: Role| {
            wrap(text, cells).into_iter().map(|line| Row::new(role, format!(" {line} "))).collect::<Vec<_>>()
        };
        let roomy = canvas.body.height > 12;
        let mut rows = if roomy { vec![Row::default()] } else { Vec::new() };
        rows.extend(named(&self.objects, if roomy { 8 } else { 1 }));
        let title = match self.objects.as_slice() {
            [one] if self.hangs.is_some() => format!("{one} does not go"),
            [one] => format!("Delete {one}?"),
            many => format!("Delete {} objects?", many.len()),
        };
        if let Some(since) = &self.hangs {
            rows.extend(text(&format!("It is to go since {since}, and waits for:"), Role::Text));
            for name in &self.finalizers {
                rows.extend(text(&format!("  {name}: {}", meaning(name)), Role::Busy));
            }
            if self.paused {
                rows.extend(text("It is paused: resume it, and its reconciler answers.", Role::Busy));
            }
            let consequence = "Removing them deletes it at once. What they were to clean up stays, and nobody \
                               will clean it up: releases, objects elsewhere, things outside the cluster.";
            rows.extend(text(consequence, Role::Bad));
            rows.extend(answers("Remove finalizers", cells, roomy));
            return boxed(&title, &rows, None, view, canvas);
        }
        let owned =
            self.owned.iter().map(|(kind, n)| if *n > 1 { format!("{n} {kind}s") } else { kind.clone() });
        let owned = owned.collect::<Vec<_>>().join(", ");
        let (goes, how) = match self.propagation {
            Propagation::Background => ("With it goes", "the object goes first, the others follow"),
            Propagation::Foreground => ("With it goes", "the others go first, the object waits for them"),
            Propagation::Orphan => (
                "What it owns stays",
                "what it owns itself loses its owner reference; what is below keeps its own",
            ),
        };
        if owned.is_empty() {
            rows.extend(text("It owns nothing.", Role::Text));
        } else {
            let more = if self.more { ", and more that were not counted" } else { "" };
            rows.extend(text(&format!("{goes}: {owned}{more}."), Role::Text));
        }
        if !self.finalizers.is_empty() {
            let waits = format!("It stays until these let go: {}.", self.finalizers.join(", "));
            rows.extend(text(&waits, Role::Busy));
            if self.paused {
                rows.extend(text(
                    "It is paused, so its reconciler does not answer them for now.",
                    Role::Busy,
                ));
            }
        }
        rows.extend(gap(roomy));
        rows.push(propagation(self.propagation));
        if roomy {
            rows.extend(text(how, Role::Dim));
        }
        let grace = match self.grace.as_str() {
            "" => Row::new(Role::Key, " 0-9 ").and(Role::Dim, "grace period as the object says "),
            "0" => Row::new(Role::Key, " 0-9 ")
                .and(Role::Text, "grace period ")
                .and(Role::Bad, "0 s: containers are killed at once "),
            seconds => Row::new(Role::Key, " 0-9 ").and(Role::Text, format!("grace period {seconds}▏s ")),
        };
        rows.push(grace);
        rows.extend(answers("Delete", cells, roomy));
        boxed(&title, &rows, None, view, canvas);
    }
}

fn answers(word: &str, cells: usize, roomy: bool) -> Vec<Row> {
    let yes = Choice { key: "y", word, means: "", role: Role::Bad };
    let no = Choice { key: "n", word: "Keep it", means: "", role: Role::Text };
    choices(&[yes, no], cells, roomy)
}

fn gap(roomy: bool) -> Option<Row> {
    roomy.then(Row::default)
}

fn propagation(of: Propagation) -> Row {
    let mut choice = Row::new(Role::Key, " ↑↓ ");
    for (which, name) in [
        (Propagation::Background, "Background"),
        (Propagation::Foreground, "Foreground"),
        (Propagation::Orphan, "Orphan"),
    ] {
        let chosen = which == of;
        let name = if chosen { format!("(•) {name}  ") } else { format!("( ) {name}  ") };
        choice = choice.and(if chosen { Role::Focus } else { Role::Dim }, name);
    }
    choice
}

/// The purpose of a finalizer, as far as its name tells.
fn meaning(finalizer: &str) -> &'static str {
    match finalizer {
        "helm.sdk.operatorframework.io/uninstall-release" | "uninstall-helm-release" => {
            "the operator uninstalls the release first"
        }
        "opdev.dev/finalize" => "the reconciler cleans up first",
        "foregroundDeletion" => "what it owns goes first",
        "orphan" => "what it owns loses its owner first",
        "kubernetes.io/pvc-protection" | "kubernetes.io/pv-protection" => "something still uses the storage",
        "kubernetes" => "the namespace is emptied first",
        _ => "whoever put it there has to remove it",
    }
}
