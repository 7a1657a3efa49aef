//! `opdev init` and `opdev create api`: a new project, and a new kind in it. Asks no cluster, runs no other
//! program.

use super::far::AccessArgs;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use opdev_event::words::{escaped_json, visible};
use opdev_project::go::files;
use opdev_pull::{ChartRequest, Homes};
use opdev_scaffold::unfinished;
use opdev_scaffold::write as disk;
use opdev_scaffold::write::OnDisk;
use opdev_scaffold::{Action, ApiOptions, ChartSource, CrdSchema, Draft, InitOptions, Layout, Reconciler};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Flags that both commands take.
#[derive(Debug, Args)]
struct CommonArgs {
    /// The project's folder; default: the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Write nothing; print the differences
    #[arg(long)]
    dry_run: bool,
    /// Replace files that exist with other content
    #[arg(long)]
    force: bool,
    /// How the result is printed
    #[arg(short, long, value_enum, default_value_t = SourceFormat::Text)]
    output: SourceFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SourceFormat {
    Text,
    Json,
}

/// The names and the reconciler of a kind.
#[derive(Debug, Args)]
struct KindArgs {
    /// The API group without the domain; default with --helm-chart: the project's only one, else charts
    #[arg(long, value_name = "GROUP", default_value = "", hide_default_value = true)]
    group: String,
    /// The API version; default with --helm-chart: v1alpha1
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true)]
    version: String,
    /// The kind; default with --helm-chart: the chart's name in camel case
    #[arg(long, value_name = "KIND", default_value = "", hide_default_value = true)]
    kind: String,
    /// The plural name of the resource
    #[arg(long, value_name = "PLURAL", default_value = "", hide_default_value = true)]
    plural: String,
    /// Whether objects of the kind live in namespaces
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    namespaced: bool,
    /// The chart that reconciles the kind: a folder, a .tgz, its address, oci://HOST/PATH, REPOSITORY/CHART,
    /// or its name in --helm-chart-repo
    #[arg(long, value_name = "CHART")]
    helm_chart: Option<String>,
    /// The address of the chart repository that has the chart
    #[arg(long, value_name = "URL", requires = "helm_chart")]
    helm_chart_repo: Option<String>,
    /// The chart's version, or a range; default: the newest release
    #[arg(long, value_name = "VERSION", requires = "helm_chart")]
    helm_chart_version: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// What the CRD of a chart's kind says of its fields: any, or those of the chart's values
    #[arg(long, value_enum, default_value_t = SchemaArg::Open)]
    crd_schema: SchemaArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemaArg {
    Open,
    Values,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReconcilerArg {
    /// A chart, named by --helm-chart, or a new one
    Chart,
    /// A script config/reconcilers/KIND.ts
    Ts,
    /// A folder of Go templates config/reconcilers/KIND/
    Templates,
    /// A controller of the Go program: internal/controller/KIND_controller.go
    Go,
    /// Nothing yet
    None,
}

/// Make a new operator project in this folder
#[derive(Debug, Args)]
pub(super) struct InitArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// The domain of all API groups
    #[arg(long, value_name = "DOMAIN", default_value = "my.domain")]
    domain: String,
    /// The project's name; default: the folder's
    #[arg(long, value_name = "NAME")]
    project_name: Option<String>,
    /// Allow several API groups
    #[arg(long)]
    multigroup: bool,
    /// Types with scripts or templates in place of charts; with --helm-chart beside one
    #[arg(long)]
    types: bool,
    /// An operator in Go on controller-runtime, laid out as kubebuilder does it; with --helm-chart beside a
    /// chart. It has types, so --types adds nothing to it
    #[arg(long)]
    go: bool,
    /// The Go module; default: that of a go.mod without requirements, else DOMAIN/NAME
    #[arg(long, value_name = "MODULE", default_value = "", hide_default_value = true)]
    repo: String,
    /// The layout by its name for kubebuilder and the Operator SDK: helm, hybrid (charts, beside which
    /// `create api` puts scripts) or go/v4 (as --go)
    #[arg(long, value_name = "PLUGIN", conflicts_with_all = ["go", "types"])]
    plugins: Option<String>,
    #[command(flatten)]
    kind: KindArgs,
}

/// Add something to the project
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    #[command(subcommand)]
    what: Create,
}

#[derive(Debug, Subcommand)]
enum Create {
    /// Add a kind: its CRD, sample and roles, and the chart, script or templates that reconcile it
    Api(ApiArgs),
}

#[derive(Debug, Args)]
struct ApiArgs {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    kind: KindArgs,
    /// What reconciles the kind; default: go in a Go project, chart in a chart project, else ts
    #[arg(long, value_enum)]
    reconciler: Option<ReconcilerArg>,
}

/// Runs `opdev init`.
pub(super) fn init(args: &InitArgs) -> Result<()> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let root = args.common.project.as_ref().map_or_else(|| here.clone(), |folder| here.join(folder));
    let folder_name = root.file_name().map(|name| name.to_string_lossy().to_lowercase());
    let layout = layout(args)?;
    if !args.repo.is_empty() && layout != Layout::Go {
        bail!("--repo names the Go module of an operator in Go; it goes with --go");
    }
    let options = InitOptions {
        domain: args.domain.clone(),
        project_name: args.project_name.clone().or(folder_name).unwrap_or_default(),
        layout,
        multigroup: args.multigroup,
        repo: args.repo.clone(),
    };
    let disk = OnDisk::new(&root);
    take_back(&root, &disk, &args.common)?;
    let mut draft = Draft::new(&disk, args.common.force);
    opdev_scaffold::init(&options, &mut draft)?;
    let kind = &args.kind;
    let with_api = kind.helm_chart.is_some()
        || [&kind.group, &kind.version, &kind.kind].iter().any(|one| !one.is_empty());
    if with_api {
        let reconciler = match layout {
            Layout::Chart => ReconcilerArg::Chart,
            Layout::Typed | Layout::Go if kind.helm_chart.is_some() => ReconcilerArg::Chart,
            Layout::Typed => ReconcilerArg::Ts,
            Layout::Go => ReconcilerArg::Go,
        };
        opdev_scaffold::create_api(&api_options(kind, reconciler, args.common.force, &here)?, &mut draft)?;
    }
    if let Some(named) = named_in(kind, (&here, &root)) {
        opdev_scaffold::warn_of_others(&named, &mut draft);
    }
    let next = match layout {
        Layout::Go if with_api => NEXT_GO,
        Layout::Chart | Layout::Typed if with_api => NEXT_RUN,
        Layout::Chart => NEXT_CHART,
        Layout::Typed | Layout::Go => NEXT_TYPES,
    };
    let copied = copied_from_here(kind, (&here, &root), &draft);
    finish(&root, &args.common, &draft, &format!("{copied}{next}"))
}

/// What lies in the project's folder and was named by a flag; `None` where that is the folder itself.
fn named_in(kind: &KindArgs, (here, root): (&Path, &Path)) -> Option<Vec<String>> {
    let chart = kind.helm_chart.as_deref().filter(|_| kind.helm_chart_repo.is_none()).map(Path::new);
    let Ok(root) = root.canonicalize() else { return Some(Vec::new()) };
    let mut names = Vec::new();
    for path in chart.into_iter().chain(kind.access.files()) {
        let Ok(path) = here.join(path).canonicalize() else { continue };
        let Ok(inside) = path.strip_prefix(&root) else { continue };
        names.push(inside.iter().next()?.to_string_lossy().into_owned());
    }
    Some(names)
}

/// What is said where the chart was the project's own folder: there are two copies of it now.
fn copied_from_here(kind: &KindArgs, (here, root): (&Path, &Path), draft: &Draft<'_>) -> String {
    let is_root = |chart: &str| {
        here.join(chart).canonicalize().is_ok_and(|chart| root.canonicalize().is_ok_and(|root| chart == root))
    };
    if kind.helm_chart_repo.is_some() || !kind.helm_chart.as_deref().is_some_and(is_root) {
        return String::new();
    }
    let folders = draft.files().keys().filter_map(|path| path.strip_suffix("/Chart.yaml"));
    let folder = folders.filter(|path| path.starts_with("helm-charts/")).min_by_key(|path| path.len());
    format!(
        "The chart of this folder was copied: {} is the one that counts now. The files that were here are as they were\n",
        folder.unwrap_or("helm-charts")
    )
}

/// The layout that the flags ask for.
fn layout(args: &InitArgs) -> Result<Layout> {
    match args.plugins.as_deref() {
        None if args.go => Ok(Layout::Go),
        None if args.types => Ok(Layout::Typed),
        None | Some("helm" | "helm/v1" | "helm.sdk.operatorframework.io/v1") => Ok(Layout::Chart),
        Some("go" | "go/v4" | "go.kubebuilder.io/v4") => Ok(Layout::Go),
        // Charts first, then what stands beside them: the layout that living tools still read.
        Some("hybrid" | "hybrid.helm" | "hybrid.helm.sdk.operatorframework.io/v1-alpha") => Ok(Layout::Chart),
        Some(other) => bail!(
            "--plugins {other}: opdev lays out `helm`, `go/v4` and `hybrid` (charts with scripts beside them, docs/hybrid.md)"
        ),
    }
}

/// Runs `opdev create api`.
pub(super) fn create(args: &CreateArgs) -> Result<()> {
    let Create::Api(args) = &args.what;
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let root = match &args.common.project {
        Some(folder) => here.join(folder),
        None => files::root(None, &here).unwrap_or_else(|_| here.clone()),
    };
    let disk = OnDisk::new(&root);
    take_back(&root, &disk, &args.common)?;
    let mut draft = Draft::new(&disk, args.common.force);
    let charts = root.join("watches.yaml").is_file();
    let reconciler = match args.reconciler {
        Some(asked) => asked,
        None if args.kind.helm_chart.is_some() => ReconcilerArg::Chart,
        None if opdev_scaffold::is_go_project(&disk) => ReconcilerArg::Go,
        None if charts => ReconcilerArg::Chart,
        None => ReconcilerArg::Ts,
    };
    opdev_scaffold::create_api(&api_options(&args.kind, reconciler, args.common.force, &here)?, &mut draft)?;
    let next = if reconciler == ReconcilerArg::Go { NEXT_GO } else { NEXT_RUN };
    let copied = copied_from_here(&args.kind, (&here, &root), &draft);
    finish(&root, &args.common, &draft, &format!("{copied}{next}"))
}

const NEXT_GO: &str = "Next: opdev run --embedded asks once whether it may build and start the program (the first build takes \
                       minutes), then press a to apply the sample\n";
const NEXT_CHART: &str = "Next: opdev create api --helm-chart CHART\n";
const NEXT_RUN: &str = "Next: opdev run --embedded, then press a to apply the sample\n";
const NEXT_TYPES: &str = "Next: opdev create api --group GROUP --version v1alpha1 --kind KIND\n";

fn api_options(kind: &KindArgs, reconciler: ReconcilerArg, force: bool, here: &Path) -> Result<ApiOptions> {
    if reconciler != ReconcilerArg::Chart && kind.helm_chart.is_some() {
        bail!("--helm-chart goes with --reconciler chart only");
    }
    if reconciler != ReconcilerArg::Chart && kind.crd_schema == SchemaArg::Values {
        bail!("--crd-schema values is for charts; the CRD of a type has the fields of its Go struct");
    }
    let reconciler = match reconciler {
        ReconcilerArg::Chart => Reconciler::Chart(
            kind.helm_chart
                .as_deref()
                .map(|chart| chart_source(kind, chart, here).map(Box::new))
                .transpose()?,
        ),
        ReconcilerArg::Ts => Reconciler::TypeScript,
        ReconcilerArg::Templates => Reconciler::Templates,
        ReconcilerArg::Go => Reconciler::Go,
        ReconcilerArg::None => Reconciler::Nothing,
    };
    Ok(ApiOptions {
        group: kind.group.clone(),
        version: kind.version.clone(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
        namespaced: kind.namespaced,
        reconciler,
        crd_schema: match kind.crd_schema {
            SchemaArg::Open => CrdSchema::Open,
            SchemaArg::Values => CrdSchema::Values,
        },
        force,
        year: jiff::Zoned::now().year().to_string(),
    })
}

/// The chart that was named, downloaded where it is elsewhere.
fn chart_source(kind: &KindArgs, chart: &str, here: &Path) -> Result<ChartSource> {
    let request = ChartRequest {
        reference: chart.to_owned(),
        repository: kind.helm_chart_repo.clone().unwrap_or_default(),
        version: kind.helm_chart_version.clone().unwrap_or_default(),
        access: kind.access.access()?,
    };
    disk::chart(&request, here, &Homes::from_environment(), &mut super::far::warn)
}

/// Takes back what an earlier command has written that was killed in the middle.
fn take_back(root: &Path, disk: &OnDisk, args: &CommonArgs) -> Result<()> {
    if args.dry_run && opdev_project::unfinished::is_there(root) {
        bail!(
            "an `opdev init` or `opdev create api` was ended here in the middle of its writes; the next one without --dry-run \
             takes back what it wrote"
        );
    }
    let Some(taken) = unfinished::take_back(root, disk)? else { return Ok(()) };
    let mut said = format!(
        "warning: an earlier command was ended here in the middle of its writes; {} of its files were taken back\n",
        taken.files
    );
    for path in &taken.kept {
        let _ = writeln!(said, "warning: {} was changed since, and stays", visible(path));
    }
    let _ = super::visible::err().write_all(said.as_bytes());
    Ok(())
}

/// Writes the files, and says what became of each.
fn finish(root: &Path, args: &CommonArgs, draft: &Draft<'_>, next: &str) -> Result<()> {
    let mut out = String::new();
    let mut said = String::new();
    for warning in draft.warnings() {
        let _ = writeln!(said, "warning: {}", visible(warning));
    }
    // After the list of files, which may be longer than the screen.
    let warn = || super::visible::err().write_all(said.as_bytes());
    if !args.dry_run
        && let Err(error) = disk::write(root, draft)
    {
        let _ = warn();
        return Err(error);
    }
    let mut last = "";
    match args.output {
        SourceFormat::Json => {
            let files: Vec<_> = draft
                .files()
                .iter()
                .map(|(path, file)| json!({"path": path, "action": file.action.word()}))
                .collect();
            let result = json!({
                "project": root.display().to_string(),
                "dryRun": args.dry_run,
                "files": files,
                "warnings": draft.warnings(),
            });
            for line in format!("{result:#}").lines() {
                let _ = writeln!(out, "{}", escaped_json(line.to_owned()));
            }
        }
        SourceFormat::Text if args.dry_run => out.push_str(
            &disk::differences(root, draft).split('\t').map(visible).collect::<Vec<_>>().join("\t"),
        ),
        SourceFormat::Text => {
            for (path, file) in draft.files() {
                if file.action != Action::Keep {
                    let _ = writeln!(out, "{} {path}", file.action.word());
                }
            }
            last = next;
        }
    }
    let print = |text: &str| {
        let mut stdout = super::visible::out();
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
            .context("the result cannot be printed")
    };
    print(&out)?;
    let _ = warn();
    print(last)?;
    // After the differences: they show what is in the way.
    disk::check(draft)
}
