//! The charts that the releases of a program may name, as far as its texts say. Where a name is computed, it
//! may be any chart. Pure.

use super::reconcilers::Texts;

/// Returns true if a program with these texts may install the chart at `path`. In doubt it may.
pub(super) fn may_install(texts: &Texts, path: &str) -> bool {
    let plain = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    if !texts.iter().any(|(file, text)| asks_for_releases(file, text)) {
        return false;
    }
    let mut named = Vec::new();
    for text in texts.values() {
        for value in chart_values(text) {
            match value.and_then(literal) {
                Some(name) => named.push(plain(name)),
                None => return true,
            }
        }
    }
    named.is_empty() || named.contains(&plain(path))
}

/// A script imports `release`, or all that opdev offers; a template has a document of the kind `Release`.
fn asks_for_releases(file: &str, text: &str) -> bool {
    let is_script = [".ts", ".mts", ".js", ".mjs"].iter().any(|end| file.ends_with(end));
    if !is_script {
        return text.contains("Release");
    }
    let mut parts = text.split("\"opdev\"").flat_map(|part| part.split("'opdev'")).peekable();
    while let Some(before) = parts.next() {
        if parts.peek().is_none() {
            break;
        }
        let Some(start) = before.rfind("import") else { return true };
        let names = &before[start..];
        if names.contains(['*', '(']) || words(names).any(|word| word == "release") {
            return true;
        }
    }
    false
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '$')
}

/// The text behind each `chart:`, up to the end of the line; `None` where the word stands otherwise:
/// `{ chart }`, `"chart": …` and `release.chart = …` may name any chart, too.
fn chart_values(text: &str) -> impl Iterator<Item = Option<&str>> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    text.match_indices("chart").filter_map(move |(at, found)| {
        let rest = &text[at + found.len()..];
        if text[..at].ends_with(is_part) || rest.starts_with(is_part) {
            return None;
        }
        Some(rest.strip_prefix(':').map(|value| value.lines().next().unwrap_or_default().trim()))
    })
}

/// The text that a value is; `None` where it is computed.
fn literal(value: &str) -> Option<&str> {
    let quote = value.chars().next()?;
    if matches!(quote, '"' | '\'' | '`') {
        let (text, rest) = value[1..].split_once(quote)?;
        let ends = rest.trim_start().chars().next().is_none_or(|c| matches!(c, ',' | '}' | '#' | '/'));
        return (ends && !text.contains("${") && !text.contains("{{")).then_some(text);
    }
    let text = value.split(" #").next()?.trim().trim_end_matches(['}', ',']).trim();
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    (text.contains('/') && text.chars().all(plain)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn installs(file: &str, text: &str, path: &str) -> bool {
        may_install(&Texts::from([(file.to_owned(), Arc::from(text))]), path)
    }

    #[test]
    fn only_a_program_that_imports_release_may_install_a_chart() {
        let script = |text: &str| installs("config/reconcilers/a.ts", text, "charts/web");
        assert!(!script("export function reconcile(self) { return { children: [] }; }"));
        assert!(!script("import { event } from \"opdev\";\nconst release = self.spec.release;"));
        assert!(script("import { event, release } from \"opdev\";\nrelease({ chart: self.spec.chart });"));
        assert!(script("import * as opdev from 'opdev';\nopdev.release({ chart });"));
        assert!(script("const opdev = await import(\"opdev\");"));
    }

    #[test]
    fn a_chart_that_is_named_is_the_only_one_and_a_computed_name_is_any() {
        let script = |chart: &str, path: &str| {
            let text = format!("import {{ release }} from \"opdev\";\nrelease({{ name: \"x\", {chart} }});");
            installs("a.ts", &text, path)
        };
        assert!(script("chart: \"./charts/web\", values: {}", "charts/web"));
        assert!(!script("chart: \"./charts/web\", values: {}", "charts/db"));
        assert!(script("chart: \"charts/\" + self.spec.name", "charts/db"));
        assert!(script("chart: `charts/${name}`", "charts/db"));
        assert!(script("chart", "charts/db"));
    }

    #[test]
    fn a_chart_that_is_named_beside_one_that_may_be_any_does_not_hide_it() {
        for other in ["{ name, chart }", "{ \"chart\": name }", "Object.assign(r, { chart : name })"] {
            let text = format!(
                "import {{ release }} from \"opdev\";\nrelease({{ chart: \"charts/web\" }});\nrelease({other});"
            );
            assert!(installs("a.ts", &text, "charts/db"), "{other}");
        }
    }

    #[test]
    fn templates_name_charts_without_quotes() {
        let template = |text: &str, path: &str| installs("config/reconcilers/a/release.yaml", text, path);
        assert!(template("kind: Release\nname: x\nchart: charts/web\n", "charts/web"));
        assert!(!template("kind: Release\nname: x\nchart: charts/web\n", "charts/db"));
        assert!(template("kind: Release\nchart: {{ .self.spec.chart }}\n", "charts/db"));
        assert!(!template("kind: ConfigMap\ndata: {chart: charts/web}\n", "charts/web"));
    }
}
