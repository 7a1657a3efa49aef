//! `opdev dependency`: downloads the charts that a chart depends on, as `helm dependency` does.

use super::far::AccessArgs;
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use opdev_event::words::visible;
use opdev_pull::{Dependencies, Homes};
use opdev_requests::chart_dependencies;
use std::io::Write as _;
use std::path::PathBuf;

/// Download the charts that a chart depends on
#[derive(Debug, Args)]
pub(super) struct DependencyArgs {
    #[command(subcommand)]
    what: Dependency,
}

#[derive(Debug, Subcommand)]
enum Dependency {
    /// Find the newest versions that Chart.yaml allows, download them into charts/ and write Chart.lock
    #[command(visible_alias = "up")]
    Update(DownloadArgs),
    /// Download the versions of Chart.lock into charts/; without a lock, update
    Build(DownloadArgs),
    /// Print the dependencies and whether they lie in charts/
    #[command(visible_alias = "ls")]
    List(ListArgs),
}

#[derive(Debug, Args)]
struct DownloadArgs {
    /// The chart's folder
    #[arg(value_name = "CHART", default_value = ".")]
    chart: PathBuf,
    /// Use the indexes that `helm repo update` has downloaded
    #[arg(long)]
    skip_refresh: bool,
    #[command(flatten)]
    access: AccessArgs,
}

#[derive(Debug, Args)]
struct ListArgs {
    /// The chart's folder or archive
    #[arg(value_name = "CHART", default_value = ".")]
    chart: PathBuf,
}

/// Runs the command.
pub(super) fn run(args: &DependencyArgs) -> Result<()> {
    match &args.what {
        Dependency::Update(args) => download(args, &|charts| charts.update()),
        Dependency::Build(args) => download(args, &|charts| charts.build()),
        Dependency::List(args) => {
            let text = opdev_pull::list(&args.chart)?;
            let shown: Vec<_> = text.split('\t').map(visible).collect();
            super::visible::out()
                .write_all(shown.join("\t").as_bytes())
                .context("the result cannot be printed")
        }
    }
}

type Task<'t> = &'t dyn Fn(&mut Dependencies<'_>) -> Result<opdev_pull::Plan>;

fn download(args: &DownloadArgs, task: Task<'_>) -> Result<()> {
    let (homes, access) = (Homes::from_environment(), args.access.access()?);
    let mut say = |line: &str| {
        // Whoever does not read the progress wants the charts all the same.
        let _ = writeln!(super::visible::out(), "{}", visible(line));
    };
    let mut dependencies = Dependencies {
        chart: &args.chart,
        homes: &homes,
        access: &access,
        refresh: !args.skip_refresh,
        say: &mut say,
    };
    let plan = task(&mut dependencies)?;
    chart_dependencies::write(&args.chart, &plan)
}
