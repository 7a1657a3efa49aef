//! Go types as its type checker sees them, as far as copying needs it: names with what lies under them,
//! aliases apart from named types, copy methods that were written by hand. Resolved on demand; never writes
//! code.

use crate::go::imports::Missing;
use crate::go::names::{self, BASIC};
use crate::go::package::{ByHand, Package, TypeId};
use crate::go::sources::Loader;
use crate::go::syntax::{SourceFile, TypeExpr, TypeKind};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// How many names may stand for each other, and how deep types may be nested by value.
pub(super) const DEPTH: usize = 60;

/// A type.
#[derive(Clone, Debug)]
pub(super) enum Type {
    /// A type of the language, under the name it is written with: `byte` is not `uint8`.
    Basic(Arc<str>),
    /// A declared type.
    Named(TypeId),
    /// Another name for a type. controller-gen looks through it in some places and not in others.
    Alias(TypeId),
    Pointer(Rc<Type>),
    Slice(Rc<Type>),
    Map(Rc<Type>, Rc<Type>),
    Struct(Rc<[Member]>),
    /// A type that cannot be copied, in Go's words.
    Other(&'static str),
    /// A type whose source cannot be found.
    Unknown(Rc<Unknown>),
}

/// A field of a struct, one per name.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: Arc<str>,
    pub(super) ty: Type,
    /// Where it stands in its file.
    pub(super) at: usize,
}

/// Why a type is not known.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) message: String,
    pub(super) hint: String,
}

/// Resolves types; what was resolved once is kept.
pub(super) struct Model<'m, 'a> {
    pub(super) loader: &'m mut Loader<'a>,
    under: HashMap<TypeId, Type>,
    /// Types of which an assignment is known to copy everything.
    shallow: HashSet<TypeId>,
    /// The first type that was looked at and is not known, since somebody asked.
    trouble: Option<Rc<Unknown>>,
}

impl<'m, 'a> Model<'m, 'a> {
    pub(super) fn new(loader: &'m mut Loader<'a>) -> Model<'m, 'a> {
        Model { loader, under: HashMap::new(), shallow: HashSet::new(), trouble: None }
    }

    /// The unknown type that was looked at since the last call.
    pub(super) fn take_trouble(&mut self) -> Option<Rc<Unknown>> {
        self.trouble.take()
    }

    fn unknown(&mut self, message: String, hint: String) -> Type {
        Type::Unknown(Rc::new(Unknown { message, hint }))
    }

    /// The type that a type expression means in a file.
    pub(super) fn resolve(&mut self, package: &Arc<Package>, file: &SourceFile, ty: &TypeExpr) -> Type {
        match &ty.kind {
            TypeKind::Ident(name) => self.identifier(package, file, name),
            TypeKind::Qualified(qualifier, name) => self.qualified(package, file, qualifier, name),
            TypeKind::Pointer(inner) => Type::Pointer(Rc::new(self.resolve(package, file, inner))),
            TypeKind::Slice(inner) => Type::Slice(Rc::new(self.resolve(package, file, inner))),
            TypeKind::Map(key, value) => {
                let key = Rc::new(self.resolve(package, file, key));
                Type::Map(key, Rc::new(self.resolve(package, file, value)))
            }
            TypeKind::Struct(fields) => {
                let mut members = Vec::with_capacity(fields.len());
                for field in fields {
                    let ty = self.resolve(package, file, &field.ty);
                    if field.names.is_empty() {
                        let name = embedded_name(&field.ty);
                        members.push(Member { name, ty, at: field.at });
                    } else {
                        let named =
                            |name: &Arc<str>| Member { name: name.clone(), ty: ty.clone(), at: field.at };
                        members.extend(field.names.iter().map(named));
                    }
                }
                Type::Struct(members.into())
            }
            TypeKind::Array(_) => Type::Other("an array"),
            TypeKind::Interface => Type::Other("an interface"),
            TypeKind::Other("*ast.FuncType") => Type::Other("a function"),
            TypeKind::Other("*ast.ChanType") => Type::Other("a channel"),
            TypeKind::Other("*ast.IndexExpr") => Type::Other("a generic type"),
            TypeKind::Other(_) => Type::Other("no type"),
        }
    }

    fn identifier(&mut self, package: &Arc<Package>, file: &SourceFile, name: &Arc<str>) -> Type {
        if package.find(name).is_some() {
            return declared(package, name);
        }
        for import in file.imports.iter().filter(|import| import.name.as_deref() == Some(".")) {
            match self.loader.import(&import.path, &package.dir) {
                Ok(other) if other.find(name).is_some() => return declared(&other, name),
                Ok(_) => {}
                Err(missing) => return self.missing(&import.path, name, &missing),
            }
        }
        match &**name {
            "any" | "error" | "comparable" => Type::Other("an interface"),
            basic if BASIC.contains(&basic) => Type::Basic(name.clone()),
            _ => {
                let hint = format!("Declare the type {name}, or put its name right.");
                self.unknown(format!("undefined: {name}"), hint)
            }
        }
    }

    fn qualified(&mut self, package: &Package, file: &SourceFile, qualifier: &str, name: &Arc<str>) -> Type {
        let Some(path) = names::qualifier(self.loader, package, file, qualifier) else {
            let hint = format!("Import the package that {qualifier} stands for.");
            return self.unknown(format!("undefined: {qualifier}"), hint);
        };
        if &*path == "unsafe" {
            return Type::Other("an unsafe pointer");
        }
        match self.loader.import(&path, &package.dir) {
            Ok(other) if other.find(name).is_some() => declared(&other, name),
            Ok(_) => {
                let hint = format!("Look the name up in {path}.");
                self.unknown(format!("undefined: {qualifier}.{name}"), hint)
            }
            Err(missing) => self.missing(&path, name, &missing),
        }
    }

    fn missing(&mut self, path: &str, name: &str, missing: &Missing) -> Type {
        let is_standard = !path.split('/').next().unwrap_or_default().contains('.');
        let (message, hint) = match &missing.module {
            _ if is_standard => (
                format!(
                    "how {path}.{name} is copied is unknown: the source of Go's standard library was not found"
                ),
                "Install Go, or set GOROOT.".to_owned(),
            ),
            Some((module, version)) => (
                format!(
                    "how {path}.{name} is copied is unknown: the source of module {module} {version} is not on this machine"
                ),
                format!("Run `go mod download {module}` or `go mod vendor`."),
            ),
            None => (
                format!(
                    "how {path}.{name} is copied is unknown: no go.mod requires a module with this package"
                ),
                format!("Run `go get {path}`."),
            ),
        };
        self.unknown(message, hint)
    }

    /// The underlying type: no name, no alias.
    pub(super) fn under(&mut self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        for _ in 0..DEPTH {
            let id = match &ty {
                Type::Named(id) | Type::Alias(id) => id.clone(),
                Type::Unknown(why) => {
                    self.trouble.get_or_insert_with(|| why.clone());
                    return ty;
                }
                Type::Basic(_)
                | Type::Pointer(_)
                | Type::Slice(_)
                | Type::Map(..)
                | Type::Struct(_)
                | Type::Other(_) => return ty,
            };
            ty = match self.under.get(&id) {
                Some(known) => known.clone(),
                None => {
                    let found = self.right_side(&id);
                    self.under.insert(id, found.clone());
                    found
                }
            };
        }
        Type::Other("a type that stands for itself")
    }

    /// The right side of a type's declaration.
    fn right_side(&mut self, id: &TypeId) -> Type {
        let Ok(package) = self.loader.import(&id.package, ".") else { return Type::Other("no type") };
        let Some((file, decl)) = package.find(&id.name) else { return Type::Other("no type") };
        if decl.generic {
            return Type::Other("a generic type");
        }
        let file = file.clone();
        self.resolve(&package, &file, &decl.ty)
    }

    /// A type without aliases in front.
    fn without_alias(&mut self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        for _ in 0..DEPTH {
            let Type::Alias(id) = &ty else { return ty };
            ty = self.right_side(&id.clone());
        }
        Type::Other("a type that stands for itself")
    }

    /// The copy methods that a type, or what it points to, has of its own.
    pub(super) fn by_hand(&mut self, ty: &Type) -> ByHand {
        let mut ty = self.without_alias(ty);
        let pointer = matches!(ty, Type::Pointer(_));
        if let Type::Pointer(inner) = &ty {
            ty = self.without_alias(&inner.clone());
        }
        let Type::Named(id) = &ty else { return ByHand::default() };
        let id = id.clone();
        // A named pointer type has no methods, neither has a pointer to an interface.
        let without = match self.under(&ty) {
            Type::Pointer(_) => true,
            Type::Other(_) => pointer,
            _ => false,
        };
        let Ok(package) = self.loader.import(&id.package, ".") else { return ByHand::default() };
        if without { ByHand::default() } else { package.copies(&id.name) }
    }

    /// Returns true if an assignment copies all of a value.
    pub(super) fn is_shallow(&mut self, ty: &Type) -> bool {
        self.shallow(ty, 0)
    }

    fn shallow(&mut self, ty: &Type, depth: usize) -> bool {
        match ty {
            _ if depth > DEPTH => false,
            Type::Basic(_) => true,
            Type::Named(id) if self.shallow.contains(id) => true,
            Type::Named(id) => {
                let under = self.under(ty);
                let shallow = self.shallow(&under, depth + 1);
                if shallow {
                    self.shallow.insert(id.clone());
                }
                shallow
            }
            Type::Struct(members) => {
                let members = members.clone();
                members.iter().all(|member| self.shallow(&member.ty, depth + 1))
            }
            Type::Unknown(why) => {
                self.trouble.get_or_insert_with(|| why.clone());
                false
            }
            // An alias counts as deep, whatever it stands for.
            Type::Alias(_) | Type::Pointer(_) | Type::Slice(_) | Type::Map(..) | Type::Other(_) => false,
        }
    }
}

fn declared(package: &Package, name: &Arc<str>) -> Type {
    let id = TypeId { package: package.path.clone(), name: name.clone() };
    if package.find(name).is_some_and(|(_, decl)| decl.alias) { Type::Alias(id) } else { Type::Named(id) }
}

/// The field's name where it has none of its own.
fn embedded_name(ty: &TypeExpr) -> Arc<str> {
    match &ty.kind {
        TypeKind::Ident(name) | TypeKind::Qualified(_, name) => name.clone(),
        TypeKind::Pointer(inner) => embedded_name(inner),
        TypeKind::Slice(_)
        | TypeKind::Array(_)
        | TypeKind::Map(..)
        | TypeKind::Struct(_)
        | TypeKind::Interface
        | TypeKind::Other(_) => "_".into(),
    }
}
