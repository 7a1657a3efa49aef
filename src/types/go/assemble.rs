//! Kinds to CustomResourceDefinitions: versions, names, columns, subresources, and what else markers on a
//! kind say. Makes no schemas itself.

use super::build::{Builder, KeptCrd, Versions};
use super::marker_error::MarkerError;
use super::markers::{Marker, Target};
use super::package::{Package, TypeId};
use super::profile::Profile;
use super::schema::{Origin, Schema};
use super::syntax::{SourceFile, TypeDecl, TypeKind};
use super::{Crd, Options, RbacMarker, WebhookMarker, description, flatten, names};
use crate::diagnostic::{Diagnostic, Place};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

pub(super) const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1";

/// The RBAC markers of some packages.
pub(crate) fn rbac(roots: &[Arc<Package>], profile: &Profile) -> Vec<RbacMarker> {
    let markers = roots.iter().flat_map(|package| package.markers(profile));
    let markers = markers.filter(|(_, marker)| marker.name == "kubebuilder:rbac");
    let mut out: Vec<RbacMarker> = markers
        .map(|(file, marker)| RbacMarker {
            place: file.place(marker.at),
            args: marker.value.as_object().cloned().unwrap_or_default(),
        })
        .collect();
    out.sort_by(|a, b| a.place.cmp(&b.place));
    out
}

/// The webhook markers of some packages.
pub(crate) fn webhooks(roots: &[Arc<Package>], profile: &Profile) -> Vec<WebhookMarker> {
    let mut out = Vec::new();
    for package in roots {
        let markers = package.markers(profile).into_iter().filter(|(_, marker)| {
            matches!(marker.name, "kubebuilder:webhook" | "kubebuilder:webhookconfiguration")
        });
        out.extend(markers.map(|(file, marker)| WebhookMarker {
            place: file.place(marker.at),
            args: marker.value.as_object().cloned().unwrap_or_default(),
            package: package.dir.clone(),
            of_configuration: marker.name == "kubebuilder:webhookconfiguration",
        }));
    }
    out
}

/// A kind in one version.
struct Version {
    package: Arc<Package>,
    file: Arc<SourceFile>,
    id: TypeId,
    /// Its name; the package's where no marker says otherwise.
    name: String,
}

/// All CRDs of some packages.
pub(crate) fn crds(
    builder: &mut Builder<'_>,
    roots: &[Arc<Package>],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Crd> {
    let mut kinds: BTreeMap<(String, String), Vec<Version>> = BTreeMap::new();
    let mut found = BTreeSet::new();
    let mut groups = Vec::new();
    for package in roots {
        let markers = package.markers(&builder.options.profile);
        let first = |name: &str| markers.iter().find(|(_, marker)| marker.name == name);
        if first("kubebuilder:skip").is_some() {
            continue;
        }
        let text = |name: &str| first(name).and_then(|(_, marker)| marker.value.as_str().map(str::to_owned));
        let (group, version) = match text("groupName") {
            Some(group) => (group, text("versionName").unwrap_or_else(|| package.name.clone())),
            None => (String::new(), String::new()),
        };
        let mut has_kinds = None;
        for (file, decl) in package.types() {
            if builder.is_kind(package, file, decl) {
                found.insert((decl.name.to_string(), group.clone()));
                has_kinds.get_or_insert_with(|| file.place(decl.at));
            }
        }
        if let Some(place) = has_kinds
            && first("groupName").is_none()
        {
            let message =
                format!("package {} has kinds and no +groupName marker: their group is empty", package.name);
            let hint = "Write `// +groupName=your.domain` above the package clause.";
            diagnostics.push(Diagnostic::warning(message, Some(place)).with_hint(hint));
        }
        groups.push((package.clone(), group, version));
    }
    // A version is every type of the kind's name in a package of its group.
    for (kind, group) in found {
        for (package, of_group, version) in &groups {
            if *of_group == group
                && let Some((file, decl)) = package.find(&kind)
            {
                let id = TypeId { package: package.path.clone(), name: decl.name.clone() };
                let version =
                    Version { package: package.clone(), file: file.clone(), id, name: version.clone() };
                kinds.entry((kind.clone(), group.clone())).or_default().push(version);
            }
        }
    }
    let kinds = kinds.into_iter();
    kinds.filter_map(|((kind, group), versions)| builder.crd(&kind, &group, &versions, diagnostics)).collect()
}

impl Builder<'_> {
    /// A struct that embeds both `metav1.TypeMeta` and `metav1.ObjectMeta`.
    fn is_kind(&mut self, package: &Arc<Package>, file: &Arc<SourceFile>, decl: &TypeDecl) -> bool {
        let TypeKind::Struct(fields) = &decl.ty.kind else { return false };
        let (mut type_meta, mut object_meta) = (false, false);
        for field in fields.iter().filter(|field| field.names.is_empty()) {
            let (name, from) = match &field.ty.kind {
                TypeKind::Qualified(qualifier, name) => {
                    (name, names::qualifier(&mut self.loader, package, file, qualifier))
                }
                // Imported with a dot, unless the package has one of its own.
                TypeKind::Ident(name) if package.find(name).is_none() => {
                    let mut dotted = file.imports.iter().filter(|import| import.name.as_deref() == Some("."));
                    (name, dotted.find(|import| &*import.path == META).map(|import| import.path.clone()))
                }
                _ => continue,
            };
            if !matches!(&**name, "TypeMeta" | "ObjectMeta") || from.as_deref() != Some(META) {
                continue;
            }
            type_meta |= &**name == "TypeMeta";
            object_meta |= &**name == "ObjectMeta";
        }
        type_meta && object_meta
    }

    /// One CRD.
    fn crd(
        &mut self,
        kind: &str,
        group: &str,
        versions: &[Version],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<Crd> {
        let name = (kind.to_owned(), group.to_owned());
        let roots: Versions =
            versions.iter().map(|version| (version.id.clone(), version.name.clone())).collect();
        if self.kept.crds.get(&name).is_some_and(|kept| kept.versions == roots) {
            return self.kept_crd(&name);
        }
        let before = diagnostics.len();
        let mut draft = Draft::new(kind, group);
        let mut types = HashSet::new();
        let mut schemas = Vec::with_capacity(versions.len());
        let mut broken = false;
        for version in versions {
            let mut schema = self.root_schema(&version.id);
            if let Some(limit) = self.options.max_desc_len {
                shorten(&mut schema, limit, &self.options.profile);
            }
            if let Some(metadata) = schema.properties.get_mut("metadata") {
                *metadata = Arc::new(Schema::with_type("object"));
            }
            self.closure(&version.id, &mut types);
            // `json!` would copy the schema.
            let mut one = json!({"name": version.name, "served": true, "storage": false, "schema": {}});
            one["schema"]["openAPIV3Schema"] = schema.to_json();
            draft.versions.push(one);
            schemas.push(schema);
        }
        for version in versions {
            let Some((_, decl)) = version.package.find(&version.id.name) else { continue };
            self.open.push(version.id.clone());
            let markers = self.markers(&version.file, &decl.markers, Target::Type);
            self.open.pop();
            let skip = markers.iter().filter(|marker| marker.name == "kubebuilder:skipversion");
            let others = markers.iter().filter(|marker| marker.name != "kubebuilder:skipversion");
            for marker in others.chain(skip) {
                if let Err(error) = draft.apply(marker, &version.name) {
                    broken = true;
                    diagnostics
                        .push(Diagnostic::error(error.to_string(), Some(version.file.place(marker.at))));
                }
            }
        }
        if draft.versions.is_empty() {
            return None;
        }
        let place = versions.first().and_then(|version| {
            let (_, decl) = version.package.find(&version.id.name)?;
            Some(version.file.place(decl.at))
        });
        for message in draft.finish(self.options) {
            broken = true;
            let hint = "Mark exactly one version with +kubebuilder:storageversion, and serve at least one.";
            diagnostics.push(Diagnostic::error(message, place.clone()).with_hint(hint));
        }
        for problem in types.iter().filter_map(|id| self.kept.problems.get(id)).flatten() {
            broken = true;
            let place = problem.place.clone().or_else(|| place.clone());
            diagnostics.push(Diagnostic { place, ..problem.clone() });
        }
        let files = self.homes(&types);
        broken |= files.iter().any(|file| !file.errors.is_empty());
        let crd = Crd {
            object: Arc::new(draft.object()),
            files: files.iter().map(|file| file.path.to_string()).collect(),
            places: Arc::new(self.places(&roots, &schemas)),
            broken,
        };
        if !broken && diagnostics.len() == before {
            let kept = KeptCrd { versions: roots, schemas, files, crd: crd.clone() };
            self.kept.crds.insert(name, kept);
        }
        Some(crd)
    }

    /// A CRD that is as it was, but for where its fields stand.
    fn kept_crd(&mut self, name: &(String, String)) -> Option<Crd> {
        let mut kept = self.kept.crds.remove(name)?;
        let mut types = HashSet::new();
        let now: Vec<Arc<SourceFile>> = {
            for (id, _) in &kept.versions {
                self.closure(id, &mut types);
            }
            self.homes(&types)
        };
        if now.len() != kept.files.len() || !now.iter().zip(&kept.files).all(|(a, b)| Arc::ptr_eq(a, b)) {
            kept.crd.places = Arc::new(self.places(&kept.versions, &kept.schemas));
            kept.crd.files = now.iter().map(|file| file.path.to_string()).collect();
            kept.files = now;
        }
        let crd = kept.crd.clone();
        self.kept.crds.insert(name.clone(), kept);
        Some(crd)
    }

    /// The project's files that declare some types, by path.
    fn homes(&mut self, types: &HashSet<TypeId>) -> Vec<Arc<SourceFile>> {
        let mut files: BTreeMap<Arc<str>, Arc<SourceFile>> = BTreeMap::new();
        for id in types {
            if let Ok(package) = self.loader.import(&id.package, ".")
                && package.ours
                && let Some((file, _)) = package.find(&id.name)
            {
                files.insert(file.path.clone(), file.clone());
            }
        }
        files.into_values().collect()
    }

    /// Where each property of some versions is declared.
    fn places(&mut self, versions: &Versions, schemas: &[Schema]) -> BTreeMap<String, Place> {
        let mut found = BTreeMap::new();
        for ((_, version), schema) in versions.iter().zip(schemas) {
            locate(schema, version, 0, &mut |path, origin| {
                let Ok(package) = self.loader.import(&origin.of.package, ".") else { return };
                if let Some((file, decl)) = package.find(&origin.of.name)
                    && let TypeKind::Struct(fields) = &decl.ty.kind
                    && let Some(field) = fields.get(origin.field)
                {
                    found.insert(path.to_owned(), file.place(field.at));
                }
            });
        }
        found
    }

    /// The whole schema of a kind.
    fn root_schema(&mut self, id: &TypeId) -> Schema {
        let mut resolved = std::mem::take(&mut self.kept.resolved);
        self.open.push(id.clone());
        let schema = flatten::flatten(self, &mut resolved, id);
        self.open.pop();
        self.kept.resolved = resolved;
        schema
    }

    /// All types that a type is made of.
    fn closure(&self, id: &TypeId, out: &mut HashSet<TypeId>) {
        let mut open = vec![id.clone()];
        while let Some(id) = open.pop() {
            if out.insert(id.clone()) {
                open.extend(self.kept.needs.get(&id).into_iter().flatten().cloned());
            }
        }
    }
}

/// Cuts descriptions.
fn shorten(schema: &mut Schema, limit: usize, profile: &Profile) {
    if let Some(text) = &schema.description {
        let short = if limit == 0 { String::new() } else { description::truncate(text, limit, profile) };
        schema.description = Some(short.as_str().into()).filter(|_| !short.is_empty());
    }
    flatten::each_child(schema, &mut |child| shorten(Arc::make_mut(child), limit, profile));
}

/// Calls with each property below a schema that has an origin.
fn locate(schema: &Schema, path: &str, depth: usize, found: &mut dyn FnMut(&str, &Origin)) {
    if depth > 60 {
        return;
    }
    for (name, property) in &schema.properties {
        if let Some(origin) = &property.origin {
            let path = format!("{path}.{name}");
            found(&path, origin);
            locate(property, &path, depth + 1, found);
        }
    }
    if let Some(items) = &schema.items {
        locate(items, &format!("{path}[]"), depth + 1, found);
    }
    if let Some(super::schema::Additional::Schema(values)) = &schema.additional {
        locate(values, &format!("{path}{{}}"), depth + 1, found);
    }
}

/// A CRD that is being put together.
struct Draft {
    kind: String,
    group: String,
    plural: String,
    singular: String,
    short_names: Vec<String>,
    categories: Vec<String>,
    scope: String,
    annotations: Map<String, Value>,
    labels: Map<String, Value>,
    versions: Vec<Value>,
}

impl Draft {
    fn new(kind: &str, group: &str) -> Draft {
        Draft {
            kind: kind.to_owned(),
            group: group.to_owned(),
            plural: crate::plural::plural(kind).to_lowercase(),
            singular: kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: "Namespaced".to_owned(),
            annotations: Map::new(),
            labels: Map::new(),
            versions: Vec::new(),
        }
    }

    fn version(&mut self, name: &str, what: &'static str) -> Result<&mut Value, MarkerError> {
        let found = self.versions.iter_mut().find(|version| version["name"] == name);
        found.ok_or_else(|| MarkerError::NoVersion { what, version: name.to_owned() })
    }

    /// Applies one marker of a kind; others than those of CRDs do nothing.
    fn apply(&mut self, marker: &Marker, version: &str) -> Result<(), MarkerError> {
        match marker.name {
            "kubebuilder:subresource:status" => {
                let version = self.version(version, "status subresource")?;
                version["subresources"]["status"] = json!({});
            }
            "kubebuilder:subresource:scale" => {
                let version = self.version(version, "scale subresource")?;
                let mut scale = json!({
                    "specReplicasPath": marker.text("specpath"),
                    "statusReplicasPath": marker.text("statuspath"),
                });
                if let Some(selector) = marker.value.get("selectorpath") {
                    scale["labelSelectorPath"] = selector.clone();
                }
                version["subresources"]["scale"] = scale;
            }
            "kubebuilder:printcolumn" => column(marker, self.version(version, "printer columns")?),
            "kubebuilder:selectablefield" => {
                let version = self.version(version, "selectable field")?;
                push(version, "selectableFields", json!({"jsonPath": marker.text("JSONPath")}));
            }
            "kubebuilder:resource" => self.resource(marker),
            "kubebuilder:storageversion" if !version.is_empty() => {
                if let Ok(version) = self.version(version, "") {
                    version["storage"] = Value::Bool(true);
                }
            }
            "kubebuilder:unservedversion" => {
                if let Ok(version) = self.version(version, "") {
                    version["served"] = Value::Bool(false);
                }
            }
            "kubebuilder:deprecatedversion" if !version.is_empty() => {
                if let Ok(version) = self.version(version, "") {
                    version["deprecated"] = Value::Bool(true);
                    if let Some(warning) = marker.value.get("warning") {
                        version["deprecationWarning"] = warning.clone();
                    }
                }
            }
            "kubebuilder:skipversion" => {
                if version.is_empty() {
                    return Err(MarkerError::OnlyVersion);
                }
                self.versions.retain(|have| have["name"] != version);
            }
            "kubebuilder:metadata" => return self.metadata(marker),
            _ => {}
        }
        Ok(())
    }

    fn resource(&mut self, marker: &Marker) {
        if !marker.text("path").is_empty() {
            marker.text("path").clone_into(&mut self.plural);
        }
        if !marker.text("singular").is_empty() {
            marker.text("singular").clone_into(&mut self.singular);
        }
        self.short_names = marker.texts("shortName");
        self.categories = marker.texts("categories");
        let scope = marker.text("scope");
        self.scope = if scope.is_empty() { "Namespaced".to_owned() } else { scope.to_owned() };
    }

    fn metadata(&mut self, marker: &Marker) -> Result<(), MarkerError> {
        for annotation in marker.texts("annotations") {
            let Some((key, value)) = annotation.split_once('=') else {
                return Err(MarkerError::NotAPair { what: "annotation", text: annotation });
            };
            self.annotations.insert(key.to_owned(), Value::from(value));
        }
        for label in marker.texts("labels") {
            let Some((key, value)) = label.split_once('=') else {
                return Err(MarkerError::NotAPair { what: "label", text: label });
            };
            self.labels.insert(key.to_owned(), Value::from(value));
        }
        Ok(())
    }

    /// Orders the versions, and says what is wrong with them.
    fn finish(&mut self, options: &Options) -> Vec<String> {
        let text = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
        self.versions.sort_by_key(text);
        if let [only] = self.versions.as_mut_slice() {
            only["storage"] = Value::Bool(true);
        }
        if !options.omit_tool_version {
            let version = Value::from(options.profile.version());
            self.annotations.insert("controller-gen.kubebuilder.io/version".to_owned(), version);
        }
        let name =
            if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) };
        let mut wrong = Vec::new();
        if !self.versions.iter().any(|version| version["storage"] == true) {
            wrong.push(format!("CRD for {name} has no storage version"));
        }
        if !self.versions.iter().any(|version| version["served"] == true) {
            let names: Vec<String> = self.versions.iter().map(text).collect();
            wrong.push(format!(
                "CRD for {name} with version(s) [{}] does not serve any version",
                names.join(" ")
            ));
        }
        wrong
    }

    fn object(self) -> Value {
        let mut metadata = json!({
            "name": format!("{}.{}", self.plural, self.group),
        });
        if !self.annotations.is_empty() {
            metadata["annotations"] = Value::Object(self.annotations);
        }
        if !self.labels.is_empty() {
            metadata["labels"] = Value::Object(self.labels);
        }
        let mut names = json!({
            "kind": self.kind,
            "listKind": format!("{}List", self.kind),
            "plural": self.plural,
            "singular": self.singular,
        });
        if !self.short_names.is_empty() {
            names["shortNames"] = Value::from(self.short_names);
        }
        if !self.categories.is_empty() {
            names["categories"] = Value::from(self.categories);
        }
        let mut crd = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": metadata,
            "spec": {"group": self.group, "names": names, "scope": self.scope},
        });
        crd["spec"]["versions"] = Value::Array(self.versions);
        crd
    }
}

fn push(version: &mut Value, list: &str, entry: Value) {
    match version[list].as_array_mut() {
        Some(list) => list.push(entry),
        None => version[list] = json!([entry]),
    }
}

fn column(marker: &Marker, version: &mut Value) {
    // A column brings an empty `subresources` along.
    if version["subresources"].is_null() {
        version["subresources"] = json!({});
    }
    let mut column = json!({
        "name": marker.text("name"),
        "type": marker.text("type"),
        "jsonPath": marker.text("JSONPath"),
    });
    for name in ["description", "format"] {
        let text = marker.text(name);
        if !text.is_empty() {
            column[name] = Value::from(text);
        }
    }
    if let Some(priority) = marker.value.get("priority").filter(|priority| **priority != 0) {
        column["priority"] = priority.clone();
    }
    push(version, "additionalPrinterColumns", column);
}
