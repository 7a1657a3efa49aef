//! The context of one render: the outside world (clock, randomness, cluster, zone) and the counters of the
//! run. Templates reach nothing else, so a render with the same context gives the same bytes.

use super::budget::{Budget, MAX_BYTES, Spent};
use super::error::FuncError;
use super::funcs::cost::Cost;
use super::reads::{Quickly, Reads};
use super::value::Value;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The outside, handed in.
pub trait Environment {
    /// The time `now` gives.
    fn now(&self) -> jiff::Timestamp;

    /// The zone called `Local`.
    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::UTC
    }

    /// A zone by its IANA name.
    fn named_zone(&self, name: &str) -> Option<jiff::tz::TimeZone> {
        jiff::tz::TimeZone::get(name).ok()
    }

    /// Fills the buffer with random bytes.
    fn random(&self, buffer: &mut [u8]);

    /// `lookup`: the object, a list when `name` is empty, an empty map when there is none.
    ///
    /// # Errors
    /// What the template reports, such as an unknown kind.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<serde_json::Value, FuncError>;

    /// A function that the environment brings along, with arguments that are counted and checked.
    ///
    /// # Errors
    /// What the template reports.
    fn call(&self, name: &str, _arguments: &[Value]) -> Result<Value, FuncError> {
        Err(FuncError::new(format!("no function {name}")))
    }

    /// Why a render is to break off, asked every few milliseconds: its time is up, or nobody waits for it any
    /// more.
    fn give_up(&self) -> Option<&'static str> {
        None
    }

    /// `getHostByName`: an address, or empty when names are not resolved.
    fn resolve_host(&self, _name: &str) -> String {
        String::new()
    }
}

/// The Helm whose functions and texts are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compat {
    /// Helm 3.19
    V3_19,
    /// Helm 3.22
    #[default]
    V3,
    /// Helm 4.1
    V4_1,
    /// Helm 4.3
    V4,
}

impl Compat {
    /// Returns true if it is a Helm 3.
    pub fn is_three(self) -> bool {
        matches!(self, Compat::V3_19 | Compat::V3)
    }

    /// Returns true if it is a Helm 4.
    pub fn is_four(self) -> bool {
        !self.is_three()
    }
}

/// Where a stretch of output begins and what it came from.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The first byte of the output.
    pub output: usize,
    /// The file of the template.
    pub file: Arc<str>,
    /// The byte in that file.
    pub source: usize,
    /// True if the output is that text itself, byte by byte, and not the result of an action.
    pub verbatim: bool,
}

/// The state of one render, shared by every template executed in it.
pub struct Context<'a> {
    pub(super) env: &'a dyn Environment,
    pub(super) compat: Compat,
    /// How often each name is being included right now.
    pub(super) included: HashMap<Box<[u8]>, u32, Quickly>,
    /// Nested template executions on the stack.
    pub(super) depth: u32,
    /// True if something read the clock, randomness or the cluster, so that the output may differ next time.
    pub(super) impure: bool,
    /// A key that a map does not have is an error.
    pub(super) strict: bool,
    /// When to give up, and how many bytes one template may write.
    pub(super) bounds: Option<(&'a AtomicBool, usize)>,
    /// Where the output of the outermost template came from, if that is to be known.
    pub(super) marks: Option<Vec<Mark>>,
    /// The charge so far.
    pub(super) budget: Budget,
    /// The step at which the environment is asked again whether to go on.
    ask_at: u64,
    /// Where it is noted what templates read, if anybody wants to know.
    pub(super) reads: Option<Rc<Reads>>,
}

/// How many steps go by until the environment is asked whether to go on.
const STEPS_UNASKED: u64 = 4_096;

impl<'a> Context<'a> {
    /// Counts what the call of a function is about to cost in steps and keys; why not to make it, if so.
    pub(super) fn charge(&mut self, cost: Cost) -> Result<(), &'static str> {
        if cost == Cost::default() {
            return Ok(());
        }
        self.budget.reads(cost.steps)?;
        self.budget.keys(cost.keys)?;
        self.interrupted().map_or(Ok(()), Err)
    }

    /// Why to break off what is going on, if so. What a function does at length asks for it in between.
    pub(super) fn interrupted(&self) -> Option<&'static str> {
        let stopped = self.bounds.is_some_and(|(stop, _)| stop.load(Ordering::Relaxed));
        if stopped { Some("the template takes too long") } else { self.env.give_up() }
    }

    /// A fresh render.
    #[must_use]
    pub fn new(env: &'a dyn Environment, compat: Compat) -> Context<'a> {
        Context {
            env,
            compat,
            included: HashMap::default(),
            depth: 0,
            impure: false,
            strict: false,
            bounds: None,
            marks: None,
            budget: Budget::default(),
            ask_at: 0,
            reads: None,
        }
    }

    /// Makes a missing key an error that names it, instead of nothing.
    #[must_use]
    pub fn strict(mut self) -> Context<'a> {
        self.strict = true;
        self
    }

    /// Gives up once `stop` is set or a template has written more than `bytes`.
    #[must_use]
    pub fn bounded(mut self, stop: &'a AtomicBool, bytes: usize) -> Context<'a> {
        self.bounds = Some((stop, bytes));
        self
    }

    /// Remembers where output comes from; see `take_marks`.
    #[must_use]
    pub fn marked(mut self) -> Context<'a> {
        self.marks = Some(Vec::new());
        self
    }

    /// Where the output of the last execution came from, in the order of the output.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        self.marks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Why to give up, if so.
    pub(super) fn exhausted(&mut self, written: usize) -> Option<&'static str> {
        if let Err(why) = self.budget.step() {
            return Some(why);
        }
        if written > MAX_BYTES {
            return Some("one template writes more than 128 MiB");
        }
        if self.budget.steps() >= self.ask_at {
            self.ask_at = self.budget.steps() + STEPS_UNASKED;
            if let Some(why) = self.env.give_up() {
                return Some(why);
            }
        }
        let (stop, bytes) = self.bounds?;
        if stop.load(Ordering::Relaxed) {
            Some("the template takes too long")
        } else if written > bytes {
            Some("the template writes too much")
        } else {
            None
        }
    }

    /// A context that also notes which values templates read.
    #[must_use]
    pub fn noting(self, reads: Rc<Reads>) -> Context<'a> {
        Context { reads: Some(reads), ..self }
    }

    /// Returns true if anything since the last time this was asked read the clock, randomness or the cluster.
    pub fn take_impure(&mut self) -> bool {
        std::mem::take(&mut self.impure)
    }

    /// The counts so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.budget.spent()
    }

    /// The outside; marks the render as not repeatable.
    pub(super) fn outside(&mut self) -> &'a dyn Environment {
        self.impure = true;
        self.env
    }
}
