//! Two templates that give one object: the API server keeps only one of the two, so that each reconcile would
//! take the other one for drift. Helm's install refuses it; so does every reconcile here, and names both
//! files.

use crate::engine::Engine;
use crate::objects;
use crate::objects::Wanted;
use crate::verdict::Blamed;
use opdev_event::{Diagnostic, Place, Severity};
use opdev_object::meta::{self, Gvk, ObjectKey};
use std::collections::HashSet;

impl Engine {
    /// Refuses a manifest that holds an object twice.
    pub(crate) fn refuse_twins(&self, wanted: &[Wanted], manifest: &str) -> anyhow::Result<()> {
        let mut seen: HashSet<ObjectKey> = HashSet::new();
        let Some(twin) = wanted.iter().find(|wanted| !seen.insert(wanted.key())) else { return Ok(()) };
        let sources = sources_of(manifest, twin, &self.namespace);
        let (first, second) = match sources.as_slice() {
            [] => (String::new(), String::new()),
            [only] => (only.clone(), only.clone()),
            [first, second, ..] => (first.clone(), second.clone()),
        };
        let place =
            if first == second { format!("twice in {first}") } else { format!("in {first} and in {second}") };
        let message = format!(
            "{} {:?} is {place}: one object can come from one template only; Helm's install fails with \"already exists\"",
            twin.resource.gvk.kind,
            meta::name(&twin.object).unwrap_or_default(),
        );
        let diagnostic = Diagnostic {
            severity: Severity::Error,
            message,
            place: Some(Place { file: format!("{}/{second}", self.reconciler.path), line: 0, column: 0 }),
            excerpt: None,
            hint: Some("give one of the two another name, or take it out".to_owned()),
            kind: Some(self.owner.gvk.clone()),
        };
        Err(anyhow::Error::new(Blamed(diagnostic)))
    }
}

/// The files, below the chart's folder, whose documents hold an object; one that holds it twice is named
/// twice.
fn sources_of(manifest: &str, twin: &Wanted, namespace: &str) -> Vec<String> {
    let wanted = (&twin.resource.gvk.group, &twin.resource.gvk.kind, meta::name(&twin.object));
    let own = meta::namespace(&twin.object);
    let mut found = Vec::new();
    for (source, text) in objects::sources(manifest) {
        for object in objects::parse(text).unwrap_or_default() {
            let Some(gvk) = Gvk::of(&object) else { continue };
            let inside = own.is_none() || meta::namespace(&object).or(Some(namespace)) == own;
            if inside && (&gvk.group, &gvk.kind, meta::name(&object)) == wanted {
                found.push(source.split_once('/').map_or(source, |(_, file)| file).to_owned());
            }
        }
    }
    found
}
