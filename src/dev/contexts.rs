//! Which contexts the kubeconfig knows, to be shown. Choosing one is `cluster`'s business.

use super::cluster::Choice;
use kube::config::Kubeconfig;

/// The names of the contexts, in the order of the file; none where there is no kubeconfig.
pub(super) fn names(choice: &Choice) -> Vec<String> {
    let kubeconfig = match &choice.kubeconfig {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    // Without one, or with a broken one, there is nothing to list; connecting says what is wrong with it.
    kubeconfig
        .map(|known| known.contexts.into_iter().map(|context| context.name).collect())
        .unwrap_or_default()
}
