//! The controllers of the control plane: pure `sync(view, key, now) -> writes`, nothing else.
//! Never touch the store by themselves; the runner reads for them and carries out what they ask.
//! Read `contract` first (what they see, what they ask for), then any one controller.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

mod addresses;
mod aggregation;
mod apart;
mod autoscaler;
mod conditions;
pub mod contract;
mod cronjob;
mod daemonset;
mod deployment;
mod disruption;
mod endpoints;
pub mod engine;
mod expiry;
pub mod fields;
mod gc;
mod job;
mod job_policies;
mod kubelet;
#[cfg(test)]
#[path = "../admission/lists.rs"]
mod lists;
mod namespace;
mod node;
mod owners;
pub mod pods;
mod policy_types;
mod quantity;
mod quota;
mod recorder;
mod references;
mod replicaset;
mod retention;
mod revision;
mod scheduler;
mod selector;
mod serviceaccount;
pub mod stage;
mod statefulset;
#[cfg(test)]
mod tests;
mod token_secrets;
mod volumes;
mod workload;

pub use contract::Controller;
use opdev_apimachinery::quota::Consumer;
use serde_json::Value;
pub use stage::Stage;
use std::sync::Arc;

/// The settings of the controllers.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the simulated node.
    pub node: String,
    /// A pod's life; none means the built-in one.
    pub stages: Option<Arc<[Stage]>>,
    /// Pods wait for the ConfigMaps and Secrets that they name, as on a real node.
    pub strict_pods: bool,
    /// PEM of the CA that signed the API server's certificate.
    pub root_ca: String,
    /// The kinds with what their objects use of quotas.
    pub consumers: Vec<Consumer<'static>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            node: "opdev".to_owned(),
            stages: None,
            strict_pods: false,
            root_ca: String::new(),
            consumers: Vec::new(),
        }
    }
}

/// The controllers that run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// All of them, with a simulated node that runs pods.
    #[default]
    All,
    /// Garbage collection, namespaces and what each of them has, aggregated roles; nothing acts on workloads.
    ClusterOnly,
    /// None: nothing happens but what clients ask for, as under envtest.
    None,
}

impl Controllers {
    /// The chosen ones.
    pub fn make(self, settings: &Settings) -> Vec<Box<dyn Controller>> {
        match self {
            Controllers::All => all(settings),
            Controllers::ClusterOnly => cluster_only(settings),
            Controllers::None => Vec::new(),
        }
    }
}

/// All controllers.
pub fn all(settings: &Settings) -> Vec<Box<dyn Controller>> {
    let mut controllers = cluster_only(settings);
    controllers.extend([
        Box::new(deployment::Deployments) as Box<dyn Controller>,
        Box::new(replicaset::ReplicaSets(&replicaset::REPLICA_SETS)),
        Box::new(replicaset::ReplicaSets(&replicaset::REPLICATION_CONTROLLERS)),
        Box::new(statefulset::StatefulSets),
        Box::new(daemonset::DaemonSets),
        Box::new(job::Jobs),
        Box::new(cronjob::CronJobs),
        Box::new(autoscaler::Autoscalers),
        Box::new(quota::ResourceQuotas { consumers: settings.consumers.clone() }),
        Box::new(endpoints::EndpointSlices),
        Box::new(endpoints::Endpoints),
        Box::new(volumes::Binder),
        Box::new(disruption::Disruptions),
        Box::new(policy_types::PolicyTypes),
        Box::new(volumes::ClaimProtection),
        Box::new(volumes::VolumeProtection),
        Box::new(node::Node { node: settings.node.clone() }),
        Box::new(scheduler::Scheduler),
        Box::new(kubelet::Kubelet {
            node: settings.node.clone(),
            stages: settings.stages.clone(),
            strict: settings.strict_pods,
            addresses: addresses::Addresses::default(),
        }),
    ]);
    controllers
}

/// Signs the token of an account (the first value) that lies in a Secret (the second one).
pub type SignToken =
    Box<dyn Fn(&Value, &Value) -> Result<String, Box<dyn std::error::Error + Send + Sync>> + Send + Sync>;

/// The one that writes tokens into the Secrets that are there for them.
pub fn token_secrets(certificate: String, sign: SignToken) -> Box<dyn Controller> {
    Box::new(token_secrets::TokenSecrets { certificate, sign })
}

/// The controller that every API server has in itself, whichever others run.
pub fn of_the_api_server() -> Box<dyn Controller> {
    Box::new(namespace::Definitions)
}

/// Only what keeps the API itself in order: garbage collection, namespaces and what each of them has.
pub fn cluster_only(settings: &Settings) -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(namespace::Namespaces),
        Box::new(gc::GarbageCollector),
        Box::<expiry::EventExpiry>::default(),
        Box::<aggregation::ClusterRoleAggregation>::default(),
        Box::new(serviceaccount::DefaultServiceAccount),
        Box::new(serviceaccount::RootCa { certificate: settings.root_ca.clone() }),
    ]
}
