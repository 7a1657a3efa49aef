//! opdev: the local inner loop for Kubernetes operator developers.
//! The rooms and their ranks are in `docs/architecture.md`; `tests/it/architecture.rs` guards them.

pub mod api;
pub mod ci;
pub mod cli;
pub mod dev;
pub mod disk;
pub mod envtest;
pub mod event;
pub mod findings;
pub mod image;
pub mod operate;
pub mod operator;
pub mod print;
pub mod process;
pub mod pull;
pub mod scaffold;
pub mod sources;
pub mod state;
pub mod tap;
pub mod torture;
pub mod tui;
