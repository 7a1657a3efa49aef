//! From rendered text to `Desired`: each document is a child, unless its kind or an annotation says
//! otherwise. Every fault is placed in the author's template, not in the text that it rendered.

use super::Output;
use crate::answer_checks;
use crate::contract::{Desired, Patch, Release};
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Node};
use opdev_types::diagnostic::Diagnostic;
use serde_json::{Map, Value};

/// The annotation that makes a document a change of an object that somebody else created: `true`, or `own` to
/// become its owner as well; `create` makes the object where there is none.
const PATCH: &str = "opdev.dev/patch";
/// apiVersion that kinds such as `Status` may have.
const OWN: &str = "opdev.dev/v1";

type Step<T> = Result<T, Box<Diagnostic>>;

/// Reads what one template wrote.
pub(super) fn read(path: &str, output: &Output<'_>, desired: &mut Desired) -> Step<()> {
    let text = String::from_utf8_lossy(&output.text);
    let nodes = yaml::documents(&text).map_err(|error| {
        let why = error.message.strip_prefix("yaml: ").unwrap_or(&error.message);
        // The line is that of the rendered text, which nobody sees.
        let why =
            why.split_once(": ").filter(|(line, _)| line.starts_with("line ")).map_or(why, |(_, why)| why);
        let place = output.place(error.line.max(1), error.column.max(1));
        Box::new(Diagnostic::error(format!("what {path} renders is not YAML: {why}"), place))
    })?;
    for node in nodes {
        Document { output, node: &node }.add(desired)?;
    }
    Ok(())
}

struct Document<'d> {
    output: &'d Output<'d>,
    node: &'d Node,
}

impl Document<'_> {
    /// A fault at the deepest part of a path that is there.
    fn fault(&self, path: &[String], what: &str) -> Box<Diagnostic> {
        let mut node = self.node;
        for part in path {
            let next = match part.strip_prefix('[').and_then(|rest| rest.trim_end_matches(']').parse().ok()) {
                Some(at) => node.items().get::<usize>(at),
                None => node.get(part.trim_start_matches('.')),
            };
            let Some(next) = next else { break };
            node = next;
        }
        let shown = path.concat();
        let shown = shown.trim_start_matches('.');
        let subject = if shown.is_empty() { "this document" } else { shown };
        Box::new(Diagnostic::error(format!("{subject} {what}"), self.output.place(node.line, node.column)))
    }

    fn add(&self, desired: &mut Desired) -> Step<()> {
        if matches!(self.node.kind, yaml::Kind::Null) {
            return Ok(());
        }
        let object = yaml::to_json(self.node).map_err(|error| self.fault(&[], &error.message))?;
        let Value::Object(mut fields) = object else { return Err(self.fault(&[], "is not an object")) };
        let ours = fields.get("apiVersion").is_none_or(|version| version == OWN);
        let kind = fields.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        match kind.as_str() {
            "Status" if ours => self.status(fields, desired),
            "Conditions" if ours => {
                let list = self.list(&mut fields, "conditions")?;
                answer_checks::conditions(list.clone()).map_err(|(at, what)| {
                    self.fault(&[".conditions".to_owned(), format!("[{at}]")], &what.to_string())
                })?;
                desired.conditions.extend(list);
                Ok(())
            }
            "Events" if ours => {
                for (at, event) in self.list(&mut fields, "events")?.iter().enumerate() {
                    let event_wanted = answer_checks::event(event).map_err(|what| {
                        self.fault(&[".events".to_owned(), format!("[{at}]")], &what.to_string())
                    });
                    desired.events.push(event_wanted?);
                }
                Ok(())
            }
            "Release" if ours => self.release(&fields, desired),
            _ => self.child(fields, desired),
        }
    }

    fn list(&self, fields: &mut Map<String, Value>, key: &str) -> Step<Vec<Value>> {
        match fields.remove(key) {
            Some(Value::Array(list)) => Ok(list),
            Some(Value::Null) => Ok(Vec::new()),
            Some(_) => Err(self.fault(&[format!(".{key}")], "is not a list")),
            None => Err(self.fault(&[format!(".{key}")], "is missing")),
        }
    }

    /// Several of them add up, key by key.
    fn status(&self, mut fields: Map<String, Value>, desired: &mut Desired) -> Step<()> {
        let mut status = match fields.remove("status") {
            Some(Value::Object(status)) => status,
            Some(Value::Null) => Map::new(),
            Some(_) => return Err(self.fault(&[".status".to_owned()], "is not an object")),
            None => return Err(self.fault(&[".status".to_owned()], "is missing")),
        };
        match status.remove("conditions") {
            None | Some(Value::Null) => {}
            Some(Value::Array(list)) => desired.conditions.extend(list),
            Some(_) => {
                return Err(self.fault(&[".status".to_owned(), ".conditions".to_owned()], "is not a list"));
            }
        }
        match &mut desired.status {
            Some(Value::Object(known)) => known.extend(status),
            _ => desired.status = Some(Value::Object(status)),
        }
        Ok(())
    }

    fn release(&self, fields: &Map<String, Value>, desired: &mut Desired) -> Step<()> {
        let known = ["apiVersion", "kind", "metadata", "name", "namespace", "chart", "values"];
        if let Some(key) = fields.keys().find(|key| !known.contains(&key.as_str())) {
            let near = nearest(key, known.iter().copied())
                .map(|near| format!("; did you mean {near}?"))
                .unwrap_or_default();
            return Err(self.fault(&[format!(".{key}")], &format!("is not a part of a Release{near}")));
        }
        let text = |key: &str| {
            let direct = fields.get(key).or_else(|| fields.get("metadata")?.get(key));
            match direct {
                Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
                None | Some(Value::Null) => Ok(None),
                Some(_) => Err(self.fault(&[format!(".{key}")], "is not a text")),
            }
        };
        let name = text("name")?.ok_or_else(|| self.fault(&[".name".to_owned()], "is missing"))?;
        let chart = text("chart")?.ok_or_else(|| self.fault(&[".chart".to_owned()], "is missing"))?;
        let values = match fields.get("values") {
            None | Some(Value::Null) => Value::Object(Map::new()),
            Some(values @ Value::Object(_)) => values.clone(),
            Some(_) => return Err(self.fault(&[".values".to_owned()], "is not an object")),
        };
        desired.releases.push(Release {
            name,
            namespace: text("namespace")?,
            chart,
            values,
            options: Value::Null,
        });
        Ok(())
    }

    fn child(&self, fields: Map<String, Value>, desired: &mut Desired) -> Step<()> {
        let mut object = Value::Object(fields);
        answer_checks::child(&object).map_err(|(path, what)| self.fault(&path, &what.to_string()))?;
        let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        let patch = annotations.and_then(|annotations| annotations.remove(PATCH));
        let Some(patch) = patch else {
            desired.children.push(object);
            return Ok(());
        };
        let (own, create) = match patch.as_str().unwrap_or_default() {
            "own" => (true, false),
            "create" => (false, true),
            "true" => (false, false),
            _ => {
                let path = [".metadata", ".annotations", &format!(".{PATCH}")].map(str::to_owned);
                return Err(self.fault(&path, "is none of \"true\", \"own\" and \"create\""));
            }
        };
        if opdev_object::meta::name(&object).is_none() {
            return Err(self.fault(&[".metadata".to_owned(), ".name".to_owned()], "is missing"));
        }
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
            && metadata.get("annotations").and_then(Value::as_object).is_some_and(Map::is_empty)
        {
            metadata.remove("annotations");
        }
        desired.patches.push(Patch { object, own, create });
        Ok(())
    }
}
