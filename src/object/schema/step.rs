//! The path of a walk through a value, as one text that grows and shrinks.

use std::fmt::Write as _;

/// Does work below a step of the path. There is one path for the whole walk: it is only read where something
/// is wrong.
pub(crate) fn below<R>(path: &mut String, step: Step<'_>, work: impl FnOnce(&mut String) -> R) -> R {
    let length = path.len();
    match step {
        Step::Child(name) if length == 0 => path.push_str(name),
        Step::Child(name) | Step::Entry(name) => {
            path.push('.');
            path.push_str(name);
        }
        Step::Key(name) => {
            path.push('[');
            path.push_str(name);
            path.push(']');
        }
        // Writing into memory does not fail.
        Step::Index(index) => _ = write!(path, "[{index}]"),
    }
    let done = work(path);
    path.truncate(length);
    done
}

/// One step down.
#[derive(Clone, Copy)]
pub(crate) enum Step<'a> {
    /// A named field.
    Child(&'a str),
    /// A field without a name in the schema.
    Entry(&'a str),
    /// A field without a name in the schema, as errors about duplicates print it.
    Key(&'a str),
    /// An item.
    Index(usize),
}
