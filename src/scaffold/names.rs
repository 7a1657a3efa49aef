//! The checks of names, with the rules and the words of kubebuilder 4.6, whose parser the Operator SDK 1.42
//! carries; and a kind's name from a chart's.

use anyhow::{Result, bail};
use opdev_object::meta::Gvk;
use opdev_object::names;

/// A chart's name as a kind: `kube-prometheus` becomes `KubePrometheus`, as strcase's `ToCamel` does it.
pub fn camel_case(name: &str) -> String {
    let mut out = String::new();
    let mut upper = true;
    for c in name.trim().chars() {
        if c.is_ascii_alphabetic() {
            out.push(if upper { c.to_ascii_uppercase() } else { c });
            upper = false;
        } else if c.is_ascii_digit() {
            out.push(c);
            upper = true;
        } else {
            upper = matches!(c, '_' | ' ' | '-' | '.');
        }
    }
    out
}

/// Checks a project's name, which is also the first part of a namespace. `to_do` says where another one is
/// given.
pub(super) fn check_project(name: &str, to_do: &str) -> Result<()> {
    let wrong = names::dns1123_label(name);
    if !wrong.is_empty() {
        bail!("project name {name:?} is invalid: {}. {to_do}", wrong.join("; "));
    }
    Ok(())
}

/// Checks a chart's name, which becomes a folder and stands in YAML files: somebody else may have written the
/// chart.
pub(super) fn check_chart(name: &str) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.starts_with('.') || !name.chars().all(plain) {
        bail!("the chart's name {name:?} is invalid: letters, digits, `-`, `_` and `.` are allowed");
    }
    Ok(())
}

/// Checks a domain.
pub(super) fn check_domain(domain: &str) -> Result<()> {
    let wrong = names::dns1123_subdomain(domain);
    if !domain.is_empty() && !wrong.is_empty() {
        bail!("domain {domain:?} is invalid: {}. Choose another one with --domain", wrong.join("; "));
    }
    Ok(())
}

/// Checks group with domain, version and kind.
pub(super) fn check_kind(gvk: &Gvk) -> Result<()> {
    if gvk.group.is_empty() {
        bail!("group cannot be empty if the domain is empty; give one such as --group cache");
    }
    let wrong = names::dns1123_subdomain(&gvk.group);
    if !wrong.is_empty() {
        bail!("either Group or Domain is invalid: {} ({:?})", wrong.join("; "), gvk.group);
    }
    if gvk.version.is_empty() {
        bail!("version cannot be empty; give one such as --version v1alpha1");
    }
    if !is_version(&gvk.version) {
        bail!(r"version must match ^v\d+(?:alpha\d+|beta\d+)?$ (was {:?})", gvk.version);
    }
    let wrong = names::dns1035_label(&gvk.kind.to_lowercase());
    if !wrong.is_empty() {
        bail!("invalid Kind {:?}: {}. Choose another one with --kind", gvk.kind, wrong.join("; "));
    }
    if !gvk.kind.starts_with(|first: char| first.is_uppercase()) {
        bail!("invalid Kind {:?}: must start with an uppercase character", gvk.kind);
    }
    Ok(())
}

fn is_version(text: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let major = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if major.len() == rest.len() {
        return false;
    }
    major.is_empty() || ["alpha", "beta"].iter().any(|stage| major.strip_prefix(stage).is_some_and(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_chart_name_becomes_a_kind() {
        for (chart, kind) in [
            ("memcached", "Memcached"),
            ("kube-prometheus-stack", "KubePrometheusStack"),
            ("redis6cluster", "Redis6Cluster"),
            ("a_b.c", "ABC"),
        ] {
            assert_eq!(camel_case(chart), kind);
        }
    }

    #[test]
    fn versions_are_those_of_kubebuilder() {
        for good in ["v1", "v10", "v1alpha1", "v2beta12"] {
            assert!(is_version(good), "{good}");
        }
        for bad in ["", "1", "v", "valpha1", "v1alpha", "v1gamma1", "v1alpha1x", "V1"] {
            assert!(!is_version(bad), "{bad}");
        }
    }

    #[test]
    fn a_wrong_name_is_named() {
        let error = |group: &str, version: &str, kind: &str| {
            check_kind(&Gvk::new(group, version, kind)).unwrap_err().to_string()
        };
        expect!["group cannot be empty if the domain is empty; give one such as --group cache"]
            .assert_eq(&error("", "v1", "A"));
        assert!(error("Cache.my.domain", "v1", "A").starts_with("either Group or Domain is invalid: "));
        expect!["version cannot be empty; give one such as --version v1alpha1"].assert_eq(&error(
            "cache.my.domain",
            "",
            "A",
        ));
        expect![[r#"invalid Kind "memcached": must start with an uppercase character"#]].assert_eq(&error(
            "cache.my.domain",
            "v1",
            "memcached",
        ));
        assert!(error("cache.my.domain", "v1", "Mem-Cached-").contains("invalid Kind"));
        for chart in ["..", ".git", "a\n- group: b", "a b", "a:"] {
            assert!(check_chart(chart).unwrap_err().to_string().contains("is invalid"), "{chart:?}");
        }
        assert!(check_chart("kube-prometheus_2.0").is_ok());
        assert!(
            check_project("My Project", "Choose another one with --project-name")
                .unwrap_err()
                .to_string()
                .contains("--project-name")
        );
    }
}
