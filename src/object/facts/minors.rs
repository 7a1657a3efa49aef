//! Older minors of Kubernetes: which resources each has, and the definitions in which it differs from the
//! home version. `tests/reference/kubernetes/facts.py` writes them.

use super::{Definitions, Facts, RESOURCES, SCHEMAS, inflate};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

const fn of(minor: &'static str, resources_packed: &'static [u8], differing: &'static [u8]) -> Facts {
    Facts { minor, resources_packed, differing, resources: OnceLock::new(), definitions: OnceLock::new() }
}

/// The newest first: the home version, whose facts are whole.
static MINORS: [Facts; 3] = [
    of(super::KUBERNETES_MINOR, RESOURCES, &[]),
    of(
        "1.36",
        include_bytes!("../assets/1.36/resources.json.gz"),
        include_bytes!("../assets/1.36/schemas.tsv.gz"),
    ),
    of(
        "1.35",
        include_bytes!("../assets/1.35/resources.json.gz"),
        include_bytes!("../assets/1.35/schemas.tsv.gz"),
    ),
];

/// The minor of this process.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// The facts of the minor that was chosen, or of the home version.
pub(super) fn chosen() -> &'static Facts {
    &MINORS[CHOSEN.load(Ordering::Relaxed)]
}

/// A minor without facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMinor(String);

impl fmt::Display for UnknownMinor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opdev has no facts about Kubernetes {}; it has those of {}", self.0, known().join(", "))
    }
}

impl std::error::Error for UnknownMinor {}

/// The minors that there are facts about, the newest first.
pub fn known() -> [&'static str; MINORS.len()] {
    MINORS.each_ref().map(|facts| facts.minor)
}

/// A minor that there are facts about, by its name: `1.36`, also with a `v` before it or a patch behind it.
///
/// # Errors
/// Where it is none of [`known`].
pub fn find(name: &str) -> Result<&'static str, UnknownMinor> {
    let mut parts = name.trim_start_matches('v').split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let asked = format!("{major}.{minor}");
    known().into_iter().find(|known| *known == asked).ok_or_else(|| UnknownMinor(name.to_owned()))
}

/// Makes this process speak of another minor. It counts for the whole process, so it is said
/// once, before a control plane starts.
///
/// # Errors
/// Where there are no facts about it.
pub fn choose(name: &str) -> Result<(), UnknownMinor> {
    let minor = find(name)?;
    let place = known().into_iter().position(|known| known == minor);
    CHOSEN.store(place.unwrap_or(0), Ordering::Relaxed);
    Ok(())
}

/// The minor that this process speaks of, such as `1.37`.
pub fn minor() -> &'static str {
    chosen().minor
}

/// Returns true if the minor of this process is 1.`number` or newer.
pub fn since(number: u32) -> bool {
    number_of(minor()) >= number
}

/// The second part of a minor's name.
pub fn number_of(minor: &str) -> u32 {
    minor.rsplit('.').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The lines of the home version, with those of an older minor in place of their namesakes; a line that is a
/// bare name takes its namesake away.
pub(super) fn definitions(differing: &[u8]) -> Definitions {
    let mut made = Definitions::default();
    made.read(text(SCHEMAS));
    if !differing.is_empty() {
        made.read(text(differing));
    }
    made
}

/// Definitions are parts of this text for as long as the process lives: it is made once, and never copied.
fn text(packed: &[u8]) -> &'static str {
    String::from_utf8(inflate(packed)).expect("embedded schemas are text").leak()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::Gvk;

    #[test]
    fn older_minors_have_their_own_kinds_and_fields() {
        let [new, old, older] = &MINORS;
        assert_eq!((new.minor, old.minor, older.minor), ("1.37", "1.36", "1.35"));
        let bundles = Gvk::new("certificates.k8s.io", "v1", "ClusterTrustBundle");
        let has =
            |facts: &Facts, resource: &str| facts.resources().iter().any(|one| one.resource == resource);
        assert!(has(new, "clustertrustbundles") && !has(old, "clustertrustbundles"));
        assert!(has(old, "mutatingadmissionpolicies") && !has(older, "mutatingadmissionpolicies"));
        let kinds = |facts: &'static Facts| &facts.definitions().by_kind;
        assert!(kinds(new).contains_key(&bundles) && !kinds(old).contains_key(&bundles));
        let required = |facts: &'static Facts| {
            facts.definitions().by_name["io.k8s.api.apps.v1.Deployment"].raw()["required"].clone()
        };
        assert_eq!((required(new), required(old)), (serde_json::json!(["spec"]), serde_json::Value::Null));
        for facts in &MINORS {
            for resource in facts.resources() {
                let name = &facts.definitions().by_kind[&resource.gvk()];
                assert!(facts.definitions().by_name.contains_key(name), "{} {name}", facts.minor);
            }
        }
    }

    #[test]
    fn a_minor_is_found_by_each_way_to_write_it() {
        for name in ["1.36", "v1.36", "v1.36.3", "1.36.0-rc.1"] {
            assert_eq!(find(name), Ok("1.36"), "{name}");
        }
        let told = find("1.20").unwrap_err().to_string();
        assert_eq!(told, "opdev has no facts about Kubernetes 1.20; it has those of 1.37, 1.36, 1.35");
        assert!(find("").is_err() && find("1").is_err());
    }
}
