//! The kubectl command that does what a key did, or shows what is selected. Pure.

use crate::event::{Propagation, Request, shell};
use crate::state::State;
use opdev_object::meta::{Gvk, ObjectRef};

/// The command that does what a request does, one a line; nothing where kubectl has none for it.
pub(super) fn of(request: &Request, state: &State) -> Option<String> {
    let rest = match request {
        Request::Apply { path } => {
            format!("apply --server-side --field-manager=opdev --force-conflicts -f {}", shell::word(path))
        }
        Request::Scale { object, replicas } => format!("scale --replicas={replicas} {}", target(object)),
        Request::Delete { object, propagation, grace } => {
            let cascade = match propagation {
                Propagation::Background => "background",
                Propagation::Foreground => "foreground",
                Propagation::Orphan => "orphan",
            };
            let grace = grace.map_or_else(String::new, |seconds| format!(" --grace-period={seconds}"));
            format!("delete {} --cascade={cascade}{grace}", target(object))
        }
        Request::DropFinalizers { object, .. } => {
            format!("patch {} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'", target(object))
        }
        Request::FailPod { pod, how } => {
            let change = how.map_or_else(|| "-".to_owned(), |how| format!("={} --overwrite", how.word()));
            format!("annotate {} opdev.dev/fail{change}", target(pod))
        }
        Request::Edit { object } => format!("edit {}", target(object)),
        Request::Run { program } => {
            let set = program.env.iter().map(|(name, value)| format!("{name}={} ", shell::word(value)));
            return Some(set.collect::<String>() + &shell::line(&program.command));
        }
        Request::Each { requests } => {
            let lines: Vec<String> = requests.iter().filter_map(|request| of(request, state)).collect();
            return (!lines.is_empty()).then(|| lines.join("\n"));
        }
        Request::Reconcile { .. }
        | Request::Pause { .. }
        | Request::Resume { .. }
        | Request::Step { .. }
        | Request::ApplyHeld { .. }
        | Request::DiscardHeld { .. }
        | Request::HoldCharts { .. }
        | Request::Disturb { .. }
        | Request::Trust { .. }
        | Request::New { .. }
        | Request::Edited { .. }
        | Request::Write { .. }
        | Request::Reopen { .. }
        | Request::Discard { .. }
        | Request::Undo { .. }
        | Request::AddRules
        | Request::FetchDependencies
        | Request::PodLogs { .. }
        | Request::Check { .. }
        | Request::Unlock { .. }
        | Request::Freeze { .. }
        | Request::Unfreeze { .. }
        | Request::Look { .. }
        | Request::ListKinds
        | Request::ShowTable { .. }
        | Request::SaveText { .. }
        | Request::ReadRow { .. }
        | Request::ListPaths { .. }
        | Request::ListFiles
        | Request::Remember { .. }
        | Request::ExplainValues { .. }
        | Request::Reload
        | Request::Cancel { .. }
        | Request::Leave { .. }
        | Request::Switch { .. }
        | Request::Quit { .. } => return None,
    };
    Some(format!("{}{rest}", kubectl(state)))
}

/// The command that shows an object.
pub(super) fn get(object: &ObjectRef, state: &State) -> String {
    format!("{}get {} -o yaml", kubectl(state), target(object))
}

/// kubectl with what leads it to the API server that opdev talks to, as words to start it with.
pub(super) fn words(state: &State) -> Vec<String> {
    let mut words = vec!["kubectl".to_owned()];
    if let Some(started) = state.started.as_ref().filter(|started| !started.cluster.embedded) {
        words.extend(["--context".to_owned(), started.cluster.name.clone()]);
    }
    words
}

/// kubectl, talking to the API server that opdev talks to.
fn kubectl(state: &State) -> String {
    let path = state.started.as_ref().and_then(|started| started.kubeconfig.as_ref());
    let path = path.map_or_else(String::new, |path| format!("KUBECONFIG={} ", shell::word(path)));
    format!("{path}{} ", shell::line(&words(state)))
}

fn target(object: &ObjectRef) -> String {
    let Gvk { group, version, kind } = &object.gvk;
    let kind = kind.to_lowercase();
    let kind = if group.is_empty() { kind } else { format!("{kind}.{version}.{group}") };
    let namespace =
        object.namespace.as_ref().map_or_else(String::new, |namespace| format!(" -n {namespace}"));
    format!("{kind}/{}{namespace}", object.name)
}
