//! `charts` of `opdev.yaml`: the options of kinds with charts, by kind. Read with every load, so that a saved
//! option counts at once. Pure.

use super::chart_options::{self, ChartEngine, ChartOptions, Wrong};
use super::watches::{self, Entry};
use opdev_event::{Diagnostic, Place, Severity};
use opdev_object::meta::Gvk;
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Kind, Node};

/// The options of kinds, as `opdev.yaml` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChartSettings {
    engine: Option<ChartEngine>,
    kinds: Vec<(String, ChartOptions)>,
}

impl ChartSettings {
    /// Reads `charts`. `None` where it makes no sense, with what is wrong.
    pub(super) fn read(
        (file, text): &(String, String),
        entries: &[Entry],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Option<ChartSettings> {
        let mut tell = |severity, wrong: Wrong| {
            let place = Place { file: file.clone(), line: wrong.line, column: wrong.column };
            let (message, hint) = (wrong.message, wrong.hint);
            let place = Some(place);
            diagnostics.push(Diagnostic { severity, message, place, excerpt: None, hint, kind: None });
        };
        let root = match yaml::parse(text) {
            Ok(root) => root,
            Err(error) => {
                let (line, column) = (error.line, error.column);
                tell(Severity::Error, Wrong { line, column, message: error.message, hint: None });
                return None;
            }
        };
        let mut settings = ChartSettings::default();
        let Some(charts) = root.get("charts").filter(|charts| charts.kind != Kind::Null) else {
            return Some(settings);
        };
        let Kind::Mapping(pairs) = &charts.kind else {
            tell(
                Severity::Error,
                about(charts, "charts must be a map of kinds, such as Memcached.cache.my.domain"),
            );
            return None;
        };
        let mut good = true;
        for (key, value) in pairs {
            let name = key.to_text().unwrap_or_default();
            if name == "engine" {
                match ChartOptions::read(charts) {
                    Ok(options) => settings.engine = options.engine,
                    Err(wrong) => {
                        tell(Severity::Error, wrong);
                        good = false;
                    }
                }
                continue;
            }
            let Kind::Mapping(options) = &value.kind else {
                tell(Severity::Error, about(value, &format!("charts.{name} must be a map of options")));
                good = false;
                continue;
            };
            if !entries.iter().any(|entry| is(&name, &entry.gvk)) {
                let known: Vec<String> = entries.iter().map(|entry| entry.gvk.kind_group()).collect();
                let near = nearest(&name, known.iter().map(String::as_str));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                let message = format!("charts.{name}: watches.yaml has no entry of that kind");
                let Wrong { line, column, .. } = about(key, "");
                tell(Severity::Warning, Wrong { line, column, message, hint });
            }
            for (option, _) in options {
                let found = option.to_text().unwrap_or_default();
                if !chart_options::KEYS.contains(&found.as_str()) || found == "status" {
                    let near = nearest(&found, chart_options::KEYS);
                    let mut hint = near.map(|near| format!("did you mean `{near}`?"));
                    let Wrong { line, column, .. } = about(option, "");
                    let mut message = format!("unknown option `{found}` of charts.{name} has no effect");
                    if watches::KEYS.iter().any(|key| key.eq_ignore_ascii_case(&found)) {
                        message =
                            format!("`{found}` has no effect here: it belongs to the entry in watches.yaml");
                        hint = Some(format!("move it to the entry of {name} in watches.yaml"));
                    }
                    tell(Severity::Warning, Wrong { line, column, message, hint });
                }
            }
            match ChartOptions::read(value) {
                Ok(options) => settings.kinds.push((name, options)),
                Err(wrong) => {
                    tell(Severity::Error, wrong);
                    good = false;
                }
            }
        }
        good.then_some(settings)
    }

    /// The options of an entry of `watches.yaml`: what is said here comes first.
    pub(super) fn of(&self, entry: &Entry) -> ChartOptions {
        let own = self.kinds.iter().rev().find(|(name, _)| is(name, &entry.gvk));
        let own = own.map(|(_, options)| options.clone()).unwrap_or_default();
        let base = ChartOptions { engine: self.engine, ..ChartOptions::default() };
        own.over(&entry.options).over(&base)
    }
}

/// Returns true if a name stands for a kind: `Kind.group`, or the kind alone.
fn is(name: &str, gvk: &Gvk) -> bool {
    name == gvk.kind_group() || name == gvk.kind
}

fn about(node: &Node, message: &str) -> Wrong {
    Wrong { line: node.line, column: node.column, message: message.to_owned(), hint: None }
}
