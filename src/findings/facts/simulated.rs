//! Errors that may be no fault of the operator: on the embedded control plane pods are simulated, and the
//! application in them does not answer.

use super::Table;
use opdev_event::evidence::Evidence;

/// Refusals of opdev because pods are simulated.
const REFUSED: [&str; 3] = ["simulated", "/exec", "/proxy"];
/// The names and addresses under which a program reaches pods on the embedded control plane.
const ADDRESSES: [&str; 4] = [".svc", "10.244.", "10.96.", "172.18."];

/// Answers of the API server, which may name an address, too.
const ANSWERS: [&str; 5] = ["is invalid", "is forbidden", "not found", "already exists", "webhook"];

/// Returns true if an error comes from simulated pods, and is no answer of the API server.
pub fn names_pods(error: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
    (error.contains("simulated") || has(&ADDRESSES)) && !has(&ANSWERS)
}

impl Table {
    /// True if a simulated pod may be why the reconcile failed: it looked for pods or their addresses, and no
    /// answer of the API server or of the cache is in its error.
    pub(crate) fn fails_by_pods(&self, evidence: &Evidence) -> bool {
        let error = evidence.error.as_str();
        let has = |words: &[&str]| words.iter().any(|word| error.contains(word));
        let answered = evidence
            .refusals
            .iter()
            .any(|refusal| !refusal.message.is_empty() && error.contains(&refusal.message));
        let told = answered || error.ends_with("\" not found");
        // As a Service is reached from everywhere in a cluster: `db.default:5432`.
        let namespace = evidence.object.namespace.as_deref().unwrap_or("default");
        let by_service = error.contains(&format!(".{namespace}:"));
        self.embedded && (has(&REFUSED) || !told && (evidence.pods || by_service || has(&ADDRESSES)))
    }
}
