//! `vars`: `$(NAME)` in some fields stands for a value of an object, such as its last name. Each
//! kustomization names vars of its own objects; all of them are put in once names have their prefixes and
//! hashes.

use crate::error::{ErrorKind, VarError};
use crate::fields::{CreateMissing, FieldSpec, visit};
use crate::kustomization::Var;
use crate::read::text;
use crate::resource::{Id, Resource};
use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::BTreeMap;

/// The longest text that comes of one with vars, in bytes: each var may be long, and named often.
const LONGEST: usize = 1024 * 1024;

/// The vars of a build so far: the name, and the path of the value in the object that carries the name.
pub(crate) type Vars = BTreeMap<String, String>;

/// Adds the vars of a kustomization to those of the ones below it.
pub(crate) fn add(vars: &mut Vars, new: &Var, resources: &mut [Resource]) -> Result<(), ErrorKind> {
    if vars.contains_key(&new.name) {
        return Err(VarError::Twice { name: new.name.clone() }.into());
    }
    let objref = &new.objref;
    let gvk = match objref.api_version.as_str() {
        "" => Gvk::new(&objref.group, &objref.version, &objref.kind),
        api_version => Gvk::from_api_version(api_version, &objref.kind),
    };
    let is_meant = |id: &Id| {
        let named = id.gvk == gvk && id.name == objref.name;
        named && (objref.namespace.is_empty() || id.effective_namespace() == objref.namespace)
    };
    let mut found = resources
        .iter_mut()
        .filter(|resource| is_meant(&resource.id()) || resource.former_ids().iter().any(&is_meant));
    let first = found.next();
    if first.is_some() && found.next().is_some() {
        return Err(VarError::Several { name: new.name.clone() }.into());
    }
    if let Some(resource) = first {
        resource.vars.push(new.name.clone());
    }
    let path = if new.fieldref.fieldpath.is_empty() { "metadata.name" } else { &new.fieldref.fieldpath };
    vars.insert(new.name.clone(), path.to_owned());
    Ok(())
}

/// Brings the vars of a kustomization below up.
pub(crate) fn merge(vars: &mut Vars, below: Vars) -> Result<(), ErrorKind> {
    for (name, path) in below {
        if vars.contains_key(&name) {
            return Err(VarError::Twice { name }.into());
        }
        vars.insert(name, path);
    }
    Ok(())
}

/// Puts the values in.
pub(crate) fn resolve(vars: &Vars, specs: &[FieldSpec], resources: &mut [Resource]) -> Result<(), ErrorKind> {
    if vars.is_empty() {
        return Ok(());
    }
    let mut values = BTreeMap::new();
    for (name, path) in vars {
        let resource = resources.iter().find(|resource| resource.vars.contains(name));
        let Some(resource) = resource else { return Err(VarError::NoObject { name: name.clone() }.into()) };
        let Some(value) = value_at(&resource.object, path) else {
            let (name, path) = (name.clone(), path.clone());
            return Err(VarError::NoField { name, path, object: resource.id().show() }.into());
        };
        values.insert(name.as_str(), value.clone());
    }
    for resource in resources {
        for spec in specs {
            let shown = resource.id().show();
            visit(&mut resource.object, spec, CreateMissing::Nothing, &mut |place| put(place, &values))
                .map_err(|why| why.in_object(shown))?;
        }
    }
    Ok(())
}

/// A value by a path such as `spec.ports[0].port`; `\.` is a dot in a name.
fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    let mut at = object;
    for part in crate::fields::split(path, '.') {
        let (name, mut rest) = match part.find('[') {
            Some(open) if part.ends_with(']') => part.split_at(open),
            _ => (part.as_str(), ""),
        };
        if !name.is_empty() {
            at = at.get(name)?;
        }
        while let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            at = at.get(index.parse::<usize>().ok()?)?;
            rest = after;
        }
    }
    Some(at)
}

/// Changes a text, and the texts right inside a list or a map.
fn put(place: &mut Value, values: &BTreeMap<&str, Value>) -> Result<(), ErrorKind> {
    match place {
        Value::String(text) => {
            *place = expanded(text, values)?;
            Ok(())
        }
        Value::Array(items) => {
            items.iter_mut().filter(|item| item.is_string()).try_for_each(|item| put(item, values))
        }
        Value::Object(map) => {
            map.values_mut().filter(|value| value.is_string()).try_for_each(|value| put(value, values))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// A text with its references replaced. A number or the like keeps its type where it is the whole text; what
/// is not known stays, and `$$` is a dollar.
fn expanded(from: &str, values: &BTreeMap<&str, Value>) -> Result<Value, ErrorKind> {
    let mut out = String::new();
    let mut rest = from;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match values.get(name) {
                Some(value) if !value.is_string() && out.is_empty() && after.is_empty() => {
                    return Ok(value.clone());
                }
                Some(value) => out.push_str(&text(value)),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
        if out.len() > LONGEST {
            return Err(VarError::TooLong.into());
        }
    }
    out.push_str(rest);
    Ok(Value::String(out))
}
