//! The first step: the custom resource is read, and the reconcile of its release made ready.

use super::ChartReconcile;
use crate::custom_resource::Parent;
use crate::job::{Job, ReadObject};
use opdev_client::{ApiError, At};
use opdev_object::meta;
use opdev_release::engine::{Clock, Done, Engine};
use opdev_release::objects::inject::Owner;
use opdev_release::options::ReleaseOptions;
use opdev_release::script::ChartScript;
use opdev_release::script::hook_calls::Doing;
use opdev_release::status::Status;
use opdev_release::verdict::Report;
use opdev_sources::ChartReconciler;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;

/// Runs one reconcile of a chart.
pub(crate) async fn run(job: Job, reconciler: Arc<ChartReconciler>) -> Report {
    let began = Instant::now();
    let read = async {
        let reference = &job.object;
        let resource = job.api.resource(&reference.gvk).await?;
        let at = At { resource: &resource, namespace: reference.namespace.as_deref(), name: &reference.name };
        let object = job.api.get(&at).await?;
        Ok::<_, ApiError>((Arc::clone(&resource), object))
    };
    let read = match read.await {
        Ok((resource, Some(object))) => ReadObject { resource, object },
        Ok((_, None)) | Err(ApiError::NoMatch(_)) => return Report::gone(),
        Err(error) => {
            let error = anyhow::Error::new(error).context("could not get the custom resource");
            return Report { memory: job.memory, ..Report::failed(opdev_release::verdict::chain(&error)) };
        }
    };
    let mut reconcile = begin(job, reconciler, read, began);
    reconcile.engine.note("read");
    let verdict = match reconcile.steps().await {
        Ok(verdict) => Ok(verdict),
        Err(fault) => Err(reconcile.tell_fault(fault).await),
    };
    reconcile.report(verdict)
}

/// A reconcile of a chart for an object that was read.
pub(crate) fn begin(
    job: Job,
    reconciler: Arc<ChartReconciler>,
    ReadObject { resource, object }: ReadObject,
    began: Instant,
) -> ChartReconcile {
    let Job { object: reference, watch, api, settings, cancel, renders, memory, hub, .. } = job;
    let owner = Owner {
        gvk: reference.gvk.clone(),
        namespace: reference.namespace.clone(),
        name: reference.name.clone(),
        uid: meta::uid(&object).unwrap_or_default().to_owned(),
        marks: false,
    };
    let fallback = || settings.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let options = ReleaseOptions::of(&reconciler.options, &object, &settings);
    let script = ChartScript::of(&reconciler, &api, &hub, &reference, &object);
    let status = Status::of(&object, jiff::Timestamp::now());
    let status = if options.hybrid { status.sorted() } else { status };
    let engine = Engine {
        name: reference.name.clone(),
        namespace: reference.namespace.clone().unwrap_or_else(fallback),
        reconciler,
        changed_in: watch.changed_in,
        api: api.clone(),
        settings,
        cancel,
        renders,
        owner,
        memory,
        options,
        script,
        doing: Doing::default(),
        done: Done::nothing(Clock::new(began)),
    };
    ChartReconcile {
        watch,
        api,
        status,
        status_before: object.get("status").cloned().unwrap_or(Value::Null),
        parent: Parent { reference, resource, object },
        engine,
        script_secrets: Vec::new(),
    }
}
