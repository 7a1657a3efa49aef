//! The use of resources that quotas limit: which objects a quota looks at, and how much each takes. What is
//! special about a kind is the `Evaluator` of its `Strategy`. Pure; `controllers::quota` writes what is used,
//! `registry` refuses what would be too much. The rules are those of upstream's evaluators (`pkg/quota/v1`).

use crate::resource::quantity::{canonical, nano};
use opdev_object::meta;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Billionths in one.
pub const ONE: i128 = 1_000_000_000;

/// How a quota names what counts the objects of any resource: `count/deployments.apps`.
const COUNT: &str = "count/";

/// The rules of a kind whose objects use quotas. No two kinds use the same name.
#[derive(Clone, Copy, Debug)]
pub struct Evaluator {
    /// Its objects are counted by the bare name of the resource, too.
    pub counted: bool,
    /// Returns true if its objects use this name, beside those that count them.
    pub uses: fn(&str) -> bool,
    /// The amount of such a name that an object uses, in billionths.
    pub used: fn(&str, &Value) -> i128,
    /// Returns true if an object uses nothing any more, but its place among all that are there.
    pub is_over: fn(&Value) -> bool,
    /// Returns true if an object is in a scope.
    pub in_scope: fn(&Scope<'_>, &Value) -> bool,
    /// The fields that a quota requires and a new object does not set.
    pub unsaid: fn(&Value, &Value) -> Option<String>,
}

impl Evaluator {
    /// Rules for most kinds: their objects can be counted, and are in no scope.
    pub const COMMON: Evaluator = Evaluator {
        counted: false,
        uses: |_| false,
        used: |_, _| 0,
        is_over: |_| false,
        in_scope: |_, _| false,
        unsaid: |_, _| None,
    };

    /// Objects are counted by the bare name of the resource, too.
    pub const COUNTED: Evaluator = Evaluator { counted: true, ..Evaluator::COMMON };
}

/// A scope of a quota, which selects objects.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    pub name: &'a str,
    operator: &'a str,
    values: &'a [Value],
}

impl Scope<'_> {
    /// Returns true if one of the names is as the scope wants it; none at all are as one that is absent.
    pub fn selects(&self, names: &BTreeSet<&str>) -> bool {
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
pub struct Consumer<'a> {
    /// Such as `apps/deployments`.
    pub resource: &'a str,
    pub evaluator: &'static Evaluator,
}

impl Consumer<'_> {
    /// Returns true if objects of the resource use `name` of a quota.
    pub fn uses(&self, name: &str) -> bool {
        match name.strip_prefix(COUNT) {
            Some(counted) => match counted.split_once('.') {
                Some((plural, group)) => self.resource.split_once('/') == Some((group, plural)),
                None => self.resource == counted,
            },
            None => (self.evaluator.counted && self.resource == name) || (self.evaluator.uses)(name),
        }
    }

    /// The amount of `name` that one object uses, in billionths.
    pub fn used(&self, name: &str, object: &Value) -> i128 {
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
    pub fn covers(&self, quota: &Value, object: &Value) -> bool {
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
    pub fn refusal(
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

pub fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The amounts of a list such as `requests`, of one name.
fn amount(container: &Value, list: &str, name: &str) -> i128 {
    let found = container.pointer(&format!("/resources/{list}")).and_then(|list| list.get(name));
    found.and_then(Value::as_str).and_then(nano).unwrap_or(0)
}

/// The amount that a pod requests: all containers together, or the largest of those that run before them.
pub fn pod_amount(pod: &Value, list: &str, name: &str) -> i128 {
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
pub fn hard(quota: &Value) -> impl Iterator<Item = (&str, &str)> {
    let hard = quota.pointer("/spec/hard").and_then(Value::as_object);
    hard.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

/// An amount as quotas print it: bytes by powers of two where the limit has them, too.
pub fn printed(billionths: i128, like: &str) -> String {
    let whole = billionths / ONE;
    let plain = || canonical(&format!("{billionths}n")).unwrap_or_else(|| "0".to_owned());
    if like.ends_with('i') && billionths % ONE == 0 && whole % 1024 == 0 {
        return canonical(&format!("{}Ki", whole / 1024)).unwrap_or_else(plain);
    }
    plain()
}

/// The usage of everything that a quota limits. `kinds` are the kinds that use its names; `list` gives the
/// objects of a resource in the quota's namespace.
pub fn usage(
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
