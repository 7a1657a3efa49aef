//! The template that an object of a release comes from, so that a failure of one object names the file to
//! look at. Pure.

use crate::engine::Engine;
use crate::objects;
use crate::objects::at_object::AtObject;
use crate::verdict::Fault;
use opdev_event::{Diagnostic, Place, Severity};
use opdev_object::meta::{self, Gvk, ObjectRef};
use opdev_sources::chart_problems;
use serde_json::Value;

impl Engine {
    /// The place in the project of the object at which a reconcile failed, with the error's last cause.
    pub fn place_of(&self, fault: &Fault) -> Option<Diagnostic> {
        let at = fault.error.downcast_ref::<AtObject>()?;
        let message = fault.error.root_cause().to_string();
        let InTemplate { place, text } = self.in_template(at.object(), &message)?;
        Some(Diagnostic {
            severity: Severity::Error,
            message,
            excerpt: chart_problems::excerpt(&text, place.line, 0),
            place: Some(place),
            hint: None,
            kind: Some(self.owner.gvk.clone()),
        })
    }

    /// The place, as `file:line`, of what an API server says of an object.
    pub(crate) fn place_in_template(&self, object: &ObjectRef, message: &str) -> Option<String> {
        let place = self.in_template(object, message)?.place;
        Some(if place.line == 0 { place.file } else { format!("{}:{}", place.file, place.line) })
    }

    fn in_template(&self, object: &ObjectRef, message: &str) -> Option<InTemplate> {
        let template = self.done.manifests.iter().rev().find_map(|manifest| template_of(manifest, object))?;
        let chart = self.reconciler.chart.as_deref();
        let text =
            chart.and_then(|chart| chart_problems::template_text(chart, &template)).unwrap_or_default();
        let line = match line_of_kind(&text, &object.gvk.kind) {
            0 => 0,
            kind => fields_of(message).find_map(|field| line_of_field(&text, kind, field)).unwrap_or(kind),
        };
        let file = format!("{}/{template}", self.reconciler.path.trim_end_matches('/'));
        Some(InTemplate { place: Place { file, line, column: 0 }, text })
    }
}

/// A place in a template, with the template's text.
struct InTemplate {
    place: Place,
    text: String,
}

/// The template, below its chart's folder, whose output holds an object.
pub fn template_of(manifest: &str, wanted: &ObjectRef) -> Option<String> {
    objects::sources(manifest).find_map(|(source, document)| {
        let found = objects::parse(document).unwrap_or_default();
        let same = |object: &Value| match Gvk::of(object) {
            Some(gvk) => {
                gvk.group_kind() == wanted.gvk.group_kind()
                    && meta::name(object).unwrap_or_default() == wanted.name
            }
            None => wanted.gvk.kind.is_empty() && meta::name(object).unwrap_or_default() == wanted.name,
        };
        (!source.is_empty() && found.iter().any(same)).then(|| below(source).to_owned())
    })
}

/// A template's path below its chart's folder.
pub(crate) fn below(source: &str) -> &str {
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

/// How the path of a field begins.
const FIELDS: [&str; 8] =
    ["spec.", "metadata.", "data.", "status.", "imagePullSecrets", "secrets", "webhooks", "subjects"];

/// The paths of the fields that an API server complains about: `Deployment.apps "web" is invalid:
/// spec.replicas: Invalid value …`, `….spec.replica: field not declared in schema`,
/// `.spec.containers[name="a"].ports: duplicate entries …`.
fn fields_of(message: &str) -> impl Iterator<Item = &str> {
    let begins = message.char_indices().filter(|(at, _)| {
        let before = message[..*at].chars().next_back();
        before.is_none_or(|before| matches!(before, ' ' | '\n' | '[' | '.' | '"'))
            && FIELDS.iter().any(|field| message[*at..].starts_with(field))
    });
    // A path is told at its beginning only: `spec.` inside of one follows a dot that belongs to it.
    let mut end = 0;
    begins.filter_map(move |(at, _)| {
        if at < end {
            return None;
        }
        let path = &message[at..at + path_length(&message[at..])];
        end = at + path.len();
        message[end..].starts_with(':').then_some(path)
    })
}

/// How long the path at the beginning of a text is. A key in brackets may have any character.
fn path_length(text: &str) -> usize {
    let (mut brackets, mut quoted) = (0_u32, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' if brackets > 0 => quoted = !quoted,
            _ if quoted => {}
            '[' => brackets += 1,
            ']' if brackets > 0 => brackets -= 1,
            ' ' | '\n' | ':' | '"' | ']' if brackets == 0 => return at,
            _ => {}
        }
    }
    text.len()
}

/// How long the bracketed key at the beginning of a text is, with both brackets.
fn key_length(text: &str) -> usize {
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            ']' if !quoted => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The line below that of the kind on which a template names this field, or else the nearest one around it;
/// `None` where that is not one line for sure.
fn line_of_field(text: &str, kind: u32, path: &str) -> Option<u32> {
    let mut keys = Vec::new();
    let mut rest = path;
    while let Some(at) = rest.find(['.', '[']) {
        keys.push(&rest[..at]);
        rest = match rest[at..].starts_with('[') {
            true => &rest[at + key_length(&rest[at..])..],
            false => &rest[at + 1..],
        };
    }
    keys.push(rest);
    keys.retain(|key| !key.is_empty());
    let first = usize::from(keys.len() > 1);
    keys.iter().skip(first).rev().find_map(|key| {
        let names = |line: &str| {
            let line = line.trim_start().trim_start_matches("- ");
            line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'))
        };
        let after = text.lines().enumerate().skip(kind as usize);
        let mut lines = after.take_while(|(_, line)| *line != "---").filter(|(_, line)| names(line));
        match (lines.next(), lines.next()) {
            (Some((at, _)), None) => u32::try_from(at + 1).ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_refused_leads_to_its_line() {
        let text = "kind: ConfigMap\n---\nkind: Deployment\nmetadata:\n  name: a\nspec:\n  replica: {{ .n }}\n  template:\n    \
                    spec:\n      containers:\n      - name: a\n---\nspec:\n  replica: 1\n";
        let line = |message: &str| fields_of(message).find_map(|field| line_of_field(text, 3, field));
        let undeclared = "failed to create typed patch object (default/a; apps/v1, Kind=Deployment): .spec.replica: field not \
                          declared in schema";
        assert_eq!(line(undeclared), Some(7));
        let missing =
            "Deployment.apps \"a\" is invalid: spec.template.spec.containers[0].image: Required value";
        assert_eq!(line(missing), Some(10), "the field is not there; what it would be in is");
        assert_eq!(
            line("Deployment.apps \"a\" is invalid: metadata.name: Invalid value: \"A\""),
            None,
            "two lines"
        );
        let several = "Deployment.apps \"a\" is invalid: [metadata.name: Invalid value: \"A\", spec.replica: Invalid value: -1]";
        assert_eq!(line(several), Some(7), "the first that is named on one line");
        let twice = "failed to create typed patch object (default/a; apps/v1, Kind=Deployment): \
                     .spec.template.spec.containers[name=\"a.b: c\"].ports: duplicate entries for key \
                     [containerPort=80,protocol=\"TCP\"]";
        assert_eq!(
            fields_of(twice).collect::<Vec<_>>(),
            ["spec.template.spec.containers[name=\"a.b: c\"].ports"]
        );
        assert_eq!(line(twice), Some(10), "no line names the ports; what they are in is named");
        let secrets = ".imagePullSecrets: duplicate entries for key [name=\"a\"]";
        assert_eq!(
            line_of_field("kind: A\nimagePullSecrets:\n", 1, fields_of(secrets).next().unwrap()),
            Some(2)
        );
        assert_eq!(line("the server is busy: try again"), None);
        assert_eq!(line("Internal error: spec.x: no"), None, "no line names it");
    }

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
