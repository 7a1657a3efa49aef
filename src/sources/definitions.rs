//! The CRDs of a set of sources: those that Go types make, those in YAML files, and for each chart without
//! one the schema-less one that the Operator SDK would scaffold. Where two define one CRD, the Go type wins.
//! Remembers the last working ones, so that a half-typed file takes none away. Pure.

use super::chart_problems;
use super::files::{Files, hash, problem};
use super::reconcilers::{Defined, Texts};
use opdev_event::{Diagnostic, Place, PrinterColumn, Severity};
use opdev_object::meta::{self, Gvk};
use opdev_object::yaml;
use opdev_types::crd;
use opdev_types::diagnostic::Diagnostic as Found;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A CRD, and what is known of where it comes from.
#[derive(Debug)]
pub struct Definition {
    /// The CRD.
    pub crd: Arc<Value>,
    /// The file that defines it, relative to the project's root; empty for a scaffolded one.
    pub file: String,
    /// All files of the project that it is made of.
    pub files: Vec<String>,
    /// Where the source declares each field, by version and path: `v1.spec.size`, `v1.spec.ports[].name`.
    pub places: BTreeMap<String, Place>,
    /// The texts of those places' files.
    pub texts: Texts,
    /// Why it is not the one that the newest files would make.
    pub broken: Option<Diagnostic>,
    /// True if it gives way to one that the API server has already.
    pub scaffolded: bool,
}

impl Definition {
    /// The CRD's name.
    pub fn name(&self) -> &str {
        meta::name(&self.crd).unwrap_or_default()
    }

    /// The kind at the version that is stored, or at the first served one.
    pub fn gvk(&self) -> Option<Gvk> {
        let versions = self.crd.pointer("/spec/versions").and_then(Value::as_array);
        let stored = versions.into_iter().flatten().find(|version| version["storage"] == true);
        let stored = stored.and_then(|version| version["name"].as_str());
        let kinds = crd::kinds(&self.crd);
        kinds.iter().find(|gvk| Some(gvk.version.as_str()) == stored).or_else(|| kinds.first()).cloned()
    }

    /// The columns to print at a version, those of age left out: every list has one.
    pub fn columns(&self, version: &str) -> Vec<PrinterColumn> {
        let versions = self.crd.pointer("/spec/versions").and_then(Value::as_array);
        let version = versions.into_iter().flatten().find(|known| known["name"] == version);
        let columns = version.and_then(|version| version["additionalPrinterColumns"].as_array());
        let column = |column: &Value| {
            let path = column["jsonPath"].as_str()?.to_owned();
            let name = column["name"].as_str()?.to_owned();
            let date = column["type"] == "date";
            (path != ".metadata.creationTimestamp").then_some(PrinterColumn { name, path, date })
        };
        columns.into_iter().flatten().filter_map(column).collect()
    }

    /// Where the source says what stands at a path of an object, such as `spec.ports[*].name`; the nearest
    /// thing around it where it does not say. Without a version, in whichever says it.
    pub fn place(&self, version: &str, path: &str) -> Option<Place> {
        let mut path = path.trim_start_matches('.').replace("[*]", "[]");
        while !path.is_empty() {
            let fits = |known: &String| match known
                .strip_suffix(path.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
            {
                Some(of) => of == version || version.is_empty() && !of.contains(['.', '[']),
                None => false,
            };
            if let Some((_, place)) = self.places.iter().find(|(known, _)| fits(known)) {
                return Some(place.clone());
            }
            path.truncate(path.rfind(['.', '[', '{']).unwrap_or(0));
        }
        let file = Some(&self.file).filter(|file| !file.is_empty())?;
        let line = self.places.values().filter(|place| place.file == *file).map(|place| place.line).min();
        // The type begins a little above its first field, which is close enough to see it.
        Some(Place { file: file.clone(), line: line.unwrap_or(0), column: 0 })
    }

    /// The lines around a place.
    pub fn excerpt(&self, place: &Place) -> Option<String> {
        chart_problems::excerpt(self.texts.get(&place.file)?, place.line, place.column)
    }

    /// Where its objects say how many replicas they want, as the scale subresource has it.
    pub fn scale(&self) -> Option<&str> {
        let versions = self.crd.pointer("/spec/versions").and_then(Value::as_array)?;
        let path = |version: &Value| version.pointer("/subresources/scale/specReplicasPath").is_some();
        versions
            .iter()
            .find(|version| path(version))?
            .pointer("/subresources/scale/specReplicasPath")?
            .as_str()
    }
}

/// The output of a project's Go type files.
#[derive(Clone, Debug, Default)]
pub struct Types {
    /// The CRDs.
    pub made: Vec<Made>,
    /// Errors of the files.
    pub found: Vec<Found>,
    /// The texts of the files by the paths that places name.
    pub texts: Texts,
}

impl Types {
    /// Equal ones make equal CRDs and diagnostics.
    pub(super) fn fingerprint(&self) -> u64 {
        let found: Vec<_> = self
            .found
            .iter()
            .map(|found| {
                let place = found.place.as_ref().map(|place| (&place.file, place.line, place.column));
                (&found.message, place)
            })
            .collect();
        let made: Vec<_> = self.made.iter().map(|made| (&made.crd, &made.file)).collect();
        hash(&(made, found))
    }
}

/// One CRD that Go types make.
#[derive(Clone, Debug)]
pub struct Made {
    /// The CRD.
    pub crd: Arc<Value>,
    /// The file with the kind's type.
    pub file: String,
    /// All files of the project that it is made of.
    pub files: Vec<String>,
    /// Where the source declares each field, by version and path.
    pub places: BTreeMap<String, Place>,
    /// Something in it could not be read.
    pub broken: bool,
}

/// The loader of CRDs, over time.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// The last working ones that Go types made, by name.
    made: BTreeMap<String, Arc<Definition>>,
    /// The last working ones of each YAML file.
    written: BTreeMap<String, Vec<Arc<Definition>>>,
}

impl Definitions {
    /// The CRDs of the newest files; the last working ones where those are broken.
    pub(super) fn load(&mut self, files: &Files, diagnostics: &mut Vec<Diagnostic>) -> Vec<Arc<Definition>> {
        self.take_types(&files.types, diagnostics);
        self.take_yaml(files, diagnostics);
        let mut all: Vec<Arc<Definition>> = self.made.values().cloned().collect();
        let mut stale = BTreeSet::new();
        for definition in self.written.values().flatten() {
            match self.made.get(definition.name()) {
                Some(made) if differ(&made.crd, &definition.crd) => {
                    stale.insert(definition.file.clone());
                }
                Some(_) => {}
                None if all.iter().any(|known| known.name() == definition.name()) => {
                    let mut twice = problem(
                        &definition.file,
                        format!("{} is defined a second time: this one is not used", definition.name()),
                    );
                    twice.severity = Severity::Warning;
                    diagnostics.push(twice);
                }
                None => all.push(Arc::clone(definition)),
            }
        }
        if let Some(first) = stale.first() {
            let more = if stale.len() > 1 { format!(" and {} more", stale.len() - 1) } else { String::new() };
            let mut note = problem(
                first,
                format!("{first}{more} differs from what the Go types make; the Go types serve"),
            );
            note.severity = Severity::Warning;
            note.hint = Some("opdev crd writes it anew".to_owned());
            diagnostics.push(note);
        }
        all
    }

    /// While a file of its own is broken, a type that was good stays as it was: what can still be read of a
    /// half-typed file may lack fields.
    fn take_types(&mut self, types: &Types, diagnostics: &mut Vec<Diagnostic>) {
        let found: Vec<Diagnostic> =
            types.found.iter().map(|found| chart_problems::program(&types.texts, found)).collect();
        let errors: Vec<&Diagnostic> = found.iter().filter(|one| one.severity == Severity::Error).collect();
        let mut newest = BTreeMap::new();
        for made in &types.made {
            let definition = Definition {
                crd: Arc::clone(&made.crd),
                file: made.file.clone(),
                files: made.files.clone(),
                places: made.places.clone(),
                texts: texts_of(&made.places, &types.texts),
                broken: None,
                scaffolded: false,
            };
            if !made.broken && !errors.iter().any(|error| touches(error, &definition)) {
                newest.insert(definition.name().to_owned(), Arc::new(definition));
            }
        }
        for (name, good) in &self.made {
            if newest.contains_key(name) {
                continue;
            }
            // Without an error it is gone because the files do not define it any more.
            let Some(error) = errors.iter().find(|error| touches(error, good)).or(errors.first()) else {
                continue;
            };
            let mut broken = Diagnostic::clone(error);
            broken.kind = good.gvk();
            let kept = Definition {
                crd: Arc::clone(&good.crd),
                file: good.file.clone(),
                files: good.files.clone(),
                places: good.places.clone(),
                texts: good.texts.clone(),
                broken: Some(broken),
                scaffolded: false,
            };
            newest.insert(name.clone(), Arc::new(kept));
        }
        self.made = newest;
        diagnostics.extend(found);
    }

    fn take_yaml(&mut self, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
        let Files { crds: files, patched, .. } = files;
        self.written.retain(|known, _| files.iter().any(|(path, _)| path == known));
        for (path, text) in files {
            match crd::read(text) {
                Ok(read) => {
                    let texts: Texts = [(path.clone(), Arc::from(text.as_str()))].into();
                    let patched = |crd| {
                        let known = meta::name(&crd).and_then(|name| patched.get(name).cloned());
                        known.unwrap_or_else(|| Arc::new(crd))
                    };
                    let of = |crd| Definition {
                        crd: patched(crd),
                        file: path.clone(),
                        files: vec![path.clone()],
                        places: BTreeMap::new(),
                        texts: texts.clone(),
                        broken: None,
                        scaffolded: false,
                    };
                    self.written
                        .insert(path.clone(), read.into_iter().map(|crd| Arc::new(of(crd))).collect());
                }
                Err(error) => {
                    let mut broken = problem(path, format!("{error:#}"));
                    if let Some(error) = error.downcast_ref::<yaml::Error>() {
                        broken.place =
                            Some(Place { file: path.clone(), line: error.line, column: error.column });
                        broken.excerpt = chart_problems::excerpt(text, error.line, error.column);
                    }
                    diagnostics.push(broken);
                }
            }
        }
    }
}

/// Returns true if an error lies in a file that a CRD is made of; one without a place may lie anywhere.
fn touches(error: &Diagnostic, definition: &Definition) -> bool {
    error.place.as_ref().is_none_or(|place| definition.files.contains(&place.file))
}

/// The texts that places lead to.
fn texts_of(places: &BTreeMap<String, Place>, texts: &Texts) -> Texts {
    let named: BTreeSet<&String> = places.values().map(|place| &place.file).collect();
    named.into_iter().filter_map(|file| Some((file.clone(), Arc::clone(texts.get(file)?)))).collect()
}

/// Returns true if two CRDs mean different things.
fn differ(one: &Value, other: &Value) -> bool {
    match (one.get("spec"), other.get("spec")) {
        (Some(one), Some(other)) => means_other(one, other),
        (one, other) => one.is_some() != other.is_some(),
    }
}

/// Returns true if two values differ in more than texts for people: those of types that are not in the
/// project come from Go's module cache, which is not everywhere.
fn means_other(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let counts = |(name, value): &(&String, &Value)| *name != "description" || !value.is_string();
            let names = |map: &serde_json::Map<String, Value>| map.iter().filter(counts).count();
            names(one) != names(other)
                || one.iter().filter(counts).any(|(name, value)| {
                    other.get(name).is_none_or(|theirs| differ_below(name, value, theirs))
                })
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() != other.len() || one.iter().zip(other).any(|(one, other)| means_other(one, other))
        }
        (one, other) => one != other,
    }
}

/// Values of users are compared as they are: a field of theirs may have any name.
fn differ_below(name: &str, one: &Value, other: &Value) -> bool {
    match name {
        "default" | "enum" | "example" => one != other,
        _ => means_other(one, other),
    }
}

/// The kinds that the CRDs define.
pub(super) fn defined(definitions: &[Arc<Definition>]) -> Vec<Defined> {
    let of = |definition: &Arc<Definition>| {
        let gvk = definition.gvk()?;
        let versions = crd::kinds(&definition.crd).into_iter().map(|gvk| gvk.version).collect();
        Some(Defined { gvk, versions })
    };
    definitions.iter().filter_map(of).collect()
}

/// The CRD that the Operator SDK would scaffold for a kind.
pub(super) fn scaffold(gvk: &Gvk) -> Arc<Definition> {
    Arc::new(Definition {
        crd: Arc::new(crd::scaffold(gvk)),
        file: String::new(),
        files: Vec::new(),
        places: BTreeMap::new(),
        texts: Texts::new(),
        broken: None,
        scaffolded: true,
    })
}

#[cfg(test)]
mod tests;
