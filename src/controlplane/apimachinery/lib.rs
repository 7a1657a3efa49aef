//! The common ground of the control plane's packages: resources and their metadata, an error as
//! clients get it, protobuf, users, quotas, schedules, and what a controller sees of the plane and asks of
//! it. Never holds an object, never knows a verb.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may wait"))]

pub mod attributes;
pub mod blocking;
pub mod body;
pub mod classes;
pub mod contract;
pub mod error;
pub mod identity;
pub mod json_syntax;
pub mod lanes;
pub mod part;
pub mod protobuf;
pub mod qos;
pub mod quota;
pub mod random;
pub mod resource;
pub mod schedule;
pub mod version;
pub mod watchdog;
