//! The use of resources that quotas limit: which objects a quota looks at, and how much each takes. What is
//! special about a kind is the `Evaluator` of its `Strategy`. Pure; `controllers::quota` writes what is used,
//! `registry` refuses what would be too much. The rules are those of upstream's evaluators (`pkg/quota/v1`).

use crate::resource::quantity::{canonical, nano};
use opdev_object::meta;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Billionths in one.
pub(crate) const ONE: i128 = 1_000_000_000;

/// How a quota names what counts the objects of any resource: `count/deployments.apps`.
const COUNT: &str = "count/";

/// The rules of a kind whose objects use quotas. No two kinds use the same name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evaluator {
    /// Its objects are counted by the bare name of the resource, too.
    pub(crate) counted: bool,
    /// Returns true if its objects use this name, beside those that count them.
    pub(crate) uses: fn(&str) -> bool,
    /// The amount of such a name that an object uses, in billionths.
    pub(crate) used: fn(&str, &Value) -> i128,
    /// Returns true if an object uses nothing any more, but its place among all that are there.
    pub(crate) is_over: fn(&Value) -> bool,
    /// Returns true if an object is in a scope.
    pub(crate) in_scope: fn(&Scope<'_>, &Value) -> bool,
    /// The fields that a quota requires and a new object does not set.
    pub(crate) unsaid: fn(&Value, &Value) -> Option<String>,
}

impl Evaluator {
    /// Rules for most kinds: their objects can be counted, and are in no scope.
    pub(crate) const COMMON: Evaluator = Evaluator {
        counted: false,
        uses: |_| false,
        used: |_, _| 0,
        is_over: |_| false,
        in_scope: |_, _| false,
        unsaid: |_, _| None,
    };

    /// Objects are counted by the bare name of the resource, too.
    pub(crate) const COUNTED: Evaluator = Evaluator { counted: true, ..Evaluator::COMMON };
}

/// A scope of a quota, which selects objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl Scope<'_> {
    /// Returns true if one of the names is as the scope wants it; none at all are as one that is absent.
    pub(crate) fn selects(&self, names: &BTreeSet<&str>) -> bool {
        let listed = |name: &&str| self.values.iter().any(|value| value == *name);
        match self.operator {
            "In" => names.iter().any(listed),
            "NotIn" => names.is_empty() || !names.iter().all(listed),
            "DoesNotExist" => names.is_empty(),
            _ => !names.is_empty(),
        }
    }
}

/// A resource whose objects use quotas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consumer<'a> {
    /// Such as `apps/deployments`.
    pub(crate) resource: &'a str,
    pub(crate) evaluator: &'static Evaluator,
}

impl Consumer<'_> {
    /// Returns true if objects of the resource use `name` of a quota.
    pub(crate) fn uses(&self, name: &str) -> bool {
        match name.strip_prefix(COUNT) {
            Some(counted) => match counted.split_once('.') {
                Some((plural, group)) => self.resource.split_once('/') == Some((group, plural)),
                None => self.resource == counted,
            },
            None => (self.evaluator.counted && self.resource == name) || (self.evaluator.uses)(name),
        }
    }

    /// The amount of `name` that one object uses, in billionths.
    pub(crate) fn used(&self, name: &str, object: &Value) -> i128 {
        if name.starts_with(COUNT) {
            ONE
        } else if (self.evaluator.is_over)(object) {
            0
        } else if self.evaluator.counted && self.resource == name {
            ONE
        } else {
            (self.evaluator.used)(name, object)
        }
    }

    /// Returns true if a quota looks at an object at all: its scopes.
    pub(crate) fn covers(&self, quota: &Value, object: &Value) -> bool {
        let scopes = items(quota, "/spec/scopes").iter().filter_map(Value::as_str);
        let plain = scopes.map(|name| Scope { name, operator: "Exists", values: &[] });
        let selected = items(quota, "/spec/scopeSelector/matchExpressions").iter().map(|expression| Scope {
            name: text(expression, "/scopeName"),
            operator: text(expression, "/operator"),
            values: items(expression, "/values"),
        });
        plain.chain(selected).all(|scope| (self.evaluator.in_scope)(&scope, object))
    }

    /// Why a quota refuses `object`, which would replace `current`; `total` is what is used without it, by
    /// name.
    pub(crate) fn refusal(
        &self,
        quota: &Value,
        object: &Value,
        current: Option<&Value>,
        total: impl Fn(&str) -> i128,
    ) -> Option<String> {
        if !self.covers(quota, object) {
            return None;
        }
        // An object that the quota did not cover before is new to it.
        let counted = current.filter(|current| self.covers(quota, current));
        let name = meta::name(quota).unwrap_or_default();
        if current.is_none()
            && let Some(why) = (self.evaluator.unsaid)(quota, object)
        {
            return Some(format!("failed quota: {name}: {why}"));
        }
        let (mut requested, mut used_now, mut limited) = (Vec::new(), Vec::new(), Vec::new());
        for (limit, allowed) in hard(quota).filter(|(limit, _)| self.uses(limit)) {
            let before = counted.map_or(0, |counted| self.used(limit, counted));
            let more = self.used(limit, object) - before;
            let most = nano(allowed).unwrap_or(i128::MAX);
            let total = total(limit) + before;
            if more > 0 && total + more > most {
                requested.push(format!("{limit}={}", printed(more, allowed)));
                used_now.push(format!("{limit}={}", printed(total, allowed)));
                limited.push(format!("{limit}={allowed}"));
            }
        }
        (!requested.is_empty()).then(|| {
            format!(
                "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
                requested.join(","),
                used_now.join(","),
                limited.join(",")
            )
        })
    }
}

pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The amounts of a list such as `requests`, of one name.
fn amount(container: &Value, list: &str, name: &str) -> i128 {
    let found = container.pointer(&format!("/resources/{list}")).and_then(|list| list.get(name));
    found.and_then(Value::as_str).and_then(nano).unwrap_or(0)
}

/// The amount that a pod requests: all containers together, or the largest of those that run before them.
pub(crate) fn pod_amount(pod: &Value, list: &str, name: &str) -> i128 {
    let of = |container: &Value| amount(container, list, name);
    let sidecar = |container: &&Value| text(container, "/restartPolicy") == "Always";
    let init = items(pod, "/spec/initContainers");
    let beside: i128 = init.iter().filter(sidecar).map(of).sum();
    let together: i128 = items(pod, "/spec/containers").iter().map(of).sum::<i128>() + beside;
    let before = init.iter().filter(|container| !sidecar(container)).map(of).max().unwrap_or(0) + beside;
    let overhead = pod.pointer("/spec/overhead").and_then(|list| list.get(name)).and_then(Value::as_str);
    together.max(before) + overhead.and_then(nano).unwrap_or(0)
}

/// The limits of a quota, by name.
pub(crate) fn hard(quota: &Value) -> impl Iterator<Item = (&str, &str)> {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
    hard.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// An amount as quotas print it: bytes by powers of two where the limit has them, too.
pub(crate) fn printed(billionths: i128, like: &str) -> String {
    let whole = billionths / ONE;
    let plain = || canonical(&format!("{billionths}n")).unwrap_or_else(|| "0".to_owned());
    if like.ends_with('i') && billionths % ONE == 0 && whole % 1024 == 0 {
        return canonical(&format!("{}Ki", whole / 1024)).unwrap_or_else(plain);
    }
    plain()
}

/// The usage of everything that a quota limits. `kinds` are the kinds that use its names; `list` gives the
/// objects of a resource in the quota's namespace.
pub(crate) fn usage(
    quota: &Value,
    kinds: &(impl Iterator<Item = Consumer<'static>> + Clone),
    list: impl Fn(&str) -> Vec<std::sync::Arc<Value>>,
) -> Map<String, Value> {
    let mut known = BTreeMap::new();
    let mut usage = Map::new();
    for (name, allowed) in hard(quota) {
        let mut kinds = kinds.clone();
        let other;
        let consumer = match name.strip_prefix(COUNT) {
            Some(counted) => {
                other = match counted.split_once('.') {
                    Some((plural, group)) => format!("{group}/{plural}"),
                    None => counted.to_owned(),
                };
                let found = kinds.find(|kind| kind.resource == other);
                found.unwrap_or(Consumer { resource: &other, evaluator: &Evaluator::COMMON })
            }
            None => match kinds.find(|kind| kind.uses(name)) {
                Some(found) => found,
                None => continue,
            },
        };
        let resource = consumer.resource;
        let objects = known.entry(resource.to_owned()).or_insert_with(|| list(resource));
        let covered = objects.iter().filter(|object| consumer.covers(quota, object));
        let total: i128 = covered.map(|object| consumer.used(name, object)).sum();
        usage.insert(name.to_owned(), printed(total, allowed).into());
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn consumer(resource: &str) -> Consumer<'static> {
        crate::registry::consumers().find(|kind| kind.resource == resource).unwrap()
    }

    fn usage(quota: &Value, list: impl Fn(&str) -> Vec<Arc<Value>>) -> Map<String, Value> {
        super::usage(quota, &crate::registry::consumers(), list)
    }

    fn covers(quota: &Value, resource: &str, object: &Value) -> bool {
        consumer(resource).covers(quota, object)
    }

    fn refusal(
        quota: &Value,
        resource: &str,
        object: &Value,
        current: Option<&Value>,
        total: impl Fn(&str) -> i128,
    ) -> Option<String> {
        consumer(resource).refusal(quota, object, current, total)
    }

    fn pod(cpu: &str, memory: &str) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"containers": [
            {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}})
    }

    #[test]
    fn pods_claims_and_services_use_what_they_ask_for() {
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3", "cpu": "1", "requests.memory": "1Gi",
            "count/deployments.apps": "1", "services.nodeports": "2", "requests.storage": "5Gi"}}});
        let list = |resource: &str| -> Vec<Arc<Value>> {
            match resource {
                "pods" => vec![Arc::new(pod("250m", "64Mi")), Arc::new(pod("500m", "64Mi"))],
                "services" => vec![Arc::new(json!({"spec": {"type": "NodePort", "ports": [{}, {}]}}))],
                "persistentvolumeclaims" => {
                    vec![Arc::new(json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}}))]
                }
                _ => Vec::new(),
            }
        };
        let used = json!({"pods": "2", "cpu": "750m", "requests.memory": "128Mi", "count/deployments.apps": "0",
            "services.nodeports": "2", "requests.storage": "2Gi"});
        assert_eq!(Value::Object(usage(&quota, list)), used);
    }

    /// In the words of the real server (1.36).
    #[test]
    fn what_would_be_too_much_is_refused() {
        let quota = |hard: &Value| json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
        let told = |quota: &Value, pod: &Value| {
            refusal(quota, "pods", pod, None, |name| match name {
                "pods" => 3 * ONE,
                _ => ONE / 2,
            })
        };
        assert_eq!(
            told(&quota(&json!({"pods": "3", "cpu": "600m"})), &pod("250m", "1Mi")).unwrap(),
            "exceeded quota: q, requested: cpu=250m,pods=1, used: cpu=500m,pods=3, limited: cpu=600m,pods=3"
        );
        assert_eq!(told(&quota(&json!({"pods": "4", "cpu": "1"})), &pod("250m", "1Mi")), None);
        let bare = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
        assert_eq!(
            told(&quota(&json!({"cpu": "1", "limits.memory": "1"})), &bare).unwrap(),
            "failed quota: q: must specify cpu for: a,b; limits.memory for: a,b"
        );
        let mut scoped = quota(&json!({"pods": "1"}));
        scoped["spec"]["scopes"] = json!(["BestEffort"]);
        assert_eq!(told(&scoped, &pod("250m", "1Mi")), None);
    }

    #[test]
    fn claims_count_for_the_classes_they_have_and_want() {
        let quota = |operator: &str, values: &Value| {
            json!({"metadata": {"name": "q"}, "spec": {"hard": {"persistentvolumeclaims": "1"}, "scopeSelector":
                {"matchExpressions": [{"scopeName": "VolumeAttributesClass", "operator": operator, "values": values}]}}})
        };
        let claims = "persistentvolumeclaims";
        let bare = json!({"spec": {}});
        let moving = json!({"spec": {"volumeAttributesClassName": "silver"},
            "status": {"currentVolumeAttributesClassName": "gold",
                "modifyVolumeStatus": {"targetVolumeAttributesClassName": "bronze"}}});
        let gold = json!(["gold"]);
        for (operator, values, covered) in [
            ("In", &gold, [false, true]),
            ("In", &json!(["silver"]), [false, true]),
            ("In", &json!(["bronze"]), [false, true]),
            ("In", &json!(["other"]), [false, false]),
            ("NotIn", &gold, [true, true]),
            ("Exists", &json!([]), [false, true]),
            ("DoesNotExist", &json!([]), [true, false]),
        ] {
            let quota = quota(operator, values);
            let found = [&bare, &moving].map(|claim| covers(&quota, claims, claim));
            assert_eq!(found, covered, "{operator} {values}");
        }
        assert!(!covers(&quota("In", &gold), "services", &moving));
        // A claim that comes into the scope is new there.
        let told = refusal(&quota("In", &gold), claims, &moving, Some(&bare), |_| ONE);
        assert!(told.is_some_and(|told| told.contains("requested: persistentvolumeclaims=1")));
        assert_eq!(refusal(&quota("In", &gold), claims, &moving, Some(&moving), |_| ONE), None);
    }

    #[test]
    fn pods_that_look_into_other_namespaces_have_a_scope() {
        let quota = json!({"spec": {"hard": {"pods": "1"}, "scopes": ["CrossNamespacePodAffinity"]}});
        let near = |term: Value| {
            json!({"spec": {"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term]}}}})
        };
        let far = json!({"spec": {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"topologyKey": "a", "namespaceSelector": {}}}]}}}});
        assert!(covers(&quota, "pods", &near(json!({"topologyKey": "a", "namespaces": ["b"]}))));
        assert!(covers(&quota, "pods", &far));
        assert!(!covers(&quota, "pods", &near(json!({"topologyKey": "a"}))));
        assert!(!covers(&quota, "pods", &json!({"spec": {}})));
    }
}
