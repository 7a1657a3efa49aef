//! Files, processes and lifecycle: finds the project, watches its files, turns them into sources, connects to a
//! cluster or starts the embedded control plane, and runs the operator. Never touches the terminal.
//! Start at `inner_loop`.

mod ask;
mod backoff;
pub mod bus;
pub mod chart_dependencies;
pub mod cluster;
mod contexts;
pub(crate) mod copies;
mod crd_patches;
mod crds;
pub mod data;
pub mod deep_copies;
pub mod deploy;
pub mod developer;
pub mod faults;
mod files;
mod forbidden;
mod git_index;
mod go_types;
mod guard;
mod identity;
pub mod image;
pub mod inner_loop;
pub mod journal;
mod kind_table;
mod load;
pub mod lock;
pub mod manifests;
mod observation_queue;
pub(crate) mod observe;
pub mod owner;
pub mod plan;
mod pod_logs;
mod preferences;
pub mod private_folder;
mod program;
pub mod project;
pub mod rehearsal;
mod reload;
mod requests;
mod returned;
pub mod rights;
pub mod scaffold;
mod served_kinds;
mod service_account;
pub mod settings;
mod shadow;
pub mod traced;
pub mod trust;
pub mod type_files;
pub mod unfinished;
pub mod user_settings;
mod watcher;
mod yaml_files;

pub use requests::told;
