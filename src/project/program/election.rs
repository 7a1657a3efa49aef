//! Leader election as the project's files have it: the name of the lock, from the manager's arguments or its
//! code, and the argument that turns it on. Nothing runs.

use super::Programs;
use super::kustomization::{Kustomized, texts};
use super::manager_manifest::{container, manager};
use crate::Project;

/// Leader election, which keeps two versions of an operator from reconciling at the same time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Election {
    /// The lock's name, where it is known; not where an argument takes it from a variable.
    pub lock: Option<String>,
    /// True or false where an argument says so.
    pub turned_on: Option<bool>,
    /// True if the Deployment ends the old pods before it starts new ones (`strategy: {type: Recreate}`).
    pub recreates: bool,
}

const SWITCHES: [&str; 2] = ["leader-elect", "enable-leader-election"];

impl Election {
    /// Reads it; `None` where the project has no Deployment of a manager.
    pub fn of(project: &Project) -> Option<Election> {
        let programs = Programs::of(project);
        let plan = programs.plans().first();
        let kustomized = Kustomized::of(&project.root, project.manifests.as_deref());
        let deployment = &manager(&kustomized, plan.and_then(|plan| plan.binary.as_deref()))?.object;
        let container = container(deployment)?;
        let arguments: Vec<&str> = texts(&container["command"]).chain(texts(&container["args"])).collect();
        let off = ["false", "False", "FALSE", "f", "F", "0"];
        let turned_on = SWITCHES.iter().find_map(|name| flag(&arguments, name));
        // A flag that is true or false takes no word after it.
        let turned_on = turned_on.map(|(value, _)| value.is_none_or(|value| !off.contains(&value)));
        let named = flag(&arguments, "leader-election-id").and_then(|(value, next)| value.or(next));
        let lock = match named {
            Some(name) => Some(name.to_owned()).filter(|name| !name.contains("$(")),
            None => plan.and_then(|plan| plan.lease.clone()),
        };
        Some(Election { lock, turned_on, recreates: deployment["spec"]["strategy"]["type"] == "Recreate" })
    }
}

/// The last one of a flag: its value after `=`, and the word that follows it.
fn flag<'a>(arguments: &[&'a str], name: &str) -> Option<(Option<&'a str>, Option<&'a str>)> {
    let flag = |argument: &&'a str| argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
    let at = |argument: &&'a str| flag(argument).is_some_and(|flag| flag.split('=').next() == Some(name));
    let found = arguments.iter().rposition(at)?;
    let next = arguments.get(found + 1).filter(|next| !next.starts_with('-')).copied();
    Some((arguments[found].split_once('=').map(|(_, value)| value), next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MAIN: &str =
        "package main\n\nfunc main() { ctrl.NewManager(c, ctrl.Options{LeaderElectionID: \"a.b.c\"}) }\n";

    fn election(args: &str, strategy: &str) -> Election {
        let folder = tempfile::tempdir().unwrap();
        let files = [
            ("go.mod", "module m\n\nrequire sigs.k8s.io/controller-runtime v0.25.0\n".to_owned()),
            ("cmd/main.go", MAIN.to_owned()),
            ("config/manager/kustomization.yaml", "resources: [manager.yaml]\n".to_owned()),
            (
                "config/manager/manager.yaml",
                format!(
                    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: m, namespace: s}}\nspec:\n  strategy: {{type: \
                     {strategy}}}\n  template:\n    spec:\n      containers:\n      - name: manager\n        command: [/manager]\n        \
                     args: [{args}]\n"
                ),
            ),
        ];
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
        Election::of(&project).unwrap()
    }

    #[test]
    fn arguments_come_before_the_code() {
        let of = |lock: &str, turned_on: Option<bool>, recreates: bool| Election {
            lock: Some(lock.to_owned()),
            turned_on,
            recreates,
        };
        assert_eq!(election("--leader-elect, \"--x=1\"", "RollingUpdate"), of("a.b.c", Some(true), false));
        assert_eq!(election("--leader-elect=false", "Recreate"), of("a.b.c", Some(false), true));
        let named = "-enable-leader-election=true, --leader-election-id, other";
        assert_eq!(election(named, "Recreate"), of("other", Some(true), true));
        assert_eq!(election("", "Recreate"), of("a.b.c", None, true));
        let last = "--leader-elect, \"--leader-elect=0\"";
        assert_eq!(election(last, "Recreate"), of("a.b.c", Some(false), true));
        let variable = election("--leader-elect, \"--leader-election-id=$(NAME)\"", "Recreate");
        assert_eq!(variable, Election { lock: None, turned_on: Some(true), recreates: true });
    }
}
