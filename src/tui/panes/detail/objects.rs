//! Writes of a reconcile beside the status: object by object, as a difference, or whole where it was created
//! or deleted.

use super::changes;
use super::page::{DetailTab, Page, Stamp};
use super::reconcile::{NO_PASS, headline};
use crate::detail::parts::nothing;
use crate::keys::action::{Action, Do, Section, action};
use crate::pane::Tab;
use crate::text::{Row, clean};
use crate::theme::Role;
use opdev_event::{Action as Wrote, ObjectChange, Reconcile, words};
use opdev_object::yaml;
use opdev_state::State;
use serde_json::Value;
use std::sync::Arc;

impl Tab {
    pub(crate) const OBJECTS: Tab = Tab("objects");
}

/// The tab.
pub(super) struct Objects;

impl DetailTab for Objects {
    fn tab(&self) -> Tab {
        Tab::OBJECTS
    }

    fn title(&self) -> &'static str {
        "Objects"
    }

    fn action(&self) -> Action {
        action(Tab::OBJECTS.0, Do::Show(Tab::OBJECTS), &[], Section::Look)
            .about("objects", "Show what the selected reconcile wrote.")
    }

    fn place(&self) -> u8 {
        9
    }

    fn about(&self, page: &Page<'_>) -> Option<String> {
        page.reconcile_name()
    }

    fn stamp(&self, page: &Page<'_>) -> Stamp {
        Stamp::number(page.state.version)
    }

    fn rows(&self, page: &Page<'_>) -> Vec<Row> {
        let state = page.state;
        let Some(reconcile) = page.reconcile else { return nothing(NO_PASS, page.cells) };
        if reconcile.objects.is_empty() {
            return vec![
                headline(reconcile),
                Row::new(Role::Dim, "   This reconcile wrote no other objects."),
            ];
        }
        let mut rows = vec![headline(reconcile)];
        for change in &reconcile.objects {
            let (sign, role) = match change.action {
                Wrote::Created => ("+", Role::Added),
                Wrote::Updated => ("~", Role::Changed),
                Wrote::Deleted => ("-", Role::Removed),
            };
            let taken = match change.taken_from.as_slice() {
                [] => String::new(),
                names => format!("  fields taken back from {}", names.join(", ")),
            };
            rows.push(
                Row::new(role, format!("{sign} {}", change.object))
                    .and(Role::Dim, format!("  {}{taken}", words::action(change.action))),
            );
            rows.extend(changes::rows(&change.changes, 2));
            rows.extend(whole(page, state, reconcile, change));
        }
        rows
    }
}

/// Lines of an object that was created or deleted that are shown.
const WHOLE: usize = 60;

/// An object that was created as it was at first, and one that was deleted as it was at last, where that is
/// known.
fn whole(page: &Page<'_>, state: &State, reconcile: &Reconcile, change: &ObjectChange) -> Vec<Row> {
    let key = change.object.key();
    let (sign, role, object) = match change.action {
        Wrote::Updated => return Vec::new(),
        Wrote::Created => {
            let versions = state.versions(&key);
            let first = versions.and_then(|versions| {
                versions.backwards().take_while(|version| version.at >= reconcile.at).last()
            });
            ("+", Role::Added, first.filter(|first| first.number == 1).map(|first| first.object))
        }
        Wrote::Deleted => {
            let gone = state.archive.gone_of(&key).filter(|gone| gone.at >= reconcile.at);
            ("-", Role::Removed, gone.map(|gone| Arc::new(gone.seen.object.value().clone())))
        }
    };
    let Some(object) = object.filter(|_| change.changes.is_empty()) else { return Vec::new() };
    let text = yaml::to_string(&wished(&object));
    let mut rows: Vec<Row> =
        text.lines().take(WHOLE).map(|line| Row::new(role, format!("{sign}     {}", clean(line)))).collect();
    let more = text.lines().count().saturating_sub(WHOLE);
    if more > 0 {
        let key = page.keys.first(Do::Show(Tab::YAML));
        rows.push(Row::new(
            Role::Dim,
            format!("      … {more} more lines; {key} shows the whole of a selected object"),
        ));
    }
    rows
}

/// The wish of a user: without the fields that the API server and controllers add.
fn wished(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        for name in ["apiVersion", "kind", "status"] {
            fields.remove(name);
        }
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in [
            "managedFields",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "name",
            "namespace",
        ] {
            metadata.remove(name);
        }
        // The custom resource that it belongs to is named above.
        metadata.remove("ownerReferences");
    }
    let empty = object.pointer("/metadata").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    if let (true, Some(fields)) = (empty, object.as_object_mut()) {
        fields.remove("metadata");
    }
    object
}
