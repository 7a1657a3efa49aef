//! `overrideValues`: `$VAR` and `${VAR}` from the environment, then a Go template without data, as upstream
//! does. Pure: the environment is handed in.

use super::time_limit::TimeLimit;
use opdev_event::mask;
use opdev_template::{Compat, Context, Environment, FuncError, TemplateSet, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Why the value of a key cannot be expanded. Nothing of the environment is in it: any of it may be secret.
#[derive(Debug)]
pub(crate) struct ExpandError {
    key: String,
    why: Unexpanded,
}

#[derive(Debug)]
enum Unexpanded {
    /// The variable's value is a part of a template itself.
    NoTemplate,
    /// The template's error, masked.
    Template(String),
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match &self.why {
            Unexpanded::NoTemplate => {
                "not a template any more once the environment's variables are filled in"
            }
            Unexpanded::Template(error) => error,
        };
        write!(f, "{}: {why}", self.key)
    }
}

impl std::error::Error for ExpandError {}

/// Expands every value.
///
/// # Errors
/// The key and the template's error.
pub(crate) fn expand(
    overrides: &BTreeMap<String, String>,
    env: &BTreeMap<String, String>,
    limit: &TimeLimit,
) -> Result<BTreeMap<String, String>, ExpandError> {
    let mut expanded = BTreeMap::new();
    for (key, value) in overrides {
        let text = variables(value, env);
        let text = if text.contains("{{") {
            execute(key, &text, limit).map_err(|error| ExpandError {
                key: key.clone(),
                why: without_env(&error.to_string(), value, env),
            })?
        } else {
            text
        };
        expanded.insert(key.clone(), text);
    }
    Ok(expanded)
}

/// The error of a template without what came from the environment: any of it may be secret.
fn without_env(error: &str, value: &str, env: &BTreeMap<String, String>) -> Unexpanded {
    let used: Vec<String> = env
        .iter()
        .filter(|(name, text)| !text.is_empty() && value.contains('$') && value.contains(name.as_str()))
        .map(|(_, text)| text.clone())
        .collect();
    if used.iter().any(|text| text.contains("{{") || text.contains("}}")) {
        return Unexpanded::NoTemplate;
    }
    Unexpanded::Template(mask::text(error, &mask::known(used)))
}

fn execute(name: &str, text: &str, limit: &TimeLimit) -> Result<String, Box<dyn std::error::Error>> {
    let mut set = TemplateSet::new(Compat::V3);
    set.add(name, text)?;
    let env = Nowhere(limit.clone());
    let mut context = Context::new(&env, Compat::V3);
    let output = set.execute(name, Value::Nil, &mut context)?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Override values are fixed when they are read: no clock, no randomness, no cluster.
struct Nowhere(TimeLimit);

impl Environment for Nowhere {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        buffer.fill(0);
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<serde_json::Value, FuncError> {
        Err("lookup cannot be used in overrideValues".into())
    }

    fn give_up(&self) -> Option<&'static str> {
        self.0.reached()
    }
}

/// The variables that a value names.
pub(super) fn named(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    expand_with(text, |name| {
        names.push(name.to_owned());
        ""
    });
    names.retain(|name| !name.is_empty());
    names
}

/// Replaces variables as Go's `os.Expand` does; unset ones become nothing.
fn variables(text: &str, env: &BTreeMap<String, String>) -> String {
    expand_with(text, |name| env.get(name).map_or("", String::as_str))
}

fn expand_with<'a>(text: &str, mut value: impl FnMut(&str) -> &'a str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let (name, after) = if let Some(inner) = rest.strip_prefix('{') {
            match inner.split_once('}') {
                Some((name, after)) => (name, after),
                // As Go: an unclosed brace is dropped.
                None => ("", inner),
            }
        } else {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            if end == 0 {
                out.push('$');
                continue;
            }
            rest.split_at(end)
        };
        out.push_str(value(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_templates() {
        let env = BTreeMap::from([("IMAGE".to_owned(), "repo/app:1.2".to_owned())]);
        assert_eq!(variables("a-$IMAGE-${IMAGE}-$NONE.$", &env), "a-repo/app:1.2-repo/app:1.2-.$");
        let overrides =
            BTreeMap::from([("tag".to_owned(), "{{ (\"$IMAGE\" | split \":\")._1 }}".to_owned())]);
        assert_eq!(expand(&overrides, &env, &TimeLimit::default()).unwrap()["tag"], "1.2");
        let broken = BTreeMap::from([("tag".to_owned(), "{{ nope }}".to_owned())]);
        assert!(expand(&broken, &env, &TimeLimit::default()).unwrap_err().to_string().starts_with("tag: "));
    }

    #[test]
    fn errors_do_not_quote_the_environment() {
        let env = BTreeMap::from([
            ("PW".to_owned(), "hunter2".to_owned()),
            ("BAD".to_owned(), "{{ swordfish }}".to_owned()),
        ]);
        for text in ["{{ fail \"$PW\" }}", "{{ hunter $PW }}", "{{ 1 }}${BAD}"] {
            let error =
                expand(&BTreeMap::from([("tag".to_owned(), text.to_owned())]), &env, &TimeLimit::default())
                    .unwrap_err()
                    .to_string();
            assert!(!error.contains("hunter2") && !error.contains("swordfish"), "{error}");
        }
    }
}
