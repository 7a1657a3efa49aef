//! Makes a pod of the embedded control plane fail, or lets it recover: by the annotation that its stages look
//! at (`src/controlplane/controllers/assets/stages/pod-fail.yaml`).

use super::undo_list::Undo;
use crate::Requests;
use crate::outcome::Done;
use anyhow::{Result, bail};
use http::Method;
use opdev_client::OWN_MANAGER;
use opdev_event::PodFailure;
use opdev_object::meta::ObjectRef;
use serde_json::json;

/// The annotation that the stages look at.
const ANNOTATION: &str = "opdev.dev/fail";

impl Requests {
    /// `None` takes the failure away.
    pub(crate) async fn fail_pod(&self, pod: &ObjectRef, how: Option<PodFailure>) -> Result<Done> {
        if !self.cluster.embedded {
            bail!(
                "pods fail on demand on the embedded control plane only; here a container would have to fail by itself"
            );
        }
        let (path, before) = self.live(pod).await?;
        let phase = before.pointer("/status/phase").and_then(|phase| phase.as_str()).unwrap_or("Pending");
        match (how, phase) {
            (_, "Succeeded" | "Failed") => bail!("{pod} has ended ({phase}); what ended does not come back"),
            (Some(_), "Pending") => {
                bail!(
                    "{pod} is still pending; put {ANNOTATION} into the pod template to keep pods from starting"
                )
            }
            _ => {}
        }
        let word = how.map(PodFailure::word);
        let body = json!({"metadata": {"annotations": {ANNOTATION: word}}});
        let uri = format!("{path}?fieldManager={OWN_MANAGER}");
        let (_, warnings) =
            self.send(Method::PATCH, &uri, "application/merge-patch+json", Some(&body)).await?;
        let (after, _) = self.send(Method::GET, &path, "application/json", None).await?;
        let summary = match how {
            Some(how) => format!("{pod} {}", how.told()),
            None => format!("{pod} may recover"),
        };
        // A pod that has ended stays ended.
        let undone = how.is_none_or(|how| how != PodFailure::Evict);
        let undo = Undo::Restore { object: pod.clone(), before, after };
        Ok(Done { summary, warnings, undo: if undone { vec![undo] } else { Vec::new() }, ..Done::default() })
    }
}
