//! What a pass would do where nothing may be written: the same reads, rendering and plan as a real one, put into
//! words. Read `upgrade` for what then happens.

use super::apply::Plan;
use super::engine::Engine;
use super::pass::Pass;
use super::release::History;
use super::render::{Identity, Lookups};
use super::verdict::{Fault, Verdict};
use super::wish::Wish;
use super::{objects, values};
use crate::event::{Action, ObjectChange, Outcome};
use opdev_object::meta;

/// How many objects are named.
const NAMED: usize = 5;

/// Changes that would be made, in words.
pub(super) fn words(changes: &[ObjectChange]) -> String {
    if changes.is_empty() {
        return "read-only: all is as it should be".to_owned();
    }
    let named = changes.iter().take(NAMED).map(|change| match change.action {
        Action::Created => format!("create {}", change.object),
        Action::Deleted => format!("delete {}", change.object),
        Action::Updated => {
            let fields: Vec<String> = change.changes.iter().take(3).map(|one| one.path.to_string()).collect();
            let more = change.changes.len().saturating_sub(fields.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("change {} ({}{more})", change.object, fields.join(", "))
        }
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = changes.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("read-only: it would {named}{more}")
}

impl Pass {
    /// The words for what the pass would do.
    pub(super) async fn foresee(&mut self) -> Result<Verdict, Fault> {
        let waits = |words: String| Verdict { waiting: Some(words), ..Verdict::new(Outcome::Waiting) };
        if meta::deletion_timestamp(&self.parent.object).is_some() {
            return Ok(waits("read-only: its release would be uninstalled".to_owned()));
        }
        if !self.watch.picks(&self.parent.object) {
            return Ok(Verdict::new(Outcome::Unchanged));
        }
        let chart = self.chart()?;
        let spec = values::spec(&self.parent.object).map_err(Fault::plain)?;
        let values = values::with_overrides(&spec, &self.engine.fed.overrides).map_err(Fault::plain)?;
        let (api, namespace) = (self.engine.api.clone(), self.engine.namespace.clone());
        let history = History::read(&api, &namespace, &self.parent.reference.name)
            .await
            .map_err(|error| Fault::plain(error.context("failed to retrieve release history")))?;
        history.check(chart.name(), &self.engine.owner).map_err(Fault::plain)?;
        let values = self.engine.values_for(&history, values).map_err(Fault::plain)?;
        let changes =
            self.engine.foresee(&history, &Wish { chart, spec, values }).await.map_err(Fault::plain)?;
        Ok(waits(words(&changes)))
    }
}

impl Engine {
    /// What bringing the release to what is wished for would change.
    async fn foresee(&mut self, history: &History, wish: &Wish) -> anyhow::Result<Vec<ObjectChange>> {
        let chart = wish.chart.name();
        let (before, manifest) = match history.deployed()? {
            None => {
                let identity = Identity { revision: 1, install: true };
                (Vec::new(), self.render(wish, identity, Lookups::Live).await?.manifest)
            }
            Some(deployed) => {
                self.manifests.push(deployed.release.manifest.clone());
                let identity = Identity { revision: history.next_revision(), install: false };
                let rendered = self.render(wish, identity, Lookups::Live).await?.manifest;
                (self.wanted(&deployed.release.manifest, chart).await.unwrap_or_default(), rendered)
            }
        };
        self.note("render");
        self.manifests.push(manifest.clone());
        self.dependents = objects::kinds(&manifest);
        let wanted = self.wanted(&manifest, chart).await?;
        let plan = Plan::make(&self.api, wanted, &before, None).await?;
        self.note("plan");
        Ok(plan.preview())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::meta::{Gvk, ObjectRef};

    #[test]
    fn what_would_be_done_is_named_and_bounded() {
        let change = |name: &str, action| ObjectChange {
            object: ObjectRef {
                gvk: Gvk::new("apps", "v1", "Deployment"),
                namespace: Some("default".into()),
                name: name.into(),
                uid: None,
            },
            action,
            changes: Vec::new(),
            taken_from: Vec::new(),
        };
        assert_eq!(words(&[]), "read-only: all is as it should be");
        let one = words(&[change("web", Action::Created)]);
        assert!(one.starts_with("read-only: it would create Deployment") && one.ends_with("web"), "{one}");
        let many: Vec<_> = (0..9).map(|n| change(&n.to_string(), Action::Deleted)).collect();
        assert!(words(&many).ends_with(", and 4 more"));
    }
}
