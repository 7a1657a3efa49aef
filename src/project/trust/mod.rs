//! The user decides what a cloned project may make opdev do, once for each content. `wanted` is the one place
//! that collects what a project's files want; `Trust` knows what was allowed and asks about the rest;
//! `store` remembers it outside the project.
//!
//! To guard something new: add a variant to `event::Permission`, return it from `wanted::wanted` where the
//! project's files ask for it, and do it only where `Trust::grants` says so. `Trust::decided` waits for the
//! answer.

mod reach;
mod store;
mod wanted;

pub use store::{Store, TrustedProject};
pub use wanted::wanted;
pub use wanted::{applied_on_start, wanted_of};

use super::Project;
use anyhow::{Result, bail};
use jiff::Timestamp;
use opdev_event::shell;
use opdev_event::sink::EventSink;
use opdev_event::words::visible_line;
use opdev_event::{Event, Permission, TrustAnswer, TrustAnswered, TrustAsked};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;

/// The permissions that the user gives one project. Clones share them.
#[derive(Clone, Debug)]
pub struct Trust {
    root: Arc<PathBuf>,
    store: Store,
    decided: watch::Sender<Decided>,
    answers: watch::Sender<u64>,
}

/// The decisions in this process, and the open question.
#[derive(Clone, Debug, Default)]
struct Decided {
    granted: BTreeSet<Permission>,
    refused: BTreeSet<Permission>,
    asked: Option<TrustAsked>,
    /// Permissions that objects of the control plane want beside the files.
    wishes: BTreeSet<Permission>,
    /// Messages that were shown, and those that are still to be shown.
    told: BTreeSet<String>,
    to_tell: Vec<String>,
}

impl Trust {
    /// The remembered permissions of the project at `root`.
    pub fn of(root: &Path, store: Store) -> Trust {
        let decided = watch::Sender::new(Decided::default());
        Trust { root: Arc::new(root.to_owned()), store, decided, answers: watch::Sender::new(0) }
    }

    /// Returns true if a permission was given, for now or for good. Something that was never asked about was
    /// not given.
    pub fn grants(&self, permission: &Permission) -> bool {
        self.decided.borrow().granted.contains(permission)
    }

    /// All that were given.
    pub(crate) fn all_granted(&self) -> BTreeSet<Permission> {
        self.decided.borrow().granted.clone()
    }

    /// Waits until the user has answered, and says whether the permission was given. It must be one that
    /// `wanted` returns; where no reload asks about it, this waits for ever.
    pub async fn decided(&self, permission: &Permission) -> bool {
        let mut changes = self.decided.subscribe();
        let is =
            |decided: &Decided| decided.granted.contains(permission) || decided.refused.contains(permission);
        // The sender lives as long as `self`.
        let _ = changes.wait_for(is).await;
        self.grants(permission)
    }

    /// Waits until the permission is given, however often it is refused before.
    pub async fn granted(&self, permission: &Permission) {
        let mut changes = self.decided.subscribe();
        // The sender lives as long as `self`.
        let _ = changes.wait_for(|decided| decided.granted.contains(permission)).await;
    }

    /// Counts the answers; it changes with each of them.
    pub fn answers(&self) -> watch::Receiver<u64> {
        self.answers.subscribe()
    }

    /// Takes what is remembered into account; what is left was neither remembered nor answered.
    ///
    /// # Errors
    /// Where what is remembered cannot be read.
    pub fn unanswered(&self, wanted: &[Permission]) -> Result<Vec<Permission>> {
        let open: Vec<Permission> = {
            let decided = self.decided.borrow();
            let open = |one: &&Permission| !decided.granted.contains(one) && !decided.refused.contains(one);
            wanted.iter().filter(open).cloned().collect()
        };
        if open.is_empty() {
            return Ok(open);
        }
        let (known, open): (Vec<_>, Vec<_>) = {
            let remembered = self.store.hashes(&self.root)?;
            open.into_iter().partition(|one| remembered.contains(&store::hash(&self.root, one)))
        };
        if !known.is_empty() {
            self.decided.send_modify(|decided| decided.granted.extend(known));
        }
        Ok(open)
    }

    /// Returns true if all that the project's files want is answered. Where it is not, or where objects of
    /// the control plane want more, the user is asked, once for each set of wishes.
    pub async fn ask(&self, wanted: &[Permission], events: &EventSink) -> Result<bool> {
        for notice in self.news() {
            events.emit(Event::Noticed(notice)).await;
        }
        let of_files = wanted;
        let wanted: BTreeSet<Permission> = {
            let decided = self.decided.borrow();
            wanted.iter().chain(&decided.wishes).cloned().collect()
        };
        let wanted: Vec<Permission> = wanted.into_iter().collect();
        let unanswered = self.unanswered(&wanted)?;
        if unanswered.is_empty() {
            self.withdraw(events).await;
            return Ok(true);
        }
        // A refused permission is neither shown as allowed nor remembered with the rest.
        let wanted = {
            let decided = self.decided.borrow();
            wanted.into_iter().filter(|one| !decided.refused.contains(one)).collect()
        };
        let is_answered = !unanswered.iter().any(|one| of_files.contains(one));
        let root = self.root.display().to_string();
        let asked = TrustAsked { at: Timestamp::now(), root, wanted, unanswered };
        let again =
            self.decided.borrow().asked.as_ref().is_some_and(|before| {
                (&before.wanted, &before.unanswered) == (&asked.wanted, &asked.unanswered)
            });
        if !again {
            // Nobody waits for a question.
            self.decided.send_if_modified(|decided| {
                decided.asked = Some(asked.clone());
                false
            });
            events.emit(Event::TrustAsked(Arc::new(asked))).await;
        }
        Ok(is_answered)
    }

    /// The files do not want it any more, or it was trusted elsewhere.
    async fn withdraw(&self, events: &EventSink) {
        let mut asked = None;
        self.decided.send_if_modified(|decided| {
            asked = decided.asked.take();
            false
        });
        if asked.is_some() {
            let answered =
                TrustAnswered { at: Timestamp::now(), answer: TrustAnswer::Trust, permissions: Vec::new() };
            events.emit(Event::TrustAnswered(Arc::new(answered))).await;
        }
    }

    /// The user's answer to what is asked right now, in words.
    ///
    /// # Errors
    /// Where nothing is asked, something else is asked by now, or the answer cannot be remembered: then it
    /// counts until opdev ends.
    pub async fn answer(
        &self,
        answer: TrustAnswer,
        about: &[Permission],
        events: &EventSink,
    ) -> Result<String> {
        let asked = self.decided.borrow().asked.clone();
        let Some(asked) = asked else { bail!("the project wants nothing that waits for an answer") };
        if asked.unanswered != about {
            bail!("the project wants something else by now; look at the list again");
        }
        let remembered = match answer {
            TrustAnswer::Trust => self.store.trust(&self.root, &asked.wanted),
            TrustAnswer::Once | TrustAnswer::Refuse => Ok(()),
        };
        self.decide(answer, &asked.unanswered);
        let answered = TrustAnswered { at: Timestamp::now(), answer, permissions: asked.unanswered };
        events.emit(Event::TrustAnswered(Arc::new(answered))).await;
        remembered?;
        Ok(match answer {
            TrustAnswer::Once => "allowed until opdev ends".to_owned(),
            TrustAnswer::Trust => {
                format!(
                    "trusted; `opdev trust --revoke --project {}` takes it back",
                    shell::word(&asked.root)
                )
            }
            TrustAnswer::Refuse => "refused: opdev does none of it".to_owned(),
        })
    }

    /// Decides without a question.
    pub fn decide(&self, answer: TrustAnswer, permissions: &[Permission]) {
        self.decided.send_modify(|decided| {
            for permission in permissions {
                let (into, out) = match answer {
                    TrustAnswer::Once | TrustAnswer::Trust => (&mut decided.granted, &mut decided.refused),
                    TrustAnswer::Refuse => (&mut decided.refused, &mut decided.granted),
                };
                out.remove(permission);
                into.insert(permission.clone());
            }
            decided.asked = None;
        });
        self.answers.send_modify(|count| *count += 1);
    }

    /// Forgets refusals, and what was asked, so that the user is asked again.
    pub fn ask_again(&self) {
        let mut forgotten = false;
        self.decided.send_if_modified(|decided| {
            forgotten = !decided.refused.is_empty() || decided.asked.is_some();
            decided.refused.clear();
            decided.asked = None;
            false
        });
        if forgotten {
            self.answers.send_modify(|count| *count += 1);
        }
    }
}

/// The error of `opdev run` where nobody can be asked.
pub fn refusal(project: &Project, unanswered: &[Permission], command: &str) -> String {
    let line = |one: &Permission| format!("\n  - {} ({})", visible_line(&one.to_string()), one.setting());
    let list: String = unanswered.iter().map(line).collect();
    let root = visible_line(&project.root.display().to_string());
    format!(
        "the project {root} wants more than to render and to apply, and is not trusted to{list}\n  to do: read these \
         settings; where you trust the project, run `{command}` and start opdev again"
    )
}

#[cfg(test)]
mod tests;
