//! Logs of pods, for as long as somebody looks at them.

use jiff::Timestamp;
use opdev_object::meta::ObjectRef;
use serde::{Deserialize, Serialize};

/// A container whose log is wanted. One that was restarted is another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LogSource {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Its uid, where it is known: a successor of the same name is another pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The container.
    pub container: String,
    /// How often it was restarted.
    pub restarts: u64,
    /// True if the log is that of its last run before the newest restart.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub previous: bool,
}

impl LogSource {
    /// The pod.
    pub fn reference(&self) -> ObjectRef {
        ObjectRef {
            gvk: opdev_object::meta::Gvk::new("", "v1", "Pod"),
            namespace: Some(self.namespace.clone()),
            name: self.pod.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// Lines of a container's log, secrets masked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodLog {
    /// When they came.
    pub at: Timestamp,
    /// Whose they are.
    #[serde(flatten)]
    pub source: LogSource,
    /// True if the log begins anew: what was told of it before is told again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fresh: bool,
    /// The lines, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<PodLine>,
    /// Why no more come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

/// A line of a container's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PodLine {
    /// When it was written, by the clock of its node.
    pub at: Timestamp,
    /// The text.
    pub text: String,
}
