//! Rendered text into documents and hooks: split, recognised, sorted into Helm's install or uninstall order.

use crate::chart::Place;
use opdev_object::yaml::{self, Kind, Node};
use opdev_template::Compat;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One document of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The template it comes from, such as `web/templates/deployment.yaml`.
    pub path: Arc<str>,
    /// The text.
    pub part: Arc<Part>,
}

/// A document's text, and what Helm wants to know of it.
#[derive(Debug, PartialEq)]
pub struct Part {
    /// The text, trimmed.
    pub content: Box<str>,
    /// The kind Helm sorts by; empty where there is none.
    pub kind: String,
    /// `metadata.name`
    pub name: String,
    annotations: BTreeMap<String, String>,
    /// Only of hooks.
    object: Option<Value>,
}

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum HookEvent {
    PreInstall,
    PostInstall,
    PreDelete,
    PostDelete,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    Test,
}

impl HookEvent {
    fn parse(text: &str) -> Option<HookEvent> {
        Some(match text {
            "pre-install" => HookEvent::PreInstall,
            "post-install" => HookEvent::PostInstall,
            "pre-delete" => HookEvent::PreDelete,
            "post-delete" => HookEvent::PostDelete,
            "pre-upgrade" => HookEvent::PreUpgrade,
            "post-upgrade" => HookEvent::PostUpgrade,
            "pre-rollback" => HookEvent::PreRollback,
            "post-rollback" => HookEvent::PostRollback,
            "test" | "test-success" => HookEvent::Test,
            _ => return None,
        })
    }
}

/// A document with `helm.sh/hook`.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    /// The object's name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// The template it comes from.
    pub path: String,
    /// Its text.
    pub manifest: String,
    /// The object.
    pub object: Value,
    /// When it runs.
    pub events: Vec<HookEvent>,
    /// Hooks of one event run from low to high.
    pub weight: i64,
    /// `before-hook-creation`, `hook-succeeded`, `hook-failed`, as written.
    pub delete_policies: Vec<String>,
    /// `hook-succeeded`, `hook-failed`, as written.
    pub output_log_policies: Vec<String>,
}

/// The objects of a set of rendered files.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sorted {
    /// Documents in install order.
    pub documents: Vec<Document>,
    /// Hooks in install order of their kinds.
    pub hooks: Vec<Hook>,
    /// Helm's remarks, such as a hook event nobody knows.
    pub warnings: Vec<String>,
}

/// A file whose text is no YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestError {
    /// Helm's text.
    pub message: String,
    /// The place in the rendered document.
    pub place: Place,
    /// How many lines of the rendered file stand before the document.
    pub start: u32,
    /// The line of the rendered document that is meant.
    pub excerpt: String,
}

/// The annotation that makes a document a hook.
const HOOK: &str = "helm.sh/hook";

const INSTALL: [&str; 35] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
];

const UNINSTALL: [&str; 36] = [
    "APIService",
    "Ingress",
    "IngressClass",
    "Service",
    "CronJob",
    "Job",
    "StatefulSet",
    "HorizontalPodAutoscaler",
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "Pod",
    "DaemonSet",
    "RoleBindingList",
    "RoleBinding",
    "RoleList",
    "Role",
    "ClusterRoleBindingList",
    "ClusterRoleBinding",
    "ClusterRoleList",
    "ClusterRole",
    "CustomResourceDefinition",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "ConfigMap",
    "SecretList",
    "Secret",
    "ServiceAccount",
    "PodDisruptionBudget",
    "PodSecurityPolicy",
    "LimitRange",
    "ResourceQuota",
    "NetworkPolicy",
    "Namespace",
    "PriorityClass",
];

/// Where a kind stands in install order; `None` for kinds Helm does not list.
fn install_rank(kind: &str, compat: Compat) -> Option<usize> {
    let webhooks: &[&str] = match compat {
        Compat::V3_19 | Compat::V3 => &["APIService"],
        Compat::V4_1 | Compat::V4 => {
            &["APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        }
    };
    INSTALL.iter().chain(webhooks).position(|known| *known == kind)
}

fn uninstall_rank(kind: &str, compat: Compat) -> Option<usize> {
    let webhooks: &[&str] = match compat {
        Compat::V3_19 | Compat::V3 => &[],
        Compat::V4_1 | Compat::V4 => &["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"],
    };
    webhooks.iter().chain(&UNINSTALL).position(|known| *known == kind)
}

fn by_rank(a: (Option<usize>, &str), b: (Option<usize>, &str)) -> Ordering {
    match (a.0, b.0) {
        (None, None) => a.1.cmp(b.1),
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
        (Some(a), Some(b)) => a.cmp(&b),
    }
}

/// The order in which two kinds are uninstalled.
pub fn uninstall_order(a: &str, b: &str, compat: Compat) -> Ordering {
    by_rank((uninstall_rank(a, compat), a), (uninstall_rank(b, compat), b))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c)
}

/// The documents of a text as a Helm splits it, each with the line (from 0) it starts on. Since 4.2 the end
/// of a document stays as it is, blank lines too.
pub fn split_for(text: &str, compat: Compat) -> Vec<(u32, &str)> {
    if compat == Compat::V4 { with_ends(text) } else { split(text) }
}

fn with_ends(text: &str) -> Vec<(u32, &str)> {
    let mut found = Vec::new();
    let first = text.len() - text.trim_start().len();
    let mut begin = first;
    let (mut counted, mut line) = (0, 0);
    let mut push = |from: usize, to: usize| {
        let part = text[from..to].trim_start();
        if !part.is_empty() {
            let offset = to - part.len();
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..offset]).count();
            counted = offset;
            found.push((line as u32, part));
        }
    };
    for at in memchr::memmem::find_iter(text.as_bytes(), b"---") {
        if at >= begin && (at == first || text.as_bytes()[at - 1] == b'\n') {
            push(begin, at);
            let blank = text.as_bytes()[at + 3..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            begin = at + 3 + blank;
        }
    }
    push(begin, text.len());
    found
}

/// The documents of a text, trimmed, empty ones left out; each with the line (from 0) it starts on.
pub fn split(text: &str) -> Vec<(u32, &str)> {
    let text_start = text.len() - text.trim_start().len();
    let whole = text.trim();
    let bytes = whole.as_bytes();
    let mut found = Vec::new();
    let mut start = 0;
    let (mut counted, mut line) = (0, 0);
    let mut push = |from: usize, to: usize| {
        let part = &whole[from..to];
        if !part.is_empty() {
            let trimmed = part.trim();
            let offset = text_start + from + (part.len() - part.trim_start().len());
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[counted..offset]).count();
            counted = offset;
            found.push((line as u32, trimmed));
        }
    };
    let mut search = 0;
    while let Some(at) = memchr::memmem::find(&bytes[search..], b"---").map(|at| at + search) {
        let separates = at == 0 || (at > start && bytes[at - 1] == b'\n');
        if !separates {
            search = at + 1;
            continue;
        }
        let before = bytes[start..at].iter().rev().take_while(|b| is_space(**b)).count();
        push(start, at - before);
        start = at + 3 + bytes[at + 3..].iter().take_while(|b| is_space(**b)).count();
        search = start;
    }
    push(start, whole.len());
    found
}

/// Splits and sorts rendered files (path to text).
pub fn sort(files: &BTreeMap<String, String>, compat: Compat) -> Result<Sorted, ManifestError> {
    let mut parts = Vec::new();
    for (path, text) in files {
        parts.push((path.as_str(), parts_of(path, text, &[], compat)?));
    }
    Ok(arrange(parts.iter().map(|(path, parts)| (*path, parts.as_slice())), compat))
}

/// Returns true if a file is a chart's notes, which are no documents.
pub fn is_notes(path: &str) -> bool {
    path.ends_with("NOTES.txt")
}

/// The documents of one rendered file; those that stand in `before` are not read again.
pub(crate) fn parts_of(
    path: &str,
    text: &str,
    before: &[Arc<Part>],
    compat: Compat,
) -> Result<Vec<Arc<Part>>, ManifestError> {
    let partial = path.rsplit('/').next().is_some_and(|base| base.starts_with('_'));
    if partial || text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let known: HashMap<&str, &Arc<Part>> = before.iter().map(|part| (&*part.content, part)).collect();
    let read = |start: u32, content: &str| match known.get(content) {
        Some(part) => Ok(Arc::clone(part)),
        None => match parse(path, content, compat) {
            Ok(part) => Ok(Arc::new(part)),
            Err(error) => Err(ManifestError { start, ..error }),
        },
    };
    split_for(text, compat).into_iter().map(|(start, content)| read(start, content)).collect()
}

/// The documents of files, sorted by path, in install order.
pub(crate) fn arrange<'p>(files: impl Iterator<Item = (&'p str, &'p [Arc<Part>])>, compat: Compat) -> Sorted {
    let mut sorted = Sorted::default();
    for (path, parts) in files {
        let path: Arc<str> = path.into();
        for part in parts {
            place_document(&mut sorted, &path, part);
        }
    }
    let rank = |kind: &str| match install_rank(kind, compat) {
        Some(rank) => (rank, String::new()),
        None => (usize::MAX, kind.to_owned()),
    };
    sorted.documents.sort_by_cached_key(|document| rank(&document.part.kind));
    sorted.hooks.sort_by_cached_key(|hook| rank(&hook.kind));
    sorted
}

fn place_document(sorted: &mut Sorted, path: &Arc<str>, part: &Arc<Part>) {
    let Some(types) = part.annotations.get(HOOK) else {
        sorted.documents.push(Document { path: Arc::clone(path), part: Arc::clone(part) });
        return;
    };
    let events: Option<Vec<HookEvent>> =
        types.split(',').map(|name| HookEvent::parse(&name.trim().to_lowercase())).collect();
    let Some(events) = events else {
        sorted.warnings.push(format!("info: skipping unknown hook: {types:?}"));
        return;
    };
    let list = |name: &str| -> Vec<String> {
        part.annotations
            .get(name)
            .map(|text| text.split(',').map(|one| one.trim().to_lowercase()).collect())
            .unwrap_or_default()
    };
    sorted.hooks.push(Hook {
        name: part.name.clone(),
        kind: part.kind.clone(),
        path: path.to_string(),
        manifest: part.content.to_string(),
        object: part.object.clone().unwrap_or_default(),
        events,
        weight: part.annotations.get("helm.sh/hook-weight").and_then(|w| w.parse().ok()).unwrap_or(0),
        delete_policies: list("helm.sh/hook-delete-policy"),
        output_log_policies: list("helm.sh/hook-output-log-policy"),
    });
}

#[derive(Default)]
struct Head {
    kind: String,
    name: String,
    annotations: BTreeMap<String, String>,
}

fn parse(path: &str, content: &str, compat: Compat) -> Result<Part, ManifestError> {
    let wrong = |line: u32, column: u32, message: String| ManifestError {
        message: format!("YAML parse error on {path}: {message}"),
        excerpt: content.lines().nth(line.saturating_sub(1) as usize).unwrap_or_default().to_owned(),
        place: Place { file: path.to_owned(), line, column },
        start: 0,
    };
    let node = yaml::parse_head(content, &["apiVersion", "kind", "metadata"])
        .map_err(|e| wrong(e.line, e.column, e.to_string()))?;
    let head = head(&node).map_err(|(at, what)| {
        let what = match compat {
            Compat::V3_19 | Compat::V3 => what,
            Compat::V4_1 | Compat::V4 => what.replace("releaseutil.SimpleHead", "util.SimpleHead"),
        };
        wrong(
            at.line,
            at.column,
            format!("error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {what}"),
        )
    })?;
    let object = head.annotations.contains_key(HOOK).then(|| yaml::from_str(content).unwrap_or_default());
    let Head { kind, name, annotations } = head;
    Ok(Part { content: content.into(), kind, name, annotations, object })
}

fn json_kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool(_) => "bool",
        Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) => "number",
        Kind::String(_) => "string",
        Kind::Sequence(_) => "array",
        Kind::Mapping(_) => "object",
    }
}

/// The fields that Helm's `SimpleHead` takes of a document.
fn head(node: &Node) -> Result<Head, (&Node, String)> {
    let mut head = Head::default();
    match node.kind {
        Kind::Null => return Ok(head),
        Kind::Mapping(_) => {}
        Kind::Bool(_)
        | Kind::Int(_)
        | Kind::Uint(_)
        | Kind::Float(_)
        | Kind::String(_)
        | Kind::Sequence(_) => {
            return Err((
                node,
                format!("{} into Go value of type releaseutil.SimpleHead", json_kind(&node.kind)),
            ));
        }
    }
    for field in ["apiVersion", "kind"] {
        if let Some(value) = node.get(field).filter(|value| value.kind != Kind::Null) {
            let text = string_field(value, &format!("SimpleHead.{field}"))?;
            if field == "kind" {
                head.kind = text;
            }
        }
    }
    let Some(metadata) = node.get("metadata").filter(|value| value.kind != Kind::Null) else {
        return Ok(head);
    };
    if !matches!(metadata.kind, Kind::Mapping(_)) {
        let kind = json_kind(&metadata.kind);
        return Err((
            metadata,
            format!(
                "{kind} into Go struct field SimpleHead.metadata of type struct {{ Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }}"
            ),
        ));
    }
    if let Some(name) = metadata.get("name").filter(|value| value.kind != Kind::Null) {
        head.name = string_field(name, ".metadata.name")?;
    }
    if let Some(annotations) = metadata.get("annotations").filter(|value| value.kind != Kind::Null) {
        let Kind::Mapping(pairs) = &annotations.kind else {
            let kind = json_kind(&annotations.kind);
            return Err((
                annotations,
                format!("{kind} into Go struct field .metadata.annotations of type map[string]string"),
            ));
        };
        for (key, value) in pairs {
            let text = match value.kind {
                Kind::Null => String::new(),
                _ => string_field(value, ".metadata.annotations")?,
            };
            head.annotations.insert(key.to_text().unwrap_or_default(), text);
        }
    }
    Ok(head)
}

fn string_field<'n>(node: &'n Node, field: &str) -> Result<String, (&'n Node, String)> {
    node.to_text().ok_or_else(|| {
        (node, format!("{} into Go struct field {field} of type string", json_kind(&node.kind)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_as_helm_does() {
        let parts = |text: &'static str| split(text).into_iter().map(|(_, part)| part).collect::<Vec<_>>();
        assert_eq!(parts("---\na: 1\n---\nb: 2\n\n---\n"), ["a: 1", "b: 2"]);
        assert_eq!(parts("a\n---\n---\nb"), ["a", "---\nb"]);
        assert_eq!(parts("a: x---y\n --- \nb"), ["a: x---y\n --- \nb"]);
        assert_eq!(parts("# c\n--- # d\nx: 1"), ["# c", "# d\nx: 1"]);
        assert_eq!(split("\n\na: 1\n---\n\nb: 2")[1], (5, "b: 2"));
        assert!(parts(" \n").is_empty());
    }

    #[test]
    fn sorts_and_finds_hooks() {
        let files = BTreeMap::from([
            ("c/templates/a.yaml".to_owned(), "kind: Deployment\n---\nkind: Zoo\n---\n# only words\n".to_owned()),
            ("c/templates/b.yaml".to_owned(), "kind: Service\nmetadata: {name: s}\n".to_owned()),
            (
                "c/templates/h.yaml".to_owned(),
                "kind: Job\nmetadata:\n  name: j\n  annotations: {helm.sh/hook: \"pre-install, test\", helm.sh/hook-weight: -5}\n".to_owned(),
            ),
            ("c/templates/u.yaml".to_owned(), "metadata: {annotations: {helm.sh/hook: crd-install}}\n".to_owned()),
            (
                "c/templates/w.yaml".to_owned(),
                "kind: MutatingWebhookConfiguration\n---\nkind: Ingress\n".to_owned(),
            ),
        ]);
        let kinds = |compat| -> Vec<String> {
            sort(&files, compat).unwrap().documents.iter().map(|d| d.part.kind.clone()).collect()
        };
        assert_eq!(
            kinds(Compat::V3),
            ["Service", "Deployment", "Ingress", "", "MutatingWebhookConfiguration", "Zoo"]
        );
        assert_eq!(
            kinds(Compat::V4),
            ["Service", "Deployment", "Ingress", "MutatingWebhookConfiguration", "", "Zoo"]
        );
        let sorted = sort(&files, Compat::V3).unwrap();
        assert_eq!(sorted.hooks.len(), 1);
        assert_eq!(sorted.hooks[0].weight, -5);
        assert_eq!(sorted.hooks[0].events, [HookEvent::PreInstall, HookEvent::Test]);
        assert_eq!(sorted.warnings.len(), 1);
    }

    #[test]
    fn broken_yaml_names_file_and_line() {
        let files = BTreeMap::from([("c/templates/a.yaml".to_owned(), "a: 1\n b: 2\n".to_owned())]);
        let error = sort(&files, Compat::V3).unwrap_err();
        assert_eq!(
            error.message,
            "YAML parse error on c/templates/a.yaml: error converting YAML to JSON: yaml: line 2: mapping values are not allowed in this context"
        );
        assert_eq!((error.place.line, error.excerpt.as_str()), (2, " b: 2"));
    }
}
