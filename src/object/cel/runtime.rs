//! The part of an evaluation that functions need: the meter that they charge, the library, and who answers
//! `authorizer`.

use super::authorizer::Authorizer;
use super::library::Library;
use super::meter::Meter;
use super::value::Stop;

/// The part of an evaluation that functions see.
pub(super) struct Runtime<'a> {
    pub(super) meter: &'a mut Meter,
    pub(super) library: &'a Library,
    /// The authorizer that answers `authorizer`; only conditions of requests have it.
    pub(super) authorizer: Option<&'a dyn Authorizer>,
}

impl Runtime<'_> {
    /// Takes steps; stops the evaluation where none is left.
    pub(super) fn charge(&mut self, steps: u64) -> Result<(), Stop> {
        self.meter.charge(steps)
    }

    /// Pays what a server counts; stops the evaluation where that is more than one may cost.
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        self.meter.spend(cost)
    }
}
