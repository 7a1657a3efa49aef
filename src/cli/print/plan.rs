//! A plan as text: what would become of each object, in the order in which it would be done, and the counts.

use opdev_event::words;
use opdev_event::words::visible_line;
use opdev_event::{Action, ObjectChange, Plan, ReleaseAhead, ShadowObject, StepAhead, TypeAhead};
use opdev_object::diff::Change;
use opdev_object::meta::ObjectRef;
use opdev_object::yaml;
use serde_json::Value;
use std::fmt::Write as _;

/// How many fields of one object are named.
const FIELDS: usize = 3;
/// The widest value of a field on its line, in characters.
const WIDEST: usize = 40;

/// The plan as text; with `diff` every field with all of its value.
pub fn plan(plan: &Plan, diff: bool) -> String {
    let mut out = String::new();
    for problem in &plan.problems {
        let _ = writeln!(out, "✗ {}", visible_line(&words::diagnostic(problem)));
    }
    for one in &plan.types {
        type_ahead(&mut out, one);
    }
    let mut lines: Vec<(&ObjectRef, Option<&ShadowObject>)> =
        plan.objects.iter().map(|one| (&one.object, Some(one))).collect();
    lines.extend(plan.unchanged.iter().map(|object| (object, None)));
    lines.sort_by(|a, b| order(a.0).cmp(&order(b.0)));
    let width = lines.iter().map(|(object, _)| object.to_string().chars().count()).max().unwrap_or(0);
    for (object, ahead) in lines {
        match ahead {
            Some(ahead) => shadow_object(&mut out, ahead, width, diff),
            None => {
                let name = visible_line(&object.to_string());
                let _ = writeln!(out, "{name:width$}  nothing");
            }
        }
    }
    for skipped in &plan.skipped {
        let object = if skipped.object.name.is_empty() {
            skipped.object.gvk.kind.clone()
        } else {
            skipped.object.to_string()
        };
        let _ = writeln!(out, "{}  unknown: {}", visible_line(&object), visible_line(&skipped.why));
    }
    let _ = writeln!(out, "{}", counts(plan));
    out
}

fn order(object: &ObjectRef) -> (&str, Option<&str>, &str) {
    (&object.gvk.kind, object.namespace.as_deref(), &object.name)
}

/// The last line.
fn counts(plan: &Plan) -> String {
    let all = plan.objects.len() + plan.unchanged.len();
    let count = |action| {
        let children = plan.objects.iter().flat_map(|object| &object.children);
        children.filter(|change| change.action == action).count()
    };
    let hooks: usize = plan.objects.iter().map(|object| object.hooks.len()).sum();
    let failing = plan.objects.iter().filter(|object| object.problem.is_some()).count();
    let mut text = format!(
        "{} of {all} would change: {} created, {} changed, {} deleted, {}",
        plan.objects.len(),
        count(Action::Created),
        count(Action::Updated),
        count(Action::Deleted),
        number(hooks, "hook")
    );
    if failing > 0 {
        let _ = write!(text, "; {failing} would fail");
    }
    if !plan.types.is_empty() {
        let _ = write!(text, "; {} first", number(plan.types.len(), "type"));
    }
    text
}

fn number(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

fn type_ahead(out: &mut String, one: &TypeAhead) {
    let what = if one.created { "+" } else { "~" };
    let _ = writeln!(out, "{what} CustomResourceDefinition {}", visible_line(&one.name));
    for finding in &one.findings {
        let _ = writeln!(out, "    {}", visible_line(&words::finding(finding)));
    }
    for hurt in &one.objects {
        let _ = writeln!(out, "    {}", visible_line(&words::hurt(hurt)));
    }
    if let Some(problem) = &one.problem {
        let _ = writeln!(out, "    ✗ {}", visible_line(problem));
    }
}

fn shadow_object(out: &mut String, ahead: &ShadowObject, width: usize, diff: bool) {
    let name = visible_line(&ahead.object.to_string());
    let release = ahead.release.as_ref().map(release).unwrap_or_default();
    let _ = writeln!(out, "{}", format!("{name:width$}  {}", visible_line(&release)).trim_end());
    if let Some(problem) = &ahead.problem {
        let _ = writeln!(out, "  ✗ {}", visible_line(&words::diagnostic(problem)));
    }
    for change in &ahead.children {
        child(out, &ahead.object, change, diff);
    }
    for hook in &ahead.hooks {
        let object = visible_line(&short(&ahead.object, &hook.object));
        let _ = writeln!(out, "  ! hook {} {object} would run", hook.event);
    }
    if !ahead.status.is_empty() {
        let _ = writeln!(out, "  ~ its status{}", fields(&ahead.status, diff));
        fields_in_full(out, &ahead.status, diff);
    }
    for why in &ahead.unsure {
        let _ = writeln!(out, "  ? not asked of the API server: {}", visible_line(why));
    }
}

/// What becomes of the release, and why.
fn release(of: &ReleaseAhead) -> String {
    let revision = match (of.step, of.from, of.to) {
        (StepAhead::Install, _, to) => format!("revision {}, installed", to.unwrap_or(1)),
        (StepAhead::Upgrade, from, to) => {
            format!("revision {} → {}", from.unwrap_or_default(), to.unwrap_or_default())
        }
        (StepAhead::Rewrite, from, _) => format!("revision {}, rewritten in place", from.unwrap_or_default()),
        (StepAhead::Uninstall, _, _) => "uninstalled".to_owned(),
    };
    let because = match of.files.as_slice() {
        [] => String::new(),
        [one] => format!("  because {one}"),
        [one, more @ ..] => format!("  because {one} and {} more", more.len()),
    };
    format!("{revision}{because}  ({})", of.why)
}

/// An object without the namespace that is also its custom resource's.
fn short(parent: &ObjectRef, object: &ObjectRef) -> String {
    if object.namespace == parent.namespace {
        format!("{} {}", object.gvk.kind, object.name)
    } else {
        object.to_string()
    }
}

fn child(out: &mut String, parent: &ObjectRef, change: &ObjectChange, diff: bool) {
    let sign = match change.action {
        Action::Created => '+',
        Action::Updated => '~',
        Action::Deleted => '-',
    };
    let object = visible_line(&short(parent, &change.object));
    let taken = match change.taken_from.as_slice() {
        [] => String::new(),
        managers => format!("   (taken from {})", visible_line(&managers.join(", "))),
    };
    let _ = writeln!(out, "  {sign} {object}{}{taken}", fields(&change.changes, diff));
    fields_in_full(out, &change.changes, diff);
}

/// The first fields on one line.
fn fields(changes: &[Change], diff: bool) -> String {
    if diff || changes.is_empty() {
        return String::new();
    }
    let named = changes.iter().take(FIELDS).map(|change| {
        let path = change.path.to_string();
        match (&change.old, &change.new) {
            (Some(old), Some(new)) => format!("{path} {} → {}", value(old), value(new)),
            (None, Some(new)) => format!("{path} + {}", value(new)),
            (Some(_), None) => format!("{path} removed"),
            (None, None) => path,
        }
    });
    let more = changes.len().saturating_sub(FIELDS);
    let more = if more > 0 { format!(", and {more} more") } else { String::new() };
    format!("   {}{more}", visible_line(&named.collect::<Vec<_>>().join(", ")))
}

fn value(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = words::one_line(&text);
    if text.chars().count() <= WIDEST {
        return text;
    }
    format!("{}…", text.chars().take(WIDEST - 1).collect::<String>())
}

fn fields_in_full(out: &mut String, changes: &[Change], diff: bool) {
    if !diff {
        return;
    }
    for change in changes {
        let _ = writeln!(out, "      {}", visible_line(&change.path.to_string()));
        for (sign, side) in [('-', &change.old), ('+', &change.new)] {
            let Some(side) = side else { continue };
            for line in yaml::to_string(side).trim_end().lines() {
                let _ = writeln!(out, "      {sign} {}", visible_line(line));
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use opdev_event::{Diagnostic, HookAhead, Place, Severity, Skipped};
    use opdev_object::diff::diff;
    use opdev_object::meta::Gvk;
    use serde_json::json;

    fn object(kind: &str, name: &str) -> ObjectRef {
        ObjectRef {
            gvk: Gvk::new("a.b", "v1", kind),
            namespace: Some("default".to_owned()),
            name: name.to_owned(),
            uid: None,
        }
    }

    fn change(action: Action, kind: &str, changes: Vec<Change>) -> ObjectChange {
        ObjectChange { object: object(kind, "x"), action, changes, taken_from: Vec::new() }
    }

    /// One with all that there can be.
    pub(in crate::print) fn shadow_object() -> ShadowObject {
        let fields = diff(&json!({"spec": {"replicas": 3}}), &json!({"spec": {"replicas": 5}}));
        let mut updated = change(Action::Updated, "StatefulSet", fields.clone());
        updated.taken_from.push("kubectl".to_owned());
        ShadowObject {
            object: object("A", "x"),
            release: Some(ReleaseAhead {
                step: StepAhead::Upgrade,
                from: Some(3),
                to: Some(4),
                why: "hook Job migrate changed".to_owned(),
                files: vec!["charts/a/templates/set.yaml".to_owned(), "charts/a/templates/b.yaml".to_owned()],
            }),
            children: vec![
                updated,
                change(Action::Created, "Budget", Vec::new()),
                change(Action::Deleted, "Service", Vec::new()),
            ],
            hooks: vec![HookAhead { event: "post-upgrade".to_owned(), object: object("Job", "migrate") }],
            status: fields,
            problem: Some(Diagnostic {
                severity: Severity::Error,
                message: "the API server would refuse it".to_owned(),
                place: Some(Place { file: "charts/a/templates/set.yaml".to_owned(), line: 0, column: 0 }),
                excerpt: None,
                hint: None,
                kind: None,
            }),
            unsure: vec!["Budget x: you may not".to_owned()],
        }
    }

    #[test]
    fn a_plan_is_told_object_by_object() {
        let all = Plan {
            objects: vec![shadow_object()],
            unchanged: vec![object("A", "other")],
            skipped: vec![Skipped { object: object("A", "z"), why: "it is gone".to_owned() }],
            ..Plan::default()
        };
        let expected = "\
A default/other  nothing
A default/x      revision 3 → 4  because charts/a/templates/set.yaml and 1 more  (hook Job migrate changed)
  ✗ charts/a/templates/set.yaml: the API server would refuse it
  ~ StatefulSet x   .spec.replicas 3 → 5   (taken from kubectl)
  + Budget x
  - Service x
  ! hook post-upgrade Job migrate would run
  ~ its status   .spec.replicas 3 → 5
  ? not asked of the API server: Budget x: you may not
A default/z  unknown: it is gone
1 of 2 would change: 1 created, 1 changed, 1 deleted, 1 hook; 1 would fail
";
        assert_eq!(plan(&all, false), expected);
        let full = plan(&all, true);
        assert!(
            full.contains(
                "  ~ StatefulSet x   (taken from kubectl)\n      .spec.replicas\n      - 3\n      + 5\n"
            ),
            "{full}"
        );
        assert!(all.changes() && all.fails() && !Plan::default().changes());
    }
}
