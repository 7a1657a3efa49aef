//! The meaning of a name in a Go file: a type of the package, of an imported or dot-imported one, or of the
//! language; what lies under a named type; and which types write their own JSON. Makes no schemas.

use super::assemble::META;
use super::build::Builder;
use super::known;
use super::package::{Package, TypeId};
use super::sources::Loader;
use super::syntax::{SourceFile, TypeDecl, TypeExpr, TypeKind};
use std::sync::Arc;

/// The declaration behind an identifier.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// A type of a package whose source is there.
    Declared(Arc<Package>, Arc<str>),
    /// A type of a package whose source is not there.
    Elsewhere(TypeId),
    /// A type of the language.
    Builtin(&'static str),
    Unknown,
}

/// The sort of an underlying type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Under {
    Basic(&'static str),
    Struct,
    Interface,
    Pointer,
    Slice,
    Array,
    Map,
    Unknown,
}

impl Under {
    /// The type in the words of Go's type checker.
    pub(crate) fn go_type(self) -> &'static str {
        match self {
            Under::Basic(_) => "*types.Basic",
            Under::Struct => "*types.Struct",
            Under::Interface => "*types.Interface",
            Under::Pointer => "*types.Pointer",
            Under::Slice => "*types.Slice",
            Under::Array => "*types.Array",
            Under::Map => "*types.Map",
            Under::Unknown => "*types.Signature",
        }
    }
}

/// Types of the language, and interfaces that have a name there.
pub(crate) const BASIC: &[&str] = &[
    "bool",
    "string",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uintptr",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "byte",
    "rune",
    "any",
    "error",
    "comparable",
];

/// How many steps a chain of names may have.
const CHAIN: usize = 40;

impl Builder<'_> {
    /// Notes that what is being made depends on a type, even where it does not refer to it.
    fn looked(&mut self, named: Named) -> Named {
        if let Named::Declared(package, name) = &named
            && package.ours
            && let Some(open) = self.open.last()
        {
            let id = TypeId { package: package.path.clone(), name: name.clone() };
            let needs = self.kept.needs.entry(open.clone()).or_default();
            if *open != id && !needs.contains(&id) {
                needs.push(id);
            }
        }
        named
    }

    /// The declaration of a bare identifier.
    pub(crate) fn identifier(&mut self, package: &Arc<Package>, file: &SourceFile, name: &Arc<str>) -> Named {
        let named = self.find_identifier(package, file, name);
        self.looked(named)
    }

    fn find_identifier(&mut self, package: &Arc<Package>, file: &SourceFile, name: &Arc<str>) -> Named {
        if package.find(name).is_some() {
            return Named::Declared(package.clone(), name.clone());
        }
        for import in file.imports.iter().filter(|import| import.name.as_deref() == Some(".")) {
            match self.loader.import(&import.path, &package.dir) {
                Ok(other) if other.find(name).is_some() => return Named::Declared(other, name.clone()),
                Ok(_) => {}
                Err(_) => {
                    let id = TypeId { package: import.path.clone(), name: name.clone() };
                    let of_kinds =
                        &*id.package == META && matches!(&**name, "TypeMeta" | "ObjectMeta" | "ListMeta");
                    if of_kinds || known::schema(&id.package, &id.name, false).is_some() {
                        return Named::Elsewhere(id);
                    }
                }
            }
        }
        BASIC.iter().find(|basic| **basic == &**name).map_or(Named::Unknown, |basic| Named::Builtin(basic))
    }

    /// The declaration of `qualifier.Name`.
    pub(crate) fn qualified(
        &mut self,
        package: &Package,
        file: &SourceFile,
        qualifier: &str,
        name: &Arc<str>,
    ) -> Named {
        let Some(path) = self::qualifier(&mut self.loader, package, file, qualifier) else {
            return Named::Unknown;
        };
        if known::is_whole(&path) {
            return Named::Elsewhere(TypeId { package: path, name: name.clone() });
        }
        match self.loader.import(&path, &package.dir) {
            Ok(other) if other.find(name).is_some() => self.looked(Named::Declared(other, name.clone())),
            Ok(_) => Named::Unknown,
            Err(_) => Named::Elsewhere(TypeId { package: path, name: name.clone() }),
        }
    }

    /// The declaration that a type expression names, if it is a name.
    pub(crate) fn name_of(
        &mut self,
        package: &Arc<Package>,
        file: &SourceFile,
        ty: &TypeExpr,
    ) -> Option<Named> {
        match &ty.kind {
            TypeKind::Ident(name) => Some(self.identifier(package, file, name)),
            TypeKind::Qualified(qualifier, name) => Some(self.qualified(package, file, qualifier, name)),
            TypeKind::Pointer(_)
            | TypeKind::Slice(_)
            | TypeKind::Array(_)
            | TypeKind::Map(..)
            | TypeKind::Struct(_)
            | TypeKind::Interface
            | TypeKind::Other(_) => None,
        }
    }

    /// The underlying type of a type expression.
    pub(crate) fn under(&mut self, package: &Arc<Package>, file: &SourceFile, ty: &TypeExpr) -> Under {
        let Some(mut named) = self.name_of(package, file, ty) else { return plain(&ty.kind) };
        for _ in 0..CHAIN {
            match named {
                Named::Builtin("any" | "error" | "comparable") => return Under::Interface,
                Named::Builtin(basic) => return Under::Basic(basic),
                Named::Unknown => return Under::Unknown,
                Named::Elsewhere(id) => return elsewhere(&id),
                Named::Declared(package, name) => {
                    if known::schema(&package.path, &name, false).is_some() {
                        return Under::Struct;
                    }
                    let Some((file, decl)) = package.find(&name) else { return Under::Unknown };
                    let (file, ty) = (file.clone(), &decl.ty);
                    named = match self.name_of(&package, &file, ty) {
                        Some(named) => named,
                        None => return plain(&ty.kind),
                    };
                }
            }
        }
        Under::Unknown
    }

    /// Two answers for a declared type, or a pointer to it: it has `MarshalJSON` and `MarshalText`, its own
    /// or promoted.
    pub(crate) fn marshals(
        &mut self,
        package: &Arc<Package>,
        file: &SourceFile,
        decl: &TypeDecl,
    ) -> (bool, bool) {
        let id = TypeId { package: package.path.clone(), name: decl.name.clone() };
        if let Some(known) = self.marshallers.get(&id) {
            return *known;
        }
        self.marshallers.insert(id.clone(), (false, false));
        let found = self.find_marshals(package, file, decl);
        self.marshallers.insert(id, found);
        found
    }

    fn find_marshals(&mut self, package: &Arc<Package>, file: &SourceFile, decl: &TypeDecl) -> (bool, bool) {
        let mut own = package.marshals(&decl.name);
        if decl.alias {
            return match self.name_of(package, file, &decl.ty) {
                Some(named) => self.named_marshals(&named),
                None => own,
            };
        }
        // Methods of embedded fields, the shallowest first; two at one depth cancel each other out.
        let mut level: Vec<Named> = self.embedded(package, file, &decl.ty, CHAIN);
        for _ in 0..8 {
            if level.is_empty() || (own.0 && own.1) {
                break;
            }
            let mut next = Vec::new();
            let (mut json, mut text) = (0, 0);
            for named in level.iter().take(200) {
                let (has_json, has_text) = self.own_marshals(named);
                json += usize::from(has_json);
                text += usize::from(has_text);
                if let Named::Declared(package, name) = named
                    && let Some((file, decl)) = package.find(name)
                {
                    let (file, decl_ty) = (file.clone(), &decl.ty);
                    next.extend(self.embedded(package, &file, decl_ty, CHAIN));
                }
            }
            own.0 |= json == 1;
            own.1 |= text == 1;
            level = next;
        }
        own
    }

    fn named_marshals(&mut self, named: &Named) -> (bool, bool) {
        match named {
            Named::Declared(package, name) => match package.find(name) {
                Some((file, decl)) => {
                    let file = file.clone();
                    self.marshals(package, &file, decl)
                }
                None => (false, false),
            },
            Named::Elsewhere(_) | Named::Builtin(_) | Named::Unknown => self.own_marshals(named),
        }
    }

    fn own_marshals(&self, named: &Named) -> (bool, bool) {
        match named {
            Named::Declared(package, name) => package.marshals(name),
            Named::Elsewhere(id) => (known::marshals_json(&id.package, &id.name), false),
            Named::Builtin(_) | Named::Unknown => (false, false),
        }
    }

    /// The embedded fields of the struct that lies under a type.
    fn embedded(
        &mut self,
        package: &Arc<Package>,
        file: &SourceFile,
        ty: &TypeExpr,
        steps: usize,
    ) -> Vec<Named> {
        if let TypeKind::Struct(fields) = &ty.kind {
            let fields = fields.iter().filter(|field| field.names.is_empty());
            return fields
                .filter_map(|field| {
                    let ty = match &field.ty.kind {
                        TypeKind::Pointer(inner) => inner,
                        _ => &field.ty,
                    };
                    self.name_of(package, file, ty)
                })
                .collect();
        }
        let Some(Named::Declared(package, name)) = self.name_of(package, file, ty).filter(|_| steps > 0)
        else {
            return Vec::new();
        };
        let Some((file, decl)) = package.find(&name) else { return Vec::new() };
        let file = file.clone();
        self.embedded(&package, &file, &decl.ty, steps - 1)
    }
}

/// The path of the import that a qualifier names in a file.
pub(crate) fn qualifier(
    loader: &mut Loader<'_>,
    package: &Package,
    file: &SourceFile,
    name: &str,
) -> Option<Arc<str>> {
    if let Some(import) = file.imports.iter().find(|import| import.name.as_deref() == Some(name)) {
        return Some(import.path.clone());
    }
    let unnamed = || file.imports.iter().filter(|import| import.name.is_none());
    if let Some(import) = unnamed().find(|import| likely_name(&import.path) == name) {
        return Some(import.path.clone());
    }
    let others: Vec<Arc<str>> = unnamed().map(|import| import.path.clone()).collect();
    let mut others = others.into_iter().filter(|path| path.contains('.'));
    others.find(|path| loader.import(path, &package.dir).is_ok_and(|package| package.name == name))
}

fn plain(kind: &TypeKind) -> Under {
    match kind {
        TypeKind::Pointer(_) => Under::Pointer,
        TypeKind::Slice(_) => Under::Slice,
        TypeKind::Array(_) => Under::Array,
        TypeKind::Map(..) => Under::Map,
        TypeKind::Struct(_) => Under::Struct,
        TypeKind::Interface => Under::Interface,
        TypeKind::Other(_) | TypeKind::Ident(_) | TypeKind::Qualified(..) => Under::Unknown,
    }
}

fn elsewhere(id: &TypeId) -> Under {
    match (&*id.package, &*id.name) {
        ("time", "Duration") => Under::Basic("int64"),
        ("time", "Month" | "Weekday") => Under::Basic("int"),
        ("encoding/json", "Number") => Under::Basic("string"),
        (package, name) if known::is_named_string(package, name) => Under::Basic("string"),
        _ => Under::Unknown,
    }
}

/// The name a package most likely has, by its path.
pub(crate) fn likely_name(path: &str) -> &str {
    let mut parts = path.rsplit('/');
    let last = parts.next().unwrap_or(path);
    let is_version =
        last.strip_prefix('v').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    // `example.com/thing/v2` is package `thing`, `k8s.io/api/apps/v1` is package `v1`.
    let major = is_version && last != "v1" && last != "v0" && path.matches('/').count() <= 3;
    let name = if major { parts.next().unwrap_or(last) } else { last };
    name.split_once(".v").map_or(name, |(name, _)| name)
}
