//! Proofs of the Helm engine and the readers of Go types from outside: seeded generators, the comparison with
//! real Helm, and fuzz entries. `cargo run --bin batch` compares, `cargo run --bin soak` runs the entries
//! under a mutation loop of its own.

pub mod compare;
pub mod entry;
pub mod generate;
pub mod http;
pub mod pull;
pub mod random;
