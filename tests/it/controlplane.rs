//! The embedded control plane from the outside: a kube client in process, raw requests through the same door,
//! TLS over a socket, and the real kubectl and Helm.

mod client;
#[allow(clippy::needless_pass_by_value)]
mod conversion;
mod conversion_ends;
mod door;
mod envtest;
mod exec;
mod helm;
mod kubectl;
mod persistence;
#[allow(clippy::needless_pass_by_value)]
mod plugins;
#[allow(clippy::needless_pass_by_value)]
mod policies;
mod policy_types;
mod rbac;
mod run_webhooks;
mod serve;
mod stuck;
mod tools;
mod transport;
mod versions;
mod webhook_endings;
pub(crate) mod webhook_server;
#[allow(clippy::needless_pass_by_value)]
mod webhooks;
