//! Fields of a spec that say how many pods there are. No schema marks them: they are known by their names.

/// The fields that are directly in a spec in most cases, the likeliest first.
pub const USUAL: [&str; 3] = ["replicas", "replicaCount", "size"];
/// All names that such a field has, in a spec or deeper, the likeliest first.
pub const NAMES: [&str; 8] =
    ["replicas", "size", "count", "nodes", "members", "instances", "replicaCount", "nodeCount"];
/// Parts of a path below which a size or a count is one of bytes.
const STORAGE: [&str; 6] = ["storage", "disk", "volume", "persistence", "memory", "cache"];

/// Returns true if a field with this name may say how many pods there are.
pub fn is_name(name: &str) -> bool {
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Returns true for a path such as `.spec.storage.size`, or a part of one: it says nothing of pods.
pub fn is_of_storage(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    STORAGE.iter().any(|part| path.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_of_storage_is_no_number_of_pods() {
        assert!(USUAL.into_iter().all(is_name) && is_name("nodecount") && !is_name("port"));
        assert!(is_of_storage(".spec.dataStorage.size") && !is_of_storage(".spec.server.size"));
    }
}
