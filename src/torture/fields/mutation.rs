//! One field of a custom resource at a time, from its schema: other values, nothing, and what was not there.
//! Pure.

use opdev_object::meta;
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
    /// The field, from the root of the object.
    pub(crate) path: Vec<String>,
    /// Its value; nothing where it goes.
    pub(crate) value: Option<Value>,
}

impl fmt::Display for Mutation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".{} ", self.path.join("."))?;
        match &self.value {
            None => f.write_str("taken away"),
            Some(value) => write!(f, "→ {value}"),
        }
    }
}

/// Parts of objects that are known by their fields: all of these are there. One value of each is tried.
fn known(properties: &Map<String, Value>) -> Option<Value> {
    let table: [(&[&str], Value); 9] = [
        (
            &["nodeAffinity", "podAffinity", "podAntiAffinity"],
            json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}]}}),
        ),
        (
            &["limits", "requests"],
            json!({"limits": {"cpu": "2", "memory": "3Gi"}, "requests": {"cpu": "100m", "memory": "64Mi"}}),
        ),
        (
            &["effect", "tolerationSeconds", "operator"],
            json!({"key": "k", "operator": "Exists", "effect": "NoSchedule"}),
        ),
        (&["fsGroup", "supplementalGroups"], json!({"fsGroup": 1234})),
        (&["capabilities", "privileged"], json!({"runAsUser": 1234})),
        (&["command", "volumeMounts", "image"], json!({"name": "extra", "image": "busybox:1"})),
        (&["configMap", "emptyDir", "hostPath"], json!({"name": "extra", "emptyDir": {}})),
        (&["valueFrom", "value", "name"], json!({"name": "EXTRA", "value": "1"})),
        (&["matchExpressions", "matchLabels"], json!({"matchLabels": {"a": "b"}})),
    ];
    table
        .into_iter()
        .find(|(names, _)| names.iter().all(|name| properties.contains_key(*name)))
        .map(|(_, value)| value)
}

/// All changes of one field that the schema lets, of the spec and of the object's own labels and annotations.
pub(crate) fn mutations(schema: &Value, object: &Value) -> Vec<Mutation> {
    let mut found = Vec::new();
    let spec = &schema["properties"]["spec"];
    below(spec, object.get("spec"), &mut vec!["spec".to_owned()], &mut found);
    for kind in ["labels", "annotations"] {
        let path = ["metadata", kind, "opdev.example.com/extra"].map(str::to_owned).to_vec();
        found.push(Mutation { path, value: Some("extra".into()) });
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
        let new = Mutation { path: path.clone(), value };
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
                found.push(Mutation { path: path.clone(), value: None });
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
                None => vec![1],
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
        Some(now) if now.starts_with(|first: char| first.is_ascii_digit()) && now.ends_with('i') => {
            vec!["20Gi".into()]
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

/// The schema of an object's kind and version in its CRD.
pub(crate) fn schema<'a>(definitions: impl Iterator<Item = &'a Value>, object: &Value) -> Option<&'a Value> {
    let gvk = meta::Gvk::of(object)?;
    let is_its =
        |crd: &&Value| crd["spec"]["group"] == *gvk.group && crd["spec"]["names"]["kind"] == *gvk.kind;
    let mut definitions = definitions;
    let crd = definitions.find(is_its)?;
    let versions = crd["spec"]["versions"].as_array()?;
    let version = versions.iter().find(|version| version["name"] == *gvk.version)?;
    version.pointer("/schema/openAPIV3Schema")
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
    fn what_the_schema_wants_beside_a_field_is_filled_in() {
        let path = ["spec", "tls", "strict"].map(str::to_owned).to_vec();
        let new = changed(&schema(), &object(), &Mutation { path, value: Some(true.into()) });
        assert_eq!(new["spec"]["tls"], json!({"secret": "opdev", "strict": true}));
    }
}
