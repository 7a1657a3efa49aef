//! A program that reconciles as a file was saved, and whose writes the API server refuses because they do not
//! fit their kinds. Plain data: the manager reports it, and who loads files lets the program before it serve
//! again.

use opdev_event::Diagnostic;
use opdev_object::meta::ObjectRef;

/// A refused write of a program that has just taken over.
#[derive(Clone, Debug)]
pub struct UnfitWrite {
    /// The object that was reconciled.
    pub object: ObjectRef,
    /// The set of sources that the program came with.
    pub sources: u64,
    /// The refusal of the API server.
    pub problem: Diagnostic,
}
