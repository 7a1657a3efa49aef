//! An API with Go types: the types with kubebuilder markers, their CRD, a reconciler in TypeScript or
//! templates, and a sample. No Go toolchain is needed; opdev reads the types itself.

use super::api::{CRDS, NewApi, RULES, SAMPLES, insert};
use super::draft::Draft;
use super::draft_files::{DraftFiles, options};
use super::{go, go_project, roles};
use anyhow::Result;
use opdev_types::emit;
use opdev_types::go::Generator;
use serde_json::Value;

/// The reconciler of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    TypeScript,
    Templates,
    Go,
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

pub(super) fn add(api: &NewApi, body: Body, year: &str, draft: &mut Draft<'_>) -> Result<()> {
    let folder = folder(api);
    let asked_before = if api.is_go() { go::role(draft)? } else { None };
    add_types(api, body, &folder, draft)?;
    add_crd(api, &folder, draft)?;
    add_reconciler(api, body, draft);
    let lower = api.lower();
    let name = format!("{}_{}_{lower}.yaml", api.group, api.gvk.version);
    let sample = format!(
        "apiVersion: {}/{}\nkind: {}\nmetadata:\n  name: {lower}-sample\nspec:\n  message: hello from {lower}-sample\n",
        api.gvk.group, api.gvk.version, api.gvk.kind
    );
    draft.create(format!("config/samples/{name}"), sample);
    insert(SAMPLES, &format!("- {name}\n"), draft);
    if api.is_go() {
        go::add_copies(&folder, year, draft);
        go::add_role(asked_before.as_deref(), draft)?;
    } else {
        insert(RULES, &roles::of_type(&api.gvk, &api.plural), draft);
    }
    Ok(())
}

/// The file of the types and that of their package. A Go program has to know them.
fn add_types(api: &NewApi, body: Body, folder: &str, draft: &mut Draft<'_>) -> Result<()> {
    let info_path = format!("{folder}/groupversion_info.go");
    let info = if api.is_go() {
        go_project::with_head(draft, &api.fill(include_str!("files/go/groupversion_info.go")))
    } else {
        api.fill(include_str!("files/typed/groupversion_info.go"))
    };
    draft.create_missing(&info_path, info);
    let mut end = String::new();
    // A controller has its markers above itself.
    if body != Body::Go {
        end.push_str(include_str!("files/typed/rules.go"));
    }
    let mut import = "";
    if api.is_go() {
        let registration = go::registration(folder, &draft.read(&info_path).unwrap_or_default())?;
        if matches!(registration, go::Registration::Function(_)) {
            import = "\n\t\"k8s.io/apimachinery/pkg/runtime\"";
        }
        end.push_str(&registration.text("@KIND@"));
    }
    let mut types = include_str!("files/typed/types.go").replace("@IMPORT@", import) + &end;
    // The package asks for apply configurations, which kubebuilder writes for the kinds of `create api --ssa`
    // only.
    if draft.read(&info_path).is_some_and(|info| info.contains("+kubebuilder:ac:generate=true")) {
        const ROOT: &str = "// +kubebuilder:object:root=true\n";
        types = types.replacen(ROOT, &format!("{ROOT}// +kubebuilder:ac:generate=false\n"), 1);
    }
    let types = api.fill(&types);
    let types = if api.is_go() { go_project::with_head(draft, &types) } else { types };
    draft.create(format!("{folder}/{}_types.go", api.lower()), types);
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
        Body::Go => go::add_controller(api, &package(api), draft),
        // The reconciler of the other version reconciles this one.
        Body::Nothing if api.has_other_version() => {}
        Body::Nothing if api.is_go() => draft.warn(format!(
            "nothing reconciles {} yet: run `opdev create api` with --reconciler go and --force",
            api.gvk.kind
        )),
        Body::Nothing => draft.warn(format!(
            "nothing reconciles {} yet: write config/reconcilers/{lower}.ts, or run `opdev create api` with --reconciler ts \
             and --force",
            api.gvk.kind
        )),
    }
}

/// The CRD of the types, as `opdev crd` makes it.
fn add_crd(api: &NewApi, folder: &str, draft: &mut Draft<'_>) -> Result<()> {
    let made = Generator::new().generate(&DraftFiles(draft), &[folder.to_owned()], &options(draft));
    let own = |object: &Value| object["spec"]["names"]["kind"] == api.gvk.kind.as_str();
    for crd in made.crds.iter().filter(|crd| own(&crd.object)) {
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
