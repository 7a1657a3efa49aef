//! `opdev image`: the image of the operator, without a container tool.

use super::far::AccessArgs;
use anyhow::{Context as _, Result, bail};
use opdev_event::words::{escaped_json, visible};
use opdev_image::build;
use opdev_image::build::{ImageInput, project_files};
use opdev_image::{Entries, Layout};
use opdev_project::Project;
use opdev_pull::{Homes, ImageReference};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// Make a container image of the operator, without a container tool: opdev, watches.yaml, charts, scripts and
/// types
///
/// The image runs `opdev operate` as user 65532 in /opt/helm. The same files give the same digest;
/// SOURCE_DATE_EPOCH sets the time of all files, which is 1970 without it.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("result").required(true).multiple(true).args(["output", "push", "dry_run"])))]
pub(super) struct ImageArgs {
    /// Write an OCI layout: into this folder, or into one archive where it ends in .tar (`docker load` reads
    /// that, too)
    #[arg(short, long, value_name = "DIR|FILE.tar")]
    output: Option<PathBuf>,
    /// Upload the image; a registry on this machine may have no TLS
    #[arg(long, value_name = "REF")]
    push: Option<String>,
    /// List what would be in the image, and write nothing
    #[arg(long, conflicts_with_all = ["output", "push"])]
    dry_run: bool,
    /// The name of the image in the layout; default: that of --push
    #[arg(short, long, value_name = "REF")]
    tag: Option<String>,
    /// Only these platforms, such as linux/amd64,linux/arm64; default: those of the binaries
    #[arg(long, value_name = "PLATFORM", value_delimiter = ',')]
    platform: Vec<String>,
    /// The opdev to pack; repeat it for other platforms; default: the one that runs
    #[arg(long, value_name = "FILE")]
    binary: Vec<PathBuf>,
    /// Build upon this image of a registry; default: nothing is below
    #[arg(long, value_name = "REF")]
    base: Option<String>,
    /// Put these certificates of authorities into the image; default: those of this system, where reconcilers
    /// may reach hosts
    #[arg(long, value_name = "FILE")]
    ca_bundle: Option<PathBuf>,
    /// Pack this file of the project although it looks like a key or credentials (may be repeated)
    #[arg(long, value_name = "FILE")]
    allow_file: Vec<String>,
    /// An image of opdev alone, for `FROM` in a Dockerfile
    #[arg(long, conflicts_with_all = ["project", "allow_file"])]
    without_project: bool,
    /// Print the digests as JSON
    #[arg(long)]
    json: bool,
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    #[command(flatten)]
    access: AccessArgs,
}

/// Makes the image.
pub(super) fn run(args: &ImageArgs) -> Result<()> {
    let project = match args.without_project {
        true => None,
        false => {
            let from = std::env::current_dir().context("the working directory cannot be read")?;
            Some(Project::discover(args.project.as_deref(), &from)?)
        }
    };
    let reference = |text: &Option<String>| text.as_deref().map(ImageReference::parse).transpose();
    let (push, base) = (reference(&args.push)?, reference(&args.base)?);
    let files = match &project {
        Some(project) => Some(project_files(project, &args.allow_file)?),
        None => None,
    };
    let certificates = build::certificates(args.ca_bundle.as_deref(), project.as_ref(), base.is_some())?;
    if args.dry_run {
        let system = build::system_paths(base.is_none(), certificates.is_some());
        return print(&contents(&system, files.as_ref(), args.json)?);
    }
    let input = ImageInput {
        project: files,
        title: project.map_or_else(|| "opdev".to_owned(), |project| project.name),
        binaries: match args.binary.as_slice() {
            [] => vec![std::env::current_exe().context("opdev does not find itself; name it with --binary")?],
            named => named.to_vec(),
        },
        platforms: args.platform.clone(),
        base,
        certificates,
        name: reference(&args.tag)?.or_else(|| push.clone()),
        time: time(std::env::var("SOURCE_DATE_EPOCH").ok().as_deref())?,
    };
    let (homes, access) = (Homes::from_environment(), args.access.access()?);
    let layout = build::make(&input, &homes, &access)?;
    if let Some(path) = &args.output {
        build::write(&layout, path, input.time)?;
    }
    let sent = match &push {
        Some(name) => Some(build::push(&layout, name, &homes, &access)?),
        None => None,
    };
    let text =
        if args.json { as_json(args, &layout) } else { as_text(args, &layout, push.as_ref().zip(sent)) };
    print(&text)
}

/// The time of all files.
fn time(variable: Option<&str>) -> Result<u64> {
    match variable.filter(|text| !text.is_empty()) {
        None => Ok(0),
        Some(text) => match text.parse() {
            Ok(time) => Ok(time),
            Err(_) => bail!("SOURCE_DATE_EPOCH is {text:?}; expected seconds since 1970"),
        },
    }
}

/// What would be in the image, a path a line.
fn contents(system: &[String], files: Option<&Entries>, as_json: bool) -> Result<String> {
    let files = files.into_iter().flat_map(Entries::iter);
    let files: Vec<(&str, usize)> =
        files.filter_map(|(path, entry)| Some((path, entry.content.as_ref()?.len()))).collect();
    if as_json {
        let listed: Vec<_> =
            files.iter().map(|(path, size)| json!({"path": format!("/{path}"), "size": size})).collect();
        let system: Vec<String> = system.iter().map(|path| format!("/{path}")).collect();
        return Ok(format!("{}\n", escaped_json(json!({"system": system, "project": listed}).to_string())));
    }
    let mut text = String::new();
    for path in system {
        writeln!(text, "{:>10}  /{path}", "")?;
    }
    for (path, size) in files {
        writeln!(text, "{size:>10}  /{}", visible(path))?;
    }
    Ok(text)
}

fn as_text(args: &ImageArgs, layout: &Layout, pushed: Option<(&ImageReference, usize)>) -> String {
    let mut lines = vec![format!("digest    {}", layout.digest())];
    for image in &layout.images {
        let size: usize = image.layers.iter().map(|layer| layer.bytes.len()).sum();
        let megabytes = size as f64 / 1e6;
        lines.push(format!(
            "linux/{:<6}{} layers, {megabytes:.1} MB",
            image.architecture,
            image.layers.len()
        ));
    }
    if let Some(path) = &args.output {
        lines.push(format!("written   {}", visible(&path.display().to_string())));
    }
    if let Some((name, sent)) = pushed {
        let new = if sent == 1 { "1 blob was new".to_owned() } else { format!("{sent} blobs were new") };
        lines.push(format!("pushed    {} ({new})", name.tagged()));
        if !args.without_project {
            lines.push(format!("next      opdev deploy --image {}", name.tagged()));
        }
    }
    lines.join("\n") + "\n"
}

fn as_json(args: &ImageArgs, layout: &Layout) -> String {
    let images: Vec<_> = layout
        .images
        .iter()
        .map(|image| {
            let layers: Vec<_> = image
                .layers
                .iter()
                .map(|layer| json!({"digest": layer.digest, "diffId": layer.diff_id, "size": layer.bytes.len()}))
                .collect();
            json!({"platform": format!("linux/{}", image.architecture), "digest": image.manifest.0,
                "config": image.config.0, "layers": layers})
        })
        .collect();
    let value =
        json!({"digest": layout.digest(), "images": images, "output": args.output, "pushed": args.push});
    format!("{}\n", escaped_json(value.to_string()))
}

fn print(text: &str) -> Result<()> {
    super::visible::out().write_all(text.as_bytes()).context("the result cannot be printed")
}
