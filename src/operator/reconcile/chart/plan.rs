//! The plan of a reconcile of a chart, made without writing: the same reads, rendering, decision and plan as
//! a real one.

use super::{ChartReconcile, FINALIZER, LEGACY_FINALIZER};
use opdev_event::{Diagnostic, Outcome, Place, Severity, ShadowObject, mask};
use opdev_object::meta;
use opdev_release::objects::dry_run::Ask;
use opdev_release::plan::{Ahead, words};
use opdev_release::render::from_template::template_of;
use opdev_release::verdict::{Fault, Verdict};

impl ChartReconcile {
    /// The words for what the reconcile would do.
    pub(crate) async fn foresee(&mut self) -> Result<Verdict, Fault> {
        let waits = |words: String| Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) };
        if meta::deletion_timestamp(&self.parent.object).is_some() {
            return Ok(waits("read-only: its release would be uninstalled".to_owned()));
        }
        if !self.watch.picks(&self.parent.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        let ahead = self.ahead(Ask::Nobody).await?;
        Ok(waits(words(&ahead.foretold.changes)))
    }

    /// The changes that the reconcile would make, masked.
    pub(crate) async fn shadow(&mut self, ask: Ask) -> ShadowObject {
        let mut found = ShadowObject { object: self.parent.reference.clone(), ..ShadowObject::default() };
        match self.ahead(ask).await {
            Ok(ahead) => {
                found.problem = self.refusal(&ahead);
                found.children = ahead.foretold.changes;
                found.unsure = ahead.foretold.unsure;
                found.hooks = ahead.hooks;
                found.release = ahead.release;
            }
            Err(fault) => {
                let failed = fault.into_failed();
                let message = failed.chain.join(": ");
                found.problem = Some(match failed.diagnostic {
                    Some(diagnostic) => diagnostic,
                    None => self.problem(message, None),
                });
            }
        }
        self.cover(&mut found);
        found
    }

    /// Masks what is secret.
    fn cover(&self, found: &mut ShadowObject) {
        let secrets = self.secrets();
        found.children.iter_mut().for_each(|child| mask::values_of(&mut child.changes, &secrets));
        found.unsure.iter_mut().for_each(|why| *why = mask::text(why, &secrets));
        if let Some(release) = &mut found.release {
            release.why = mask::text(&release.why, &secrets);
        }
        if let Some(problem) = &mut found.problem {
            problem.message = mask::text(&problem.message, &secrets);
            problem.excerpt = problem.excerpt.as_deref().map(|text| mask::text(text, &secrets));
            problem.hint = problem.hint.as_deref().map(|text| mask::text(text, &secrets));
        }
    }

    fn problem(&self, message: String, place: Option<Place>) -> Diagnostic {
        let kind = Some(self.parent.reference.gvk.clone());
        Diagnostic { severity: Severity::Error, message, place, excerpt: None, hint: None, kind }
    }

    /// The first write that the API server would refuse, with the template it comes from.
    fn refusal(&self, ahead: &Ahead) -> Option<Diagnostic> {
        let (object, message) = ahead.foretold.refused.first()?;
        let source = template_of(&ahead.manifest, object);
        let place = source.map(|file| Place {
            file: format!("{}/{file}", self.engine.reconciler.path),
            line: 0,
            column: 0,
        });
        let more = match ahead.foretold.refused.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more)"),
        };
        Some(self.problem(format!("the API server would refuse {object}: {message}{more}"), place))
    }

    async fn ahead(&mut self, ask: Ask) -> Result<Ahead, Fault> {
        self.settle_places().await?;
        let history = self.history().await.map_err(Fault::plain)?;
        if meta::deletion_timestamp(&self.parent.object).is_some() {
            let mine = [FINALIZER, LEGACY_FINALIZER];
            let ours = meta::finalizers(&self.parent.object).iter().any(|name| mine.contains(name));
            if !ours || !history.belongs_to(&self.engine.owner) || history.is_empty() {
                return Ok(Ahead::default());
            }
            return self.engine.uninstall_ahead(&history).await.map_err(Fault::plain);
        }
        if !self.watch.picks(&self.parent.object) {
            return Ok(Ahead::default());
        }
        let chart = self.chart()?;
        self.check_name()?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::plain)?;
        if self.paused().await?.is_some() {
            return Ok(Ahead::default());
        }
        let desired = self.desired(&history, chart).await?;
        let ahead = self.engine.ahead(&history, &desired, ask).await.map_err(Fault::plain)?;
        self.engine.try_hooks(&history, &desired).await?;
        if self.engine.done.waiting.is_some() {
            return Ok(Ahead::default());
        }
        Ok(ahead)
    }
}
