//! Type files and type reconcilers: Go type files to CRDs (`go`), CRD YAML as a source of its own (`crd`), the contract
//! of reconcilers (`contract`), what loads them (`program`), and what is wrong with them (`diagnostic`). Pure: text in, JSON out; a
//! reconciler reaches the outside only through `contract::Host`.

mod answer_checks;
pub mod contract;
pub mod crd;
pub mod declarations;
pub mod diagnostic;
#[cfg(test)]
mod edits;
pub mod emit;
pub mod go;
pub mod impact;
pub mod kinds;
pub mod pin;
pub mod plural;
pub mod program;
pub mod rbac;
pub mod readiness;
mod script;
mod templates;
mod time;
