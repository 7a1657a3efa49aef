//! Names of tasks, whether each writes to the cluster, and what is known of one that is cancelled.

use super::{ClusterTask, DraftTask, NewFrom, ObjectTask, OperatorTask, ProjectTask, SourcesTask, Task};
use crate::{DraftId, TrustAnswer};

/// The known facts about a cancelled task that makes several calls.
const PARTLY_DONE: &str =
    "what was done before stays, and the API server may still carry out the call that was under way";
/// The known facts about a cancelled task that makes one call, or that somebody else carries out.
const PERHAPS_DONE: &str = "it may have been carried out anyway";

impl Task {
    /// The task in words, such as `apply samples/memcached.yaml`.
    pub fn words(&self) -> String {
        match self {
            Task::Object(task) => task.words(),
            Task::Operator(task) => task.words(),
            Task::Draft(task) => task.words(),
            Task::Sources(task) => task.words(),
            Task::Cluster(task) => task.words(),
            Task::Project(task) => task.words(),
            Task::Each { tasks } => Task::words_of_each(tasks),
            Task::Cancel { id } => format!("cancel request {id}"),
        }
    }

    /// Several tasks in words, such as `delete 3 objects`.
    pub fn words_of_each(tasks: &[Task]) -> String {
        let verb = tasks.first().and_then(Task::verb);
        let same = tasks.iter().all(|task| task.verb() == verb);
        match (tasks, verb) {
            ([one], _) => one.words(),
            (many, Some(verb)) if same => format!("{verb} {} objects", many.len()),
            (many, _) => format!("{} requests", many.len()),
        }
    }

    /// The verb for several objects; none where a task is not about one object.
    fn verb(&self) -> Option<&'static str> {
        match self {
            Task::Object(task) => Some(task.verb()),
            Task::Operator(task) => Some(task.verb()),
            Task::Draft(_)
            | Task::Sources(_)
            | Task::Cluster(_)
            | Task::Project(_)
            | Task::Each { .. }
            | Task::Cancel { .. } => None,
        }
    }

    /// Returns true if the task may change something in the cluster. Such a task is refused while the cluster
    /// is read-only.
    pub fn writes(&self) -> bool {
        match self {
            Task::Object(_) => true,
            Task::Operator(task) => task.writes(),
            Task::Draft(task) => task.writes(),
            Task::Sources(task) => task.writes(),
            Task::Cluster(task) => task.writes(),
            Task::Project(task) => task.writes(),
            Task::Each { tasks } => tasks.iter().any(Task::writes),
            Task::Cancel { .. } => false,
        }
    }

    /// Returns true if the task goes on until it is cancelled, as a program beside the screen does.
    pub fn is_lasting(&self) -> bool {
        matches!(self, Task::Project(ProjectTask::Run { .. } | ProjectTask::Background { .. }))
    }

    /// The known facts about the task once it is cancelled.
    pub fn once_cancelled(&self) -> &'static str {
        match self {
            Task::Object(task) => task.once_cancelled(),
            Task::Draft(DraftTask::Write { .. }) => {
                "the change stays open; the API server may have taken it anyway"
            }
            Task::Draft(_) => "nothing was written",
            Task::Project(ProjectTask::Run { .. }) => "the program was ended",
            Task::Project(ProjectTask::Background { .. }) => "what it had found until then stays on its page",
            Task::Each { .. } => PARTLY_DONE,
            Task::Operator(_)
            | Task::Sources(_)
            | Task::Cluster(_)
            | Task::Project(_)
            | Task::Cancel { .. } => PERHAPS_DONE,
        }
    }

    /// The open draft that the task goes on with.
    pub fn draft(&self) -> Option<DraftId> {
        match self {
            Task::Draft(task) => task.draft(),
            Task::Object(_)
            | Task::Operator(_)
            | Task::Sources(_)
            | Task::Cluster(_)
            | Task::Project(_)
            | Task::Each { .. }
            | Task::Cancel { .. } => None,
        }
    }
}

impl ObjectTask {
    fn words(&self) -> String {
        match self {
            ObjectTask::Apply { path } => format!("apply {path}"),
            ObjectTask::Scale { object, replicas } => format!("scale {object} to {replicas}"),
            ObjectTask::Delete { object, .. } => format!("delete {object}"),
            ObjectTask::DropFinalizers { object, .. } => format!("remove the finalizers of {object}"),
            ObjectTask::FailPod { pod, how: Some(how) } => format!("make {pod} {}", how.word()),
            ObjectTask::FailPod { pod, how: None } => format!("let {pod} recover"),
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            ObjectTask::Apply { .. } => "apply",
            ObjectTask::Scale { .. } => "scale",
            ObjectTask::Delete { .. } => "delete",
            ObjectTask::DropFinalizers { .. } => "remove the finalizers of",
            ObjectTask::FailPod { how: Some(_), .. } => "fail",
            ObjectTask::FailPod { how: None, .. } => "let recover",
        }
    }

    fn once_cancelled(&self) -> &'static str {
        match self {
            ObjectTask::Apply { .. } => PARTLY_DONE,
            ObjectTask::Scale { .. } | ObjectTask::Delete { .. } | ObjectTask::DropFinalizers { .. } => {
                "the API server may have carried it out anyway"
            }
            ObjectTask::FailPod { .. } => PERHAPS_DONE,
        }
    }
}

impl OperatorTask {
    fn words(&self) -> String {
        match self {
            OperatorTask::Reconcile { object } => format!("reconcile {object}"),
            OperatorTask::Pause { scope } => format!("pause {scope}"),
            OperatorTask::Resume { scope } => format!("resume {scope}"),
            OperatorTask::Step { object } => format!("step {object}"),
            OperatorTask::Check { object } => format!("check {object}"),
            OperatorTask::CatchUp { objects } => format!("catch up with {} objects", objects.len()),
            OperatorTask::Disturb { rules } if rules.is_empty() => "end all faults".to_owned(),
            OperatorTask::Disturb { rules } => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                format!("inject faults: {}", rules.join(", "))
            }
            OperatorTask::StopPrograms => "stop the operator's program".to_owned(),
            OperatorTask::StartPrograms => "start the operator's program".to_owned(),
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            OperatorTask::Reconcile { .. } => "reconcile",
            OperatorTask::Pause { .. } => "pause",
            OperatorTask::Resume { .. } => "resume",
            OperatorTask::Step { .. } => "step",
            OperatorTask::Check { .. } => "check",
            OperatorTask::CatchUp { .. } => "catch up with",
            OperatorTask::Disturb { .. } => "disturb",
            OperatorTask::StopPrograms => "stop",
            OperatorTask::StartPrograms => "start",
        }
    }

    fn writes(&self) -> bool {
        match self {
            // A reconcile itself writes nothing while the cluster is read-only.
            OperatorTask::Reconcile { .. }
            | OperatorTask::CatchUp { .. }
            | OperatorTask::Disturb { .. }
            | OperatorTask::StopPrograms
            | OperatorTask::StartPrograms => false,
            OperatorTask::Pause { .. }
            | OperatorTask::Resume { .. }
            | OperatorTask::Step { .. }
            | OperatorTask::Check { .. } => true,
        }
    }
}

impl DraftTask {
    fn words(&self) -> String {
        match self {
            DraftTask::Edit { object } => format!("edit {object}"),
            DraftTask::New { from: NewFrom::Sample { path } } => format!("new from {path}"),
            DraftTask::New { from: NewFrom::Kind { gvk } } => format!("new {}", gvk.kind),
            DraftTask::AddRules => "add the missing rules".to_owned(),
            DraftTask::Undo { .. } => "undo".to_owned(),
            DraftTask::Edited { .. } => "check the text".to_owned(),
            DraftTask::Write { .. } => "write the change".to_owned(),
            DraftTask::Reopen { .. } => "open the text again".to_owned(),
            DraftTask::Discard { .. } => "discard the change".to_owned(),
        }
    }

    fn writes(&self) -> bool {
        match self {
            DraftTask::AddRules | DraftTask::Discard { .. } => false,
            DraftTask::Edit { .. }
            | DraftTask::New { .. }
            | DraftTask::Undo { .. }
            | DraftTask::Edited { .. }
            | DraftTask::Write { .. }
            | DraftTask::Reopen { .. } => true,
        }
    }

    fn draft(&self) -> Option<DraftId> {
        match self {
            DraftTask::Edited { draft, .. }
            | DraftTask::Write { draft }
            | DraftTask::Reopen { draft }
            | DraftTask::Discard { draft } => Some(*draft),
            DraftTask::Edit { .. } | DraftTask::New { .. } | DraftTask::AddRules | DraftTask::Undo { .. } => {
                None
            }
        }
    }
}

impl SourcesTask {
    fn words(&self) -> String {
        match self {
            SourcesTask::Reload => "reload".to_owned(),
            SourcesTask::ApplyHeld { id } => format!("let {} through", name_of_held(id)),
            SourcesTask::DiscardHeld { id } => format!("discard {}", name_of_held(id)),
            SourcesTask::HoldCharts { on: true } => "hold saved charts".to_owned(),
            SourcesTask::HoldCharts { on: false } => "let saved charts go live".to_owned(),
        }
    }

    fn writes(&self) -> bool {
        match self {
            SourcesTask::ApplyHeld { .. } => true,
            SourcesTask::Reload | SourcesTask::DiscardHeld { .. } | SourcesTask::HoldCharts { .. } => false,
        }
    }
}

impl ClusterTask {
    fn words(&self) -> String {
        match self {
            ClusterTask::Unlock { .. } => "unlock".to_owned(),
            ClusterTask::Freeze { object } => format!("freeze {object}"),
            ClusterTask::Unfreeze { object } => format!("give {object} its replicas back"),
        }
    }

    fn writes(&self) -> bool {
        match self {
            ClusterTask::Freeze { .. } | ClusterTask::Unfreeze { .. } => true,
            ClusterTask::Unlock { .. } => false,
        }
    }
}

impl ProjectTask {
    fn words(&self) -> String {
        match self {
            ProjectTask::Run { program } => program.title.clone(),
            ProjectTask::Background { command } => command.words(),
            ProjectTask::SaveText { name, .. } => format!("save {name}"),
            ProjectTask::FetchDependencies => "download the dependencies of charts".to_owned(),
            ProjectTask::Trust { answer: TrustAnswer::Refuse, .. } => {
                "refuse what the project wants".to_owned()
            }
            ProjectTask::Trust { .. } => "trust the project".to_owned(),
        }
    }

    fn writes(&self) -> bool {
        match self {
            ProjectTask::Run { program } => program.writes,
            ProjectTask::Background { .. }
            | ProjectTask::SaveText { .. }
            | ProjectTask::FetchDependencies
            | ProjectTask::Trust { .. } => false,
        }
    }
}

/// The name of what is held, without its number.
fn name_of_held(id: &str) -> &str {
    id.split_once('@').map_or(id, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProgramRun;
    use opdev_object::meta::{Gvk, ObjectRef};

    fn web() -> ObjectRef {
        let (namespace, name) = (Some("default".to_owned()), "web".to_owned());
        ObjectRef { gvk: Gvk::new("apps", "v1", "Deployment"), namespace, name, uid: None }
    }

    fn each(tasks: &[Task]) -> Task {
        Task::Each { tasks: tasks.to_vec() }
    }

    fn run(writes: bool) -> Task {
        let (title, command) = ("list the pods".to_owned(), vec!["kubectl".to_owned()]);
        let program = ProgramRun { title, command, env: Vec::new(), in_front: false, pause: false, writes };
        ProjectTask::Run { program }.into()
    }

    #[test]
    fn several_tasks_are_told_by_their_verb() {
        let scale = Task::from(ObjectTask::Scale { object: web(), replicas: 2 });
        let check = Task::from(OperatorTask::Check { object: web() });
        assert_eq!(each(std::slice::from_ref(&scale)).words(), scale.words());
        assert_eq!(each(&[scale.clone(), scale.clone()]).words(), "scale 2 objects");
        assert_eq!(each(&[scale, check]).words(), "2 requests");
        assert_eq!(each(&[run(false), run(false)]).words(), "2 requests");
    }

    #[test]
    fn a_bundle_writes_where_one_of_its_tasks_does() {
        let reconcile = Task::from(OperatorTask::Reconcile { object: web() });
        let scale = Task::from(ObjectTask::Scale { object: web(), replicas: 2 });
        assert!(!reconcile.writes() && scale.writes());
        assert!(!each(std::slice::from_ref(&reconcile)).writes());
        assert!(each(&[reconcile, scale]).writes());
        assert!(run(true).writes() && !run(false).writes(), "the settings say whether a program writes");
    }
}
