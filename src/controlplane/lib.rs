//! A Kubernetes API server and the few controllers a developer needs, in this process.
//! Never touches files or the terminal, and knows nothing of the operator.

pub mod controllers;
