//! The program of a project: named in `opdev.yaml`, or found in a Go project by its `PROJECT`, `go.mod` and
//! Makefile. Reads files and runs nothing: whether the project's program may be started is asked for later.

use super::files;
use super::settings::{Build, KUBECONFIG, Plan, STOP_AFTER, Settings, usual_globs};
use anyhow::{Context as _, Result, bail};
use opdev_object::go::duration;
use opdev_os::read;
use opdev_os::small_file::small_text;
use opdev_types::pin::{self, RecipeCommand, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Looks for a program. `settings` is `operator:` of `opdev.yaml`, `watches` whether there is a
/// `watches.yaml`.
///
/// # Errors
/// Where the settings contradict each other, or several programs could be meant.
pub fn detect(root: &Path, settings: Option<&Settings>, watches: bool) -> Result<Option<Plan>> {
    let defaults = Settings::default();
    let named = settings.is_some();
    let settings = settings.unwrap_or(&defaults);
    let dir = match &settings.dir {
        Some(dir) => root.join(dir),
        None => root.to_owned(),
    };
    if !dir.is_dir() {
        bail!("operator.dir in opdev.yaml: there is no folder {}", dir.display());
    }
    let plan = match (&settings.command, &settings.go) {
        (Some(_), Some(_)) => {
            bail!(
                "operator in opdev.yaml has `command` and `go`; name one: `go` builds a main package of this project"
            )
        }
        (Some(command), None) => Some(configured(command, settings, &dir)?),
        (None, Some(package)) => Some(go_plan(&dir, Some(package.as_str()), watches, Sources::read(&dir))?),
        (None, None) if settings.build.is_some() => {
            bail!(
                "operator in opdev.yaml has `build` without `command`; name what is to be started after the build"
            )
        }
        (None, None) if is_go_operator(&dir) => {
            let source = Sources::read(&dir);
            // Types alone need no program.
            if source.mains.is_empty() && !named { None } else { Some(go_plan(&dir, None, watches, source)?) }
        }
        (None, None) if named => bail!(
            "operator in opdev.yaml names no program, and {} has no go.mod that requires controller-runtime: set \
             `command`, such as [python, operator.py], or `go` with a main package",
            dir.display()
        ),
        (None, None) => None,
    };
    let Some(mut plan) = plan else { return Ok(None) };
    plan.command.extend(settings.args.iter().cloned());
    plan.env.extend(settings.env.clone());
    plan.trace = settings.trace;
    plan.generate = settings.generate;
    plan.vet = settings.vet.unwrap_or(true);
    plan.kinds.clone_from(&settings.kinds);
    if let Some(globs) = &settings.watch {
        plan.watch.clone_from(globs);
    }
    if let Some(text) = &settings.stop_after {
        plan.stop_after = duration::non_negative(text).ok().with_context(|| {
            format!("operator.stopAfter in opdev.yaml: {text:?} is no duration such as 10s")
        })?;
    }
    if let Some(name) = settings.env.keys().find(|name| is_of_cluster(name)) {
        bail!(
            "operator.env in opdev.yaml sets {name}: opdev leads the program to the cluster that it works on itself; take \
             it out, and choose the cluster with --context, --kubeconfig or --embedded"
        );
    }
    if let Some(argument) = other_kubeconfig(&plan.command) {
        bail!(
            "{argument}: opdev gives the program a kubeconfig of its own (KUBECONFIG), and this argument would win over \
             it; take it out of `operator` in opdev.yaml, or write {argument}={KUBECONFIG} for the path of that file"
        );
    }
    Ok(Some(plan))
}

/// The flag with which a command names another kubeconfig than the one that opdev gives it.
fn other_kubeconfig(command: &[String]) -> Option<&str> {
    command.iter().enumerate().find_map(|(at, word)| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), command.get(at + 1).map(String::as_str)),
        };
        (is_kubeconfig(name) && value != Some(KUBECONFIG)).then_some(name)
    })
}

/// Returns true if a flag names a kubeconfig, as controller-runtime's own does.
fn is_kubeconfig(name: &str) -> bool {
    matches!(name, "--kubeconfig" | "-kubeconfig")
}

/// The arguments without those that name a kubeconfig.
fn without_kubeconfig(arguments: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            Some((name, _)) if is_kubeconfig(name) => {}
            None if is_kubeconfig(word) => drop(words.next()),
            Some(_) | None => kept.push(word.clone()),
        }
    }
    kept
}

/// Returns true if a variable says which cluster a program works on.
fn is_of_cluster(name: &str) -> bool {
    matches!(name, "KUBECONFIG" | "KUBERNETES_SERVICE_HOST" | "KUBERNETES_SERVICE_PORT" | "KUBERNETES_MASTER")
}

fn configured(command: &[String], settings: &Settings, dir: &Path) -> Result<Plan> {
    if command.is_empty() {
        bail!("operator.command in opdev.yaml is empty; name the program, such as [python, operator.py]");
    }
    let build = match &settings.build {
        Some(words) if words.is_empty() => bail!("operator.build in opdev.yaml is empty"),
        Some(words) => Build::Command(words.clone()),
        None => Build::None,
    };
    Ok(Plan {
        words: command.join(" "),
        said_by: "operator.command in opdev.yaml".to_owned(),
        dir: dir.to_owned(),
        watch: usual_globs(command, &build),
        build,
        command: command.to_vec(),
        env: BTreeMap::new(),
        charts: false,
        kinds: Vec::new(),
        lease: None,
        trace: settings.trace,
        generate: settings.generate,
        stop_after: STOP_AFTER,
        vet: true,
        debug: None,
        binary: None,
    })
}

/// Returns true if a folder is the root of a Go operator.
fn is_go_operator(dir: &Path) -> bool {
    let Some(module) = small_text(&dir.join("go.mod")) else { return false };
    let project = small_text(&dir.join("PROJECT")).unwrap_or_default();
    project.contains("go.kubebuilder.io/") || module.contains("sigs.k8s.io/controller-runtime ")
}

/// The main package of a Go operator and how its own Makefile builds and runs it.
fn go_plan(dir: &Path, package: Option<&str>, watches: bool, source: Sources) -> Result<Plan> {
    let makefile = small_text(&dir.join("Makefile")).unwrap_or_default();
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let home = std::env::var("HOME").unwrap_or_default();
    let commands =
        pin::commands(&[Source { path: "Makefile", text: &makefile }], &whole.to_string_lossy(), &home);
    let run = GoCommand::of(&commands, "run", "run", &whole);
    let build = GoCommand::of(&commands, "build", "build", &whole);
    // A target may start what another one has built.
    let started = build.as_ref().filter(|_| run.is_none()).and_then(|build| build.started(&commands));
    let (package, said_by) = match (package, &run, &build) {
        (Some(package), _, _) => (package.to_owned(), "operator.go in opdev.yaml".to_owned()),
        (None, Some(run), _) => (run.package.clone(), "target run of the Makefile".to_owned()),
        (None, None, Some(build)) => (build.package.clone(), "target build of the Makefile".to_owned()),
        (None, None, None) => source.only_main(dir)?,
    };
    let folder = dir.join(&package);
    if !folder.is_dir() {
        bail!("{said_by}: there is no folder {package} with a main package");
    }
    let mut flags = Vec::new();
    let (mut ldflags, mut env) = (String::new(), BTreeMap::new());
    let main = source.mains.get(&inside(&package)).cloned().unwrap_or_default();
    let mut command = main.off_flags();
    let mut binary = None;
    for found in [&build, &started, &run].into_iter().flatten().filter(|found| found.package == package) {
        flags.clone_from(&found.flags);
        binary = found.output.clone().or(binary);
        if !found.ldflags.is_empty() {
            ldflags.clone_from(&found.ldflags);
        }
        // A Makefile may name the user's own cluster; which one it is, opdev has been told otherwise.
        env.extend(found.env.clone().into_iter().filter(|(name, _)| !is_of_cluster(name)));
        command.extend(without_kubeconfig(&found.arguments));
    }
    let module = small_text(&dir.join("go.mod")).unwrap_or_default();
    let charts = watches && module.contains("operator-framework/helm-operator-plugins");
    let build = Build::Go { package: package.clone(), flags, ldflags };
    let mut watch = usual_globs(&[], &build);
    watch.extend(source.embedded);
    if charts {
        // Charts are read once, when the program starts.
        watch.extend(["watches.yaml".to_owned(), "helm-charts/**".to_owned()]);
    }
    Ok(Plan {
        words: in_words(&package, &module),
        said_by,
        dir: dir.to_owned(),
        watch,
        build,
        command,
        env,
        charts,
        kinds: Vec::new(),
        lease: main.lease,
        trace: Default::default(),
        generate: Default::default(),
        stop_after: STOP_AFTER,
        vet: true,
        debug: None,
        binary,
    })
}

/// The program in words: `go ./cmd`; of the module's root the name that `go build` gives its program.
fn in_words(package: &str, module: &str) -> String {
    let path = module.lines().find_map(|line| line.trim().strip_prefix("module ")).map(str::trim);
    let version = |part: &&str| part.strip_prefix('v').is_some_and(|n| n.parse::<u32>().is_ok());
    let name = path.and_then(|path| path.rsplit('/').find(|part| !version(part)));
    match name {
        Some(name) if inside(package).as_os_str().is_empty() => name.to_owned(),
        _ => format!("go {package}"),
    }
}

/// A `go run` or `go build` of a Makefile.
#[derive(Debug, Default, PartialEq, Eq)]
struct GoCommand {
    package: String,
    flags: Vec<String>,
    ldflags: String,
    env: BTreeMap<String, String>,
    arguments: Vec<String>,
    /// The name of the program that a build writes.
    output: Option<String>,
}

impl GoCommand {
    /// The last such command of a target, with its package as seen from the project's folder.
    fn of(commands: &[RecipeCommand], target: &str, verb: &str, root: &Path) -> Option<GoCommand> {
        let of_target =
            |command: &&RecipeCommand| command.target.split_whitespace().any(|name| name == target);
        let read = |command: &RecipeCommand| {
            let mut found = Self::read(&command.words, verb)?;
            let place = root.join(&command.folder).join(&found.package);
            let inside = place.strip_prefix(root).unwrap_or(&place);
            found.package = package_of(&plain(inside).display().to_string());
            Some(found)
        };
        commands.iter().filter(of_target).filter_map(read).next_back()
    }

    /// The last command of the target `run` that starts the program which this one builds.
    fn started(&self, commands: &[RecipeCommand]) -> Option<GoCommand> {
        let output = self.output.as_deref()?;
        let read = |command: &RecipeCommand| {
            let at = command.words.iter().position(|word| !word.contains('='))?;
            let (env, rest) = command.words.split_at(at);
            let (program, arguments) = rest.split_first()?;
            let is_it = Path::new(program).file_name().is_some_and(|name| name == output);
            let env = env.iter().filter_map(|word| word.split_once('='));
            is_it.then(|| GoCommand {
                env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                arguments: arguments
                    .iter()
                    .take_while(|word| !is_redirection(word))
                    .filter(|word| !word.contains('$'))
                    .cloned()
                    .collect(),
                package: self.package.clone(),
                flags: self.flags.clone(),
                output: self.output.clone(),
                ..GoCommand::default()
            })
        };
        let of_run =
            commands.iter().filter(|command| command.target.split_whitespace().any(|name| name == "run"));
        of_run.filter_map(read).next_back()
    }

    fn read(words: &[String], verb: &str) -> Option<GoCommand> {
        let at = words.iter().position(|word| word == "go" || word.ends_with("/go"))?;
        if words.get(at + 1)? != verb {
            return None;
        }
        let pairs = words[..at].iter().filter_map(|word| word.split_once('='));
        let mut found = GoCommand {
            env: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            ..GoCommand::default()
        };
        let mut rest = words[at + 2..].iter();
        while let Some(word) = rest.next() {
            let Some(flag) = word.strip_prefix('-') else {
                found.package = folder_of(word);
                found.arguments = rest.cloned().collect();
                break;
            };
            let (name, value) = match flag.trim_start_matches('-').split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (flag.trim_start_matches('-'), None),
            };
            let takes_value = [
                "o", "ldflags", "gcflags", "asmflags", "tags", "mod", "modfile", "p", "overlay", "exec", "C",
                "pgo",
            ];
            let value = match value {
                Some(value) => Some(value),
                None if takes_value.contains(&name) => rest.next().cloned(),
                None => None,
            };
            match (name, value) {
                ("o", Some(path)) => {
                    let name = Path::new(&path).file_name();
                    found.output = name.map(|name| name.to_string_lossy().into_owned());
                }
                // Where opdev decides itself.
                ("o" | "a" | "v" | "x" | "json" | "overlay" | "exec", _) => {}
                ("ldflags", value) => found.ldflags = value.unwrap_or_default(),
                (name, Some(value)) => found.flags.push(format!("-{name}={value}")),
                (name, None) => found.flags.push(format!("-{name}")),
            }
        }
        (!found.package.is_empty()).then_some(found)
    }
}

/// Returns true if a word sends output somewhere: what follows is for the shell.
fn is_redirection(word: &str) -> bool {
    word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(['<', '>', '&', '|'])
}

/// The folder of what `go run` is given: a file stands for its folder, for a file that is added to the build
/// belongs to a package only.
fn folder_of(word: &str) -> String {
    let path = Path::new(word);
    let folder = if word.ends_with(".go") { path.parent().unwrap_or(Path::new("")) } else { path };
    if folder.as_os_str().is_empty() { ".".to_owned() } else { folder.display().to_string() }
}

/// A path without `.` parts, and without `..` parts behind a name.
fn plain(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if found.file_name().is_some() => _ = found.pop(),
            part => found.push(part),
        }
    }
    found
}

/// The package in a folder, as the go command is given it.
fn package_of(folder: &str) -> String {
    let text = folder.trim_start_matches("./").trim_end_matches('/');
    if text.is_empty() || text == "." { ".".to_owned() } else { format!("./{text}") }
}

/// The folder of a package, relative to the root.
fn inside(package: &str) -> PathBuf {
    let text = package.trim_start_matches("./").trim_end_matches('/');
    if text == "." { PathBuf::new() } else { PathBuf::from(text) }
}

/// Flags of scaffolded programs that matter inside a cluster only, and what turns them off.
const OFF: [(&str, &str); 6] = [
    ("leader-elect", "false"),
    ("enable-leader-election", "false"),
    ("metrics-bind-address", "0"),
    ("metrics-addr", "0"),
    ("health-probe-bind-address", "0"),
    ("health-addr", "0"),
];

/// Facts from the files of a main package.
#[derive(Clone, Debug, Default)]
struct Main {
    /// True if a manager is made there.
    manager: bool,
    /// The flags of `OFF` that it defines.
    flags: BTreeSet<&'static str>,
    /// The name of its lease.
    lease: Option<String>,
}

impl Main {
    fn take(&mut self, text: &str) {
        self.manager |= text.contains("NewManager(");
        self.flags
            .extend(OFF.iter().map(|(flag, _)| *flag).filter(|flag| text.contains(&format!("\"{flag}\""))));
        let after = text.split_once("LeaderElectionID:").map(|(_, rest)| rest.trim_start());
        let quoted = after.and_then(|rest| rest.strip_prefix('"')?.split_once('"'));
        if let Some((name, _)) = quoted {
            self.lease = Some(name.to_owned());
        }
    }

    /// Arguments that turn leader election, metrics and health probes off: nobody asks for them here, and
    /// their ports may be taken.
    fn off_flags(&self) -> Vec<String> {
        let known = OFF.iter().filter(|(flag, _)| self.flags.contains(flag));
        known.map(|(flag, value)| format!("--{flag}={value}")).collect()
    }
}

/// Facts from the Go files of a project, without a Go toolchain.
#[derive(Debug, Default)]
struct Sources {
    /// Main packages by their folders.
    mains: BTreeMap<PathBuf, Main>,
    /// Files that `//go:embed` names, as globs relative to the root.
    embedded: BTreeSet<String>,
    /// The folders of this module that the files of a folder import.
    imports: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    /// Folders whose packages make a manager, main packages or not.
    managers: BTreeSet<PathBuf>,
}

impl Sources {
    fn read(dir: &Path) -> Sources {
        let mut found = Sources::default();
        let go_mod = small_text(&dir.join("go.mod")).unwrap_or_default();
        let module = go_mod.lines().find_map(|line| line.trim().strip_prefix("module "));
        let module = module.map(|path| path.trim().trim_matches('"').to_owned()).unwrap_or_default();
        for folder in files::folders(dir) {
            for path in read::paths(&folder) {
                let name =
                    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                if name.ends_with(".go") && !name.ends_with("_test.go") && path.is_file() {
                    let text = small_text(&path).unwrap_or_default();
                    found.take(dir, &folder, &text, &module);
                }
            }
        }
        found
    }

    fn take(&mut self, dir: &Path, folder: &Path, text: &str, module: &str) {
        let inside = folder.strip_prefix(dir).unwrap_or(folder);
        let ignored = text.lines().any(|line| line.starts_with("//go:build ignore"));
        if !ignored {
            self.managers.extend(text.contains("NewManager(").then(|| inside.to_owned()));
            // The quoted path of an import spec, with or without a name before it.
            let quoted = text.lines().filter_map(|line| line.trim_end().strip_suffix('"')?.rsplit_once('"'));
            let of_module = quoted.filter_map(|(_, path)| {
                let rest = path.strip_prefix(module).filter(|_| !module.is_empty())?;
                (rest.is_empty() || rest.starts_with('/'))
                    .then(|| PathBuf::from(rest.trim_start_matches('/')))
            });
            self.imports.entry(inside.to_owned()).or_default().extend(of_module);
        }
        if !ignored && text.lines().any(|line| line.trim_end() == "package main") {
            self.mains.entry(inside.to_owned()).or_default().take(text);
        }
        for line in text.lines().filter_map(|line| line.strip_prefix("//go:embed ")) {
            for glob in
                line.split_whitespace().map(|glob| glob.trim_matches(['"', '`']).trim_start_matches("all:"))
            {
                let path = inside.join(glob).display().to_string();
                self.embedded.insert(format!("{path}/**"));
                self.embedded.insert(path);
            }
        }
    }

    /// Asks if a package makes a manager, or one of this module that it leads to: a command of cobra's is
    /// mostly a package of its own.
    fn leads_to_manager(&self, main: &Path) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![main]);
        while let Some(folder) = open.pop() {
            if self.managers.contains(folder) {
                return true;
            }
            if seen.insert(folder) {
                open.extend(self.imports.get(folder).into_iter().flatten().map(PathBuf::as_path));
            }
        }
        false
    }

    /// The only main package that makes a manager, or the only one. Of several: the one that the Dockerfile
    /// builds, or the only one that stands where scaffolds put it.
    fn only_main(&self, dir: &Path) -> Result<(String, String)> {
        let name = |folder: &PathBuf| package_of(&folder.display().to_string());
        let managers: Vec<&PathBuf> =
            self.mains.iter().filter(|(_, main)| main.manager).map(|(folder, _)| folder).collect();
        let managers = if managers.is_empty() {
            self.mains.keys().filter(|folder| self.leads_to_manager(folder)).collect()
        } else {
            managers
        };
        let all: Vec<&PathBuf> = self.mains.keys().collect();
        let said = |what: &str| format!("{what} of {}", dir.join("go.mod").display());
        match (managers.as_slice(), all.as_slice()) {
            ([one], _) => Ok((name(one), said("the main package with a manager"))),
            ([], [one]) => Ok((name(one), said("the only main package"))),
            ([], []) => bail!("the Go module in {} has no main package", dir.display()),
            ([], several) | (several, _) => {
                let dockerfile = small_text(&dir.join("Dockerfile")).unwrap_or_default();
                let built: BTreeSet<PathBuf> = built_by(&dockerfile).collect();
                let of = |wanted: &dyn Fn(&Path) -> bool| {
                    let mut found = several.iter().filter(|folder| wanted(folder));
                    found.next().filter(|_| found.next().is_none())
                };
                if let Some(one) = of(&|folder| built.contains(folder)) {
                    return Ok((
                        name(one),
                        format!("the main package that {} builds", dir.join("Dockerfile").display()),
                    ));
                }
                if let Some(one) = of(&|folder| USUAL_MAINS.iter().any(|usual| folder == Path::new(usual))) {
                    return Ok((name(one), said("of several main packages the one at the usual place")));
                }
                bail!(
                    "the project has several main packages: {}; name the operator's with `go` under `operator` in opdev.yaml",
                    several.iter().map(|folder| name(folder)).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

/// Where kubebuilder's layouts, newest and oldest, put the main package.
const USUAL_MAINS: [&str; 3] = ["", "cmd", "cmd/manager"];

/// The folders of the packages that a Dockerfile gives to `go build`, each without `./` and the name of a
/// file.
fn built_by(dockerfile: &str) -> impl Iterator<Item = PathBuf> {
    let joined = dockerfile.replace("\\\n", " ");
    let commands: Vec<String> =
        joined.lines().filter_map(|line| Some(line.split_once("go build ")?.1.to_owned())).collect();
    commands.into_iter().filter_map(|command| {
        let package = command.split(['&', ';', '|']).next()?.split_whitespace().last()?.to_owned();
        let package = package.strip_prefix("./").unwrap_or(&package);
        let path = Path::new(package);
        let folder = if package.ends_with(".go") { path.parent()? } else { path };
        Some(if folder == Path::new(".") { PathBuf::new() } else { folder.to_owned() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn of_several_main_packages_the_dockerfile_or_the_usual_place_decides() {
        let main = "package main\n\nfunc main() { ctrl.NewManager(nil, ctrl.Options{}) }\n";
        let mains = [("main.go", main), ("bootstrap/main.go", main)];
        let chosen = |more: &[(&str, &str)]| {
            let go_mod =
                ("go.mod", "module example.com/x\n\nrequire sigs.k8s.io/controller-runtime v0.24.1\n");
            let files: Vec<(&str, &str)> =
                [go_mod].into_iter().chain(mains).chain(more.iter().copied()).collect();
            let folder = project(&files);
            Sources::read(folder.path()).only_main(folder.path()).map(|(package, _)| package)
        };
        assert_eq!(chosen(&[]).unwrap(), ".");
        let dockerfile = "RUN CGO_ENABLED=0 \\\n    go build -a -o manager ./bootstrap && strip manager\n";
        assert_eq!(chosen(&[("Dockerfile", dockerfile)]).unwrap(), "./bootstrap");
        assert_eq!(
            chosen(&[("Dockerfile", "RUN go build -o manager bootstrap/main.go\n")]).unwrap(),
            "./bootstrap"
        );
        // The manager of a command of cobra's is made in a package of its own; a generator beside it makes
        // none.
        let cobra = project(&[
            ("go.mod", "module example.com/x/v2\n\nrequire sigs.k8s.io/controller-runtime v0.24.1\n"),
            (
                "cmd/operator/main.go",
                "package main\n\nimport (\n\tctl \"example.com/x/v2/cmd/operator/controller\"\n)\n",
            ),
            (
                "cmd/operator/controller/start.go",
                "package controller\n\nimport \"example.com/x/v2/internal/run\"\n",
            ),
            ("internal/run/run.go", "package run\n\nfunc Run() { ctrl.NewManager(nil) }\n"),
            ("hack/swagger/main.go", "package main\n\nimport \"example.com/x/v2/api\"\n"),
        ]);
        let found = Sources::read(cobra.path()).only_main(cobra.path()).unwrap();
        assert_eq!(found.0, "./cmd/operator");
        let both = chosen(&[("cmd/main.go", main)]).unwrap_err().to_string();
        expect!["the project has several main packages: ., ./bootstrap, ./cmd; name the operator's with `go` under `operator` in opdev.yaml"]
        .assert_eq(&both);
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

    const MODULE: &str = "module a.b/c\n\nrequire sigs.k8s.io/controller-runtime v0.24.1\n";
    const MAIN: &str = "package main\n\nfunc main() { ctrl.NewManager(nil) }\n";

    fn plan(folder: &tempfile::TempDir) -> Plan {
        detect(folder.path(), None, true).unwrap().unwrap()
    }

    #[test]
    fn the_makefile_says_package_flags_environment_and_arguments() {
        let makefile = "VERSION ?= 1.2\nLDFLAGS ?= -X main.version=$(VERSION)\n\
            run: manifests\n\tKUBECONFIG=/root/.kube/config ENABLE_WEBHOOKS=false go run -tags dev ./cmd/main.go --kubeconfig ~/.kube/config --zap-devel\n\
            build:\n\tCGO_ENABLED=0 go build -ldflags \"$(LDFLAGS)\" -o bin/manager cmd/main.go\n";
        let folder = project(&[
            ("go.mod", MODULE),
            ("Makefile", makefile),
            ("cmd/main.go", MAIN),
            ("x/main.go", MAIN),
        ]);
        let plan = plan(&folder);
        let flags = vec!["-tags=dev".to_owned()];
        assert_eq!(
            plan.build,
            Build::Go { package: "./cmd".to_owned(), flags, ldflags: "-X main.version=1.2".to_owned() }
        );
        assert_eq!(plan.command, ["--zap-devel"]);
        let env: Vec<(&str, &str)> =
            plan.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("CGO_ENABLED", "0"), ("ENABLE_WEBHOOKS", "false")]);
        assert_eq!(plan.words, "go ./cmd");
    }

    #[test]
    fn a_target_that_starts_what_was_built_gives_its_arguments() {
        let makefile = "LEVELS = debug info\n\
            build:\n\tgo build -tags prod -o bin/manager ./cmd\n\
            run: build\n\tMODE=dev ./bin/manager --root=$(CURDIR) --level=$(patsubst %,l-%,$(firstword $(LEVELS))) \\\n\
            \t\t--zone=$${ZONE:-eu} --who=$(shell echo -n me) $(addprefix --x=,a,b) --of=$$OF > log 2>&1\n";
        let folder = project(&[("go.mod", MODULE), ("Makefile", makefile), ("cmd/main.go", MAIN)]);
        let plan = plan(&folder);
        let root = folder.path().canonicalize().unwrap().display().to_string();
        let wanted = [
            format!("--root={root}"),
            "--level=l-debug".to_owned(),
            "--zone=eu".to_owned(),
            "--who=me".to_owned(),
            "--x=a,b".to_owned(),
        ];
        assert_eq!(plan.command, wanted);
        assert_eq!(plan.env.get("MODE").map(String::as_str), Some("dev"));
        assert_eq!(plan.said_by, "target build of the Makefile");
    }

    #[test]
    fn whole_paths_of_a_makefile_are_those_of_this_machine() {
        let makefile = "BIN := $(CURDIR)/bin\n\
            run:\n\tcd $(PWD) && go run $(CURDIR)/cmd/main.go --a=$(shell pwd)/x --b=$(abspath y) --c=$$(pwd)/z \\\n\
            \t\t--d=\"$$PWD/d\" --e='$$PWD' --f=$(HOME)/f --g=`pwd`/g --h=$$(git describe) --i=$${HOME} last\n\
            build:\n\tcd cmd && go build -o $(BIN)/shop .\n";
        let folder = project(&[("go.mod", MODULE), ("Makefile", makefile), ("cmd/main.go", MAIN)]);
        let plan = plan(&folder);
        let root = folder.path().canonicalize().unwrap().display().to_string();
        let home = std::env::var("HOME").unwrap_or_default();
        assert_eq!(plan.words, "go ./cmd");
        assert_eq!(plan.binary.as_deref(), Some("shop"));
        let wanted = [
            format!("--a={root}/x"),
            format!("--b={root}/y"),
            format!("--c={root}/z"),
            format!("--d={root}/d"),
            "--e=$PWD".to_owned(),
            format!("--f={home}/f"),
            format!("--g={root}/g"),
            "--h=".to_owned(),
            format!("--i={home}"),
            "last".to_owned(),
        ];
        assert_eq!(plan.command, wanted);
        assert!(plan.command.iter().all(|word| !word.contains(char::is_control)), "{:?}", plan.command);
    }

    #[test]
    fn without_a_makefile_the_main_package_with_a_manager_is_taken() {
        let folder = project(&[("go.mod", MODULE), ("main.go", MAIN), ("hack/gen.go", "package main\n")]);
        assert_eq!(plan(&folder).words, "c");
        assert_eq!(in_words("./", "module example.com/operator/v2\n"), "operator");
        assert_eq!(in_words(".", ""), "go .");
        let types = project(&[("go.mod", MODULE), ("api/v1/a_types.go", "package v1\n")]);
        assert_eq!(detect(types.path(), None, false).unwrap(), None);
        let two = project(&[("go.mod", MODULE), ("a/main.go", MAIN), ("b/main.go", MAIN)]);
        let why = detect(two.path(), None, false).unwrap_err().to_string();
        expect!["the project has several main packages: ./a, ./b; name the operator's with `go` under `operator` in opdev.yaml"]
        .assert_eq(&why);
        let settings = Settings { go: Some("./b".to_owned()), ..Settings::default() };
        let found = detect(two.path(), Some(&settings), false).unwrap().unwrap();
        assert_eq!(found.words, "go ./b");
    }

    #[test]
    fn what_matters_inside_a_cluster_only_is_turned_off() {
        let main = "package main\n\nfunc main() {\n\tflag.BoolVar(&a, \"leader-elect\", true, \"\")\n\tflag.StringVar(&b, \"metrics-bind-address\", \":1\", \"\")\n\tctrl.NewManager(c, ctrl.Options{LeaderElectionID: \"a.b.c\"})\n}\n";
        let folder = project(&[("go.mod", MODULE), ("cmd/main.go", main)]);
        let plan = plan(&folder);
        assert_eq!(plan.command, ["--leader-elect=false", "--metrics-bind-address=0"]);
        assert_eq!(plan.lease.as_deref(), Some("a.b.c"));
    }

    #[test]
    fn a_hybrid_operator_reconciles_the_charts_too() {
        let module = format!("{MODULE}require github.com/operator-framework/helm-operator-plugins v0.8.0\n");
        let embed =
            "package main\n\n//go:embed files/*.yaml\nvar f int\n\nfunc main() { ctrl.NewManager(nil) }\n";
        let folder = project(&[("go.mod", &module), ("main.go", embed), ("watches.yaml", "[]")]);
        let found = plan(&folder);
        assert!(found.charts);
        for glob in ["helm-charts/**", "watches.yaml", "files/*.yaml"] {
            assert!(found.watch.iter().any(|known| known == glob), "{glob}: {:?}", found.watch);
        }
    }

    /// Nobody has trusted the project yet.
    #[test]
    fn files_that_never_end_are_not_read() {
        let folder = project(&[("go.mod", MODULE), ("main.go", MAIN)]);
        let link = |path: &str| std::os::unix::fs::symlink("/dev/zero", folder.path().join(path)).unwrap();
        ["Makefile", "PROJECT", "endless.go"].into_iter().for_each(link);
        assert_eq!(plan(&folder).words, "c");
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let folder = project(&[("op.py", "")]);
        let refused =
            |settings: Settings| detect(folder.path(), Some(&settings), false).unwrap_err().to_string();
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let command = words(&["python", "op.py"]);
        let both = Settings { command: command.clone(), go: Some(".".to_owned()), ..Settings::default() };
        expect!["operator in opdev.yaml has `command` and `go`; name one: `go` builds a main package of this project"]
        .assert_eq(&refused(both));
        assert!(refused(Settings::default()).contains("names no program"));
        assert!(refused(Settings { command: words(&[]), ..Settings::default() }).contains("empty"));
        let args = vec!["--kubeconfig=/x".to_owned()];
        let elsewhere = refused(Settings { command: command.clone(), args, ..Settings::default() });
        expect!["--kubeconfig: opdev gives the program a kubeconfig of its own (KUBECONFIG), and this argument would win over it; take it out of `operator` in opdev.yaml, or write --kubeconfig=$(KUBECONFIG) for the path of that file"]
        .assert_eq(&elsewhere);
        for args in [vec!["--kubeconfig=$(KUBECONFIG)"], vec!["-kubeconfig", "$(KUBECONFIG)"]] {
            let args: Vec<String> = args.into_iter().map(str::to_owned).collect();
            let settings = Settings { command: command.clone(), args: args.clone(), ..Settings::default() };
            let plan = detect(folder.path(), Some(&settings), false).unwrap().unwrap();
            assert!(plan.command.ends_with(&args), "{:?}", plan.command);
        }
        let env = BTreeMap::from([("KUBECONFIG".to_owned(), "/x".to_owned())]);
        let elsewhere = Settings { command: command.clone(), env, ..Settings::default() };
        expect!["operator.env in opdev.yaml sets KUBECONFIG: opdev leads the program to the cluster that it works on itself; take it out, and choose the cluster with --context, --kubeconfig or --embedded"]
        .assert_eq(&refused(elsewhere));
        let stop =
            Settings { command: command.clone(), stop_after: Some("soon".to_owned()), ..Settings::default() };
        expect![[r#"operator.stopAfter in opdev.yaml: "soon" is no duration such as 10s"#]]
            .assert_eq(&refused(stop));
        let nowhere = Settings { command, dir: Some("gone".to_owned()), ..Settings::default() };
        assert!(refused(nowhere).contains("no folder"));
        assert_eq!(detect(folder.path(), None, false).unwrap(), None);
    }
}
