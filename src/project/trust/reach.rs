//! Other machines that the embedded control plane is to call, as webhooks of charts, of scripts and of files
//! want: the user is asked about each host once, and it is not called before. What kubectl has made is the
//! user's own, and is only told.

use super::Trust;
use jiff::Timestamp;
use opdev_controlplane::{OutsideCall, Reach};
use opdev_event::{Level, Notice, Permission};

impl Trust {
    /// Decides for an embedded control plane whom it may call.
    pub fn reach(&self) -> Reach {
        let trust = self.clone();
        Reach::new(move |call| trust.may_call(call))
    }

    pub(super) fn may_call(&self, call: &OutsideCall<'_>) -> Result<(), String> {
        let host = call.host.to_owned();
        if call.by_kubectl {
            self.tell_once(called_for_user(call));
            return Ok(());
        }
        let wish = Permission::CallHost { host: host.clone() };
        let is_open = || self.grants(&wish) || self.grants(&Permission::ReachHost { host: host.clone() });
        // A remembered permission counts without a question.
        if is_open() || (self.unanswered(std::slice::from_ref(&wish)).is_ok() && is_open()) {
            return Ok(());
        }
        self.wish(wish);
        Err(format!(
            "the host {host} is not called, for a chart, a script or a file of the project made this webhook and you have not \
             allowed it; answer opdev's question, or name the host under allow.hosts in opdev.yaml and trust the project"
        ))
    }

    /// Something else is wanted than what the files say; the next question has it.
    fn wish(&self, wish: Permission) {
        let is_new = self
            .decided
            .send_if_modified(|decided| !decided.refused.contains(&wish) && decided.wishes.insert(wish));
        if is_new {
            self.answers.send_modify(|count| *count += 1);
        }
    }

    fn tell_once(&self, message: String) {
        let is_new = self.decided.send_if_modified(|decided| {
            let is_new = !decided.told.contains(&message);
            if is_new {
                decided.told.insert(message.clone());
                decided.to_tell.push(message);
            }
            is_new
        });
        if is_new {
            self.answers.send_modify(|count| *count += 1);
        }
    }

    /// The messages that are due.
    pub(super) fn news(&self) -> Vec<Notice> {
        let mut messages = Vec::new();
        self.decided.send_if_modified(|decided| {
            messages = std::mem::take(&mut decided.to_tell);
            false
        });
        let notice =
            |message| Notice { at: Timestamp::now(), level: Level::Info, message, hint: None, object: None };
        messages.into_iter().map(notice).collect()
    }
}

fn called_for_user(call: &OutsideCall<'_>) -> String {
    format!("the embedded control plane calls {}, as a webhook that was made with kubectl wants", call.url)
}
