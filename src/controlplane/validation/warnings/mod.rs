//! Warnings of a real server about objects that it accepts: double names in a pod, fields that have no
//! effect, deprecated ones, addresses in odd forms. Never refuses anything.

mod network;
mod others;
mod paths;
mod pods;
mod storage;
mod told;

pub use network::{balanced, endpoint_slice, endpoints, ingress, network_policy, node, pod_status, service};
pub use others::{
    finalizers, kept_name, resource_quota, resource_slice, runtime_class, secret, service_account, webhooks,
};
pub use pods::{
    cron_job, daemon_set, job, pod, pod_template, replication_controller, stateful_set, workload,
};
pub use storage::{capacity, claim, driver, storage_class, volume};
pub use told::Warnings;
