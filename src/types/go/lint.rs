//! Errors of the project's own files before any schema is made: text that is no Go, markers with arguments
//! that cannot be read, and markers that have no effect, with what was probably meant.

use super::comments::RawMarker;
use super::markers::{Reading, Target, read, unknown};
use super::package::Package;
use super::profile::Profile;
use super::syntax::{SourceFile, TypeKind};
use crate::diagnostic::Diagnostic;
use std::collections::HashMap;
use std::sync::Arc;

/// The judgement of a marker.
#[derive(Debug)]
enum Verdict {
    Fine,
    /// Where in its text, and what is wrong.
    Bad(usize, String),
    /// The oddity, and the remedy.
    Odd(String, String),
}

/// Verdicts by the marker's text and what it describes.
type Verdicts = HashMap<(Arc<str>, &'static str), Verdict>;

/// Earlier judgements: of markers by their text and target, and of whole files.
#[derive(Debug, Default)]
pub(crate) struct Said {
    version: String,
    markers: Verdicts,
    files: HashMap<Arc<str>, (Arc<SourceFile>, Vec<Diagnostic>)>,
}

/// How many markers and files are remembered.
const MOST: usize = 10_000;

/// Looks through the root packages; through files that did not change only once.
pub(crate) fn lint(roots: &[Arc<Package>], profile: &Profile, said: &mut Said) -> Vec<Diagnostic> {
    if said.version != profile.version() || said.markers.len() > MOST || said.files.len() > MOST {
        *said = Said { version: profile.version().to_owned(), ..Said::default() };
    }
    let mut out = Vec::new();
    for package in roots {
        for file in &package.sources {
            if let Some((same, found)) = said.files.get(&file.path)
                && Arc::ptr_eq(same, file)
            {
                out.extend(found.iter().cloned());
                continue;
            }
            let mut found = Vec::new();
            Lint { profile, known: &mut said.markers, out: &mut found }.file(file);
            out.extend(found.iter().cloned());
            said.files.insert(file.path.clone(), (file.clone(), found));
        }
    }
    out
}

struct Lint<'l> {
    profile: &'l Profile,
    known: &'l mut Verdicts,
    out: &'l mut Vec<Diagnostic>,
}

impl Lint<'_> {
    fn file(&mut self, file: &SourceFile) {
        for error in &file.errors {
            let diagnostic = Diagnostic::error(error.message.clone(), Some(file.place(error.at)));
            self.out
                .push(diagnostic.with_hint("What was generated before stays until the file can be read."));
        }
        self.markers(file, &file.markers, Target::Package);
        for decl in &file.types {
            self.markers(file, &decl.markers, Target::Type);
            if let TypeKind::Struct(fields) = &decl.ty.kind {
                for field in fields {
                    self.markers(file, &field.markers, Target::Field);
                }
            }
        }
    }

    fn markers(&mut self, file: &SourceFile, markers: &[RawMarker], target: Target) {
        for raw in markers {
            let key = (raw.text.clone(), target.words());
            let verdict =
                self.known.entry(key).or_insert_with(|| match read(&raw.text, 0, target, self.profile) {
                    Reading::Known(_) | Reading::Foreign => Verdict::Fine,
                    Reading::Bad(offset, message) => Verdict::Bad(offset, message),
                    Reading::Unknown => match unknown(&raw.text, target, self.profile) {
                        Some((message, hint)) => Verdict::Odd(message, hint),
                        None => Verdict::Fine,
                    },
                });
            match verdict {
                Verdict::Fine => {}
                Verdict::Bad(offset, message) => {
                    self.out.push(Diagnostic::error(message.clone(), Some(file.place(raw.at + *offset))));
                }
                Verdict::Odd(message, hint) => {
                    let place = Some(file.place(raw.at));
                    self.out.push(Diagnostic::warning(message.clone(), place).with_hint(hint.clone()));
                }
            }
        }
    }
}
