//! The Go type files of a project on disk: where its root is, what its Makefile says of controller-gen, which
//! folders hold kinds or RBAC markers, and the files themselves for `opdev_types::go`. Only reads, and only
//! below the root, in folders that `replace` names and in the module cache.

use anyhow::{Context as _, Result, bail};
use opdev_os::read;
use opdev_os::small_file::{small_file, small_text};
use opdev_types::go::Files;
use opdev_types::pin::{self, Inputs, Output, Settings, Source};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Deepest folder that is looked into.
const MAX_DEPTH: usize = 32;
/// Folders of types where no Makefile names any.
const USUAL: [&str; 4] = ["api", "apis", "pkg/apis", "config/types"];
/// Folders of generated CRDs.
const OUTPUTS: [&str; 7] =
    ["config/crd/bases", "config/crd", "deploy/crds", "deploy/crd", "config/crds", "manifests", "crds"];
/// Folders for tools that have a module of their own.
const TOOLS: [&str; 5] = ["tools", "hack/tools", "internal/tools", "build/tools", "hack"];
const ROOTS: [&str; 6] =
    ["PROJECT", "go.mod", "opdev.yaml", "config/opdev.yaml", "watches.yaml", "config/watches.yaml"];

/// The sort of packages to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Packages with kinds.
    Kinds,
    /// Packages with RBAC markers.
    Rbac,
    /// Packages with webhook markers.
    Webhooks,
    /// Packages that ask for copy methods.
    Copies,
}

/// The root of the project: `folder` itself, or the nearest at or above `from` that looks like one.
///
/// # Errors
/// Where there is none.
pub fn root(folder: Option<&Path>, from: &Path) -> Result<PathBuf> {
    if let Some(folder) = folder {
        return folder
            .canonicalize()
            .with_context(|| format!("the project folder {} cannot be opened", folder.display()));
    }
    let start = from.canonicalize().context("the working directory cannot be read")?;
    for root in start.ancestors() {
        if ROOTS.iter().any(|file| root.join(file).is_file()) {
            return Ok(root.to_owned());
        }
        if root.join(".git").exists() {
            break;
        }
    }
    bail!(
        "no operator project in {} or above it: expected PROJECT, go.mod, opdev.yaml or watches.yaml. Name the folder \
         with --project DIR",
        start.display()
    )
}

/// The project's settings for controller-gen. Without a call of it in a Makefile, the usual folders of types
/// are taken.
pub fn settings(root: &Path, year: &str) -> Settings {
    let makefiles = makefiles(root);
    let go_mod = go_mod(root);
    let makefiles: Vec<Source<'_>> =
        makefiles.iter().map(|(path, text)| Source { path: path.as_str(), text }).collect();
    let tools = tool_modules(root);
    let tools: Vec<Source<'_>> = tools.iter().map(|(path, text)| Source { path, text }).collect();
    let mut inputs = Inputs {
        tools: &tools,
        makefiles: &makefiles,
        scripts: &[],
        go_mod: go_mod.as_ref().map(|(path, text)| Source { path, text }),
        crds: &[],
        year,
    };
    let mut settings = pin::settings(&inputs);
    let is_called = settings.invocations.iter().any(|call| call.place.is_some());
    let scripts = if is_called { Vec::new() } else { scripts(root) };
    let scripts: Vec<Source<'_>> = scripts.iter().map(|(path, text)| Source { path, text }).collect();
    if !scripts.is_empty() {
        inputs.scripts = &scripts;
        settings = pin::settings(&inputs);
    }
    place_outputs(root, &mut settings);
    if settings.version.is_none() {
        let crds = committed(root, &settings);
        let crds: Vec<Source<'_>> = crds.iter().map(|(path, text)| Source { path, text }).collect();
        settings = pin::settings(&Inputs { crds: &crds, ..inputs });
        place_outputs(root, &mut settings);
    }
    for call in settings.invocations.iter_mut().filter(|call| call.place.is_none()) {
        let usual: Vec<String> = USUAL
            .iter()
            .filter(|folder| root.join(folder).is_dir())
            .map(|folder| format!("./{folder}/..."))
            .collect();
        if !usual.is_empty() && !root.join("Makefile").is_file() {
            call.paths = usual;
        }
    }
    settings
}

/// Each `go.mod` of a folder for tools, by its path, and its text.
fn tool_modules(root: &Path) -> Vec<(String, String)> {
    let paths = TOOLS.iter().map(|folder| format!("{folder}/go.mod"));
    paths.filter_map(|path| Some((path.clone(), text(root, &path)?))).collect()
}

/// The nearest `go.mod` at the root or above it, by its path from the root, and its text: an operator is
/// often one folder of a larger module.
fn go_mod(root: &Path) -> Option<(String, String)> {
    let whole = root.canonicalize().ok()?;
    let mut paths = (0..whole.ancestors().count()).map(|up| format!("{}go.mod", "../".repeat(up)));
    paths.find_map(|path| Some((path.clone(), text(&whole, &path)?)))
}

/// The files that [`settings`] reads, relative to the root: a change of one may change every CRD.
pub fn setting_files(root: &Path) -> Vec<String> {
    let mut files: Vec<String> = makefiles(root).into_iter().map(|(path, _)| path).collect();
    files.extend(scripts(root).into_iter().map(|(path, _)| path));
    files.extend(
        ["go.mod", "go.work"].into_iter().filter(|file| root.join(file).is_file()).map(str::to_owned),
    );
    files.extend(tool_modules(root).into_iter().map(|(path, _)| path));
    files
}

/// The folders, relative to the root, that some package patterns mean and that hold what is wanted: `./...`,
/// `./api/v1`, a Go file, or an import path of the project's own module.
pub fn packages(root: &Path, folder: &str, patterns: &[String], wanted: Wanted) -> Vec<String> {
    let mut found = BTreeSet::new();
    for pattern in patterns {
        let pattern = by_import_path(root, folder, pattern).unwrap_or_else(|| pattern.clone());
        let (path, deep) = match pattern.strip_suffix("...") {
            Some(path) => (path.trim_end_matches('/'), true),
            None => (pattern.as_str(), false),
        };
        let base =
            if Path::new(path).is_absolute() { PathBuf::from(path) } else { root.join(folder).join(path) };
        let base = if base.is_file() { base.parent().unwrap_or(root).to_owned() } else { base };
        // Patterns of controller-gen are relative to where it runs; `..` may leave the root and come back.
        let Ok(base) = base.canonicalize() else { continue };
        // A Makefile may name the folder above, where its module is; nobody's module is all there is.
        let is_all = base.parent().is_none();
        if is_all || read::is_of_kernel(root, &base) {
            tracing::warn!("no types are looked for in {}", base.display());
            continue;
        }
        let mut search = Search { walk: read::Walk::from(&base), wanted, found: &mut found };
        walk(&mut search, &base, deep, MAX_DEPTH);
    }
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let shown = |path: &PathBuf| {
        let path = path.strip_prefix(&root).unwrap_or(path);
        if path.as_os_str().is_empty() { ".".to_owned() } else { path.display().to_string() }
    };
    found.iter().map(shown).collect()
}

/// The folder that an import path means, with its `/...` where it has one: of the project's own module, or of
/// one that `go.mod` requires. `None` where the pattern is no import path.
fn by_import_path(root: &Path, folder: &str, pattern: &str) -> Option<String> {
    let (path, deep) = match pattern.strip_suffix("/...") {
        Some(path) => (path, "/..."),
        None => (pattern, ""),
    };
    let root = root.canonicalize().ok()?;
    let (file, text) = go_mod(&root)?;
    let module = text
        .lines()
        .find_map(|line| Some(line.strip_prefix("module ")?.trim().trim_matches('"').to_owned()))?;
    if let Some(rest) = path.strip_prefix(&module)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let own = root.join(file.trim_end_matches("go.mod")).join(rest.trim_start_matches('/'));
        return Some(format!("{}{deep}", own.display()));
    }
    let first = path.split('/').next()?;
    let could_be = first.contains('.') && !first.starts_with('.') && !root.join(folder).join(path).exists();
    let found = could_be.then(|| opdev_types::go::package_folder(&Disk::new(&root), path))??;
    Some(format!("{}{deep}", root.join(found).display()))
}

/// Looks for packages.
struct Search<'a> {
    walk: read::Walk,
    wanted: Wanted,
    found: &'a mut BTreeSet<PathBuf>,
}

fn walk(search: &mut Search<'_>, folder: &Path, deep: bool, depth: usize) {
    let mut files = Vec::new();
    for entry in search.walk.entries(folder) {
        let (Ok(kind), name) = (entry.file_type(), entry.file_name()) else { continue };
        let name = name.to_string_lossy();
        if kind.is_dir() {
            let skipped = name.starts_with(['.', '_'])
                || matches!(&*name, "vendor" | "testdata" | "node_modules" | "target");
            if deep && !skipped && depth > 0 {
                walk(search, &entry.path(), true, depth - 1);
            }
        } else if name.ends_with(".go") && !name.ends_with("_test.go") && !name.starts_with(['.', '_']) {
            files.push(entry.path());
        }
    }
    let texts = files.iter().filter_map(|file| small_text(file));
    let holds = match search.wanted {
        Wanted::Rbac => texts.into_iter().any(|text| text.contains("+kubebuilder:rbac")),
        Wanted::Webhooks => texts.into_iter().any(|text| text.contains("+kubebuilder:webhook")),
        Wanted::Copies => {
            let words = ["kubebuilder:object:", "+k8s:deepcopy-gen"];
            texts.into_iter().any(|text| words.iter().any(|word| text.contains(word)))
        }
        Wanted::Kinds => {
            let (mut types, mut objects) = (false, false);
            for text in texts {
                types |= text.contains("TypeMeta");
                objects |= text.contains("ObjectMeta");
            }
            types && objects
        }
    };
    if holds {
        search.found.insert(folder.to_owned());
    }
}

/// The Makefile and what it may include, shallowest first.
fn makefiles(root: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for name in ["GNUmakefile", "makefile", "Makefile"] {
        if let Some(text) = text(root, name) {
            found.push((name.to_owned(), text));
            break;
        }
    }
    let mut parts = Vec::new();
    for folder in ["", "make", "hack", "build", "scripts"] {
        let depth = if folder.is_empty() { 0 } else { 3 };
        parts_below(root, Path::new(folder), depth, &mut parts);
    }
    parts.sort();
    found.extend(parts.into_iter().filter_map(|path| Some((path.clone(), text(root, &path)?))));
    found
}

/// Shell scripts and Go files that may call controller-gen, by path.
fn scripts(root: &Path) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for folder in
        ["", "hack", "scripts", "script", "build", "ci", "tools", "dev", "api", "apis", "pkg", "magefiles"]
    {
        let depth = if folder.is_empty() { 0 } else { 3 };
        files_below(root, Path::new(folder), depth, &["sh", "bash", "go"], &mut paths);
    }
    paths.sort();
    let calls = |path: &str, text: &str| {
        (text.contains("controller-gen") || text.contains("CONTROLLER_GEN"))
            && (!path.ends_with(".go")
                || ["//go:generate", "magefile/mage", "exec.Command"].iter().any(|word| text.contains(word)))
    };
    let texts = paths.into_iter().filter_map(|path| Some((path.clone(), text(root, &path)?)));
    texts.filter(|(path, text)| calls(path, text)).collect()
}

fn parts_below(root: &Path, folder: &Path, depth: usize, found: &mut Vec<String>) {
    files_below(root, folder, depth, &["mk"], found);
}

fn files_below(root: &Path, folder: &Path, depth: usize, endings: &[&str], found: &mut Vec<String>) {
    for entry in read::entries(root.join(folder)).into_iter().flatten() {
        let path = folder.join(entry.file_name());
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let ending = path.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
        if is_dir && depth > 0 {
            files_below(root, &path, depth - 1, endings, found);
        } else if endings.contains(&ending) {
            found.push(path.display().to_string());
        }
    }
}

/// A call whose output only a shell can name, such as a folder for scratch, writes where generated CRDs
/// stand.
fn place_outputs(root: &Path, settings: &mut Settings) {
    let generated = |folder: &&str| {
        let paths = read::paths(root.join(folder)).into_iter();
        let yaml = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
        yaml.filter_map(|path| small_text(&path))
            .any(|text| text.contains("controller-gen.kubebuilder.io/version"))
    };
    for call in &mut settings.invocations {
        if call.crd_output == Output::Folder(String::new()) {
            let folder = OUTPUTS.into_iter().find(generated).unwrap_or(OUTPUTS[0]);
            call.crd_output = Output::Folder(folder.to_owned());
        }
        if call.rbac_output == Output::Folder(String::new()) {
            call.rbac_output = Output::Folder("config/rbac".to_owned());
        }
        if call.webhook_output == Output::Folder(String::new()) {
            call.webhook_output = Output::Folder("config/webhook".to_owned());
        }
    }
}

/// CRDs that stand where the calls write them; only their annotation is of interest.
fn committed(root: &Path, settings: &Settings) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for call in &settings.invocations {
        let Output::Folder(folder) = &call.crd_output else { continue };
        let folder = Path::new(&call.folder).join(folder);
        let entries = read::entries(root.join(&folder)).into_iter().flatten();
        let names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        for name in names.iter().filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml")) {
            let path = folder.join(name).display().to_string();
            if let Some(text) = text(root, &path) {
                found.push((path, text));
            }
        }
    }
    found
}

fn text(root: &Path, path: &str) -> Option<String> {
    small_text(&root.join(path))
}

/// The module cache of this machine: `GOMODCACHE`, `GOPATH/pkg/mod`, or `~/go/pkg/mod`, where there is one.
pub fn module_cache() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let first = |paths: PathBuf| std::env::split_paths(&paths).next();
    set("GOMODCACHE")
        .or_else(|| Some(first(set("GOPATH")?)?.join("pkg/mod")))
        .or_else(|| Some(set("HOME")?.join("go/pkg/mod")))
        .filter(|folder| folder.is_dir())
}

/// The Go installation of this machine: `GOROOT`, that of `go` on the path, or where it is installed most
/// often.
pub fn go_root() -> Option<PathBuf> {
    let set = std::env::var_os("GOROOT").filter(|value| !value.is_empty()).map(PathBuf::from);
    let on_path = || {
        let folders = std::env::var_os("PATH")?;
        let go = std::env::split_paths(&folders).map(|folder| folder.join("go")).find(|go| go.is_file())?;
        Some(go.canonicalize().ok()?.parent()?.parent()?.to_owned())
    };
    let usual = || Some(PathBuf::from("/usr/local/go"));
    [set, on_path(), usual()].into_iter().flatten().find(|root| root.join("src/time").is_dir())
}

/// The files of a project on disk, for the generator.
#[derive(Clone, Debug)]
pub struct Disk {
    root: PathBuf,
    cache: Option<String>,
    go_root: Option<String>,
    above: Vec<String>,
}

impl Disk {
    /// The files below a root.
    pub fn new(root: &Path) -> Disk {
        let shown = |folder: PathBuf| folder.display().to_string();
        let whole = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let names = whole.ancestors().filter_map(|folder| folder.file_name()?.to_str().map(str::to_owned));
        Disk {
            root: root.to_owned(),
            cache: module_cache().map(shown),
            go_root: go_root().map(shown),
            above: names.collect(),
        }
    }
}

impl Files for Disk {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        let bytes = small_file(&self.root.join(path))?;
        Some(opdev_types::go::source(&bytes).into())
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let entries = read::entries(self.root.join(dir)).into_iter().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn module_cache(&self) -> Option<String> {
        self.cache.clone()
    }

    fn go_root(&self) -> Option<String> {
        self.go_root.clone()
    }

    fn above(&self) -> Vec<String> {
        self.above.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// As in a repository with many operators: the module lies above, and its packages are beside the
    /// project.
    #[test]
    fn a_module_above_the_project_is_read() {
        let folder = project(&[
            ("go.mod", "module example.com/park\nrequire sigs.k8s.io/controller-tools v0.16.5\n"),
            ("pkg/sizes/sizes.go", "package sizes\n\ntype Size int64\n"),
            (
                "operators/a/api/v1/a_types.go",
                "// +groupName=a.example.com\npackage v1\n\nimport (\n\t\"example.com/park/operators/a/api/shared\"\n\
                 \t\"example.com/park/pkg/sizes\"\n\tmetav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\n)\n\n\
                 type ASpec struct {\n\tSize sizes.Size `json:\"size\"`\n\tNear shared.Near `json:\"near\"`\n}\n\n\
                 // +kubebuilder:object:root=true\ntype A struct {\n\tmetav1.TypeMeta `json:\",inline\"`\n\
                 \tmetav1.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec ASpec `json:\"spec\"`\n}\n",
            ),
            ("operators/a/api/shared/near.go", "package shared\n\ntype Near int32\n"),
        ]);
        let root = folder.path().join("operators/a");
        assert_eq!(settings(&root, "2026").version.unwrap().text, "v0.16.5");
        let mut generator = opdev_types::go::Generator::new();
        let packages = ["./api/...".to_owned()];
        let made = generator.generate(&Disk::new(&root), &packages, &opdev_types::go::Options::default());
        let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
        let spec = made.crds[0].object.pointer(spec).unwrap();
        assert_eq!((&spec["size"]["format"], &spec["near"]["format"]), (&"int64".into(), &"int32".into()));
        assert!(made.read.contains(&"api/shared/near.go".to_owned()), "{:?}", made.read);
        assert!(made.read.contains(&"../../pkg/sizes/sizes.go".to_owned()), "{:?}", made.read);
    }

    const KIND: &str = "package v1\ntype A struct {\n\tmetav1.TypeMeta\n\tmetav1.ObjectMeta\n}\n";

    #[test]
    fn packages_are_those_with_kinds_or_markers() {
        let folder = project(&[
            ("go.mod", "module example.com/park\n"),
            ("api/v1/a_types.go", KIND),
            ("api/v1/testdata/a.go", KIND),
            ("api/v2/doc.go", "package v2\n"),
            ("vendor/x/a.go", KIND),
            (
                "cmd/main.go",
                "package main\n// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get\n",
            ),
            ("internal/a_test.go", KIND),
        ]);
        let found = |patterns: &[&str], wanted| {
            let patterns: Vec<String> = patterns.iter().map(|one| (*one).to_owned()).collect();
            packages(folder.path(), "", &patterns, wanted)
        };
        assert_eq!(found(&["./..."], Wanted::Kinds), ["api/v1"]);
        assert_eq!(found(&["./..."], Wanted::Rbac), ["cmd"]);
        assert_eq!(found(&["example.com/park/api/..."], Wanted::Kinds), ["api/v1"]);
        assert_eq!(found(&["./api/v1/a_types.go", "./api"], Wanted::Kinds), ["api/v1"]);
        assert_eq!(found(&["./none/..."], Wanted::Kinds), [""; 0]);
    }

    #[test]
    fn a_package_can_be_named_by_an_import_path() {
        let folder = project(&[
            (
                "go.mod",
                "module example.com/park\n\nrequire example.com/other v1.0.0\n\nreplace example.com/other => ./staging/other\n",
            ),
            ("operators/a/PROJECT", ""),
            ("operators/a/api/v1/a_types.go", KIND),
            ("staging/other/go.mod", "module example.com/other\n"),
            ("staging/other/apis/v2/a_types.go", KIND),
        ]);
        let found = |root: &str, pattern: &str| {
            packages(&folder.path().join(root), "", &[pattern.to_owned()], Wanted::Kinds)
        };
        assert_eq!(found("operators/a", "example.com/park/operators/a/api/..."), ["api/v1"]);
        assert_eq!(found("", "example.com/park/operators/a/api/v1"), ["operators/a/api/v1"]);
        assert_eq!(found("", "example.com/other/apis/v2"), ["staging/other/apis/v2"]);
        assert_eq!(found("", "example.com/missing/v2"), [""; 0]);
    }

    #[test]
    fn a_call_in_a_script_counts_where_the_makefile_has_none() {
        let folder = project(&[
            ("PROJECT", ""),
            ("Makefile", "generate:\n\t./hack/generate.sh\n"),
            (
                "hack/generate.sh",
                "cd \"$(dirname \"$0\")/..\"\ncontroller-gen crd:maxDescLen=0 paths=./api/... output:dir=deploy\n",
            ),
            ("api/v1/a_types.go", KIND),
        ]);
        let found = settings(folder.path(), "2026");
        let call = &found.invocations[0];
        assert_eq!((call.paths[0].as_str(), call.folder.as_str()), ("./api/...", ""));
        assert_eq!(call.place.as_ref().unwrap().file, "hack/generate.sh");
        assert_eq!(call.crd.as_ref().unwrap().max_description, Some(0));
    }

    #[test]
    fn settings_come_from_makefiles_and_committed_crds() {
        let crd = "metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.18.0\n";
        let folder = project(&[
            ("PROJECT", ""),
            ("Makefile", "include make/gen.mk\n"),
            ("make/gen.mk", "manifests:\n\tcontroller-gen crd paths=./api/... output:crd:dir=deploy\n"),
            ("deploy/a.yaml", crd),
            ("api/v1/a_types.go", KIND),
        ]);
        let found = settings(folder.path(), "2026");
        assert_eq!(found.version.unwrap().text, "v0.18.0");
        assert_eq!(found.invocations[0].paths, ["./api/..."]);
        assert_eq!(setting_files(folder.path()), ["Makefile", "make/gen.mk"]);
        assert_eq!(root(None, &folder.path().join("api/v1")).unwrap(), folder.path().canonicalize().unwrap());
    }

    #[test]
    fn without_a_makefile_the_usual_folders_are_taken() {
        let folder = project(&[("config/watches.yaml", ""), ("config/types/v1/a_types.go", KIND)]);
        let found = settings(folder.path(), "2026");
        assert_eq!(found.invocations[0].paths, ["./config/types/..."]);
        let found = packages(folder.path(), "", &found.invocations[0].paths, Wanted::Kinds);
        assert_eq!(found, ["config/types/v1"]);
    }
}
