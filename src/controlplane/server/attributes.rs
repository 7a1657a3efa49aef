//! The attributes of a request, read off its method, path and query, as rules speak of it. Never looks a
//! resource up: what nobody serves is authorized first, too.

use opdev_admission::authorization::Attributes;
use opdev_handlers::path::{Query, decoded};

/// Reads the attributes of a request.
pub(super) fn of_request(method: &str, path: &str, query: &str) -> Attributes {
    resource(method, path, query).unwrap_or_else(|| Attributes {
        verb: method.to_lowercase(),
        path: Some(decoded(path).unwrap_or_else(|| path.to_owned())),
        ..Attributes::default()
    })
}

/// `None` where the path names no resource.
fn resource(method: &str, path: &str, query: &str) -> Option<Attributes> {
    let parts: Option<Vec<String>> = path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
    let parts = parts?;
    let (group, mut rest) = match parts.first()?.as_str() {
        "api" => (String::new(), parts.get(2..)?),
        "apis" => (parts.get(1)?.clone(), parts.get(3..)?),
        _ => return None,
    };
    let first = rest.first()?;
    let mut verb = match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    };
    if (first == "watch" || first == "proxy") && rest.len() > 1 {
        verb = if first == "watch" { "watch" } else { "proxy" };
        rest = &rest[1..];
    }
    let mut namespace = String::new();
    if rest[0] == "namespaces" && rest.len() > 1 {
        namespace.clone_from(&rest[1]);
        if rest.len() > 2 && !matches!(rest[2].as_str(), "status" | "finalize") {
            rest = &rest[2..];
        }
    }
    let part = |index: usize| rest.get(index).cloned().unwrap_or_default();
    let mut wanted = Attributes {
        verb: verb.to_owned(),
        group,
        resource: part(0),
        subresource: part(2),
        namespace,
        name: part(1),
        path: None,
    };
    if wanted.name.is_empty() && wanted.verb == "get" {
        let query = Query::parse(query);
        wanted.verb = if query.flag("watch") == Some(true) { "watch" } else { "list" }.to_owned();
        wanted.name = named(query.get("fieldSelector").unwrap_or_default()).unwrap_or_default();
    }
    if wanted.name.is_empty() && wanted.verb == "delete" {
        wanted.verb = "deletecollection".to_owned();
    }
    Some(wanted)
}

/// The name that a field selector asks for exactly.
fn named(selector: &str) -> Option<String> {
    let term = selector.split(',').find_map(|term| term.strip_prefix("metadata.name="))?;
    Some(term.trim_start_matches('=').to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, path: &str, query: &str) -> String {
        let wanted = of_request(method, path, query);
        let place = match &wanted.path {
            Some(path) => path.clone(),
            None => format!("{}:{} {}/{}", wanted.group, wanted.combined(), wanted.namespace, wanted.name),
        };
        format!("{} {place}", wanted.verb)
    }

    #[test]
    fn a_request_is_what_rules_speak_of() {
        for (method, path, query, expected) in [
            ("GET", "/api/v1/namespaces/a/pods", "", "list :pods a/"),
            ("GET", "/api/v1/namespaces/a/pods", "watch=1", "watch :pods a/"),
            ("GET", "/api/v1/watch/namespaces/a/pods/b", "", "watch :pods a/b"),
            ("GET", "/api/v1/namespaces/a/pods", "fieldSelector=metadata.name%3Db", "list :pods a/b"),
            ("GET", "/api/v1/namespaces/a", "", "get :namespaces a/a"),
            ("PUT", "/api/v1/namespaces/a/finalize", "", "update :namespaces/finalize a/a"),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/a/deployments/b/scale",
                "",
                "patch apps:deployments/scale a/b",
            ),
            ("DELETE", "/apis/apps/v1/namespaces/a/deployments", "", "deletecollection apps:deployments a/"),
            ("DELETE", "/api/v1/nodes/n", "", "delete :nodes /n"),
            ("HEAD", "/api/v1/nodes/n", "", "get :nodes /n"),
            ("POST", "/api/v1/pods/x/y/z", "", "create :pods/y /x"),
            ("GET", "/apis/apps/v1", "", "get /apis/apps/v1"),
            ("POST", "/foo", "", "post /foo"),
        ] {
            assert_eq!(read(method, path, query), expected, "{method} {path}");
        }
    }
}
