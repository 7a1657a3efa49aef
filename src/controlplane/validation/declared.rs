//! From 1.37 on the real server judges some fields of built-in kinds by declarations in their types. What
//! these refuse is told behind everything else, and nothing is told twice.

use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::Resource;
use opdev_apimachinery::version::since;
use std::collections::HashSet;

/// The groups whose kinds are judged by hand alone, in another server of the same process.
const BY_HAND: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Fields that declarations judge, by the kind, with the reasons of what they refuse; measured.
const DECLARED: [(&str, &str, &str); 10] = [
    ("CronJob", "spec.schedule", "FieldValueRequired"),
    ("EndpointSlice", "endpoints[].addresses", "FieldValueRequired"),
    ("EndpointSlice", "endpoints[].addresses", "FieldValueTooMany"),
    ("HorizontalPodAutoscaler", "spec.minReplicas", "FieldValueInvalid"),
    ("HorizontalPodAutoscaler", "spec.maxReplicas", "FieldValueRequired"),
    ("ReplicationController", "spec.minReadySeconds", "FieldValueInvalid"),
    ("Role", "rules[].verbs", "FieldValueRequired"),
    ("ClusterRole", "rules[].verbs", "FieldValueRequired"),
    ("RoleBinding", "subjects[].name", "FieldValueRequired"),
    ("ClusterRoleBinding", "subjects[].name", "FieldValueRequired"),
];

/// The causes as the minor of this process tells them.
pub fn settle(resource: &Resource, causes: Vec<Cause>) -> Vec<Cause> {
    if !since(37) || resource.custom.is_some() || BY_HAND.contains(&resource.group.as_str()) {
        return causes;
    }
    let is_declared = |cause: &Cause| {
        let field = without_indices(&cause.field);
        DECLARED
            .iter()
            .any(|(kind, of, reason)| *kind == resource.kind && *of == field && *reason == cause.reason)
    };
    let mut seen = HashSet::new();
    let key = |cause: &Cause| (cause.field.clone(), cause.reason.clone(), cause.message.clone());
    let once: Vec<Cause> = causes.into_iter().filter(|cause| seen.insert(key(cause))).collect();
    let (declared, mut settled): (Vec<Cause>, Vec<Cause>) = once.into_iter().partition(is_declared);
    settled.extend(declared);
    settled
}

/// `subjects[3].name` as `subjects[].name`.
fn without_indices(field: &str) -> String {
    let mut parts = field.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| format!("{text}[]{}", part.split_once(']').map_or("", |(_, rest)| rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_go_and_the_rest_stays() {
        assert_eq!(without_indices("subjects[3].name"), "subjects[].name");
        assert_eq!(without_indices("a[0].b[1].c"), "a[].b[].c");
        assert_eq!(without_indices("spec.schedule"), "spec.schedule");
    }
}
