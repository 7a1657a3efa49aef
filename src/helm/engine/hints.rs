//! Hints beside Helm's own error text: the value that was nil and who could set it, names that are near to an
//! unknown one, the templates that led to the place. They never change the error itself.

use super::scope::{Scope, Template};
use crate::chart::Chart;
use crate::explain;
use opdev_object::spelling::nearest;
use opdev_template::{Compat, ExecError, ParseError, TemplateSet, function_names};
use serde_json::Value;
use std::collections::BTreeMap;

/// Hints for a template that does not parse.
pub(super) fn unparsed(error: &ParseError, compat: Compat) -> Vec<String> {
    let Some(name) = between(&error.reason, "function \"", "\" not defined") else { return Vec::new() };
    let known = function_names(compat);
    nearest(name, known.iter().copied())
        .map(|near| format!("did you mean the function `{near}`?"))
        .into_iter()
        .collect()
}

/// Hints for a template that failed.
pub(super) fn failed(
    error: &ExecError,
    scopes: &[Scope<'_>],
    templates: &BTreeMap<String, Template<'_>>,
    values: &Value,
    set: &TemplateSet,
) -> Vec<String> {
    let mut hints = Vec::new();
    if let Some(first) = error.frames.first()
        && let Some(template) = templates.get(&first.file)
        && let Some(path) = value_path(error)
    {
        hints.extend(absent(&path, &scopes[template.scope], values));
    }
    let missing = between(&error.cause, "no template \"", "\" associated")
        .or_else(|| between(&error.cause, "template \"", "\" not defined"));
    if let Some(name) = missing {
        let names = set.names();
        let near = nearest(name, names.iter().map(String::as_str));
        hints.extend(near.map(|near| format!("did you mean the template {near:?}?")));
    }
    if let [first, rest @ ..] = error.frames.as_slice()
        && !rest.is_empty()
    {
        let file = |path: &str| path.split_once('/').map_or(path, |(_, rest)| rest).to_owned();
        let mut chain = format!("{}:{}", file(&first.file), first.line);
        for frame in rest {
            chain.push_str(&format!(" > {} ({}:{})", frame.executing, file(&frame.file), frame.line));
        }
        hints.push(format!("reached through {chain}"));
    }
    hints
}

/// The keys below `.Values` that were nil when an error asked for something in or of them.
fn value_path(error: &ExecError) -> Option<Vec<String>> {
    let last = error.innermost()?;
    let in_nil = error.cause.strip_prefix("nil pointer evaluating interface {}.");
    let is_nil = error.cause.ends_with("; got interface {}") || error.cause.contains("; found nil");
    if in_nil.is_none() && !is_nil {
        return None;
    }
    let dotted = last.expression.strip_prefix('$').unwrap_or(&last.expression).strip_prefix(".Values.")?;
    if dotted.contains([' ', '(', ')', '|']) {
        return None;
    }
    let mut keys: Vec<String> = dotted.split('.').map(str::to_owned).collect();
    if let Some(name) = in_nil {
        let at = keys.iter().rposition(|key| key == name)?;
        keys.truncate(at);
    }
    (!keys.is_empty()).then_some(keys)
}

/// The key that is not there or null, who could set it, and what is there instead.
fn absent(keys: &[String], scope: &Scope<'_>, values: &Value) -> Option<String> {
    let prefix = scope.section.clone();
    let mut at = prefix.iter().try_fold(values, |value, key| value.get(key))?;
    for (i, key) in keys.iter().enumerate() {
        at = match at.get(key) {
            Some(Value::Null) | None => {
                let table = at.as_object()?;
                return Some(told(&keys[..=i], scope.chart, &prefix, table.get(key).is_some(), table.keys()));
            }
            Some(below) => below,
        };
    }
    None
}

fn told<'k>(
    keys: &[String],
    chart: &Chart,
    prefix: &[&str],
    null: bool,
    beside: impl Iterator<Item = &'k String> + Clone,
) -> String {
    let own: Vec<&str> = keys.iter().map(String::as_str).collect();
    let (dotted, full) = (own.join("."), [prefix, &own].concat().join("."));
    let folder: String = prefix.iter().map(|name| format!("charts/{name}/")).collect();
    let line = explain::line_of(chart, &own);
    let mut said = match line {
        Some(line) if null => {
            format!("`.Values.{dotted}` is null: {folder}values.yaml:{line} gives it no value")
        }
        _ if null => format!("`.Values.{dotted}` is null"),
        _ => format!("`.Values.{dotted}` is not set: {folder}values.yaml has no default for it"),
    };
    if let (Some((last, above)), false) = (own.split_last(), null)
        && let Some(boolean) = yaml_boolean(last)
        && beside.clone().any(|key| key == boolean)
    {
        let line = [*last, boolean]
            .iter()
            .find_map(|key| explain::line_of(chart, &[above, &[*key]].concat()))
            .map_or_else(|| "its file".to_owned(), |line| format!("{folder}values.yaml:{line}"));
        return format!(
            "`.Values.{dotted}` is not set: the key `{last}` without quotes in {line} is the boolean {boolean} in YAML, so its \
             value is found under `{boolean}`; write `\"{last}\":` there"
        );
    }
    if let (Some(last), false) = (own.last(), null)
        && let Some(near) = nearest(last, beside.map(String::as_str))
    {
        let path: Vec<&str> = own[..own.len() - 1].iter().copied().chain([near]).collect();
        let place = explain::line_of(chart, &path).map(|line| format!(" ({folder}values.yaml:{line})"));
        said.push_str(&format!("; did you mean `.Values.{}`{}?", path.join("."), place.unwrap_or_default()));
        return said;
    }
    said.push_str(&format!(
        "; set it there, in a values file, the custom resource's spec or with `--set {full}=…`"
    ));
    said
}

/// The name that YAML 1.1 gives to a key which reads as a boolean, as Helm's parser takes it.
fn yaml_boolean(key: &str) -> Option<&'static str> {
    match key {
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some("true"),
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some("false"),
        _ => None,
    }
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let start = text.find(before)? + before.len();
    let end = text[start..].find(after)?;
    Some(&text[start..start + end])
}

#[cfg(test)]
mod tests {
    use crate::chart::FileSet;
    use crate::engine::tests::refused;
    use expect_test::expect;
    use serde_json::json;

    fn hints(template: &str, values: &serde_json::Value) -> Vec<String> {
        let files: FileSet = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("values.yaml", "image:\n  tag: \"1\"\nnothing:\nmail:\n  on:\n    port: 25\n  n: {m: 1}\n"),
            ("templates/_helpers.tpl", "{{- define \"web.name\" -}}\n{{ .Values.imag.tag }}{{- end }}"),
            ("templates/a.yaml", template),
            ("charts/db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 0.1.0\n"),
            ("charts/db/values.yaml", "size: 1\n"),
            ("charts/db/templates/b.yaml", "{{ if .Values.on }}{{ .Values.auth.user }}{{ end }}"),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        refused(&files, values).hints
    }

    #[test]
    fn says_which_value_was_nil_and_who_could_set_it() {
        assert_eq!(
            hints("{{ .Values.imag.tag }}", &json!({})),
            [
                "`.Values.imag` is not set: values.yaml has no default for it; did you mean `.Values.image` (values.yaml:1)?"
            ]
        );
        assert_eq!(
            hints("{{ $.Values.nothing.deep.er }}", &json!({})),
            [
                "`.Values.nothing` is null: values.yaml:3 gives it no value; set it there, in a values file, the custom resource's spec or with `--set nothing=…`"
            ]
        );
        assert_eq!(
            hints("a: 1", &json!({"db": {"on": true}})),
            [
                "`.Values.auth` is not set: charts/db/values.yaml has no default for it; set it there, in a values file, the custom resource's spec or with `--set db.auth=…`"
            ]
        );
        assert_eq!(
            hints("x: {{ include \"web.name\" . }}", &json!({})),
            [
                "`.Values.imag` is not set: values.yaml has no default for it; did you mean `.Values.image` (values.yaml:1)?",
                "reached through templates/a.yaml:1 > web.name (templates/_helpers.tpl:2)"
            ]
        );
    }

    #[test]
    fn says_that_a_key_is_a_boolean() {
        assert_eq!(
            hints("{{ .Values.mail.on.port }}", &json!({})),
            [
                "`.Values.mail.on` is not set: the key `on` without quotes in values.yaml:5 is the boolean true in YAML, so its value is found under `true`; write `\"on\":` there"
            ]
        );
        let no = hints("{{ .Values.mail.n.m }}", &json!({}));
        expect![[r#"`.Values.mail.n` is not set: the key `n` without quotes in values.yaml:7 is the boolean false in YAML, so its value is found under `false`; write `"n":` there"#]]
        .assert_eq(&no[0]);
        let given = hints("{{ .Values.image.off.m }}", &json!({"image": {"false": {"m": 1}}}));
        expect![[r#"`.Values.image.off` is not set: the key `off` without quotes in its file is the boolean false in YAML, so its value is found under `false`; write `"off":` there"#]]
        .assert_eq(&given[0]);
    }

    #[test]
    fn names_what_is_near() {
        assert_eq!(hints("{{ qoute 1 }}", &json!({})), ["did you mean the function `quote`?"]);
        assert_eq!(
            hints("{{ include \"web.nam\" . }}", &json!({})),
            ["did you mean the template \"web.name\"?"]
        );
        assert_eq!(
            hints("{{ template \"web.mane\" . }}", &json!({})),
            ["did you mean the template \"web.name\"?"]
        );
        assert!(hints("{{ include \"other\" . }}", &json!({})).is_empty());
        assert!(hints("{{ fail \"no\" }}", &json!({})).is_empty());
    }
}
