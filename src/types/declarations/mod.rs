//! TypeScript declarations for reconcilers: the module `opdev:types` from the schemas of CRDs, and the module
//! `opdev` of the host, so that an editor checks `self.spec.replica` as it is typed. Pure: schemas in, text
//! out; what a schema does not say is `unknown`, never a guess.

mod schema;
#[cfg(test)]
mod tests;

use opdev_object::meta::Gvk;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The declarations of the host, the same for every project.
const HOST: &str = include_str!("host.d.ts");
/// Types that every kind has.
const META: &str = include_str!("meta.d.ts");

/// One served version of a kind.
struct Served<'c> {
    gvk: Gvk,
    plural: String,
    schema: &'c Value,
    storage: bool,
}

/// The declarations of a project: a text for one file, such as `config/reconcilers/opdev.d.ts`.
///
/// `crds` are CustomResourceDefinitions. Each kind has an interface of its name in its stored version, and each other
/// served version one with the version behind the name, such as `PodSetV1beta1`.
pub fn declarations<'a>(crds: impl IntoIterator<Item = &'a Value>) -> String {
    let served: Vec<Served<'_>> = crds.into_iter().flat_map(served).collect();
    let names = names(&served);
    let mut out = String::from(
        "// Written by opdev from the CRDs of this project on every save; edit the types instead.\n\n",
    );
    out.push_str("declare module \"opdev:types\" {\n");
    out.push_str(&indented(META));
    for (kind, name) in served.iter().zip(&names) {
        out.push('\n');
        out.push_str(&indented(&interface(kind, name)));
    }
    out.push_str(
        "\n  /** The kinds of this project by the text that names them. */\n  export interface Kinds {\n",
    );
    for (kind, name) in served.iter().zip(&names) {
        let _ = writeln!(
            out,
            "    {}: {name};",
            schema::text(&format!("{}/{}", kind.gvk.api_version(), kind.gvk.kind))
        );
    }
    out.push_str("  }\n}\n\n");
    out.push_str(HOST);
    out
}

/// The served versions of a CRD that have a schema.
fn served(crd: &Value) -> Vec<Served<'_>> {
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (group, kind, plural) = (text("/spec/group"), text("/spec/names/kind"), text("/spec/names/plural"));
    let versions = crd.pointer("/spec/versions").and_then(Value::as_array);
    versions
        .into_iter()
        .flatten()
        .filter(|version| version.get("served").and_then(Value::as_bool) == Some(true))
        .filter_map(|version| {
            Some(Served {
                gvk: Gvk::new(group, version.get("name")?.as_str()?, kind),
                plural: plural.to_owned(),
                schema: version.pointer("/schema/openAPIV3Schema").unwrap_or(&Value::Null),
                storage: version.get("storage").and_then(Value::as_bool) == Some(true),
            })
        })
        .filter(|served| schema::is_identifier(&served.gvk.kind))
        .collect()
}

/// A name for each: the kind where that is clear, else with its version, else with its group as well.
fn names(served: &[Served<'_>]) -> Vec<String> {
    let mut plain: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, kind) in served.iter().enumerate() {
        plain.entry(&kind.gvk.kind).or_default().push(at);
    }
    served
        .iter()
        .enumerate()
        .map(|(at, kind)| {
            let same = &plain[kind.gvk.kind.as_str()];
            let groups = same.iter().any(|other| served[*other].gvk.group != kind.gvk.group);
            // The stored version; of several groups the first one keeps the plain name.
            let first_stored = same.iter().find(|other| served[**other].storage).or(same.first());
            if first_stored == Some(&at) && !schema::RESERVED.contains(&kind.gvk.kind.as_str()) {
                return kind.gvk.kind.clone();
            }
            let group = if groups || same.len() == 1 { pascal(&kind.gvk.group) } else { String::new() };
            format!("{group}{}{}", kind.gvk.kind, pascal(&kind.gvk.version))
        })
        .collect()
}

/// `app.example.com` → `AppExampleCom`.
fn pascal(text: &str) -> String {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|first| first.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
                .collect::<String>()
        })
        .collect()
}

/// The interface of a kind, with those of its spec and status.
fn interface(kind: &Served<'_>, name: &str) -> String {
    let mut out = String::new();
    let mut parts = String::new();
    let about = kind.schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let place = format!("{} in {}", kind.plural, kind.gvk.api_version());
    let about = if about.is_empty() { place } else { format!("{about}\n\n({place})") };
    out.push_str(&schema::comment(&about, ""));
    let _ = writeln!(out, "export interface {name} {{");
    let _ = writeln!(out, "  apiVersion: {};", schema::text(&kind.gvk.api_version()));
    let _ = writeln!(out, "  kind: {};", schema::text(&kind.gvk.kind));
    out.push_str("  metadata: ObjectMeta;\n");
    let properties = kind.schema.get("properties").and_then(Value::as_object);
    for (key, field) in properties.into_iter().flatten() {
        if matches!(key.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        out.push_str(&schema::comment(&schema::about(field), "  "));
        // A spec that is left out altogether is as good as an empty one; everything else is as the schema
        // says.
        let mark = if key == "spec" || schema::is_there(kind.schema, key, field) { "" } else { "?" };
        if field.get("properties").is_some() && matches!(key.as_str(), "spec" | "status") {
            let part = format!("{name}{}", pascal(key));
            let _ = writeln!(out, "  {key}{mark}: {part};");
            parts.push('\n');
            parts.push_str(&schema::comment(&schema::about(field), ""));
            let _ = writeln!(parts, "export interface {part} {}", schema::fields(field, "", 0));
        } else {
            let _ = writeln!(out, "  {}{mark}: {};", schema::key(key), schema::type_of(field, "  ", 0));
        }
    }
    if kind.schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true))
        || properties.is_none()
    {
        out.push_str("  [key: string]: unknown;\n");
    }
    out.push_str("}\n");
    out + &parts
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        if !line.is_empty() {
            out.push_str("  ");
        }
        out.push_str(line);
        out.push('\n');
        out
    })
}
