//! Reconcilers in TypeScript and JavaScript, on QuickJS. A file is stripped of its types once (`strip`), then
//! each call runs in a fresh engine on a thread of its own (`run`), so that nothing survives from call to
//! call and a script that hangs takes nothing with it. Scripts reach the outside only through the contract's
//! `Host` (`bridge`).

use crate::code::Code;
use crate::contract::{
    ChartAnswer, ChartCall, ChartFunction, ChartQuestion, Desired, Facts, Host, Limits, Observed, Program,
};
use crate::machine::Declared;
use crate::run::{self, Job, Stuck};
use opdev_object::meta::Gvk;
use opdev_types::diagnostic::Diagnostic;
use opdev_types::kinds;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A loaded script.
#[derive(Debug)]
pub(crate) struct Script {
    facts: Facts,
    code: Arc<Code>,
    /// True if it has Metacontroller's `sync` in place of `reconcile`.
    hook: bool,
    /// A call that was given up inside one native operation that nothing can interrupt.
    stuck: Stuck,
}

/// Loads a script: reads and strips it and what it imports, and runs its top level once.
pub(crate) fn load(entry: &str, files: &BTreeMap<String, Arc<str>>) -> Result<Script, Box<Diagnostic>> {
    let (modules, marks) = crate::modules::gather(entry, files)?;
    let code = Arc::new(Code { entry: entry.to_owned(), modules, marks });
    let stuck = Stuck::default();
    let declared = run::load(&code, &Limits::default(), &stuck)?;
    let (facts, hook) = check(&code, declared)?;
    Ok(Script { facts, code, hook, stuck })
}

/// Checks the declarations of a script.
fn check(code: &Code, declared: Declared) -> Result<(Facts, bool), Box<Diagnostic>> {
    let at = |name: &str| code.marks.export(name).or_else(|| Some(code.start()));
    let fail = |name: &str, message: String, hint: &str| {
        Err(Box::new(Diagnostic::error(message, at(name)).with_hint(hint)))
    };
    let gvk = |name: &str, text: &str| -> Result<Gvk, Box<Diagnostic>> {
        kinds::parse(text).ok_or_else(|| {
            Box::new(
                Diagnostic::error(format!("{name}: \"{text}\" is not a kind"), at(name))
                    .with_hint("write group, version and kind, such as \"v1/Pod\" or \"apps/v1/Deployment\""),
            )
        })
    };
    if declared.functions.iter().any(|name| name == "customize") {
        let message = "customize is not called here".to_owned();
        return fail(
            "customize",
            message,
            "read other objects with get() and list(); they are watched from then on",
        );
    }
    let has = |name: &str| declared.functions.iter().any(|found| found == name);
    let chart: Vec<ChartFunction> =
        ChartFunction::ALL.into_iter().filter(|function| has(function.name())).collect();
    let beside = !chart.is_empty() || !declared.watches.is_empty();
    let hook = match (has("reconcile"), has("sync")) {
        (false, false) if beside && has("finalize") => {
            let message = "finalize is not called for a kind with a chart".to_owned();
            return fail("finalize", message, "use hooks of the chart (helm.sh/hook: pre-delete)");
        }
        (false, false) if beside => {
            let kind = declared.kind.as_deref().map(|text| gvk("kind", text)).transpose()?;
            let watches = declared.watches.iter().map(|text| gvk("watches", text));
            let watches = watches.collect::<Result<Vec<_>, _>>()?;
            let facts = Facts { kind, asks: declared.allow, chart, watches, ..Facts::default() };
            return Ok((facts, false));
        }
        (true, false) => false,
        (false, true) => true,
        (true, true) => {
            let message = "both reconcile and sync are exported".to_owned();
            return fail("sync", message, "keep one of them");
        }
        (false, false) => {
            let message = format!("{} exports no function reconcile", code.entry);
            return fail(
                "reconcile",
                message,
                "write `export function reconcile(self, ctx) { … }`, or, beside a chart, one of values, before, after, \
                 paused, render, onEvent, namespaces, serviceAccountName",
            );
        }
    };
    let kind = declared.kind.as_deref().map(|text| gvk("kind", text)).transpose()?;
    let owns = declared.owns.iter().map(|text| gvk("owns", text)).collect::<Result<Vec<_>, _>>()?;
    let facts = Facts { kind, owns, finalizes: has("finalize"), asks: declared.allow, ..Facts::default() };
    Ok((facts, hook))
}

impl Program for Script {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn reconcile(
        &self,
        observed: &Observed,
        host: &dyn Host,
        limits: &Limits,
    ) -> Result<Desired, Box<Diagnostic>> {
        let function = match (observed.finalizing, self.hook) {
            (true, _) if !self.facts.finalizes => {
                return Ok(Desired { finalized: true, ..Desired::default() });
            }
            (true, _) => "finalize",
            (false, true) => "sync",
            (false, false) => "reconcile",
        };
        let job = Job {
            code: Arc::clone(&self.code),
            function,
            observed: observed.clone(),
            owns: self.facts.owns.clone(),
            question: None,
        };
        run::reconcile(job, host, limits, &self.stuck)
    }

    fn ask(
        &self,
        question: &ChartQuestion,
        observed: &Observed,
        host: &dyn Host,
        limits: &Limits,
    ) -> Result<ChartAnswer, Box<Diagnostic>> {
        let function = match question.call {
            ChartCall::Function(function) => function.name(),
            ChartCall::Map(_) => "watches",
        };
        let job = Job {
            code: Arc::clone(&self.code),
            function,
            observed: observed.clone(),
            owns: Vec::new(),
            question: Some(question.clone()),
        };
        run::ask(job, host, limits, &self.stuck)
    }
}
