//! This machine: files of the user and of projects, read with limits and written without following a link;
//! locks, watched folders, child processes that end with opdev. Knows nothing of Kubernetes.

pub mod child;
pub(crate) mod git_index;
pub mod http_proxy;
pub mod lock;
pub mod private_folder;
pub mod read;
pub mod sha256;
pub mod small_file;
pub mod sockets;
pub mod state_path;
pub mod user_config;
pub mod watcher;
pub mod yaml_files;
