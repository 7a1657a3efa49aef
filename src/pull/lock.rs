//! `Chart.lock`: the versions that were taken, and the digest by which Helm sees whether they are still those
//! wanted. Pure.

use anyhow::{Context as _, Result};
use opdev_helm::chart::Dependency;
use opdev_object::yaml;
use opdev_os::sha256;
use serde_json::{Value, json};

/// The content of a lock.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lock {
    pub(super) dependencies: Vec<Dependency>,
    pub(super) digest: String,
}

impl Lock {
    /// Reads a lock as a chart was loaded with it.
    ///
    /// # Errors
    /// Fields of another type.
    pub(super) fn read(value: &Value) -> Result<Lock> {
        let list =
            value.get("dependencies").filter(|list| !list.is_null()).cloned().unwrap_or_else(|| json!([]));
        let dependencies =
            serde_json::from_value(list).context("the dependencies of the lock cannot be read")?;
        let digest = value["digest"].as_str().unwrap_or_default().to_owned();
        Ok(Lock { dependencies, digest })
    }

    /// The text of the file. `generated` is a time of RFC 3339.
    pub(super) fn text(&self, generated: &str) -> String {
        yaml::to_string(&json!({
            "dependencies": self.dependencies,
            "digest": self.digest,
            "generated": generated,
        }))
    }
}

/// The digest of what is wanted and what was taken.
///
/// # Errors
/// What cannot be written as JSON.
pub(super) fn digest(wanted: &[Dependency], locked: &[Dependency]) -> Result<String> {
    Ok(sha256::named(go_json(&serde_json::to_string(&[wanted, locked])?)))
}

/// The digest of Helm 2, which knew only what is wanted.
///
/// # Errors
/// What cannot be written as JSON.
pub(super) fn digest_of_helm_2(wanted: &[Dependency]) -> Result<String> {
    #[derive(serde::Serialize)]
    struct All<'a> {
        dependencies: &'a [Dependency],
    }
    let text = go_json(&serde_json::to_string(&All { dependencies: wanted })?);
    Ok(sha256::named(text))
}

/// The characters that Go escapes in JSON and others do not; they stand only in texts.
fn go_json(text: &str) -> String {
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")]
        .into_iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dependency(name: &str, version: &str, repository: &str) -> Dependency {
        Dependency {
            name: name.to_owned(),
            version: version.to_owned(),
            repository: repository.to_owned(),
            ..Dependency::default()
        }
    }

    #[test]
    fn a_lock_is_written_as_helm_writes_it() {
        let locked = vec![dependency("web", "1.2.0", "https://charts.example.com")];
        let lock = Lock { dependencies: locked, digest: "sha256:12".to_owned() };
        assert_eq!(
            lock.text("2026-01-02T03:04:05.000000006Z"),
            "dependencies:\n- name: web\n  repository: https://charts.example.com\n  version: 1.2.0\ndigest: sha256:12\n\
             generated: \"2026-01-02T03:04:05.000000006Z\"\n"
        );
        let read = yaml::from_str(&lock.text("x")).unwrap();
        assert_eq!(Lock::read(&read).unwrap(), lock);
    }

    #[test]
    fn ranges_are_escaped_as_go_does() {
        let text = go_json("[\">=1.0 <2 & x\"]");
        assert_eq!(text, "[\"\\u003e=1.0 \\u003c2 \\u0026 x\"]");
    }
}
