//! `.Chart`, `.Capabilities` and `.Release` as templates see them, with the Go types of each Helm.

use super::Capabilities;
use super::input::ReleaseInfo;
use crate::chart::{Chart, Dependency, Maintainer, Metadata};
use opdev_template::{Compat, Elem, FuncError, Host, Kind, List, Map, MapType, Signature, Str, Ty, Value};
use serde_json::{Value as Json, json};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A Go struct, or a pointer to one.
struct Struct {
    type_name: Cow<'static, str>,
    kind: Kind,
    fields: Vec<(&'static str, Value)>,
    /// Fields of an embedded struct.
    promoted: Vec<(&'static str, Value)>,
    text: Option<String>,
    /// Methods without parameters, and what they give.
    methods: Vec<(&'static str, String)>,
    json: Json,
}

/// The fields of all these structs in an order that fits the declared one of each.
const JSON_ORDER: [&str; 34] = [
    "KubeVersion",
    "Version",
    "Major",
    "Minor",
    "APIVersions",
    "HelmVersion",
    "name",
    "email",
    "url",
    "home",
    "sources",
    "version",
    "git_commit",
    "git_tree_state",
    "go_version",
    "kube_client_version",
    "repository",
    "description",
    "keywords",
    "maintainers",
    "icon",
    "apiVersion",
    "condition",
    "tags",
    "enabled",
    "import-values",
    "alias",
    "appVersion",
    "deprecated",
    "annotations",
    "kubeVersion",
    "dependencies",
    "type",
    "IsRoot",
];

impl Host for Struct {
    fn type_name(&self) -> Cow<'static, str> {
        self.type_name.clone()
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn field(&self, name: &str) -> Option<Value> {
        self.fields.iter().chain(&self.promoted).find(|(n, _)| *n == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn method(&self, name: &str) -> Option<Signature> {
        self.methods.iter().any(|(n, _)| *n == name).then(|| Signature::with_parameters(&[]))
    }

    fn call(&self, name: &str, _args: &[Value]) -> Result<Value, FuncError> {
        match self.methods.iter().find(|(n, _)| *n == name) {
            Some((_, text)) => Ok(Value::str(text.as_str())),
            None => Err(FuncError::new(format!("no method {name}"))),
        }
    }

    fn addressed_text(&self) -> Option<Str> {
        self.text.as_deref().map(Str::from)
    }

    fn is_comparable(&self) -> bool {
        let holds = |value: &Value| match value {
            Value::List(_) | Value::Map(_) => false,
            Value::Host(host) => host.is_comparable(),
            _ => true,
        };
        self.kind == Kind::Ptr || self.fields.iter().all(|(_, value)| holds(value))
    }

    fn json_order(&self) -> &'static [&'static str] {
        &JSON_ORDER
    }

    fn to_json(&self) -> Json {
        self.json.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn structure(type_name: &'static str, kind: Kind, fields: Vec<(&'static str, Value)>, json: Json) -> Struct {
    Struct {
        type_name: Cow::Borrowed(type_name),
        kind,
        fields,
        promoted: Vec::new(),
        text: None,
        methods: Vec::new(),
        json,
    }
}

fn strings(items: &[String]) -> Value {
    if items.is_empty() {
        return Value::List(List::nil(Elem::Str));
    }
    Value::strings(items.iter().map(String::as_str))
}

fn list_of(elem: &'static str, items: Vec<Value>) -> Value {
    if items.is_empty() {
        return Value::List(List::nil(Elem::Named(elem)));
    }
    Value::List(List::typed(Elem::Named(elem), items))
}

fn annotations(metadata: &Metadata) -> Value {
    let entries = metadata.annotations.iter();
    let entries = entries.map(|(key, text)| (Str::from(key.as_str()), Value::str(text.as_str())));
    Value::Map(Map::typed(MapType::Strings, entries.collect()))
}

/// `.Chart`: a struct in 3.x, a map of Go names in 4.x.
pub(super) fn chart(chart: &Chart, root: bool, compat: Compat) -> Value {
    match compat {
        Compat::V3_19 | Compat::V3 => chart_struct(&chart.metadata, root),
        Compat::V4_1 | Compat::V4 => chart_map(&chart.metadata, root),
    }
}

fn chart_struct(metadata: &Metadata, root: bool) -> Value {
    let fields = || metadata_fields(metadata);
    let metadata_json = serde_json::to_value(metadata).unwrap_or_default();
    let mut json = metadata_json.clone();
    if let Json::Object(map) = &mut json {
        map.insert("IsRoot".to_owned(), Json::Bool(root));
    }
    let embedded = structure("chart.Metadata", Kind::Struct, fields(), metadata_json);
    Value::host(Struct {
        promoted: fields(),
        ..structure(
            "struct { chart.Metadata; IsRoot bool }",
            Kind::Struct,
            vec![("Metadata", Value::host(embedded)), ("IsRoot", Value::Bool(root))],
            json,
        )
    })
}

fn metadata_fields(metadata: &Metadata) -> Vec<(&'static str, Value)> {
    let text = |text: &String| Value::str(text.as_str());
    vec![
        ("Name", text(&metadata.name)),
        ("Home", text(&metadata.home)),
        ("Sources", strings(&metadata.sources)),
        ("Version", text(&metadata.version)),
        ("Description", text(&metadata.description)),
        ("Keywords", strings(&metadata.keywords)),
        ("Maintainers", list_of("*chart.Maintainer", metadata.maintainers.iter().map(maintainer).collect())),
        ("Icon", text(&metadata.icon)),
        ("APIVersion", text(&metadata.api_version)),
        ("Condition", text(&metadata.condition)),
        ("Tags", text(&metadata.tags)),
        ("AppVersion", text(&metadata.app_version)),
        ("Deprecated", Value::Bool(metadata.deprecated)),
        ("Annotations", annotations(metadata)),
        ("KubeVersion", text(&metadata.kube_version)),
        (
            "Dependencies",
            list_of("*chart.Dependency", metadata.dependencies.iter().map(dependency).collect()),
        ),
        ("Type", text(&metadata.kind)),
    ]
}

fn maintainer(maintainer: &Maintainer) -> Value {
    let fields = vec![
        ("Name", Value::str(maintainer.name.as_str())),
        ("Email", Value::str(maintainer.email.as_str())),
        ("URL", Value::str(maintainer.url.as_str())),
    ];
    let json = serde_json::to_value(maintainer).unwrap_or_default();
    Value::host(structure("*chart.Maintainer", Kind::Ptr, fields, json))
}

fn dependency(dependency: &Dependency) -> Value {
    let text = |text: &String| Value::str(text.as_str());
    let fields = vec![
        ("Name", text(&dependency.name)),
        ("Version", text(&dependency.version)),
        ("Repository", text(&dependency.repository)),
        ("Condition", text(&dependency.condition)),
        ("Tags", strings(&dependency.tags)),
        ("Enabled", Value::Bool(dependency.enabled)),
        ("ImportValues", Value::list(dependency.import_values.iter().map(Value::from_json).collect())),
        ("Alias", text(&dependency.alias)),
    ];
    let json = serde_json::to_value(dependency).unwrap_or_default();
    Value::host(structure("*chart.Dependency", Kind::Ptr, fields, json))
}

fn chart_map(metadata: &Metadata, root: bool) -> Value {
    let any = |items: Vec<Value>| Value::list(items);
    let texts = |items: &[String]| any(items.iter().map(|text| Value::str(text.as_str())).collect());
    let mut fields = metadata_fields(metadata);
    for (name, value) in &mut fields {
        match *name {
            "Sources" => *value = texts(&metadata.sources),
            "Keywords" => *value = texts(&metadata.keywords),
            "Maintainers" => {
                *value = any(metadata.maintainers.iter().map(|m| fields_map(&maintainer(m))).collect());
            }
            "Dependencies" => {
                *value = any(metadata.dependencies.iter().map(|d| fields_map(&dependency(d))).collect());
            }
            "Annotations" if metadata.annotations.is_empty() => *value = Value::Map(Map::nil()),
            _ => {}
        }
    }
    fields.push(("IsRoot", Value::Bool(root)));
    Value::Map(Map::from_entries(fields))
}

fn fields_map(value: &Value) -> Value {
    let Value::Host(host) = value else { return value.clone() };
    let fields = host.fields().into_iter().map(|(name, value)| match &value {
        Value::List(list) if list.is_nil() => (name, Value::list(Vec::new())),
        _ => (name, value),
    });
    Value::Map(Map::from_entries(fields))
}

/// `.Release`.
pub(super) fn release(release: &ReleaseInfo) -> BTreeMap<Str, Value> {
    let entries = [
        ("Name", Value::str(release.name.as_str())),
        ("Namespace", Value::str(release.namespace.as_str())),
        ("IsUpgrade", Value::Bool(release.is_upgrade)),
        ("IsInstall", Value::Bool(release.is_install)),
        ("Revision", Value::Int(release.revision)),
        ("Service", Value::str("Helm")),
    ];
    entries.into_iter().map(|(key, value)| (key.into(), value)).collect()
}

/// `.Capabilities`.
pub(super) fn capabilities(capabilities: &Capabilities, compat: Compat) -> Value {
    let three = compat.is_three();
    let kube = &capabilities.kube_version;
    let mut fields = vec![("Version", Value::str(kube.version.as_str()))];
    if !three {
        fields.push(("normalizedVersion", Value::str(kube.normalized.as_str())));
    }
    fields.push(("Major", Value::str(kube.major.as_str())));
    fields.push(("Minor", Value::str(kube.minor.as_str())));
    let kube_json = json!({"Version": kube.version, "Major": kube.major, "Minor": kube.minor});
    let kube_value = Value::host(Struct {
        text: Some(kube.normalized.clone()),
        methods: vec![("String", kube.normalized.clone()), ("GitVersion", kube.version.clone())],
        ..structure(
            if three { "chartutil.KubeVersion" } else { "common.KubeVersion" },
            Kind::Struct,
            fields,
            kube_json.clone(),
        )
    });
    let (helm, helm_json) = helm_version(compat);
    let versions = VersionSet {
        type_name: if three { "chartutil.VersionSet" } else { "common.VersionSet" },
        versions: capabilities.api_versions.clone(),
    };
    let json =
        json!({"KubeVersion": kube_json, "APIVersions": capabilities.api_versions, "HelmVersion": helm_json});
    Value::host(structure(
        if three { "*chartutil.Capabilities" } else { "*common.Capabilities" },
        Kind::Ptr,
        vec![("KubeVersion", kube_value), ("APIVersions", Value::host(versions)), ("HelmVersion", helm)],
        json,
    ))
}

fn helm_version(compat: Compat) -> (Value, Json) {
    let text = |text: &'static str| Value::str(text);
    let (version, commit, go) = match compat {
        Compat::V3_19 => ("v3.19.0", "3d8990f0836691f0229297773f3524598f46bda6", "go1.24.7"),
        Compat::V3 => ("v3.22.0", "", "go1.26.8"),
        Compat::V4_1 => ("v4.1.4", "05fa37973dc9e42b76e1d2883494c87174b6074f", "go1.25.9"),
        Compat::V4 => ("v4.3.1", "c0d08d0d6d9424d4a14febb5e8a3e51b0dd00dff", "go1.27.2"),
    };
    let mut fields = vec![
        ("Version", text(version)),
        ("GitCommit", text(commit)),
        ("GitTreeState", text("clean")),
        ("GoVersion", text(go)),
    ];
    let mut json =
        json!({"version": version, "git_commit": commit, "git_tree_state": "clean", "go_version": go});
    if compat.is_four() {
        let client = if compat == Compat::V4 { "v1.37" } else { "v1.35" };
        fields.push(("KubeClientVersion", text(client)));
        json["kube_client_version"] = json!(client);
    }
    (Value::host(structure("version.BuildInfo", Kind::Struct, fields, json.clone())), json)
}

/// `.Capabilities.APIVersions`.
struct VersionSet {
    type_name: &'static str,
    versions: Vec<String>,
}

impl Host for VersionSet {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(self.type_name)
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn method(&self, name: &str) -> Option<Signature> {
        (name == "Has").then(|| Signature::with_parameters(&[Ty::Str]))
    }

    fn call(&self, _name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let wanted = args.first().and_then(Value::as_str).map(|text| text.text().into_owned());
        Ok(Value::Bool(wanted.is_some_and(|wanted| self.versions.contains(&wanted))))
    }

    fn underlying(&self) -> Option<Value> {
        Some(strings(&self.versions))
    }

    fn to_json(&self) -> Json {
        json!(self.versions)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
