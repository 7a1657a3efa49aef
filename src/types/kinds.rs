//! Kinds as authors write them: `v1/Pod`, `apps/v1/Deployment`, Metacontroller's `Deployment.apps/v1`, and
//! for built-in kinds also `Pod` or `apps/Deployment`. Never asks a server; what is not known here is the
//! host's to resolve.

use opdev_object::facts::{ResourceFact, facts};
use opdev_object::meta::Gvk;

/// The kind of a text that names group, version and kind, or a built-in kind.
pub fn parse(text: &str) -> Option<Gvk> {
    complete(text).or_else(|| built_in(text))
}

fn complete(text: &str) -> Option<Gvk> {
    let parts: Vec<&str> = text.split('/').collect();
    let gvk = match parts.as_slice() {
        [group, version, kind] if is_version(version) => Gvk::new(*group, *version, *kind),
        [version, kind] if is_version(version) => Gvk::new("", *version, *kind),
        // Kind.group/version
        [left, version] if is_version(version) && left.contains('.') => {
            let (kind, group) = left.split_once('.')?;
            Gvk::new(group, *version, kind)
        }
        // Kind.version of the core group
        [one] => {
            let (kind, version) = one.split_once('.')?;
            is_version(version).then(|| Gvk::new("", version, kind))?
        }
        _ => return None,
    };
    let is_kind = gvk.kind.starts_with(|c: char| c.is_ascii_uppercase());
    (is_kind && gvk.kind.bytes().all(|b| b.is_ascii_alphanumeric())).then_some(gvk)
}

/// `v1`, `v1alpha1`, `v2beta3`.
fn is_version(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('v') else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let rest = &rest[digits..];
    rest.is_empty()
        || ["alpha", "beta"].iter().any(|stage| {
            rest.strip_prefix(stage).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
}

/// `Pod`, `apps/Deployment`, `Deployment.apps`: in the version that is listed first.
fn built_in(text: &str) -> Option<Gvk> {
    let (group, kind) = match (text.split_once('/'), text.split_once('.')) {
        (Some((group, kind)), _) => (Some(group), kind),
        (None, Some((kind, group))) => (Some(group), kind),
        (None, None) => (None, text),
    };
    let fits = |fact: &&ResourceFact| fact.kind == kind && group.is_none_or(|group| fact.group == group);
    let mut found = facts().resources().iter().filter(fits);
    let first = found.next()?.gvk();
    // A kind that two groups have needs its group; `Event` alone is the core one, as kubectl has it.
    let ambiguous = found.any(|fact| fact.group != first.group) && !first.group.is_empty();
    (!ambiguous).then_some(first)
}

/// Returns true if objects of a built-in kind live in namespaces; `None` for kinds that are not built in.
pub fn namespaced(gvk: &Gvk) -> Option<bool> {
    facts().resources().iter().find(|fact| fact.gvk() == *gvk).map(|fact| fact.namespaced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_in_every_form() {
        let deployment = Gvk::new("apps", "v1", "Deployment");
        for text in
            ["apps/v1/Deployment", "Deployment.apps/v1", "apps/Deployment", "Deployment.apps", "Deployment"]
        {
            assert_eq!(parse(text), Some(deployment.clone()), "{text}");
        }
        for text in ["v1/Pod", "Pod.v1", "Pod"] {
            assert_eq!(parse(text), Some(Gvk::new("", "v1", "Pod")), "{text}");
        }
        assert_eq!(
            parse("app.example.com/v1alpha1/PodSet"),
            Some(Gvk::new("app.example.com", "v1alpha1", "PodSet"))
        );
        assert_eq!(
            parse("PodSet.app.example.com/v1alpha1"),
            Some(Gvk::new("app.example.com", "v1alpha1", "PodSet"))
        );
        for text in ["PodSet", "example.com/PodSet", "", "/", "v1/", "v1/pods", "apps/v1/Deployment/x"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn scope_is_known_for_built_in_kinds() {
        assert_eq!(namespaced(&Gvk::new("", "v1", "Pod")), Some(true));
        assert_eq!(namespaced(&Gvk::new("", "v1", "Node")), Some(false));
        assert_eq!(namespaced(&Gvk::new("x", "v1", "Y")), None);
    }
}
