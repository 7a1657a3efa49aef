//! Requests to the operator rather than to the API server: reconcile, pause, resume, step, check.

use super::Requests;
use super::outcome::Done;
use anyhow::{Context as _, Result, bail};
use opdev_event::OperatorTask;
use opdev_operator::manager::{Answer, ManagerRequest};
use tokio::sync::oneshot;

const GONE: &str = "the operator has stopped; restart opdev";

impl Requests {
    /// Hands a task to the operator's manager. `program/requests` takes those of a program before.
    pub(super) async fn ask_operator(&self, task: &OperatorTask) -> Result<Done> {
        match task.clone() {
            OperatorTask::Reconcile { object } => {
                self.operator
                    .manager
                    .send(ManagerRequest::ReconcileNow { object })
                    .await
                    .ok()
                    .context(GONE)?;
                Ok(Done::default())
            }
            OperatorTask::Pause { scope } => {
                self.hear(|reply| ManagerRequest::Pause { scope, why: None, reply }).await
            }
            OperatorTask::Resume { scope } => {
                self.hear(|reply| ManagerRequest::Resume { scope, reply }).await
            }
            OperatorTask::Step { object } => self.hear(|reply| ManagerRequest::Step { object, reply }).await,
            OperatorTask::Check { object } => {
                self.hear(|reply| ManagerRequest::Check { object, reply }).await
            }
            OperatorTask::CatchUp { objects } => {
                let (reply, answer) = oneshot::channel();
                self.operator
                    .manager
                    .send(ManagerRequest::CatchUp { objects, reply })
                    .await
                    .ok()
                    .context(GONE)?;
                answer.await.context(GONE)?;
                Ok(Done::default())
            }
            OperatorTask::Disturb { .. } => {
                bail!("the project has no program of its own; faults concern the calls of such a program")
            }
            OperatorTask::StopPrograms | OperatorTask::StartPrograms => {
                bail!("the project has no program of its own")
            }
        }
    }

    async fn hear(&self, request: impl FnOnce(oneshot::Sender<Answer>) -> ManagerRequest) -> Result<Done> {
        let (reply, answer) = oneshot::channel();
        self.operator.manager.send(request(reply)).await.ok().context(GONE)?;
        Ok(Done::said(answer.await.context(GONE)??))
    }
}
