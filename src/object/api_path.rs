//! Paths of the Kubernetes API: which resource, namespace, object and subresource a request names, and its
//! verb.

/// Returns true if a path leads to Kubernetes Events, of the old group or the new one. A query may follow.
pub fn is_of_events(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    let in_group = path.starts_with("/api/v1/") || path.starts_with("/apis/events.k8s.io/");
    in_group && ApiPath::of(path).resource == "events"
}

/// The parts of a path of the Kubernetes API. A path without a resource, such as one of discovery, has none.
#[derive(Clone, Debug)]
pub struct ApiPath<'a> {
    /// Such as `deployments/web/status`.
    pub text: String,
    named: bool,
    /// The plural, such as `deployments`.
    pub resource: &'a str,
    /// Such as `status`; empty where the path leads to the object itself.
    pub subresource: &'a str,
    /// Empty for objects of the whole cluster.
    pub namespace: &'a str,
    /// Empty for a list.
    pub name: &'a str,
}

impl<'a> ApiPath<'a> {
    /// Reads a path, without its query.
    pub fn of(path: &'a str) -> Self {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let nothing = |text: String| ApiPath {
            text,
            named: true,
            resource: "",
            subresource: "",
            namespace: "",
            name: "",
        };
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            other => return nothing(other.join("/")),
        };
        let (namespace, rest) = match rest {
            // A namespace's own subresources.
            ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
            rest => ("", rest),
        };
        let [resource, tail @ ..] = rest else { return nothing("discovery".to_owned()) };
        let part = |at: usize| tail.get(at).copied().unwrap_or_default();
        let text = join(resource, tail);
        ApiPath { text, named: !tail.is_empty(), resource, subresource: part(1), namespace, name: part(0) }
    }

    /// The verb of authorization: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`.
    pub fn verb(&self, method: &str, query: Option<&str>) -> &'static str {
        match (method, self.named) {
            ("GET", _) if query.is_some_and(asks_to_watch) => "watch",
            ("GET", true) => "get",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            _ => "other",
        }
    }
}

/// Returns true if a query asks for events, as the API server reads it: any value of `watch` but `0` and
/// `false` does.
fn asks_to_watch(query: &str) -> bool {
    let parameters = query.split('&').map(|part| part.split_once('=').unwrap_or((part, "")));
    let mut values = parameters.filter(|(name, _)| *name == "watch").map(|(_, value)| value);
    values.next().is_some_and(is_true)
}

/// Reads the value of a boolean parameter as the API server does: only `0` and `false`, in any case of its
/// letters, mean no.
pub fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

fn join(resource: &str, tail: &[&str]) -> String {
    let mut text = resource.to_owned();
    for part in tail {
        text.push('/');
        text.push_str(part);
    }
    text
}

/// The plural of a kind by the rules of English that the generators of CRDs use. Kinds with a plural of their
/// own differ: ask the discovery of the server where there is one.
pub fn plural(kind: &str) -> String {
    let lower = kind.to_lowercase();
    if lower.ends_with('s') || lower.ends_with('x') || lower.ends_with("ch") {
        format!("{lower}es")
    } else if lower.ends_with('y') && !lower.ends_with("ay") && !lower.ends_with("ey") {
        format!("{}ies", &lower[..lower.len() - 1])
    } else {
        format!("{lower}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(method: &str, path: &str, query: Option<&str>) -> String {
        let target = ApiPath::of(path);
        format!("{} {}", target.verb(method, query), target.text)
    }

    #[test]
    fn events_are_those_of_kubernetes() {
        for path in ["/api/v1/namespaces/a/events", "/apis/events.k8s.io/v1/namespaces/a/events/x?dryRun=All"]
        {
            assert!(is_of_events(path), "{path}");
        }
        for path in ["/apis/calendar.io/v1/namespaces/a/events/x", "/api/v1/namespaces/events/pods/events"] {
            assert!(!is_of_events(path), "{path}");
        }
    }

    #[test]
    fn paths_become_verbs_and_targets() {
        let cases = [
            ("GET", "/api/v1/namespaces/default/secrets", None, "list secrets"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/d/deployments/web/scale",
                None,
                "patch deployments/web/scale",
            ),
            ("GET", "/api/v1/namespaces/default", None, "get namespaces/default"),
            ("PUT", "/api/v1/namespaces/x/finalize", None, "update namespaces/x/finalize"),
            ("GET", "/apis/a.b/v1/things", Some("limit=1&watch=true"), "watch things"),
            ("GET", "/apis/a.b/v1/things", Some("watch=True"), "watch things"),
            ("GET", "/apis/a.b/v1/things", Some("watch=False"), "list things"),
            // A real server takes `f` for yes.
            ("GET", "/apis/a.b/v1/things", Some("watch=f"), "watch things"),
            ("DELETE", "/api/v1/namespaces/d/pods", None, "deletecollection pods"),
            ("GET", "/version", None, "get version"),
            ("GET", "/apis/apps/v1", None, "get discovery"),
        ];
        for (method, path, query, expected) in cases {
            assert_eq!(line(method, path, query), expected);
        }
    }
}
