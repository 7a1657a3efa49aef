//! The parts of a custom resource that a scenario changes: numbers of pods, sizes of storage, and whatever
//! switches a part on and off. Pure.

use opdev_object::facts::replicas;
use opdev_object::meta::Gvk;
use serde_json::{Map, Value, json};

/// Parts of a spec below which a quantity is one of storage.
const STORAGE: [&str; 5] = ["storage", "persistence", "volume", "disk", "size"];
/// Numbers of pods that belong to a part of a spec, and are changed.
const MOST_PARTS: usize = 2;
/// Fields that are switched at most.
const MOST_TOGGLED: usize = 4;

/// Fields that switch a part on.
pub const SWITCHES: [&str; 3] = ["enabled", "create", "enable"];

/// The fields that say how many pods there are. Of each: the part of the scenario's name that says which
/// one it is, the path, and the value. The one of the spec itself comes first, or the scale of the CRD.
pub fn counts(object: &Value, scale: Option<&str>) -> Vec<(String, Vec<String>, i64)> {
    let mut found = Vec::new();
    if let Some(scale) = scale {
        let path: Vec<String> = scale.trim_start_matches('.').split('.').map(str::to_owned).collect();
        let value = path.iter().try_fold(object, |at, key| at.get(key));
        found.extend(value.and_then(Value::as_i64).map(|count| (String::new(), path, count)));
    }
    let Some(spec) = object.get("spec") else { return found };
    let of_spec = |path: &[&str]| ["spec"].iter().chain(path).map(|&part| part.to_owned()).collect();
    if found.is_empty() {
        found.extend(count(spec).map(|(name, count)| (String::new(), of_spec(&[name]), count)));
    }
    let is_on = |part: &Value| !SWITCHES.iter().any(|switch| part[*switch] == false);
    let parts = spec.as_object().into_iter().flatten();
    let parts = parts.filter(|(key, part)| part.is_object() && is_on(part) && !replicas::is_of_storage(key));
    let more = parts.filter_map(|(key, part)| {
        let (name, count) = count(part)?;
        Some((format!(" {key}.{name}"), of_spec(&[key, name]), count))
    });
    let more: Vec<_> = more.filter(|(_, path, _)| found.iter().all(|(_, known, _)| known != path)).collect();
    found.extend(more.into_iter().take(MOST_PARTS));
    found
}

/// The number of pods that a part says directly.
fn count(part: &Value) -> Option<(&'static str, i64)> {
    replicas::NAMES.iter().find_map(|name| {
        let count = part.get(*name)?.as_i64().filter(|count| *count >= 0)?;
        Some((*name, count))
    })
}

/// A quantity of storage, half as large again.
pub fn storage(object: &Value) -> Option<(Vec<String>, String)> {
    fn seek(at: &Value, path: &mut Vec<String>) -> Option<(Vec<String>, String)> {
        for (key, value) in at.as_object()? {
            path.push(key.clone());
            let below = path.iter().any(|part| {
                let part = part.to_ascii_lowercase();
                STORAGE.iter().any(|name| part.contains(name))
            });
            let larger = value.as_str().filter(|_| below).and_then(larger);
            let found = larger.map(|larger| (path.clone(), larger)).or_else(|| seek(value, path));
            if found.is_some() {
                return found;
            }
            path.pop();
        }
        None
    }
    seek(object.get("spec")?, &mut vec!["spec".to_owned()])
}

/// A quantity with a suffix of bytes, half as large again, as a whole number.
fn larger(text: &str) -> Option<String> {
    let at = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(at);
    let (number, smaller, factor) = match unit {
        "Ti" => (number, "Gi", 1024),
        "Gi" => (number, "Mi", 1024),
        "Mi" => (number, "Ki", 1024),
        "T" => (number, "G", 1000),
        "G" => (number, "M", 1000),
        _ => return None,
    };
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    Some(match number.checked_mul(3)? {
        even if even % 2 == 0 => format!("{}{unit}", even / 2),
        odd => format!("{}{smaller}", odd.checked_mul(factor)? / 2),
    })
}

/// A field, its value, and the other one: `null` takes it away.
type Toggle = (Vec<String>, Value, Value);

/// The fields that a scenario switches on and off: first those that are called a switch, then the other
/// booleans, then ports, then the parts of the spec that may be left out.
pub fn toggles(object: &Value, schema: Option<&Value>) -> Vec<Toggle> {
    let mut found: Vec<(u8, Toggle)> = Vec::new();
    if let Some(spec) = object.get("spec") {
        let schema = schema.map(|schema| &schema["properties"]["spec"]);
        seek(spec, schema, &mut vec!["spec".to_owned()], &mut found);
    }
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, toggle)| toggle).take(MOST_TOGGLED).collect()
}

fn seek(at: &Value, schema: Option<&Value>, path: &mut Vec<String>, found: &mut Vec<(u8, Toggle)>) {
    for (key, value) in at.as_object().into_iter().flatten() {
        path.push(key.clone());
        let optional = schema.is_some_and(|schema| is_optional(schema, key));
        let below = schema.map(|schema| &schema["properties"][key]);
        let gone = || (path.clone(), value.clone(), Value::Null);
        match value {
            Value::Bool(on) => {
                let rank = u8::from(!SWITCHES.contains(&&**key));
                found.push((rank, (path.clone(), value.clone(), (!on).into())));
            }
            Value::Number(_) if optional && is_port(key) => found.push((2, gone())),
            Value::Object(part) => {
                let properties = below.and_then(|below| below["properties"].as_object());
                let own = properties.is_some_and(|properties| known(properties).is_none());
                let switched = SWITCHES.iter().any(|switch| part.contains_key(*switch));
                if optional && own && !switched && path.len() == 2 {
                    found.push((3, gone()));
                }
                seek(value, below, path, found);
            }
            _ => {}
        }
        path.pop();
    }
}

/// Returns true if an object may be without a field, and then nobody fills it in.
fn is_optional(schema: &Value, key: &str) -> bool {
    let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == key));
    let property = &schema["properties"][key];
    property.is_object() && !required && property.get("default").is_none()
}

fn is_port(key: &str) -> bool {
    key == "port" || key.ends_with("Port")
}

/// Parts of objects that are known by their fields: all of these are there. One value of each is tried.
pub fn known(properties: &Map<String, Value>) -> Option<Value> {
    let table: [(&[&str], Value); 9] = [
        (
            &["nodeAffinity", "podAffinity", "podAntiAffinity"],
            json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [{"key": "k", "operator": "In", "values": ["v"]}]}}]}}),
        ),
        (
            &["limits", "requests"],
            // The API server writes these otherwise: 1 and 1Gi. Who compares texts writes again and again.
            json!({"limits": {"cpu": "2", "memory": "3Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}),
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

/// The schema of an object's kind and version in its CRD.
pub fn schema<'a>(definitions: impl Iterator<Item = &'a Value>, object: &Value) -> Option<&'a Value> {
    let gvk = Gvk::of(object)?;
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
    use expect_test::expect;
    use serde_json::json;

    fn names(found: &[Toggle]) -> Vec<String> {
        found.iter().map(|(path, _, other)| format!("{} → {other}", path.join("."))).collect()
    }

    #[test]
    fn quantities_grow_by_half() {
        assert_eq!(larger("10Gi").as_deref(), Some("15Gi"));
        assert_eq!(larger("1Gi").as_deref(), Some("1536Mi"));
        assert_eq!([larger("hdd"), larger("100m"), larger("0Gi")], [None, None, None]);
    }

    #[test]
    fn parts_have_numbers_of_pods_unless_they_are_off() {
        let object = json!({"spec": {
            "master": {"replicas": 3}, "proxy": {"enabled": false, "size": 3}, "server": {"size": 2},
            "storage": {"size": 3}, "third": {"count": 1},
        }});
        let found = |scale| counts(&object, scale).into_iter().map(|(part, path, _)| (part, path.join(".")));
        let names: Vec<_> = found(None).collect();
        let part = |name: &str| (format!(" {name}"), format!("spec.{name}"));
        assert_eq!(names, [part("master.replicas"), part("server.size")]);
        let scaled: Vec<_> = found(Some(".spec.server.size")).collect();
        let first = (String::new(), "spec.server.size".to_owned());
        assert_eq!(scaled, [first, part("master.replicas"), part("third.count")], "each of them once");
    }

    #[test]
    fn switches_come_before_what_may_be_taken_away() {
        let object = json!({"spec": {
            "debug": true, "tls": {"enabled": false}, "backup": {"schedule": "daily"}, "port": 80,
            "uiPort": 9000, "image": {"name": "db"},
        }});
        let part = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let schema = json!({"properties": {"spec": {"required": ["image"], "properties": {
            "debug": {}, "tls": part, "backup": part, "port": {"default": 80}, "uiPort": {}, "image": part,
        }}}});
        expect![[r#"
            [
                "spec.tls.enabled → true",
                "spec.debug → false",
                "spec.uiPort → null",
                "spec.backup → null",
            ]
        "#]]
        .assert_debug_eq(&names(&toggles(&object, Some(&schema))));
        assert_eq!(toggles(&object, None).len(), 2, "nobody knows what may go");
    }
}
