//! The objects to apply: `config/crd` or `config/default` as `kubectl kustomize` builds them, with the CRDs
//! of the Go types as the types are now, and with the image and the namespace that were asked for. No file is
//! changed for it.

use super::image;
use super::image::Slot;
use super::input::{DeployInput, is_crd, relative};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_event::Diagnostic;
use opdev_generate::manifests as made;
use opdev_kustomize::NAMES;
use opdev_object::{meta, yaml};
use opdev_os::private_folder::write_in_project;
use opdev_os::small_file::{small_text, unreadable};
use opdev_project::Project;
use opdev_project::files;
use opdev_project::go::crd_patches::BASES;
use opdev_project::load;
use opdev_project::program::Programs;
use opdev_project::program::kustomization::Overlaid;
use opdev_sources::Sources;
use opdev_sources::definitions::Definition;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

const CRDS: &str = "config/crd";
const DEFAULT: &str = "config/default";

/// The outcome for the objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    /// They are applied, so the files must be right.
    Apply,
    Remove,
}

/// The objects to apply.
pub(super) struct Manifests {
    pub(super) objects: Vec<Value>,
    pub(super) warnings: Vec<String>,
    /// The definitions of the project's sources, which know where their fields are declared.
    definitions: Vec<Arc<Definition>>,
}

impl Manifests {
    /// A CRD with what the sources know of it.
    pub(super) fn definition(&self, crd: &Value) -> Arc<Definition> {
        let own = self.definitions.iter().find(|one| meta::name(crd) == Some(one.name()));
        Arc::new(Definition {
            crd: Arc::new(crd.clone()),
            file: own.map(|own| own.file.clone()).unwrap_or_default(),
            files: own.map(|own| own.files.clone()).unwrap_or_default(),
            places: own.map(|own| own.places.clone()).unwrap_or_default(),
            texts: own.map(|own| own.texts.clone()).unwrap_or_default(),
            broken: None,
            scaffolded: own.is_some_and(|own| own.scaffolded),
        })
    }
}

/// The CRDs of `config/crd`, and of Go types that it does not name. Without a kustomization there, those of
/// the sources.
pub(super) fn crds(input: &DeployInput, goal: Goal) -> Result<Manifests> {
    let sources = sources(input, goal)?;
    let folder = input.project.root.join(CRDS);
    let is_kustomized = NAMES.iter().any(|name| folder.join(name).is_file());
    let mut objects = Vec::new();
    if is_kustomized {
        let files = with_types(&input.project)?;
        objects = build(input, &files, &folder)?;
        objects.retain(is_crd);
    }
    let mut warnings = Vec::new();
    for definition in &sources.definitions {
        if objects.iter().any(|crd| meta::name(crd) == Some(definition.name())) {
            continue;
        }
        let is_of_go = definition.file.ends_with(".go");
        if is_kustomized && !is_of_go {
            continue;
        }
        if is_kustomized {
            warnings.push(not_named(definition));
        }
        objects.push(Value::clone(&definition.crd));
    }
    if objects.is_empty() {
        bail!(
            "the project defines no custom resources\n  where: {}\n  to do: `opdev create api` adds a kind",
            input.project.root.display()
        );
    }
    Ok(Manifests { objects, warnings, definitions: sources.definitions.clone() })
}

fn not_named(definition: &Definition) -> String {
    format!(
        "{} (of {}) is not among the resources of {CRDS}/kustomization.yaml, so `make deploy` leaves it out; `opdev crd` \
         writes its file",
        definition.name(),
        definition.file
    )
}

/// All of `config/default`, with another image and namespace where they are asked for.
pub(super) fn all(
    input: &DeployInput,
    goal: Goal,
    image: Option<&str>,
    namespace: Option<&str>,
) -> Result<Manifests> {
    let folder = input.project.root.join(DEFAULT);
    if !folder.is_dir() {
        bail!(
            "there is no {DEFAULT} in {}, which says what is deployed\n  to do: `opdev init` makes one in a new project; `opdev install` \
             applies the CRDs alone",
            input.project.root.display()
        );
    }
    if input.kustomize.is_some() && (image.is_some() || namespace.is_some()) {
        bail!(
            "--image and --namespace change what opdev builds; with --kustomize the program reads the files as they are"
        );
    }
    let sources = sources(input, goal)?;
    let mut files = with_types(&input.project)?;
    let mut warnings = with_roles(&input.project, &mut files);
    if let Some(image) = image {
        let (path, text) = with_image(&input.project, image)?;
        files.0.insert(path, text.into_bytes());
    }
    if let Some(namespace) = namespace {
        let (path, text) = with_namespace(&folder, namespace)?;
        files.0.insert(path, text.into_bytes());
    }
    let objects = build(input, &files, &folder)?;
    if let Some(image) = image {
        image::check_taken(&objects, slot(&input.project).named(image))?;
    }
    let has_crds = objects.iter().any(is_crd);
    let missing = |definition: &&Arc<Definition>| {
        definition.file.ends_with(".go")
            && !objects.iter().any(|crd| meta::name(crd) == Some(definition.name()))
    };
    let missing = sources.definitions.iter().filter(missing).filter(|_| has_crds);
    warnings.extend(missing.map(|definition| not_named(definition)));
    Ok(Manifests { objects, warnings, definitions: sources.definitions.clone() })
}

/// Reads the project once, for its types.
fn sources(input: &DeployInput, goal: Goal) -> Result<Arc<Sources>> {
    let options = files::options(&input.project, &[], Programs::of(&input.project).reconcile());
    let (_, loaded) = load::load_first(&input.project, (&options, &input.trust));
    let loaded = loaded.context("reading the project tripped over a bug in opdev")?;
    let broken = loaded.sources.definitions.iter().filter_map(|definition| definition.broken.as_ref());
    let of_types =
        |error: &&Diagnostic| error.place.as_ref().is_some_and(|place| place.file.ends_with(".go"));
    let first = broken.chain(loaded.errors.iter().filter(of_types)).next();
    match first {
        Some(error) if goal == Goal::Apply => {
            let place = error.place.as_ref().map(|place| format!("{}:{}: ", place.file, place.line));
            let hint = error.hint.as_ref().map(|hint| format!("\n  to do: {hint}"));
            bail!("{}{}{}", place.unwrap_or_default(), error.message, hint.unwrap_or_default())
        }
        // Objects that were applied are removed, whatever the files have become since.
        Some(_) | None => Ok(loaded.sources),
    }
}

/// The files, with those of CRDs as `make manifests` would write them now: what the sources have is patched
/// already.
fn with_types(project: &Project) -> Result<Overlaid> {
    let mut files = Overlaid::default();
    let pattern = |path: &String| format!("./{}/...", path.trim_start_matches("./").trim_end_matches('/'));
    let paths = project.settings.types.iter().flatten().map(pattern).collect();
    // A project without Go types has its files.
    let Ok(made) = made::crds(&project.root, &made::Asked { paths, ..made::Asked::default() }) else {
        return Ok(files);
    };
    for artifact in made.files.into_iter().map(|target| target.artifact) {
        let places = BASES
            .iter()
            .filter_map(|bases| project.root.join(bases).join(&artifact.name).canonicalize().ok());
        for path in places {
            files.0.insert(path, artifact.text.clone().into_bytes());
        }
    }
    Ok(files)
}

/// The roles of a Go project as its markers make them now; what is wrong with the markers. Where charts add
/// rules to the roles, the files are taken as they are.
fn with_roles(project: &Project, files: &mut Overlaid) -> Vec<String> {
    if project.watches.is_some() {
        return Vec::new();
    }
    // Without markers the roles are somebody's own.
    let Ok(made) = made::roles(&project.root, &made::Asked::default()) else { return Vec::new() };
    if made.failed() {
        let broken = "the markers +kubebuilder:rbac have errors, so the roles are taken from the files; `opdev rbac` names them";
        return vec![broken.to_owned()];
    }
    for target in made.files {
        if let Some(Ok(path)) = target.path.map(|path| path.canonicalize()) {
            files.0.insert(path, target.artifact.text.into_bytes());
        }
    }
    Vec::new()
}

/// Builds a folder: by opdev, or by the program that was named.
fn build(input: &DeployInput, files: &Overlaid, folder: &Path) -> Result<Vec<Value>> {
    let Some(program) = &input.kustomize else {
        let built = opdev_kustomize::build(files, folder).map_err(|mut error| {
            error.file = relative(&input.project, &error.file);
            anyhow!("{error}")
        })?;
        return Ok(built.parts.into_iter().map(|part| part.object).collect());
    };
    let mut words = program.split_whitespace();
    let name = words.next().context("--kustomize names no program")?;
    let output = Command::new(name)
        .args(words)
        .arg(folder)
        .current_dir(&input.project.root)
        .output()
        .with_context(|| format!("{name} cannot be started"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {} failed: {}", relative(&input.project, folder).display(), said.trim());
    }
    let text = String::from_utf8(output.stdout).with_context(|| format!("{program} printed no text"))?;
    let nodes = yaml::documents(&text).map_err(|error| anyhow!("{program} printed no YAML: {error}"))?;
    nodes.iter().map(|node| yaml::to_json(node).map_err(|error| anyhow!("{error}"))).collect()
}

fn slot(project: &Project) -> Slot {
    Slot::of_makefile(&small_text(&project.root.join("Makefile")).unwrap_or_default())
}

/// The kustomization with the operator's image with another one, and its real place.
fn with_image(project: &Project, image: &str) -> Result<(PathBuf, String)> {
    let slot = slot(project);
    let folder = project.root.join(&slot.folder);
    let path = NAMES.iter().find_map(|name| folder.join(name).canonicalize().ok());
    let path = path.with_context(|| {
        format!(
            "--image changes the kustomization in {}, and there is none; name the image in the Deployment itself",
            slot.folder
        )
    })?;
    let shown = relative(project, &path);
    // The folder is named by the project's Makefile, which may have come from anybody.
    let root = project.root.canonicalize()?;
    if !path.starts_with(&root) {
        bail!(
            "--image would change {}, which is not in the project\n  where: `kustomize edit set image` in the Makefile\n  to do: name \
             the image in config/manager",
            path.display()
        );
    }
    let text = small_text(&path).with_context(|| unreadable(&shown.display().to_string()))?;
    let text = image::set(&text, slot.named(image))
        .with_context(|| format!("{} cannot be changed", shown.display()))?;
    Ok((path, text))
}

/// Writes the image where `kustomize edit set image` writes it; the file.
pub(super) fn save_image(project: &Project, image: &str) -> Result<PathBuf> {
    let (path, text) = with_image(project, image)?;
    let shown = relative(project, &path);
    write_in_project(&project.root, &shown, text.as_bytes())?;
    Ok(shown)
}

/// The outermost kustomization with another namespace.
fn with_namespace(folder: &Path, namespace: &str) -> Result<(PathBuf, String)> {
    let path = NAMES.iter().find_map(|name| folder.join(name).canonicalize().ok());
    let path = path.with_context(|| format!("there is no kustomization in {}", folder.display()))?;
    let text = small_text(&path).with_context(|| unreadable(&path.display().to_string()))?;
    let mut value = yaml::from_str(&text).map_err(|error| anyhow!("{}", error.in_file(path.display())))?;
    meta::put(&mut value, &["namespace"], namespace);
    Ok((path, yaml::to_string(&value)))
}
