//! Chart.yaml: its fields in Go's order (the release record writes them so), how they are read, and Helm's
//! checks.

use super::decode::{Fields, Mismatch};
use super::error::ChartError;
use opdev_object::go::quote::is_printable;
use opdev_object::yaml::{Kind, Node};
use opdev_template::Compat;
use opdev_template::semver::Version;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Chart.yaml.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// The chart's name; an alias replaces it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A web page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// Where the source is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The chart's version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// People who keep it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// A picture.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// `v1` or `v2`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// A condition of the chart itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags of the chart itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// The version of what is inside.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// True if it should not be used any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// Anything else.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Versions of Kubernetes that it runs on.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// Charts it wants.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// `application`, `library` or nothing.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// True if `dependencies` was given at all; Helm skips its dependency rules without.
    #[serde(skip)]
    pub lists_dependencies: bool,
}

/// A person who keeps a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    /// A person or team.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The address for mail to them.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// Their page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart that a chart wants.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// A version range.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths of booleans in the values, by comma.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Names below `tags` in the values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The decision of conditions and tags.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Values the parent takes from it.
    #[serde(rename = "import-values", skip_serializing_if = "Vec::is_empty")]
    pub import_values: Vec<Value>,
    /// Another name for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alias: String,
}

impl Metadata {
    /// Reads the fields a text gives and keeps the others.
    pub(super) fn update(&mut self, node: &Node) -> Result<(), Mismatch> {
        let fields = Fields::read(node, "Go value of type chart.Metadata", "Metadata")?;
        fields.text("name", &mut self.name)?;
        fields.text("home", &mut self.home)?;
        fields.texts("sources", &mut self.sources)?;
        fields.text("version", &mut self.version)?;
        fields.text("description", &mut self.description)?;
        fields.texts("keywords", &mut self.keywords)?;
        if let Some(items) = fields.list("maintainers", "[]*chart.Maintainer")? {
            self.maintainers = items.iter().map(maintainer).collect::<Result<_, _>>()?;
        }
        fields.text("icon", &mut self.icon)?;
        fields.text("apiVersion", &mut self.api_version)?;
        fields.text("condition", &mut self.condition)?;
        fields.text("tags", &mut self.tags)?;
        fields.text("appVersion", &mut self.app_version)?;
        fields.boolean("deprecated", &mut self.deprecated)?;
        fields.text_map("annotations", &mut self.annotations)?;
        fields.text("kubeVersion", &mut self.kube_version)?;
        if let Some(items) = fields.list("dependencies", "[]*chart.Dependency")? {
            self.dependencies = items.iter().map(dependency).collect::<Result<_, _>>()?;
            self.lists_dependencies = true;
        }
        fields.text("type", &mut self.kind)
    }

    fn print_in_one_line(&mut self) {
        let own = [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.condition,
            &mut self.tags,
            &mut self.app_version,
            &mut self.kube_version,
        ];
        own.into_iter().chain(&mut self.sources).chain(&mut self.keywords).for_each(in_one_line);
        for maintainer in &mut self.maintainers {
            [&mut maintainer.name, &mut maintainer.email, &mut maintainer.url]
                .into_iter()
                .for_each(in_one_line);
        }
        for one in &mut self.dependencies {
            let texts = [&mut one.name, &mut one.version, &mut one.repository, &mut one.condition];
            texts.into_iter().chain(&mut one.tags).for_each(in_one_line);
        }
    }

    /// Returns true for a chart that only defines templates for others.
    pub fn is_library(&self) -> bool {
        self.kind == "library"
    }

    /// Helm's checks before a chart may be used. Texts become one line each, of characters that can be
    /// printed.
    pub(super) fn validate(&mut self, compat: Compat) -> Result<(), ChartError> {
        let wrong = |message: String| Err(ChartError::new(format!("validation: {message}")));
        self.print_in_one_line();
        if compat.is_four() && self.api_version == "v3" {
            return Err(ChartError::new("invalid chart apiVersion"));
        }
        if compat.is_four() && !["v1", "v2"].contains(&self.api_version.as_str()) {
            return Err(ChartError::new("unsupported chart version"));
        }
        if self.name.is_empty() {
            return wrong("chart.metadata.name is required".to_owned());
        }
        if self.name == "." || self.name == ".." {
            return wrong(format!("chart.metadata.name {:?} is not allowed", self.name));
        }
        if self.name.contains('/') {
            return wrong(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return wrong("chart.metadata.version is required".to_owned());
        }
        if Version::parse(&self.version).is_err() {
            return wrong(format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !["", "application", "library"].contains(&self.kind.as_str()) {
            return wrong("chart.metadata.type must be application or library".to_owned());
        }
        let mut seen: Vec<&str> = Vec::new();
        for dependency in &self.dependencies {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if !dependency.alias.is_empty() && !dependency.alias.chars().all(allowed) {
                return wrong(format!(
                    "dependency {:?} has disallowed characters in the alias",
                    dependency.name
                ));
            }
            let key = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if seen.contains(&key.as_str()) {
                return wrong(format!("more than one dependency with name or alias {key:?}"));
            }
            seen.push(key);
        }
        Ok(())
    }
}

/// Whatever is a blank becomes a space, and what cannot be printed goes.
fn in_one_line(text: &mut String) {
    if text.chars().any(|c| c != ' ' && (c.is_whitespace() || !is_printable(c))) {
        let blank = |c: char| if c.is_whitespace() { ' ' } else { c };
        *text = text.chars().map(blank).filter(|c| *c == ' ' || is_printable(*c)).collect();
    }
}

fn maintainer(node: &Node) -> Result<Maintainer, Mismatch> {
    not_null(node, "maintainers must not contain empty or null nodes")?;
    let fields =
        Fields::read(node, "Go struct field Metadata.maintainers of type chart.Maintainer", "Maintainer")?;
    let mut found = Maintainer::default();
    fields.text("name", &mut found.name)?;
    fields.text("email", &mut found.email)?;
    fields.text("url", &mut found.url)?;
    Ok(found)
}

fn dependency(node: &Node) -> Result<Dependency, Mismatch> {
    not_null(node, "dependencies must not contain empty or null nodes")?;
    let fields =
        Fields::read(node, "Go struct field Metadata.dependencies of type chart.Dependency", "Dependency")?;
    let mut found = Dependency::default();
    fields.text("name", &mut found.name)?;
    fields.text("version", &mut found.version)?;
    fields.text("repository", &mut found.repository)?;
    fields.text("condition", &mut found.condition)?;
    fields.texts("tags", &mut found.tags)?;
    fields.boolean("enabled", &mut found.enabled)?;
    fields.values("import-values", &mut found.import_values)?;
    fields.text("alias", &mut found.alias)?;
    Ok(found)
}

fn not_null(node: &Node, message: &str) -> Result<(), Mismatch> {
    if node.kind == Kind::Null {
        return Err(Mismatch {
            line: node.line,
            column: node.column,
            message: format!("validation: {message}"),
        });
    }
    Ok(())
}
