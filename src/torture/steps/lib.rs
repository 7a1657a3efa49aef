//! The changes of a sample in a torture: `scenario` has the scenarios and their steps, `parts` finds the
//! fields of a custom resource that they change. Pure.

pub mod parts;
pub mod scenario;
