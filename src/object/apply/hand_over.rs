//! Fields that pass from other managers to one that applies: `metadata.managedFields` written anew, so that
//! the next apply takes away what it does not have any more. `kubectl apply --server-side` and Helm 4 do this
//! for objects that were made by client-side writes. Pure: the caller sends the patch and tries again on a
//! conflict.

use crate::fieldset::{Element, FieldSet};
use serde_json::{Value, json};

/// Fields that pass to another manager.
#[derive(Clone, Debug)]
pub struct HandOver {
    /// The fields.
    pub fields: FieldSet,
    /// The managers that had them, sorted.
    pub managers: Vec<String>,
    entries: Vec<Value>,
}

impl HandOver {
    /// Gives to `manager`, as one that applies, the part that `select` takes from each other entry of the
    /// object itself (not of a subresource). `None` where that is nothing, or the entries cannot be read.
    pub fn plan(
        live: &Value,
        manager: &str,
        mut select: impl FnMut(&Value, &FieldSet) -> FieldSet,
    ) -> Option<HandOver> {
        let entries = live.pointer("/metadata/managedFields")?.as_array()?;
        let of_subresource =
            |entry: &Value| entry["subresource"].as_str().is_some_and(|subresource| !subresource.is_empty());
        let is_own = |entry: &Value| {
            entry["manager"] == manager && entry["operation"] == "Apply" && !of_subresource(entry)
        };
        let (mut kept, mut managers, mut last) = (Vec::new(), Vec::new(), None);
        // Fields of one API version do not say anything of another one.
        let mut taken: Vec<(&Value, FieldSet)> = Vec::new();
        for entry in entries.iter().filter(|entry| !is_own(entry)) {
            if of_subresource(entry) {
                kept.push(entry.clone());
                continue;
            }
            let fields = FieldSet::from_fields_v1(&entry["fieldsV1"]).ok()?;
            let mine = select(entry, &fields);
            if mine.is_empty() {
                kept.push(entry.clone());
                continue;
            }
            let rest = fields.difference(&mine);
            if !rest.is_empty() {
                let mut entry = entry.clone();
                if let Some(map) = entry.as_object_mut() {
                    map.insert("fieldsV1".to_owned(), rest.to_fields_v1());
                }
                kept.push(entry);
            }
            managers.extend(entry["manager"].as_str().map(str::to_owned));
            taken.push((&entry["apiVersion"], mine));
            last = Some(entry);
        }
        let last = last?;
        let own = entries.iter().find(|entry| is_own(entry));
        let version = &own.unwrap_or(last)["apiVersion"];
        let mut fields = FieldSet::new();
        for (_, mine) in taken.iter().filter(|(at, _)| *at == version) {
            fields = fields.union(mine);
        }
        let before =
            own.map_or_else(|| Ok(FieldSet::new()), |own| FieldSet::from_fields_v1(&own["fieldsV1"]));
        kept.push(json!({
            "manager": manager,
            "operation": "Apply",
            "apiVersion": version,
            "time": last["time"],
            "fieldsType": "FieldsV1",
            "fieldsV1": fields.union(&before.ok()?).to_fields_v1(),
        }));
        managers.sort();
        managers.dedup();
        Some(HandOver { fields, managers, entries: kept })
    }

    /// Leaves these fields to nobody: the caller removes them in the same patch.
    #[must_use]
    pub fn forgetting(mut self, fields: &FieldSet) -> HandOver {
        self.fields = self.fields.difference(fields);
        if let Some(Value::Object(own)) = self.entries.last_mut()
            && let Some(known) = own.get("fieldsV1").and_then(|known| FieldSet::from_fields_v1(known).ok())
        {
            own.insert("fieldsV1".to_owned(), known.difference(fields).to_fields_v1());
        }
        self
    }

    /// The JSON patch that writes the entries, which is refused where the object is not the one that was
    /// looked at.
    pub fn json_patch(&self, live: &Value) -> Vec<Value> {
        let version = live.pointer("/metadata/resourceVersion").unwrap_or(&Value::Null);
        vec![
            json!({ "op": "replace", "path": "/metadata/managedFields", "value": self.entries }),
            json!({ "op": "replace", "path": "/metadata/resourceVersion", "value": version }),
        ]
    }

    /// The object without these fields, as far as no other entry that stays owns them.
    pub fn without(&self, object: &Value) -> Value {
        let mut fields = self.fields.clone();
        let others = self.entries.iter().rev().skip(1);
        for theirs in others.filter_map(|entry| FieldSet::from_fields_v1(&entry["fieldsV1"]).ok()) {
            fields = fields.difference(&theirs);
        }
        let mut object = object.clone();
        for path in fields.leaves_first() {
            remove(&mut object, &path.0);
        }
        object
    }
}

/// The fields, with all below them, that `old` has and `new` has not. Both are texts of the object, before
/// defaults.
pub fn dropped(fields: &FieldSet, old: &Value, new: &Value) -> FieldSet {
    let mut found = FieldSet::new();
    for path in fields.paths().iter().filter(|path| is_dropped(&path.0, old, new)) {
        found.insert(&path.0);
    }
    found
}

fn is_dropped(path: &[Element], old: &Value, new: &Value) -> bool {
    let (mut old, mut new) = (Some(old), new);
    for element in path {
        old = old.and_then(|old| step(old, element));
        match step(new, element) {
            Some(below) => new = below,
            None => return old.is_some(),
        }
    }
    false
}

/// A part of a text. An item may leave out keys that have a default, such as the protocol of a port.
fn step<'a>(value: &'a Value, element: &Element) -> Option<&'a Value> {
    let found = match element {
        Element::Field(name) => value.get(name),
        Element::Key(_) | Element::Value(_) | Element::Index(_) => {
            let items = value.as_array()?;
            items.get(position(items, element)?)
        }
    };
    found.filter(|found| !found.is_null())
}

fn position(items: &[Value], element: &Element) -> Option<usize> {
    match element {
        Element::Field(_) => None,
        Element::Key(keys) => items.iter().position(|item| {
            let says =
                |(name, value): &(String, crate::fieldset::Atom)| item.get(name).map(|own| *own == value.0);
            keys.iter().all(|key| says(key).unwrap_or(true)) && keys.iter().any(|key| says(key) == Some(true))
        }),
        Element::Value(value) => items.iter().position(|item| *item == value.0),
        Element::Index(index) => usize::try_from(*index).ok(),
    }
}

fn remove(value: &mut Value, path: &[Element]) {
    match path {
        [] => {}
        [Element::Field(name)] => {
            if let Some(map) = value.as_object_mut() {
                map.remove(name);
            }
        }
        [last] => {
            let Some(items) = value.as_array_mut() else { return };
            if let Some(at) = position(items, last).filter(|at| *at < items.len()) {
                items.remove(at);
            }
        }
        [first, rest @ ..] => {
            let below = match first {
                Element::Field(name) => value.get_mut(name),
                element => value.as_array_mut().and_then(|items| {
                    let at = position(items, element)?;
                    items.get_mut(at)
                }),
            };
            if let Some(below) = below {
                remove(below, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: &Value) -> FieldSet {
        FieldSet::from_fields_v1(value).unwrap()
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1",
                "fieldsV1": fields, "time": "2026-01-01T00:00:00Z" })
    }

    #[test]
    fn what_a_text_has_dropped_goes_with_all_below_it_and_defaults_stay() {
        let owned = fields(&json!({"f:spec": {
            "f:replicas": {}, "f:strategy": {"f:type": {}}, "f:policy": {},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}},
                        "k:{\"port\":81,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:names": {"v:\"a\"": {}, "v:\"b\"": {}}}}));
        let old = json!({"spec": {"replicas": 2, "policy": null, "ports": [{"port": 80}, {"port": 81}], "names": ["a", "b"]}});
        let new = json!({"spec": {"replicas": null, "ports": [{"port": 81}], "names": ["b"]}});
        let gone = dropped(&owned, &old, &new);
        let expected = fields(&json!({"f:spec": {
            "f:replicas": {},
            "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {}}},
            "f:names": {"v:\"a\"": {}}}}));
        assert_eq!(gone, expected, "{}", gone.to_fields_v1());
        assert!(dropped(&owned, &new, &old).is_empty(), "what is new is not dropped");
    }

    #[test]
    fn a_part_of_an_entry_passes_and_the_rest_stays() {
        let live = json!({"metadata": {"resourceVersion": "7", "managedFields": [
            entry("helm", "Update", &json!({"f:data": {"f:a": {}, "f:b": {}}})),
            entry("other", "Apply", &json!({"f:data": {"f:c": {}}})),
            entry("helm", "Apply", &json!({"f:data": {"f:d": {}}})),
        ]}, "data": {"a": "1", "b": "2", "c": "3", "d": "4"}});
        let only_b = |entry: &Value, all: &FieldSet| {
            let wanted = FieldSet::of_fields(&[&["data", "b"], &["data", "c"]]);
            if entry["operation"] == "Update" { all.intersection(&wanted) } else { FieldSet::new() }
        };
        let given = HandOver::plan(&live, "helm", only_b).unwrap();
        assert_eq!(given.managers, ["helm"]);
        let patch = given.json_patch(&live);
        assert_eq!(patch[1]["value"], "7");
        let entries = patch[0]["value"].as_array().unwrap();
        let all: Vec<_> = entries.iter().map(|entry| (&entry["operation"], &entry["fieldsV1"])).collect();
        assert_eq!(
            all,
            [
                (&json!("Update"), &json!({"f:data": {"f:a": {}}})),
                (&json!("Apply"), &json!({"f:data": {"f:c": {}}})),
                (&json!("Apply"), &json!({"f:data": {"f:b": {}, "f:d": {}}})),
            ]
        );
        assert_eq!(given.without(&live)["data"], json!({"a": "1", "c": "3", "d": "4"}));
        assert!(HandOver::plan(&live, "helm", |_, _| FieldSet::new()).is_none());
    }

    #[test]
    fn what_another_manager_owns_as_well_stays_in_the_object() {
        let live = json!({"metadata": {"managedFields": [
            entry("helm", "Update", &json!({"f:data": {"f:a": {}, "f:b": {}}})),
            entry("other", "Apply", &json!({"f:data": {"f:a": {}}})),
        ]}, "data": {"a": "1", "b": "2"}});
        let given = HandOver::plan(&live, "helm", |entry, all| {
            if entry["operation"] == "Update" { all.clone() } else { FieldSet::new() }
        });
        assert_eq!(given.unwrap().without(&live)["data"], json!({"a": "1"}));
    }
}
