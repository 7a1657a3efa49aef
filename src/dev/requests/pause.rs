//! What is asked of the operator rather than of the API server: reconcile, pause, resume, step, check.

use super::Requests;
use super::done::Done;
use crate::event::PauseScope;
use crate::operator::manager::ManagerRequest;
use anyhow::{Context as _, Result, anyhow};
use opdev_object::meta::ObjectRef;
use tokio::sync::oneshot;

const GONE: &str = "the operator has stopped; restart opdev";

impl Requests {
    pub(super) async fn reconcile(&self, object: &ObjectRef) -> Result<Done> {
        let request = ManagerRequest::ReconcileNow { object: object.clone() };
        self.operator.send(request).await.ok().context(GONE)?;
        Ok(Done::default())
    }

    pub(super) async fn pause(&self, scope: PauseScope) -> Result<Done> {
        self.hear(|reply| ManagerRequest::Pause { scope, why: None, reply }).await
    }

    pub(super) async fn resume(&self, scope: PauseScope) -> Result<Done> {
        self.hear(|reply| ManagerRequest::Resume { scope, reply }).await
    }

    pub(super) async fn step(&self, object: ObjectRef) -> Result<Done> {
        self.hear(|reply| ManagerRequest::Step { object, reply }).await
    }

    pub(super) async fn check(&self, object: ObjectRef) -> Result<Done> {
        self.hear(|reply| ManagerRequest::Check { object, reply }).await
    }

    async fn hear(
        &self,
        request: impl FnOnce(oneshot::Sender<Result<String, String>>) -> ManagerRequest,
    ) -> Result<Done> {
        let (reply, answer) = oneshot::channel();
        self.operator.send(request(reply)).await.ok().context(GONE)?;
        answer.await.context(GONE)?.map(Done::said).map_err(|why| anyhow!("{why}"))
    }
}
