//! What is wrong with the project's own files before any schema is made: text that is no Go, markers with arguments
//! that cannot be read, and markers that have no effect, with what was probably meant.

use super::comments::RawMarker;
use super::markers::{Reading, Target, read, unknown};
use super::package::Package;
use super::profile::Profile;
use super::syntax::{SourceFile, TypeKind};
use crate::diagnostic::Diagnostic;
use std::collections::HashMap;
use std::sync::Arc;

/// What was said of a marker before, by its text and what it describes.
pub(crate) type Oddities = HashMap<(Arc<str>, &'static str, String), Option<(String, String)>>;

/// Looks through the root packages.
pub(crate) fn lint(roots: &[Arc<Package>], profile: &Profile, known: &mut Oddities) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    let mut lint = Lint { profile, known, out: &mut out };
    for package in roots {
        for file in &package.sources {
            for error in &file.errors {
                let diagnostic = Diagnostic::error(error.message.clone(), Some(file.place(error.at)));
                lint.out.push(
                    diagnostic.with_hint("What was generated before stays until the file can be read."),
                );
            }
        }
        for file in &package.files {
            lint.markers(file, &file.markers, Target::Package);
            for decl in &file.types {
                lint.markers(file, &decl.markers, Target::Type);
                if let TypeKind::Struct(fields) = &decl.ty.kind {
                    for field in fields {
                        lint.markers(file, &field.markers, Target::Field);
                    }
                }
            }
        }
    }
    out
}

struct Lint<'l> {
    profile: &'l Profile,
    known: &'l mut Oddities,
    out: &'l mut Vec<Diagnostic>,
}

impl Lint<'_> {
    fn markers(&mut self, file: &SourceFile, markers: &[RawMarker], target: Target) {
        for raw in markers {
            match read(&raw.text, raw.at, target, self.profile) {
                Reading::Known(_) | Reading::Foreign => {}
                Reading::Bad(offset, message) => {
                    self.out.push(Diagnostic::error(message, Some(file.place(raw.at + offset))));
                }
                Reading::Unknown => {
                    let key = (raw.text.clone(), target.words(), self.profile.version().to_owned());
                    if self.known.len() > 10_000 {
                        self.known.clear();
                    }
                    let odd =
                        self.known.entry(key).or_insert_with(|| unknown(&raw.text, target, self.profile));
                    if let Some((message, hint)) = odd {
                        let place = Some(file.place(raw.at));
                        self.out.push(Diagnostic::warning(message.clone(), place).with_hint(hint.clone()));
                    }
                }
            }
        }
    }
}
