//! `repositories.yaml`: the chart repositories that `helm repo add` has written down, with their credentials.

use super::Access;
use anyhow::{Context as _, Result};
use opdev_object::yaml::{self, Kind, Node};
use opdev_os::read;
use std::path::{Path, PathBuf};
use url::Url;

/// A chart repository that the user has named.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) name: String,
    pub(super) url: String,
    pub(super) access: Access,
}

/// Reads the file; one that is missing names no repository.
///
/// # Errors
/// Where it cannot be read or is no YAML.
pub(super) fn read(path: &Path) -> Result<Vec<Repository>> {
    let text = match read::text(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", path.display())),
    };
    let node = yaml::parse(&text).with_context(|| format!("failed to load {}", path.display()))?;
    let entries = node.get("repositories").map(Node::items).unwrap_or_default();
    Ok(entries.iter().map(repository).collect())
}

fn repository(node: &Node) -> Repository {
    let text = |key: &str| node.get(key).and_then(Node::to_text).unwrap_or_default();
    let is_set = |key: &str| node.get(key).is_some_and(|value| value.kind == Kind::Bool(true));
    let file = |key: &str| Some(text(key)).filter(|path| !path.is_empty()).map(PathBuf::from);
    let access = Access {
        username: text("username"),
        password: text("password").into(),
        ca_file: file("caFile"),
        cert_file: file("certFile"),
        key_file: file("keyFile"),
        skip_verification: is_set("insecure_skip_tls_verify"),
        plain_http: false,
        pass_to_all_hosts: is_set("pass_credentials_all"),
        // Nobody said this on the command line.
        of_command_line: Some(Box::default()),
    };
    Repository { name: text("name"), url: text("url"), access }
}

/// Returns true if two addresses name one repository: a slash at the end does not count.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let plain = |text: &str| match Url::parse(text) {
        Ok(url) => url.as_str().trim_end_matches('/').to_owned(),
        Err(_) => text.trim_end_matches('/').to_owned(),
    };
    plain(one) == plain(other)
}
