//! The files of a version that are read beside its sources, before anything runs: samples, roles, and links
//! that lead out of the project.

use super::end::End;
use super::samples::Samples;
use anyhow::Result;
use opdev_generate::rbac::role_files::RoleFiles;
use opdev_project::files::links_out;
use opdev_project::program::kustomization::Kustomized;
use opdev_project::program::webhooks::Webhooks;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// Where a project keeps what it deploys, where nobody names another place.
const DEPLOYED: &str = "config";

/// The content of these files.
#[derive(Clone, Debug, Default)]
pub(super) struct EndFiles {
    pub(super) samples: Samples,
    /// The roles of its operator; none where not all that count are known.
    pub(super) roles: Vec<Value>,
    /// Notes about all of it.
    pub(super) notes: Vec<String>,
}

impl EndFiles {
    /// Reads them; that takes as long as the disk does.
    ///
    /// # Errors
    /// Where a sample cannot be read.
    pub(super) fn read(end: &End) -> Result<EndFiles> {
        let (root, manifests) = (&end.project.root, end.project.manifests.as_deref());
        let samples = Samples::read(end)?;
        let mut notes = samples.notes.clone();
        let links = links_out(root, &root.join(manifests.unwrap_or(Path::new(DEPLOYED))));
        notes.extend(links.iter().map(|(link, target)| {
            format!("{}: {link} leads out of the project, to {target}: what is there counts", end.name)
        }));
        let groups: BTreeSet<String> = end
            .sources
            .definitions
            .iter()
            .filter_map(|definition| definition.gvk())
            .map(|gvk| gvk.group)
            .collect();
        let files = RoleFiles::deployed(root, manifests, &groups);
        let unknown = files.missing.iter();
        notes.extend(unknown.map(|why| format!("{}: its roles are not known: {why}", end.name)));
        if let Some(why) = Webhooks::read(root, manifests, &Kustomized::default()).unbuilt {
            notes.push(format!("{}: what it converts is read from patches alone: {why}", end.name));
        }
        Ok(EndFiles { samples, roles: files.roles(), notes })
    }
}
