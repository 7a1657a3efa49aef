//! `watches.yaml`, read as the Operator SDK reads it, with a place for everything that is wrong.
//! Upstream ignores unknown keys; here they are warned about.

use super::chart_options::{self, ChartOptions};
use super::overrides;
use opdev_event::{Diagnostic, Permission, Place, Severity};
use opdev_object::go::duration;
use opdev_object::meta::Gvk;
use opdev_object::selector::LabelSelector;
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Kind, Node};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// `watches.yaml` as it was read at one moment, parsed once.
#[derive(Debug)]
pub struct WatchesFile {
    pub(super) path: String,
    /// The text, or why it cannot be read.
    pub(super) text: io::Result<String>,
    /// The entries that are right; `None` where the file as a whole says none.
    pub(super) entries: Option<Vec<Entry>>,
    /// The errors and warnings about the others.
    pub(super) problems: Vec<Diagnostic>,
}

impl WatchesFile {
    /// Parses what was read. A project without the file has an empty text.
    pub fn of(path: String, text: io::Result<String>) -> WatchesFile {
        let (entries, problems) = match &text {
            Ok(text) => read(&path, text),
            Err(why) => {
                let mut reader = Reader { file: &path, diagnostics: Vec::new() };
                let place = Place { file: path.clone(), line: 0, column: 0 };
                reader.report(Severity::Error, place, format!("{path} cannot be read: {why}"), None);
                (None, reader.diagnostics)
            }
        };
        WatchesFile { path, text, entries, problems }
    }

    /// The chart folders that it names.
    pub fn charts(&self) -> Vec<String> {
        self.entries.iter().flatten().map(|entry| entry.chart.clone()).collect()
    }

    /// The variables of the environment that it wants, each with the kind and the value it goes into.
    pub fn variables(&self) -> Vec<Permission> {
        self.entries.iter().flatten().flat_map(Entry::variables).collect()
    }
}

/// One entry as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) gvk: Gvk,
    pub(crate) chart: String,
    pub(crate) watch_dependents: bool,
    pub(crate) overrides: BTreeMap<String, String>,
    pub(crate) reconcile_period: Option<Duration>,
    pub(crate) selector: Value,
    pub(crate) dry_run_option: String,
    pub(crate) max_concurrent: Option<usize>,
    /// The options of its release.
    pub(crate) options: ChartOptions,
    /// Where the entry begins.
    pub(crate) place: Place,
    /// Where its chart is named.
    pub(crate) chart_place: Place,
}

impl Entry {
    pub(super) fn variables(&self) -> Vec<Permission> {
        let of_value = |(key, value): (&String, &String)| {
            let permission = |variable| Permission::ReadVariable {
                variable,
                kind: self.gvk.kind_group(),
                key: key.clone(),
            };
            overrides::named(value).into_iter().map(permission).collect::<Vec<_>>()
        };
        self.overrides.iter().flat_map(of_value).collect()
    }
}

/// The keys of an entry, beside the options of charts.
pub(super) const KEYS: [&str; 10] = [
    "group",
    "version",
    "kind",
    "chart",
    "watchDependentResources",
    "overrideValues",
    "reconcilePeriod",
    "selector",
    "dryRunOption",
    "maxConcurrentReconciles",
];

/// Reads the file. The entries that are right come back beside the problems of those that are not; `None`
/// where the file as a whole cannot be read.
pub(crate) fn read(file: &str, text: &str) -> (Option<Vec<Entry>>, Vec<Diagnostic>) {
    let mut reader = Reader { file, diagnostics: Vec::new() };
    let root = match yaml::parse(text) {
        Ok(root) => root,
        Err(error) => {
            let place = Place { file: file.to_owned(), line: error.line, column: error.column };
            reader.report(Severity::Error, place, error.message, None);
            return (None, reader.diagnostics);
        }
    };
    match &root.kind {
        Kind::Null => return (Some(Vec::new()), reader.diagnostics),
        Kind::Sequence(_) => {}
        _ => {
            let hint = "begin each kind with `- group: …`".to_owned();
            reader.error(&root, "watches.yaml must be a list of kinds".to_owned(), Some(hint));
            return (None, reader.diagnostics);
        }
    }
    let mut entries: Vec<Entry> = Vec::new();
    for node in root.items() {
        let Some(entry) = reader.entry(node) else { continue };
        if let Some(twin) = entries.iter().find(|other| {
            other.gvk.kind.eq_ignore_ascii_case(&entry.gvk.kind) && other.gvk.group == entry.gvk.group
        }) {
            let (message, hint) = if twin.gvk == entry.gvk {
                (format!("duplicate GVK: {}", entry.gvk), "remove one of the two entries")
            } else {
                (
                    format!(
                        "{} is listed at two versions, {} and {}: both charts would fight over one release",
                        entry.gvk.kind_group(),
                        twin.gvk.version,
                        entry.gvk.version
                    ),
                    "keep the version that the CRD stores",
                )
            };
            reader.error(
                node,
                message,
                Some(format!("{hint}; the first one, at line {}, serves", twin.place.line)),
            );
            continue;
        }
        entries.push(entry);
    }
    (Some(entries), reader.diagnostics)
}

struct Reader<'a> {
    file: &'a str,
    diagnostics: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn place(&self, node: &Node) -> Place {
        Place { file: self.file.to_owned(), line: node.line, column: node.column }
    }

    fn report(&mut self, severity: Severity, place: Place, message: String, hint: Option<String>) {
        self.diagnostics.push(Diagnostic {
            severity,
            message,
            place: Some(place),
            excerpt: None,
            hint,
            kind: None,
        });
    }

    fn error(&mut self, node: &Node, message: String, hint: Option<String>) {
        self.report(Severity::Error, self.place(node), message, hint);
    }

    fn entry(&mut self, node: &Node) -> Option<Entry> {
        let Kind::Mapping(pairs) = &node.kind else {
            self.error(node, "an entry must be a map with group, version, kind and chart".to_owned(), None);
            return None;
        };
        for (key, _) in pairs {
            let name = key.as_str().unwrap_or_default();
            let known = KEYS.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !known && !chart_options::KEYS.contains(&name) {
                let hint = nearest(name, KEYS.into_iter().chain(chart_options::KEYS))
                    .map(|near| format!("did you mean `{near}`?"));
                let message = format!("unknown key `{name}` has no effect");
                self.report(Severity::Warning, self.place(key), message, hint);
            }
        }
        let field = |name: &str| {
            let found = pairs
                .iter()
                .rev()
                .find(|(key, _)| key.as_str().is_some_and(|k| k.eq_ignore_ascii_case(name)));
            found.map(|(_, value)| value)
        };
        let text = |name: &str| field(name).and_then(Node::to_text).unwrap_or_default();
        let gvk = Gvk::new(text("group"), text("version"), text("kind"));
        for (name, value) in [("version", &gvk.version), ("kind", &gvk.kind), ("chart", &text("chart"))] {
            if value.is_empty() {
                self.error(node, format!("invalid GVK: {gvk}: {name} must not be empty"), None);
                return None;
            }
        }
        let reconcile_period = match field("reconcilePeriod").and_then(|node| Some((node, node.to_text()?))) {
            None => None,
            Some((at, text)) => match duration::non_negative(&text) {
                Ok(period) => Some(period),
                Err(_) => {
                    let hint = Some("write a Go duration such as 30s, 1m or 1h2m4s".to_owned());
                    self.error(at, format!("reconcilePeriod {text:?} is no duration"), hint);
                    return None;
                }
            },
        };
        let options = match ChartOptions::read(node) {
            Ok(options) => options,
            Err(wrong) => {
                let place = Place { file: self.file.to_owned(), line: wrong.line, column: wrong.column };
                self.report(Severity::Error, place, wrong.message, wrong.hint);
                return None;
            }
        };
        Some(Entry {
            options,
            chart: text("chart"),
            watch_dependents: field("watchDependentResources")
                .is_none_or(|node| node.kind != Kind::Bool(false)),
            overrides: self.overrides(field("overrideValues"))?,
            reconcile_period: reconcile_period.filter(|period| !period.is_zero()),
            selector: self.selector(field("selector"))?,
            dry_run_option: text("dryRunOption"),
            max_concurrent: self.most_at_once(field("maxConcurrentReconciles")),
            place: self.place(node),
            chart_place: field("chart").map_or_else(|| self.place(node), |node| self.place(node)),
            gvk,
        })
    }

    /// A number that makes no sense is said, and the operator's own counts.
    fn most_at_once(&mut self, node: Option<&Node>) -> Option<usize> {
        let node = node.filter(|node| node.kind != Kind::Null)?;
        let found = node.to_text().and_then(|text| text.parse().ok()).filter(|limit| *limit > 0);
        if found.is_none() {
            let message = "maxConcurrentReconciles has no effect: it is no whole number above 0".to_owned();
            let hint = Some("an operator of helm-operator-plugins refuses to start with it".to_owned());
            self.report(Severity::Warning, self.place(node), message, hint);
        }
        found
    }

    fn selector(&mut self, node: Option<&Node>) -> Option<Value> {
        let Some(node) = node.filter(|node| node.kind != Kind::Null) else { return Some(Value::Null) };
        let is = |name: &str, fits: fn(&Kind) -> bool| {
            node.get(name).is_none_or(|part| part.kind == Kind::Null || fits(&part.kind))
        };
        let is_shaped = matches!(node.kind, Kind::Mapping(_))
            && is("matchLabels", |kind| matches!(kind, Kind::Mapping(_)))
            && is("matchExpressions", |kind| matches!(kind, Kind::Sequence(_)));
        let read = yaml::to_json(node).ok().filter(|_| is_shaped);
        let Some(selector) = read else {
            let hint = Some("such as `selector: {matchLabels: {app: web}}`".to_owned());
            self.error(node, "selector must be a map with matchLabels or matchExpressions".to_owned(), hint);
            return None;
        };
        if let Err(why) = LabelSelector::from_json(&selector) {
            self.error(node, format!("selector: {why}"), None);
            return None;
        }
        Some(selector)
    }

    fn overrides(&mut self, node: Option<&Node>) -> Option<BTreeMap<String, String>> {
        let mut overrides = BTreeMap::new();
        let Some(node) = node else { return Some(overrides) };
        let Kind::Mapping(pairs) = &node.kind else {
            self.error(node, "overrideValues must be a map".to_owned(), None);
            return None;
        };
        for (key, value) in pairs {
            let name = key.to_text().unwrap_or_default();
            let text = match &value.kind {
                Kind::Sequence(_) | Kind::Mapping(_) => {
                    let hint = Some(format!("name each value below it: `{name}.…: \"…\"`"));
                    self.error(value, format!("the override value of {name} is a list or a map"), hint);
                    return None;
                }
                Kind::Null => String::new(),
                // The text that Go gives a field of type string: `010` is 8 and `yes` is true, unless it is
                // quoted.
                Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) | Kind::String(_) => {
                    value.to_text().unwrap_or_default()
                }
            };
            overrides.insert(name, text);
        }
        Some(overrides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let (_, diagnostics) = read("watches.yaml", text);
        diagnostics
            .iter()
            .map(|one| {
                format!("{} {}", one.place.as_ref().map(ToString::to_string).unwrap_or_default(), one.message)
            })
            .collect()
    }

    const GOOD: &str = "- group: a.b\n  version: v1\n  kind: A\n  chart: charts/a\n";

    #[test]
    fn a_full_entry() {
        let text = "- Group: a.b\n  version: v1\n  kind: A\n  chart: charts/a\n  reconcilePeriod: 1m30s\n  \
                    watchDependentResources: false\n  overrideValues: {image.tag: $TAG}\n  \
                    selector: {matchLabels: {x: z}}\n";
        let (entries, diagnostics) = read("watches.yaml", text);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let entry = &entries.unwrap()[0];
        assert_eq!(entry.gvk, Gvk::new("a.b", "v1", "A"));
        assert_eq!(entry.reconcile_period, Some(Duration::from_secs(90)));
        assert!(!entry.watch_dependents);
        assert_eq!(entry.overrides["image.tag"], "$TAG");
        assert_eq!(entry.selector["matchLabels"]["x"], "z");
    }

    #[test]
    fn override_values_take_any_scalar_as_go_does() {
        let text = "  overrideValues:\n    a: false\n    b: 3\n    c: 1.50\n    d: 010\n    e: yes\n    f: null\n    \
                    g: 1000000.0\n    h: 'yes'\n    i: 2001-01-01\n    j:\n    k: 0x1F\n    l: -0\n";
        let (entries, diagnostics) = read("watches.yaml", &format!("{GOOD}{text}"));
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let found: Vec<String> =
            entries.unwrap()[0].overrides.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            found,
            [
                "a=false",
                "b=3",
                "c=1.5",
                "d=8",
                "e=true",
                "f=",
                "g=1e+06",
                "h=yes",
                "i=2001-01-01",
                "j=",
                "k=31",
                "l=0"
            ]
        );
        assert_eq!(
            problems(&format!("{GOOD}  overrideValues: {{a: [x]}}\n")),
            ["watches.yaml:5:23 the override value of a is a list or a map"]
        );
        assert_eq!(
            problems(&format!("{GOOD}  overrideValues: [x]\n")),
            ["watches.yaml:5:19 overrideValues must be a map"]
        );
    }

    #[test]
    fn problems_have_places() {
        assert_eq!(
            problems("- group: a\n  version: v1\n  chart: x\n")[0],
            "watches.yaml:1:3 invalid GVK: a/v1, Kind=: kind must not be empty"
        );
        assert_eq!(
            problems(&format!("{GOOD}  chrat: x\n")),
            ["watches.yaml:5:3 unknown key `chrat` has no effect"]
        );
        assert_eq!(problems(&format!("{GOOD}{GOOD}")), ["watches.yaml:5:3 duplicate GVK: a.b/v1, Kind=A"]);
        assert_eq!(
            problems(&format!("{GOOD}  maxConcurrentReconciles: abc\n")),
            ["watches.yaml:5:28 maxConcurrentReconciles has no effect: it is no whole number above 0"]
        );
        for selector in ["3", "[a]", "{matchLabels: [a]}", "{matchExpressions: {a: b}}"] {
            assert_eq!(
                problems(&format!("{GOOD}  selector: {selector}\n")),
                ["watches.yaml:5:13 selector must be a map with matchLabels or matchExpressions"]
            );
        }
        assert_eq!(
            problems(&format!("{GOOD}  selector: {{matchExpressions: [{{key: a, operator: Is}}]}}\n")),
            ["watches.yaml:5:13 selector: \"Is\" is not a valid label selector operator"]
        );
        for fine in ["maxConcurrentReconciles: 3", "maxConcurrentReconciles:", "selector:", "selector: {}"] {
            assert!(problems(&format!("{GOOD}  {fine}\n")).is_empty(), "{fine}");
        }
        assert_eq!(problems("a: b\n"), ["watches.yaml:1:1 watches.yaml must be a list of kinds"]);
        assert!(problems("- group: [\n")[0].starts_with("watches.yaml:"));
    }
}
