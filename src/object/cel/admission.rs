//! Expressions of admission: of webhooks' conditions and of policies. What they can name, what they may come
//! to, and their evaluation within the budgets of a real server. The texts of what is wrong with them are a
//! server's.

use super::ast::Expr;
use super::authorizer::{AUTHORIZER, Asked, Authorizer, Check};
use super::error::{EvaluationError, ExpressionError, Spent, TextFault, lines};
use super::eval::Eval;
use super::kind::{Bound, Kind, Object};
use super::lazy::Lazy;
use super::library::Library;
use super::meter::Meter;
use super::program::{checked, constant_fault};
use super::runtime::Runtime;
use super::shape::shape;
use super::value::{Key, Stop, Val};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The largest cost of all expressions of a policy together, for one binding and one parameter.
pub const BUDGET: u64 = 10_000_000;
/// The largest cost of all conditions of a webhook or a policy together.
pub const CONDITIONS_BUDGET: u64 = 2_500_000;

/// The type that an expression must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A truth value.
    Truth,
    /// A text.
    Text,
    /// A text or null.
    TextOrNull,
    /// An object that is built: what is to be applied.
    Object,
    /// The operations of a JSON patch.
    Operations,
}

impl Wanted {
    /// Why a kind is not what is wanted.
    fn refuses(self, kind: &Kind) -> Option<ExpressionError> {
        let fits = match self {
            Wanted::Truth => *kind == Kind::Bool,
            Wanted::Text => *kind == Kind::Text,
            Wanted::TextOrNull => matches!(kind, Kind::Text | Kind::Null),
            Wanted::Object => matches!(kind, Kind::Object(object) if object.name == "Object"),
            Wanted::Operations => match kind {
                Kind::List(item) => matches!(&**item, Kind::Object(object) if object.name == "JSONPatch"),
                _ => false,
            },
        };
        let wanted = match self {
            _ if fits => return None,
            Wanted::Truth => "bool",
            Wanted::Text => "string",
            Wanted::TextOrNull => "one of [string null_type]",
            Wanted::Object => "Object",
            Wanted::Operations => "list(JSONPatch)",
        };
        Some(ExpressionError::Type { wanted, found: Bound::default().apply(kind).to_string() })
    }
}

/// A compiled expression, or why it is none.
#[derive(Debug)]
pub struct Expression {
    pub(super) text: String,
    pub(super) made: Result<Expr, ExpressionError>,
}

impl Expression {
    /// Why it is none.
    pub fn fault(&self) -> Option<&ExpressionError> {
        self.made.as_ref().err()
    }
}

/// Compiles the expressions of one webhook or policy.
#[derive(Debug, Default)]
pub struct Compiler {
    params: bool,
    /// The types of `object` and `oldObject`, and of `params`; any type where it is not known.
    types: [Option<Kind>; 2],
    /// The variables that were compiled; `None` where there are none to be named.
    variables: Option<Vec<(String, Kind)>>,
}

impl Compiler {
    /// A compiler for expressions that can name `params`, or cannot.
    pub fn new(params: bool) -> Self {
        Compiler { params, ..Compiler::default() }
    }

    /// An environment for expressions about objects, and parameters, that have these schemas (with no
    /// references in them). Types with different names are never equal.
    #[must_use]
    pub fn typed(self, object: (&str, &Value), params: Option<(&str, &Value)>) -> Self {
        let of = |(name, schema): (&str, &Value)| shape(schema, name, false, 0).kind;
        Compiler { types: [of(object), params.and_then(of)], ..self }
    }

    /// An environment for expressions that can name `variables`, if there are none.
    #[must_use]
    pub fn composed(self) -> Self {
        Compiler { variables: Some(Vec::new()), ..self }
    }

    /// Compiles a variable; what is compiled from now on can name it.
    pub fn variable(&mut self, name: &str, text: &str) -> Expression {
        let known = self.variables.get_or_insert_default();
        known.retain(|(other, _)| other != name);
        let (made, kind) = match self.checked(text, true, false) {
            Ok((expr, kind)) => match instantiated(expr) {
                Ok(expr) => (Ok(expr), kind),
                Err(why) => (Err(why), Kind::Dyn),
            },
            Err(faults) => (Err(ExpressionError::Text(faults)), Kind::Dyn),
        };
        self.variables.get_or_insert_default().push((name.to_owned(), stored(kind)));
        Expression { text: text.to_owned(), made }
    }

    /// Compiles an expression, which can ask `authorizer` or cannot.
    pub fn expression(&self, text: &str, wanted: Wanted, authorizer: bool) -> Expression {
        let builds = matches!(wanted, Wanted::Object | Wanted::Operations);
        let made = match self.checked(text, authorizer, builds) {
            Ok((expr, kind)) => wanted.refuses(&kind).map_or_else(|| instantiated(expr), Err),
            Err(faults) => Err(ExpressionError::Text(faults)),
        };
        Expression { text: text.to_owned(), made }
    }

    /// The type errors of an expression of any type, in a server's words.
    pub fn misuse(&self, text: &str) -> Option<String> {
        self.checked(text, true, false).err().map(|faults| lines(&faults))
    }

    fn checked(&self, text: &str, authorizer: bool, builds: bool) -> Result<(Expr, Kind), Vec<TextFault>> {
        checked(text, self.scope(authorizer), builds).map_err(|wrong| wrong.faults)
    }

    /// The variables in scope.
    fn scope(&self, authorizer: bool) -> Vec<(String, Kind)> {
        let [object, params] = self.types.clone().map(|kind| kind.unwrap_or(Kind::Dyn));
        let mut scope = vec![
            ("object", object.clone()),
            ("oldObject", object),
            ("request", request_kind()),
            ("namespaceObject", namespace_kind()),
        ];
        if self.params {
            scope.push(("params", params));
        }
        if authorizer {
            scope.push(("authorizer", Kind::Opaque(AUTHORIZER)));
        }
        if let Some(variables) = &self.variables {
            let fields = variables.iter().cloned().collect();
            scope.push((
                "variables",
                Kind::Object(Arc::new(Object { name: "kubernetes.variables".to_owned(), fields })),
            ));
        }
        scope.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
    }
}

/// An expression of which a program can be made: what is constant in it has a value.
fn instantiated(expr: Expr) -> Result<Expr, ExpressionError> {
    match constant_fault(&expr) {
        Some(why) => Err(ExpressionError::Program { why }),
        None => Ok(expr),
    }
}

/// The kind under which a variable is remembered: objects and what libraries bring are not told apart.
fn stored(kind: Kind) -> Kind {
    match kind {
        Kind::List(item) => Kind::list(stored(*item)),
        Kind::Map(key, value) => Kind::map(stored(*key), stored(*value)),
        Kind::Null
        | Kind::Bool
        | Kind::Int
        | Kind::Uint
        | Kind::Double
        | Kind::Text
        | Kind::Bytes
        | Kind::Duration
        | Kind::Timestamp => kind,
        Kind::Dyn
        | Kind::Object(_)
        | Kind::Optional(_)
        | Kind::Type(_)
        | Kind::Opaque(_)
        | Kind::Param(_)
        | Kind::Error => Kind::Dyn,
    }
}

fn object(name: &str, fields: &[(&str, Kind)]) -> Kind {
    let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
    Kind::Object(Arc::new(Object { name: format!("kubernetes.{name}"), fields }))
}

fn request_kind() -> Kind {
    let text = || Kind::Text;
    let kind = object("GroupVersionKind", &[("group", text()), ("version", text()), ("kind", text())]);
    let resource =
        object("GroupVersionResource", &[("group", text()), ("version", text()), ("resource", text())]);
    let extra = Kind::map(Kind::Text, Kind::list(Kind::Text));
    let user = object(
        "UserInfo",
        &[("username", text()), ("uid", text()), ("groups", Kind::list(Kind::Text)), ("extra", extra)],
    );
    object(
        "AdmissionRequest",
        &[
            ("kind", kind.clone()),
            ("resource", resource.clone()),
            ("subResource", text()),
            ("requestKind", kind),
            ("requestResource", resource),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", Kind::Bool),
            ("options", Kind::Dyn),
        ],
    )
}

/// The declared type of a namespace. It lacks some of the fields, and has the uid under a name that no
/// namespace has.
fn namespace_kind() -> Kind {
    let (text, texts) = (|| Kind::Text, || Kind::list(Kind::Text));
    let map = || Kind::map(Kind::Text, Kind::Text);
    let condition = object(
        "NamespaceCondition",
        &[
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", Kind::Timestamp),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let metadata = object(
        "NamespaceMetadata",
        &[
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", map()),
            ("annotations", map()),
            ("UID", text()),
            ("creationTimestamp", Kind::Timestamp),
            ("deletionGracePeriodSeconds", Kind::Int),
            ("deletionTimestamp", Kind::Timestamp),
            ("generation", Kind::Int),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let status = object("NamespaceStatus", &[("conditions", Kind::list(condition)), ("phase", text())]);
    let spec = object("NamespaceSpec", &[("finalizers", texts())]);
    object("Namespace", &[("metadata", metadata), ("spec", spec), ("status", status)])
}

/// The variables of a request that expressions read.
#[derive(Clone, Debug)]
pub struct Given {
    object: Val,
    old: Val,
    request: Val,
    params: Val,
    namespace: Val,
}

impl Given {
    /// An object, the one before and the AdmissionRequest without the two.
    pub fn new(object: Option<&Value>, old: Option<&Value>, request: &Value) -> Self {
        let value = |object: Option<&Value>| object.map_or(Val::Null, plain);
        let (object, old, request) = (value(object), value(old), plain(request));
        Given { object, old, request, params: Val::Null, namespace: Val::Null }
    }

    /// This input with the parameters of a policy.
    #[must_use]
    pub fn with_params(&self, params: Option<&Value>) -> Self {
        Given { params: params.map_or(Val::Null, plain), ..self.clone() }
    }

    /// This input with the namespace of the object.
    #[must_use]
    pub fn with_namespace(&self, namespace: Option<&Value>) -> Self {
        Given { namespace: namespace.map_or(Val::Null, plain), ..self.clone() }
    }
}

/// The value of an expression.
#[derive(Clone, Debug)]
pub struct Outcome(pub(super) Val);

impl Outcome {
    /// Returns true if it is `true`.
    pub fn holds(&self) -> bool {
        matches!(self.0, Val::Bool(true))
    }

    /// Returns true if it is `false`.
    pub fn fails(&self) -> bool {
        matches!(self.0, Val::Bool(false))
    }

    /// The text, where it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.0 {
            Val::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Expressions that are evaluated one after another within one budget, and the variables they share.
pub struct Evaluation<'a> {
    lazy: Lazy<'a>,
    budget: u64,
}

impl std::fmt::Debug for Evaluation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Evaluation").field("budget", &self.budget).finish_non_exhaustive()
    }
}

impl<'a> Evaluation<'a> {
    /// One on a request, with what the variables are and who answers `authorizer`, where somebody does.
    pub fn new(
        given: &Given,
        variables: &'a [(String, Expression)],
        authorizer: Option<&'a dyn Authorizer>,
        library: &'a Libraries,
        budget: u64,
    ) -> Self {
        let mut scope = vec![
            ("object", given.object.clone()),
            ("oldObject", given.old.clone()),
            ("request", given.request.clone()),
            ("params", given.params.clone()),
            ("namespaceObject", given.namespace.clone()),
        ];
        if authorizer.is_some() {
            scope.push(("authorizer", Val::Check(Arc::new(Check::new(AUTHORIZER, Asked::default())))));
        }
        Evaluation { lazy: Lazy::new(variables, scope, &library.0, authorizer), budget }
    }

    /// The rest of the budget.
    pub fn left(&self) -> u64 {
        self.budget
    }

    /// Evaluates one expression.
    ///
    /// # Errors
    /// The budget is used up.
    pub fn run(&mut self, expression: &Expression) -> Result<Result<Outcome, EvaluationError>, Spent> {
        let expr = match &expression.made {
            Ok(expr) => expr,
            Err(why) => return Ok(Err(EvaluationError::Expression(why.clone()))),
        };
        let mut meter = Meter::new(self.lazy.steps.get());
        let before = meter.steps;
        let result = {
            let lazy = &self.lazy;
            let mut eval = Eval {
                scope: lazy.scope.clone(),
                runtime: Runtime { meter: &mut meter, library: lazy.library, authorizer: lazy.authorizer },
                variables: Some(lazy),
            };
            eval.eval(expr)
        };
        self.lazy.steps.set(self.lazy.steps.get().saturating_sub(before - meter.steps));
        let cost = meter.cost + self.lazy.spent.replace(0);
        if cost > self.budget {
            self.budget = 0;
            return Err(Spent);
        }
        self.budget -= cost;
        let text = || expression.text.clone();
        Ok(match result {
            Ok(value) => Ok(Outcome(value)),
            Err(Stop::Failed(why)) => Err(EvaluationError::Failed { expression: text(), why }),
            Err(Stop::Budget) => Err(EvaluationError::Cancelled { expression: text() }),
        })
    }
}

/// The functions of the libraries, which are expensive to make: one for many evaluations.
#[derive(Default)]
pub struct Libraries(Library);

impl Libraries {
    pub(super) fn library(&self) -> &Library {
        &self.0
    }
}

impl std::fmt::Debug for Libraries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Libraries").finish()
    }
}

/// JSON without a schema as CEL sees it.
pub(super) fn plain(json: &Value) -> Val {
    match json {
        Value::Null => Val::Null,
        Value::Bool(truth) => Val::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Val::Int(whole),
            None => Val::Double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Val::text(text),
        Value::Array(items) => Val::list(items.iter().map(plain).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, json)| (Key::Text(name.as_str().into()), plain(json)));
            Val::Map(Arc::new(entries.collect::<BTreeMap<_, _>>()))
        }
    }
}
