//! `/healthz`, `/livez`, `/readyz` and `/version`: what anybody may read without being known.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use opdev_apimachinery::body::{Body, full};
use opdev_apimachinery::version::{architecture, git_version, minor};
use serde_json::{Value, json};

/// The listed checks, by the names of the real server; its others have no counterpart here. Only those of the
/// store, and the shutdown, can fail: the others are done before the first request is answered.
const CHECKS: [&str; 7] = [
    "ping",
    "log",
    STORE,
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
];
/// The checks that only `/readyz` makes.
const READINESS: [&str; 3] = ["etcd-readiness", "informer-sync", SHUTDOWN];
const STORE: &str = "etcd";
const SHUTDOWN: &str = "shutdown";

/// The state that the checks read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// The server stops.
    pub(crate) stopping: bool,
    /// Nothing can be saved.
    pub broken: bool,
}

/// Answers a health path; `None` where the path is no health path.
pub(crate) fn health(path: &str, query: &str, state: State) -> Option<Response<Body>> {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let name = parts.next().filter(|name| matches!(*name, "healthz" | "livez" | "readyz"))?;
    let ready: &[&str] = if name == "readyz" { &READINESS } else { &[] };
    let failed = |check: &str| match check {
        STORE | "etcd-readiness" => state.broken,
        // A server that stops is alive, but nobody should send it anything any more.
        SHUTDOWN => state.stopping,
        _ => false,
    };
    let checks = CHECKS.iter().chain(ready);
    if let Some(check) = parts.next().filter(|check| !check.is_empty()) {
        return Some(match checks.into_iter().find(|known| **known == check) {
            None => text(StatusCode::NOT_FOUND, "404 page not found\n".to_owned()),
            Some(check) if failed(check) => {
                let why = format!("internal server error: {check} failed");
                text(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
            Some(_) => text(StatusCode::OK, "ok".to_owned()),
        });
    }
    let excluded: Vec<&str> = query.split('&').filter_map(|pair| pair.strip_prefix("exclude=")).collect();
    let (mut lines, mut fails) = (String::new(), false);
    for check in checks {
        lines.push_str(&if excluded.contains(check) {
            format!("[+]{check} excluded: ok\n")
        } else if failed(check) {
            fails = true;
            format!("[-]{check} failed: reason withheld\n")
        } else {
            format!("[+]{check} ok\n")
        });
    }
    let verbose = query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="));
    let code = if fails { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    if !verbose && !fails {
        return Some(text(code, "ok".to_owned()));
    }
    lines.push_str(&format!("{name} check {}\n", if fails { "failed" } else { "passed" }));
    Some(text(code, lines))
}

/// The body of `/version`. Nobody can take it for a real API server: `gitVersion` says who it is.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": minor().to_string(),
        "emulationMajor": "1",
        "emulationMinor": minor().to_string(),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": (minor() - 1).to_string(),
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

fn text(code: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn read(path: &str, query: &str, state: State) -> (u16, String) {
        let response = health(path, query, state).unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn health_is_ok_until_the_server_stops() {
        let (well, stopping) = (State::default(), State { stopping: true, broken: false });
        assert_eq!(read("/healthz", "", well).await, (200, "ok".to_owned()));
        assert_eq!(read("/readyz/ping", "", well).await, (200, "ok".to_owned()));
        assert_eq!(read("/livez/etcd", "", well).await, (200, "ok".to_owned()));
        assert_eq!(read("/healthz/poststarthook/rbac/bootstrap-roles", "", well).await.0, 200);
        assert_eq!(read("/readyz/none", "", well).await.0, 404);
        assert_eq!(read("/livez/shutdown", "", well).await.0, 404, "only readiness knows it");
        assert_eq!(read("/livez", "", stopping).await.0, 200);
        let (code, text) = read("/readyz", "verbose", stopping).await;
        assert_eq!(code, 500);
        assert!(text.contains("[-]shutdown failed") && text.ends_with("readyz check failed\n"), "{text}");
        assert!(read("/readyz", "verbose", well).await.1.ends_with("readyz check passed\n"));
        assert_eq!(read("/readyz", "exclude=shutdown", stopping).await.0, 200);
        assert!(health("/healthzz", "", well).is_none());
    }

    #[tokio::test]
    async fn a_store_that_cannot_be_written_is_not_well() {
        let broken = State { stopping: false, broken: true };
        let (code, text) = read("/livez", "", broken).await;
        assert_eq!(code, 500);
        assert!(text.starts_with("[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n"), "{text}");
        assert_eq!(read("/livez/etcd", "", broken).await.0, 500);
    }

    #[test]
    fn the_version_says_who_it_is() {
        assert!(version()["gitVersion"].as_str().unwrap().starts_with("v1.37.0+opdev-"));
    }
}
