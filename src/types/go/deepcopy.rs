//! Copy methods of Go types: the `zz_generated.deepcopy.go` that controller-gen's `object` generator writes,
//! byte for byte, without a Go toolchain. This file decides which types get methods and puts the file
//! together; `deepcopy/body.rs` writes the methods, `deepcopy/model.rs` knows the types. Never writes to
//! disk.

mod aliases;
mod body;
mod header;
mod model;
#[cfg(test)]
mod tests;

use super::comments::RawMarker;
use super::imports::Modules;
use super::package::Package;
use super::sources::Loader;
use super::{Files, Generator, names, roots};
use crate::diagnostic::Diagnostic;
use aliases::Aliases;
use body::Copier;
use model::Model;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The name of the generated file in each package.
pub const FILE: &str = "zz_generated.deepcopy.go";

/// Without one of these words in a file of it, a package has no copy methods made.
const MARKERS: [&str; 3] = ["+kubebuilder:object:", "+k8s:deepcopy-gen", "+ kubebuilder:object:"];

/// The generated files of some packages.
#[derive(Clone, Debug, Default)]
pub struct DeepCopies {
    /// The files, by folder.
    pub files: Vec<DeepCopyFile>,
    /// Folders of packages whose file cannot be made; what was generated before should stay. The diagnostics
    /// say why.
    pub broken: Vec<String>,
    /// Errors and warnings, by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The project's files that were read, sorted.
    pub read: Vec<String>,
}

/// One generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeepCopyFile {
    /// The package's folder; the file's name is [`FILE`].
    pub dir: String,
    /// The whole text.
    pub text: String,
}

impl Generator {
    /// The copy methods of the types of some folders, given as paths or as patterns such as `./...`. `header`
    /// is the text of controller-gen's `headerFile`, with the year put in.
    pub fn deep_copies(&mut self, files: &dyn Files, packages: &[String], header: &str) -> DeepCopies {
        let dirs = roots::folders(files, packages);
        let start = dirs.first().map_or(".", String::as_str);
        let modules = Modules::read(files, start);
        self.store.look_again();
        let mut loader = Loader::new(&mut self.store, files, modules);
        let found: Vec<_> = dirs.iter().filter_map(|dir| loader.root_with(dir, &MARKERS)).collect();
        let mut out = DeepCopies::default();
        let header = header::formatted(header).unwrap_or_else(|error| {
            let hint = "headerFile names a file with a Go comment.";
            out.diagnostics.push(Diagnostic::error(error.to_string(), None).with_hint(hint));
            out.broken.extend(found.iter().map(|package| package.dir.clone()));
            String::new()
        });
        if out.broken.is_empty() {
            let mut model = Model::new(&mut loader);
            for package in found {
                let mut problems = Vec::new();
                let text = package_file(&mut model, &package, &header, &mut problems);
                match text {
                    _ if !problems.is_empty() => out.broken.push(package.dir.clone()),
                    Some(text) => out.files.push(DeepCopyFile { dir: package.dir.clone(), text }),
                    None => {}
                }
                out.diagnostics.append(&mut problems);
            }
        }
        out.diagnostics.append(&mut loader.notes);
        out.diagnostics.sort_by(|a, b| (&a.place, &a.message).cmp(&(&b.place, &b.message)));
        out.diagnostics.dedup();
        out.read = loader.read.into_iter().collect();
        out
    }
}

/// The file of one package; `None` where none of its types needs methods.
fn package_file(
    model: &mut Model<'_, '_>,
    package: &Arc<Package>,
    header: &str,
    problems: &mut Vec<Diagnostic>,
) -> Option<String> {
    for file in &package.sources {
        for error in &file.errors {
            let found = Diagnostic::error(error.message.clone(), Some(file.place(error.at)));
            problems.push(found.with_hint("What was generated before stays until the file can be read."));
        }
    }
    if !problems.is_empty() {
        return None;
    }
    let all = of_package(package, problems);
    let mut aliases = Aliases::new(&package.name);
    let mut methods: BTreeMap<Arc<str>, String> = BTreeMap::new();
    for (file, decl) in package.types() {
        let mut read = |raw: &RawMarker, expected: &str| {
            let message = format!("{} cannot be read: expected {expected}", raw.text);
            problems.push(Diagnostic::error(message, Some(file.place(raw.at))));
        };
        let object = is_object(&decl.markers, &mut read);
        if !is_enabled(&decl.markers, all, object, &mut read) {
            continue;
        }
        let mut copier = Copier::new(model, package, file, &mut aliases, problems);
        if copier.needs_methods(decl) {
            let text = copier.methods(decl, object);
            if !text.is_empty() {
                methods.insert(decl.name.clone(), text);
            }
        }
    }
    (!methods.is_empty()).then(|| {
        let mut text = "//go:build !ignore_autogenerated\n\n".to_owned();
        text.push_str(header);
        let _ =
            write!(text, "// Code generated by controller-gen. DO NOT EDIT.\n\npackage {}\n\n", package.name);
        text.push_str(&imports(model.loader, package, &aliases));
        for methods in methods.values() {
            text.push('\n');
            text.push_str(methods);
        }
        text
    })
}

/// The import declaration; a name is written where the package does not bring it along.
fn imports(loader: &mut Loader<'_>, package: &Package, aliases: &Aliases) -> String {
    let mut text = String::new();
    for (path, alias) in aliases.list() {
        let direct = package.files.iter().flat_map(|file| &file.imports).any(|import| import.path == *path);
        let name = match loader.import(path, &package.dir) {
            Ok(imported) if !imported.name.is_empty() => imported.name.clone(),
            _ => names::likely_name(path).to_owned(),
        };
        let _ = if direct && name == *alias {
            writeln!(text, "\t\"{path}\"")
        } else {
            writeln!(text, "\t{alias} \"{path}\"")
        };
    }
    if text.is_empty() { "import ()\n".to_owned() } else { format!("import (\n{text})\n") }
}

/// The argument of a marker with such a name; an empty one where it has none.
fn argument<'m>(raw: &'m RawMarker, name: &str) -> Option<&'m str> {
    let body = raw.text.strip_prefix('+').unwrap_or(&raw.text).trim_start();
    let rest = body.strip_prefix(name)?;
    match rest.strip_prefix(":=").or_else(|| rest.strip_prefix('=')) {
        Some(argument) => Some(argument.trim()),
        None => rest.is_empty().then_some(""),
    }
}

/// The first marker of a name among some, as true or false.
fn flag(markers: &[RawMarker], name: &str, wrong: &mut impl FnMut(&RawMarker, &str)) -> Option<bool> {
    let (raw, text) = markers.iter().find_map(|raw| Some((raw, argument(raw, name)?)))?;
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => {
            wrong(raw, "true or false");
            Some(false)
        }
    }
}

/// Returns true if a package asks for methods of all its types.
fn of_package(package: &Package, problems: &mut Vec<Diagnostic>) -> bool {
    let mut legacy = None;
    for file in &package.files {
        let mut wrong = |raw: &RawMarker, expected: &str| {
            let message = format!("{} cannot be read: expected {expected}", raw.text);
            problems.push(Diagnostic::error(message, Some(file.place(raw.at))));
        };
        if let Some(all) = flag(&file.markers, "kubebuilder:object:generate", &mut wrong) {
            return all;
        }
        let old = || file.markers.iter().find_map(|raw| argument(raw, "k8s:deepcopy-gen"));
        legacy = legacy.or_else(|| old().map(|text| text.split(',').next() == Some("package")));
    }
    legacy.unwrap_or(false)
}

/// Returns true if a type is a `runtime.Object`.
fn is_object(markers: &[RawMarker], wrong: &mut impl FnMut(&RawMarker, &str)) -> bool {
    flag(markers, "kubebuilder:object:root", wrong).unwrap_or_else(|| {
        let interfaces = |raw: &RawMarker| {
            let text = argument(raw, "k8s:deepcopy-gen:interfaces")?;
            Some(text.trim_matches(['"', '`']) == "k8s.io/apimachinery/pkg/runtime.Object")
        };
        markers.iter().filter_map(interfaces).any(|object| object)
    })
}

/// Tells whether methods are wanted for a type.
fn is_enabled(
    markers: &[RawMarker],
    all: bool,
    object: bool,
    wrong: &mut impl FnMut(&RawMarker, &str),
) -> bool {
    let legacy = || markers.iter().find_map(|raw| argument(raw, "k8s:deepcopy-gen"));
    flag(markers, "kubebuilder:object:generate", wrong)
        .or_else(|| legacy().map(|text| text == "true"))
        .unwrap_or(all || object)
}
