//! One Go package: the files that count, its types by name, its marshalling methods, and what its markers say
//! of the package as a whole. Knows nothing of schemas.

use super::markers::{Marker, Reading, Target, read};
use super::profile::Profile;
use super::syntax::{MethodKind, SourceFile, TypeDecl};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A type: import path of its package, and its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TypeId {
    pub(crate) package: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// The types of a package that may mean something else than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    All,
    Types(HashSet<Arc<str>>),
}

/// Copy methods of a type that were written by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByHand {
    /// `DeepCopy`; whether its receiver is a pointer.
    pub(crate) deep_copy: Option<bool>,
    /// `DeepCopyInto`.
    pub(crate) into: bool,
}

impl ByHand {
    pub(crate) fn any(self) -> bool {
        self.deep_copy.is_some() || self.into
    }
}

/// One package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) path: Arc<str>,
    pub(crate) dir: String,
    pub(crate) name: String,
    pub(crate) files: Vec<Arc<SourceFile>>,
    /// All files it was made of, those of another package included.
    pub(crate) sources: Vec<Arc<SourceFile>>,
    /// It belongs to the project and may change.
    pub(crate) ours: bool,
    types: HashMap<Arc<str>, (usize, usize)>,
    json: HashSet<Arc<str>>,
    text: HashSet<Arc<str>>,
    copies: HashMap<Arc<str>, ByHand>,
}

impl Package {
    /// Puts files together; those of another package in the same folder are left out.
    pub(crate) fn new(path: Arc<str>, dir: String, files: Vec<Arc<SourceFile>>, ours: bool) -> Package {
        let mut count: HashMap<&str, usize> = HashMap::new();
        for file in files.iter().filter(|file| !file.package.is_empty()) {
            *count.entry(&file.package).or_default() += 1;
        }
        let name = count.into_iter().max_by_key(|(name, count)| (*count, std::cmp::Reverse(*name)));
        let name = name.map_or_else(String::new, |(name, _)| name.to_owned());
        let sources = files.clone();
        let files: Vec<Arc<SourceFile>> = files.into_iter().filter(|file| file.package == name).collect();
        let mut package = Package { path, dir, name, files, sources, ours, ..Package::default() };
        for (index, file) in package.files.iter().enumerate() {
            for (decl, ty) in file.types.iter().enumerate() {
                package.types.entry(ty.name.clone()).or_insert((index, decl));
            }
            for (decl, ty) in file.later.iter().enumerate() {
                package.types.entry(ty.name.clone()).or_insert((index, file.types.len() + decl));
            }
            for method in &file.methods {
                let receiver = method.receiver.clone();
                match method.kind {
                    MethodKind::Json => drop(package.json.insert(receiver)),
                    MethodKind::Text => drop(package.text.insert(receiver)),
                    MethodKind::DeepCopy { pointer_receiver } => {
                        package.copies.entry(receiver).or_default().deep_copy = Some(pointer_receiver);
                    }
                    MethodKind::DeepCopyInto => package.copies.entry(receiver).or_default().into = true,
                }
            }
        }
        package
    }

    /// A type of the package and the file it is in.
    pub(crate) fn find(&self, name: &str) -> Option<(&Arc<SourceFile>, &TypeDecl)> {
        let (file, decl) = *self.types.get(name)?;
        let file = self.files.get(file)?;
        let decl = match decl.checked_sub(file.types.len()) {
            None => file.types.get(decl),
            Some(later) => file.later.get(later)?.decl(file),
        };
        Some((file, decl?))
    }

    /// All types of the project's own package, file by file.
    pub(crate) fn types(&self) -> impl Iterator<Item = (&Arc<SourceFile>, &TypeDecl)> {
        self.files.iter().flat_map(|file| file.types.iter().map(move |decl| (file, decl)))
    }

    /// Two answers: a type has `MarshalJSON` of its own, and it has `MarshalText`.
    pub(crate) fn marshals(&self, name: &str) -> (bool, bool) {
        (self.json.contains(name), self.text.contains(name))
    }

    /// The copy methods that a type has of its own.
    pub(crate) fn copies(&self, name: &str) -> ByHand {
        self.copies.get(name).copied().unwrap_or_default()
    }

    /// The types that may mean something else than in an older state of the package.
    pub(crate) fn changed_since(&self, old: &Package) -> Changed {
        let same_around = |a: &SourceFile, b: &SourceFile| {
            let markers =
                |file: &SourceFile| file.markers.iter().map(|marker| marker.text.clone()).collect::<Vec<_>>();
            a.path == b.path
                && a.errors.is_empty()
                && b.errors.is_empty()
                && a.package == b.package
                && a.imports == b.imports
                && a.methods == b.methods
                && a.consts == b.consts
                && markers(a) == markers(b)
                && a.types.iter().map(|decl| &decl.name).eq(b.types.iter().map(|decl| &decl.name))
        };
        let pairs = || self.sources.iter().zip(&old.sources).filter(|(new, old)| !Arc::ptr_eq(new, old));
        if self.sources.len() != old.sources.len() || pairs().any(|(new, old)| !same_around(new, old)) {
            return Changed::All;
        }
        let decls = pairs().flat_map(|(new, old)| {
            let both = new.types.iter().zip(&old.types);
            both.filter(|(a, b)| new.text_of(a) != old.text_of(b)).map(|(decl, _)| decl.name.clone())
        });
        Changed::Types(decls.collect())
    }

    /// The markers of the package that can be read.
    pub(crate) fn markers(&self, profile: &Profile) -> Vec<(Arc<SourceFile>, Marker)> {
        let mut out = Vec::new();
        for file in &self.files {
            for raw in &file.markers {
                if let Reading::Known(marker) = read(&raw.text, raw.at, Target::Package, profile) {
                    out.push((file.clone(), marker));
                }
            }
        }
        out
    }
}

/// Returns true if a character can stand in a name.
pub(crate) fn counts_as_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true if a file of this name can be part of a package on Linux.
pub(crate) fn counts(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".go") else { return false };
    if stem.ends_with("_test") || name.starts_with(['_', '.']) {
        return false;
    }
    let mut parts = stem.rsplit('_');
    let (last, before) = (parts.next().unwrap_or_default(), parts.next());
    const SYSTEMS: &[&str] = &[
        "aix",
        "android",
        "darwin",
        "dragonfly",
        "freebsd",
        "illumos",
        "ios",
        "js",
        "netbsd",
        "openbsd",
        "plan9",
        "solaris",
        "wasip1",
        "windows",
        "zos",
    ];
    const MACHINES: &[&str] = &[
        "386", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le",
        "riscv64", "s390x", "wasm",
    ];
    before.is_none()
        || !(SYSTEMS.contains(&last)
            || MACHINES.contains(&last)
            || (last == "amd64" && before.is_some_and(|system| SYSTEMS.contains(&system))))
}

/// Returns true if a file's `//go:build` line lets it be part of the package, as controller-gen builds it:
/// for Linux, and with `ignore_autogenerated`.
pub(crate) fn builds(text: &str) -> bool {
    for line in text.lines() {
        let line = line.trim();
        if let Some(expression) = line.strip_prefix("//go:build ") {
            let mut words = Vec::new();
            let mut word = String::new();
            for c in expression.chars() {
                if c.is_alphanumeric() || matches!(c, '_' | '.') {
                    word.push(c);
                    continue;
                }
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                if !c.is_whitespace() {
                    words.push(c.to_string());
                }
            }
            if !word.is_empty() {
                words.push(word);
            }
            return any(&mut words.iter().map(String::as_str).peekable(), 0);
        }
        if line.starts_with("package ") {
            break;
        }
    }
    true
}

type Words<'w, I> = std::iter::Peekable<I>;

fn any<'w>(words: &mut Words<'w, impl Iterator<Item = &'w str>>, depth: usize) -> bool {
    let mut value = every(words, depth);
    while words.peek() == Some(&"|") {
        words.next();
        words.next();
        value |= every(words, depth);
    }
    value
}

fn every<'w>(words: &mut Words<'w, impl Iterator<Item = &'w str>>, depth: usize) -> bool {
    let mut value = one(words, depth);
    while words.peek() == Some(&"&") {
        words.next();
        words.next();
        value &= one(words, depth);
    }
    value
}

fn one<'w>(words: &mut Words<'w, impl Iterator<Item = &'w str>>, depth: usize) -> bool {
    match words.next() {
        _ if depth > 50 => false,
        Some("!") => !one(words, depth + 1),
        Some("(") => {
            let value = any(words, depth + 1);
            words.next();
            value
        }
        Some(tag) => {
            matches!(tag, "linux" | "amd64" | "unix" | "cgo" | "gc" | "ignore_autogenerated")
                || tag.starts_with("go1.")
        }
        None => false,
    }
}
