//! Charts of a project that deploy its operator, each with its own values, as the objects of a release. Reads
//! files; asks no cluster, reaches no host, and a render ends.

use super::kustomization::documents;
use crate::folders::is_foreign;
use opdev_helm::chart::{Chart, read_dir_in_work};
use opdev_helm::dependencies;
use opdev_helm::engine::{self, Capabilities, Compat, Environment, FuncError, ReleaseInfo, RenderInput};
use opdev_kustomize::BuiltObject;
use opdev_os::read;
use opdev_sources::deadline;
use opdev_sources::time_limit::TimeLimit;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file that makes a folder a chart.
const FILE: &str = "Chart.yaml";
/// Deepest folder in which charts are looked for, and how many are rendered.
const DEEPEST: usize = 4;
const MOST: usize = 20;
/// The name of the release, and where it is installed.
const RELEASE: &str = "operator";
const NAMESPACE: &str = "default";

/// Returns true if a folder is a chart.
pub(crate) fn is_chart(folder: &Path) -> bool {
    folder.join(FILE).is_file()
}

/// The objects that a chart deploys with the values of its own file.
///
/// # Errors
/// Why it does not render, in words.
pub(crate) fn rendered(root: &Path, folder: &Path) -> Result<Vec<BuiltObject>, String> {
    if let Some(why) = read::no_place_for_files(root, folder) {
        return Err(why);
    }
    let files = read_dir_in_work(folder).map_err(|why| why.to_string())?;
    let chart = Chart::load_for(&files, Compat::V3).map_err(|error| error.message)?;
    let missing = dependencies::missing(&chart);
    if !missing.is_empty() {
        return Err(format!("its dependencies are not in charts/: {}", missing.join(", ")));
    }
    let (values, capabilities) = (Value::Object(Map::new()), Capabilities::default_for(Compat::V3));
    let still = Still(deadline::of(deadline::RENDER));
    let input = RenderInput {
        skip_schema_validation: engine::reaches_out(&chart),
        ..RenderInput::new(&values, ReleaseInfo::install(RELEASE, NAMESPACE), &capabilities, &still)
    };
    let rendered = engine::render(&chart, &input).map_err(|error| error.message)?;
    let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let of_document = |document: &opdev_helm::manifest::Document| {
        // The path begins with the chart's name.
        let file = document.path.split_once('/').map_or(&*document.path, |(_, file)| file);
        let part = |object: Value| BuiltObject {
            first_name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            object,
            file: real.join(file),
            ..BuiltObject::default()
        };
        documents(&document.part.content).map(part).collect::<Vec<_>>()
    };
    Ok(rendered.documents.iter().flat_map(of_document).collect())
}

/// The objects of the charts that deploy an operator of these API groups: a workload, and a role that is
/// bound with rules for one of the groups. A chart that does not render is none.
pub fn of_operator(root: &Path, groups: &BTreeSet<String>) -> Vec<BuiltObject> {
    let deploys = |objects: &Vec<BuiltObject>| {
        let any = |kinds: &[&str], is: &dyn Fn(&Value) -> bool| {
            objects
                .iter()
                .any(|part| kinds.iter().any(|kind| part.object["kind"] == *kind) && is(&part.object))
        };
        let lists = |rule: &Value| {
            let named = rule["apiGroups"].as_array().into_iter().flatten().filter_map(Value::as_str);
            named.into_iter().any(|group| groups.contains(group))
        };
        let rules = |role: &Value| role["rules"].as_array().into_iter().flatten().any(lists);
        any(&["Deployment", "StatefulSet", "DaemonSet"], &|_| true)
            && any(&["Role", "ClusterRole"], &rules)
            && any(&["RoleBinding", "ClusterRoleBinding"], &|_| true)
    };
    let rendered = folders(root).into_iter().filter_map(|folder| {
        let done = rendered(root, &folder);
        done.inspect_err(|why| tracing::info!("{} is no chart of the operator: {why}", folder.display())).ok()
    });
    rendered.filter(deploys).flatten().collect()
}

/// The folders with charts, those in other charts left out.
fn folders(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![(root.to_owned(), 0)]);
    let mut walk = read::Walk::from(root);
    while let Some((folder, depth)) = open.pop() {
        if found.len() >= MOST {
            break;
        }
        if is_chart(&folder) {
            found.push(folder);
        } else if depth < DEEPEST {
            let below = walk.paths(&folder).into_iter().rev();
            let below = below.filter(|path| path.is_dir() && !path.is_symlink() && !is_foreign(path));
            open.extend(below.map(|path| (path, depth + 1)));
        }
    }
    found
}

/// No time, no cluster, and an end.
struct Still(TimeLimit);

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        // Not all equal: key generation needs candidates that differ.
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = u8::try_from((at * 197 + 31) % 251).unwrap_or(0);
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
        Ok(Value::Object(Map::new()))
    }

    fn give_up(&self) -> Option<&'static str> {
        self.0.reached()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_chart_of_the_operator_is_known_by_a_bound_role_for_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let role = |group: &str| {
            format!(
                "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: {{{{ .Release.Name }}}}}}\nrules:\n\
                 - {{apiGroups: [{group}], resources: [\"*\"], verbs: {{{{ .Values.verbs }}}}}}\n"
            )
        };
        let rest = "kind: ClusterRoleBinding\nmetadata: {name: a}\nroleRef: {kind: ClusterRole, name: {{ .Release.Name }}}\n---\n\
                    kind: Deployment\nmetadata: {name: a}\n";
        for (chart, group) in [("deploy/operator", "x.io"), ("deploy/database", "apps")] {
            write(&format!("{chart}/Chart.yaml"), "apiVersion: v2\nname: a\nversion: 1.0.0\n");
            write(&format!("{chart}/values.yaml"), "verbs: [get]\n");
            write(&format!("{chart}/templates/role.yaml"), &role(group));
            write(&format!("{chart}/templates/rest.yaml"), rest);
        }
        let groups = BTreeSet::from(["x.io".to_owned()]);
        let found = of_operator(folder.path(), &groups);
        let shown = |part: &BuiltObject| {
            let file = part.file.strip_prefix(folder.path().canonicalize().unwrap()).unwrap();
            format!("{} {} {}", part.object["kind"].as_str().unwrap(), part.first_name, file.display())
        };
        let mut shown: Vec<String> = found.iter().map(shown).collect();
        shown.sort();
        assert_eq!(
            shown,
            [
                "ClusterRole operator deploy/operator/templates/role.yaml",
                "ClusterRoleBinding a deploy/operator/templates/rest.yaml",
                "Deployment a deploy/operator/templates/rest.yaml",
            ]
        );
        write("deploy/operator/templates/role.yaml", "{{ fail \"no\" }}");
        assert!(of_operator(folder.path(), &groups).is_empty());
    }
}
