//! The expressions of a `TestAssert`, in CEL, about objects that it gives names. They are compiled when the
//! files are read: a wrong one is no failed test but a file that cannot be read.

use super::files::Manifest;
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_cel::{Assert, Libraries};
use opdev_object::meta::Gvk;
use opdev_object::yaml::Node;
use serde_json::{Value, json};
use std::sync::Arc;

/// The expressions of one `TestAssert`.
#[derive(Clone, Debug)]
pub(super) struct Expressions {
    /// Where it stands, for messages about all of it.
    place: String,
    /// The objects they name.
    pub(super) objects: Vec<Named>,
    any: Vec<Expression>,
    all: Vec<Expression>,
}

/// An object and the name that expressions have for it.
#[derive(Clone, Debug)]
pub(super) struct Named {
    reference: String,
    pub(super) wanted: Manifest,
}

#[derive(Clone, Debug)]
struct Expression {
    place: String,
    text: String,
    made: Arc<Assert>,
}

impl Expressions {
    /// Reads those of a `TestAssert`; `None` where it has none.
    ///
    /// # Errors
    /// `file:line` of an object or an expression that is none, and why.
    pub(super) fn read(node: &Node, file: &str) -> Result<Option<Expressions>> {
        let items = |key: &str| node.get(key).map(Node::items).unwrap_or_default();
        let objects = items("resourceRefs").iter().map(|item| Named::read(item, file));
        let objects: Vec<Named> = objects.collect::<Result<_>>()?;
        let read = |key: &str| -> Result<Vec<Expression>> {
            items(key).iter().map(|item| Expression::read(item, file, &objects)).collect()
        };
        let (any, all) = (read("assertAny")?, read("assertAll")?);
        let place = |key: &str| node.entry(key).map(|(key, _)| format!("{file}:{}", key.line));
        // Objects without an expression are asked for by nobody.
        let Some(place) = place("assertAny").or_else(|| place("assertAll")) else { return Ok(None) };
        Ok((!any.is_empty() || !all.is_empty()).then_some(Expressions { place, objects, any, all }))
    }

    /// The expressions that these objects do not meet; empty where they meet all. The objects are in the
    /// order of `self.objects`.
    pub(super) fn wrong(&self, found: &[Value]) -> Vec<String> {
        let library = Libraries::default();
        let named: Vec<(&str, &Value)> =
            self.objects.iter().map(|object| object.reference.as_str()).zip(found).collect();
        let faults = |list: &[Expression]| -> Vec<String> {
            list.iter().filter_map(|one| one.fault(&named, &library)).collect()
        };
        let any = faults(&self.any);
        let mut wrong = Vec::new();
        if !self.any.is_empty() && any.len() == self.any.len() {
            wrong.push(format!("{}: no expression of assertAny holds", self.place));
            wrong.extend(any);
        }
        wrong.extend(faults(&self.all));
        wrong
    }
}

impl Named {
    fn read(node: &Node, file: &str) -> Result<Named> {
        let place = format!("{file}:{}", node.line);
        let text = |key: &str| node.get(key).and_then(Node::to_text).unwrap_or_default();
        for key in ["apiVersion", "kind", "name", "ref"] {
            if text(key).is_empty() {
                bail!(
                    "{place}: an object of resourceRefs has apiVersion, kind, name and ref; this one has no {key}"
                );
            }
        }
        let mut object = json!({"apiVersion": text("apiVersion"), "kind": text("kind"), "metadata": {"name": text("name")}});
        if !text("namespace").is_empty() {
            opdev_object::meta::put(&mut object, &["metadata", "namespace"], text("namespace"));
        }
        Gvk::of(&object).with_context(|| format!("{place}: {} is no apiVersion", text("apiVersion")))?;
        Ok(Named { reference: text("ref"), wanted: Manifest { place, object } })
    }
}

impl Expression {
    fn read(node: &Node, file: &str, objects: &[Named]) -> Result<Expression> {
        let value = node.get("celExpr");
        let place = format!("{file}:{}", value.unwrap_or(node).line);
        let Some(text) = value.and_then(Node::as_str) else {
            bail!("{place}: an item of assertAny and assertAll is `celExpr:` with an expression as text");
        };
        let made = Assert::compile(text, objects.iter().map(|object| object.reference.as_str()));
        let made = made.map_err(|why| {
            let names: Vec<&str> = objects.iter().map(|object| object.reference.as_str()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            anyhow!("{place}: celExpr is no expression: {why}\n  names that resourceRefs gives: {known}")
        })?;
        Ok(Expression { place, text: text.to_owned(), made: Arc::new(made) })
    }

    fn fault(&self, named: &[(&str, &Value)], library: &Libraries) -> Option<String> {
        let why = self.made.fault(named, library)?;
        Some(format!("{}: {} {why}", self.place, self.text.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_object::yaml;

    fn read(text: &str) -> Result<Option<Expressions>> {
        let nodes = yaml::documents(text).unwrap();
        Expressions::read(&nodes[0], "t/00-assert.yaml")
    }

    const REFS: &str = "resourceRefs:\n- {apiVersion: apps/v1, kind: Deployment, name: web, ref: web}\n";

    #[test]
    fn one_of_any_is_enough_and_all_are_all() {
        let text = format!(
            "{REFS}assertAny:\n- celExpr: web.n == 1\n- celExpr: web.n == 2\nassertAll:\n- celExpr: web.n > 0\n- celExpr: >-\n    web.n\n    < 9\n"
        );
        let made = read(&text).unwrap().unwrap();
        let wrong = |n: i64| made.wrong(&[json!({"n": n})]);
        assert!(wrong(1).is_empty() && wrong(2).is_empty());
        assert_eq!(
            wrong(9),
            [
                "t/00-assert.yaml:3: no expression of assertAny holds",
                "t/00-assert.yaml:4: web.n == 1 is false",
                "t/00-assert.yaml:5: web.n == 2 is false",
                "t/00-assert.yaml:8: web.n < 9 is false"
            ]
        );
        assert!(read(REFS).unwrap().is_none() && read("timeout: 3\n").unwrap().is_none());
    }

    #[test]
    fn what_is_wrong_in_the_file_has_its_line() {
        let why = |text: &str| format!("{:#}", read(text).unwrap_err());
        let unknown = why(&format!("{REFS}assertAll:\n- celExpr: wbe.n > 0\n"));
        assert!(unknown.starts_with("t/00-assert.yaml:4: celExpr is no expression: "), "{unknown}");
        expect![[r#"
            t/00-assert.yaml:4: celExpr is no expression: compilation failed: ERROR: <input>:1:1: undeclared reference to 'wbe' (in container '')
             | wbe.n > 0
             | ^
              names that resourceRefs gives: web"#]]
        .assert_eq(&unknown);
        let key = why(&format!("{REFS}assertAll:\n- celExp: web.n > 0\n"));
        assert!(key.starts_with("t/00-assert.yaml:4: an item of assertAny"), "{key}");
        let reference =
            why("resourceRefs:\n- {apiVersion: v1, kind: Pod, ref: a}\nassertAll: [{celExpr: 'true'}]\n");
        assert!(
            reference.starts_with("t/00-assert.yaml:2: ") && reference.ends_with("has no name"),
            "{reference}"
        );
    }
}
