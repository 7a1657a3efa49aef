//! The mission's operators on the embedded control plane, by the steps of their tutorials: what a user does
//! with keys and kubectl, and what the cluster shows for it.

mod armada;
mod hello;
mod keys;
mod memcached;
mod outside;
mod podset;
mod world;
