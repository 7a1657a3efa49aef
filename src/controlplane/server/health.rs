//! `/healthz`, `/livez`, `/readyz` and `/version`: what anybody may read without being known.

use crate::body::{Body, full};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

const CHECKS: [&str; 3] = ["ping", "log", "storage"];

/// The Kubernetes minor whose schemas and texts this server has.
pub(crate) const MINOR: &str = "36";

/// Answers a health path; `None` where the path is no health path.
pub(crate) fn health(path: &str, query: &str, stopping: bool) -> Option<Response<Body>> {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let name = parts.next().filter(|name| matches!(*name, "healthz" | "livez" | "readyz"))?;
    // A server that stops is alive, but nobody should send it anything any more.
    let failed = stopping && name == "readyz";
    if let Some(check) = parts.next().filter(|check| !check.is_empty()) {
        let known = CHECKS.contains(&check);
        let code = if known { StatusCode::OK } else { StatusCode::NOT_FOUND };
        return Some(text(code, if known { "ok" } else { "404 page not found\n" }.to_owned()));
    }
    let verbose = query.split('&').any(|pair| pair == "verbose" || pair.starts_with("verbose="));
    let code = if failed { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK };
    if !verbose && !failed {
        return Some(text(code, "ok".to_owned()));
    }
    let mut lines: String = CHECKS.iter().map(|check| format!("[+]{check} ok\n")).collect();
    if failed {
        lines.push_str("[-]shutdown failed: process is shutting down\n");
    } else if name == "readyz" {
        lines.push_str("[+]shutdown ok\n");
    }
    lines.push_str(&format!("{name} check {}\n", if failed { "failed" } else { "passed" }));
    Some(text(code, lines))
}

/// The body of `/version`. Nobody can take it for a real API server: `gitVersion` says who it is.
pub(crate) fn version() -> Value {
    json!({
        "major": "1",
        "minor": MINOR,
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": git_version(),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// `v1.36.0+opdev-0.1.0`: a semantic version whose build part names this program.
pub fn git_version() -> String {
    format!("v1.{MINOR}.0+opdev-{}", env!("CARGO_PKG_VERSION"))
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
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

    async fn read(path: &str, query: &str, stopping: bool) -> (u16, String) {
        let response = health(path, query, stopping).unwrap();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (code, String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn health_is_ok_until_the_server_stops() {
        assert_eq!(read("/healthz", "", false).await, (200, "ok".to_owned()));
        assert_eq!(read("/readyz/ping", "", false).await, (200, "ok".to_owned()));
        assert_eq!(read("/readyz/none", "", false).await.0, 404);
        assert_eq!(read("/livez", "", true).await.0, 200);
        let (code, text) = read("/readyz", "verbose", true).await;
        assert_eq!(code, 500);
        assert!(text.contains("[-]shutdown failed") && text.ends_with("readyz check failed\n"), "{text}");
        assert!(read("/readyz", "verbose", false).await.1.ends_with("readyz check passed\n"));
        assert!(health("/healthzz", "", false).is_none());
    }

    #[test]
    fn the_version_says_who_it_is() {
        assert!(version()["gitVersion"].as_str().unwrap().starts_with("v1.36.0+opdev-"));
    }
}
