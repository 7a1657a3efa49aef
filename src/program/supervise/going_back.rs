//! A saved program that builds and ends at once gives way to the one before it, which has run.

use super::Life;
use crate::build::{Built, LAST};
use opdev_event::{Diagnostic, ProcessExit, Severity};
use std::time::Duration;

/// A new program that ends so soon has not begun to work.
const AT_ONCE: Duration = Duration::from_secs(10);

/// The program before the one that was started last.
#[derive(Debug, Default)]
pub(super) struct Before {
    /// Its build; none where there is no program to go back to.
    built: Option<Built>,
    /// The files whose save led to the new one.
    files: Vec<String>,
}

impl Life {
    /// The program that runs gives way to a new one: its binary is kept.
    pub(super) fn keep_last(&mut self, running: Option<Built>, files: &[String]) {
        self.before = Before { built: None, files: files.to_vec() };
        let is_plain = self.builder.plan.debug.is_none();
        let Some(built) = running.filter(|built| is_plain && built.next.is_some()) else { return };
        let kept = std::fs::rename(self.builder.binary("operator"), self.builder.binary(LAST));
        self.before.built = kept.is_ok().then_some(built);
    }

    /// Goes back to the program before, where the new one has ended at once. Whether it does.
    pub(super) async fn goes_back(&mut self, exit: &ProcessExit) -> bool {
        let Some(built) = self.before.built.take() else { return false };
        if exit.ran > AT_ONCE {
            return false;
        }
        if let Err(error) = std::fs::rename(self.builder.binary(LAST), self.builder.binary("operator")) {
            tracing::warn!("the program before cannot take its place again: {error}");
            return false;
        }
        let why = exit.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default();
        let what = Diagnostic {
            severity: Severity::Error,
            place: exit.place.clone(),
            message: format!("it is built and ends at once ({}){why}", exit.status),
            excerpt: None,
            kind: None,
            hint: Some(
                exit.hint.clone().unwrap_or_else(|| "the last working version keeps running".to_owned()),
            ),
        };
        // They are not in the program that runs.
        self.files = std::mem::take(&mut self.before.files);
        self.tell_broken(vec![what]).await;
        self.built = Some(built);
        self.start(Vec::new()).await;
        true
    }
}
