//! The variables of one tree while it is parsed: which name means which slot.
//! Go checks names while it parses and finds values by name while it runs; where the two differ, so do we.

use std::sync::Arc;

use super::node::Decl;

/// Slot of a variable that is named but has no value when it is used: an error there.
pub(super) const UNDECLARED: usize = usize::MAX;

struct Variable {
    name: Arc<str>,
    slot: usize,
    ready: bool,
}

/// The state of one tree.
pub(super) struct Scope {
    vars: Vec<Variable>,
    /// How many slots an execution needs.
    pub(super) slots: usize,
    /// Loops around the present place.
    pub(super) range_depth: usize,
}

impl Scope {
    pub(super) fn new() -> Scope {
        let dollar = Variable { name: "$".into(), slot: 0, ready: true };
        Scope { vars: vec![dollar], slots: 1, range_depth: 0 }
    }

    /// How many variables there are; `leave` and `hide` take the number back.
    pub(super) fn mark(&self) -> usize {
        self.vars.len()
    }

    /// Forgets all variables since the mark.
    pub(super) fn leave(&mut self, mark: usize) {
        self.vars.truncate(mark);
    }

    /// Takes the value from all variables since the mark: in `else`, those of the other branch are names
    /// only.
    pub(super) fn hide(&mut self, mark: usize) {
        for variable in &mut self.vars[mark..] {
            variable.ready = false;
        }
    }

    /// A name before `:=`, which has no value before the pipeline's end.
    pub(super) fn declare(&mut self, name: &str) {
        self.vars.push(Variable { name: name.into(), slot: UNDECLARED, ready: false });
    }

    /// Gives the declared variables of a finished pipeline their slots.
    pub(super) fn settle(&mut self, first: usize, count: usize, assign: bool) -> Box<[Decl]> {
        let mut decls = Vec::with_capacity(count);
        for i in first..first + count {
            let name = Arc::clone(&self.vars[i].name);
            let slot = if assign {
                self.slot_of(&name)
            } else {
                self.slots = self.slots.max(i + 1);
                i
            };
            self.vars[i].slot = slot;
            self.vars[i].ready = true;
            decls.push(Decl { name, slot });
        }
        decls.into()
    }

    /// The name, if it may be written here.
    pub(super) fn name(&self, name: &str) -> Option<Arc<str>> {
        self.vars.iter().find(|v| &*v.name == name).map(|v| Arc::clone(&v.name))
    }

    /// Where the name's value is.
    pub(super) fn slot_of(&self, name: &str) -> usize {
        let found = self.vars.iter().rev().find(|v| v.ready && &*v.name == name);
        found.map_or(UNDECLARED, |v| v.slot)
    }
}
