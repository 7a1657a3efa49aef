//! The kubectl command that does what a key did, or shows what is selected. Pure.

use opdev_event::{DraftTask, ObjectTask, ProjectTask, Propagation, Request, Task, shell};
use opdev_object::meta::{Gvk, ObjectRef};
use opdev_state::State;

/// The command that does what a request does, one a line; nothing where kubectl has none for it.
pub fn of(request: &Request, state: &State) -> Option<String> {
    match request {
        Request::Task(task) => of_task(task, state),
        Request::View(_) | Request::Session(_) | Request::LookAgain { .. } => None,
    }
}

fn of_task(task: &Task, state: &State) -> Option<String> {
    match task {
        Task::Object(task) => Some(format!("{}{}", kubectl(state), arguments(task))),
        Task::Draft(DraftTask::Edit { object }) => Some(format!("{}edit {}", kubectl(state), target(object))),
        Task::Project(ProjectTask::Run { program }) => {
            let set = program.env.iter().map(|(name, value)| format!("{name}={} ", shell::word(value)));
            Some(set.collect::<String>() + &shell::line(&program.command))
        }
        Task::Project(ProjectTask::Background { command }) => Some(command.line()),
        Task::Each { tasks } => {
            let lines: Vec<String> = tasks.iter().filter_map(|task| of_task(task, state)).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        Task::Operator(_)
        | Task::Draft(_)
        | Task::Sources(_)
        | Task::Cluster(_)
        | Task::Project(_)
        | Task::Cancel { .. } => None,
    }
}

/// The words after `kubectl`.
fn arguments(task: &ObjectTask) -> String {
    match task {
        ObjectTask::Apply { path } => {
            format!("apply --server-side --field-manager=opdev --force-conflicts -f {}", shell::word(path))
        }
        ObjectTask::Scale { object, replicas } => format!("scale --replicas={replicas} {}", target(object)),
        ObjectTask::Delete { object, propagation, grace } => {
            let cascade = match propagation {
                Propagation::Background => "background",
                Propagation::Foreground => "foreground",
                Propagation::Orphan => "orphan",
            };
            let grace = grace.map_or_else(String::new, |seconds| format!(" --grace-period={seconds}"));
            format!("delete {} --cascade={cascade}{grace}", target(object))
        }
        ObjectTask::DropFinalizers { object, .. } => {
            format!("patch {} --type=merge -p '{{\"metadata\":{{\"finalizers\":null}}}}'", target(object))
        }
        ObjectTask::FailPod { pod, how } => {
            let change = how.map_or_else(|| "-".to_owned(), |how| format!("={} --overwrite", how.word()));
            format!("annotate {} opdev.dev/fail{change}", target(pod))
        }
    }
}

/// The command that shows an object.
pub fn get(object: &ObjectRef, state: &State) -> String {
    format!("{}get {} -o yaml", kubectl(state), target(object))
}

/// kubectl with what leads it to the API server that opdev talks to, as words to start it with.
pub fn words(state: &State) -> Vec<String> {
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
