//! Errors of a chart, as diagnostics with place, excerpt and hint. Pure.

use super::time_limit::{self, TimeLimit};
use opdev_event::{Diagnostic, Place, Severity, mask};
use opdev_helm::chart::{Chart, ChartError, FileSet};
use opdev_helm::engine::{
    self, Capabilities, Compat, Environment, FuncError, Memory, ParseCache, ReleaseInfo, RenderError,
    RenderInput, Rendered,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A chart that does not load.
pub fn chart(folder: &str, files: &FileSet, error: &ChartError) -> Diagnostic {
    let place = error.place.as_ref().map(|place| Place {
        file: format!("{folder}/{}", place.file),
        line: place.line,
        column: place.column,
    });
    let text = error
        .place
        .as_ref()
        .and_then(|place| files.get(&place.file))
        .map(|data| String::from_utf8_lossy(data));
    let excerpt = place.as_ref().zip(text).and_then(|(place, text)| excerpt(&text, place.line, place.column));
    let place = place.unwrap_or_else(|| Place { file: folder.to_owned(), line: 0, column: 0 });
    Diagnostic { hint: error.hint.clone(), ..diagnostic(error.message.clone(), place, excerpt) }
}

/// A chart that does not render.
pub fn render(folder: &str, chart: &Chart, error: &RenderError) -> Diagnostic {
    let found = place(folder, chart, error);
    let hints: Vec<String> = error.hints.iter().cloned().chain(found.hint.clone()).collect();
    let found = Diagnostic { hint: Some(hints.join("; ")).filter(|hints| !hints.is_empty()), ..found };
    // An error of a template may quote the chart's own values.
    let mut secrets = Vec::new();
    chart_secrets(chart, &mut secrets);
    let secrets = mask::known(secrets);
    let cover = |text: String| mask::text(&text, &secrets);
    Diagnostic {
        message: cover(found.message),
        excerpt: found.excerpt.map(cover),
        hint: found.hint.map(cover),
        ..found
    }
}

/// The values of a chart and its subcharts that are secret by their names.
pub fn chart_secrets(chart: &Chart, found: &mut Vec<String>) {
    found.extend(mask::secrets(&chart.values));
    chart.subcharts.iter().for_each(|chart| chart_secrets(chart, found));
}

fn place(folder: &str, chart: &Chart, error: &RenderError) -> Diagnostic {
    let Some(at) = &error.place else {
        return diagnostic(
            error.message.clone(),
            Place { file: folder.to_owned(), line: 0, column: 0 },
            None,
        );
    };
    if let Some(found) = error.rendered() {
        return unreadable(folder, chart, error, (found.origin.as_ref(), &at.file));
    }
    in_template(folder, chart, error, at)
}

fn in_template(
    folder: &str,
    chart: &Chart,
    error: &RenderError,
    at: &opdev_helm::chart::Place,
) -> Diagnostic {
    let file = project_path(folder, chart.name(), &at.file);
    let excerpt = template_text(chart, &at.file).and_then(|text| excerpt(&text, at.line, at.column));
    diagnostic(error.message.clone(), Place { file, line: at.line, column: at.column }, excerpt)
}

/// A rendered document that is no YAML. The line that counts for people is the one of the template that wrote
/// it; Helm's words name a line of the document.
fn unreadable(
    folder: &str,
    chart: &Chart,
    error: &RenderError,
    (origin, template): (Option<&opdev_helm::chart::Place>, &str),
) -> Diagnostic {
    let rendered = Some(mask::manifest(&error.excerpt)).filter(|text| !text.trim().is_empty());
    match origin {
        Some(origin) => {
            let hint = rendered.map(|line| format!("it renders as `{}`", line.trim()));
            Diagnostic { hint, ..in_template(folder, chart, error, origin) }
        }
        None => {
            let file = project_path(folder, chart.name(), template);
            diagnostic(error.message.clone(), Place { file, line: 0, column: 0 }, rendered)
        }
    }
}

/// The error of a type file or a program, with the lines around the place. `files` has the texts by the paths
/// that the diagnostic names.
pub fn program(
    files: &BTreeMap<String, Arc<str>>,
    found: &opdev_types::diagnostic::Diagnostic,
) -> Diagnostic {
    let place = found.place.as_ref().map(|place| Place {
        file: place.file.clone(),
        line: place.line,
        column: place.column,
    });
    let text = place.as_ref().and_then(|place| files.get(&place.file));
    let excerpt = place.as_ref().zip(text).and_then(|(place, text)| excerpt(text, place.line, place.column));
    let severity = match found.severity {
        opdev_types::diagnostic::Severity::Error => Severity::Error,
        opdev_types::diagnostic::Severity::Warning => Severity::Warning,
    };
    Diagnostic {
        severity,
        message: found.message.clone(),
        place,
        excerpt,
        hint: found.hint.clone(),
        kind: None,
    }
}

/// A path in a chart, with or without the chart's name in front, becomes one from the project's root on.
fn project_path(folder: &str, name: &str, file: &str) -> String {
    let inside = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('/')).unwrap_or(file);
    format!("{}/{inside}", folder.trim_end_matches('/'))
}

fn diagnostic(message: String, place: Place, excerpt: Option<String>) -> Diagnostic {
    Diagnostic { severity: Severity::Error, message, place: Some(place), excerpt, hint: None, kind: None }
}

/// The text of a template, also of a subchart's.
pub fn template_text(chart: &Chart, path: &str) -> Option<String> {
    if let Some(file) = chart.templates.iter().find(|file| file.name == path) {
        return Some(String::from_utf8_lossy(&file.data).into_owned());
    }
    let (name, rest) = path.strip_prefix("charts/")?.split_once('/')?;
    chart.subcharts.iter().find(|one| one.name() == name).and_then(|one| template_text(one, rest))
}

/// Checks that the chart's templates are sound as far as that can be told without an object: a text that does
/// not parse is never sound; one that does not render with the defaults may need values, so `strict` decides.
pub(super) fn check(
    folder: &str,
    chart: &Chart,
    strict: bool,
    trials: &Trials,
) -> Result<bool, Box<Diagnostic>> {
    match with_values(chart, &Value::Object(serde_json::Map::new()), trials) {
        Ok(_) => Ok(true),
        // A render that takes too long without values is not made quick by some; each reconcile would wait
        // for it.
        Err(error)
            if strict
                || error.message.contains("parse error at")
                || error.message.contains(time_limit::TOO_LONG) =>
        {
            Err(Box::new(render(folder, chart, &error)))
        }
        Err(_) => Ok(false),
    }
}

/// The output of a chart with some values, at no time and in no cluster. Renders of one chart share `trials`:
/// the next one runs only the templates that read something that has changed.
///
/// # Errors
/// Where a template fails.
pub fn with_values(chart: &Chart, values: &Value, trials: &Trials) -> Result<Rendered, RenderError> {
    let capabilities = Capabilities::default_for(Compat::V3);
    let release = ReleaseInfo::install("release-name", "default");
    let env = Still(trials.limit.clone());
    let input = RenderInput {
        cache: Some(Arc::clone(&trials.templates)),
        memory: Some(&trials.memory),
        // A check reaches no host; a reconcile does, if the user allows it.
        skip_schema_validation: engine::reaches_out(chart),
        ..RenderInput::new(values, release, &capabilities, &env)
    };
    engine::render(chart, &input)
}

/// How many bytes of output, and how many texts of templates, are kept of a chart.
const MOST_BYTES: usize = 8 << 20;
const MOST_TEXTS: usize = 2_000;

/// The outputs of one chart's versions with its defaults: a save is checked in the time that the saved file
/// takes.
#[derive(Debug, Default)]
pub struct Trials {
    templates: Arc<ParseCache>,
    memory: Memory,
    /// Until when checks may go on.
    pub(super) limit: TimeLimit,
}

impl Trials {
    /// Lets go of what is known once that is much: the next check takes as long as the first.
    pub(super) fn shrink(&mut self) {
        if self.memory.bytes() > MOST_BYTES || self.templates.len() > MOST_TEXTS {
            *self = Trials::default();
        }
    }
}

/// A check never depends on when it runs, but it ends.
struct Still(TimeLimit);

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        // Not all equal: key generation needs candidates that differ.
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = u8::try_from((i * 197 + 31) % 251).unwrap_or(0);
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
        Ok(Value::Object(serde_json::Map::new()))
    }

    fn give_up(&self) -> Option<&'static str> {
        self.0.reached()
    }
}

/// The line before, the line itself with a marker, and the line after; secrets in `key: value` lines are
/// masked.
pub fn excerpt(text: &str, line: u32, column: u32) -> Option<String> {
    if line == 0 {
        return None;
    }
    let lines: Vec<&str> = text.lines().collect();
    let at = line as usize - 1;
    lines.get(at)?;
    let (first, last) = (at.saturating_sub(1), (at + 1).min(lines.len() - 1));
    let width = (last + 1).to_string().len();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate().take(last + 1).skip(first) {
        let shown = masked(line);
        out.push_str(&format!("{:>width$} | {shown}\n", number + 1));
        if number == at {
            let before = match column {
                0 => shown.chars().take_while(|c| c.is_whitespace()).count(),
                column => column as usize - 1,
            };
            // Tabs stay tabs, so that the mark stands below its column however wide they are shown.
            let known = shown.chars().map(|c| if c == '\t' { '\t' } else { ' ' });
            let indent: String = known.chain(std::iter::repeat(' ')).take(before).collect();
            out.push_str(&format!("{:>width$} | {indent}^\n", ""));
        }
    }
    Some(out.trim_end().to_owned())
}

fn masked(line: &str) -> String {
    match line.split_once(':') {
        Some((key, value))
            if mask::is_secret_name(key.trim().trim_start_matches("- "))
                && !value.contains("{{")
                && !value.trim().is_empty() =>
        {
            format!("{key}: {}", mask::MASK)
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_excerpt_marks_the_column_and_masks_secrets() {
        let text = "a: 1\npassword: hunter2\n  b: [\nc: 2\n";
        assert_eq!(excerpt(text, 3, 6).unwrap(), "2 | password: ••••••\n3 |   b: [\n  |      ^\n4 | c: 2");
        assert_eq!(excerpt(text, 1, 0).unwrap(), "1 | a: 1\n  | ^\n2 | password: ••••••");
        assert!(excerpt(text, 0, 0).is_none() && excerpt(text, 99, 1).is_none());
    }

    #[test]
    fn a_program_is_shown_where_it_broke() {
        use opdev_types::diagnostic as types;
        let files = BTreeMap::from([("config/reconcilers/a.ts".to_owned(), Arc::from("one\n  two\n"))]);
        let place = types::Place { file: "config/reconcilers/a.ts".to_owned(), line: 2, column: 3 };
        let found = types::Diagnostic::error("TypeError: no", Some(place)).with_hint("do");
        let shown = program(&files, &found);
        assert_eq!(shown.excerpt.as_deref(), Some("1 | one\n2 |   two\n  |   ^"));
        assert_eq!((shown.severity, shown.hint.as_deref()), (Severity::Error, Some("do")));
    }

    #[test]
    fn a_document_that_is_no_yaml_is_placed_where_its_template_wrote_it() {
        let told = |template: &str| {
            let files: FileSet = [
                ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("values.yaml", "image: \"nginx: latest\"\nlabels: {a: 1, b: 2}\n"),
                ("templates/_names.tpl", "{{ define \"web.name\" }}\nname: a: b\n{{ end }}"),
                ("templates/a.yaml", template),
            ]
            .into_iter()
            .map(|(path, text)| (path, text.as_bytes()))
            .collect();
            let chart = Chart::load(&files).unwrap();
            let error =
                with_values(&chart, &Value::Object(serde_json::Map::new()), &Trials::default()).unwrap_err();
            let found = render("charts/web", &chart, &error);
            (
                found.place.unwrap().to_string(),
                found.excerpt.unwrap_or_default(),
                found.hint.unwrap_or_default(),
            )
        };
        // Five lines of the template are not in the document.
        let (place, excerpt, hint) = told(
            "{{/* a\nlong\ncomment */}}\n{{- if .Values.image }}\n---\nkind: A\nimage: {{ .Values.image }}\n{{- end }}\n",
        );
        assert!(place.starts_with("charts/web/templates/a.yaml:7:"), "{place}");
        expect![[r#"
            6 | kind: A
            7 | image: {{ .Values.image }}
              |           ^
            8 | {{- end }}"#]]
        .assert_eq(&excerpt);
        assert_eq!(hint, "it renders as `image: nginx: latest`");
        // Lines that a loop wrote before move the document's lines, too.
        let (place, ..) = told("kind: A\n{{ range $k, $v := .Values.labels }}{{ $k }}: 1\n{{ end }}\nx: [\n");
        assert!(place.starts_with("charts/web/templates/a.yaml:4"), "{place}");
        // A template that is called writes what is wrong; what is included comes from the line that includes
        // it.
        let (place, ..) = told("kind: A\n{{ template \"web.name\" . }}\n");
        assert!(place.starts_with("charts/web/templates/_names.tpl:2:"), "{place}");
        let (place, ..) = told("kind: A\n\n{{ include \"web.name\" . | trim }}\n");
        assert!(place.starts_with("charts/web/templates/a.yaml:3:"), "{place}");
        // The second document of a file.
        let (place, ..) = told("kind: A\n---\nkind: B\nb: c: d\n");
        assert!(place.starts_with("charts/web/templates/a.yaml:4:"), "{place}");
    }

    #[test]
    fn places_lead_to_the_project() {
        let path = |file: &str| project_path("charts/web-1.0/", "web", file);
        assert_eq!(path("web/templates/a.yaml"), "charts/web-1.0/templates/a.yaml");
        assert_eq!(path("templates/a.yaml"), "charts/web-1.0/templates/a.yaml");
        assert_eq!(path("web/charts/db/templates/a.yaml"), "charts/web-1.0/charts/db/templates/a.yaml");
    }

    /// Each save of a large chart would else take as long as its first load.
    #[test]
    fn a_check_runs_what_the_save_reaches_and_is_as_strict_as_the_first() {
        let chart = |second: &str| {
            let files: FileSet = [
                ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
                ("values.yaml", "n: 1\n"),
                ("templates/a.yaml", "a: {{ .Values.n }}\n"),
                ("templates/b.yaml", second),
            ]
            .into_iter()
            .map(|(path, text)| (path, text.as_bytes()))
            .collect();
            Chart::load(&files).unwrap()
        };
        let mut trials = Trials::default();
        let ran = |second: &str, trials: &Trials| {
            with_values(&chart(second), &Value::Object(serde_json::Map::new()), trials).unwrap().executed
        };
        assert_eq!(ran("b: 1\n", &trials), 2);
        assert_eq!(ran("b: 2\n", &trials), 1);
        let told = |second: &str, trials: &Trials| check("chart", &chart(second), true, trials).unwrap_err();
        for broken in ["b: {{ if }}\n", "b: {{ fail \"no\" }}\n", "b: [\n"] {
            assert_eq!(*told(broken, &trials), *told(broken, &Trials::default()));
        }
        assert_eq!(ran("b: 3\n", &trials), 1);
        trials.shrink();
        assert_eq!((ran("b: 3\n", &trials), trials.templates.len()), (0, 6));
        for n in 0..MOST_TEXTS {
            assert!(ran(&format!("b: {n}\n"), &trials) > 0);
        }
        trials.shrink();
        assert_eq!(trials.templates.len(), 0);
    }
}
