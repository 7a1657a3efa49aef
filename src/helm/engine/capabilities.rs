//! `.Capabilities`: the Kubernetes version and the API versions a chart may ask for.

use opdev_template::Compat;
use std::fmt;

/// The facts about the cluster that templates read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// `.Capabilities.KubeVersion`
    pub kube_version: KubeVersion,
    /// `.Capabilities.APIVersions`: `apps/v1`, and from a cluster also `apps/v1/Deployment`.
    pub api_versions: Vec<String>,
}

/// A Kubernetes version as Helm keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersion {
    /// Such as `v1.34.0`, or `v1.34.0-gke.1` in 4.x.
    pub version: String,
    /// The version without the text behind the numbers; templates print it so.
    pub normalized: String,
    /// Such as `1`.
    pub major: String,
    /// Such as `34`.
    pub minor: String,
}

/// A text that is not a Kubernetes version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeVersionError {
    /// The text as it was given.
    pub text: String,
}

impl fmt::Display for KubeVersionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.text;
        write!(f, "invalid kube version '{text}': could not parse {text:?} as version")
    }
}

impl std::error::Error for KubeVersionError {}

/// The API versions of the client library that Helm 3.19 carries; the others differ in some.
const API_VERSIONS: &str = "v1 admissionregistration.k8s.io/v1 admissionregistration.k8s.io/v1alpha1 \
    admissionregistration.k8s.io/v1beta1 internal.apiserver.k8s.io/v1alpha1 apps/v1 apps/v1beta1 apps/v1beta2 \
    authentication.k8s.io/v1 authentication.k8s.io/v1alpha1 authentication.k8s.io/v1beta1 \
    authorization.k8s.io/v1 authorization.k8s.io/v1beta1 autoscaling/v1 autoscaling/v2 autoscaling/v2beta1 \
    autoscaling/v2beta2 batch/v1 batch/v1beta1 certificates.k8s.io/v1 certificates.k8s.io/v1beta1 \
    certificates.k8s.io/v1alpha1 coordination.k8s.io/v1alpha2 coordination.k8s.io/v1beta1 \
    coordination.k8s.io/v1 discovery.k8s.io/v1 discovery.k8s.io/v1beta1 events.k8s.io/v1 \
    events.k8s.io/v1beta1 extensions/v1beta1 flowcontrol.apiserver.k8s.io/v1 \
    flowcontrol.apiserver.k8s.io/v1beta1 flowcontrol.apiserver.k8s.io/v1beta2 \
    flowcontrol.apiserver.k8s.io/v1beta3 networking.k8s.io/v1 networking.k8s.io/v1beta1 node.k8s.io/v1 \
    node.k8s.io/v1alpha1 node.k8s.io/v1beta1 policy/v1 policy/v1beta1 rbac.authorization.k8s.io/v1 \
    rbac.authorization.k8s.io/v1beta1 rbac.authorization.k8s.io/v1alpha1 resource.k8s.io/v1 \
    resource.k8s.io/v1beta2 resource.k8s.io/v1beta1 resource.k8s.io/v1alpha3 scheduling.k8s.io/v1alpha1 \
    scheduling.k8s.io/v1beta1 scheduling.k8s.io/v1 storage.k8s.io/v1beta1 storage.k8s.io/v1 \
    storage.k8s.io/v1alpha1 storagemigration.k8s.io/v1alpha1 apiextensions.k8s.io/v1beta1 \
    apiextensions.k8s.io/v1";

/// The kinds of a Helm's client library in the place of a version that Helm 3.19 has.
fn carried(name: &'static str, compat: Compat) -> &'static str {
    let newest = matches!(compat, Compat::V3 | Compat::V4);
    match name {
        "storagemigration.k8s.io/v1alpha1" if newest => {
            "storagemigration.k8s.io/v1 storagemigration.k8s.io/v1beta1"
        }
        "storagemigration.k8s.io/v1alpha1" if compat == Compat::V4_1 => "storagemigration.k8s.io/v1beta1",
        "autoscaling/v2beta1" | "autoscaling/v2beta2" if newest => "",
        "flowcontrol.apiserver.k8s.io/v1beta3" if newest => {
            "flowcontrol.apiserver.k8s.io/v1beta3 lifecycle.k8s.io/v1alpha1"
        }
        "scheduling.k8s.io/v1alpha1" if newest => "scheduling.k8s.io/v1alpha3",
        other => other,
    }
}

impl Capabilities {
    /// The facts that Helm assumes without a cluster.
    pub fn default_for(compat: Compat) -> Self {
        let minor = match compat {
            Compat::V3_19 => "34",
            Compat::V4_1 => "35",
            Compat::V3 | Compat::V4 => "37",
        };
        Self {
            kube_version: KubeVersion {
                version: format!("v1.{minor}.0"),
                normalized: format!("v1.{minor}.0"),
                major: "1".to_owned(),
                minor: minor.to_owned(),
            },
            api_versions: API_VERSIONS
                .split_whitespace()
                .flat_map(|name| carried(name, compat).split_whitespace())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// Capabilities with the version of `--kube-version`; 3.x drops the text behind the numbers, 4.x keeps it
    /// as well.
    ///
    /// # Errors
    /// A text that does not begin with at least two numbers joined by dots.
    pub fn with_kube_version(mut self, text: &str, compat: Compat) -> Result<Self, KubeVersionError> {
        let wrong = || KubeVersionError { text: text.to_owned() };
        let body = text.trim().strip_prefix('v').unwrap_or(text.trim());
        let end = body.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let numbers = body[..end].trim_end_matches('.');
        let mut parts = numbers.split('.');
        let (Some(major), Some(minor)) = (parts.next(), parts.next()) else { return Err(wrong()) };
        let number = |part: &str| part.parse::<u64>().map_err(|_| wrong());
        let (major, minor) = (number(major)?, number(minor)?);
        for part in parts {
            number(part)?;
        }
        let normalized = format!("v{numbers}");
        self.kube_version = KubeVersion {
            version: match compat {
                Compat::V3_19 | Compat::V3 => normalized.clone(),
                Compat::V4_1 | Compat::V4 => format!("v{body}"),
            },
            normalized,
            major: major.to_string(),
            minor: minor.to_string(),
        };
        Ok(self)
    }

    /// Returns true if `.Capabilities.APIVersions.Has` says yes.
    pub fn has(&self, api_version: &str) -> bool {
        self.api_versions.iter().any(|known| known == api_version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_linked_client() {
        let three = Capabilities::default_for(Compat::V3_19);
        assert_eq!((three.kube_version.version.as_str(), three.api_versions.len()), ("v1.34.0", 57));
        let newest = [Compat::V3, Compat::V4].map(Capabilities::default_for);
        assert_eq!(newest[0], newest[1]);
        assert_eq!((newest[0].kube_version.version.as_str(), newest[0].api_versions.len()), ("v1.37.0", 57));
        assert!(newest[0].has("storagemigration.k8s.io/v1") && !newest[0].has("autoscaling/v2beta2"));
        assert!(three.has("batch/v1") && !three.has("batch/v2"));
        let gke = three.with_kube_version("v1.33.4-gke.1", Compat::V3).unwrap();
        assert_eq!(gke.kube_version.version, "v1.33.4");
        assert_eq!(
            gke.with_kube_version("x", Compat::V3).unwrap_err().to_string(),
            "invalid kube version 'x': could not parse \"x\" as version"
        );
        let four = Capabilities::default_for(Compat::V4).with_kube_version("1.33-x", Compat::V4).unwrap();
        assert_eq!(
            (four.kube_version.version.as_str(), four.kube_version.normalized.as_str()),
            ("v1.33-x", "v1.33")
        );
    }
}
