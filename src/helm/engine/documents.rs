//! The documents of a large render are read on other cores while templates still run. A small render stays on
//! the thread it is asked on.

use super::memory::{Output, Outputs};
use crate::{manifest, spread};
use opdev_template::Compat;
use std::sync::Arc;

/// Makes outputs with `render`, which gives each one as soon as it is there, and reads their documents, the
/// ones that stood in the outputs before excepted. What is broken is told to who wants it.
pub(super) fn reading<T>(
    before: &Outputs,
    compat: Compat,
    render: impl FnOnce(&mut dyn FnMut(&str, &Arc<Output>)) -> T,
) -> T {
    let read = |(path, output): (String, Arc<Output>)| {
        let _ = output.documents(&path, before.get(&path), compat);
    };
    spread::while_made(read, |give| {
        render(&mut |path, output| {
            if !manifest::is_notes(path) {
                give((path.to_owned(), Arc::clone(output)), output.text.len());
            }
        })
    })
    .0
}
