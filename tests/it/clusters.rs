//! Real clusters from the outside: credentials, the guard, connections that break. `door` stands in front of
//! an embedded control plane as a cluster's API server would, counts what is asked and breaks what it is told
//! to break.

mod canary;
mod copies;
pub(crate) mod door;
mod faults;
mod guard;
mod kubeconfigs;
pub(crate) mod kubelet;
pub(crate) mod logs;
mod metadata;
mod processes;
mod program;
mod rights;
mod switching;
