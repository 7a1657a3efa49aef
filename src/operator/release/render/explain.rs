//! Why a chart says something else each time it is rendered from the same input: the lines that differ, the
//! templates they come from, and the function or value in there that is the likely cause. Pure.

use crate::objects;
use opdev_helm::chart::Chart;
use opdev_helm::engine::ReleaseRead;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Functions and values that need not be the same the next time.
const SUSPECTS: [&str; 23] = [
    "randAlphaNum",
    "randAlpha",
    "randNumeric",
    "randAscii",
    "randBytes",
    "randInt",
    "uuidv4",
    "shuffle",
    "genPrivateKey",
    "genCAWithKey",
    "genCA",
    "genSelfSignedCertWithKey",
    "genSelfSignedCert",
    "genSignedCertWithKey",
    "genSignedCert",
    "htpasswd",
    "bcrypt",
    "encryptAES",
    "now",
    "lookup",
    ".Release.Revision",
    ".Release.IsUpgrade",
    ".Release.IsInstall",
];
/// How many lines are named, and the longest of them.
const LINES: usize = 3;
const SHORT: usize = 60;

/// A line that differs, as part of the words for the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The template with the line that makes it, where one can be told: `templates/secret.yaml:7`.
    place: String,
    old: String,
    new: String,
    /// The likely cause.
    suspects: Vec<&'static str>,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: `{}` became `{}`", self.place, self.old, self.new)?;
        match self.suspects.as_slice() {
            [] => Ok(()),
            some => write!(f, " ({})", some.join(", ")),
        }
    }
}

/// The lines in which two manifests of one chart differ.
pub(crate) fn lines(chart: &Chart, old: &str, new: &str) -> Vec<Line> {
    let (old, new) = (by_template(old), by_template(new));
    let templates: BTreeSet<&str> = old.keys().chain(new.keys()).copied().collect();
    let none = Vec::new();
    let mut found = Vec::new();
    for template in templates {
        let (old, new) = (old.get(template).unwrap_or(&none), new.get(template).unwrap_or(&none));
        for at in 0..old.len().max(new.len()) {
            let (old, new) = (old.get(at).unwrap_or(&""), new.get(at).unwrap_or(&""));
            let secret = [old, new].iter().any(|text| text.lines().any(|line| line == "kind: Secret"));
            let (mut old, mut new) = (old.lines(), new.lines());
            while let pair @ ((Some(_), _) | (_, Some(_))) = (old.next(), new.next()) {
                if pair.0 != pair.1 {
                    found.push(line(chart, template, pair.0, pair.1, secret));
                }
                if found.len() == LINES {
                    return found;
                }
            }
        }
    }
    found
}

/// The keys of `.Release` that may have made two manifests differ, each once: those that templates with
/// different documents have read, or all that were read if none of these templates reads any.
pub(crate) fn blamed(reads: &[ReleaseRead], old: &str, new: &str) -> Vec<ReleaseRead> {
    if reads.is_empty() || old == new {
        return Vec::new();
    }
    let (old, new) = (by_template(old), by_template(new));
    let differs = |read: &&ReleaseRead| old.get(read.template.as_str()) != new.get(read.template.as_str());
    let mut found: Vec<ReleaseRead> = reads.iter().filter(differs).cloned().collect();
    if found.is_empty() {
        found = reads.to_vec();
    }
    let mut seen = HashSet::new();
    found.retain(|read| seen.insert(read.to_string()));
    found
}

/// The documents of a manifest by the template they come from.
fn by_template(manifest: &str) -> HashMap<&str, Vec<&str>> {
    let mut found: HashMap<&str, Vec<&str>> = HashMap::new();
    for (source, document) in objects::sources(manifest) {
        found.entry(source).or_default().push(document);
    }
    found
}

fn line(chart: &Chart, source: &str, old: Option<&str>, new: Option<&str>, secret: bool) -> Line {
    let short = |line: Option<&str>| {
        let Some(line) = line else { return "no line".to_owned() };
        let line = line.trim();
        match line.split_once(':') {
            Some((key, _)) if secret => format!("{key}: …"),
            None if secret => "…".to_owned(),
            _ => line.chars().take(SHORT).collect(),
        }
    };
    let path = source.split_once('/').map_or(source, |(_, path)| path).to_owned();
    let (at, mut suspects) = match template(chart, source) {
        Some(text) => blame(&text, new.or(old).unwrap_or_default()),
        None => (None, Vec::new()),
    };
    if suspects.is_empty() {
        // The template may include what makes the line.
        suspects = helpers(chart).iter().flat_map(|text| all_suspects(text)).collect();
        suspects.sort_unstable();
        suspects.dedup();
    }
    let place = match at {
        Some(at) => format!("{path}:{at}"),
        None if path.is_empty() => "a template".to_owned(),
        None => path,
    };
    Line { place, old: short(old), new: short(new), suspects }
}

/// The line of a template that most likely made an output line, and what in it, or else in the template, is
/// suspect.
fn blame(template: &str, output: &str) -> (Option<usize>, Vec<&'static str>) {
    let key = output.trim().split_once(':').map(|(key, _)| format!("{}:", key.trim_matches(['"', '\''])));
    let same_key = |line: &&str| {
        key.as_ref().is_some_and(|key| line.trim().trim_start_matches(['"', '\'']).starts_with(key.as_str()))
    };
    let with_suspect =
        template.lines().enumerate().find(|(_, line)| same_key(line) && !all_suspects(line).is_empty());
    if let Some((at, line)) = with_suspect {
        return (Some(at + 1), all_suspects(line));
    }
    let at = template.lines().position(|line| same_key(&line)).map(|at| at + 1);
    (at, all_suspects(template))
}

fn all_suspects(text: &str) -> Vec<&'static str> {
    let counts = |c: char| c.is_alphanumeric() || c == '_';
    let stands = |word: &str| {
        text.match_indices(word).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + word.len()..]);
            !before.ends_with(counts) && !after.starts_with(counts) && before.contains("{{")
        })
    };
    SUSPECTS.into_iter().filter(|word| stands(word)).collect()
}

/// The text of the template that a `# Source:` names: `web/charts/db/templates/a.yaml`.
fn template(chart: &Chart, source: &str) -> Option<String> {
    let (_, mut path) = source.split_once('/')?;
    let mut chart = chart;
    while let Some(rest) = path.strip_prefix("charts/") {
        let (name, below) = rest.split_once('/')?;
        chart = chart.subcharts.iter().find(|sub| sub.name() == name)?;
        path = below;
    }
    let file = chart.templates.iter().find(|file| file.name == path)?;
    Some(String::from_utf8_lossy(&file.data).into_owned())
}

/// The texts of templates that only others include.
fn helpers(chart: &Chart) -> Vec<String> {
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().starts_with('_');
    let own = chart.templates.iter().filter(|file| name(&file.name));
    let mut texts: Vec<String> = own.map(|file| String::from_utf8_lossy(&file.data).into_owned()).collect();
    texts.extend(chart.subcharts.iter().flat_map(|sub| helpers(sub)));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_helm::chart::FileSet;

    fn chart(files: &[(&str, &str)]) -> Chart {
        let about = "apiVersion: v2\nname: web\nversion: 0.1.0\n";
        let files: FileSet = [("Chart.yaml", about)]
            .into_iter()
            .chain(files.iter().copied())
            .map(|(path, text)| (path, text.as_bytes()))
            .collect();
        Chart::load(&files).unwrap()
    }

    fn words(chart: &Chart, old: &str, new: &str) -> String {
        lines(chart, old, new).iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_line_leads_to_its_template_and_function() {
        let text = "kind: ConfigMap\ndata:\n  at: {{ now | date \"15:04\" }}\n  nowhere: {{ .Values.x }}\n  id: {{ uuidv4 }}\n";
        let chart = chart(&[("templates/all.yaml", text)]);
        let made = |at: &str, id: &str| {
            format!(
                "---\n# Source: web/templates/all.yaml\nkind: ConfigMap\ndata:\n  at: {at}\n  nowhere: 1\n  id: {id}\n"
            )
        };
        assert_eq!(
            words(&chart, &made("10:00", "a"), &made("10:01", "b")),
            "templates/all.yaml:3: `at: 10:00` became `at: 10:01` (now); templates/all.yaml:5: `id: a` became `id: b` (uuidv4)"
        );
        assert!(lines(&chart, &made("1", "2"), &made("1", "2")).is_empty());
    }

    #[test]
    fn values_of_secrets_stay_out_and_helpers_are_searched() {
        let files = [
            ("templates/secret.yaml", "kind: Secret\nstringData:\n  password: {{ include \"pass\" . }}\n"),
            ("templates/_pass.tpl", "{{ define \"pass\" }}{{ randAlphaNum 20 }}{{ end }}"),
        ];
        let made = |word: &str| {
            format!(
                "---\n# Source: web/templates/secret.yaml\nkind: Secret\nstringData:\n  password: {word}\n"
            )
        };
        assert_eq!(
            words(&chart(&files), &made("hunter2"), &made("hunter3")),
            "templates/secret.yaml:3: `password: …` became `password: …` (randAlphaNum)"
        );
    }

    #[test]
    fn documents_that_come_and_go_are_lines_too() {
        let chart = chart(&[("templates/a.yaml", "{{ if .Release.IsUpgrade }}a: 1{{ end }}")]);
        let new = "---\n# Source: web/templates/a.yaml\na: 1\n";
        let found = words(&chart, "", new);
        expect!["templates/a.yaml: `no line` became `# Source: web/templates/a.yaml` (.Release.IsUpgrade); templates/a.yaml: `no line` became `a: 1` (.Release.IsUpgrade)"]
        .assert_eq(&found);
    }
}
