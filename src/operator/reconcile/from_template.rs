//! Which template an object of a release comes from, so that what fails at one object names the file to look at. Pure.

use super::at_object::AtObject;
use super::engine::Engine;
use super::objects;
use super::verdict::Fault;
use crate::event::{Diagnostic, Place, Severity};
use crate::sources::broken;
use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::Value;

impl Engine {
    /// The place in the project of the object at which a pass failed, with the error's last cause.
    pub(super) fn place_of(&self, fault: &Fault) -> Option<Diagnostic> {
        let at = fault.error.downcast_ref::<AtObject>()?;
        let template = self.manifests.iter().rev().find_map(|manifest| template_of(manifest, at.object()))?;
        let chart = self.reconciler.chart.as_deref();
        let text = chart.and_then(|chart| broken::template_text(chart, &template)).unwrap_or_default();
        let line = line_of_kind(&text, &at.object().gvk.kind);
        let file = format!("{}/{template}", self.reconciler.path.trim_end_matches('/'));
        Some(Diagnostic {
            severity: Severity::Error,
            message: fault.error.root_cause().to_string(),
            place: Some(Place { file, line, column: 0 }),
            excerpt: broken::excerpt(&text, line, 0),
            hint: None,
            kind: Some(self.owner.gvk.clone()),
        })
    }
}

/// The template, below its chart's folder, whose output holds an object.
pub(super) fn template_of(manifest: &str, wanted: &ObjectRef) -> Option<String> {
    objects::sources(manifest).find_map(|(source, document)| {
        let found = objects::parse(document).unwrap_or_default();
        let same = |object: &Value| match Gvk::of(object) {
            Some(gvk) => {
                gvk.group == wanted.gvk.group
                    && gvk.kind == wanted.gvk.kind
                    && meta::name(object).unwrap_or_default() == wanted.name
            }
            None => wanted.gvk.kind.is_empty() && meta::name(object).unwrap_or_default() == wanted.name,
        };
        (!source.is_empty() && found.iter().any(same)).then(|| below(source).to_owned())
    })
}

/// A template's path below its chart's folder.
pub(super) fn below(source: &str) -> &str {
    source.split_once('/').map_or(source, |(_, file)| file)
}

/// The line of a template that begins an object of this kind; 0 where that is not one line for sure.
fn line_of_kind(text: &str, kind: &str) -> u32 {
    let says = |line: &str| {
        let value = line.trim().strip_prefix("kind:").map(|value| value.trim().trim_matches(['"', '\'']));
        !kind.is_empty() && value == Some(kind)
    };
    let mut lines = text.lines().enumerate().filter(|(_, line)| says(line));
    match (lines.next(), lines.next()) {
        (Some((at, _)), None) => u32::try_from(at + 1).unwrap_or_default(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_leads_to_its_template() {
        let manifest = "---\n# Source: web/templates/a.yaml\nkind: Service\napiVersion: v1\nmetadata: {name: a}\n---\n\
                        # Source: web/charts/db/templates/b.yaml\nkind: Service\napiVersion: v1\nmetadata: {name: b}\n---\n\
                        # Source: web/templates/c.yaml\nkind: Service\napiVersion: v1\nmetadata: {name:}\n---\n\
                        # Source: web/templates/d.yaml\nspec: {}\n";
        let object = |name: &str| ObjectRef {
            gvk: Gvk::new("", "v1", "Service"),
            name: name.to_owned(),
            ..ObjectRef::default()
        };
        assert_eq!(template_of(manifest, &object("b")).unwrap(), "charts/db/templates/b.yaml");
        assert_eq!(template_of(manifest, &object("")).unwrap(), "templates/c.yaml", "it has no name");
        assert_eq!(
            template_of(manifest, &ObjectRef::default()).unwrap(),
            "templates/d.yaml",
            "it has no kind"
        );
        assert_eq!(template_of(manifest, &object("x")), None);
    }

    #[test]
    fn only_one_line_for_sure_is_named() {
        let text = "{{ if .x }}\napiVersion: v1\nkind: \"Service\"\n---\nkind: Pod\n---\nkind: Pod\n";
        assert_eq!((line_of_kind(text, "Service"), line_of_kind(text, "Pod")), (3, 0));
    }
}
