//! The contexts of the kubeconfig: their names, to be shown, and what makes another program use the one that
//! opdev uses. Choosing one is `cluster`'s business.

use super::{Choice, kubeconfig_files};
use anyhow::{Context as _, Result};
use kube::config::Kubeconfig;
use opdev_event::Cluster;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::sha256;
use serde_json::json;
use std::path::Path;

/// The names of the contexts, in the order of the file; none where there is no kubeconfig.
pub fn names(choice: &Choice) -> Vec<String> {
    let kubeconfig = match &choice.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    // Without one, or with a broken one, there is nothing to list; connecting says what is wrong with it.
    kubeconfig
        .map(|known| known.contexts.into_iter().map(|context| context.name).collect())
        .unwrap_or_default()
}

/// The variables that make kubectl, helm and the like use this cluster, whatever the current context is:
/// `KUBECONFIG` lists the files that opdev read, and before them one that names the context and nothing else.
/// Of the files in `KUBECONFIG` the first one that has a current context decides, so nothing of the user's
/// files is copied or changed.
///
/// # Errors
/// Where that file cannot be written, or a path cannot stand in the list.
pub fn environment(
    choice: &Choice,
    cluster: &Cluster,
    own: Option<&Path>,
    state_folder: &PrivateFolder,
) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    if cluster.embedded {
        files.extend(own.map(Path::to_owned));
    } else if let Some(read) = kubeconfig_files(choice)? {
        let context = json!({"apiVersion": "v1", "kind": "Config", "current-context": cluster.name});
        let digest = &sha256::digits(&cluster.name)[..12];
        let name = format!("context-{digest}.json");
        state_folder.write(&name, context.to_string().as_bytes())?;
        files.push(state_folder.path().join(name));
        files.extend(read);
    }
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let files: Vec<_> = files.iter().map(std::path::absolute).collect::<Result<_, _>>()?;
    let list = std::env::join_paths(files).context("a path with a colon cannot stand in KUBECONFIG")?;
    let list = list.into_string().ok().context("KUBECONFIG is no UTF-8")?;
    Ok(vec![("KUBECONFIG".to_owned(), list)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(list: &str) -> Kubeconfig {
        let files = std::env::split_paths(list).map(|path| Kubeconfig::read_from(path).unwrap());
        files.reduce(|so_far, next| so_far.merge(next).unwrap()).unwrap()
    }

    #[test]
    fn other_programs_use_the_context_that_was_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let state = PrivateFolder::make(&folder.path().join("state")).unwrap();
        let file = folder.path().join("config");
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: prod\ncontexts:\n\
            - {name: prod, context: {cluster: p, user: u}}\n- {name: 'a/b:c', context: {cluster: d, user: u}}\n";
        std::fs::write(&file, text).unwrap();
        let choice = Choice { kubeconfig: Some(file), ..Choice::default() };
        for context in ["a/b:c", "prod"] {
            let cluster = Cluster { name: context.to_owned(), ..Cluster::default() };
            let set = environment(&choice, &cluster, None, &state).unwrap();
            let [(name, list)] = set.as_slice() else { panic!("{set:?}") };
            assert_eq!(name, "KUBECONFIG");
            let config = merged(list);
            assert_eq!((config.current_context.as_deref(), config.contexts.len()), (Some(context), 2));
        }
        let cluster = Cluster { embedded: true, ..Cluster::default() };
        let set = environment(&choice, &cluster, Some(Path::new("/p/.opdev/kubeconfig")), &state).unwrap();
        assert_eq!(set, [("KUBECONFIG".to_owned(), "/p/.opdev/kubeconfig".to_owned())]);
    }
}
