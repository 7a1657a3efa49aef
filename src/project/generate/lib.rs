//! Generated files, as controller-gen writes them: CRDs, deepcopy methods, RBAC rules. Never runs Go.

pub mod deepcopy;
pub mod manifests;
pub mod rbac;
