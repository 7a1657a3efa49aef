//! The admission plugin PodSecurity: labels of a namespace say which of the Pod Security Standards its pods
//! must meet, and what happens to those that do not. Nothing is audited here. The rules are in `checks`.

#[cfg(test)]
mod tests;

use super::Registry;
use super::context::Context;
use super::strategy::{Pods, Write, strategy_of};
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::part::Part;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_apis::pod_security::{self as checks, Finding, NEWEST, Pod};
use opdev_storage::Key;
use serde_json::Value;
use std::collections::BTreeMap;

const PREFIX: &str = "pod-security.kubernetes.io/";
/// Pods that are looked at when a namespace becomes stricter, as upstream.
const MOST_PODS: usize = 3000;

/// The level of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// A level at a version of the standards; `None` is the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Standard {
    level: Level,
    minor: Option<u32>,
}

const LATEST: Standard = Standard { level: Level::Privileged, minor: None };

impl std::fmt::Display for Standard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.minor {
            None => write!(f, "{level}:latest"),
            Some(minor) => write!(f, "{level}:v1.{minor}"),
        }
    }
}

impl Standard {
    fn check(self, pod: &Pod<'_>) -> Vec<Finding> {
        let minor = self.minor.unwrap_or(NEWEST);
        match self.level {
            Level::Privileged => Vec::new(),
            Level::Baseline => checks::check(pod, false, minor),
            Level::Restricted => checks::check(pod, true, minor),
        }
    }
}

/// The policy in the labels of a namespace.
#[derive(Debug, PartialEq)]
struct Policy {
    enforce: Standard,
    warn: Standard,
    wrong: Vec<Cause>,
}

fn level(text: &str) -> Option<Level> {
    Some(match text {
        "privileged" => Level::Privileged,
        "baseline" => Level::Baseline,
        "restricted" => Level::Restricted,
        _ => return None,
    })
}

/// `latest`, or `v1.` and a number without leading zeros.
fn version(text: &str) -> Option<Option<u32>> {
    if text == "latest" {
        return Some(None);
    }
    let digits = text.strip_prefix("v1.")?;
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (digits == "0" || !digits.starts_with('0'))).then(|| digits.parse().ok().map(Some)).flatten()
}

impl Policy {
    fn from_labels(namespace: &Value) -> Self {
        let labels = &namespace["metadata"]["labels"];
        let mut wrong = Vec::new();
        let mut read = |mode: &str, failed: Level| {
            let mut standard = LATEST;
            let label = |name: &str| labels[format!("{PREFIX}{name}")].as_str();
            let mut invalid = |name: &str, value: &str, why: &str| {
                let field = format!("metadata.labels[{PREFIX}{name}]");
                wrong.push(Cause::invalid(field, &Value::from(value), why));
            };
            let mut said = None;
            if let Some(text) = label(mode) {
                said = level(text);
                standard.level = said.unwrap_or(failed);
                if said.is_none() {
                    invalid(mode, text, "must be one of privileged, baseline, restricted");
                }
            }
            let name = format!("{mode}-version");
            let versioned = label(&name);
            if let Some(text) = versioned {
                match version(text) {
                    Some(minor) => standard.minor = minor,
                    None => invalid(&name, text, "must be \"latest\" or \"v1.x\""),
                }
            }
            (standard, said, label(mode).is_some(), versioned.is_some())
        };
        // A label that cannot be read is enforced at its strictest, and neither audited nor warned of.
        let (enforce, enforced, ..) = read("enforce", Level::Restricted);
        read("audit", Level::Privileged);
        let (mut warn, _, warns, has_version) = read("warn", Level::Privileged);
        if let Some(level) = enforced.filter(|level| !warns && *level > warn.level) {
            warn.level = level;
            if !has_version {
                warn.minor = enforce.minor;
            }
        }
        Policy { enforce, warn, wrong }
    }
}

/// Returns true if anything of a pod changed that its security depends on: of what may change, the images.
fn significant(pod: &Value, old: &Value) -> bool {
    let list = |pod: &Value, name: &str| pod["spec"][name].as_array().cloned().unwrap_or_default();
    let same = |name: &str| {
        let (new, old) = (list(pod, name), list(old, name));
        new.len() == old.len() && new.iter().zip(&old).all(|(new, old)| new["image"] == old["image"])
    };
    let known = list(old, "ephemeralContainers");
    let added = |container: &Value| {
        known
            .iter()
            .find(|old| old["name"] == container["name"])
            .is_none_or(|old| old["image"] != container["image"])
    };
    !same("containers") || !same("initContainers") || list(pod, "ephemeralContainers").iter().any(added)
}

impl Registry {
    /// Refuses what the labels of a namespace do not allow, and warns of what they warn of.
    pub(super) fn check_pod_security(
        &self,
        ctx: &mut Context,
        (resource, part): Write<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let pods = strategy_of(resource).pods;
        match (pods, part) {
            (Pods::Itself, Part::Main | Part::EphemeralContainers | Part::Resize) => {}
            (Pods::Template(_), Part::Main) => {}
            _ => return Ok(()),
        }
        let key = Key::new("", metadata::text(object, "namespace"));
        let Some(namespace) = self.store.get("namespaces", &key) else { return Ok(()) };
        let labels = namespace.attributes().labels().as_object();
        if !labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with(PREFIX))) {
            return Ok(());
        }
        let policy = Policy::from_labels(&namespace.value());
        let enforces = pods == Pods::Itself;
        if enforces && old.is_some_and(|old| !significant(object, old)) {
            return Ok(());
        }
        let found = match pods {
            Pods::Template(place) => object.pointer(place),
            Pods::Itself | Pods::None => Some(object),
        };
        let Some(found) = found.filter(|found| found["spec"].is_object()) else { return Ok(()) };
        let pod = Pod { meta: &found["metadata"], spec: &found["spec"] };
        if enforces {
            let findings = policy.enforce.check(&pod);
            if !findings.is_empty() {
                let why =
                    format!("violates PodSecurity \"{}\": {}", policy.enforce, checks::detailed(&findings));
                let name = metadata::text(object, "name");
                return Err(Status::forbidden(&resource.group, &resource.plural, name, &why));
            }
        }
        let findings = policy.warn.check(&pod);
        if !findings.is_empty() {
            let detail = checks::detailed(&findings);
            ctx.warn(format!("would violate PodSecurity \"{}\": {detail}", policy.warn));
        }
        Ok(())
    }

    /// Refuses labels of a namespace that make no sense. Warns of pods that exist and would not be admitted
    /// any more.
    pub(super) fn check_security_labels(
        &self,
        ctx: &mut Context,
        resource: &Resource,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<(), Status> {
        let name = metadata::text(object, "name");
        let policy = Policy::from_labels(object);
        let before = old.map(Policy::from_labels);
        let known = before.as_ref().is_some_and(|before| before.wrong == policy.wrong);
        if !policy.wrong.is_empty() && !known {
            return Err(Status::invalid(&resource.group, &resource.kind, name, policy.wrong));
        }
        let Some(before) = before else { return Ok(()) };
        let (now, then) = (policy.enforce, before.enforce);
        let relaxed = now.minor == then.minor && now.level <= then.level;
        if now == then || now.level == Level::Privileged || relaxed {
            return Ok(());
        }
        for text in self.violations(name, now) {
            ctx.warn(text);
        }
        Ok(())
    }

    /// The violations that a stricter standard would find in the pods of a namespace.
    fn violations(&self, namespace: &str, standard: Standard) -> Vec<String> {
        let pods = self.store.list("pods", Some(namespace)).items;
        let mut told = Vec::new();
        if pods.len() > MOST_PODS {
            told.push(format!(
                "new PodSecurity enforce level only checked against the first {MOST_PODS} of {} existing pods",
                pods.len()
            ));
        }
        // By reason: the first pod by name, and how many there are.
        let mut reasons: BTreeMap<String, (String, usize)> = BTreeMap::new();
        for pod in pods.iter().take(MOST_PODS) {
            let pod = pod.glance();
            let findings = standard.check(&Pod { meta: &pod["metadata"], spec: &pod["spec"] });
            if findings.is_empty() {
                continue;
            }
            let reason =
                findings.iter().map(|finding| finding.reason.as_str()).collect::<Vec<_>>().join(", ");
            let name = metadata::text(&pod, "name").to_owned();
            let (first, count) = reasons.entry(reason).or_insert_with(|| (name.clone(), 0));
            *count += 1;
            if name < *first {
                *first = name;
            }
        }
        if reasons.is_empty() {
            return told;
        }
        told.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \"{standard}\""
        ));
        let mut each: Vec<String> = reasons
            .into_iter()
            .map(|(reason, (first, count))| match count {
                1 => format!("{first}: {reason}"),
                2 => format!("{first} (and 1 other pod): {reason}"),
                more => format!("{first} (and {} other pods): {reason}", more - 1),
            })
            .collect();
        each.sort();
        told.extend(each);
        told
    }
}
