//! One field of a custom resource at a time, from its schema: other values, nothing, and what was not there.
//! And what a Secret or a ConfigMap beside it says. Pure.

use opdev_steps::parts::{SWITCHES, known};
use opdev_steps::scenario::name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// The deepest level of fields.
const DEEPEST: usize = 8;
/// Values of one enumeration that are tried at most.
const MOST_VALUES: usize = 3;
/// A number that a bound of the schema may have to be tried.
const LARGEST: i64 = 100_000;

/// A change of one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Mutation {
    /// Kind and name of another object of the sample; the custom resource itself where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) of: Option<String>,
    /// The field, from the root of the object. Empty where the object itself goes.
    pub(crate) path: Vec<String>,
    /// Its value; nothing where it goes.
    pub(crate) value: Option<Value>,
}

impl Mutation {
    /// A change of the custom resource.
    pub(crate) fn new(path: Vec<String>, value: Option<Value>) -> Mutation {
        Mutation { of: None, path, value }
    }

    /// Returns true if it takes something away that the operator may need.
    pub(crate) fn takes_reference(&self) -> bool {
        self.of.is_some() && self.value.is_none()
    }
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = self.of.as_deref().unwrap_or_default();
        let before = if of.is_empty() { "" } else { " " };
        match &self.value {
            None if self.path.is_empty() => write!(f, "{of} deleted"),
            None => write!(f, "{of}{before}.{} taken away", self.path.join(".")),
            // Nobody may see the values of Secrets.
            Some(_) if of.starts_with("Secret ") => write!(f, "{of} .{} changed", self.path.join(".")),
            Some(value) => write!(f, "{of}{before}.{} → {value}", self.path.join(".")),
        }
    }
}

/// Changes of what Secrets and ConfigMaps beside a custom resource say: another value, a key that goes, an
/// object that goes. One key of each stands for all.
pub(crate) fn of_references(others: &[Value]) -> Vec<Mutation> {
    let mut found = Vec::new();
    for object in others.iter().filter(|object| object["apiVersion"] == "v1" && object["immutable"] != true) {
        let secret = object["kind"] == "Secret";
        if !secret && object["kind"] != "ConfigMap" {
            continue;
        }
        let name = name(object);
        let parts = ["data", "stringData"].into_iter();
        let key = parts.filter_map(|part| Some((part, object[part].as_object()?.keys().next()?))).next();
        let Some((part, key)) = key else { continue };
        let new = if part == "data" && secret { "b3BkZXY=" } else { "opdev" };
        let path = vec![part.to_owned(), key.clone()];
        // The API server moves it into `data`: taken away here, nothing would go.
        let moved = part == "stringData";
        let of = || Some(name.clone());
        found.push(Mutation { of: of(), path: path.clone(), value: Some(new.into()) });
        if !moved {
            found.push(Mutation { of: of(), path, value: None });
        }
        found.push(Mutation { of: of(), path: Vec::new(), value: None });
    }
    found
}

/// All changes of one field that the schema lets, of the spec and of the object's own labels and annotations.
pub(crate) fn mutations(schema: &Value, object: &Value) -> Vec<Mutation> {
    let mut found = Vec::new();
    let spec = &schema["properties"]["spec"];
    below(spec, object.get("spec"), &mut vec!["spec".to_owned()], &mut found);
    for kind in ["labels", "annotations"] {
        let path = ["metadata", kind, "opdev.example.com/extra"].map(str::to_owned).to_vec();
        found.push(Mutation::new(path, Some("extra".into())));
    }
    found
}

fn below(schema: &Value, current: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<Mutation>) {
    if path.len() > DEEPEST {
        return;
    }
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        field(part, current.and_then(|current| current.get(name)), path, found);
        path.pop();
    }
}

fn field(schema: &Value, current: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<Mutation>) {
    let mut add = |value: Option<Value>| {
        let new = Mutation::new(path.clone(), value);
        if new.value.as_ref() != current && !found.contains(&new) {
            found.push(new);
        }
    };
    let properties = schema["properties"].as_object();
    match schema["type"].as_str() {
        Some("object") => {
            if let Some(known) = properties.and_then(known) {
                add(Some(known));
            } else if properties.is_some() {
                // Present and empty, and away: pointers to structs are seldom looked at twice.
                if current.is_none() {
                    add(Some(filled(schema)));
                } else {
                    add(None);
                }
                below(schema, current, path, found);
                return;
            } else if let Some(items) = schema.get("additionalProperties").filter(|items| items.is_object()) {
                let mut map = current.and_then(Value::as_object).cloned().unwrap_or_default();
                map.insert(
                    "opdev".to_owned(),
                    scalar(items, None).into_iter().next().unwrap_or_else(|| "opdev".into()),
                );
                add(Some(map.into()));
                current.and_then(less).into_iter().for_each(|map| add(Some(map)));
            } else if let Some(now) = current.filter(|now| now.is_object()) {
                // Nothing says what may stand here: of what does, one entry changes and one goes.
                other(now).into_iter().chain(less(now)).for_each(|map| add(Some(map)));
            }
        }
        Some("array") => {
            let items = current.and_then(Value::as_array).cloned().unwrap_or_default();
            let of = &schema["items"];
            let item = of["properties"].as_object().and_then(known);
            let item = item.or_else(|| (of["type"] == "object").then(|| filled(of)));
            if let Some(item) = item.or_else(|| scalar(of, None).into_iter().next()) {
                let mut more = items.clone();
                more.push(item);
                add(Some(more.into()));
            }
            if !items.is_empty() && schema["minItems"].as_u64().is_none_or(|least| least == 0) {
                add(Some(json!([])));
            }
            // One item stands for all; what Kubernetes itself defines is not looked into.
            let own = of["properties"].as_object().is_some_and(|properties| known(properties).is_none());
            if let Some(first) = items.first().filter(|first| own && first.is_object()) {
                path.push("0".to_owned());
                below(of, Some(first), path, found);
                path.pop();
            }
            if current.is_some() {
                found.push(Mutation::new(path.clone(), None));
            }
            return;
        }
        _ => match named(path).filter(|_| schema["enum"].is_null() && schema["type"] == "string") {
            Some(words) => {
                let others = words.iter().filter(|word| current.is_none_or(|now| now != **word));
                others.take(MOST_VALUES).for_each(|word| add(Some((*word).into())));
            }
            None => scalar(schema, current).into_iter().for_each(|value| add(Some(value))),
        },
    }
    if current.is_some() {
        add(None);
    }
}

/// A map without its first entry, where it has more than one.
fn less(map: &Value) -> Option<Value> {
    let map = map.as_object().filter(|map| map.len() > 1)?;
    Some(map.iter().skip(1).map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>().into())
}

/// A map with another value in its first entry that has a plain one.
fn other(map: &Value) -> Option<Value> {
    let mut map = map.as_object()?.clone();
    let new = |value: &Value| match value {
        Value::Bool(on) => Some((!on).into()),
        Value::Number(number) => Some((number.as_i64()? + 1).into()),
        Value::String(_) => Some("opdev".into()),
        _ => None,
    };
    let (name, value) = map.iter().find_map(|(name, value)| Some((name.clone(), new(value)?)))?;
    map.insert(name, value);
    Some(map.into())
}

/// Parts that the object lacks and that may be there, each with its required fields and switched on. Fields
/// below these mean nothing before.
pub(crate) fn optional_parts(schema: &Value, object: &Value) -> Vec<(Vec<String>, Value)> {
    let mut found = Vec::new();
    let spec = &schema["properties"]["spec"];
    absent(spec, object.get("spec"), &mut vec!["spec".to_owned()], &mut found);
    found
}

fn absent(
    schema: &Value,
    current: Option<&Value>,
    path: &mut Vec<String>,
    found: &mut Vec<(Vec<String>, Value)>,
) {
    for (name, part) in schema["properties"].as_object().into_iter().flatten() {
        let Some(properties) = part["properties"].as_object().filter(|fields| known(fields).is_none()) else {
            continue;
        };
        path.push(name.clone());
        match current.and_then(|current| current.get(name)) {
            Some(now) if path.len() < DEEPEST => absent(part, Some(now), path, found),
            None if properties.len() > 1 => {
                let mut new = filled(part);
                let switch = SWITCHES.iter().find(|name| properties.get(**name).is_some_and(is_boolean));
                if let (Some(switch), Some(map)) = (switch, new.as_object_mut()) {
                    map.insert((*switch).to_owned(), true.into());
                }
                found.push((path.clone(), new));
            }
            _ => {}
        }
        path.pop();
    }
}

fn is_boolean(schema: &Value) -> bool {
    schema["type"] == "boolean"
}

/// The words that Kubernetes knows for a text whose name says which field it is handed on to.
fn named(path: &[String]) -> Option<&'static [&'static str]> {
    let last = path.last()?.to_ascii_lowercase();
    let above =
        path.get(path.len().wrapping_sub(2)).map(|name| name.to_ascii_lowercase()).unwrap_or_default();
    let whole = if last == "type" || last == "policy" { format!("{above}{last}") } else { last };
    Some(match whole.as_str() {
        of if of.ends_with("servicetype") => &["NodePort", "LoadBalancer", "ClusterIP"],
        of if of.ends_with("imagepullpolicy") => &["Always", "IfNotPresent", "Never"],
        of if of.ends_with("podmanagementpolicy") => &["Parallel", "OrderedReady"],
        of if of.ends_with("updatestrategy") || of.ends_with("updatestrategytype") => {
            &["OnDelete", "RollingUpdate"]
        }
        of if of.ends_with("restartpolicy") => &["OnFailure", "Never", "Always"],
        of if of.ends_with("externaltrafficpolicy") => &["Local", "Cluster"],
        of if of.ends_with("schedule") || of.ends_with("cron") => &["*/7 * * * *"],
        _ => return None,
    })
}

/// Other values of a leaf.
fn scalar(schema: &Value, current: Option<&Value>) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|value| Some(*value) != current).take(MOST_VALUES).cloned().collect();
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return match current {
            Some(Value::String(_)) => vec!["20Gi".into()],
            Some(_) | None => vec![1.into()],
        };
    }
    match schema["type"].as_str() {
        Some("boolean") => match current.and_then(Value::as_bool) {
            Some(on) => vec![(!on).into()],
            None => vec![true.into(), false.into()],
        },
        Some("integer" | "number") => {
            let least = schema["minimum"].as_i64();
            let most = schema["maximum"].as_i64();
            let is_in = |number: &i64| {
                least.is_none_or(|least| *number >= least)
                    && most.is_none_or(|most| *number <= most)
                    && number.abs() < LARGEST
            };
            let base = current.or_else(|| schema.get("default")).and_then(Value::as_i64);
            let near = match base {
                Some(base) => vec![base + 1, base - 1],
                None => vec![1, 2],
            };
            // Nothing says that there has to be one.
            let none = least.is_none().then_some(0);
            let all = near.into_iter().chain(least).chain(most).chain(none).filter(is_in);
            let mut found: Vec<Value> = Vec::new();
            for number in all.map(Value::from) {
                if Some(&number) != current && !found.contains(&number) {
                    found.push(number);
                }
            }
            found
        }
        Some("string") => text(schema, current),
        _ => Vec::new(),
    }
}

fn text(schema: &Value, current: Option<&Value>) -> Vec<Value> {
    if let Some(pattern) = schema["pattern"].as_str() {
        let Ok(pattern) = regex::Regex::new(pattern) else { return Vec::new() };
        let fits = ["opdev", "20Gi", "10", "a=b", "1.2.3"].into_iter().filter(|text| pattern.is_match(text));
        return fits.map(Value::from).filter(|value| Some(value) != current).take(1).collect();
    }
    let long_enough = schema["minLength"].as_u64().is_none_or(|least| least == 0);
    match current.and_then(Value::as_str) {
        // The API server may write the second one otherwise: 1Gi.
        Some(now) if now.starts_with(|first: char| first.is_ascii_digit()) && now.ends_with('i') => {
            vec!["20Gi".into(), "1024Mi".into()]
        }
        Some(now) => {
            let empty = (long_enough && !now.is_empty()).then(|| "".into());
            std::iter::once("opdev".into()).chain(empty).collect()
        }
        None => vec!["opdev".into()],
    }
}

/// An object with its required fields and nothing more.
fn filled(schema: &Value) -> Value {
    let mut object = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        object.insert(name.to_owned(), needed(&schema["properties"][name]));
    }
    object.into()
}

fn needed(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("object") => filled(schema),
        Some("array") => json!([]),
        _ => scalar(schema, None).into_iter().next().unwrap_or(Value::Null),
    }
}

/// The object with the change. What the schema wants beside the field is filled in.
pub(crate) fn changed(schema: &Value, object: &Value, mutation: &Mutation) -> Value {
    let mut object = object.clone();
    let Some((last, above)) = mutation.path.split_last() else { return object };
    let (mut at, mut schema) = (&mut object, schema);
    for key in above {
        if at.is_array() {
            schema = &schema["items"];
            let item = key.parse().ok().and_then(|index: usize| at.get_mut(index));
            let Some(item) = item else { return object };
            at = item;
            continue;
        }
        schema = &schema["properties"][key];
        let Some(map) = at.as_object_mut() else { return object };
        let part = map.entry(key.clone()).or_insert(Value::Null);
        if !part.is_object() && !part.is_array() {
            *part = filled(schema);
        }
        at = part;
    }
    if let Some(map) = at.as_object_mut() {
        match &mutation.value {
            Some(value) => {
                map.insert(last.clone(), value.clone());
            }
            None => {
                map.remove(last);
            }
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"properties": {"spec": {"type": "object", "properties": {
            "tier": {"type": "string", "enum": ["gold", "iron"]},
            "size": {"type": "integer", "minimum": 1, "maximum": 3},
            "on": {"type": "boolean"},
            "tls": {"type": "object", "required": ["secret"], "properties": {
                "secret": {"type": "string"}, "strict": {"type": "boolean"}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "resources": {"type": "object", "properties": {"limits": {}, "requests": {}}},
            "args": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer"},
            "serviceType": {"type": "string"},
            "users": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "admin": {"type": "boolean"}}}},
        }}}})
    }

    fn object() -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"tier": "gold", "size": 3}})
    }

    #[test]
    fn every_field_has_other_values_and_goes_where_it_was() {
        let words: Vec<String> = mutations(&schema(), &object()).iter().map(Mutation::to_string).collect();
        for wanted in [
            ".spec.tier → \"iron\"",
            ".spec.tier taken away",
            ".spec.size → 2",
            ".spec.size → 1",
            ".spec.size taken away",
            ".spec.on → true",
            ".spec.tls → {\"secret\":\"opdev\"}",
            ".spec.tls.strict → true",
            ".spec.labels → {\"opdev\":\"opdev\"}",
            ".spec.args → [\"opdev\"]",
            ".metadata.labels.opdev.example.com/extra → \"extra\"",
        ] {
            assert!(words.iter().any(|word| word == wanted), "{wanted} in {words:#?}");
        }
        assert!(!words.iter().any(|word| word.contains("size → 4") || word.contains("gold")), "{words:#?}");
        assert!(words.iter().any(|word| word.starts_with(".spec.resources → {\"limits\"")), "{words:#?}");
    }

    #[test]
    fn the_first_item_of_a_list_stands_for_all() {
        let mut object = object();
        object["spec"]["users"] = json!([{"name": "ann", "admin": true}, {"name": "bob"}]);
        object["spec"]["serviceType"] = json!("ClusterIP");
        object["spec"]["count"] = json!(2);
        let all = mutations(&schema(), &object);
        let words: Vec<String> = all.iter().map(Mutation::to_string).collect();
        for wanted in [
            ".spec.users.0.admin → false",
            ".spec.users.0.admin taken away",
            ".spec.users.0.name → \"opdev\"",
            ".spec.users → []",
            ".spec.users taken away",
            ".spec.serviceType → \"NodePort\"",
            ".spec.serviceType → \"LoadBalancer\"",
            ".spec.count → 0",
        ] {
            assert!(words.iter().any(|word| word == wanted), "{wanted} in {words:#?}");
        }
        assert!(
            !words.iter().any(|word| word.contains("\"ClusterIP\"") || word.contains("users.1")),
            "{words:#?}"
        );
        let change = all.iter().find(|one| one.to_string() == ".spec.users.0.admin → false").unwrap();
        let new = changed(&schema(), &object, change);
        assert_eq!(new["spec"]["users"], json!([{"name": "ann", "admin": false}, {"name": "bob"}]));
    }

    #[test]
    fn what_stands_beside_the_sample_changes_and_goes_and_no_secret_is_told() {
        let others = [
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db"}, "stringData": {"key": "geheim"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"a": "1"}, "immutable": true}),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "e"}}),
        ];
        let words: Vec<String> = of_references(&others).iter().map(Mutation::to_string).collect();
        let wanted = [
            "Secret db .stringData.key changed",
            "Secret db deleted",
            "ConfigMap c .data.a → \"opdev\"",
            "ConfigMap c .data.a taken away",
            "ConfigMap c deleted",
        ];
        assert_eq!(words, wanted);
    }

    #[test]
    fn parts_that_are_not_there_are_switched_on() {
        let mut schema = schema();
        schema["properties"]["spec"]["properties"]["metrics"] = json!({"type": "object", "properties": {
            "enabled": {"type": "boolean"}, "port": {"type": "integer"}}});
        let parts = optional_parts(&schema, &object());
        let words: Vec<String> =
            parts.iter().map(|(path, value)| format!("{} {value}", path.join("."))).collect();
        assert_eq!(words.len(), 2, "{words:?}");
        for wanted in ["spec.tls {\"secret\":\"opdev\"}", "spec.metrics {\"enabled\":true}"] {
            assert!(words.iter().any(|word| word == wanted), "{words:?}");
        }
    }

    #[test]
    fn of_a_map_without_a_schema_one_entry_changes_and_one_goes() {
        let schema = json!({"properties": {"spec": {"type": "object", "properties": {
            "config": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}});
        let object = json!({"spec": {"config": {"a": 1, "b": "x"}}});
        let words: Vec<String> = mutations(&schema, &object).iter().map(Mutation::to_string).collect();
        assert_eq!(
            &words[..3],
            [
                ".spec.config → {\"a\":2,\"b\":\"x\"}",
                ".spec.config → {\"b\":\"x\"}",
                ".spec.config taken away"
            ]
        );
    }

    #[test]
    fn what_the_schema_wants_beside_a_field_is_filled_in() {
        let path = ["spec", "tls", "strict"].map(str::to_owned).to_vec();
        let new = changed(&schema(), &object(), &Mutation::new(path, Some(true.into())));
        assert_eq!(new["spec"]["tls"], json!({"secret": "opdev", "strict": true}));
    }
}
