//! `matchConditions` of webhooks: expressions about a request, its object and the one before, all of which
//! have to be true. The texts of what is wrong with them are a server's.

use super::admission::{CONDITIONS_BUDGET, Compiler, Evaluation, Expression, Given, Libraries, Wanted};
use super::authorizer::Authorizer;
use super::error::{ConditionsError, EvaluationError, ExpressionError};
use serde_json::Value;

/// Conditions that must all be true.
#[derive(Debug, Default)]
pub struct Conditions {
    list: Vec<Expression>,
}

/// Checks a condition; `params` is whether it can name them.
///
/// # Errors
/// It does not compile, or it is no truth value.
pub fn check_condition(text: &str, params: bool) -> Result<(), ExpressionError> {
    let expression = Compiler::new(params).expression(text.trim(), Wanted::Truth, true);
    expression.fault().map_or(Ok(()), |why| Err(why.clone()))
}

impl Conditions {
    /// Compiles the conditions of a webhook.
    ///
    /// # Errors
    /// The first that does not compile.
    pub fn compile<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Conditions, ExpressionError> {
        let conditions = Conditions::of(&Compiler::default(), texts);
        match conditions.list.iter().find_map(Expression::fault) {
            Some(why) => Err(why.clone()),
            None => Ok(conditions),
        }
    }

    /// Compiles the conditions of a policy. Those that do not compile fail whenever they are asked.
    pub fn of<'a>(compiler: &Compiler, texts: impl Iterator<Item = &'a str>) -> Conditions {
        let list = texts.map(|text| compiler.expression(text.trim(), Wanted::Truth, true));
        Conditions { list: list.collect() }
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The value of all conditions together; `request` is an AdmissionRequest.
    ///
    /// # Errors
    /// None is false, but some cannot be evaluated.
    pub fn hold(
        &self,
        object: Option<&Value>,
        old: Option<&Value>,
        request: &Value,
        authorizer: &dyn Authorizer,
    ) -> Result<bool, ConditionsError> {
        let (given, libraries) = (Given::new(object, old, request), Libraries::default());
        self.hold_in(Evaluation::new(&given, &[], Some(authorizer), &libraries, CONDITIONS_BUDGET))
    }

    /// Returns true if all are true of what is evaluated.
    ///
    /// # Errors
    /// None is false, but some cannot be evaluated.
    pub fn hold_in(&self, mut evaluation: Evaluation<'_>) -> Result<bool, ConditionsError> {
        let mut outcomes = Vec::new();
        for expression in &self.list {
            outcomes.push(evaluation.run(expression).map_err(ConditionsError::Spent)?);
        }
        if outcomes.iter().flatten().any(super::Outcome::fails) {
            return Ok(false);
        }
        let mut failures: Vec<EvaluationError> = Vec::new();
        for why in outcomes.into_iter().filter_map(Result::err) {
            if !failures.contains(&why) {
                failures.push(why);
            }
        }
        if failures.is_empty() { Ok(true) } else { Err(ConditionsError::Failed(failures)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Asked, Verdict};
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
        conditions.hold(Some(&object), None, &request, &Reader).map_err(|why| why.to_string())
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
        // One error that comes twice is told once.
        assert_eq!(hold(&["object.data.zzz == 'a'", "object.data.zzz == 'a'"]), Err(missing.to_owned()));
        let both = hold(&["object.data.zzz == 'a'", "oldObject.x == 1"]);
        let other = "expression 'oldObject.x == 1' resulted in error: no such key: x";
        assert_eq!(both, Err(format!("[{missing}, {other}]")));
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
            assert_eq!(
                check_condition(text, false).map_err(|why| why.to_string()),
                Err(why.to_owned()),
                "{text}"
            );
        }
    }
}
