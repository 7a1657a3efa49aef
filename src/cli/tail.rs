//! `opdev tail`: follows `.opdev/events.jsonl` of a running opdev from a second terminal, and ends with that
//! run; or shows a recording.

use super::arguments::JsonForm;
use crate::print;
use anyhow::{Context as _, Result, bail};
use opdev_event::{Event, words};
use opdev_os::lock::Lock;
use opdev_os::private_folder::PrivateFolder;
use opdev_os::state_path::state_path;
use opdev_project::Project;
use opdev_project::journal;
use std::io::Write as _;
use std::path::PathBuf;

/// What `opdev tail` takes.
#[derive(Debug, clap::Args)]
pub(super) struct TailArgs {
    /// The project's folder instead of the nearest one above the working directory
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Show this recording, such as one of `opdev ci --record`, and end: a file of events, or the folder that
    /// holds it
    #[arg(long, value_name = "FILE", conflicts_with = "project")]
    file: Option<PathBuf>,
    /// Print the events as they are, one JSON object a line; `--json=compact` leaves whole objects out
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "whole")]
    json: Option<JsonForm>,
    /// Stop at the end of the file instead of waiting for more
    #[arg(long)]
    no_follow: bool,
}

/// Follows until the run ends, or until the reader of the output goes away. Where none runs it says so, and
/// waits for one.
pub(super) fn run(args: &TailArgs) -> Result<()> {
    if let Some(named) = &args.file {
        let path = if named.is_dir() { named.join(journal::FILE) } else { named.clone() };
        return journal::follow(&path, false, printing(args.json), || false);
    }
    let from = std::env::current_dir().context("the working directory cannot be read")?;
    let project = Project::discover(args.project.as_deref(), &from)?;
    let path = state_path(&project.root).join(journal::FILE);
    if !path.exists() {
        bail!(
            "{} does not exist: no opdev has run in this project yet; start one with `opdev run`",
            path.display()
        );
    }
    let folder = path.parent().map(PrivateFolder::open).transpose()?.flatten();
    let mut waiting = Waiting::default();
    journal::follow(&path, !args.no_follow, printing(args.json), || waiting.goes_on(folder.as_ref()))
}

/// Prints one line of a file of events; false once nobody reads what is printed.
fn printing(form: Option<JsonForm>) -> impl FnMut(&str) -> bool {
    let mut out = super::visible::out();
    let mut plain = print::Lines::default();
    move |line: &str| {
        let event = || serde_json::from_str::<Event>(line).ok();
        // Whoever wrote the file may not have been opdev.
        let as_it_is = || Some(words::escaped_json(line.to_owned()));
        let shown = match form {
            Some(JsonForm::Whole) => as_it_is(),
            Some(JsonForm::Compact) => event().map_or_else(as_it_is, |event| Some(print::compact(&event))),
            None => event().and_then(|event| plain.line(&event)),
        };
        shown.is_none_or(|text| writeln!(out, "{text}").and_then(|()| out.flush()).is_ok())
    }
}

/// What is known of the run while nothing comes.
#[derive(Default)]
struct Waiting {
    /// True if a run was seen.
    ran: bool,
    /// True if it was said that there is none.
    said: bool,
}

impl Waiting {
    /// Returns true if there is still something to wait for; says what it waits for.
    fn goes_on(&mut self, folder: Option<&PrivateFolder>) -> bool {
        // A process that cannot be asked may run.
        let runs =
            folder.is_none_or(|folder| Lock::holder(folder, "lock").map_or(true, |held| held.is_some()));
        match (runs, self.ran) {
            (true, _) => self.ran = true,
            (false, true) => {
                super::say("The run has ended.");
                return false;
            }
            (false, false) if !self.said => {
                super::say("No opdev runs in this project now. Waiting for the next run; ctrl-c ends.");
                self.said = true;
            }
            (false, false) => {}
        }
        true
    }
}
