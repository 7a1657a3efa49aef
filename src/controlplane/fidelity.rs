//! Differences of this control plane from a real one, said in one place: the
//! `/opdev/fidelity` document and whoever starts a plane for a person tell it from here.

use serde_json::{Value, json};

/// One difference from a real cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The topic, in a word or two.
    pub about: &'static str,
    /// The behaviour here.
    pub instead: &'static str,
}

const fn gap(about: &'static str, instead: &'static str) -> Gap {
    Gap { about, instead }
}

const GAPS: [Gap; 20] = [
    gap(
        "containers",
        "pods are simulated: no image is pulled, nothing runs, there are no logs or port-forward, and no exec but the answers of --exec, which an Event, Simulated, tells on the pod",
    ),
    gap(
        "pods",
        "ready at once; with restartPolicy Never or OnFailure they succeed, a Job's at once, others after a second, whatever their image; an Event, Simulated, says so; what they name need not be there (with --strict-pods, or strictPods in opdev.yaml, they wait for their ConfigMaps and Secrets)",
    ),
    gap("controllers", "autoscalers keep their bounds and have no metrics; load balancers stay pending"),
    gap(
        "scheduling",
        "preferences, pod-level resources, matchLabelKeys and NoExecute taints of pods that run do not count; nobody is preempted",
    ),
    gap(
        "network",
        "nothing is routed: NetworkPolicies, Ingresses, address ranges and what Services say of traffic are kept, and nobody acts on them",
    ),
    gap(
        "volumes",
        "no driver runs: a claim of the default class gets an empty volume at once, whatever its data source; sources, drivers and attachments are kept",
    ),
    gap("devices", "resource claims, device classes and slices are kept; nothing is allocated"),
    gap("flow control", "FlowSchemas and priority levels are kept; each request is served at once"),
    gap("aggregation", "an APIService with a server of its own is kept, and nothing is forwarded to it"),
    gap("certificates", "signing requests are kept and can be approved; nobody signs them"),
    gap(
        "CEL",
        "rules of custom resources are checked, and refused where they cost too much; time zones have to be offsets, and after a failure that another part of a rule makes up for, a few steps are not counted",
    ),
    gap(
        "RBAC",
        "roles and bindings are stored, not enforced: everybody known may do everything, and `auth can-i` says yes (with --rbac they are enforced)",
    ),
    gap(
        "webhooks",
        "called; by a service only where something listens for it on this machine (its target port, 9443 unless told otherwise, or the port that the annotation opdev.dev/local-port names), and skipped with a warning where all its pods are simulated. Conversion webhooks are called the same way",
    ),
    gap(
        "admission policies",
        "in force from the moment they are written; nothing is audited, and who writes one need not be able to read its parameters",
    ),
    gap(
        "validation",
        "as on a real server for pods and their templates, workloads, Jobs, CronJobs, Services, Ingresses, ConfigMaps, Secrets, claims, RBAC, autoscalers, budgets and Leases, but for the insides of rare volume sources and node affinity; other built-in kinds are checked against their schema only",
    ),
    gap(
        "admission",
        "the plugins that are on by default, but nodes are not tainted and pods get no labels of topology, PodSecurity audits nothing, and signing requests are not read",
    ),
    gap(
        "service accounts",
        "a pod may name one that is not there (with --strict-pods, or strictPods in opdev.yaml, it is refused), and no token is mounted into it",
    ),
    gap(
        "error texts",
        "refusals of a changed pod or claim do not list what changed, and values are shown as JSON where a real server prints a Go struct",
    ),
    gap(
        "persistence",
        "without a data folder objects live in memory; with one they survive a restart, and watches start anew, as after a compaction of etcd",
    ),
    gap("metrics", "requests, how long they took, and stored objects; nothing of the runtime and of caches"),
];

/// All differences of a plane with or without RBAC, the ones that matter most first.
pub fn gaps(rbac: bool) -> impl Iterator<Item = &'static Gap> {
    GAPS.iter().filter(move |gap| !(rbac && gap.about == "RBAC"))
}

/// The document at `/opdev/fidelity`.
pub(crate) fn document(rbac: bool) -> Value {
    let gaps: Vec<Value> =
        gaps(rbac).map(|gap| json!({"about": gap.about, "instead": gap.instead})).collect();
    json!({"version": opdev_apimachinery::version::git_version(), "gaps": gaps})
}

#[cfg(test)]
mod tests {
    use super::GAPS;
    use opdev_object::facts::facts;
    use serde_json::Value;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    const LIST: &str = include_str!("assets/spec-fields.txt");
    /// The list also has the parts of the specs of these groups.
    const WHOLE: [&str; 4] = ["apps", "autoscaling", "batch", "policy"];

    /// `io.k8s.api.batch.v1.JobSpec` as the list has it: `batch/v1/JobSpec`.
    fn short(definition: &str) -> String {
        let mut parts = definition.rsplit('.').take(3).collect::<Vec<_>>();
        parts.reverse();
        parts.join("/")
    }

    /// The definitions that a field may refer to.
    fn references(field: &Value) -> impl Iterator<Item = &str> {
        let places = [&field["$ref"], &field["items"]["$ref"], &field["additionalProperties"]["$ref"]];
        places.into_iter().filter_map(|place| place.as_str()?.rsplit('/').next())
    }

    fn fields<'a>(schemas: &BTreeMap<&'a str, &'a Value>, definition: &str) -> Vec<(&'a String, &'a Value)> {
        let fields = schemas.get(definition).and_then(|schema| schema["properties"].as_object());
        fields.into_iter().flatten().collect()
    }

    /// The specs of all kinds, and what those of some groups consist of.
    fn specs(schemas: &BTreeMap<&str, &Value>) -> BTreeSet<String> {
        let kinds = schemas.values().filter(|schema| schema["x-kubernetes-group-version-kind"].is_array());
        let specs = kinds.flat_map(|kind| references(&kind["properties"]["spec"]));
        let mut found: BTreeSet<String> = specs.map(str::to_owned).collect();
        let mut todo: Vec<String> = found.iter().cloned().collect();
        while let Some(next) = todo.pop() {
            for (_, field) in fields(schemas, &next) {
                for inner in references(field) {
                    let whole = WHOLE.iter().any(|group| inner.starts_with(&format!("io.k8s.api.{group}.")));
                    if whole && found.insert(inner.to_owned()) {
                        todo.push(inner.to_owned());
                    }
                }
            }
        }
        found
    }

    /// True where the source of a module names a field.
    fn names(module: &str, field: &str) -> bool {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("{module}.rs"));
        let source = std::fs::read_to_string(file).unwrap_or_default();
        let source = source.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        source.match_indices(field).any(|(at, _)| {
            let before = source[..at].chars().next_back();
            let after = source[at + field.len()..].chars().next();
            before.is_some_and(|c| "\"/.".contains(c)) && after.is_some_and(|c| "\"/'.]".contains(c))
        })
    }

    #[test]
    fn each_field_of_a_spec_is_read_or_told() {
        let schemas = facts().raw_definitions();
        let by_name: BTreeMap<String, &str> = schemas.keys().map(|name| (short(name), *name)).collect();
        let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut wrong = Vec::new();
        for line in LIST.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            let (Some(definition), Some(place)) = (words.next(), words.next()) else { panic!("{line}") };
            if let Some(gap) = place.strip_prefix('~')
                && !GAPS.iter().any(|known| known.about.replace(' ', "-") == gap)
            {
                wrong.push(format!("{definition}: --fidelity has nothing about {gap}"));
            }
            for field in words {
                if !place.starts_with(['~', '=']) && !names(place, field) {
                    wrong.push(format!("{definition}.{field}: {place} does not name it"));
                }
                if !listed.entry(definition).or_default().insert(field) {
                    wrong.push(format!("{definition}.{field} is listed twice"));
                }
            }
        }
        let specs = specs(&schemas);
        let all = specs.iter().map(|name| short(name)).chain(listed.keys().map(ToString::to_string));
        for definition in all.collect::<BTreeSet<_>>() {
            let Some(name) = by_name.get(&definition) else {
                wrong.push(format!("{definition} is in no schema"));
                continue;
            };
            let known: BTreeSet<&str> =
                fields(&schemas, name).iter().map(|(field, _)| field.as_str()).collect();
            let told = listed.get(definition.as_str()).cloned().unwrap_or_default();
            let missing = known.difference(&told).map(|field| format!("{definition}.{field} is not listed"));
            let gone = told.difference(&known).map(|field| format!("{definition}.{field} is in no schema"));
            wrong.extend(missing.chain(gone));
        }
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    }
}
