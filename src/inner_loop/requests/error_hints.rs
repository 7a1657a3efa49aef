//! Hints about the errors of requests.

use opdev_client::ApiError;
use opdev_event::{ObjectTask, Task};

/// The hint on an error.
pub(super) fn hint(task: &Task, error: &anyhow::Error) -> Option<String> {
    match (task, ApiError::of(error)?.code()?) {
        (Task::Object(ObjectTask::Scale { .. }), 422) => {
            Some("the schema of the kind refuses this number".to_owned())
        }
        (Task::Object(ObjectTask::Apply { .. }), 422) => {
            Some("correct the file and apply it again".to_owned())
        }
        (_, 403) => Some("the kubeconfig's user may not do this; see `kubectl auth can-i --list`".to_owned()),
        (_, 404) => Some("it is gone already".to_owned()),
        _ => None,
    }
}
