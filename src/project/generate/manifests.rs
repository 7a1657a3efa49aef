//! Manifests that controller-gen would write for a project: CRDs, roles and webhook configurations, as files
//! with their places, and how they differ from what is committed. Writes only where `write` is called; runs
//! no Go.

use anyhow::{Context as _, Result, bail};
use opdev_helm::chart::{self, Chart};
use opdev_object::lines;
use opdev_object::meta::{self, Gvk};
use opdev_os::private_folder;
use opdev_os::read;
use opdev_project::go::files;
use opdev_project::go::files::{Disk, Wanted};
use opdev_sources::chart_problems;
use opdev_sources::created::CreatedKinds;
use opdev_sources::deadline;
use opdev_types::diagnostic::{Diagnostic, Place, Severity};
use opdev_types::emit::{self, Artifact};
use opdev_types::go::{Generator, Options, Profile};
use opdev_types::pin::{CrdFlags, Invocation, ObjectFlags, Output, RbacFlags, Settings, WebhookFlags};
use opdev_types::rbac::charts::ChartKind;
use opdev_types::rbac::{self, Merging, Rule};
use opdev_types::webhook::{self, Marker};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The user's wishes beside the settings of the project.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// Package patterns in place of those of the Makefile.
    pub paths: Vec<String>,
    /// The release of controller-gen to follow in place of the pinned one.
    pub version: Option<String>,
    /// The folder to write to in place of the Makefile's, as it is seen from the working directory.
    pub output: Option<PathBuf>,
    /// The flags of `crd` in place of those of the project's calls.
    pub crd: Option<CrdFlags>,
    /// The flags of `rbac` in place of those of the project's calls.
    pub rbac: Option<RbacFlags>,
    /// The flags of `object` in place of those of the project's calls.
    pub object: Option<ObjectFlags>,
    /// The flags of `webhook` in place of those of the project's calls.
    pub webhook: Option<WebhookFlags>,
    /// Also the rules that the charts of `watches.yaml` need.
    pub charts: bool,
    /// This year, for headers.
    pub year: String,
}

/// A file that is made.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it belongs; `None` where it goes to standard output.
    pub path: Option<PathBuf>,
    /// True if the user named its folder, and not the project.
    pub chosen: bool,
    /// Its name and text.
    pub artifact: Artifact,
}

/// The files that were made, and what is wrong with them.
#[derive(Debug, Default)]
pub struct Made {
    /// The files, in order.
    pub files: Vec<Target>,
    /// Errors and warnings, with excerpts.
    pub diagnostics: Vec<opdev_event::Diagnostic>,
    /// Names of CRDs that could not be made in full; they are not among the files.
    pub broken: Vec<String>,
    /// The release of controller-gen that was followed, and why.
    pub version: String,
    /// The flags that were assumed, where the project does not call controller-gen.
    pub assumed: Option<String>,
}

impl Made {
    /// Returns true if something is wrong that has to be put right.
    pub fn failed(&self) -> bool {
        self.errors().next().is_some()
    }

    /// That in words, one line for each; `None` where nothing is wrong.
    pub fn wrong(&self) -> Option<String> {
        let lines: Vec<String> = self.errors().map(opdev_event::words::diagnostic).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// The error.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &opdev_event::Diagnostic> {
        self.diagnostics.iter().filter(|one| one.severity == opdev_event::Severity::Error)
    }
}

/// One run: the project, its settings and a generator.
struct Run<'a> {
    root: &'a Path,
    asked: &'a Asked,
    settings: Settings,
    profile: Profile,
    disk: Disk,
    made: Made,
}

impl<'a> Run<'a> {
    fn new(root: &'a Path, asked: &'a Asked) -> Run<'a> {
        let mut settings = files::settings(root, &asked.year);
        let (profile, version) = match (&asked.version, &settings.version) {
            (Some(asked), _) => (Profile::parse(asked), format!("{asked}, as asked for")),
            (None, Some(pinned)) => {
                (Profile::parse(&pinned.text), format!("{} by {}", pinned.text, pinned.said_by))
            }
            (None, None) => {
                let profile = Profile::default();
                let version = format!("{profile}, because the project pins none");
                (profile, version)
            }
        };
        let mut made = Made { version, ..Made::default() };
        let said = std::mem::take(&mut settings.diagnostics);
        let disk = Disk::new(root);
        made.diagnostics.extend(said.iter().map(|one| shown(&disk, one)));
        Run { root, asked, settings, profile, disk, made }
    }

    /// The project's calls of one generator; the one that kubebuilder scaffolds where it has none and the
    /// user names flags or packages.
    fn calls(&self, of: impl Fn(&Invocation) -> bool, flags: bool) -> Vec<Invocation> {
        let mut calls: Vec<Invocation> =
            self.settings.invocations.iter().filter(|call| of(call)).cloned().collect();
        if calls.is_empty() && (flags || !self.asked.paths.is_empty()) {
            calls.push(Invocation::scaffolded());
        }
        calls
    }

    /// Notes which flags are assumed for a call that stands nowhere in the project.
    fn assume(&mut self, call: &Invocation, generator: &str) {
        if call.place.is_some() {
            return;
        }
        let paths = if self.asked.paths.is_empty() { &call.paths } else { &self.asked.paths };
        let output = match generator.split(':').next() {
            Some("rbac") => &call.rbac_output,
            Some("webhook") => &call.webhook_output,
            _ => &call.crd_output,
        };
        let output = match (&self.asked.output, output) {
            (Some(folder), _) => format!("dir={}", folder.display()),
            (None, Output::Folder(folder)) => format!("dir={folder}"),
            (None, Output::Stdout) => "stdout".to_owned(),
            (None, Output::Nothing) => "none".to_owned(),
        };
        self.made.assumed = Some(format!(
            "{generator} paths={} output:{output}, controller-gen {}",
            paths.join(" paths="),
            self.made.version
        ));
    }

    /// The folders of a call: those of the patterns the user names, or of the call itself.
    fn packages(&self, call: &Invocation, wanted: Wanted) -> Vec<String> {
        let (folder, patterns) = match self.asked.paths.as_slice() {
            [] => (call.folder.as_str(), call.paths.as_slice()),
            asked => ("", asked),
        };
        files::packages(self.root, folder, patterns, wanted)
    }

    /// The header of a call's files.
    fn header(&self, call: &Invocation, file: Option<&String>, year: &str) -> Result<String> {
        let Some(file) = file else { return Ok(String::new()) };
        let path = self.root.join(&call.folder).join(file);
        let text = read::text(&path).with_context(|| {
            format!("the header file {} cannot be read; headerFile names it", path.display())
        })?;
        Ok(emit::header(&text, year))
    }

    fn add(&mut self, call: &Invocation, output: &Output, artifact: Artifact) {
        let path = match (&self.asked.output, output) {
            (Some(folder), _) if folder.as_os_str() == "-" => None,
            (Some(folder), _) => Some(folder.join(&artifact.name)),
            (None, Output::Folder(folder)) => {
                Some(self.root.join(&call.folder).join(folder).join(&artifact.name))
            }
            (None, Output::Stdout) => None,
            (None, Output::Nothing) => return,
        };
        self.made.files.push(Target { path, chosen: self.asked.output.is_some(), artifact });
    }

    fn say(&mut self, diagnostics: &[Diagnostic]) {
        for one in diagnostics {
            let shown = shown(&self.disk, one);
            if !self.made.diagnostics.contains(&shown) {
                self.made.diagnostics.push(shown);
            }
        }
    }
}

fn options(flags: &CrdFlags, profile: &Profile) -> Options {
    Options {
        profile: profile.clone(),
        max_desc_len: flags.max_description,
        allow_dangerous_types: flags.allow_dangerous_types,
        ignore_unexported_fields: flags.ignore_unexported_fields,
        generate_embedded_object_meta: flags.generate_embedded_object_meta,
        omit_tool_version: flags.omit_tool_version,
        exact: true,
    }
}

/// The CRDs of a project.
///
/// # Errors
/// Where there are no kinds at all, or a header cannot be read.
pub fn crds(root: &Path, asked: &Asked) -> Result<Made> {
    let mut run = Run::new(root, asked);
    let mut generator = Generator::new();
    let mut patterns = Vec::new();
    // The call whose CRDs go nowhere.
    let mut idle = None;
    if let Some(unknown) = run.profile.warning() {
        run.say(&[unknown]);
    }
    let calls = run.calls(|call| call.crd.is_some(), asked.crd.is_some());
    if calls.is_empty()
        && let Some(place) = run.settings.invocations.iter().find_map(|call| call.place.as_ref())
    {
        bail!(
            "{}:{} does not call controller-gen for CRDs, so that this project asks for no CRDs; name the packages with \
             kinds, as `opdev crd ./api/...`",
            place.file,
            place.line
        );
    }
    for call in calls {
        let Some(flags) = asked.crd.as_ref().or(call.crd.as_ref()) else { continue };
        run.assume(&call, "crd");
        let header = run.header(&call, flags.header_file.as_ref(), &flags.year)?;
        let packages = run.packages(&call, Wanted::Kinds);
        patterns.extend(call.paths.iter().cloned());
        if packages.is_empty() {
            continue;
        }
        let generated = generator.generate(&run.disk, &packages, &options(flags, &run.profile));
        // A call for CRDs alone does not read the markers of other generators.
        let of_others =
            |one: &Diagnostic| ["rbac", "webhook"].iter().any(|name| is_marker_of(&run.disk, one, name));
        let found: Vec<Diagnostic> =
            generated.diagnostics.iter().filter(|one| !of_others(one)).cloned().collect();
        run.say(&found);
        for crd in generated.crds {
            let mut object = std::sync::Arc::unwrap_or_clone(crd.object);
            if crd.broken {
                run.made.broken.push(object["metadata"]["name"].as_str().unwrap_or_default().to_owned());
                continue;
            }
            if let Some(preserve) = flags.preserve_unknown_fields {
                meta::put(&mut object, &["spec", "preserveUnknownFields"], Value::Bool(preserve));
            }
            let artifact = emit::crd(&object, &header)?;
            if call.crd_output == Output::Nothing {
                idle.clone_from(&call.place);
            }
            run.add(&call, &call.crd_output, artifact);
        }
        if !asked.paths.is_empty() {
            break;
        }
    }
    if run.made.files.is_empty() && run.made.broken.is_empty() && !run.made.failed() {
        if let Some(place) = idle {
            bail!(
                "{}:{} calls controller-gen with output:none, so that no CRD is written; name a folder with -o DIR",
                place.file,
                place.line
            );
        }
        let patterns = if asked.paths.is_empty() { patterns } else { asked.paths.clone() };
        bail!(
            "no kinds in {} below {}: a kind is a struct that embeds metav1.TypeMeta and metav1.ObjectMeta",
            patterns.join(", "),
            root.display()
        );
    }
    Ok(run.made)
}

/// The roles that the RBAC markers of a project ask for.
///
/// # Errors
/// Where there are no markers at all, or a header cannot be read.
pub fn roles(root: &Path, asked: &Asked) -> Result<Made> {
    let made = roles_of_markers(root, asked)?;
    if made.files.is_empty() && !made.failed() {
        bail!("no +kubebuilder:rbac markers below {}", root.display());
    }
    Ok(made)
}

/// As `roles`, but a project without markers has none.
///
/// # Errors
/// Where a header cannot be read.
pub fn roles_of_markers(root: &Path, asked: &Asked) -> Result<Made> {
    let mut run = Run::new(root, asked);
    let mut generator = Generator::new();
    for call in run.calls(|call| call.rbac.is_some(), asked.rbac.is_some()) {
        let Some(flags) = asked.rbac.as_ref().or(call.rbac.as_ref()) else { continue };
        run.assume(&call, &format!("rbac:roleName={}", flags.role_name));
        let header = run.header(&call, flags.header_file.as_ref(), &flags.year)?;
        let packages = run.packages(&call, Wanted::Rbac);
        let options = Options { profile: run.profile.clone(), ..Options::default() };
        let generated = generator.generate(&run.disk, &packages, &options);
        let found = generated.diagnostics.into_iter();
        let found: Vec<Diagnostic> = found.filter(|one| is_of(&run.disk, one, "rbac")).collect();
        run.say(&found);
        let name = flags.file_name.as_deref().unwrap_or("role.yaml");
        // A role without the rules of a marker that cannot be read would take permissions away.
        if found.iter().any(|one| one.severity == Severity::Error) {
            run.made.broken.push(name.to_owned());
            continue;
        }
        let mut rules: Vec<Rule> =
            generated.rbac.iter().map(|marker| Rule::of_marker(&marker.args)).collect();
        if asked.charts {
            rules.extend(chart_rules(&mut run)?);
        }
        let roles = rbac::roles(&rules, &flags.role_name, Merging::for_version(run.profile.version()));
        if let Some(artifact) = rbac::file(name, &roles, &header)? {
            run.add(&call, &call.rbac_output, artifact);
        }
        if !asked.paths.is_empty() {
            break;
        }
    }
    Ok(run.made)
}

/// The webhook configurations that the markers of a project ask for.
///
/// # Errors
/// Where there are no markers at all, or a header cannot be read.
pub fn webhooks(root: &Path, asked: &Asked) -> Result<Made> {
    let made = webhooks_of_markers(root, asked)?.0;
    if made.files.is_empty() && made.broken.is_empty() && !made.failed() {
        bail!("no +kubebuilder:webhook markers below {}", root.display());
    }
    Ok(made)
}

/// As `webhooks`, but a project without markers has none; also the configurations themselves.
///
/// # Errors
/// Where a header cannot be read.
pub fn webhooks_of_markers(root: &Path, asked: &Asked) -> Result<(Made, Vec<Value>)> {
    let mut run = Run::new(root, asked);
    let mut generator = Generator::new();
    let mut all = Vec::new();
    for mut call in run.calls(|call| call.webhook.is_some(), asked.webhook.is_some()) {
        let Some(flags) = asked.webhook.as_ref().or(call.webhook.as_ref()).cloned() else { continue };
        if call.place.is_none() {
            // Webhooks stand beside the types, or in a folder of their own.
            call.paths = Invocation::scaffolded().paths;
        }
        run.assume(&call, "webhook");
        let header = run.header(&call, flags.header_file.as_ref(), &flags.year)?;
        let packages = run.packages(&call, Wanted::Webhooks);
        let options = Options { profile: run.profile.clone(), ..Options::default() };
        let generated = generator.generate(&run.disk, &packages, &options);
        let markers = generated.webhooks.iter().map(|one| Marker {
            args: &one.args,
            place: &one.place,
            package: &one.package,
            of_configuration: one.of_configuration,
        });
        let (configurations, wrong) = webhook::configurations(&markers.collect::<Vec<_>>());
        let mut found = generated.diagnostics;
        found.retain(|one| is_of(&run.disk, one, "webhook"));
        found.extend(wrong);
        run.say(&found);
        // A manifest that lacks a webhook would let through what the program refuses.
        if found.iter().any(|one| one.severity == Severity::Error) {
            run.made.broken.push("manifests.yaml".to_owned());
            continue;
        }
        if let Some(artifact) = webhook::file(&configurations, &header)? {
            run.add(&call, &call.webhook_output, artifact);
        }
        all.extend(configurations);
        if !asked.paths.is_empty() {
            break;
        }
    }
    Ok((run.made, all))
}

/// Returns true if a diagnostic is about a marker of a generator, such as `rbac`: says so, or stands on its
/// line.
fn is_of(disk: &Disk, found: &Diagnostic, generator: &str) -> bool {
    found.message.contains(generator) || is_marker_of(disk, found, generator)
}

/// Returns true if a diagnostic stands on the line of a generator's marker.
fn is_marker_of(disk: &Disk, found: &Diagnostic, generator: &str) -> bool {
    let on_line = |place: &Place| {
        let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
        let text = opdev_types::go::Files::read(disk, &place.file)?;
        Some(text.lines().nth(line)?.contains(&format!("+kubebuilder:{generator}")))
    };
    found.place.as_ref().and_then(on_line).unwrap_or(false)
}

/// The rules that the charts of `watches.yaml` need.
fn chart_rules(run: &mut Run<'_>) -> Result<Vec<Rule>> {
    let files = ["watches.yaml", "config/watches.yaml"];
    let file = files.into_iter().find(|file| run.root.join(file).is_file());
    let file = file
        .with_context(|| format!("no watches.yaml below {}, which names the charts", run.root.display()))?;
    let text = read::text(run.root.join(file)).with_context(|| format!("{file} cannot be read"))?;
    let entries =
        opdev_object::yaml::from_str(&text).map_err(|error| anyhow::anyhow!("{}", error.in_file(file)))?;
    let mut kinds = Vec::new();
    for entry in entries.as_array().into_iter().flatten() {
        let field = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        let (gvk, path) = (Gvk::new(field("group"), field("version"), field("kind")), field("chart"));
        if path.is_empty() {
            continue;
        }
        let files = chart::read_dir_in_work(&run.root.join(path))
            .with_context(|| format!("the chart {path} of {gvk} cannot be read"))?;
        let chart = Chart::load(&files).with_context(|| format!("the chart {path} of {gvk}"))?;
        let created = {
            let (limit, _waiting) = deadline::within(deadline::LOAD);
            CreatedKinds::of_chart(&chart, &limit)
        };
        if let Some(error) = created.failure {
            bail!("the chart {path} of {gvk} needs values: {}", error.message);
        }
        kinds.push(ChartKind { gvk, creates: created.kinds.into_iter().collect() });
    }
    let (rules, guessed) = rbac::charts::rules(&kinds);
    for gvk in guessed {
        let said =
            format!("{gvk} is not built into Kubernetes: its resource is taken to be its kind's plural");
        run.say(&[Diagnostic::warning(said, None).with_hint("Look the rule over; the CRD has the name.")]);
    }
    Ok(rules)
}

/// A diagnostic with the lines around its place.
pub(crate) fn shown(disk: &Disk, found: &Diagnostic) -> opdev_event::Diagnostic {
    let mut texts = BTreeMap::new();
    if let Some(Place { file, .. }) = &found.place
        && let Some(text) = opdev_types::go::Files::read(disk, file)
    {
        texts.insert(file.clone(), text);
    }
    chart_problems::program(&texts, found)
}

/// How a file differs from the one that is committed.
#[derive(Debug)]
pub struct Difference {
    /// The file, relative to the root where it lies below it.
    pub path: String,
    /// `diff -u` from what is committed to what is made.
    pub diff: String,
}

/// Where committed files are not what is made.
///
/// # Errors
/// Where a file is there and cannot be read.
pub fn differences(root: &Path, made: &Made) -> Result<Vec<Difference>> {
    let mut found = Vec::new();
    for target in &made.files {
        let Some(path) = &target.path else { continue };
        let shown = clean(path.strip_prefix(root).unwrap_or(path));
        let (old_name, old) = match read::text(path) {
            Ok(text) => (format!("a/{shown}"), text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ("/dev/null".to_owned(), String::new())
            }
            Err(error) => return Err(error).with_context(|| format!("{shown} cannot be read")),
        };
        if let Some(diff) = lines::unified(&old_name, &format!("b/{shown}"), &old, &target.artifact.text) {
            found.push(Difference { path: shown, diff });
        }
    }
    Ok(found)
}

/// A path without `.` parts.
fn clean(path: &Path) -> String {
    path.components().collect::<PathBuf>().display().to_string()
}

/// Writes the files that are not yet as they should be, and gives the paths of those it wrote.
///
/// # Errors
/// The first file or folder that cannot be written.
pub fn write(root: &Path, made: &Made) -> Result<Vec<String>> {
    let mut written = Vec::new();
    for target in &made.files {
        let Some(path) = &target.path else { continue };
        let shown = clean(path.strip_prefix(root).unwrap_or(path));
        if read::bytes(path).is_ok_and(|old| old == target.artifact.text.as_bytes()) {
            continue;
        }
        let bytes = target.artifact.text.as_bytes();
        if target.chosen {
            private_folder::write_named(path, bytes)?;
        } else {
            // A Makefile of somebody else's must not have opdev write anywhere else.
            private_folder::write_in_project(root, path.strip_prefix(root).unwrap_or(path), bytes)
                .with_context(|| {
                    format!("the project's own settings name {shown}; -o FOLDER names another place")
                })?;
        }
        written.push(shown);
    }
    Ok(written)
}
