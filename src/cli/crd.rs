//! `opdev crd`, `opdev rbac`, `opdev webhook` and `opdev deepcopy`: what controller-gen would write, written,
//! printed or compared. Starts no runtime, asks no cluster, runs no Go.

use anyhow::{Context as _, Result};
use opdev_deploy::developer_role;
use opdev_event::words::visible;
use opdev_event::{Diagnostic, Severity};
use opdev_generate::deepcopy;
use opdev_generate::manifests;
use opdev_generate::manifests::{Asked, Made};
use opdev_generate::rbac;
use opdev_project::Project;
use opdev_project::go::files;
use opdev_types::pin::{self, CrdFlags, ObjectFlags, Output, RbacFlags, WebhookFlags};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What all of these commands take.
#[derive(Debug, clap::Args)]
pub(super) struct SourceArgs {
    /// Packages, as `./api/...`, `./api/v1` or an import path; default: those in the project's call of
    /// controller-gen, else ./... Flags of controller-gen count, too: `crd:maxDescLen=0 paths=./api/...
    /// output:crd:dir=deploy`
    #[arg(value_name = "PATHS")]
    paths: Vec<String>,
    /// The project's folder; default: the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// The folder to write to, or `-` to print; default: the Makefile's, else config/crd/bases, config/rbac
    /// and config/webhook, and copy methods beside their types
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write nothing; show how the committed files differ, and fail where they do
    #[arg(long)]
    check: bool,
}

/// What the commands that write manifests take.
#[derive(Debug, clap::Args)]
pub(super) struct ManifestArgs {
    #[command(flatten)]
    sources: SourceArgs,
    /// The release of controller-gen to follow, as `v0.18.0`; default: the one the project pins
    #[arg(long, value_name = "VERSION")]
    version_profile: Option<String>,
}

/// Write the CRDs of the project's Go types, as controller-gen does
#[derive(Debug, clap::Args)]
pub(super) struct CrdArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
    /// Write nothing; say what changes for those who use the CRDs of this tag, commit or folder, and fail
    /// where something that works there stops working
    #[arg(long, value_name = "REF|DIR", conflicts_with_all = ["check", "output", "paths", "version_profile"])]
    compare: Option<String>,
    /// Also what changes nothing for anybody
    #[arg(short, long, requires = "compare")]
    verbose: bool,
}

/// Write the roles that the project's RBAC markers ask for, as controller-gen does
#[derive(Debug, clap::Args)]
pub(super) struct RbacArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
    /// Also allow what the charts of watches.yaml create with their default values, as the Operator SDK
    /// scaffolds it
    #[arg(long)]
    from_charts: bool,
    /// Write nothing; compare the roles with what the operator was seen to use in the newest `opdev run` of
    /// the project, and fail where a right is missing
    #[arg(long, conflicts_with_all = ["check", "output"])]
    observed: bool,
    /// Print what an administrator gives a developer instead: the CRDs, and a Role and RoleBinding for one
    /// namespace. USER is a user, `group:NAME` or `system:serviceaccount:NAMESPACE:NAME`
    #[arg(long = "for", value_name = "USER", requires = "namespace", conflicts_with_all = ["check", "output", "from_charts"])]
    developer: Option<String>,
    /// The namespace of --for
    #[arg(short, long, value_name = "NAME", requires = "developer")]
    namespace: Option<String>,
}

/// Write the webhook configurations that the project's webhook markers ask for, as controller-gen does
#[derive(Debug, clap::Args)]
pub(super) struct WebhookArgs {
    #[command(flatten)]
    manifest: ManifestArgs,
}

/// Write the DeepCopy methods of the project's Go types, as controller-gen does
#[derive(Debug, clap::Args)]
pub(super) struct DeepCopyArgs {
    #[command(flatten)]
    sources: SourceArgs,
}

/// Runs `opdev deepcopy`.
pub(super) fn deep_copy(args: &DeepCopyArgs) -> Result<ExitCode> {
    run(&args.sources, &asked(&args.sources)?, deepcopy::deep_copies)
}

/// Runs `opdev crd`.
pub(super) fn crd(args: &CrdArgs) -> Result<ExitCode> {
    if let Some(reference) = &args.compare {
        return super::compare::run(reference, args.manifest.sources.project.as_deref(), args.verbose);
    }
    run(&args.manifest.sources, &manifest(&args.manifest, false)?, manifests::crds)
}

/// Runs `opdev webhook`.
pub(super) fn webhook(args: &WebhookArgs) -> Result<ExitCode> {
    run(&args.manifest.sources, &manifest(&args.manifest, false)?, manifests::webhooks)
}

/// Runs `opdev rbac`.
pub(super) fn rbac(args: &RbacArgs) -> Result<ExitCode> {
    if args.observed {
        return observed(args);
    }
    if let (Some(user), Some(namespace)) = (&args.developer, &args.namespace) {
        let here = std::env::current_dir().context("the working directory cannot be read")?;
        let project = Project::discover(args.manifest.sources.project.as_deref(), &here)?;
        let text = developer_role::grant(&project, user, namespace)?;
        let written = super::visible::machine().write_all(text.as_bytes());
        return Ok(if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    run(&args.manifest.sources, &manifest(&args.manifest, args.from_charts)?, manifests::roles)
}

/// Says which rights were used and are not allowed, and which are allowed and were not used.
fn observed(args: &RbacArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let root = files::root(args.manifest.sources.project.as_deref(), &here)?;
    let made = manifests::roles_of_markers(&root, &manifest(&args.manifest, args.from_charts)?)?;
    let (text, missing) = rbac::compared(&root, &made)?;
    let written = super::visible::out().write_all(text.as_bytes());
    Ok(if missing || written.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the command line asks for: package patterns, and flags in controller-gen's own form.
fn asked(args: &SourceArgs) -> Result<Asked> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let (flags, mut paths): (Vec<String>, Vec<String>) =
        args.paths.iter().cloned().partition(|word| pin::is_flag(word));
    let (given, warnings) = pin::given(&flags);
    if let Some(warning) = warnings.first() {
        anyhow::bail!("{}", warning.message);
    }
    paths.extend(given.paths);
    // Headers are named as seen from here, those of the project's calls as seen from where these run.
    let from_here = |file: Option<String>| file.map(|file| here.join(file).display().to_string());
    let outputs = [given.crd_output, given.rbac_output, given.webhook_output, given.object_output.flatten()];
    let output = outputs.into_iter().flatten().find_map(|output| match output {
        Output::Folder(folder) => Some(PathBuf::from(folder)),
        Output::Stdout => Some(PathBuf::from("-")),
        Output::Nothing => None,
    });
    Ok(Asked {
        paths,
        output: args.output.clone().or(output),
        crd: given.crd.map(|flags| CrdFlags { header_file: from_here(flags.header_file), ..flags }),
        rbac: given.rbac.map(|flags| RbacFlags { header_file: from_here(flags.header_file), ..flags }),
        object: given.object.map(|flags| ObjectFlags { header_file: from_here(flags.header_file), ..flags }),
        webhook: given
            .webhook
            .map(|flags| WebhookFlags { header_file: from_here(flags.header_file), ..flags }),
        year: jiff::Zoned::now().year().to_string(),
        ..Asked::default()
    })
}

fn manifest(args: &ManifestArgs, charts: bool) -> Result<Asked> {
    Ok(Asked { version: args.version_profile.clone(), charts, ..asked(&args.sources)? })
}

fn run(args: &SourceArgs, asked: &Asked, make: fn(&Path, &Asked) -> Result<Made>) -> Result<ExitCode> {
    let here = std::env::current_dir().context("the working directory cannot be read")?;
    let root = files::root(args.project.as_deref(), &here)?;
    let made = make(&root, asked)?;
    let mut told = String::new();
    if let Some(assumed) = &made.assumed {
        let _ = writeln!(told, "no call of controller-gen was found in this project; assumed: {assumed}");
    }
    for diagnostic in &made.diagnostics {
        tell(&mut told, diagnostic);
    }
    for name in &made.broken {
        let _ = writeln!(told, "{name} is left as it is until the errors above are gone");
    }
    let mut out = String::new();
    let mut failed = made.failed();
    if args.check {
        let differences = manifests::differences(&root, &made)?;
        for difference in &differences {
            out.push_str(&difference.diff);
        }
        match differences.len() {
            0 => {}
            1 => told.push_str("1 file differs from what is committed; "),
            many => {
                let _ = write!(told, "{many} files differ from what is committed; ");
            }
        }
        if !differences.is_empty() {
            let _ =
                writeln!(told, "run the command without --check to write (controller-gen {})", made.version);
            failed = true;
        }
    } else {
        for path in manifests::write(&root, &made)? {
            let _ = writeln!(told, "wrote {path}");
        }
        out.extend(
            made.files.iter().filter(|file| file.path.is_none()).map(|file| file.artifact.text.as_str()),
        );
    }
    let _ = super::visible::err().write_all(visible(&told).as_bytes());
    // Differences quote the committed files; a manifest on standard output is for programs.
    let written = match args.check {
        true => super::visible::out().write_all(out.as_bytes()),
        false => super::visible::machine().write_all(out.as_bytes()),
    };
    Ok(if failed || written.is_err() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// `file:line:column: error: message`, the lines around it, and what to do.
fn tell(out: &mut String, diagnostic: &Diagnostic) {
    if let Some(place) = &diagnostic.place {
        let _ = match (place.line, place.column) {
            (0, _) => write!(out, "{}: ", place.file),
            (line, 0) => write!(out, "{}:{line}: ", place.file),
            (line, column) => write!(out, "{}:{line}:{column}: ", place.file),
        };
    }
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let _ = writeln!(out, "{severity}: {}", diagnostic.message);
    for line in diagnostic.excerpt.iter().flat_map(|text| text.lines()) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(hint) = &diagnostic.hint {
        let _ = writeln!(out, "  {hint}");
    }
}
