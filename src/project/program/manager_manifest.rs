//! The surroundings that the manager's Deployment would give to the program in a cluster: environment and
//! arguments of its container in `config/manager`, with the patches of the kustomizations that lead there.
//! Literal values and the downward API are taken, and files of a generated ConfigMap are named where they lie
//! in the project; what else a Secret or a ConfigMap holds is named and left out.

use super::kustomization::{Kustomized, items, texts};
use opdev_kustomize::BuiltObject;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// The surroundings that the Deployment gives.
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
    /// Files of the project that the arguments or variables name in place of a mounted ConfigMap.
    pub mounted: Vec<PathBuf>,
    /// Parts that were left out and why, in words.
    pub left_out: Vec<String>,
}

/// The stand-in for the pod that does not exist.
#[derive(Clone, Copy, Debug)]
pub struct Pod<'a> {
    /// The namespace that opdev works on.
    pub namespace: &'a str,
    /// The project's name.
    pub project: &'a str,
    /// The name of the program, where it is known: of several Deployments the one that starts it counts.
    pub binary: Option<&'a str>,
}

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

/// Reads the manager's Deployment; `None` where the project has none.
pub fn read(root: &Path, kustomized: &Kustomized, pod: Pod<'_>) -> Option<Deployed> {
    let part = manager(kustomized, pod.binary)?;
    let root = root.canonicalize().ok()?;
    let file = part.file.strip_prefix(&root).unwrap_or(&part.file).display().to_string();
    Some(of_deployment(&part.object, file, kustomized, pod))
}

/// The Deployment of the manager: of several the one that starts the program, then the one that scaffolds
/// name so, then one in `config/manager`, then the first.
pub(crate) fn manager<'a>(kustomized: &'a Kustomized, binary: Option<&str>) -> Option<&'a BuiltObject> {
    let starts = |part: &BuiltObject| {
        let Some(binary) = binary else { return false };
        let containers = items(&part.object["spec"]["template"]["spec"]["containers"]);
        let mut commands = containers.filter_map(|one| texts(&one["command"]).next());
        commands.any(|command| Path::new(command).file_name().is_some_and(|name| name == binary))
    };
    let is_named = |part: &BuiltObject| {
        let labels = part.object.pointer("/spec/template/metadata/labels");
        labels.is_some_and(|labels| labels["control-plane"].is_string())
    };
    let lies_there =
        |part: &BuiltObject| part.file.parent().is_some_and(|folder| folder.ends_with("config/manager"));
    let found = kustomized.parts.iter().filter(|one| one.object["kind"] == "Deployment");
    // The last one of equal ones would win.
    found.rev().max_by_key(|part| (starts(part), is_named(part), lies_there(part)))
}

/// The namespace that the manager is deployed to, where its files say so.
pub fn namespace(kustomized: &Kustomized, binary: Option<&str>) -> Option<String> {
    let own = || {
        let manager = manager(kustomized, binary)?;
        Some(manager.object["metadata"]["namespace"].as_str()?.to_owned())
    };
    kustomized.namespace.clone().or_else(own)
}

/// The container of the program, for others may stand beside it.
pub(crate) fn container(deployment: &Value) -> Option<&Value> {
    let containers: Vec<&Value> = items(&deployment["spec"]["template"]["spec"]["containers"]).collect();
    let named = containers.iter().find(|one| one["name"] == "manager");
    named.or_else(|| containers.iter().find(|one| one["name"] != "kube-rbac-proxy")).copied()
}

/// The volumes that a container mounts: each mount and its volume.
pub(crate) fn mounts<'a>(
    deployment: &'a Value,
    container: &'a Value,
) -> impl Iterator<Item = (&'a Value, &'a Value)> {
    let volumes = &deployment["spec"]["template"]["spec"]["volumes"];
    items(&container["volumeMounts"])
        .filter_map(|mount| Some((mount, items(volumes).find(|volume| volume["name"] == mount["name"])?)))
}

/// The files that generated ConfigMaps put into a container: path there → file of the project; longer paths
/// first.
fn mounted_files(deployment: &Value, container: &Value, kustomized: &Kustomized) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for (mount, volume) in mounts(deployment, container) {
        let map = &volume["configMap"];
        let is_mounted = |part: &&BuiltObject| {
            part.object["kind"] == "ConfigMap" && part.object["metadata"]["name"] == map["name"]
        };
        let Some(BuiltObject { sources: files, .. }) = kustomized.parts.iter().find(is_mounted) else {
            continue;
        };
        let Some(place) = mount["mountPath"].as_str().filter(|place| place.len() > 1) else { continue };
        for (key, file) in files {
            let renamed = items(&map["items"]).find(|item| item["key"] == key.as_str());
            let name = renamed.and_then(|item| item["path"].as_str()).unwrap_or(key);
            match mount["subPath"].as_str() {
                Some(sub) if sub == name => found.push((place.to_owned(), file.clone())),
                Some(_) => {}
                None => found.push((format!("{}/{name}", place.trim_end_matches('/')), file.clone())),
            }
        }
    }
    found.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
    found
}

fn of_deployment(object: &Value, file: String, kustomized: &Kustomized, pod: Pod<'_>) -> Deployed {
    let mut found = Deployed { file, ..Deployed::default() };
    let Some(container) = container(object) else { return found };
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
    for (place, file) in mounted_files(object, container, kustomized) {
        let named = found.args.iter_mut().chain(found.env.values_mut()).filter(|text| names(text, &place));
        let mut any = false;
        for text in named {
            *text = text.replace(&place, &file.display().to_string());
            any = true;
        }
        found.mounted.extend(any.then_some(file));
    }
    found
}

/// Returns true if a text is a path, or an argument with it.
fn names(text: &str, path: &str) -> bool {
    text == path || text.strip_suffix(path).is_some_and(|before| before.ends_with('='))
}

/// Why a variable has no value outside a cluster: what its value comes from.
#[derive(Debug)]
enum UnknownValue {
    Secret(String),
    ConfigMap(String),
    /// A request or a limit of the container that is not set.
    Resource(String),
    /// A field of the pod, by its path.
    Field(String),
}

impl fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnknownValue::Secret(name) => write!(f, "from Secret {name}"),
            UnknownValue::ConfigMap(name) => write!(f, "from ConfigMap {name}"),
            UnknownValue::Resource(name) => write!(f, "from {name}, which is not set"),
            UnknownValue::Field(path) => write!(f, "from the field {path:?} of the pod"),
        }
    }
}

impl std::error::Error for UnknownValue {}

fn value_of(
    variable: &Value,
    deployment: &Value,
    container: &Value,
    pod: Pod<'_>,
) -> Result<String, UnknownValue> {
    let from = &variable["valueFrom"];
    if from.is_null() {
        return Ok(variable["value"].as_str().unwrap_or_default().to_owned());
    }
    let named = |what: &str| from[what]["name"].as_str().map(str::to_owned);
    if let Some(name) = named("secretKeyRef") {
        return Err(UnknownValue::Secret(name));
    }
    if let Some(name) = named("configMapKeyRef") {
        return Err(UnknownValue::ConfigMap(name));
    }
    if let Some(resource) = from["resourceFieldRef"]["resource"].as_str() {
        let (list, name) = resource.split_once('.').unwrap_or((resource, ""));
        return match container["resources"][list][name].as_str() {
            Some(value) => Ok(value.to_owned()),
            None => Err(UnknownValue::Resource(resource.to_owned())),
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
        _ => return Err(UnknownValue::Field(path.to_owned())),
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

    fn read(root: &Path, pod: Pod<'_>) -> Option<Deployed> {
        super::read(root, &Kustomized::read(root), pod)
    }

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
    fn of_several_deployments_the_one_that_starts_the_program_counts_with_its_namespace() {
        let deployment = |name: &str, command: &str| {
            format!(
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: {name}, namespace: keda }}\nspec:\n  template:\n\
                 \x20   spec:\n      containers:\n      - name: {name}\n        command: [{command}]\n\
                 \x20       env:\n        - {{ name: WHO, value: {name} }}\n\
                 \x20       - {{ name: POD_NAMESPACE, valueFrom: {{ fieldRef: {{ fieldPath: metadata.namespace }} }} }}\n"
            )
        };
        let folder = project(&[
            ("config/default/kustomization.yaml", "resources: [../webhooks, ../manager]\n"),
            ("config/webhooks/kustomization.yaml", "resources: [webhooks.yaml]\n"),
            ("config/webhooks/webhooks.yaml", &deployment("webhooks", "/keda-admission-webhooks")),
            ("config/manager/kustomization.yaml", "resources: [manager.yaml]\n"),
            ("config/manager/manager.yaml", &deployment("manager", "/keda")),
        ]);
        let kustomized = Kustomized::read(folder.path());
        for (binary, who) in
            [(Some("keda"), "manager"), (Some("keda-admission-webhooks"), "webhooks"), (None, "manager")]
        {
            let namespace = namespace(&kustomized, binary).unwrap();
            let pod = Pod { namespace: &namespace, project: "keda", binary };
            let found = super::read(folder.path(), &kustomized, pod).unwrap();
            assert_eq!(found.env["WHO"], who, "{binary:?}");
            assert_eq!(found.env["POD_NAMESPACE"], "keda");
        }
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
        let pod = Pod { namespace: "default", project: "demo", binary: None };
        let found = read(folder.path(), pod).unwrap();
        let env: Vec<String> = found.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(env, ["LABEL=controller-manager", "LITERAL=b", "OPERATOR_NAMESPACE=default"]);
        assert_eq!(found.args, ["--zap-devel", "--ns=default"]);
        assert_eq!(found.left_out, ["PASSWORD (from Secret s)", "all of ConfigMap settings"]);
        assert_eq!(found.webhook_port, Some(9444));
        assert_eq!(found.file, "config/manager/manager.yaml");
    }

    #[test]
    fn a_file_of_a_generated_config_map_is_named_where_it_lies() {
        let folder = project(&[
            ("config/manager/manager.yaml", MANAGER),
            ("config/manager/settings.yaml", "leaderElection: {}\n"),
            (
                "config/manager/kustomization.yaml",
                "resources: [manager.yaml]\nconfigMapGenerator:\n- name: manager-config\n  files: [settings.yaml]\n",
            ),
            (
                "config/default/kustomization.yaml",
                "namespace: demo-system\nresources: [../manager]\npatches: [ { path: config.yaml } ]\n",
            ),
            (
                "config/default/config.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: controller-manager, namespace: system }\n\
                 spec:\n  template:\n    spec:\n      containers:\n      - name: manager\n\
                 \x20       args: [ --config=/settings.yaml, --other=/settings.yaml.bak ]\n\
                 \x20       volumeMounts: [ { name: config, mountPath: /settings.yaml, subPath: settings.yaml } ]\n\
                 \x20     volumes: [ { name: config, configMap: { name: manager-config } } ]\n",
            ),
        ]);
        let found = read(folder.path(), Pod { namespace: "default", project: "demo", binary: None }).unwrap();
        let file = folder.path().canonicalize().unwrap().join("config/manager/settings.yaml");
        assert_eq!(
            found.args,
            [format!("--config={}", file.display()), "--other=/settings.yaml.bak".to_owned()]
        );
        assert_eq!(found.mounted, [file]);
        assert_eq!(Kustomized::read(folder.path()).namespace.as_deref(), Some("demo-system"));
    }

    #[test]
    fn a_project_without_a_manager_gives_nothing_and_a_circle_ends() {
        let pod = Pod { namespace: "default", project: "demo", binary: None };
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
