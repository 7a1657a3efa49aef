//! `opdev tail`: follows `.opdev/events.jsonl` of a running opdev from a second terminal.

use crate::dev::journal;
use crate::dev::project::Project;
use crate::event::{Event, words};
use crate::print;
use anyhow::{Context as _, Result, bail};
use std::io::Write as _;
use std::path::PathBuf;

/// What `opdev tail` takes.
#[derive(Debug, clap::Args)]
pub(super) struct TailArgs {
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print the events as they are, one JSON object a line
    #[arg(long)]
    json: bool,
    /// Stop at the end of the file instead of waiting for more
    #[arg(long)]
    no_follow: bool,
}

/// Follows until interrupted, or until the reader of the output goes away.
pub(super) fn run(args: &TailArgs) -> Result<()> {
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(args.project.as_deref(), &from)?;
    let path = project.root.join(".opdev").join(journal::FILE);
    if !path.exists() {
        bail!(
            "{} does not exist: no opdev has run in this project yet; start one with `opdev run`",
            path.display()
        );
    }
    let mut out = std::io::stdout().lock();
    journal::follow(&path, !args.no_follow, |line| {
        let shown = if args.json {
            // Whoever wrote the file may not have been opdev.
            Some(words::escaped_json(line.to_owned()))
        } else {
            serde_json::from_str::<Event>(line).ok().and_then(|event| print::plain(&event))
        };
        shown.is_none_or(|text| writeln!(out, "{text}").and_then(|()| out.flush()).is_ok())
    })
}
