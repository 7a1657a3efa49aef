//! `opdev.yaml`: optional and small. Unknown keys are warned about with a suggestion, never fatal.

use opdev_event::{Diagnostic, OnExit, Place, Severity};
use opdev_findings::Ignored;
use opdev_os::read;
use opdev_sources::on_save::OnSave;

use anyhow::{Context as _, Result, anyhow};
use opdev_object::spelling::nearest;
use opdev_object::yaml;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

/// The settings in `opdev.yaml`; every field is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// The path of `watches.yaml`.
    pub watches: Option<String>,
    /// Files or folders with type files or CRD YAML.
    pub types: Option<Vec<String>>,
    /// The script or the folder of templates that reconciles a kind, by the kind.
    pub reconcilers: BTreeMap<String, String>,
    /// The parts of the outside world that reconcilers may reach.
    pub allow: Allow,
    /// Where objects of a kind say how many replicas they want, such as `.spec.size`, by the kind.
    pub scale: BTreeMap<String, String>,
    /// Files or folders with samples.
    pub samples: Option<Vec<String>>,
    /// The namespace that objects without one go to.
    pub namespace: Option<String>,
    /// Samples that are applied at every start.
    pub apply_on_start: Vec<String>,
    /// The outcome for custom resources on a cluster that lives on: `leave`, `uninstall` or `release`.
    pub on_exit: Option<OnExit>,
    /// The watching of files, and the effect of a saved chart.
    pub reload: Reload,
    /// How much history is kept in memory, such as `64Mi`.
    pub history: Option<String>,
    /// The version of Kubernetes that the embedded control plane is, such as `1.36`.
    pub kubernetes: Option<String>,
    /// True if the simulated pods of the embedded control plane wait for what they name.
    pub strict_pods: bool,
    /// Findings that are not told, and whether opdev tries out what it suspects.
    pub findings: FindingSettings,
    /// The differences that `opdev torture` leaves out.
    pub torture: TortureSettings,
    /// The operator's own programs.
    pub operator: Option<crate::program::settings::Programs>,
    /// How releases of charts are made, by kind; read with every load in `sources`.
    pub charts: BTreeMap<String, Value>,
}

/// Findings that are not told, and whether opdev tries out what it suspects.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct FindingSettings {
    /// Each with a reason.
    pub ignore: Vec<IgnoredFinding>,
    /// False if opdev asks for no reconcile of its own to find out whether a change was missed.
    pub experiments: Option<bool>,
}

/// The differences that `opdev torture` leaves out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct TortureSettings {
    /// Each with a reason.
    pub ignore: Vec<IgnoredDifference>,
}

/// A difference that is no fault.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoredDifference {
    /// `KIND/NAME PATH`, as `opdev torture --ignore` takes it.
    pub what: String,
    /// Why it is no fault.
    pub because: String,
}

/// A finding that is not told.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoredFinding {
    /// The rule.
    pub rule: String,
    /// The only kind that is meant.
    #[serde(default)]
    pub kind: String,
    /// The only object that is meant.
    #[serde(default)]
    pub name: String,
    /// The only field that is meant.
    #[serde(default)]
    pub field: String,
    /// Why it is no fault.
    pub because: String,
}

/// The least history that is of use.
const LEAST: usize = 1 << 20;

/// Why a text does not say how much history is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BytesError {
    /// It is no number of bytes.
    NoNumber(String),
    /// It is less than is of use.
    TooFew(String),
}

impl fmt::Display for BytesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BytesError::NoNumber(text) => write!(f, "`{text}` is no number of bytes such as 64Mi"),
            BytesError::TooFew(text) => write!(f, "{text} is less than 1Mi, the least that is of use"),
        }
    }
}

impl std::error::Error for BytesError {}

/// A number of bytes such as `64Mi`, at least a mebibyte.
///
/// # Errors
/// Where it is none, or too small a one.
pub fn bytes(text: &str) -> Result<usize, BytesError> {
    let wrong = || BytesError::NoNumber(text.to_owned());
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: usize = match &text[end..] {
        "" => 1,
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: usize = text[..end].parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(unit).ok_or_else(wrong)?;
    if bytes < LEAST { Err(BytesError::TooFew(text.to_owned())) } else { Ok(bytes) }
}

/// The parts of the outside world that reconcilers may reach; nothing unless it is named here.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Allow {
    /// Hosts for `fetch` of scripts, and for schemas that a chart's `values.schema.json` refers to.
    pub hosts: Vec<String>,
    /// Programs for `exec`.
    pub programs: Vec<String>,
}

/// The watching of files, and the effect of a saved chart.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Reload {
    /// Milliseconds of quiet before a change is read. Default 20.
    pub debounce: Option<u64>,
    /// True to look at the files twice a second rather than to listen to the kernel.
    pub poll: bool,
    /// The effect of a saved chart on the deployed revision: `rewrite` or `upgrade`. `reload: upgrade` says
    /// the same. Without it the hooks decide.
    #[serde(deserialize_with = "on_save")]
    pub release: Option<OnSave>,
}

/// The effect of a saved chart, by its word.
fn on_save_of(word: &str) -> Option<OnSave> {
    match word {
        "rewrite" => Some(OnSave::Rewrite),
        "upgrade" => Some(OnSave::Upgrade),
        _ => None,
    }
}

fn on_save<'de, D: Deserializer<'de>>(from: D) -> Result<Option<OnSave>, D::Error> {
    let word = String::deserialize(from)?;
    on_save_of(&word).map(Some).ok_or_else(|| D::Error::custom(unknown_on_save(&word)))
}

fn unknown_on_save(word: &str) -> String {
    let near = nearest(word, ["rewrite", "upgrade"]);
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    format!("`{word}` is not known for reload; use `rewrite` or `upgrade`{near}")
}

/// `reload` as a map, which also holds what `reload: upgrade` says in short; an error names its place.
fn reload_as_map(file: &str, text: &str, settings: &mut Value) -> Result<()> {
    let root = yaml::parse(text).map_err(|error| anyhow!("{}", error.in_file(file)))?;
    let Some(reload) = root.get("reload") else { return Ok(()) };
    let node = if reload.as_str().is_some() { Some(reload) } else { reload.get("release") };
    let Some((node, word)) = node.and_then(|node| Some((node, node.to_text()?))) else { return Ok(()) };
    if on_save_of(&word).is_none() {
        return Err(anyhow!("{file}:{}:{}: {}", node.line, node.column, unknown_on_save(&word)));
    }
    if reload.as_str().is_some() {
        opdev_object::meta::put(settings, &["reload"], json!({"release": word}));
    }
    Ok(())
}

impl Reload {
    /// The quiet time before a change is read.
    pub fn quiet(&self) -> Duration {
        Duration::from_millis(self.debounce.unwrap_or(20).min(5_000))
    }
}

const KEYS: [&str; 21] = [
    "charts",
    "watches",
    "types",
    "reconcilers",
    "allow",
    "scale",
    "samples",
    "namespace",
    "applyOnStart",
    "onExit",
    "reload",
    "history",
    "kubernetes",
    "strictPods",
    "findings",
    "torture",
    "operator",
    // Read by `preferences`.
    "theme",
    "keys",
    "mouse",
    "glyphs",
];
/// The keys under `operator`.
const OPERATOR: [&str; 12] = [
    "command",
    "go",
    "build",
    "watch",
    "dir",
    "env",
    "args",
    "trace",
    "generate",
    "stopAfter",
    "vet",
    "kinds",
];
const LATER: [&str; 2] = ["log", "embedded"];

impl Settings {
    /// The findings that are not told.
    pub fn ignored(&self) -> Vec<Ignored> {
        let one = |of: &IgnoredFinding| Ignored {
            rule: of.rule.clone(),
            kind: of.kind.clone(),
            name: of.name.clone(),
            field: of.field.clone(),
        };
        self.findings.ignore.iter().map(one).collect()
    }

    /// Reads `file` below `root`.
    ///
    /// # Errors
    /// Where it cannot be read, is no YAML, or a known key has a value of another type.
    pub fn read(root: &Path, file: &str) -> Result<(Settings, Vec<Diagnostic>)> {
        let text = read::text(root.join(file)).with_context(|| format!("{file} cannot be read"))?;
        let mut node = yaml::from_str(&text).map_err(|error| anyhow!("{}", error.in_file(file)))?;
        if node.is_null() {
            return Ok((Settings::default(), Vec::new()));
        }
        let map = node.as_object().with_context(|| format!("{file} must be a map of settings"))?;
        let mut diagnostics: Vec<Diagnostic> =
            map.keys().filter_map(|key| unknown_key(file, &text, key)).collect();
        let programs = map.get("operator").into_iter().flat_map(|operator| match operator.as_array() {
            Some(several) => several.iter().collect(),
            None => vec![operator],
        });
        let below = programs.filter_map(|program| program.as_object()).flat_map(|program| program.keys());
        diagnostics.extend(below.filter_map(|key| unknown_below(file, &text, ("operator", key), &OPERATOR)));
        reload_as_map(file, &text, &mut node)?;
        let settings: Settings = serde_path_to_error::deserialize(node).map_err(|error| {
            let key = error.path().to_string();
            let first = key.split(['.', '[']).next().unwrap_or_default();
            let line = line_of(&text, first);
            anyhow!("{file}:{line}:1: `{key}` has a value of a wrong type: {}", error.into_inner())
        })?;
        if let Some(Err(why)) = settings.history.as_deref().map(bytes) {
            let line = line_of(&text, "history");
            return Err(anyhow!("{file}:{line}:1: `history`: {why}"));
        }
        for ignored in &settings.findings.ignore {
            let line = line_of(&text, "findings");
            if opdev_findings::rule(&ignored.rule).is_none() {
                let near = nearest(&ignored.rule, opdev_findings::RULES.iter().map(|rule| rule.id));
                let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
                return Err(anyhow!(
                    "{file}:{line}:1: `findings`: no rule is called `{}`{near}",
                    ignored.rule
                ));
            }
            if ignored.because.trim().is_empty() {
                let rule = &ignored.rule;
                return Err(anyhow!(
                    "{file}:{line}:1: `findings`: say with `because` why `{rule}` is ignored"
                ));
            }
        }
        if let Some(one) = settings.torture.ignore.iter().find(|one| one.because.trim().is_empty()) {
            let line = line_of(&text, "torture");
            let what = &one.what;
            return Err(anyhow!("{file}:{line}:1: `torture`: say with `because` why `{what}` is ignored"));
        }
        Ok((settings, diagnostics))
    }
}

/// The line with a key of the top level, counted from 1; 0 where none begins with it.
fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.starts_with(key)).map_or(0, |at| at + 1)
}

fn unknown_key(file: &str, text: &str, key: &str) -> Option<Diagnostic> {
    if KEYS.contains(&key) {
        return None;
    }
    let line = line_of(text, key);
    let (message, hint) = if key == "allowContexts" {
        // It may come from anybody, and would let its author choose the cluster that the user's credentials
        // write to.
        let hint = "start opdev with --allow-context NAME, or add allowContexts to your own ~/.config/opdev/config.yaml";
        (format!("the setting `{key}` of a project has no effect"), Some(hint.to_owned()))
    } else if LATER.contains(&key) {
        (format!("the setting `{key}` has no effect yet"), None)
    } else {
        let hint = nearest(key, KEYS).map(|near| format!("did you mean `{near}`?"));
        (format!("unknown setting `{key}`"), hint)
    };
    Some(warning(file, (line, 1), message, hint))
}

/// A key of a part that has no such key.
fn unknown_below(file: &str, text: &str, (part, key): (&str, &str), known: &[&str]) -> Option<Diagnostic> {
    if known.contains(&key) {
        return None;
    }
    let mut lines = text.lines().enumerate().skip_while(|(_, line)| !line.starts_with(part));
    let found = lines.find(|(_, line)| line.trim_start().starts_with(key));
    let place = found.map_or((0, 0), |(at, line)| (at + 1, line.len() - line.trim_start().len() + 1));
    let hint = nearest(key, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    Some(warning(file, place, format!("unknown setting `{part}.{key}`"), hint))
}

fn warning(file: &str, (line, column): (usize, usize), message: String, hint: Option<String>) -> Diagnostic {
    let number = |number: usize| u32::try_from(number).unwrap_or(0);
    Diagnostic {
        severity: Severity::Warning,
        message,
        place: Some(Place { file: file.to_owned(), line: number(line), column: number(column) }),
        excerpt: None,
        hint,
        kind: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_named_with_line_and_suggestion() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("opdev.yaml"),
            "namespace: dev\nsample: [a]\ntheme: dark\nlog: 3\noperator:\n  comand: [a]\n",
        )
        .unwrap();
        let (settings, warnings) = Settings::read(folder.path(), "opdev.yaml").unwrap();
        assert_eq!(settings.namespace.as_deref(), Some("dev"));
        assert_eq!(warnings.len(), 3);
        assert_eq!(warnings[0].message, "the setting `log` has no effect yet");
        assert_eq!(warnings[1].message, "unknown setting `sample`");
        assert_eq!(warnings[1].hint.as_deref(), Some("did you mean `samples`?"));
        assert_eq!(warnings[1].place.as_ref().unwrap().to_string(), "opdev.yaml:2:1");
        assert_eq!(warnings[2].message, "unknown setting `operator.comand`");
        assert_eq!(warnings[2].hint.as_deref(), Some("did you mean `command`?"));
        assert_eq!(warnings[2].place.as_ref().unwrap().to_string(), "opdev.yaml:6:3");
    }

    #[test]
    fn a_value_of_a_wrong_type_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let error = |text: &str| {
            std::fs::write(folder.path().join("opdev.yaml"), text).unwrap();
            format!("{:#}", Settings::read(folder.path(), "opdev.yaml").unwrap_err())
        };
        let said = error("namespace: dev\nhistory: 3\n");
        let wanted = "opdev.yaml:2:1: `history` has a value of a wrong type: invalid type: integer `3`, expected a string";
        assert_eq!(said, wanted);
        let said = error("operator:\n  args: [a, {b: c}]\n");
        assert!(said.starts_with("opdev.yaml:1:1: `operator.args[1]` has a value of a wrong type"), "{said}");
    }

    #[test]
    fn how_much_history_is_kept_is_a_number_of_bytes() {
        assert_eq!(
            (bytes("64Mi"), bytes("2000000"), bytes("3M")),
            (Ok(64 << 20), Ok(2_000_000), Ok(3_000_000))
        );
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("opdev.yaml"), text).unwrap();
            Settings::read(folder.path(), "opdev.yaml").map(|(settings, _)| settings.history)
        };
        assert_eq!(read("history: 2Gi\n").unwrap().as_deref(), Some("2Gi"));
        let wrong = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            wrong("namespace: a\nhistory: lots\n"),
            "opdev.yaml:2:1: `history`: `lots` is no number of bytes such as 64Mi"
        );
        assert_eq!(
            wrong("history: 5k\n"),
            "opdev.yaml:1:1: `history`: 5k is less than 1Mi, the least that is of use"
        );
    }

    #[test]
    fn what_a_saved_chart_does_is_said_in_short_or_in_long() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(folder.path().join("opdev.yaml"), text).unwrap();
            Settings::read(folder.path(), "opdev.yaml").map(|(settings, _)| settings.reload)
        };
        assert_eq!(read("reload: upgrade\n").unwrap().release, Some(OnSave::Upgrade));
        assert_eq!(read("reload: {release: rewrite}\n").unwrap().release, Some(OnSave::Rewrite));
        let both = read("reload:\n  poll: true\n  release: upgrade\n").unwrap();
        assert_eq!((both.release, both.poll), (Some(OnSave::Upgrade), true));
        assert_eq!(read("reload: {poll: true}\n").unwrap().release, None);
        assert_eq!(
            read("namespace: a\nreload: upgarde\n").unwrap_err().to_string(),
            "opdev.yaml:2:9: `upgarde` is not known for reload; use `rewrite` or `upgrade`; did you mean `upgrade`?"
        );
        let wrong = read("reload:\n  release: 3\n").unwrap_err().to_string();
        assert!(wrong.starts_with("opdev.yaml:2:12: `3` is not known for reload"), "{wrong}");
    }

    /// A value of the type that a part of the schema says.
    fn example(schema: &serde_json::Value) -> serde_json::Value {
        // The last one of several forms is the long one.
        if let Some(ways) = schema["oneOf"].as_array() {
            return example(ways.last().unwrap());
        }
        if let Some(one) = schema["enum"].get(0) {
            return one.clone();
        }
        match schema["type"].as_str() {
            Some("string") => json!("a"),
            Some("boolean") => json!(true),
            Some("integer") => schema["maximum"].clone(),
            Some("array") => json!([example(&schema["items"])]),
            _ if schema["additionalProperties"].is_object() => {
                json!({"a": example(&schema["additionalProperties"])})
            }
            _ => {
                let properties = schema["properties"].as_object().into_iter().flatten();
                properties.map(|(name, schema)| (name.clone(), example(schema))).collect()
            }
        }
    }

    #[test]
    fn the_schema_says_what_the_reader_takes() {
        let schema: Value = serde_json::from_str(
            &std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/opdev.schema.json"))
                .unwrap(),
        )
        .unwrap();
        let named: BTreeMap<&String, &Value> = schema["properties"].as_object().unwrap().iter().collect();
        let keys: std::collections::BTreeSet<&str> = KEYS.into_iter().collect();
        assert!(named.keys().map(|name| name.as_str()).eq(keys), "{:?}", named.keys());
        let settings: Settings = serde_json::from_value(example(&schema)).unwrap();
        let told = format!("{settings:?}");
        assert_eq!((settings.reload.debounce, settings.reload.poll), (Some(5000), true));
        assert!(!told.contains("None") && !told.contains("[]") && !told.contains("{}"), "{told}");
        // The reader refuses whatever the schema refuses.
        for (name, _) in
            named.iter().filter(|(name, _)| !matches!(name.as_str(), "theme" | "keys" | "mouse" | "glyphs"))
        {
            let mut wrong = json!({});
            wrong[name.as_str()] = json!(1);
            assert!(serde_json::from_value::<Settings>(wrong).is_err(), "{name}");
        }
        let below: std::collections::BTreeSet<&str> = OPERATOR.into_iter().collect();
        let operator = schema["properties"]["operator"]["oneOf"][1]["properties"].as_object().unwrap();
        assert!(operator.keys().map(String::as_str).eq(below));
        for part in ["allow", "reload"] {
            let part_schema = &schema["properties"][part];
            let long = part_schema["oneOf"].get(1).unwrap_or(part_schema);
            for name in long["properties"].as_object().unwrap().keys() {
                let mut wrong = json!({});
                wrong[part][name] = json!("text");
                assert!(serde_json::from_value::<Settings>(wrong).is_err(), "{part}.{name}");
            }
        }
    }
}
