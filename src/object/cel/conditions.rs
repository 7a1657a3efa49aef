//! `matchConditions` of webhooks: expressions about a request, its object and the one before, all of which have to be
//! true. The texts of what is wrong with them are a server's.

use super::ast::Expr;
use super::authorizer::{AUTHORIZER, Asked, Authorizer, Check};
use super::eval::Eval;
use super::kind::{Kind, Object};
use super::library::Library;
use super::program::checked;
use super::value::{Key, Stop, Val};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What all conditions of one webhook may cost together.
const TOTAL: u64 = 2_500_000;

/// Conditions that have to hold together.
#[derive(Debug, Default)]
pub struct Conditions {
    list: Vec<(String, Expr)>,
}

fn object(name: &str, fields: &[(&str, Kind)]) -> Kind {
    let fields = fields.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
    Kind::Object(Arc::new(Object { name: format!("kubernetes.{name}"), fields }))
}

/// What a condition can name.
fn scope() -> Vec<(String, Kind)> {
    let text = || Kind::Text;
    let kind = object("GroupVersionKind", &[("group", text()), ("version", text()), ("kind", text())]);
    let resource =
        object("GroupVersionResource", &[("group", text()), ("version", text()), ("resource", text())]);
    let extra = Kind::map(Kind::Text, Kind::list(Kind::Text));
    let user = object(
        "UserInfo",
        &[("username", text()), ("uid", text()), ("groups", Kind::list(Kind::Text)), ("extra", extra)],
    );
    let request = object(
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
    );
    let variables = [
        ("object", Kind::Dyn),
        ("oldObject", Kind::Dyn),
        ("request", request),
        ("authorizer", Kind::Opaque(AUTHORIZER)),
    ];
    variables.into_iter().map(|(name, kind)| (name.to_owned(), kind)).collect()
}

/// Compiles one condition.
fn compile(text: &str) -> Result<Expr, String> {
    let text = text.trim();
    let (expr, kind) = checked(text, scope()).map_err(|wrong| wrong.message)?;
    if kind == Kind::Bool { Ok(expr) } else { Err(format!("must evaluate to bool but got {kind}")) }
}

/// What is wrong with a condition, in a server's words.
///
/// # Errors
/// It does not compile, or it is no truth value.
pub fn check_condition(text: &str) -> Result<(), String> {
    compile(text).map(drop)
}

impl Conditions {
    /// Compiles conditions.
    ///
    /// # Errors
    /// The first that does not compile.
    pub fn compile<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Conditions, String> {
        let list = texts.map(|text| Ok((text.trim().to_owned(), compile(text)?)));
        Ok(Conditions { list: list.collect::<Result<_, String>>()? })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether all are true of a request; `request` is an AdmissionRequest.
    ///
    /// # Errors
    /// None is false, but some cannot be evaluated.
    pub fn hold(
        &self,
        object: Option<&Value>,
        old: Option<&Value>,
        request: &Value,
        authorizer: &dyn Authorizer,
    ) -> Result<bool, String> {
        let value = |object: Option<&Value>| object.map_or(Val::Null, plain);
        let scope = vec![
            ("object", value(object)),
            ("oldObject", value(old)),
            ("request", plain(request)),
            ("authorizer", Val::Check(Arc::new(Check::new(AUTHORIZER, Asked::default())))),
        ];
        let library = Library::default();
        let mut budget = TOTAL;
        let mut failures = Vec::new();
        for (text, expr) in &self.list {
            let mut eval = Eval {
                scope: scope.clone(),
                budget: &mut budget,
                library: &library,
                authorizer: Some(authorizer),
            };
            let why = match eval.eval(expr) {
                Ok(Val::Bool(false)) => return Ok(false),
                Ok(Val::Bool(true)) => continue,
                Ok(other) => {
                    format!("expression '{text}' resulted in error: no boolean but {}", other.type_name())
                }
                Err(Stop::Failed(why)) => format!("expression '{text}' resulted in error: {why}"),
                Err(Stop::Budget) => {
                    return Err(
                        "validation failed due to running out of cost budget, no further validation \
                                rules will be run"
                            .to_owned(),
                    );
                }
            };
            failures.push(why);
        }
        match failures.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            many => Err(format!("[{}]", many.join(", "))),
        }
    }
}

/// JSON without a schema as CEL sees it.
fn plain(json: &Value) -> Val {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::Verdict;
    use serde_json::json;

    /// Everybody may read ConfigMaps in `default`.
    struct Reader;

    impl Authorizer for Reader {
        fn decide(&self, wanted: &Asked) -> Verdict {
            let allowed =
                wanted.verb == "get" && wanted.resource == "configmaps" && wanted.namespace == "default";
            Verdict { allowed, reason: if allowed { "may read" } else { "" }.to_owned() }
        }

        fn request_resource(&self) -> Asked {
            Asked { resource: "configmaps".to_owned(), namespace: "default".to_owned(), ..Asked::default() }
        }
    }

    fn hold(texts: &[&str]) -> Result<bool, String> {
        let conditions = Conditions::compile(texts.iter().copied()).unwrap();
        let object = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "data": {"n": "1"}});
        let request = json!({"operation": "CREATE", "dryRun": false, "resource": {"resource": "configmaps"},
            "userInfo": {"username": "jane", "groups": ["dev"]}});
        conditions.hold(Some(&object), None, &request, &Reader)
    }

    #[test]
    fn all_conditions_have_to_hold() {
        for truth in [
            "object.metadata.name == 'a'",
            "oldObject == null && request.operation == 'CREATE' && !request.dryRun",
            "'dev' in request.userInfo.groups",
            "has(object.metadata.labels) && object.metadata.labels.exists(k, k == 'x')",
            "authorizer.group('').resource('configmaps').namespace('default').check('get').allowed()",
            "authorizer.requestResource.check('get').reason() == 'may read'",
            "!authorizer.serviceAccount('a', 'b').path('/metrics').check('get').allowed()",
        ] {
            assert_eq!(hold(&[truth]), Ok(true), "{truth}");
            assert_eq!(hold(&[truth, "false"]), Ok(false), "{truth}");
        }
        assert_eq!(hold(&[]), Ok(true));
    }

    #[test]
    fn an_error_counts_unless_another_is_false() {
        let missing = "expression 'object.data.zzz == 'a'' resulted in error: no such key: zzz";
        assert_eq!(hold(&["object.data.zzz == 'a'"]), Err(missing.to_owned()));
        assert_eq!(hold(&["object.data.zzz == 'a'", "false"]), Ok(false));
        let both = hold(&["object.data.zzz == 'a'", "object.data.zzz == 'a'"]);
        assert_eq!(both, Err(format!("[{missing}, {missing}]")));
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        for (text, why) in [
            ("object.metadata.name", "must evaluate to bool but got dyn"),
            (
                "request.frob == 'a'",
                "compilation failed: ERROR: <input>:1:8: undefined field 'frob'\n | request.frob == 'a'\n | .......^",
            ),
            (
                "objekt.metadata.name == 'a'",
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'objekt' (in container '')\n | \
                 objekt.metadata.name == 'a'\n | ^",
            ),
        ] {
            assert_eq!(check_condition(text), Err(why.to_owned()), "{text}");
        }
    }
}
