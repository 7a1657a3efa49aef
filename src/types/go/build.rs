//! From a Go type to a schema: one type at a time, with references to the others still in it.
//! Merging is `flatten`'s part, names are `names`', markers `apply`'s.

use super::apply::apply;
use super::description::describe;
use super::markers::{Marker, Reading, Target, read};
use super::names::{Named, Under};
use super::package::{Changed, Package, TypeId};
use super::profile::{Level, Profile};
use super::schema::{Additional, Schema};
use super::sources::Loader;
use super::syntax::{SourceFile, TypeDecl, TypeExpr, TypeKind};
use super::{Crd, Options, flatten, foreign, known};
use crate::diagnostic::Diagnostic;
use opdev_object::descriptions::Descriptions;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How deep slices, maps and pointers may be nested in one type expression.
const DEPTH: usize = 60;

/// The types of a CRD and the names of their versions.
pub(crate) type Versions = Vec<(TypeId, String)>;

/// Schemas of types and whole CRDs; what is of packages that did not change stays from one generation to the
/// next.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    pub(crate) schemas: HashMap<TypeId, Arc<Schema>>,
    /// Types that a type refers to.
    pub(crate) needs: HashMap<TypeId, Vec<TypeId>>,
    /// Errors of a type.
    pub(crate) problems: HashMap<TypeId, Vec<Diagnostic>>,
    pub(crate) resolved: flatten::Resolved,
    /// The described schemas of types without source: whether they have one now is asked in each generation,
    /// but their descriptions take longer to read than all the rest.
    pub(crate) built_in: HashMap<TypeId, Schema>,
    /// Types with fixed schemas.
    fixed: HashSet<TypeId>,
    /// The packages the last generation read, by path.
    pub(crate) packages: HashMap<Arc<str>, Arc<Package>>,
    /// CRDs without a fault, by kind and group.
    pub(crate) crds: HashMap<(String, String), KeptCrd>,
}

/// A CRD without a fault.
#[derive(Debug)]
pub(crate) struct KeptCrd {
    pub(crate) versions: Versions,
    /// The schema of each version.
    pub(crate) schemas: Vec<Schema>,
    /// The project's files it was made of.
    pub(crate) files: Vec<Arc<SourceFile>>,
    pub(crate) crd: Crd,
}

impl Kept {
    /// Forgets what is of changed types, what had something wrong, and all that is made of them.
    pub(crate) fn forget(&mut self, changed: &HashMap<Arc<str>, Changed>) {
        let wrong = |id: &TypeId| self.problems.get(id).is_some_and(|problems| !problems.is_empty());
        let gone = |id: &TypeId| match changed.get(&id.package) {
            Some(Changed::All) => true,
            Some(Changed::Types(names)) => names.contains(&id.name),
            None => !self.packages.contains_key(&id.package) && !self.fixed.contains(id),
        };
        let mut open: Vec<TypeId> = self.schemas.keys().filter(|id| gone(id) || wrong(id)).cloned().collect();
        if open.is_empty() {
            return;
        }
        let mut users: HashMap<&TypeId, Vec<&TypeId>> = HashMap::new();
        for (id, needs) in &self.needs {
            for need in needs {
                users.entry(need).or_default().push(id);
            }
        }
        let mut dirty: HashSet<TypeId> = HashSet::new();
        while let Some(id) = open.pop() {
            let more = users.get(&id).into_iter().flatten().filter(|user| !dirty.contains(**user));
            open.extend(more.map(|user| TypeId::clone(user)));
            dirty.insert(id);
        }
        self.schemas.retain(|id, _| !dirty.contains(id));
        self.needs.retain(|id, _| !dirty.contains(id));
        self.problems.retain(|id, _| !dirty.contains(id));
        self.resolved.retain(|id| !dirty.contains(id));
        let made = |id: &TypeId| self.schemas.contains_key(id);
        self.crds.retain(|_, kept| kept.versions.iter().all(|(id, _)| made(id)));
    }
}

/// Makes the schemas of one generation.
pub(crate) struct Builder<'a> {
    pub(crate) loader: Loader<'a>,
    pub(crate) options: &'a Options,
    pub(crate) kept: &'a mut Kept,
    pub(crate) marshallers: HashMap<TypeId, (bool, bool)>,
    /// Types being made, the innermost last.
    pub(crate) open: Vec<TypeId>,
    optional_packages: HashMap<Arc<str>, bool>,
    /// Modules whose source is missing and whose built-in facts were used.
    pub(crate) without_source: HashSet<String>,
    /// The words about built-in types, once one without source was met.
    pub(crate) descriptions: Option<Descriptions>,
}

/// Where a type expression stands.
#[derive(Clone, Copy)]
pub(crate) struct At<'c> {
    pub(crate) package: &'c Arc<Package>,
    pub(crate) file: &'c Arc<SourceFile>,
    /// The declaration whose own expression it is.
    pub(crate) decl: Option<&'c TypeDecl>,
    pub(crate) markers: &'c [Marker],
    pub(crate) depth: usize,
}

impl<'c> At<'c> {
    /// This place, one step into the expression.
    fn inner(self) -> At<'c> {
        At { decl: None, markers: &[], depth: self.depth + 1, ..self }
    }
}

impl flatten::Types for Builder<'_> {
    fn schema(&mut self, id: &TypeId) -> Arc<Schema> {
        self.schema_of(id)
    }

    fn conflict(&mut self, have: &str, want: &str) {
        let message = format!("conflicting types in allOf branches in schema: {have} vs {want}");
        self.problem(Diagnostic::error(message, None));
    }

    fn profile(&self) -> &Profile {
        &self.options.profile
    }

    fn too_large(&mut self) {
        let message = "the schema is nested too deeply or too large; what goes beyond is left out";
        self.problem(Diagnostic::error(message, None));
    }
}

impl<'a> Builder<'a> {
    pub(crate) fn new(loader: Loader<'a>, options: &'a Options, kept: &'a mut Kept) -> Builder<'a> {
        Builder {
            loader,
            options,
            kept,
            marshallers: HashMap::new(),
            open: Vec::new(),
            optional_packages: HashMap::new(),
            without_source: HashSet::new(),
            descriptions: None,
        }
    }

    /// Forgets what packages that changed since the last generation had a part in.
    pub(crate) fn forget_changes(&mut self) {
        let last = std::mem::take(&mut self.kept.packages);
        let mut changed: HashMap<Arc<str>, Changed> = HashMap::new();
        for (path, old) in &last {
            match self.loader.import(path, ".") {
                Ok(new) if Arc::ptr_eq(&new, old) => {}
                Ok(new) => drop(changed.insert(path.clone(), new.changed_since(old))),
                Err(_) => drop(changed.insert(path.clone(), Changed::All)),
            }
        }
        self.kept.packages = last;
        self.kept.forget(&changed);
    }

    fn is(&self, level: Level) -> bool {
        self.options.profile.at_least(level)
    }

    /// Notes what is wrong with the type that is being made.
    pub(crate) fn problem(&mut self, diagnostic: Diagnostic) {
        if let Some(id) = self.open.last() {
            let problems = self.kept.problems.entry(id.clone()).or_default();
            if !problems.contains(&diagnostic) {
                problems.push(diagnostic);
            }
        }
    }

    fn fail(&mut self, file: &SourceFile, at: usize, message: impl Into<String>) {
        self.problem(Diagnostic::error(message, Some(file.place(at))));
    }

    /// The schema of a type, with references to others.
    pub(crate) fn schema_of(&mut self, id: &TypeId) -> Arc<Schema> {
        if let Some(schema) = self.kept.schemas.get(id) {
            return schema.clone();
        }
        // A type that refers to itself finds this.
        self.kept.schemas.insert(id.clone(), Arc::default());
        self.open.push(id.clone());
        let schema = Arc::new(self.make(id));
        self.open.pop();
        self.kept.schemas.insert(id.clone(), schema.clone());
        schema
    }

    fn make(&mut self, id: &TypeId) -> Schema {
        if let Some(schema) = known::schema(&id.package, &id.name, self.options.generate_embedded_object_meta)
        {
            self.kept.fixed.insert(id.clone());
            return schema;
        }
        if &*id.package == "k8s.io/api/core/v1" && &*id.name == "Protocol" && !self.is(Level::V0_16) {
            let default = Some(Arc::new(serde_json::Value::from("TCP")));
            return Schema { default, ..Schema::with_type("string") };
        }
        let package = match self.loader.import(&id.package, ".") {
            Ok(package) => package,
            Err(missing) => return foreign::schema(self, id, &missing),
        };
        let Some((file, decl)) = package.find(&id.name) else {
            let message = format!("unknown type {:?}.{}", id.package, id.name);
            self.problem(Diagnostic::error(message, None));
            return Schema::default();
        };
        let file = file.clone();
        self.declared(&package, &file, decl)
    }

    /// The schema of a declaration, which may write its own JSON.
    fn declared(&mut self, package: &Arc<Package>, file: &Arc<SourceFile>, decl: &TypeDecl) -> Schema {
        if decl.generic {
            self.fail(
                file,
                decl.at,
                format!("generic types are not supported in CRD schemas: {}", decl.name),
            );
            return Schema::default();
        }
        let markers = self.markers(file, &decl.markers, Target::Type);
        let (json, text) = self.marshals(package, file, decl);
        if json {
            let mut schema = Schema::default();
            self.apply(package, file, Some(decl), &markers, &mut schema);
            if !schema.kind().is_empty() {
                return schema;
            }
        } else if text && self.is(Level::V0_17) {
            let mut schema = Schema::with_type("string");
            self.apply(package, file, Some(decl), &markers, &mut schema);
            if schema.kind() != "string" {
                let message = format!(
                    "{:?} implements encoding.TextMarshaler but schema type is not string: {:?}",
                    decl.name,
                    schema.kind()
                );
                self.fail(file, decl.ty.at, message);
            }
            return schema;
        }
        self.expression(At { package, file, decl: Some(decl), markers: &markers, depth: 0 }, &decl.ty)
    }

    /// Markers that can be read; what is wrong with the others is noted.
    pub(crate) fn markers(
        &mut self,
        file: &SourceFile,
        raw: &[super::comments::RawMarker],
        target: Target,
    ) -> Vec<Marker> {
        let mut out = Vec::with_capacity(raw.len());
        for raw in raw {
            match read(&raw.text, raw.at, target, &self.options.profile) {
                Reading::Known(marker) => out.push(marker),
                Reading::Bad(offset, message) => self.fail(file, raw.at + offset, message),
                Reading::Foreign | Reading::Unknown => {}
            }
        }
        out
    }

    fn apply(
        &mut self,
        package: &Package,
        file: &SourceFile,
        decl: Option<&TypeDecl>,
        markers: &[Marker],
        schema: &mut Schema,
    ) {
        let mut wrong = Vec::new();
        apply(markers, schema, &self.options.profile, &mut |at, error| wrong.push((at, error)));
        for (at, error) in wrong {
            self.fail(file, at, error.to_string());
        }
        for marker in markers.iter().filter(|marker| marker.name == "k8s:enum") {
            match decl {
                Some(decl) => self.constants(package, file, decl, schema),
                None => self.fail(file, marker.at, "k8s:enum must be set on a type, not a field"),
            }
        }
    }

    /// The schema of a type expression.
    fn expression(&mut self, at: At<'_>, ty: &TypeExpr) -> Schema {
        if at.depth > DEPTH {
            self.fail(at.file, ty.at, "this type is nested too deeply");
            return Schema::default();
        }
        let mut schema = match &ty.kind {
            TypeKind::Ident(name) => self.local(at, ty, name),
            TypeKind::Qualified(qualifier, name) => self.imported(at, ty, qualifier, name),
            TypeKind::Slice(element) => self.slice(at, element, true),
            TypeKind::Array(element) => self.slice(at, element, false),
            TypeKind::Map(key, value) => self.map(at, key, value),
            // Older releases apply the markers of `type A *B` once for the pointer and once for what it
            // points to.
            TypeKind::Pointer(inner) if self.is(Level::V0_20) => self.expression(at.inner(), inner),
            TypeKind::Pointer(inner) => self.expression(At { depth: at.depth + 1, ..at }, inner),
            TypeKind::Struct(fields) => match at.decl {
                Some(decl) => self.structure(at, decl, fields, ty.at),
                None => {
                    self.fail(
                        at.file,
                        ty.at,
                        "inline struct types are not supported, use a named type instead",
                    );
                    return Schema::with_type("object");
                }
            },
            TypeKind::Interface => {
                let message = "interface type is not supported in CRD schemas; consider using an explicit type or apiextensionsv1.JSON instead";
                self.fail(
                    at.file,
                    ty.at,
                    if self.is(Level::V0_21) { message } else { "unsupported AST kind *ast.InterfaceType" },
                );
                return Schema::default();
            }
            TypeKind::Other(kind) => {
                self.fail(at.file, ty.at, format!("unsupported AST kind {kind}"));
                return Schema::default();
            }
        };
        if let Some(decl) = at.decl {
            let description = describe(&at.file.text, &decl.doc, &self.options.profile);
            schema.description = Some(description.as_str().into()).filter(|_| !description.is_empty());
            self.apply(at.package, at.file, at.decl, at.markers, &mut schema);
        }
        schema
    }

    /// A reference to a type, which is made when it is resolved: type after type, so that long chains are no
    /// deep recursion.
    fn reference(&mut self, id: TypeId) -> Schema {
        if let Some(open) = self.open.last() {
            let needs = self.kept.needs.entry(open.clone()).or_default();
            if !needs.contains(&id) {
                needs.push(id.clone());
            }
        }
        Schema { reference: Some(id), ..Schema::default() }
    }

    fn builtin(&mut self, file: &SourceFile, at: usize, name: &str) -> Schema {
        let (kind, format) = match name {
            "bool" => ("boolean", ""),
            "string" => ("string", ""),
            "int32" | "uint32" | "rune" => ("integer", "int32"),
            "int64" | "uint64" => ("integer", "int64"),
            "float32" | "float64" if self.options.allow_dangerous_types => ("number", ""),
            "float32" | "float64" => {
                self.fail(file, at, "found float, the usage of which is highly discouraged, as support for them varies across languages. Please consider serializing your float as string instead. If you are really sure you want to use them, re-run with crd:allowDangerousTypes=true");
                return Schema::default();
            }
            "complex64" | "complex128" => {
                self.fail(file, at, format!("unsupported type {name:?}"));
                return Schema::default();
            }
            _ => ("integer", ""),
        };
        Schema { format: Some(format.into()).filter(|_| !format.is_empty()), ..Schema::with_type(kind) }
    }

    /// A bare identifier.
    fn local(&mut self, at: At<'_>, ty: &TypeExpr, name: &Arc<str>) -> Schema {
        match self.identifier(at.package, at.file, name) {
            Named::Unknown => {
                self.fail(at.file, ty.at, format!("unknown type {name}"));
                Schema::default()
            }
            Named::Builtin("any" | "error" | "comparable") => self.no_interface(at, ty, name),
            Named::Builtin(basic) => self.builtin(at.file, ty.at, basic),
            Named::Elsewhere(id) => self.reference(id),
            Named::Declared(package, name) => {
                let Some((file, decl)) = package.find(&name) else { return Schema::default() };
                let file = file.clone();
                if decl.alias {
                    return self.aliased(at, ty, &package, &file, decl);
                }
                self.named(&package, &file, decl)
            }
        }
    }

    fn no_interface(&mut self, at: At<'_>, ty: &TypeExpr, name: &str) -> Schema {
        let message = format!(
            "cannot generate schema for {name}; interface type is not supported in CRD schemas, consider using an explicit type or apiextensionsv1.JSON instead"
        );
        self.fail(at.file, ty.at, message);
        Schema::default()
    }

    /// A type with a declaration of its own: a reference, with type and format where a basic type lies under
    /// it.
    fn named(&mut self, package: &Arc<Package>, file: &Arc<SourceFile>, decl: &TypeDecl) -> Schema {
        let id = TypeId { package: package.path.clone(), name: decl.name.clone() };
        let mut schema = self.reference(id.clone());
        match self.under(package, file, &decl.ty) {
            Under::Basic(_) if self.is(Level::V0_20) => {
                let of_type = self.schema_of(&id);
                schema.kind.clone_from(&of_type.kind);
                schema.format.clone_from(&of_type.format);
            }
            under => schema.kind = self.kind_of_collection(under),
        }
        schema
    }

    /// The type of a reference to a list or a map, which field markers ask for.
    fn kind_of_collection(&self, under: Under) -> Option<Arc<str>> {
        match under {
            Under::Slice if self.is(Level::V0_23) => Some("array".into()),
            Under::Map if self.is(Level::V0_23) => Some("object".into()),
            _ => None,
        }
    }

    /// `type A = B`: of a basic type, A itself; else what it stands for.
    fn aliased(
        &mut self,
        at: At<'_>,
        ty: &TypeExpr,
        package: &Arc<Package>,
        file: &Arc<SourceFile>,
        decl: &TypeDecl,
    ) -> Schema {
        match self.name_of(package, file, &decl.ty) {
            Some(Named::Builtin("any" | "error" | "comparable")) => self.no_interface(at, ty, &decl.name),
            Some(Named::Builtin(basic)) => {
                let of_basic = self.builtin(file, decl.ty.at, basic);
                let reference =
                    self.reference(TypeId { package: package.path.clone(), name: decl.name.clone() });
                Schema { reference: reference.reference, ..of_basic }
            }
            Some(Named::Declared(package, name)) => match package.find(&name) {
                Some((_, decl)) if decl.alias => {
                    self.reference(TypeId { package: package.path.clone(), name: name.clone() })
                }
                Some((file, decl)) => {
                    let file = file.clone();
                    self.named(&package, &file, decl)
                }
                None => Schema::default(),
            },
            Some(Named::Elsewhere(id)) => self.reference(id),
            Some(Named::Unknown) => {
                self.fail(at.file, ty.at, format!("unknown type {}", decl.name));
                Schema::default()
            }
            None if matches!(decl.ty.kind, TypeKind::Interface) => self.no_interface(at, ty, &decl.name),
            None => {
                let kind = self.under(package, file, &decl.ty).go_type();
                self.fail(at.file, ty.at, format!("unsupported type {kind} for identifier {}", decl.name));
                Schema::default()
            }
        }
    }

    /// `package.Type`.
    fn imported(&mut self, at: At<'_>, ty: &TypeExpr, qualifier: &str, name: &Arc<str>) -> Schema {
        match self.qualified(at.package, at.file, qualifier, name) {
            Named::Declared(package, name) => {
                let mut reference =
                    self.reference(TypeId { package: package.path.clone(), name: name.clone() });
                if self.is(Level::V0_23)
                    && let Some((file, decl)) = package.find(&name)
                    && known::schema(&package.path, &name, false).is_none()
                {
                    let file = file.clone();
                    let under = self.under(&package, &file, &decl.ty);
                    reference.kind = self.kind_of_collection(under);
                }
                reference
            }
            Named::Elsewhere(id) => {
                let mut reference = self.reference(id.clone());
                let of_type = self.schema_of(&id);
                let under = match of_type.kind() {
                    "array" => Under::Slice,
                    "object" if of_type.additional.is_some() => Under::Map,
                    _ => Under::Unknown,
                };
                reference.kind = self.kind_of_collection(under);
                if self.kept.problems.get(&id).is_some_and(|problems| !problems.is_empty()) {
                    let why = self.kept.problems[&id][0].clone();
                    self.problem(Diagnostic { place: Some(at.file.place(ty.at)), ..why });
                }
                reference
            }
            Named::Builtin(_) | Named::Unknown => {
                self.fail(at.file, ty.at, format!("unknown type {qualifier}.{name}"));
                Schema::default()
            }
        }
    }

    fn slice(&mut self, at: At<'_>, element: &TypeExpr, open_ended: bool) -> Schema {
        if open_ended
            && let TypeKind::Ident(name) = &element.kind
            && matches!(self.identifier(at.package, at.file, name), Named::Builtin("byte"))
        {
            return Schema { format: Some("byte".into()), ..Schema::with_type("string") };
        }
        let items = self.expression(at.inner(), element);
        Schema { items: Some(Arc::new(items)), ..Schema::with_type("array") }
    }

    fn map(&mut self, at: At<'_>, key: &TypeExpr, value: &TypeExpr) -> Schema {
        let under = self.under(at.package, at.file, key);
        if under != Under::Basic("string") && !self.text_key(at, key) {
            let what = match under {
                Under::Basic(basic) => basic,
                other => other.go_type(),
            };
            let or = if self.is(Level::V0_22) { " or implement encoding.TextMarshaler" } else { "" };
            self.fail(at.file, key.at, format!("map keys must be strings{or}, not {what}"));
            return Schema::default();
        }
        let values = match &value.kind {
            TypeKind::Interface => {
                self.fail(at.file, value.at, "interface type is not supported as map value in CRD schemas; consider using an explicit type or apiextensionsv1.JSON instead");
                return Schema::default();
            }
            TypeKind::Struct(_) => {
                self.fail(at.file, value.at, "not a supported map value type: *ast.StructType");
                return Schema::default();
            }
            TypeKind::Other(kind) => {
                self.fail(at.file, value.at, format!("not a supported map value type: {kind}"));
                return Schema::default();
            }
            TypeKind::Ident(_)
            | TypeKind::Qualified(..)
            | TypeKind::Pointer(_)
            | TypeKind::Slice(_)
            | TypeKind::Array(_)
            | TypeKind::Map(..) => self.expression(at.inner(), value),
        };
        Schema { additional: Some(Additional::Schema(Arc::new(values))), ..Schema::with_type("object") }
    }

    fn text_key(&mut self, at: At<'_>, key: &TypeExpr) -> bool {
        if !self.is(Level::V0_22) {
            return false;
        }
        let Some(Named::Declared(package, name)) = self.name_of(at.package, at.file, key) else {
            return false;
        };
        let Some((file, decl)) = package.find(&name) else { return false };
        let file = file.clone();
        self.marshals(&package, &file, decl).1
    }

    pub(crate) fn optional_by_default(&mut self, package: &Package) -> bool {
        if let Some(known) = self.optional_packages.get(&package.path) {
            return *known;
        }
        let markers = package.markers(&self.options.profile);
        let optional = markers.iter().any(|(_, marker)| marker.name == "kubebuilder:validation:Optional");
        self.optional_packages.insert(package.path.clone(), optional);
        optional
    }

    /// The schema of a field's type, its documentation and its markers.
    pub(crate) fn field_schema(
        &mut self,
        at: At<'_>,
        field: &super::syntax::Field,
        markers: &[Marker],
    ) -> Schema {
        let schemaless = markers.iter().any(|marker| marker.name == "kubebuilder:validation:Schemaless");
        let mut schema = if schemaless { Schema::default() } else { self.expression(at.inner(), &field.ty) };
        let description = describe(&at.file.text, &field.doc, &self.options.profile);
        schema.description = Some(description.as_str().into()).filter(|_| !description.is_empty());
        self.apply(at.package, at.file, None, markers, &mut schema);
        schema
    }
}
