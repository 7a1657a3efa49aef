//! Rules that the operator's roles lack, where it runs as its ServiceAccount.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A rule without which calls of the operator are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MissingRule {
    /// When a verb was refused for the first time for want of it.
    pub at: Timestamp,
    /// The verbs that were refused.
    pub verbs: Vec<String>,
    /// The verbs that the rule allows: those, and the ones that would be refused a few calls later.
    pub allow: Vec<String>,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with its subresource as `pods/log`.
    pub resource: String,
    /// The namespaces of the refused calls; empty where they were for the whole cluster.
    pub namespaces: Vec<String>,
    /// The API server's words.
    pub message: String,
    /// The role that it belongs in, such as `ClusterRole manager-role`.
    pub role: String,
    /// The file it belongs in, relative to the project's root.
    pub file: String,
}

impl MissingRule {
    /// The rule as YAML for people, an item of the role's `rules`, in three lines.
    pub fn lines(&self) -> [String; 3] {
        let group = if self.group.is_empty() { "\"\"" } else { &self.group };
        [
            format!("- apiGroups: [{group}]"),
            format!("  resources: [{}]", self.resource),
            format!("  verbs: [{}]", self.allow.join(", ")),
        ]
    }
}
