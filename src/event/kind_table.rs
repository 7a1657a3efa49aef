//! The table of one kind's objects as the API server prints it, and the kinds that have one.

use jiff::Timestamp;
use opdev_object::meta::{Gvk, ObjectRef};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A kind that the API server serves and whose objects can be listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedKind {
    /// In the version that the API server prefers.
    pub gvk: Gvk,
    /// The plural name, such as `pods`.
    pub plural: String,
    /// The singular name, such as `pod`.
    pub singular: String,
    /// The short names, such as `po`.
    pub short_names: Vec<String>,
    /// True if its objects are in namespaces.
    pub namespaced: bool,
    /// True if its objects can be watched.
    pub watched: bool,
}

impl ServedKind {
    /// The plural name with the group, as it stands in the name of a CRD: `deployments.apps`. Without a group
    /// it is the plural.
    pub fn full_name(&self) -> String {
        match self.gvk.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// Returns true if a word means this kind: its plural, singular, kind or short name, each alone or with
    /// the group (or the beginning of it) behind a dot. Case is left aside.
    pub fn is_called(&self, word: &str) -> bool {
        let names = || {
            let own = [&self.plural, &self.singular, &self.gvk.kind];
            own.into_iter().chain(&self.short_names).filter(|name| !name.is_empty())
        };
        let is = |name: &str| names().any(|known| known.eq_ignore_ascii_case(name));
        match word.split_once('.') {
            None => is(word),
            Some((name, group)) => is(name) && self.group_begins_with(group),
        }
    }

    /// `deployments.v1.apps` and `deployments.apps` are both words of kubectl.
    fn group_begins_with(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let group = text.strip_prefix(&format!("{}.", self.gvk.version)).unwrap_or(&text);
        self.gvk.group == group || (!group.is_empty() && self.gvk.group.starts_with(&format!("{group}.")))
    }
}

/// The table that is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableQuery {
    /// The kind in a word of the user: `pods`, `po`, `Deployment`, `deploy.apps`.
    pub kind: String,
    /// The only namespace; all that the user works in where it is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// A table as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindTable {
    /// The request.
    pub query: TableQuery,
    /// When it was read or has changed.
    pub at: Timestamp,
    /// The kind that the word means; `None` until that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ServedKind>,
    /// The only namespace that is listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The API server's own columns.
    pub columns: Vec<TableColumn>,
    /// One for each object, by namespace and name.
    pub rows: Vec<Arc<TableRow>>,
    /// How many objects are still to be read; 0 once the list is complete.
    pub missing: u64,
    /// True if the list was read to its end.
    pub complete: bool,
    /// Why there is no table, or why it does not follow the objects any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// A note about the listed objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableColumn {
    /// Its heading.
    pub name: String,
    /// True if it shows only where there is room, as with `kubectl get -o wide`.
    pub wide: bool,
    /// True if numbers stand in it.
    pub number: bool,
}

/// One object of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TableRow {
    /// The object.
    #[serde(rename = "ref")]
    pub object_ref: ObjectRef,
    /// `metadata.creationTimestamp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// `metadata.deletionTimestamp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleting: Option<String>,
    /// `metadata.labels`.
    pub labels: Value,
    /// `metadata.finalizers`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// One for each column.
    pub cells: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_all_its_names() {
        let kind = ServedKind {
            gvk: Gvk::new("networking.k8s.io", "v1", "Ingress"),
            plural: "ingresses".to_owned(),
            singular: "ingress".to_owned(),
            short_names: vec!["ing".to_owned()],
            namespaced: true,
            watched: true,
        };
        for word in [
            "ingresses",
            "Ingress",
            "ING",
            "ingress.networking.k8s.io",
            "ing.networking",
            "ingresses.v1.networking.k8s.io",
        ] {
            assert!(kind.is_called(word), "{word}");
        }
        for word in ["in", "ingress.apps", "ingress.net", "ingress.", "", ".networking"] {
            assert!(!kind.is_called(word), "{word}");
        }
        let core = ServedKind { gvk: Gvk::new("", "v1", "Pod"), plural: "pods".to_owned(), ..kind };
        assert!(core.is_called("pods.v1.") && core.is_called("pod.") && !core.is_called("pods.apps"));
    }
}
