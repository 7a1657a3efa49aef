//! What the manager's Deployment would give to the program in a cluster: environment and arguments of its container in
//! `config/manager`, with the patches of the kustomizations that lead there. Literal values and the downward API are
//! taken; what a Secret or a ConfigMap holds is named and left out. Reads files; builds no kustomization in full.

use super::small_file::small_text;
use opdev_object::{facts, patch, strategic, yaml};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the Deployment gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deployed {
    /// The file it stands in, relative to the project's root.
    pub file: String,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Arguments, without those about leader election, metrics, health probes and certificates.
    pub args: Vec<String>,
    /// The port of its webhooks, where it names one.
    pub webhook_port: Option<u16>,
    /// What was left out and why, in words.
    pub left_out: Vec<String>,
}

/// What stands for the pod that does not exist.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// The namespace that opdev works on.
    pub namespace: &'a str,
    /// The project's name.
    pub project: &'a str,
}

/// Folders deep that kustomizations may lead.
const DEEPEST: usize = 8;

/// Arguments that concern the pod, not the operator.
const OF_THE_POD: [&str; 12] = [
    "leader-elect",
    "enable-leader-election",
    "leader-election-id",
    "leader-election-namespace",
    "metrics-bind-address",
    "metrics-addr",
    "metrics-secure",
    "metrics-cert-path",
    "health-probe-bind-address",
    "health-addr",
    "webhook-cert-path",
    "webhook-cert-dir",
];

/// A Deployment and the file it stands in.
struct Manifest {
    file: PathBuf,
    object: Value,
}

/// Reads the manager's Deployment; `None` where the project has none.
pub fn read(root: &Path, pod: Pod<'_>) -> Option<Deployed> {
    let starts = ["config/default", "config/manager"];
    let folder =
        starts.iter().map(|start| root.join(start)).find(|folder| kustomization(folder).is_some())?;
    let mut found = Vec::new();
    gather(&folder, &mut found, &mut BTreeSet::new(), 0);
    let is_manager = |manifest: &&Manifest| {
        let labels = manifest.object.pointer("/spec/template/metadata/labels");
        labels.is_some_and(|labels| labels["control-plane"].is_string())
    };
    let manifest = found.iter().find(is_manager).or_else(|| found.first())?;
    let file = manifest.file.strip_prefix(root).unwrap_or(&manifest.file).display().to_string();
    Some(of_deployment(&manifest.object, file, pod))
}

fn kustomization(folder: &Path) -> Option<Value> {
    let names = ["kustomization.yaml", "kustomization.yml", "Kustomization"];
    let path = names.iter().map(|name| folder.join(name)).find(|path| path.is_file())?;
    yaml::from_str(&small_text(&path)?).ok()
}

/// The Deployments below a kustomization, with its patches.
fn gather(folder: &Path, found: &mut Vec<Manifest>, seen: &mut BTreeSet<PathBuf>, depth: usize) {
    let Ok(folder) = folder.canonicalize() else { return };
    if depth > DEEPEST || !seen.insert(folder.clone()) {
        return;
    }
    let Some(kustomization) = kustomization(&folder) else { return };
    let from = found.len();
    let lists = ["resources", "bases", "components"];
    for path in lists.iter().flat_map(|list| texts(&kustomization[*list])) {
        let path = folder.join(path);
        if path.is_dir() {
            gather(&path, found, seen, depth + 1);
        } else {
            found.extend(deployments(&path));
        }
    }
    let inner = &mut found[from..];
    let read = |entry: &Value| match (entry["path"].as_str(), entry["patch"].as_str()) {
        (Some(path), _) => small_text(&folder.join(path)),
        (None, inline) => inline.map(str::to_owned),
    };
    let entries = ["patches", "patchesJson6902"].iter().flat_map(|list| items(&kustomization[*list]));
    for (text, target) in entries.filter_map(|entry| Some((read(entry)?, &entry["target"]))) {
        inner
            .iter_mut()
            .filter(|one| is_target(&one.object, target))
            .for_each(|one| apply(&mut one.object, &text));
    }
    for text in texts(&kustomization["patchesStrategicMerge"]) {
        let text = if text.contains('\n') { Some(text.to_owned()) } else { small_text(&folder.join(text)) };
        if let Some(text) = text {
            inner.iter_mut().for_each(|one| apply(&mut one.object, &text));
        }
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn texts(list: &Value) -> impl Iterator<Item = &str> {
    items(list).filter_map(Value::as_str)
}

fn deployments(path: &Path) -> Vec<Manifest> {
    let text = small_text(path).unwrap_or_default();
    documents(&text)
        .filter(|object| object["kind"] == "Deployment")
        .map(|object| Manifest { file: path.to_owned(), object })
        .collect()
}

/// The documents of a YAML file that can be read.
pub(super) fn documents(text: &str) -> impl Iterator<Item = Value> {
    let parts = text.split("\n---").map(|part| part.trim_start_matches("---"));
    parts.filter_map(|part| yaml::from_str(part).ok()).filter(|value: &Value| !value.is_null())
}

fn is_target(object: &Value, target: &Value) -> bool {
    let fits = |wanted: &Value, is: &Value| match wanted.as_str() {
        Some(wanted) => is.as_str() == Some(wanted),
        None => true,
    };
    // A name may carry the prefix of an outer kustomization.
    let name = target["name"].as_str().unwrap_or_default();
    let names = object["metadata"]["name"].as_str().unwrap_or_default();
    fits(&target["kind"], &object["kind"]) && (names.ends_with(name) || name.ends_with(names))
}

/// Applies a patch of either sort; one that is about something else, or cannot be applied, changes nothing.
fn apply(object: &mut Value, text: &str) {
    for change in documents(text) {
        if change.is_array() {
            let mut changed = object.clone();
            if patch::json_patch(&mut changed, &change).is_ok() {
                *object = changed;
            }
        } else if change["kind"] == "Deployment"
            && is_target(object, &change["metadata"])
            && let Some(gvk) = opdev_object::meta::Gvk::of(object)
            && let Some(schema) = facts::facts().schema(&gvk)
        {
            let mut changed = object.clone();
            if strategic::apply(&mut changed, &change, &schema).is_ok() {
                *object = changed;
            }
        }
    }
}

fn of_deployment(object: &Value, file: String, pod: Pod<'_>) -> Deployed {
    let mut found = Deployed { file, ..Deployed::default() };
    let template = &object["spec"]["template"];
    let containers: Vec<&Value> = items(&template["spec"]["containers"]).collect();
    let manager = containers.iter().find(|one| one["name"] == "manager");
    let Some(container) = manager.or_else(|| containers.iter().find(|one| one["name"] != "kube-rbac-proxy"))
    else {
        return found;
    };
    for variable in items(&container["env"]) {
        let Some(name) = variable["name"].as_str() else { continue };
        match value_of(variable, object, container, pod) {
            Ok(value) => _ = found.env.insert(name.to_owned(), value),
            Err(why) => found.left_out.push(format!("{name} ({why})")),
        }
    }
    for source in items(&container["envFrom"]) {
        let name = |what: &str| source[what]["name"].as_str().map(str::to_owned);
        let what = name("secretRef").map(|name| format!("all of Secret {name}"));
        found
            .left_out
            .extend(what.or_else(|| name("configMapRef").map(|name| format!("all of ConfigMap {name}"))));
    }
    let port = items(&container["ports"]).find(|port| port["name"] == "webhook-server");
    found.webhook_port = port.and_then(|port| u16::try_from(port["containerPort"].as_u64()?).ok());
    // The first word of `command` is the binary in the image.
    let words: Vec<&str> = texts(&container["command"]).skip(1).chain(texts(&container["args"])).collect();
    found.args = arguments(&words, &found.env);
    found
}

fn value_of(variable: &Value, deployment: &Value, container: &Value, pod: Pod<'_>) -> Result<String, String> {
    let from = &variable["valueFrom"];
    if from.is_null() {
        return Ok(variable["value"].as_str().unwrap_or_default().to_owned());
    }
    let named = |what: &str| from[what]["name"].as_str().map(str::to_owned);
    if let Some(name) = named("secretKeyRef") {
        return Err(format!("from Secret {name}"));
    }
    if let Some(name) = named("configMapKeyRef") {
        return Err(format!("from ConfigMap {name}"));
    }
    if let Some(resource) = from["resourceFieldRef"]["resource"].as_str() {
        let (list, name) = resource.split_once('.').unwrap_or((resource, ""));
        return match container["resources"][list][name].as_str() {
            Some(value) => Ok(value.to_owned()),
            None => Err(format!("from {resource}, which is not set")),
        };
    }
    let path = from["fieldRef"]["fieldPath"].as_str().unwrap_or_default();
    let template = &deployment["spec"]["template"];
    let entry = |map: &str| {
        let key = path.split_once("['")?.1.trim_end_matches("']");
        Some(template["metadata"][map][key].as_str().unwrap_or_default().to_owned())
    };
    Ok(match path {
        "metadata.namespace" => pod.namespace.to_owned(),
        "metadata.name" => format!("{}-controller-manager", pod.project),
        "metadata.uid" => "00000000-0000-0000-0000-000000000000".to_owned(),
        "spec.nodeName" => "localhost".to_owned(),
        "spec.serviceAccountName" => {
            template["spec"]["serviceAccountName"].as_str().unwrap_or("default").to_owned()
        }
        "status.podIP" | "status.hostIP" => "127.0.0.1".to_owned(),
        _ if path.starts_with("metadata.labels[") => entry("labels").unwrap_or_default(),
        _ if path.starts_with("metadata.annotations[") => entry("annotations").unwrap_or_default(),
        _ => return Err(format!("from the field {path:?} of the pod")),
    })
}

/// The arguments that concern the operator, with `$(NAME)` put in.
fn arguments(words: &[&str], env: &BTreeMap<String, String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        if word.starts_with('-') && OF_THE_POD.contains(&name) {
            // A value may stand apart.
            if !word.contains('=') && words.peek().is_some_and(|next| !next.starts_with('-')) {
                words.next();
            }
            continue;
        }
        let mut text = (*word).to_owned();
        for (name, value) in env {
            text = text.replace(&format!("$({name})"), value);
        }
        found.push(text);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: &str = "apiVersion: v1
kind: Namespace
metadata: { name: system }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: controller-manager, namespace: system }
spec:
  template:
    metadata:
      labels: { control-plane: controller-manager }
    spec:
      serviceAccountName: manager
      containers:
      - name: manager
        command: [/manager]
        args: [--leader-elect, \"--health-probe-bind-address=:8081\", --zap-devel, \"--ns=$(OPERATOR_NAMESPACE)\"]
        env:
        - name: OPERATOR_NAMESPACE
          valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
        - { name: LITERAL, value: a }
        - name: LABEL
          valueFrom: { fieldRef: { fieldPath: \"metadata.labels['control-plane']\" } }
        - name: PASSWORD
          valueFrom: { secretKeyRef: { name: s, key: k } }
        envFrom:
        - configMapRef: { name: settings }
";

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn the_deployment_with_its_patches_says_environment_and_arguments() {
        let folder = project(&[
            ("config/manager/manager.yaml", MANAGER),
            ("config/manager/kustomization.yaml", "resources: [manager.yaml]\nimages: []\n"),
            (
                "config/default/kustomization.yaml",
                "resources: [../manager, ../rbac]\npatches:\n- path: metrics.yaml\n  target: { kind: Deployment }\n\
                 - path: env.yaml\n- patch: |-\n    - { op: remove, path: /spec/nothing }\n",
            ),
            (
                "config/default/metrics.yaml",
                "- { op: add, path: /spec/template/spec/containers/0/args/0, value: --metrics-bind-address=:8443 }\n\
                 - op: add\n  path: /spec/template/spec/containers/0/ports\n  value: []\n\
                 - op: add\n  path: /spec/template/spec/containers/0/ports/-\n  value: { containerPort: 9444, name: webhook-server }\n",
            ),
            (
                "config/default/env.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: controller-manager, namespace: system }\n\
                 spec: { template: { spec: { containers: [ { name: manager, env: [ { name: LITERAL, value: b } ] } ] } } }\n",
            ),
        ]);
        let pod = Pod { namespace: "default", project: "demo" };
        let found = read(folder.path(), pod).unwrap();
        let env: Vec<String> = found.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(env, ["LABEL=controller-manager", "LITERAL=b", "OPERATOR_NAMESPACE=default"]);
        assert_eq!(found.args, ["--zap-devel", "--ns=default"]);
        assert_eq!(found.left_out, ["PASSWORD (from Secret s)", "all of ConfigMap settings"]);
        assert_eq!(found.webhook_port, Some(9444));
        assert_eq!(found.file, "config/manager/manager.yaml");
    }

    #[test]
    fn a_project_without_a_manager_gives_nothing_and_a_circle_ends() {
        let pod = Pod { namespace: "default", project: "demo" };
        assert_eq!(read(project(&[("a", "")]).path(), pod), None);
        let circle = project(&[
            ("config/default/kustomization.yaml", "resources: [../manager]\n"),
            ("config/manager/kustomization.yaml", "resources: [../default]\n"),
        ]);
        assert_eq!(read(circle.path(), pod), None);
        let endless = project(&[("config/manager/kustomization.yaml", "resources: [/dev/zero]\n")]);
        assert_eq!(read(endless.path(), pod), None);
    }
}
