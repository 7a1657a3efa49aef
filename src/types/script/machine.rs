//! One engine for one call: surroundings, modules, the call itself, and the jobs until its promise is
//! settled. Never reused, so that no call sees what another left behind.

use super::answer;
use super::bridge::{self, Bridge};
use super::code::Code;
use super::modules::{HOST, TYPES};
use super::run::{Answers, Job, NATIVE_STACK, Watch};
use super::trace::{Failure, caught};
use crate::contract::{ChartAnswer, ChartCall, ChartFunction, ChartQuestion, Desired, Limits, ReleaseState};
use crate::readiness;
use opdev_object::meta::{self, Gvk};
use opdev_types::diagnostic::Diagnostic;
use rquickjs::context::intrinsic;
use rquickjs::function::Args;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Module, Object, Persistent, Promise, Runtime, Value};
use std::rc::Rc;
use std::sync::Arc;

/// Memory that the surroundings of a script take, beside its own.
const SURROUNDINGS: usize = 2 << 20;

/// The built-in objects of a script: no clock of high resolution, no weak references that would show the
/// collector.
type Intrinsics = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

/// The declarations in the exports of a script.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) kind: Option<String>,
    pub(super) owns: Vec<String>,
    pub(super) allow: Vec<String>,
    /// The kinds of `watches`, of a script beside a chart.
    pub(super) watches: Vec<String>,
    /// The exported functions that mean something.
    pub(super) functions: Vec<String>,
}

/// An engine that will make one call.
pub(super) struct Machine {
    runtime: Runtime,
    context: Context,
    failure: Failure,
}

type Step<T> = Result<T, Box<Diagnostic>>;

impl Machine {
    pub(super) fn new(code: Arc<Code>, limits: &Limits, watch: Watch) -> Step<Machine> {
        let failure = Failure { code, limits: *limits, stop: Arc::clone(&watch.stop), function: None };
        let no_room = |error: rquickjs::Error| failure.engine(&error.to_string());
        let runtime = Runtime::new().map_err(no_room)?;
        runtime.set_memory_limit(limits.memory.saturating_add(SURROUNDINGS));
        runtime.set_max_stack_size(limits.stack);
        runtime.set_gc_threshold(4 << 20);
        runtime.set_interrupt_handler(Some(Box::new(move || watch.interrupts())));
        let context = Context::custom::<Intrinsics>(&runtime).map_err(no_room)?;
        Ok(Machine { runtime, context, failure })
    }

    /// Reads the exports.
    pub(super) fn declared(mut self, answers: &Rc<Answers>) -> Step<Declared> {
        let bridge = Bridge::new(Rc::clone(answers));
        let start = Start { now: 0, now_text: String::new(), seed: 0 };
        let (hooks, exports) = self.start(&bridge, &start)?;
        self.failure.function = None;
        self.context.with(|ctx| {
            let facts: rquickjs::Result<Declared> = (|| {
                let (hooks, exports) = (hooks.restore(&ctx)?, exports.restore(&ctx)?);
                let facts: Function<'_> = hooks.get("facts")?;
                let facts: Object<'_> = facts.call((exports,))?;
                let mut declared = Declared::default();
                let own = ["reconcile", "sync", "finalize", "customize"];
                for name in own.into_iter().chain(ChartFunction::ALL.map(ChartFunction::name)) {
                    if facts.get::<_, String>(name)? == "function" {
                        declared.functions.push(name.to_owned());
                    }
                }
                declared.kind = text(&ctx, &facts, "kind")?;
                declared.owns = texts(&ctx, &facts, "owns")?;
                declared.allow = texts(&ctx, &facts, "allow")?;
                declared.watches = texts(&ctx, &facts, "watches")?;
                Ok(declared)
            })();
            facts.catch(&ctx).map_err(|error| self.failure.diagnostic(&caught(error)))
        })
    }

    /// Calls the function of the job.
    pub(super) fn call(mut self, job: &Job, answers: &Rc<Answers>) -> Step<Desired> {
        let Called { bridge, hooks, answer } = self.called(job, answers)?;
        self.context.with(|ctx| {
            let (hooks, answer) = self.restored(&ctx, hooks, answer)?;
            let mut desired = answer::desired(&ctx, &hooks, &answer, &self.failure)?;
            desired.reads = bridge.take_reads();
            Ok(desired)
        })
    }

    /// Asks the question of the job.
    pub(super) fn ask(mut self, job: &Job, answers: &Rc<Answers>) -> Step<ChartAnswer> {
        let Called { bridge, hooks, answer } = self.called(job, answers)?;
        let call = job.question.as_ref().map_or(ChartCall::Map(0), |question| question.call);
        self.context.with(|ctx| {
            let (hooks, answer) = self.restored(&ctx, hooks, answer)?;
            let mut said = answer::of_chart(&ctx, &hooks, &answer, &self.failure, call)?;
            said.desired.reads = bridge.take_reads();
            Ok(said)
        })
    }

    fn restored<'js>(
        &self,
        ctx: &Ctx<'js>,
        hooks: Persistent<Object<'static>>,
        answer: Persistent<Value<'static>>,
    ) -> Step<(Object<'js>, Value<'js>)> {
        let restored = hooks.restore(ctx).and_then(|hooks| Ok((hooks, answer.restore(ctx)?)));
        restored.catch(ctx).map_err(|error| self.failure.diagnostic(&caught(error)))
    }

    /// Calls the function and waits for its promise.
    fn called(&mut self, job: &Job, answers: &Rc<Answers>) -> Step<Called> {
        let bridge = Bridge::new(Rc::clone(answers));
        let now = job.observed.now.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_millisecond);
        let start = Start { now, now_text: job.observed.now.clone(), seed: job.observed.seed };
        let (hooks, exports) = self.start(&bridge, &start)?;
        self.failure.function = Some(job.function);
        let answer = self.context.with(|ctx| {
            let called = (|| {
                let hooks = hooks.clone().restore(&ctx)?;
                let exports = exports.restore(&ctx)?;
                hooks.set("parent", bridge::text_of(&job.observed.parent))?;
                hooks.set("finalizing", job.observed.finalizing)?;
                let by_kind = Rc::new(children(job));
                let lists = Rc::clone(&by_kind);
                hooks.set(
                    "children",
                    Function::new(ctx.clone(), move |at: usize| {
                        lists.get(at).map(|list| bridge::list_text(list)).unwrap_or_default()
                    })?,
                )?;
                hooks.set(
                    "readyChild",
                    Function::new(ctx.clone(), move |at: usize, index: usize| {
                        by_kind
                            .get(at)
                            .and_then(|list| list.get(index))
                            .is_some_and(|child| readiness::ready(child))
                    })?,
                )?;
                let releases = job.observed.releases.clone();
                hooks.set("releases", Function::new(ctx.clone(), move || releases_text(&releases))?)?;
                if let Some(question) = &job.question {
                    let answer = ask(&ctx, &hooks, (exports, job.function), question)?;
                    return Ok(Persistent::save(&ctx, answer));
                }
                let owns: Vec<Vec<String>> =
                    job.owns.iter().map(|gvk| vec![gvk.api_version(), gvk.kind.clone()]).collect();
                let call: Function<'_> = hooks.get("call")?;
                let mut args = Args::new(ctx.clone(), 3);
                args.push_arg(exports)?;
                args.push_arg(job.function)?;
                args.push_arg(owns)?;
                let answer: Value<'_> = call.call_arg(args)?;
                Ok(Persistent::save(&ctx, answer))
            })();
            CatchResultExt::catch(called, &ctx).map_err(|error| self.failure.diagnostic(&caught(error)))
        })?;
        let answer = self.settle(&answer)?;
        // Reading a deep answer takes native stack, of which there is more.
        self.runtime.set_max_stack_size(self.failure.limits.stack.saturating_add(NATIVE_STACK / 2));
        Ok(Called { bridge, hooks, answer })
    }

    /// Surroundings and modules: the host's hooks and the exports of the entry.
    #[allow(clippy::type_complexity, reason = "two handles of the engine")]
    fn start(
        &mut self,
        bridge: &Rc<Bridge>,
        start: &Start,
    ) -> Step<(Persistent<Object<'static>>, Persistent<Object<'static>>)> {
        let (hooks, entry, promise) = self.context.with(|ctx| {
            let surroundings = (|| {
                let hooks = Object::new(ctx.clone())?;
                bridge::install(&ctx, &hooks, bridge)?;
                hooks.set("now", start.now as f64)?;
                hooks.set("nowText", start.now_text.as_str())?;
                hooks.set("seed", rquickjs::BigInt::from_u64(ctx.clone(), start.seed)?)?;
                ctx.globals().set("__opdev", hooks.clone())?;
                let (_, promise) = Module::declare(ctx.clone(), HOST, include_str!("opdev.js"))?.eval()?;
                promise.finish::<()>()?;
                Module::declare(ctx.clone(), TYPES, "")?;
                Ok(hooks)
            })();
            let hooks = CatchResultExt::catch(surroundings, &ctx)
                .map_err(|error| self.failure.diagnostic(&caught(error)))?;
            let mut entry = None;
            for module in &self.failure.code.modules {
                let declared = Module::declare(ctx.clone(), module.name.as_str(), module.text.as_str());
                match (declared.catch(&ctx), &module.broken) {
                    (Ok(_), Some(broken)) => return Err(broken.clone()),
                    (Ok(declared), None) => entry = Some(declared),
                    (Err(error), _) => return Err(self.failure.diagnostic(&caught(error))),
                }
            }
            let Some(entry) = entry else { return Err(self.failure.engine("no module")) };
            let evaluated = entry.eval().and_then(|(module, promise)| Ok((module.namespace()?, promise)));
            let (exports, promise) =
                evaluated.catch(&ctx).map_err(|error| self.failure.diagnostic(&caught(error)))?;
            Ok((
                Persistent::save(&ctx, hooks),
                Persistent::save(&ctx, exports),
                Persistent::save(&ctx, promise.into_value()),
            ))
        })?;
        self.settle(&promise)?;
        Ok((hooks, entry))
    }

    /// Runs jobs until a promise is settled; anything else is its own result.
    fn settle(&self, value: &Persistent<Value<'static>>) -> Step<Persistent<Value<'static>>> {
        loop {
            enum State {
                Done(Step<Persistent<Value<'static>>>),
                Pending,
            }
            let state = self.context.with(|ctx| {
                let value = match value.clone().restore(&ctx) {
                    Ok(value) => value,
                    Err(error) => return State::Done(Err(self.failure.engine(&error.to_string()))),
                };
                let Some(promise) = value.as_promise().cloned() else {
                    return State::Done(Ok(Persistent::save(&ctx, value)));
                };
                self.settled(&ctx, &promise).map_or(State::Pending, State::Done)
            });
            if let State::Done(done) = state {
                return done;
            }
            match self.runtime.execute_pending_job() {
                Ok(true) => {}
                Ok(false) => return Err(self.failure.never_settled()),
                Err(thrown) => {
                    return Err(thrown.0.with(|ctx| {
                        let error = rquickjs::CaughtError::from_error(&ctx, rquickjs::Error::Exception);
                        self.failure.diagnostic(&caught(error))
                    }));
                }
            }
        }
    }

    fn settled<'js>(
        &self,
        ctx: &Ctx<'js>,
        promise: &Promise<'js>,
    ) -> Option<Step<Persistent<Value<'static>>>> {
        let result = promise.result::<Value<'js>>()?;
        Some(
            result
                .catch(ctx)
                .map(|value| Persistent::save(ctx, value))
                .map_err(|error| self.failure.diagnostic(&caught(error))),
        )
    }
}

/// A call that has been made.
struct Called {
    bridge: Rc<Bridge>,
    hooks: Persistent<Object<'static>>,
    answer: Persistent<Value<'static>>,
}

/// Calls a function of a script beside a chart.
fn ask<'js>(
    ctx: &Ctx<'js>,
    hooks: &Object<'js>,
    (exports, function): (Object<'js>, &str),
    question: &ChartQuestion,
) -> rquickjs::Result<Value<'js>> {
    let at = match question.call {
        ChartCall::Function(_) => 0,
        ChartCall::Map(at) => at,
    };
    // Nothing stands for the custom resource.
    let given: Vec<String> = question
        .arguments
        .iter()
        .map(|argument| argument.as_ref().map(bridge::text_of).unwrap_or_default())
        .collect();
    let chart: Function<'js> = hooks.get("chart")?;
    let mut args = Args::new(ctx.clone(), 4);
    args.push_arg(exports)?;
    args.push_arg(function)?;
    args.push_arg(at)?;
    args.push_arg(given)?;
    chart.call_arg(args)
}

/// The inputs of a call.
struct Start {
    /// Milliseconds since 1970.
    now: i64,
    now_text: String,
    seed: u64,
}

/// The observed children, kind by kind in the order of `owns`.
fn children(job: &Job) -> Vec<Vec<Arc<serde_json::Value>>> {
    let mut lists = vec![Vec::new(); job.owns.len()];
    for child in &job.observed.children {
        let gvk = Gvk::of(child);
        if meta::name(child).is_some()
            && let Some(at) = job.owns.iter().position(|owned| Some(owned) == gvk.as_ref())
        {
            lists[at].push(Arc::clone(child));
        }
    }
    lists
}

fn releases_text(releases: &[ReleaseState]) -> String {
    let states: Vec<serde_json::Value> = releases.iter().map(ReleaseState::to_json).collect();
    bridge::text_of(&serde_json::Value::Array(states))
}

fn text<'js>(ctx: &Ctx<'js>, facts: &Object<'js>, name: &str) -> rquickjs::Result<Option<String>> {
    let value: Value<'js> = facts.get(name)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let text = value
        .as_string()
        .ok_or_else(|| rquickjs::Exception::throw_type(ctx, &format!("`{name}` must be a text")))?;
    text.to_string().map(Some)
}

fn texts<'js>(ctx: &Ctx<'js>, facts: &Object<'js>, name: &str) -> rquickjs::Result<Vec<String>> {
    let value: Value<'js> = facts.get(name)?;
    if value.is_undefined() {
        return Ok(Vec::new());
    }
    let wrong = || rquickjs::Exception::throw_type(ctx, &format!("`{name}` must be a list of texts"));
    let list = value.as_array().ok_or_else(wrong)?;
    list.iter::<Value<'js>>().map(|item| item?.as_string().ok_or_else(wrong)?.to_string()).collect()
}
