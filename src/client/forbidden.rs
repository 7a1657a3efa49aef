//! A right that the API server says somebody lacks: read off the words of its refusal. Pure.

use std::time::Duration;

/// How long a refusal for want of a right stands before it is tried again: the first time, and at most. A
/// right is often given a moment after whoever needs it has started.
pub const FORBIDDEN_PAUSE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));
/// The hint on such a refusal.
pub const FORBIDDEN_HINT: &str = "`opdev rbac --for USER -n NAMESPACE` writes what an administrator can give you; \
                                         opdev asks again by itself, after 5 minutes at the latest";

/// A call that was refused for want of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRight {
    pub verb: String,
    pub group: String,
    pub resource: String,
    /// Empty where it was for the whole cluster.
    pub namespace: String,
    /// The API server's words.
    pub message: String,
}

impl MissingRight {
    /// Reads `… cannot list resource "pods" in API group "" in the namespace "a"`; `None` where the message
    /// is another one, as those of admission are.
    pub fn parse(message: &str) -> Option<MissingRight> {
        let (_, rest) = message.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let namespace = rest.strip_prefix(" in the namespace \"").and_then(|rest| rest.split_once('"'));
        Some(MissingRight {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.map(|(namespace, _)| namespace.to_owned()).unwrap_or_default(),
            message: message.to_owned(),
        })
    }

    /// The missing right, as a person says it: `patch deployments.apps in namespace a`.
    pub fn words(&self) -> String {
        let dot = if self.group.is_empty() { "" } else { "." };
        let place = match self.namespace.as_str() {
            "" => "in the cluster".to_owned(),
            namespace => format!("in namespace {namespace}"),
        };
        format!("{} {}{dot}{} {place}", self.verb, self.resource, self.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_off_its_words() {
        let text = r#"ingresses.networking.k8s.io "x" is forbidden: User "system:serviceaccount:system:controller-manager" cannot patch resource "ingresses/status" in API group "networking.k8s.io" in the namespace "default": RBAC: x"#;
        let found = MissingRight::parse(text).unwrap();
        assert_eq!(
            (found.verb.as_str(), found.group.as_str(), found.resource.as_str(), found.namespace.as_str()),
            ("patch", "networking.k8s.io", "ingresses/status", "default")
        );
        assert_eq!(found.words(), "patch ingresses/status.networking.k8s.io in namespace default");
        let text =
            r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope"#;
        let found = MissingRight::parse(text).unwrap();
        assert_eq!((found.namespace.as_str(), found.words().as_str()), ("", "list pods in the cluster"));
        assert_eq!(MissingRight::parse("pods \"x\" is forbidden: exceeded quota: q"), None);
    }
}
