//! An API with Go types: the types with kubebuilder markers, their CRD, a reconciler in TypeScript or templates, and a
//! sample. No Go toolchain is needed; opdev reads the types itself.

use super::api::{CRDS, NewApi, RULES, SAMPLES, insert};
use super::draft::Draft;
use super::roles;
use anyhow::Result;
use opdev_types::emit;
use opdev_types::go::{Files, Generator, Options};
use std::sync::Arc;

/// What reconciles the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    TypeScript,
    Templates,
    Nothing,
}

/// The folder of the types, from the project's root.
fn folder(api: &NewApi) -> String {
    if api.project.multigroup {
        format!("api/{}/{}", api.group, api.gvk.version)
    } else {
        format!("api/{}", api.gvk.version)
    }
}

/// The Go package of the types, as `PROJECT` names it.
pub(super) fn package(api: &NewApi) -> String {
    let module = if api.project.repo.is_empty() { &api.project.project_name } else { &api.project.repo };
    format!("{module}/{}", folder(api))
}

pub(super) fn add(api: &NewApi, body: Body, draft: &mut Draft<'_>) -> Result<()> {
    let folder = folder(api);
    let info = api.fill(include_str!("files/typed/groupversion_info.go"));
    let types = api.fill(include_str!("files/typed/types.go"));
    let lower = api.lower();
    let types_path = format!("{folder}/{lower}_types.go");
    draft.create_missing(&format!("{folder}/groupversion_info.go"), info.clone());
    draft.create(types_path.as_str(), types.clone());
    add_crd(api, &folder, &[(types_path, types), (format!("{folder}/groupversion_info.go"), info)], draft)?;
    add_reconciler(api, body, draft);
    let name = format!("{}_{}_{lower}.yaml", api.group, api.gvk.version);
    let sample = format!(
        "apiVersion: {}/{}\nkind: {}\nmetadata:\n  name: {lower}-sample\nspec:\n  message: hello from {lower}-sample\n",
        api.gvk.group, api.gvk.version, api.gvk.kind
    );
    draft.create(format!("config/samples/{name}"), sample);
    insert(SAMPLES, &format!("- {name}\n"), draft);
    insert(RULES, &roles::of_type(&api.gvk, &api.plural), draft);
    Ok(())
}

fn add_reconciler(api: &NewApi, body: Body, draft: &mut Draft<'_>) {
    let lower = api.lower();
    let text = |text: &str| {
        let (ts, yaml) =
            if api.namespaced { ("", "") } else { (", namespace: \"default\"", "\n  namespace: default") };
        api.fill(text).replace("@NAMESPACE_TS@", ts).replace("@NAMESPACE_YAML@", yaml)
    };
    match body {
        Body::TypeScript => {
            draft.create(
                format!("config/reconcilers/{lower}.ts"),
                text(include_str!("files/typed/reconciler.ts")),
            );
            draft.create_missing(
                "config/reconcilers/tsconfig.json",
                include_str!("files/typed/tsconfig.json"),
            );
        }
        Body::Templates => {
            let folder = format!("config/reconcilers/{lower}");
            draft.create(format!("{folder}/owns.yaml"), text(include_str!("files/typed/owns.yaml")));
            draft.create(format!("{folder}/10-children.yaml"), text(include_str!("files/typed/children.yaml")));
        }
        Body::Nothing => draft.warn(format!(
            "nothing reconciles {} yet: write config/reconcilers/{lower}.ts, or run `opdev create api` with --reconciler ts \
             and --force",
            api.gvk.kind
        )),
    }
}

/// The CRD of the types, as `opdev crd` makes it.
fn add_crd(api: &NewApi, folder: &str, files: &[(String, String)], draft: &mut Draft<'_>) -> Result<()> {
    let files = InMemory { folder: folder.to_owned(), files: files.to_vec() };
    let made = Generator::new().generate(&files, &[folder.to_owned()], &Options::default());
    for crd in made.crds {
        let artifact = emit::crd(&crd.object, "")?;
        let path = format!("config/crd/bases/{}", artifact.name);
        // Only `opdev crd` sees the packages of all versions.
        if api.has_other_version() && draft.exists(&path) {
            draft.warn(format!("{path} has another version of {}; `opdev crd` writes both", api.gvk.kind));
            continue;
        }
        insert(CRDS, &format!("- bases/{}\n", artifact.name), draft);
        draft.create(path, artifact.text);
    }
    Ok(())
}

/// The scaffolded types, for the generator. Packages of Kubernetes come from opdev's own facts.
struct InMemory {
    folder: String,
    files: Vec<(String, String)>,
}

impl Files for InMemory {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        let path = path.trim_start_matches("./");
        self.files.iter().find(|(name, _)| name == path).map(|(_, text)| Arc::from(text.as_str()))
    }

    fn list(&self, dir: &str) -> Vec<String> {
        if dir.trim_start_matches("./").trim_end_matches('/') != self.folder {
            return Vec::new();
        }
        let names = self.files.iter().filter_map(|(path, _)| path.rsplit('/').next());
        names.map(str::to_owned).collect()
    }

    fn module_cache(&self) -> Option<String> {
        None
    }

    fn go_root(&self) -> Option<String> {
        None
    }

    fn above(&self) -> Vec<String> {
        Vec::new()
    }
}
