//! A Kubernetes API server and the few controllers a developer needs, in this process.
//! Never touches files or the terminal, and knows nothing of the operator.

#![allow(dead_code, reason = "the verbs that use these are landing next")]

mod body;
pub mod controllers;
pub mod error;
pub mod handlers;
mod identity;
mod negotiation;
pub mod registry;
pub mod storage;

pub use body::Body;
pub use identity::User;
