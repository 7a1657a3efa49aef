//! Where each dependency of a chart comes from, decided once for each of them: two may have one name.

use super::reference::is_registry;
use super::repositories::{Repository, is_same};
use super::web::shown_text;
use anyhow::{Result, bail};
use opdev_helm::chart::Dependency;
use std::path::{Path, PathBuf};
use url::Url;

/// Where a dependency comes from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// It lies in `charts/` already.
    Charts,
    /// A chart's folder on this machine.
    Folder(PathBuf),
    /// A registry.
    Registry,
    /// A repository that the user has named, with its credentials.
    Known(Repository),
    /// A repository of which only the address is known.
    Unknown,
}

/// The origin of each dependency. Names of repositories (`@name`, `alias:name`) become addresses.
///
/// # Errors
/// Folders that are missing, and repositories that nobody has named.
pub(super) fn find(wanted: &mut [Dependency], chart: &Path, known: &[Repository]) -> Result<Vec<Origin>> {
    let mut origins = Vec::new();
    let mut missing = Vec::new();
    for dependency in wanted {
        origins.push(match dependency.repository.as_str() {
            "" => Origin::Charts,
            text if text.starts_with("file://") => Origin::Folder(local(text, chart)?),
            text if is_registry(text) => Origin::Registry,
            text => {
                let name = text.strip_prefix('@').or_else(|| text.strip_prefix("alias:"));
                let fits = |one: &&Repository| match name {
                    Some(name) => one.name == name,
                    None => is_same(&one.url, text),
                };
                match known.iter().find(fits) {
                    Some(found) => {
                        if name.is_some() {
                            dependency.repository.clone_from(&found.url);
                        }
                        Origin::Known(found.clone())
                    }
                    None if name.is_none() && Url::parse(text).is_ok() => Origin::Unknown,
                    None => {
                        missing.push(if name.is_some() { text.to_owned() } else { shown_text(text) });
                        Origin::Unknown
                    }
                }
            }
        });
    }
    if !missing.is_empty() {
        let note = if missing.iter().all(|text| text.starts_with('@') || text.starts_with("alias:")) {
            ""
        } else {
            "\nNote that repositories must be URLs or aliases. For example, to refer to the \"example\" repository, use \
             \"https://charts.example.com/\" or \"@example\" instead of \"example\"."
        };
        bail!(
            "no repository definition for {}. Please add them via 'helm repo add'{note}",
            missing.join(", ")
        );
    }
    Ok(origins)
}

/// The folder that `file://` names, from the chart's own folder on.
///
/// # Errors
/// `directory PATH not found`
pub(super) fn local(repository: &str, chart: &Path) -> Result<PathBuf> {
    let path = chart.join(repository.strip_prefix("file://").unwrap_or(repository));
    if !path.exists() {
        bail!("directory {} not found", path.display());
    }
    Ok(path)
}
