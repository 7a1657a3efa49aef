//! The order of a group's versions: the first one is preferred.

use std::cmp::{Ordering, Reverse};

/// Kubernetes' priority of versions: `v10` over `v2` over `v11beta2` over `v3alpha1` over anything else.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (parts(a), parts(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Reverse(a).cmp(&Reverse(b)),
    }
}

/// Stability, major, minor of `v<major>[alpha|beta<minor>]`.
fn parts(version: &str) -> Option<(u8, u32, u32)> {
    let rest = version.strip_prefix('v')?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let major = rest[..digits].parse().ok()?;
    let rest = &rest[digits..];
    if rest.is_empty() {
        return Some((2, major, 0));
    }
    let (stability, minor) = match rest.strip_prefix("beta") {
        Some(minor) => (1, minor),
        None => (0, rest.strip_prefix("alpha")?),
    };
    Some((stability, major, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_sort_as_the_documentation_lists_them() {
        let expected =
            ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"];
        let mut versions = expected;
        versions.reverse();
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(versions, expected);
    }
}
