//! The `variables` of a policy: each is evaluated when it is first named, and once.

use super::admission::Expression;
use super::authorizer::Authorizer;
use super::eval::Eval;
use super::library::Library;
use super::meter::{ALL_STEPS, Meter};
use super::runtime::Runtime;
use super::value::{Evaluated, Stop, Val, failed};
use std::cell::{Cell, RefCell};

/// The variables of one evaluation.
pub(super) struct Lazy<'a> {
    known: &'a [(String, Expression)],
    found: RefCell<Vec<Option<Evaluated>>>,
    /// Their cost since it was asked for last.
    pub(super) spent: Cell<u64>,
    /// How many steps of our own are left.
    pub(super) steps: Cell<u64>,
    pub(super) scope: Vec<(&'a str, Val)>,
    pub(super) library: &'a Library,
    pub(super) authorizer: Option<&'a dyn Authorizer>,
}

impl<'a> Lazy<'a> {
    pub(super) fn new(
        known: &'a [(String, Expression)],
        scope: Vec<(&'a str, Val)>,
        library: &'a Library,
        authorizer: Option<&'a dyn Authorizer>,
    ) -> Self {
        Lazy {
            known,
            found: RefCell::new(vec![None; known.len()]),
            spent: Cell::new(0),
            steps: Cell::new(ALL_STEPS),
            scope,
            library,
            authorizer,
        }
    }

    /// A variable's value.
    pub(super) fn get(&'a self, name: &str) -> Evaluated {
        // Two variables may have one name: the later one counts.
        let Some(index) = self.known.iter().rposition(|(known, _)| known == name) else {
            return failed(format!("no such key: {name}"));
        };
        if let Some(Some(found)) = self.found.borrow().get(index) {
            return found.clone();
        }
        let (name, expression) = &self.known[index];
        let value = match &expression.made {
            Err(why) => failed(format!("composited variable \"{name}\" fails to compile: {why}")),
            Ok(expr) => {
                let mut meter = Meter::new(self.steps.get());
                let before = meter.steps;
                let mut eval = Eval {
                    scope: self.scope.clone(),
                    runtime: Runtime {
                        meter: &mut meter,
                        library: self.library,
                        authorizer: self.authorizer,
                    },
                    variables: Some(self),
                };
                let result = eval.eval(expr);
                self.spent.set(self.spent.get().saturating_add(meter.cost));
                self.steps.set(self.steps.get().saturating_sub(before - meter.steps));
                let fails =
                    |why: &str| failed(format!("composited variable \"{name}\" fails to evaluate: {why}"));
                match result {
                    Ok(value) => Ok(value),
                    Err(Stop::Failed(why)) => fails(&why),
                    Err(Stop::Budget) => fails("operation cancelled: actual cost limit exceeded"),
                }
            }
        };
        self.found.borrow_mut()[index] = Some(value.clone());
        value
    }
}
