//! Structs: which fields count, what they are called, which are required, what is inlined, and the rules that
//! belong to several fields at once.

use super::build::{At, Builder};
use super::marker_error::MarkerError;
use super::markers::{Marker, Target};
use super::names::Under;
use super::package::{Package, TypeId};
use super::profile::Level;
use super::schema::{Origin, Schema, rule};
use super::syntax::{Field, SourceFile, TypeDecl};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A field's `json` tag.
struct Tag {
    name: Arc<str>,
    inline: bool,
    omitted: bool,
}

/// The value of one key of a struct tag.
fn lookup<'t>(tag: &'t str, key: &str) -> Option<std::borrow::Cow<'t, str>> {
    let mut rest = tag.trim_start_matches(' ');
    while !rest.is_empty() {
        let (name, value) = rest.split_once(':')?;
        let inner = value.strip_prefix('"')?;
        let mut escaped = false;
        let end = inner.char_indices().find(|(_, c)| {
            let ends = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        })?;
        if name == key {
            let quoted = value.get(..end.0 + 2)?;
            return super::markers::unquote(quoted).map(Into::into);
        }
        rest = inner.get(end.0 + 1..)?.trim_start_matches(' ');
    }
    None
}

impl Builder<'_> {
    /// The schema of a struct; inlined fields stand in `allOf`.
    pub(crate) fn structure(&mut self, at: At<'_>, decl: &TypeDecl, fields: &[Field], byte: usize) -> Schema {
        let mut schema = Schema::with_type("object");
        let groups = match one_of_fields(at.markers) {
            Ok(groups) => groups,
            Err(error) => {
                self.error(at, byte, error.to_string());
                return schema;
            }
        };
        let optional = self.optional_by_default(at.package);
        let mut immutable = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let names: Vec<&str> = if field.names.is_empty() {
                vec![""]
            } else {
                field.names.iter().map(|name| &**name).collect()
            };
            for name in names {
                if !name.is_empty()
                    && self.options.ignore_unexported_fields
                    && !name.starts_with(char::is_uppercase)
                {
                    continue;
                }
                let Some(json) = field.tag.as_deref().and_then(|tag| lookup(tag, "json")) else {
                    let message =
                        format!("encountered struct field {name:?} without JSON tag in type {:?}", decl.name);
                    self.error(at, field.at, message);
                    continue;
                };
                if json == "-" {
                    continue;
                }
                let tag = self.tag(&json);
                let markers = self.markers(at.file, &field.markers, Target::Field);
                if required(&markers, &tag, optional, self.options.profile.at_least(Level::V0_16)) {
                    if groups.contains(&*tag.name) {
                        let why = required_words(&markers, self.options.profile.at_least(Level::V0_22));
                        self.error(
                            at,
                            byte,
                            format!("field {} is part of OneOf constraint and {why}", tag.name),
                        );
                        return schema;
                    }
                    schema.required.push(tag.name.clone());
                }
                let mut property = self.field_schema(at, field, &markers);
                property.origin = at.package.ours.then(|| Origin {
                    of: TypeId { package: at.package.path.clone(), name: decl.name.clone() },
                    field: index,
                });
                if tag.inline {
                    schema.all_of.push(Arc::new(property));
                    continue;
                }
                if markers.iter().any(|marker| marker.name == "k8s:immutable") {
                    immutable.push(tag.name.clone());
                }
                schema.properties.insert(tag.name, Arc::new(property));
            }
        }
        if self.options.profile.at_least(Level::V0_20) {
            schema.required.sort();
        }
        for name in immutable.into_iter().filter(|name| !schema.required.contains(name)) {
            schema.rules.push(rule(
                &format!("!has(oldSelf.{name}) || has(self.{name})"),
                &format!("field {name} is immutable once set"),
            ));
        }
        schema
    }

    fn error(&mut self, at: At<'_>, byte: usize, message: String) {
        self.wrong(at.file, byte, message);
    }

    fn wrong(&mut self, file: &SourceFile, byte: usize, message: String) {
        self.problem(crate::diagnostic::Diagnostic::error(message, Some(file.place(byte))));
    }

    /// `k8s:enum`: the string constants that are declared with exactly this type.
    pub(crate) fn constants(
        &mut self,
        package: &Package,
        file: &SourceFile,
        decl: &TypeDecl,
        schema: &mut Schema,
    ) {
        let this = Arc::new(Package::default());
        let under = match package.find(&decl.name) {
            Some((home, _)) => {
                let whole = self.loader.import(&package.path, &package.dir).unwrap_or(this);
                let home = home.clone();
                self.under(&whole, &home, &decl.ty)
            }
            None => Under::Unknown,
        };
        if under != Under::Basic("string") {
            let message = format!("enum type must be a string, not {}.{}", package.path, decl.name);
            return self.wrong(file, decl.at, message);
        }
        let consts = package.files.iter().flat_map(|file| &file.consts).filter(|value| value.ty == decl.name);
        let mut values: Vec<String> =
            consts.filter_map(|value| super::markers::unquote(&value.literal)).collect();
        values.sort();
        if values.is_empty() {
            return self.wrong(file, decl.at, format!("no enum values found for type {}", decl.name));
        }
        schema.kind = Some("string".into());
        schema.choices = values.into_iter().map(serde_json::Value::from).collect();
    }

    fn tag(&self, json: &str) -> Tag {
        let mut options = json.split(',');
        let name: Arc<str> = options.next().unwrap_or_default().into();
        let mut tag = Tag { inline: name.is_empty(), omitted: false, name };
        for option in options {
            tag.inline |= option == "inline";
            tag.omitted |= option == "omitempty"
                || (option == "omitzero" && self.options.profile.at_least(Level::V0_22));
        }
        tag
    }
}

fn has(markers: &[Marker], names: &[&str]) -> bool {
    markers.iter().any(|marker| names.contains(&marker.name))
}

/// Returns true if a field is required: by its markers, else by the package's mode and its tag.
fn required(markers: &[Marker], tag: &Tag, optional_by_default: bool, always: bool) -> bool {
    if !always {
        // Older releases heed `Required` only where fields are optional by default.
        return if optional_by_default {
            has(markers, &["kubebuilder:validation:Required"])
        } else {
            !tag.inline && !tag.omitted && !has(markers, &["kubebuilder:validation:Optional", "optional"])
        };
    }
    if has(markers, &["kubebuilder:validation:Optional"]) {
        false
    } else if has(markers, &["kubebuilder:validation:Required"]) {
        true
    } else if has(markers, &["optional", "k8s:optional"]) {
        false
    } else if has(markers, &["required", "k8s:required"]) {
        true
    } else {
        !optional_by_default && !tag.inline && !tag.omitted
    }
}

fn required_words(markers: &[Marker], main: bool) -> &'static str {
    if has(markers, &["kubebuilder:validation:Required", "required", "k8s:required"]) {
        "cannot be marked as required"
    } else if main {
        "must have omitempty or omitzero tag"
    } else {
        "must have omitempty tag"
    }
}

/// The fields that one-of markers name.
fn one_of_fields(markers: &[Marker]) -> Result<BTreeSet<String>, MarkerError> {
    let mut all = BTreeSet::new();
    for marker in markers.iter().filter(|marker| marker.name.ends_with("OneOf")) {
        let fields = marker.list();
        let nested: Vec<String> = fields.iter().filter(|field| field.contains('.')).cloned().collect();
        if !nested.is_empty() {
            return Err(MarkerError::NestedFields { marker: marker.name, fields: nested });
        }
        all.extend(fields);
    }
    Ok(all)
}
