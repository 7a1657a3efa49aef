//! All kinds of a group. kube's own `recommended_resources` knows those of the preferred version only: a kind
//! that is served at another version alone, beside others of its group, is missing there.

use kube::core::ApiResource;
use kube::discovery::{ApiCapabilities, ApiGroup};

/// Each kind of a group once, at its most stable version, by name.
pub fn all_kinds(group: &ApiGroup) -> Vec<(ApiResource, ApiCapabilities)> {
    let mut kinds = group.resources_by_stability();
    kinds.sort_by(|(a, _), (b, _)| a.plural.cmp(&b.plural));
    kinds
}
