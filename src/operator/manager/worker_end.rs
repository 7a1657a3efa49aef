//! The end of a worker: its report, or its panic, becomes the `Reconciled` event and the object's next turn.

use super::Manager;
use super::kinds::Seen;
use super::wakes::Wake;
use super::workers::Running;
use crate::queue::{Ended, Mark, Origin, Retry, Urgency, kind_of};
use jiff::Timestamp;
use opdev_client::forbidden::FORBIDDEN_HINT;
use opdev_client::mark;
use opdev_event::{
    Cause, CauseKind, Diagnostic, Event, Failure, Level, LogLine, Outcome, Place, Reconcile, Requeue,
    RequeueReason, Severity, mask, words,
};
use opdev_release::unfit::UnfitWrite;
use opdev_release::verdict::Report;
use opdev_sources::Reconciler;
use std::collections::HashSet;
use std::sync::Arc;
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

impl Manager {
    /// A worker has ended, one way or another.
    pub(super) async fn worker_ended(&mut self, ended: Result<(Id, Report), JoinError>) {
        let (id, mut report) = match ended {
            Ok((id, report)) => (id, report),
            Err(error) => {
                let id = error.id();
                (id, Report::failed(panic_chain(error)))
            }
        };
        let Some(mut running) = self.workers.ended(id) else { return };
        let known = mask::known(running.secrets.iter().chain(report.memory.secrets()).cloned());
        report.cover(&known);
        cover_causes(&mut running.taken.causes, &known);
        let took = running.recorder.elapsed();
        let key = running.taken.key.clone();
        let failed = report.failure.is_some();
        self.say_warnings(&running, &report, &known).await;
        self.say_missing_right(&running, &report).await;
        self.report_unfit(&running, &report);
        let (ended, requeue) = next_turn(&report, running.taken.failures, self.settings.roles_kept);
        let echo = Arc::clone(&self.server.api.echo);
        let read = report.known.iter().filter(|(_, wrote)| !wrote);
        let read: HashSet<Mark> = read.filter_map(|(object, _)| mark(object, false)).collect();
        let seen = Seen {
            dependents: report.dependents,
            children: report.children,
            reads: report.reads,
            known: report.known,
            buried: report.buried,
        };
        let unread = self.kinds.follow(&key, seen, running.began);
        for (level, message) in report.logs {
            let target = running.object.gvk.kind.clone();
            self.events.log(LogLine {
                at: Timestamp::now(),
                level,
                target,
                message,
                reconcile: Some(running.id),
            });
        }
        let mut object = running.object.clone();
        object.uid = report.uid.or(object.uid);
        let reconcile = Reconcile {
            id: running.id,
            object,
            sources: running.sources,
            at: running.at,
            queued: running.taken.queued,
            took,
            steps: report.steps,
            calls: running.recorder.calls(),
            outcome: report.outcome,
            status: mask::changes(&key.kind, report.status),
            objects: report.objects,
            requeue,
            waiting: report.waiting,
            releases: report.releases,
            failure: report.failure.map(|failure| Failure {
                chain: failure.chain,
                diagnostic: failure.diagnostic,
                attempt: running.taken.failures + 1,
            }),
            process: None,
            causes: running.taken.causes,
        };
        let causes: Vec<CauseKind> = reconcile.causes.iter().map(|cause| cause.kind.clone()).collect();
        let judge = |mark: &Mark| match echo.is_own(mark) {
            true => Origin::Own,
            false if read.contains(mark) => Origin::Read,
            false => Origin::Other,
        };
        let is_over = matches!(report.outcome, Outcome::Gone | Outcome::Uninstalled);
        // A change that the reconcile has read in that state, or wrote itself, is no news to it.
        let is_news = |wake: &Wake| wake.mark.as_ref().is_none_or(|mark| judge(mark) == Origin::Other);
        for wake in unread.into_iter().filter(|wake| !is_over && is_news(wake)) {
            let cause = Cause { at: Timestamp::now(), kind: wake.kind };
            self.queue.add(&key, cause, Urgency::Wait, None, Instant::now());
        }
        self.queue.end(&key, ended, judge, Instant::now());
        if !is_over {
            self.memories.insert(key.clone(), report.memory);
        } else {
            self.kinds.forget(&key);
        }
        let found = self.loops.see(&reconcile);
        let reconcile = Arc::new(reconcile);
        self.events.emit(Event::Reconciled(Arc::clone(&reconcile))).await;
        if let Some(found) = found {
            self.tell_loop(found).await;
        }
        self.check_goes_on(&key, &reconcile);
        if let Some(reload) = &mut self.saved.reload {
            reload.ended(&key, running.sources, &causes, failed);
            let kinds = &self.kinds;
            reload.forget(|waiting| {
                waiting.kind != key.kind || waiting.group != key.group || kinds.knows(waiting)
            });
            self.settle().await;
        }
    }

    async fn say_warnings(&self, running: &Running, report: &Report, known: &[String]) {
        let object = Some(running.object.clone());
        for text in running.recorder.warnings() {
            let text = mask::text(&text, known);
            self.notice(Level::Warn, format!("the API server warns: {text}"), None, object.clone()).await;
        }
        for (message, hint) in &report.notices {
            self.notice(Level::Warn, message.clone(), hint.clone(), object.clone()).await;
        }
    }

    /// A program or a chart whose first reconciles after a save write what does not fit its kind is reported:
    /// another try writes the same. No other object of the kind is tried until it is decided whether the one
    /// before it serves again. An object that failed before says nothing against a chart that was saved
    /// since.
    fn report_unfit(&mut self, running: &Running, report: &Report) {
        let Some(failure) = report.failure.as_ref().filter(|failure| failure.unfit) else { return };
        let (Some(unfit), kind) = (&self.settings.unfit, &running.object.gvk) else { return };
        let Some(watch) = self.sources.watch(&kind.group, &kind.kind) else { return };
        let number = watch.changed_in;
        let is_first = running
            .taken
            .causes
            .iter()
            .any(|cause| matches!(cause.kind, CauseKind::Reload { sources, .. } if sources >= number));
        let is_newest = number <= running.sources;
        if !is_first || !is_newest || self.queue.gate.is_undecided(&kind_of(&running.taken.key)) {
            return;
        }
        let (noun, found) = match &watch.reconciler {
            Reconciler::Chart(_) if running.taken.failures > 0 => return,
            Reconciler::Chart(_) => ("chart", failure.diagnostic.clone()),
            Reconciler::Type(_) => ("reconciler", None),
        };
        let file = Place { file: watch.path().to_owned(), line: 0, column: 0 };
        let (place, excerpt) = match found {
            Some(found) => (found.place.unwrap_or(file), found.excerpt),
            None => (file, None),
        };
        let problem = Diagnostic {
            severity: Severity::Error,
            message: format!(
                "the API server refuses what the saved {noun} of {} writes (on {}): {}",
                kind.kind,
                running.object,
                words::one_line(&failure.chain.join(": "))
            ),
            place: Some(place),
            excerpt,
            hint: Some(format!("the older {noun} runs again; correct the file and save it")),
            kind: Some(kind.clone()),
        };
        if unfit.try_send(UnfitWrite { object: running.object.clone(), sources: number, problem }).is_ok() {
            self.queue.gate.await_decision(kind_of(&running.taken.key), number);
        }
    }

    /// A right that the kubeconfig's user lacks is told once, until the object that it was missing for is
    /// reconciled again.
    async fn say_missing_right(&mut self, running: &Running, report: &Report) {
        let Some(failure) = &report.failure else {
            self.missing_rights.retain(|_, object| *object != running.taken.key);
            return;
        };
        let Some(missing) = failure.missing.as_ref().filter(|_| !self.settings.roles_kept) else { return };
        let words = missing.words();
        if self.missing_rights.contains_key(&words) {
            return;
        }
        let kind = &running.object.gvk.kind;
        let message =
            format!("missing rights: you may not {words}, which reconciling a {kind} needs; all else works");
        self.missing_rights.insert(words, running.taken.key.clone());
        let object = Some(running.object.clone());
        self.notice(Level::Warn, message, Some(FORBIDDEN_HINT.to_owned()), object).await;
    }
}

/// Masks known secrets in the fields and errors of causes.
pub(super) fn cover_causes(causes: &mut [Cause], known: &[String]) {
    for cause in causes {
        match &mut cause.kind {
            CauseKind::Watch { fields, .. } => {
                for side in fields.iter_mut().flat_map(|field| [&mut field.old, &mut field.new]).flatten() {
                    *side = mask::text(side, known);
                }
            }
            CauseKind::Retry { error, .. } => *error = mask::text(error, known),
            CauseKind::Start
            | CauseKind::Reload { .. }
            | CauseKind::Period
            | CauseKind::Wait { .. }
            | CauseKind::User
            | CauseKind::Check => {}
        }
    }
}

fn next_turn(report: &Report, failures: u32, roles_kept: bool) -> (Ended, Option<Requeue>) {
    match &report.failure {
        Some(failure) => {
            let error = failure.chain.first().cloned().unwrap_or_default();
            // Where opdev acts as the operator's ServiceAccount, whoever may add the rule is the one who
            // looks.
            let pace = if failure.missing.is_some() && !roles_kept { Retry::Rarely } else { Retry::Soon };
            let retry = failure.retry.then_some(pace);
            let after = |retry: Retry| retry.pause(failures.saturating_add(1));
            let requeue = retry.map(|retry| Requeue { after: after(retry), reason: RequeueReason::Retry });
            (Ended::Failed { error, retry }, requeue)
        }
        None => {
            let again = report.requeue.as_ref().map(|requeue| {
                let kind = match &requeue.reason {
                    RequeueReason::Period => CauseKind::Period,
                    reason => CauseKind::Wait { why: reason.words().to_owned() },
                };
                (requeue.after, kind)
            });
            (Ended::Done(again), report.requeue.clone())
        }
    }
}

fn panic_chain(error: JoinError) -> Vec<String> {
    if error.is_cancelled() {
        return vec!["the reconcile was stopped".to_owned()];
    }
    let payload = error.into_panic();
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    vec!["the reconciler panicked; this is an error in opdev, please report it".to_owned(), text]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_panic_is_told_with_its_message() {
        let error = tokio::spawn(async { panic!("no {}", "luck") }).await.unwrap_err();
        assert_eq!(panic_chain(error).last().map(String::as_str), Some("no luck"));
        let report = Report::failed(vec!["outer".to_owned(), "inner".to_owned()]);
        let (ended, requeue) = next_turn(&report, 2, false);
        assert!(matches!(ended, Ended::Failed { retry: Some(Retry::Soon), error } if error == "outer"));
        assert_eq!(requeue.unwrap().after, Retry::Soon.pause(3));
    }

    #[test]
    fn a_missing_right_is_asked_for_rarely_unless_somebody_keeps_the_roles() {
        let refusal =
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "a""#;
        let report = Report::failed(vec!["could not read".to_owned(), refusal.to_owned()]);
        let (ended, requeue) = next_turn(&report, 1, false);
        assert!(matches!(ended, Ended::Failed { retry: Some(Retry::Rarely), .. }));
        assert_eq!(requeue.unwrap().after, Duration::from_secs(10), "the second failure");
        let (ended, _) = next_turn(&report, 1, true);
        assert!(matches!(ended, Ended::Failed { retry: Some(Retry::Soon), .. }));
    }

    #[test]
    fn a_secret_in_the_words_of_a_refusal_is_masked() {
        let refusal = r#"User "u" cannot list resource "hunter2" in API group "" in the namespace "a""#;
        let mut report = Report::failed(vec![refusal.to_owned()]);
        report.cover(&["hunter2".to_owned()]);
        let missing = report.failure.unwrap().missing;
        assert!(missing.is_none_or(|missing| !missing.words().contains("hunter2")));
    }

    #[test]
    fn known_secrets_show_neither_in_reports_nor_in_causes() {
        use opdev_object::diff::diff;
        use serde_json::json;
        let known = mask::known(["hunter2".to_owned()]);
        let mut report = Report::failed(vec!["cannot log in with hunter2".to_owned()]);
        let message = |text: &str| json!({"status": {"conditions": [{"type": "Deployed", "message": text}]}});
        report.status = diff(&message(""), &message("use hunter2 or aHVudGVyMg=="));
        report.notices.push(("hunter2".to_owned(), Some("hunter2".to_owned())));
        let why = "revision 3 was made beside opdev (for hunter2)".to_owned();
        let step = opdev_event::ReleaseStep::Upgraded;
        let name = "site".to_owned();
        report.releases.push(opdev_event::ReleaseChange { name, step, revision: 4, why, surplus: false });
        report.cover(&known);
        let told = format!("{report:?}");
        assert!(!told.contains("hunter2") && !told.contains("aHVudGVyMg=="), "{told}");
        let kind = CauseKind::Retry { attempt: 1, error: "hunter2".to_owned() };
        let mut causes = vec![Cause { at: Timestamp::UNIX_EPOCH, kind }];
        cover_causes(&mut causes, &known);
        assert!(!format!("{causes:?}").contains("hunter2"));
    }
}
