//! Requests in words, and what to do about their errors.

use crate::event::{DraftId, NewFrom, Request, TrustAnswer};

/// A request in words, such as `apply samples/memcached.yaml`.
pub(in crate::dev) fn of(request: &Request) -> String {
    match request {
        Request::Apply { path } => format!("apply {path}"),
        Request::Scale { object, replicas } => format!("scale {object} to {replicas}"),
        Request::Delete { object, .. } => format!("delete {object}"),
        Request::DropFinalizers { object, .. } => format!("remove the finalizers of {object}"),
        Request::Reconcile { object } => format!("reconcile {object}"),
        Request::Pause { scope } => format!("pause {scope}"),
        Request::Resume { scope } => format!("resume {scope}"),
        Request::Step { object } => format!("step {object}"),
        Request::FailPod { pod, how: Some(how) } => format!("make {pod} {}", how.word()),
        Request::FailPod { pod, how: None } => format!("let {pod} recover"),
        Request::Check { object } => format!("check {object}"),
        Request::ApplyHeld { id } => format!("let {} through", subject(id)),
        Request::DiscardHeld { id } => format!("discard {}", subject(id)),
        Request::HoldCharts { on: true } => "hold saved charts".to_owned(),
        Request::HoldCharts { on: false } => "let saved charts go live".to_owned(),
        Request::Disturb { rules } if rules.is_empty() => "disturb no call any more".to_owned(),
        Request::Disturb { rules } => {
            let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
            format!("disturb: {}", rules.join(", "))
        }
        Request::Edit { object } => format!("edit {object}"),
        Request::New { from: NewFrom::Sample { path } } => format!("new from {path}"),
        Request::New { from: NewFrom::Kind { gvk } } => format!("new {}", gvk.kind),
        Request::Edited { .. } => "check the text".to_owned(),
        Request::Write { .. } => "write the change".to_owned(),
        Request::Reopen { .. } => "open the text again".to_owned(),
        Request::Discard { .. } => "discard the change".to_owned(),
        Request::AddRules => "add the missing rules".to_owned(),
        Request::FetchDependencies => "download the dependencies of charts".to_owned(),
        Request::Undo { .. } => "undo".to_owned(),
        Request::Unlock { .. } => "unlock".to_owned(),
        Request::Trust { answer: TrustAnswer::Refuse, .. } => "refuse what the project wants".to_owned(),
        Request::Trust { .. } => "trust the project".to_owned(),
        Request::Freeze { object } => format!("freeze {object}"),
        Request::Unfreeze { object } => format!("give {object} its replicas back"),
        Request::Reload => "reload".to_owned(),
        Request::Each { requests } => each(requests),
        Request::Cancel { id } => format!("cancel request {id}"),
        Request::PodLogs { sources } => format!("follow the logs of {} containers", sources.len()),
        Request::Look { object: Some(object) } => format!("read {object}"),
        Request::Look { object: None } => "read no object whole".to_owned(),
        Request::ShowTable { table: Some(table) } => format!("show a table of {}", table.kind),
        Request::ShowTable { table: None } => "show no table".to_owned(),
        Request::ReadRow { object: Some(object) } => format!("read {object}"),
        Request::ReadRow { object: None } => "read no row".to_owned(),
        Request::ListKinds => "list the kinds".to_owned(),
        Request::Run { program } => program.title.clone(),
        Request::SaveText { name, .. } => format!("save {name}"),
        Request::ListPaths { typed } => format!("list {typed}"),
        Request::ListFiles => "list the files".to_owned(),
        Request::Remember { .. } => "remember the borders of panes".to_owned(),
        Request::ExplainValues { object } => format!("explain the values of {object}"),
        Request::Switch { to, .. } => format!("switch to {to}"),
        Request::Leave { .. } | Request::Quit { .. } => "quit".to_owned(),
    }
}

/// An error with its causes. A refusal is told in the API server's own words: kube prints the
/// whole of its Status, with causes that repeat values.
pub(in crate::dev) fn told(error: &anyhow::Error) -> String {
    let mut parts = Vec::new();
    for cause in error.chain() {
        if let Some(kube::Error::Api(status)) = cause.downcast_ref::<kube::Error>() {
            parts.push(status.message.clone());
            break;
        }
        parts.push(cause.to_string());
    }
    parts.join(": ")
}

/// A bundle in words: `delete 3 objects`.
pub(super) fn each(requests: &[Request]) -> String {
    let verb = requests.first().map_or("do", verb);
    let same = requests.iter().all(|request| self::verb(request) == verb);
    match requests {
        [one] => of(one),
        many if same => format!("{verb} {} objects", many.len()),
        many => format!("{} requests", many.len()),
    }
}

fn verb(request: &Request) -> &'static str {
    match request {
        Request::Apply { .. } => "apply",
        Request::Scale { .. } => "scale",
        Request::Delete { .. } => "delete",
        Request::DropFinalizers { .. } => "remove the finalizers of",
        Request::Reconcile { .. } => "reconcile",
        Request::Pause { .. } => "pause",
        Request::Resume { .. } => "resume",
        Request::Step { .. } => "step",
        Request::FailPod { how, .. } => how.map_or("let recover", |_| "fail"),
        Request::Check { .. } => "check",
        Request::ApplyHeld { .. } => "let through",
        Request::DiscardHeld { .. } | Request::Discard { .. } => "discard",
        Request::HoldCharts { .. } => "hold",
        Request::Disturb { .. } => "disturb",
        Request::Edit { .. } => "edit",
        Request::New { .. } => "make",
        Request::Edited { .. } => "check",
        Request::Write { .. } => "write",
        Request::Reopen { .. } => "open",
        Request::AddRules => "add the missing rules",
        Request::FetchDependencies => "download the dependencies of charts",
        Request::Undo { .. } => "undo",
        Request::Unlock { .. } => "unlock",
        Request::Trust { .. } => "trust",
        Request::Freeze { .. } => "freeze",
        Request::Unfreeze { .. } => "give their replicas back to",
        Request::Reload => "reload",
        Request::Each { .. } => "do",
        Request::Cancel { .. } => "cancel",
        Request::PodLogs { .. } => "follow",
        Request::Look { .. } => "read",
        Request::ShowTable { .. } => "show",
        Request::ReadRow { .. } => "read",
        Request::ListKinds | Request::ListPaths { .. } | Request::ListFiles => "list",
        Request::Run { .. } => "run",
        Request::SaveText { .. } => "save",
        Request::Remember { .. } => "remember",
        Request::ExplainValues { .. } => "explain the values of",
        Request::Switch { .. } => "switch",
        Request::Leave { .. } | Request::Quit { .. } => "quit",
    }
}

/// The name of what is held, without its number.
fn subject(id: &str) -> &str {
    id.split_once('@').map_or(id, |(name, _)| name)
}

/// Whether a request may change something in the cluster.
pub(super) fn writes(request: &Request) -> bool {
    match request {
        Request::Cancel { .. }
        | Request::Discard { .. }
        | Request::PodLogs { .. }
        | Request::Look { .. }
        | Request::ShowTable { .. }
        | Request::ReadRow { .. }
        | Request::ListKinds
        | Request::SaveText { .. }
        | Request::ListPaths { .. }
        | Request::ListFiles
        | Request::Remember { .. }
        | Request::ExplainValues { .. }
        | Request::Leave { .. }
        | Request::Switch { .. }
        | Request::Quit { .. }
        | Request::Reconcile { .. }
        | Request::DiscardHeld { .. }
        | Request::HoldCharts { .. }
        | Request::Disturb { .. }
        | Request::Unlock { .. }
        | Request::Trust { .. }
        | Request::AddRules
        | Request::FetchDependencies
        | Request::Reload => false,
        Request::Apply { .. }
        | Request::Edit { .. }
        | Request::New { .. }
        | Request::Edited { .. }
        | Request::Write { .. }
        | Request::Reopen { .. }
        | Request::Undo { .. }
        | Request::Scale { .. }
        | Request::Delete { .. }
        | Request::DropFinalizers { .. }
        | Request::Pause { .. }
        | Request::Resume { .. }
        | Request::Step { .. }
        | Request::FailPod { .. }
        | Request::Check { .. }
        | Request::Freeze { .. }
        | Request::Unfreeze { .. }
        | Request::ApplyHeld { .. } => true,
        Request::Run { program } => program.writes,
        Request::Each { requests } => requests.iter().any(writes),
    }
}

/// What is known of a request that was cancelled.
pub(super) fn cancelled(request: &Request) -> &'static str {
    match request {
        Request::Each { .. } | Request::Apply { .. } => {
            "what was done before stays, and the API server may still carry out the call that was under way"
        }
        Request::Scale { .. } | Request::Delete { .. } | Request::DropFinalizers { .. } => {
            "the API server may have carried it out all the same"
        }
        Request::Run { .. } => "the program was ended",
        Request::Write { .. } => "the change stays open; the API server may have taken it all the same",
        Request::Edit { .. }
        | Request::New { .. }
        | Request::Edited { .. }
        | Request::Reopen { .. }
        | Request::Discard { .. }
        | Request::AddRules
        | Request::Undo { .. } => "nothing was written",
        Request::Reconcile { .. }
        | Request::Pause { .. }
        | Request::Resume { .. }
        | Request::Step { .. }
        | Request::FailPod { .. }
        | Request::Check { .. }
        | Request::ApplyHeld { .. }
        | Request::DiscardHeld { .. }
        | Request::HoldCharts { .. }
        | Request::Disturb { .. }
        | Request::Unlock { .. }
        | Request::Trust { .. }
        | Request::Freeze { .. }
        | Request::Unfreeze { .. }
        | Request::Reload
        | Request::FetchDependencies
        | Request::Cancel { .. }
        | Request::PodLogs { .. }
        | Request::Look { .. }
        | Request::ShowTable { .. }
        | Request::ReadRow { .. }
        | Request::ListKinds
        | Request::SaveText { .. }
        | Request::ListPaths { .. }
        | Request::ListFiles
        | Request::Remember { .. }
        | Request::ExplainValues { .. }
        | Request::Leave { .. }
        | Request::Switch { .. }
        | Request::Quit { .. } => "it may have been carried out all the same",
    }
}

/// The draft that a request is about.
pub(super) fn draft(request: &Request) -> Option<DraftId> {
    match request {
        Request::Edited { draft, .. }
        | Request::Write { draft }
        | Request::Reopen { draft }
        | Request::Discard { draft } => Some(*draft),
        Request::Apply { .. }
        | Request::Scale { .. }
        | Request::Delete { .. }
        | Request::DropFinalizers { .. }
        | Request::Reconcile { .. }
        | Request::Pause { .. }
        | Request::Resume { .. }
        | Request::Step { .. }
        | Request::ApplyHeld { .. }
        | Request::DiscardHeld { .. }
        | Request::HoldCharts { .. }
        | Request::Disturb { .. }
        | Request::Edit { .. }
        | Request::New { .. }
        | Request::AddRules
        | Request::FetchDependencies
        | Request::Undo { .. }
        | Request::Unlock { .. }
        | Request::Trust { .. }
        | Request::Freeze { .. }
        | Request::Unfreeze { .. }
        | Request::Reload
        | Request::Each { .. }
        | Request::Cancel { .. }
        | Request::PodLogs { .. }
        | Request::FailPod { .. }
        | Request::Check { .. }
        | Request::Look { .. }
        | Request::ShowTable { .. }
        | Request::ReadRow { .. }
        | Request::ListKinds
        | Request::Run { .. }
        | Request::SaveText { .. }
        | Request::ListPaths { .. }
        | Request::ListFiles
        | Request::Remember { .. }
        | Request::ExplainValues { .. }
        | Request::Leave { .. }
        | Request::Switch { .. }
        | Request::Quit { .. } => None,
    }
}

/// What to do about an error.
pub(super) fn hint(request: &Request, error: &anyhow::Error) -> Option<String> {
    let Some(kube::Error::Api(status)) = error.downcast_ref::<kube::Error>() else { return None };
    match (request, status.code) {
        (Request::Scale { .. }, 422) => Some("the schema of the kind refuses this number".to_owned()),
        (Request::Apply { .. }, 422) => Some("correct the file and apply it again".to_owned()),
        (_, 403) => Some("the kubeconfig's user may not do this; see `kubectl auth can-i --list`".to_owned()),
        (_, 404) => Some("it is gone already".to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_told_once_and_without_its_details() {
        let status = json!({"status": "Failure", "code": 422, "reason": "Invalid", "message": "no such size",
            "details": {"causes": [{"field": "spec.password", "message": "Invalid value: hunter2"}]}});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let error =
            anyhow::Error::new(kube::Error::Api(status.boxed())).context("Web default/site is refused");
        assert_eq!(told(&error), "Web default/site is refused: no such size");
        assert_eq!(told(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }
}
