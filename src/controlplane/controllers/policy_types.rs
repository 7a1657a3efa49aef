//! Errors of the expressions of a ValidatingAdmissionPolicy where they are about the kinds that it matches:
//! `status.typeChecking`. Wildcards and subresources are not looked at, and of many kinds the first ten.
//! Never keeps a policy from its work: expressions that the check warns of are in force all the same.

use super::fields::{self, deleting, int, list, put_count, text, with_status};
use crate::contract::{Actor, Change, Controller, Key, Sync, View, Write};
use jiff::Timestamp;
use opdev_cel::Compiler;
use opdev_object::facts::facts;
use opdev_object::meta::{self, Gvk};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// See the module.
pub(crate) struct PolicyTypes;

const RESOURCE: &str = "admissionregistration.k8s.io/validatingadmissionpolicies";
const DEFINITIONS: &str = "apiextensions.k8s.io/customresourcedefinitions";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// How many kinds one policy is checked against.
const MOST: usize = 10;

impl Controller for PolicyTypes {
    fn name(&self) -> &'static str {
        "validatingadmissionpolicy-status-controller"
    }

    fn actor(&self) -> Actor {
        Actor {
            user: "system:serviceaccount:kube-system:validatingadmissionpolicy-status-controller",
            field_manager: "validatingadmissionpolicy-status",
        }
    }

    fn keys(&self, _view: &dyn View, change: &Change) -> Vec<Key> {
        if change.resource == RESOURCE { change.key().into_iter().collect() } else { Vec::new() }
    }

    fn sync(&self, view: &dyn View, key: &Key, _now: Timestamp) -> Sync {
        let Some(policy) = key.read(view).filter(|policy| !deleting(policy)) else { return Sync::done() };
        let generation = meta::generation(&policy);
        if generation <= int(&policy, "/status/observedGeneration").unwrap_or(0) {
            return Sync::done();
        }
        let mut status = fields::status(&policy);
        put_count(&mut status, "observedGeneration", generation);
        let warnings = Kinds { definitions: view.list(DEFINITIONS, None) }.check(&policy);
        let found = if warnings.is_empty() { json!({}) } else { json!({ "expressionWarnings": warnings }) };
        status.insert("typeChecking".to_owned(), found);
        let object = with_status(&policy, status);
        let write = Write::UpdateStatus { resource: RESOURCE.into(), object };
        Sync { writes: vec![write], ..Sync::default() }
    }
}

/// The kinds that are served.
struct Kinds {
    definitions: Vec<Arc<Value>>,
}

impl Kinds {
    /// The warnings about a policy's validations and their messages.
    fn check(&self, policy: &Value) -> Vec<Value> {
        let kinds = self.matched(policy).into_iter();
        let schemas: Vec<(Gvk, Value)> =
            kinds.filter_map(|gvk| self.schema(&gvk).map(|schema| (gvk, schema))).collect();
        let params = policy.pointer("/spec/paramKind").filter(|kind| kind.is_object());
        let param_kind = params.and_then(Gvk::of).filter(|gvk| !gvk.kind.is_empty());
        let param_schema = param_kind.and_then(|gvk| {
            let schema = self.schema(&gvk)?;
            Some((format!("{}2", gvk.kind), schema))
        });
        let compilers: Vec<(&Gvk, Compiler)> = schemas
            .iter()
            .map(|(gvk, schema)| {
                let params_type = param_schema.as_ref().map(|(name, schema)| (name.as_str(), schema));
                // The kind of the parameters may be that of the object: numbers tell them apart.
                let object = (&*format!("{}1", gvk.kind), schema);
                let mut compiler = Compiler::new(params.is_some()).composed().typed(object, params_type);
                for variable in list(policy, "/spec/variables") {
                    compiler.variable(text(variable, "/name"), text(variable, "/expression"));
                }
                (gvk, compiler)
            })
            .collect();
        let mut warnings = Vec::new();
        for (index, validation) in list(policy, "/spec/validations").iter().enumerate() {
            for field in ["expression", "messageExpression"] {
                let Some(expression) = validation.get(field).and_then(Value::as_str) else { continue };
                if expression.is_empty() && field == "messageExpression" {
                    continue;
                }
                let wrong = compilers.iter().filter_map(|(gvk, compiler)| {
                    Some(format!(
                        "{}/{}, Kind={}: {}\n",
                        gvk.group,
                        gvk.version,
                        gvk.kind,
                        compiler.misuse(expression)?
                    ))
                });
                let wrong: Vec<String> = wrong.collect();
                if !wrong.is_empty() {
                    warnings.push(json!({
                        "fieldRef": format!("spec.validations[{index}].{field}"),
                        "warning": wrong.join("\n"),
                    }));
                }
            }
        }
        warnings
    }

    /// The kinds that the rules of a policy name, in the order of group, version and kind.
    fn matched(&self, policy: &Value) -> BTreeSet<Gvk> {
        let mut found = BTreeSet::new();
        for rule in list(policy, "/spec/matchConstraints/resourceRules") {
            let named = |field: &str| {
                let mut names: Vec<&str> = list(rule, field).iter().filter_map(Value::as_str).collect();
                names.sort_unstable();
                names
            };
            let (groups, versions) = (named("/apiGroups"), named("/apiVersions"));
            if groups.iter().chain(&versions).any(|name| name.contains('*')) {
                continue;
            }
            let mut resources = named("/resources");
            resources.retain(|name| !name.contains(['*', '/']));
            let mut count = 0;
            for group in groups {
                for version in &versions {
                    for resource in &resources {
                        for gvk in self.kinds_of(group, version, resource) {
                            found.insert(gvk);
                            count += 1;
                            if count == MOST {
                                return found;
                            }
                        }
                    }
                }
            }
        }
        found
    }

    /// The kinds of a resource, under its plural or singular name. Without a group, those of any group.
    fn kinds_of(&self, group: &str, version: &str, resource: &str) -> Vec<Gvk> {
        let resource = resource.to_lowercase();
        let here = |of: &str| group.is_empty() || of == group;
        let built_in = facts().resources().iter().filter(|one| {
            here(&one.group)
                && one.version == version
                && (one.resource == resource || one.singular == resource)
        });
        let custom = self.definitions.iter().filter(|crd| {
            let named = |field: &str| text(crd, field) == resource;
            here(text(crd, "/spec/group"))
                && served(crd, version).is_some()
                && (named("/spec/names/plural") || named("/spec/names/singular"))
        });
        let custom =
            custom.map(|crd| Gvk::new(text(crd, "/spec/group"), version, text(crd, "/spec/names/kind")));
        built_in.map(opdev_object::facts::ResourceFact::gvk).chain(custom).collect()
    }

    /// The schema of a kind, with nothing referred to.
    fn schema(&self, gvk: &Gvk) -> Option<Value> {
        if let Some(name) = facts().definition_name(gvk) {
            return Some(definition(name, &mut Vec::new()));
        }
        let of = |crd: &&Arc<Value>| {
            text(crd, "/spec/group") == gvk.group && text(crd, "/spec/names/kind") == gvk.kind
        };
        let crd = self.definitions.iter().find(of)?;
        let mut schema = served(crd, &gvk.version)?.pointer("/schema/openAPIV3Schema")?.clone();
        embed(&mut schema, true);
        Some(schema)
    }
}

/// A version of a definition that is established, where it is served.
fn served<'a>(crd: &'a Value, version: &str) -> Option<&'a Value> {
    let established = list(crd, "/status/conditions")
        .iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True");
    let versions = list(crd, "/spec/versions").iter().filter(|_| established);
    versions.into_iter().find(|one| one["name"] == version && one["served"] == true)
}

/// Whole resources, the schema's own and those that are embedded in it, have what every object has.
fn embed(schema: &mut Value, root: bool) {
    for place in ["properties", "patternProperties"] {
        if let Some(fields) = schema.get_mut(place).and_then(Value::as_object_mut) {
            fields.values_mut().for_each(|field| embed(field, false));
        }
    }
    for place in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(place).filter(|inner| inner.is_object()) {
            embed(inner, false);
        }
    }
    let Some(fields) = schema.as_object_mut() else { return };
    let embedded = fields.remove("x-kubernetes-embedded-resource") == Some(Value::Bool(true));
    if !(root || embedded) {
        return;
    }
    let properties = fields.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Some(properties) = properties.as_object_mut() else { return };
    for name in ["apiVersion", "kind"] {
        properties.insert(name.to_owned(), json!({"type": "string"}));
    }
    properties.insert("metadata".to_owned(), definition(OBJECT_META, &mut Vec::new()));
}

/// A built-in definition with its references resolved; inside itself it is an object without fields.
fn definition(name: &str, inside: &mut Vec<String>) -> Value {
    let Some(raw) = facts().raw(name) else { return json!({"type": "object"}) };
    if inside.iter().any(|outer| outer == name) {
        return json!({"type": "object"});
    }
    inside.push(name.to_owned());
    let whole = in_place(raw, inside);
    inside.pop();
    whole
}

fn in_place(schema: &Value, inside: &mut Vec<String>) -> Value {
    let alone = schema.get("allOf").and_then(|all| all.get(0)?.get("$ref"));
    if let Some(name) = schema.get("$ref").or(alone).and_then(Value::as_str) {
        return definition(name, inside);
    }
    let Some(known) = schema.as_object() else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in known {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(fields)) => {
                let fields = fields.iter().map(|(name, field)| (name.clone(), in_place(field, inside)));
                Value::Object(fields.collect())
            }
            ("items" | "additionalProperties", Value::Object(_)) => in_place(value, inside),
            ("type" | "format" | "required" | "additionalProperties", _) => value.clone(),
            _ => continue,
        };
        out.insert(key.clone(), value);
    }
    // A number or a text is anything; a quantity has no type at all, so that no expression can name it.
    if known.get("format").is_some_and(|format| format == "int-or-string") {
        out.insert("x-kubernetes-int-or-string".to_owned(), Value::Bool(true));
    }
    Value::Object(out)
}
