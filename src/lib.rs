//! opdev: the local inner loop for Kubernetes operator developers.
//! The rooms and their ranks are in `docs/architecture.md`; `tests/it/architecture.rs` guards them.

pub mod ci;
pub mod cli;
pub mod client;
pub mod cluster;
pub mod event;
pub mod findings;
pub mod inner_loop;
pub mod operator;
pub mod os;
pub mod program;
pub mod project;
pub mod pull;
pub mod scaffold;
pub mod scenario;
pub mod ship;
pub mod sources;
pub mod state;
pub mod tui;
