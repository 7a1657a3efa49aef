//! Expressions of tests: about objects that a test has given names, with no schema and no request. Their type
//! is known only when they are evaluated; then only `true` passes.

use super::admission::{Libraries, plain};
use super::ast::Expr;
use super::error::ExpressionError;
use super::eval::Eval;
use super::kind::Kind;
use super::meter::{ALL_STEPS, Meter};
use super::program::checked;
use super::runtime::Runtime;
use super::value::{Stop, Val};
use serde_json::Value;

/// A compiled expression about named objects.
#[derive(Clone, Debug)]
pub struct Assert {
    expr: Expr,
}

impl Assert {
    /// Compiles a text in which these names are known.
    ///
    /// # Errors
    /// Why it is no expression: the fault, the line of the text it is in, and a mark below.
    pub fn compile<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Result<Assert, ExpressionError> {
        let scope = names.map(|name| (name.to_owned(), Kind::Dyn)).collect();
        match checked(text, scope, false) {
            Ok((expr, _)) => Ok(Assert { expr }),
            Err(wrong) => Err(ExpressionError::Text(wrong.faults)),
        }
    }

    /// The reason why it is not true of these objects; `None` where it is. No value of an object is part of
    /// the answer.
    pub fn fault(&self, objects: &[(&str, &Value)], library: &Libraries) -> Option<String> {
        let scope = objects.iter().map(|(name, object)| (*name, plain(object))).collect();
        let mut meter = Meter::new(ALL_STEPS);
        let runtime = Runtime { meter: &mut meter, library: library.library(), authorizer: None };
        match (Eval { scope, runtime, variables: None }).eval(&self.expr) {
            Ok(Val::Bool(true)) => None,
            Ok(Val::Bool(false)) => Some("is false".to_owned()),
            Ok(other) => Some(format!("is of type {}, and only true holds", other.type_name())),
            Err(Stop::Failed(why)) => Some(format!("cannot be evaluated: {why}")),
            Err(Stop::Budget) => Some("takes too long".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use serde_json::json;

    fn fault(text: &str) -> Option<String> {
        let web = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "status": {"ready": 2, "ips": ["a", "b"]}});
        let db = json!({"metadata": {"name": "db"}});
        let made = Assert::compile(text, ["web", "db"].into_iter()).unwrap();
        made.fault(&[("web", &web), ("db", &db)], &Libraries::default())
    }

    #[test]
    fn only_true_holds() {
        for holds in [
            "web.status.ready >= 2 && db.metadata.name == 'db'",
            "'b' in web.status.ips && web.status.ips.exists(ip, ip.startsWith('a'))",
            "!has(db.status)",
            "quantity('1Gi').isGreaterThan(quantity('1Mi'))",
        ] {
            assert_eq!(fault(holds), None, "{holds}");
        }
        for (text, why) in [
            ("web.status.ready > 2", "is false"),
            ("web.metadata.name", "is of type string, and only true holds"),
            ("db.status.ready > 0", "cannot be evaluated: no such key: status"),
            ("web.metadata.name > 1", "cannot be evaluated: no such overload"),
        ] {
            assert_eq!(fault(text).as_deref(), Some(why), "{text}");
        }
    }

    #[test]
    fn what_is_no_expression_says_where() {
        let why = |text: &str| Assert::compile(text, ["web"].into_iter()).unwrap_err().to_string();
        expect![[r#"
            compilation failed: ERROR: <input>:1:12: Syntax error: no viable alternative at input '.'
             | web.status.
             | ...........^"#]]
        .assert_eq(&why("web.status."));
        let unknown = why("wbe.status.ready > 1");
        expect![[r#"
            compilation failed: ERROR: <input>:1:1: undeclared reference to 'wbe' (in container '')
             | wbe.status.ready > 1
             | ^"#]]
        .assert_eq(&unknown);
        assert!(why("").contains("ERROR"), "{}", why(""));
    }
}
