//! The kinds of the objects that a chart may create, found by rendering it: with its default values, and with
//! each boolean default flipped once, so that objects that are off by default are seen. Pure.

use super::chart_problems;
use super::chart_problems::Trials;
use super::time_limit::{self, TimeLimit};
use opdev_helm::chart::Chart;
use opdev_helm::engine::{RenderError, Rendered};
use opdev_object::meta::Gvk;
use opdev_object::yaml;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashSet};

/// More booleans than these are not flipped: each costs a render.
const MOST_FLIPS: usize = 64;

/// The kinds that a chart may create.
#[derive(Debug, Default)]
pub struct CreatedKinds {
    /// The kinds, hooks and `crds/` included.
    pub kinds: BTreeSet<Gvk>,
    /// Why the chart does not render with its default values, where it does not.
    pub failure: Option<RenderError>,
    /// How many boolean defaults were not flipped.
    pub untried: usize,
    /// Texts that were looked at: most are the same in every render.
    seen: HashSet<String>,
}

impl CreatedKinds {
    /// Renders a chart, and takes the kinds of what it gives.
    /// Breaks off where the limit is reached.
    pub fn of_chart(chart: &Chart, limit: &TimeLimit) -> CreatedKinds {
        let mut created = CreatedKinds::default();
        let mut trials = Trials::default();
        trials.limit = limit.clone();
        match chart_problems::with_values(chart, &json!({}), &trials) {
            Ok(rendered) => created.add(&rendered),
            Err(error) => created.failure = Some(error),
        }
        let mut defaults = Vec::new();
        booleans(&chart.values, &mut Vec::new(), &mut defaults);
        created.untried = defaults.len().saturating_sub(MOST_FLIPS);
        for (path, value) in defaults.into_iter().take(MOST_FLIPS) {
            // With other values a template may rightly refuse to render.
            match chart_problems::with_values(chart, &nested(&path, !value), &trials) {
                Ok(rendered) => created.add(&rendered),
                // Nor would the next one end.
                Err(error) if error.message.contains(time_limit::TOO_LONG) => break,
                Err(_) => {}
            }
        }
        for crd in chart.crds() {
            created.add_text(&crd.content);
        }
        created
    }

    fn add(&mut self, rendered: &Rendered) {
        let documents = rendered.documents.iter().map(|document| &*document.part.content);
        for text in documents.chain(rendered.hooks.iter().map(|hook| hook.manifest.as_str())) {
            if !self.seen.contains(text) {
                self.seen.insert(text.to_owned());
                self.add_text(text);
            }
        }
    }

    fn add_text(&mut self, text: &str) {
        for document in yaml::documents(text).unwrap_or_default() {
            self.kinds.extend(yaml::to_json(&document).ok().and_then(|object| Gvk::of(&object)));
        }
    }
}

fn booleans(value: &Value, at: &mut Vec<String>, found: &mut Vec<(Vec<String>, bool)>) {
    match value {
        Value::Bool(value) => found.push((at.clone(), *value)),
        Value::Object(map) => {
            for (key, value) in map {
                at.push(key.clone());
                booleans(value, at, found);
                at.pop();
            }
        }
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

fn nested(path: &[String], value: bool) -> Value {
    path.iter().rev().fold(Value::Bool(value), |inner, key| {
        let mut map = Map::new();
        map.insert(key.clone(), inner);
        Value::Object(map)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_helm::chart::FileSet;

    #[test]
    fn a_chart_that_never_ends_to_render_is_given_up() {
        let endless = "{{ range until 1000000 }}{{ range until 1000000 }}{{ end }}{{ end }}";
        let files: FileSet = [
            ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
            ("values.yaml", "a: true\nb: false\n"),
            ("templates/a.yaml", endless),
        ]
        .into_iter()
        .map(|(path, text)| (path, text.as_bytes()))
        .collect();
        let chart = Chart::load(&files).unwrap();
        let created = CreatedKinds::of_chart(&chart, &TimeLimit::new(|| Some(time_limit::TOO_LONG)));
        expect!["the template takes too long"].assert_eq(&created.failure.unwrap().message);
    }
}
