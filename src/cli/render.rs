//! `opdev render`: what `helm template` prints, byte for byte. Starts no runtime, asks no cluster.

use super::far::AccessArgs;
use anyhow::{Context as _, Result, bail};
use opdev_event::words::visible;
use opdev_helm::chart::{Chart, FileSet, Unread, read_dir_late, unpack};
use opdev_helm::dependencies;
use opdev_helm::engine::{
    Capabilities, Compat, Environment, Fetch, FuncError, ParseCache, ReleaseInfo, RenderError, RenderInput,
    Rendered, render,
};
use opdev_helm::explain::{self, Layer};
use opdev_helm::{manifest, values};
use opdev_pull::{ChartRequest, Homes};
use opdev_release::settings::HelmCompat;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Render a chart and print the manifests, as `helm template` does
#[derive(Debug, clap::Args)]
pub struct RenderArgs {
    /// The release's name (default `release-name`) and the chart: a folder, an archive, `oci://host/path`, an
    /// address, or `repository/chart`
    #[arg(value_name = "[NAME] CHART", num_args = 1..=2, required = true)]
    pub names: Vec<String>,
    /// A file of values; may be given several times
    #[arg(short = 'f', long = "values", value_name = "FILE")]
    pub values: Vec<PathBuf>,
    /// Values as `a.b=1,c={x,y}`
    #[arg(long, value_name = "VALUES")]
    pub set: Vec<String>,
    /// Values that are text, whatever they look like
    #[arg(long, value_name = "VALUES")]
    pub set_string: Vec<String>,
    /// Values in JSON
    #[arg(long, value_name = "VALUES")]
    pub set_json: Vec<String>,
    /// Values that are the contents of files, as `key=path`
    #[arg(long, value_name = "VALUES")]
    pub set_file: Vec<String>,
    /// The release's namespace
    #[arg(short, long, default_value = "default")]
    pub namespace: String,
    /// The Kubernetes version that templates see
    #[arg(long, value_name = "VERSION")]
    pub kube_version: Option<String>,
    /// API versions that templates see beside the usual ones
    #[arg(short, long, value_name = "VERSIONS", value_delimiter = ',')]
    pub api_versions: Vec<String>,
    /// Whose behaviour: Helm 3 or Helm 4
    #[arg(long, value_name = "3|4|3.19|4.1", default_value = "3", value_parser = super::arguments::compat)]
    pub helm_compat: HelmCompat,
    /// Print the files of `crds/`, too
    #[arg(long)]
    pub include_crds: bool,
    /// Print only what comes from these templates, such as `templates/service.yaml`
    #[arg(short, long, value_name = "TEMPLATE")]
    pub show_only: Vec<String>,
    /// Set `.Release.IsUpgrade` instead of `.Release.IsInstall`
    #[arg(long)]
    pub is_upgrade: bool,
    /// Leave hooks out
    #[arg(long)]
    pub no_hooks: bool,
    /// Leave tests out
    #[arg(long)]
    pub skip_tests: bool,
    /// Do not check values against `values.schema.json`
    #[arg(long)]
    pub skip_schema_validation: bool,
    /// Fetch schemas that `values.schema.json` refers to by `https:` or `http:`, as Helm does
    #[arg(long)]
    pub fetch_schemas: bool,
    /// Print the effective values and where each comes from, instead of the manifests
    #[arg(long)]
    pub explain_values: bool,
    /// Print what was rendered even if it is no YAML
    #[arg(long)]
    pub debug: bool,
    /// The address of the chart repository that has the chart
    #[arg(long, value_name = "URL")]
    pub repo: Option<String>,
    /// The version of a chart that is downloaded, or a range; default: the newest release
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    #[command(flatten)]
    access: AccessArgs,
}

/// Runs the command.
pub fn run(args: &RenderArgs) -> ExitCode {
    match output(args) {
        Ok(text) => {
            let written = super::visible::machine().write_all(text.as_bytes());
            if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            let mut said = format!("Error: {error:#}\n");
            for hint in error.downcast_ref::<Refused>().iter().flat_map(|refused| &refused.hints) {
                let _ = writeln!(said, "hint: {hint}");
            }
            let _ = super::visible::err().write_all(visible(&said).as_bytes());
            ExitCode::FAILURE
        }
    }
}

fn output(args: &RenderArgs) -> Result<String> {
    let (name, path) = match args.names.as_slice() {
        [name, path] => (name.as_str(), path),
        [path] => ("release-name", path),
        _ => bail!("a chart is required"),
    };
    check_release_name(name)?;
    let compat: Compat = args.helm_compat.into();
    let (chart, unread) = load(args, path, compat)?;
    let (values, layers) = user_values(args, compat)?;
    if args.explain_values {
        return explained(&chart, &values, &layers, compat);
    }
    let mut capabilities = Capabilities::default_for(compat);
    if let Some(version) = &args.kube_version {
        capabilities = capabilities.with_kube_version(version, compat)?;
    }
    capabilities.api_versions.extend(args.api_versions.iter().cloned());
    let release = ReleaseInfo {
        is_install: !args.is_upgrade,
        is_upgrade: args.is_upgrade,
        ..ReleaseInfo::install(name, args.namespace.as_str())
    };
    let cache = Arc::<ParseCache>::default();
    let access = args.access.access()?;
    let fetch =
        move |url: &str| opdev_pull::download_schema(url, &access).map_err(|error| format!("{error:#}"));
    let fetch_schema = args.fetch_schemas.then(|| Arc::new(fetch) as Arc<Fetch>);
    let input = RenderInput {
        compat,
        cache: Some(Arc::clone(&cache)),
        parallel: true,
        skip_schema_validation: args.skip_schema_validation,
        fetch_schema,
        ..RenderInput::new(&values, release, &capabilities, &Offline)
    };
    let rendered = render(&chart, &input).map_err(|error| refused(args, error));
    whole(&unread)?;
    let mut rendered = rendered?;
    for warning in chart.warnings.iter().chain(&rendered.warnings) {
        let _ = writeln!(super::visible::err(), "{}", visible(warning));
    }
    let text = text(args, &mut rendered);
    whole(&unread)?;
    // The program ends here; what took a tenth of its time to build need not be taken apart.
    std::mem::forget((cache, chart, rendered));
    if args.show_only.is_empty() { Ok(text) } else { only(&text, &args.show_only) }
}

/// A chart that does not render: Helm's words, and what may help.
#[derive(Debug)]
struct Refused {
    message: String,
    hints: Vec<String>,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refused {}

fn refused(args: &RenderArgs, error: RenderError) -> Refused {
    let mut message = error.message.clone();
    if let Some(rendered) = error.rendered() {
        if args.debug {
            let _ = super::visible::machine().write_all(rendered.text.as_bytes());
        }
        message.push_str("\n\nUse --debug flag to render out invalid YAML");
    }
    Refused { message, hints: error.hints }
}

/// The effective values as text.
fn explained(chart: &Chart, user: &Value, layers: &[Layer], compat: Compat) -> Result<String> {
    let (explained, warnings) = explain::effective(chart, user, layers, compat)?;
    for warning in chart.warnings.iter().chain(&warnings) {
        let _ = writeln!(super::visible::err(), "{}", visible(warning));
    }
    Ok(explain::text(&explained))
}

fn check_release_name(name: &str) -> Result<()> {
    let label = |label: &str| {
        !label.starts_with('-')
            && !label.ends_with('-')
            && !label.is_empty()
            && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
    };
    if name.len() > 53 || !name.split('.').all(label) {
        bail!(
            "release name \"{name}\": invalid release name, must match regex ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
        );
    }
    Ok(())
}

/// A file that could not be read when a template or `--include-crds` asked for it is no reason to print
/// something else.
fn whole(unread: &Unread) -> Result<()> {
    unread.failed().map_or(Ok(()), |why| bail!("{why}"))
}

/// The files of the chart. A path that is there wins over a repository of that name, as in Helm.
fn files(args: &RenderArgs, reference: &str) -> Result<(FileSet, Unread)> {
    let path = Path::new(reference);
    if args.repo.is_none() {
        if path.exists() {
            return Ok(read_dir_late(path)?);
        }
        if !opdev_pull::is_far(reference) {
            bail!("path \"{}\" not found", path.display());
        }
    }
    let request = ChartRequest {
        reference: reference.to_owned(),
        repository: args.repo.clone().unwrap_or_default(),
        version: args.version.clone().unwrap_or_default().trim().to_owned(),
        access: args.access.access()?,
    };
    let found = opdev_pull::download(&request, &Homes::from_environment(), &mut super::far::warn)?;
    for note in &found.notes {
        let _ = writeln!(super::visible::err(), "{}", visible(note));
    }
    Ok((unpack(&found.archive)?, Unread::default()))
}

fn load(args: &RenderArgs, reference: &str, compat: Compat) -> Result<(Chart, Unread)> {
    let (files, unread) = files(args, reference)?;
    let chart = Chart::load_for(&files, compat).map_err(|error| {
        let at = error.place.map(|place| format!("{}:{}: ", place.file, place.line)).unwrap_or_default();
        let hints = error.hint.into_iter().map(|hint| at.clone() + &hint).collect();
        Refused { message: error.message, hints }
    })?;
    if chart.metadata.is_library() {
        bail!("library charts are not installable");
    }
    let missing = dependencies::missing(&chart);
    if !missing.is_empty() {
        bail!(
            "An error occurred while checking for chart dependencies. You may need to run `opdev dependency build` to fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: {}",
            missing.join(", ")
        );
    }
    Ok((chart, unread))
}

/// The values of the flags, and what each flag gives, from the weakest to the one that wins.
fn user_values(args: &RenderArgs, compat: Compat) -> Result<(Value, Vec<Layer>)> {
    let mut found = json!({});
    let mut layers = Vec::new();
    for path in &args.values {
        let data = if path.as_os_str() == "-" {
            std::io::read_to_string(std::io::stdin())?.into_bytes()
        } else {
            std::fs::read(path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => {
                    anyhow::anyhow!("open {}: no such file or directory", path.display())
                }
                _ => anyhow::anyhow!("open {}: {error}", path.display()),
            })?
        };
        let more = values::from_bytes(&data, compat)
            .with_context(|| format!("failed to parse {}", path.display()))?;
        if args.explain_values {
            layers.push(Layer {
                name: format!("-f {}", path.display()),
                values: more.clone(),
                text: Some(String::from_utf8_lossy(&data).into_owned()),
            });
        }
        values::merge(&mut found, more);
    }
    let mut set =
        |flag: &str, text: &str, read: &dyn Fn(&mut Value, &str) -> Result<(), values::SetError>| {
            let before = args.explain_values.then(|| found.clone());
            let read = read(&mut found, text);
            read.map_err(|error| anyhow::anyhow!("failed parsing --{flag} data: {error}"))?;
            if let Some(before) = before {
                let values = added(&before, &found).unwrap_or_default();
                layers.push(Layer { name: format!("--{flag} {text}"), values, text: None });
            }
            Ok::<_, anyhow::Error>(())
        };
    for text in &args.set_json {
        set("set-json", text, &values::parse_set_json)?;
    }
    for text in &args.set {
        set("set", text, &values::parse_set)?;
    }
    for text in &args.set_string {
        set("set-string", text, &values::parse_set_string)?;
    }
    for text in &args.set_file {
        set("set-file", text, &|into, text| {
            values::set::parse_with(into, text, &mut |path| {
                std::fs::read_to_string(path)
                    .map(Value::String)
                    .map_err(|_| format!("open {path}: no such file or directory").into())
            })
        })?;
    }
    Ok((found, layers))
}

/// What `after` has that `before` has not.
fn added(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let new = |(key, value): (&String, &Value)| {
                let more = before.get(key).map_or_else(|| Some(value.clone()), |old| added(old, value))?;
                Some((key.clone(), more))
            };
            let more: serde_json::Map<String, Value> = after.iter().filter_map(new).collect();
            (!more.is_empty()).then_some(Value::Object(more))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}

/// The manifest, which is taken, and the hooks.
fn text(args: &RenderArgs, rendered: &mut Rendered) -> String {
    let mut text = std::mem::take(&mut rendered.manifest);
    if args.include_crds {
        let mut all = String::new();
        for crd in rendered.chart.crds() {
            let _ = write!(all, "---\n# Source: {}\n{}\n", crd.path, crd.content);
        }
        text.insert_str(0, &all);
    }
    text.truncate(text.trim_end().len());
    text.drain(..text.len() - text.trim_start().len());
    text.push('\n');
    if args.no_hooks {
        return text;
    }
    for hook in &rendered.hooks {
        let test = hook.events.contains(&manifest::HookEvent::Test);
        if !(args.skip_tests && test) {
            let _ = write!(text, "---\n# Source: {}\n{}\n", hook.path, hook.manifest);
        }
    }
    text
}

/// The documents that come from some templates, in the order they were asked for.
fn only(text: &str, wanted: &[String]) -> Result<String> {
    let documents: Vec<(&str, &str)> = manifest::split(text)
        .into_iter()
        .filter_map(|(_, document)| {
            let source = document.lines().find_map(|line| line.split_once("# Source: "))?.1;
            Some((source.split_once('/')?.1, document))
        })
        .collect();
    let mut found = String::new();
    for pattern in wanted {
        let mut missing = true;
        for (path, document) in &documents {
            if opdev_helm::chart::path_matches(pattern, path) {
                let _ = write!(found, "---\n{document}\n");
                missing = false;
            }
        }
        if missing {
            bail!("could not find template {pattern} in chart");
        }
    }
    Ok(found)
}

/// The world of a render without a cluster.
struct Offline;

impl Environment for Offline {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }

    fn zone(&self) -> jiff::tz::TimeZone {
        jiff::tz::TimeZone::system()
    }

    fn random(&self, buffer: &mut [u8]) {
        // Without a random source nothing secret may be made up.
        getrandom::fill(buffer).expect("the system's random source");
    }

    fn lookup(&self, _version: &str, _kind: &str, _namespace: &str, _name: &str) -> Result<Value, FuncError> {
        Ok(json!({}))
    }
}
