//! Asking the inner loop for something, and what of it the view shows at once.

use crate::command::Command;
use crate::dialog::Switching;
use crate::view::ViewState;
use opdev_event::{ProjectTask, Request, SessionRequest, Task, ViewRequest};

/// Asks the inner loop for something.
pub(crate) fn ask(view: &mut ViewState, request: impl Into<Request>) -> Vec<Command> {
    let request = request.into();
    let id = view.requests.number();
    // Whoever leaves does so once.
    if let Request::Session(SessionRequest::Leave { .. }) = request {
        view.leaving = true;
        view.layers.clear();
    }
    if let Request::Session(SessionRequest::Switch { to, .. }) = &request {
        view.layers.clear();
        view.open(Switching { id, to: to.clone() });
    }
    if !matches!(
        request,
        Request::View(ViewRequest::ListPaths { .. } | ViewRequest::Remember { .. })
            | Request::Task(Task::Cancel { .. })
    ) {
        view.requests.last = Some(request.clone());
    }
    match request {
        Request::Task(Task::Project(ProjectTask::Run { program })) if program.in_front => {
            vec![Command::Run(program)]
        }
        request => vec![Command::Request(id, request)],
    }
}
