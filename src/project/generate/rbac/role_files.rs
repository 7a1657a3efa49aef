//! The role files of a project (`config/rbac`): what they hold, whom they are for, and where a rule belongs.
//! Reads files and judges them; never writes and never asks a cluster.

use crate::manifests;
use crate::manifests::Asked;
use opdev_event::Diagnostic;
use opdev_event::{Place, Severity};
use opdev_object::{meta, yaml};
use opdev_os::read;
use opdev_project::program::chart;
use opdev_project::program::kustomization::{BuiltObject, Manifests};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// Where a project's role files are.
pub const FOLDER: &str = "config/rbac";
/// The kinds of role files.
const KINDS: [&str; 5] = ["ServiceAccount", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
/// Where the scaffolds of Operator SDK and kubebuilder put the operator.
const NAMESPACE: &str = "system";
const ACCOUNT: &str = "controller-manager";
const ROLE: &str = "manager-role";
const GROUP: &str = "rbac.authorization.k8s.io";

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

impl Account {
    /// Its user name.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that the API server puts it in.
    pub fn groups(&self) -> Vec<String> {
        let all = "system:serviceaccounts";
        vec![all.to_owned(), format!("{all}:{}", self.namespace), "system:authenticated".to_owned()]
    }
}

/// The role that takes a new rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// Relative to the project's root.
    pub file: String,
    pub kind: String,
    pub name: String,
}

/// One object of a role file.
#[derive(Clone, Debug)]
struct Found {
    file: String,
    object: Value,
}

/// The content of the files.
#[derive(Clone, Debug, Default)]
pub struct RoleFiles {
    found: Vec<Found>,
    /// The text of a role file that is not written yet: what the markers and charts ask for.
    pub generated: Option<String>,
    /// Their errors.
    pub problems: Vec<Diagnostic>,
    /// Why some of them may be missing, in words.
    pub missing: Vec<String>,
}

impl RoleFiles {
    /// Reads the folder; where no file has a role, takes what `opdev rbac --from-charts` would write.
    pub fn read(root: &Path) -> RoleFiles {
        let mut files = RoleFiles::default();
        let mut paths = read::paths(root.join(FOLDER));
        paths.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"));
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = format!("{FOLDER}/{name}");
            match read::text(&path) {
                Ok(text) => files.take(&file, &text),
                Err(error) => files.problem(&file, 0, format!("cannot be read: {error}")),
            }
        }
        if !files.found.iter().any(|found| is_role(&found.object)) {
            files.generate(root);
        }
        files
    }

    /// The roles that a project deploys: those of its manifests (a chart, a kustomization or files), where
    /// they are named; else those of the folder; where that has none, those of the charts that deploy the
    /// operator of these API groups.
    pub fn deployed(root: &Path, manifests: Option<&Path>, groups: &BTreeSet<String>) -> RoleFiles {
        if let Some(path) = manifests {
            let Manifests { parts, missing, .. } = Manifests::read(root, path, &KINDS);
            return RoleFiles { missing, ..RoleFiles::of(root, parts) };
        }
        let files = RoleFiles::read(root);
        if files.generated.is_none() && files.of_kind(&["Role", "ClusterRole"]).next().is_some() {
            return files;
        }
        let mut parts = chart::of_operator(root, groups);
        parts.retain(|part| KINDS.iter().any(|kind| part.object["kind"] == *kind));
        if parts.is_empty() { files } else { RoleFiles::of(root, parts) }
    }

    fn of(root: &Path, parts: Vec<BuiltObject>) -> RoleFiles {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let found = parts.into_iter().map(|part| Found {
            file: part.file.strip_prefix(&root).unwrap_or(&part.file).display().to_string(),
            object: part.object,
        });
        RoleFiles { found: found.collect(), ..RoleFiles::default() }
    }

    fn generate(&mut self, root: &Path) {
        let asked = Asked { charts: true, year: jiff::Zoned::now().year().to_string(), ..Asked::default() };
        let Ok(made) = manifests::roles(root, &asked) else { return };
        // Without this nobody would know why no call is allowed.
        self.problems.extend(made.errors().cloned());
        let texts: Vec<String> = made.files.into_iter().map(|file| file.artifact.text).collect();
        let text = texts.concat();
        if !text.is_empty() {
            self.take(&default_file(), &text);
            self.generated = Some(text);
        }
    }

    pub fn take(&mut self, file: &str, text: &str) {
        let mut line = 1;
        for document in text.split("\n---") {
            match yaml::from_str(document.trim_start_matches("---")) {
                Ok(object) if object["kind"].is_string() => {
                    self.found.push(Found { file: file.to_owned(), object });
                }
                Ok(_) => {}
                Err(error) => self.problem(file, line, error.to_string()),
            }
            line += u32::try_from(document.lines().count()).unwrap_or(0);
        }
    }

    fn problem(&mut self, file: &str, line: u32, message: String) {
        self.problems.push(Diagnostic {
            severity: Severity::Error,
            message,
            place: Some(Place { file: file.to_owned(), line, column: 0 }),
            excerpt: None,
            hint: Some("until then the roles stay as they were".to_owned()),
            kind: None,
        });
    }

    /// The roles that the files have. None where these are not all that counts: they would still be made, a
    /// role is put together from others, or a binding names one that lies elsewhere, such as `cluster-admin`.
    pub fn roles(&self) -> Vec<Value> {
        let roles: Vec<&Value> = self.of_kind(&["Role", "ClusterRole"]).map(|found| &found.object).collect();
        let is_here = |reference: &Value| {
            let is_it = |role: &&&Value| {
                role["kind"] == reference["kind"] && role["metadata"]["name"] == reference["name"]
            };
            roles.iter().find(is_it).is_some_and(|role| role["aggregationRule"].is_null())
        };
        let mut bindings = self.of_kind(&["ClusterRoleBinding", "RoleBinding"]);
        let is_whole = self.generated.is_none() && self.missing.is_empty();
        if !is_whole || !bindings.all(|binding| is_here(&binding.object["roleRef"])) {
            return Vec::new();
        }
        roles.into_iter().cloned().collect()
    }

    fn of_kind<'a>(&'a self, kinds: &'a [&str]) -> impl Iterator<Item = &'a Found> {
        self.found.iter().filter(move |found| kinds.iter().any(|kind| found.object["kind"] == *kind))
    }

    /// The ServiceAccount to be: the one that is named (`[NAMESPACE/]NAME`), else the project's own.
    pub fn account(&self, named: &str) -> Account {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let or_system =
            |namespace: String| if namespace.is_empty() { NAMESPACE.to_owned() } else { namespace };
        if let Some((namespace, name)) = named.split_once(['/', ':']) {
            return Account { namespace: namespace.to_owned(), name: name.to_owned() };
        }
        let written = self.of_kind(&["ServiceAccount"]).map(|found| &found.object["metadata"]);
        let subjects = self
            .of_kind(&["ClusterRoleBinding", "RoleBinding"])
            .flat_map(|found| found.object["subjects"].as_array().into_iter().flatten())
            .filter(|subject| subject["kind"] == "ServiceAccount");
        let all: Vec<Account> = written
            .chain(subjects)
            .map(|found| Account {
                namespace: or_system(text(&found["namespace"])),
                name: text(&found["name"]),
            })
            .collect();
        let fits = |account: &&Account| named.is_empty() || account.name == named;
        let name = if named.is_empty() { ACCOUNT } else { named };
        all.iter()
            .find(fits)
            .cloned()
            .unwrap_or_else(|| Account { namespace: NAMESPACE.to_owned(), name: name.to_owned() })
    }

    /// The role that a new rule of the account belongs in: one it is bound to in the whole cluster, before
    /// others.
    pub fn home(&self, account: &Account) -> Home {
        let names = |found: &&Found| self.names(found, account);
        let mut bound: Vec<&Value> = self
            .of_kind(&["ClusterRoleBinding"])
            .filter(names)
            .chain(self.of_kind(&["RoleBinding"]).filter(names))
            .map(|found| &found.object["roleRef"])
            .collect();
        // The role of metrics and the like is no place for what the operator does.
        bound.sort_by_key(|role| !role["name"].as_str().is_some_and(|name| name.ends_with(ROLE)));
        let role_of = |kind: &Value, name: &Value| {
            self.found
                .iter()
                .find(|found| found.object["kind"] == *kind && found.object["metadata"]["name"] == *name)
        };
        let role = bound.iter().find_map(|role| role_of(&role["kind"], &role["name"]));
        let role = role.or_else(|| role_of(&json!("ClusterRole"), &json!(ROLE)));
        match role {
            Some(found) => Home {
                file: found.file.clone(),
                kind: found.object["kind"].as_str().unwrap_or_default().to_owned(),
                name: found.object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            },
            None => Home { file: default_file(), kind: "ClusterRole".to_owned(), name: ROLE.to_owned() },
        }
    }

    fn names(&self, binding: &Found, account: &Account) -> bool {
        let subjects = binding.object["subjects"].as_array().into_iter().flatten();
        subjects.into_iter().any(|subject| {
            subject["kind"] == "ServiceAccount"
                && subject["name"] == account.name.as_str()
                && subject["namespace"].as_str().is_none_or(|namespace| namespace == account.namespace)
        })
    }

    /// Objects that have to be on the cluster, in order: the namespace, the ServiceAccount, roles, bindings.
    pub fn objects(&self, account: &Account) -> Vec<Value> {
        let Account { namespace, name } = account;
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": namespace}}),
        ];
        let kinds = ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"];
        for kind in kinds {
            for found in self.of_kind(&[kind]) {
                let mut object = found.object.clone();
                let namespaced = !kind.starts_with("Cluster");
                if namespaced && object["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
                    meta::put(&mut object, &["metadata", "namespace"], json!(namespace));
                }
                objects.push(object);
            }
        }
        let bindings = ["ClusterRoleBinding", "RoleBinding"];
        if !self.of_kind(&bindings).any(|binding| self.names(binding, account)) {
            let home = self.home(account);
            objects.push(json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
                "metadata": {"name": format!("opdev:{namespace}:{name}")},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": home.name}}));
        }
        objects
    }
}

fn is_role(object: &Value) -> bool {
    object["kind"] == "Role" || object["kind"] == "ClusterRole"
}

fn default_file() -> String {
    format!("{FOLDER}/role.yaml")
}

/// The path of an object of one of the kinds here.
pub fn path_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (name, namespace) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => format!("/api/v1/namespaces/{name}"),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}"),
        kind => {
            let plural = format!("{}s", kind.to_lowercase());
            let place =
                if kind.starts_with("Cluster") { String::new() } else { format!("namespaces/{namespace}/") };
            format!("/apis/{GROUP}/v1/{place}{plural}/{name}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> RoleFiles {
        let mut files = RoleFiles::default();
        files.take("config/rbac/all.yaml", text);
        files
    }

    const SCAFFOLD: &str = "apiVersion: v1
kind: ServiceAccount
metadata: {name: controller-manager, namespace: system}
---
kind: ClusterRole
metadata: {name: manager-role}
rules: []
---
kind: ClusterRole
metadata: {name: metrics-auth-role}
rules: []
---
kind: Role
metadata: {name: leader-election-role}
rules: []
---
kind: ClusterRoleBinding
metadata: {name: metrics-auth-rolebinding}
roleRef: {kind: ClusterRole, name: metrics-auth-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
---
kind: ClusterRoleBinding
metadata: {name: manager-rolebinding}
roleRef: {kind: ClusterRole, name: manager-role}
subjects: [{kind: ServiceAccount, name: controller-manager, namespace: system}]
---
kind: Kustomization
resources: [role.yaml]
";

    #[test]
    fn roles_are_known_only_where_all_that_are_bound_are_here() {
        let count = |text: &str| files(text).roles().len();
        assert_eq!(count(SCAFFOLD), 3);
        let elsewhere = "\n---\nkind: ClusterRoleBinding\nmetadata: {name: admin}\n\
                         roleRef: {kind: ClusterRole, name: cluster-admin}\n";
        assert_eq!(count(&format!("{SCAFFOLD}{elsewhere}")), 0);
        let aggregated = "kind: ClusterRole\nmetadata: {name: all}\naggregationRule: {clusterRoleSelectors: []}\n\
                          ---\nkind: ClusterRoleBinding\nroleRef: {kind: ClusterRole, name: all}\n";
        assert_eq!(count(aggregated), 0);
        assert_eq!(count(&aggregated.replace("aggregationRule", "other")), 1);
        let made = RoleFiles { generated: Some(String::new()), ..files(SCAFFOLD) };
        assert!(made.roles().is_empty(), "nobody has written them yet");
    }

    #[test]
    fn a_scaffold_is_understood() {
        let files = files(SCAFFOLD);
        let account = files.account("");
        assert_eq!(account.user(), "system:serviceaccount:system:controller-manager");
        let home = files.home(&account);
        assert_eq!((home.kind.as_str(), home.name.as_str()), ("ClusterRole", "manager-role"));
        let paths: Vec<String> = files.objects(&account).iter().map(path_of).collect();
        assert_eq!(paths.len(), 7, "{paths:?}");
        assert_eq!(
            paths[..2],
            ["/api/v1/namespaces/system", "/api/v1/namespaces/system/serviceaccounts/controller-manager"]
        );
        let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/system/roles/leader-election-role";
        assert!(paths.iter().any(|path| path == role), "{paths:?}");
        let other = files.account("x/robot");
        assert_eq!(other, Account { namespace: "x".to_owned(), name: "robot".to_owned() });
        assert_eq!(files.objects(&other).len(), 8, "it is bound to the role of the operator");
    }

    #[test]
    fn without_files_there_is_still_an_account_and_a_place_for_rules() {
        let files = RoleFiles::default();
        let account = files.account("");
        let home = files.home(&account);
        assert_eq!((home.file.as_str(), home.name.as_str()), ("config/rbac/role.yaml", "manager-role"));
        assert_eq!(files.objects(&account).len(), 3);
        assert_eq!(RoleFiles::default().account("robot").name, "robot");
    }

    #[test]
    fn what_is_no_yaml_is_a_problem_with_its_file() {
        let files = files("kind: [");
        assert_eq!(files.problems.len(), 1);
        assert_eq!(files.problems[0].place.as_ref().unwrap().file, "config/rbac/all.yaml");
    }
}
