//! Loads a reconciler, whichever engine it is written for. Pure: files come in as texts; loading runs the top
//! level of a script under the usual limits, but nothing of it can reach the outside.

use crate::contract::Program;
use crate::{script, templates};
use opdev_types::diagnostic::{Diagnostic, Place};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Loads one reconciler.
///
/// `files` are everything under the reconcilers folder: path relative to the project's root → text. `entry`
/// is a script such as `config/reconcilers/podset.ts`, or a folder of templates such as
/// `config/reconcilers/backup/`.
///
/// # Errors
/// The first thing that is wrong with it, with its place.
pub fn load(entry: &str, files: &BTreeMap<String, Arc<str>>) -> Result<Arc<dyn Program>, Box<Diagnostic>> {
    let is_script = [".ts", ".mts", ".js", ".mjs"].iter().any(|end| entry.ends_with(end));
    if is_script && !entry.ends_with(".d.ts") {
        return Ok(Arc::new(script::load(entry, files)?));
    }
    let folder = format!("{}/", entry.trim_end_matches('/'));
    if files.keys().any(|path| path.starts_with(&folder)) {
        return Ok(Arc::new(templates::load(entry, files)?));
    }
    let place = Place { file: entry.to_owned(), line: 0, column: 0 };
    Err(Box::new(
        Diagnostic::error(format!("{entry} is not a reconciler"), Some(place)).with_hint(
            "a reconciler is a file that ends in .ts, .js, .mts or .mjs, or a folder of templates",
        ),
    ))
}
