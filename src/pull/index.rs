//! The index of a chart repository: which charts there are, in which versions, and where their archives lie.
//! Pure.

use super::web::shown;
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_object::yaml::{self, Kind, Node};
use opdev_template::semver::{Constraint, Version};
use std::collections::BTreeMap;
use std::fmt;
use url::Url;

/// An index.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// By name; the newest version comes first.
    charts: BTreeMap<String, Vec<Entry>>,
    /// Entries that were left out, and why.
    warnings: Vec<String>,
}

/// One version of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) version: String,
    parsed: Version,
    pub(super) urls: Vec<String>,
    /// The SHA-256 of the archive in hexadecimal digits, with or without `sha256:` before it; may be empty.
    pub(super) digest: String,
}

/// Why an index has no such chart.
#[derive(Debug)]
pub(super) struct NotFound(String);

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotFound {}

/// Why an entry of an index is left out, in Helm's words.
#[derive(Debug)]
enum EntryError {
    /// A field is missing.
    Required { field: &'static str },
    /// A field holds what it may not.
    Invalid { field: &'static str, value: String },
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::Required { field } => write!(f, "validation: chart.metadata.{field} is required"),
            EntryError::Invalid { field, value } => {
                write!(f, "validation: chart.metadata.{field} {value:?} is invalid")
            }
        }
    }
}

impl std::error::Error for EntryError {}

/// More values than the largest public indexes have, by far.
const MOST_VALUES: usize = 5_000_000;

const TOP: [&str; 6] = ["serverInfo", "apiVersion", "generated", "entries", "publicKeys", "annotations"];
const ENTRY: [&str; 25] = [
    "name",
    "home",
    "sources",
    "version",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
    "urls",
    "created",
    "removed",
    "digest",
    "checksum",
    "engine",
    "tillerVersion",
    "url",
];

impl Index {
    /// Reads an index. JSON may have fields that Helm does not know, YAML may not, as in Helm.
    ///
    /// # Errors
    /// An empty file, one without `apiVersion`, or what is wrong with the text.
    pub(super) fn parse(bytes: &[u8]) -> Result<Index> {
        if bytes.is_empty() {
            bail!("empty index.yaml file");
        }
        let text = std::str::from_utf8(bytes).context("the index is no text")?;
        // A value costs about a hundred bytes of memory, however short it is. Each stands behind one of
        // these.
        let values = bytes.iter().filter(|byte| matches!(byte, b'\n' | b',' | b'[' | b'{')).count();
        if values > MOST_VALUES {
            bail!("the index holds more than {MOST_VALUES} values; opdev reads no such index");
        }
        let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        let node = yaml::parse(text).map_err(|error| anyhow!("the index is no YAML: {error}"))?;
        let Kind::Mapping(fields) = &node.kind else { bail!("the index is no mapping") };
        if !is_json {
            known(fields, &TOP)?;
        }
        let mut index = Index::default();
        if let Some(Kind::Mapping(charts)) = node.get("entries").map(|entries| &entries.kind) {
            for (name, versions) in charts {
                let name = name.to_text().unwrap_or_default();
                let versions = index.versions(&name, versions.items(), is_json)?;
                index.charts.insert(name, versions);
            }
        }
        if node.get("apiVersion").and_then(Node::to_text).is_none_or(|version| version.is_empty()) {
            bail!("no API version specified");
        }
        Ok(index)
    }

    fn versions(&mut self, chart: &str, items: &[Node], is_json: bool) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        for item in items {
            let Kind::Mapping(fields) = &item.kind else {
                self.warnings.push(format!("skipping an empty entry of chart {chart:?} in the index"));
                continue;
            };
            if !is_json {
                known(fields, &ENTRY)?;
            }
            match entry(item) {
                Ok(entry) => found.push(entry),
                Err(why) => self.warnings.push(format!("skipping an entry of chart {chart:?}: {why}")),
            }
        }
        found.sort_by(|a, b| b.parsed.compare(&a.parsed));
        Ok(found)
    }

    /// Tells of the entries that were left out.
    pub(super) fn warn(&self, say: &mut dyn FnMut(&str)) {
        for warning in &self.warnings {
            say(&format!("WARNING: {warning}"));
        }
    }

    /// The version of a chart that is wanted: that very text, else the newest one that the constraint allows.
    /// An empty one allows every release.
    ///
    /// # Errors
    /// [`NotFound`], or a constraint that cannot be read.
    pub(super) fn choose(&self, chart: &str, version: &str) -> Result<&Entry> {
        let versions = self.charts.get(chart).ok_or_else(|| NotFound("no chart name found".to_owned()))?;
        let wanted = if version.is_empty() { "*" } else { version };
        let constraint = Constraint::parse(wanted).map_err(|why| {
            anyhow!(
                "{why}: what was asked for of the chart {chart} is neither a version nor a range such as ^1.2"
            )
        })?;
        let exact = versions.iter().find(|entry| !version.is_empty() && entry.version == version);
        let found = exact.or_else(|| versions.iter().find(|entry| constraint.check(&entry.parsed)));
        Ok(found.ok_or_else(|| NotFound(format!("no chart version found for {chart}-{version}")))?)
    }

    /// All versions of a chart, the newest one first.
    pub(super) fn all(&self, chart: &str) -> Option<&[Entry]> {
        self.charts.get(chart).map(Vec::as_slice)
    }
}

fn known(fields: &[(Node, Node)], names: &[&str]) -> Result<()> {
    for (key, _) in fields {
        let key_text = key.to_text().unwrap_or_default();
        if !names.iter().any(|name| name.eq_ignore_ascii_case(&key_text)) {
            bail!(
                "line {}: error unmarshaling JSON: while decoding JSON: json: unknown field {key_text:?}",
                key.line
            );
        }
    }
    Ok(())
}

fn entry(node: &Node) -> Result<Entry, EntryError> {
    let text = |key: &str| node.get(key).and_then(Node::to_text).unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    if name.is_empty() {
        return Err(EntryError::Required { field: "name" });
    }
    if name.contains('/') || name == "." || name == ".." {
        return Err(EntryError::Invalid { field: "name", value: name });
    }
    if version.is_empty() {
        return Err(EntryError::Required { field: "version" });
    }
    let Ok(parsed) = Version::parse(&version) else {
        return Err(EntryError::Invalid { field: "version", value: version });
    };
    let urls = node.get("urls").map(Node::items).unwrap_or_default();
    Ok(Entry {
        version,
        parsed,
        urls: urls.iter().filter_map(Node::to_text).collect(),
        digest: text("digest"),
    })
}

impl Entry {
    /// Where the archive lies: the first address, below the repository's own where it is relative.
    ///
    /// # Errors
    /// None is given, or it is no address.
    pub(super) fn address(&self, repository: &Url, chart: &str) -> Result<Url> {
        let Some(first) = self.urls.first() else {
            bail!("chart {chart:?} version {:?} has no downloadable URLs", self.version);
        };
        below(repository, first)
    }

    /// Returns true if a version is this one; what stands after `+` does not count.
    pub(super) fn is_version(&self, version: &str) -> bool {
        Version::parse(version)
            .map_or(self.version == version, |other| self.parsed.compare(&other) == std::cmp::Ordering::Equal)
    }

    /// Returns true if the constraint allows it.
    pub(super) fn fits(&self, constraint: &Constraint) -> bool {
        !self.urls.is_empty() && constraint.check(&self.parsed)
    }
}

/// An address below another one. The query of the repository, which may hold a token, goes along, but not to
/// another server.
///
/// # Errors
/// It is no address.
pub(super) fn below(base: &Url, reference: &str) -> Result<Url> {
    if let Ok(absolute) = Url::parse(reference) {
        return Ok(absolute);
    }
    let mut folder = base.clone();
    folder.set_path(&format!("{}/", base.path().trim_end_matches('/')));
    let mut found = folder
        .join(reference)
        .with_context(|| format!("failed to parse {reference} below {} as URL", shown(base)))?;
    // `//host/path` is relative, too.
    if found.origin() == base.origin() {
        found.set_query(base.query());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    const TEXT: &str = "apiVersion: v1
generated: \"2024-01-01T00:00:00Z\"
entries:
  web:
  - {name: web, version: 1.2.0, urls: [web-1.2.0.tgz], digest: abc}
  - {name: web, version: 2.0.0-rc.1, urls: [web-2.0.0-rc.1.tgz]}
  - {name: web, version: 1.10.0, urls: [\"https://other.example/web-1.10.0.tgz\"]}
  -
  - {name: web, version: x.y, urls: []}
  - {name: a/b, version: 1.0.0, urls: []}
";

    #[test]
    fn the_newest_release_is_chosen_and_pre_releases_by_name_only() {
        let index = Index::parse(TEXT.as_bytes()).unwrap();
        let chosen = |version: &str| index.choose("web", version).map(|entry| entry.version.clone());
        assert_eq!(chosen("").unwrap(), "1.10.0");
        assert_eq!(chosen("~1.2").unwrap(), "1.2.0");
        assert_eq!(chosen("2.0.0-rc.1").unwrap(), "2.0.0-rc.1");
        assert_eq!(chosen(">0-0").unwrap(), "2.0.0-rc.1");
        assert!(chosen("9").unwrap_err().is::<NotFound>());
        assert_eq!(index.choose("no", "").unwrap_err().to_string(), "no chart name found");
        assert_eq!(index.warnings.len(), 3, "{:?}", index.warnings);
    }

    #[test]
    fn what_helm_refuses_is_refused() {
        let refused = |text: &str| Index::parse(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(refused(""), "empty index.yaml file");
        assert_eq!(refused("entries: {}\n"), "no API version specified");
        let unknown = refused("apiVersion: v1\nentries:\n  a:\n  - {name: a, vresion: 1.0.0}\n");
        expect![[r#"line 4: error unmarshaling JSON: while decoding JSON: json: unknown field "vresion""#]]
            .assert_eq(&unknown);
        assert!(Index::parse(b"{\"apiVersion\": \"v1\", \"more\": 1}").is_ok());
        expect!["the index is no mapping"].assert_eq(&refused("- a\n"));
        let many = format!("apiVersion: v1\nentries: [{}]\n", "0,".repeat(MOST_VALUES));
        expect!["the index holds more than 5000000 values; opdev reads no such index"]
            .assert_eq(&refused(&many));
    }

    #[test]
    fn relative_addresses_lie_below_the_repository_and_keep_its_query() {
        let base = Url::parse("https://charts.example.com/stable?token=t").unwrap();
        let found = |reference: &str| below(&base, reference).unwrap().to_string();
        assert_eq!(found("web-1.tgz"), "https://charts.example.com/stable/web-1.tgz?token=t");
        assert_eq!(found("../web-1.tgz"), "https://charts.example.com/web-1.tgz?token=t");
        assert_eq!(found("/web-1.tgz"), "https://charts.example.com/web-1.tgz?token=t");
        assert_eq!(found("https://b.example/web-1.tgz"), "https://b.example/web-1.tgz");
        assert_eq!(found("//b.example/web-1.tgz"), "https://b.example/web-1.tgz");
    }
}
