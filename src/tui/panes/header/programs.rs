//! The operator's own programs in the header: the newest save, from the build to the start, and the level of
//! trace.

use super::saves::Save;
use crate::theme::Role;
use jiff::Timestamp;
use opdev_event::{BuildChanged, BuildState, ProcessState, TraceLevel, words};
use opdev_state::{Program, State};
use std::time::Duration;

/// The state of the newest save of the programs' own files; `None` where other files are what matters now. Of
/// several programs the one that needs the user most is told of.
pub fn newest_save(state: &State, now: Timestamp) -> Option<Save> {
    if state.reload.failed.is_some() {
        return None;
    }
    let program =
        state.programs.iter().filter(|program| program.run.is_some()).max_by_key(|program| need(program))?;
    line(program, state, now)
}

/// The need of a program for the user, and since when.
fn need(program: &Program) -> (u8, Option<Timestamp>) {
    let build = program.build.as_ref();
    let run = program.run.as_ref();
    let rank = match (build.map(|build| &build.state), run.map(|run| &run.state)) {
        (Some(BuildState::Broken { .. }), _) => 5,
        (_, Some(ProcessState::Failed { .. } | ProcessState::Restarting { .. })) => 4,
        (_, Some(ProcessState::Running { .. })) if run.is_some_and(|run| run.breakpoint.is_some()) => 4,
        (Some(BuildState::Building), _) => 3,
        (_, Some(ProcessState::Waiting { .. })) => 2,
        (_, Some(ProcessState::Running { files, .. })) if !files.is_empty() => 1,
        (_, Some(ProcessState::Running { .. } | ProcessState::Ended { .. }) | None) => 0,
    };
    (rank, run.map(|run| run.at).max(build.map(|build| build.at)))
}

fn line(program: &Program, state: &State, now: Timestamp) -> Option<Save> {
    let run = program.run.as_ref()?;
    if let Some(save) = program.build.as_ref().and_then(|build| building(program, build, now)) {
        return Some(save);
    }
    let starts = match run.starts {
        0 | 1 => String::new(),
        starts => format!(" · start {starts}"),
    };
    // `go ./cmd` is the operator of the project, and `./cmd` is where its program lies.
    let place = run.program.rsplit(' ').next().unwrap_or(&run.program);
    let saved_since = |at: Timestamp| {
        let live = state.reload.live.as_ref();
        live.is_some_and(|live| live.at > at && !live.files.is_empty())
    };
    let told =
        |role, text: String, short: String| Some(Save::new(role, [format!("{text}{starts}"), text, short]));
    if let Some(place) = &run.breakpoint {
        let short = words::file_name(&place.to_string()).to_owned();
        let text = format!("⚠ operator stands at a breakpoint, {short}");
        return Some(Save::new(
            Role::Changed,
            [text, format!("⚠ at {short}"), "⚠ at a breakpoint".to_owned()],
        ));
    }
    match &run.state {
        ProcessState::Waiting { why } => {
            told(Role::Busy, format!("◐ operator ({place}) waits for {why}"), format!("◐ waits for {why}"))
        }
        ProcessState::Running { files, .. } if files.is_empty() => {
            // Files saved since belong to charts and types.
            let saved = state.reload.live.as_ref().is_some_and(|live| !live.files.is_empty());
            let text = format!("✓ operator runs ({place})");
            if saved { None } else { told(Role::Good, text, "✓ operator runs".to_owned()) }
        }
        ProcessState::Running { .. } if saved_since(run.at) => None,
        ProcessState::Running { files, since_save, .. } => {
            let (files, took) = (words::files(files), words::took(*since_save));
            let built = match program.build.as_ref().map(|build| &build.state) {
                Some(BuildState::Built { took: built }) => {
                    format!("✓ {files} built in {} → live in {took}{starts}", words::took(*built))
                }
                Some(BuildState::Building | BuildState::Broken { .. }) | None => {
                    format!("✓ {files} live in {took}{starts}")
                }
            };
            let short = format!("✓ {files} live in {took}");
            Some(Save::new(
                Role::Good,
                [built, short, format!("✓ saved, live in {took}"), "✓ live".to_owned()],
            ))
        }
        ProcessState::Restarting { exit, after } => {
            let past = Duration::try_from(now.duration_since(run.at)).unwrap_or_default();
            let left = after.saturating_sub(past).as_secs_f32().ceil();
            let text = format!("✗ operator ({place}) stopped ({}), starts in {left} s", exit.status);
            told(Role::Bad, text, format!("✗ operator stopped, starts in {left} s")).map(Save::counting)
        }
        ProcessState::Failed { exit } => {
            let text = format!("✗ operator ({place}) does not run ({})", exit.status);
            told(Role::Bad, text, "✗ operator does not run".to_owned())
        }
        ProcessState::Ended { .. } => {
            told(Role::Changed, format!("⚠ operator ({place}) has ended"), "⚠ operator has ended".to_owned())
        }
    }
}

/// The text of a build that is under way or broken.
fn building(program: &Program, build: &BuildChanged, now: Timestamp) -> Option<Save> {
    match &build.state {
        BuildState::Building => {
            let since = Duration::try_from(now.duration_since(build.at)).unwrap_or_default().as_secs();
            let files = words::files(&build.files);
            let long = match build.files.is_empty() {
                true => format!("↻ {} {since} s", build.build),
                false => format!("↻ {files}: {} {since} s", build.build),
            };
            Some(Save::new(Role::Busy, [long, format!("↻ building {since} s")]).counting())
        }
        BuildState::Broken { .. } => {
            let failed = program.build_failed.as_ref();
            let place =
                failed.and_then(|failed| failed.diagnostics.iter().find_map(|one| one.place.as_ref()));
            let what = place
                .map_or_else(|| build.build.clone(), |place| words::file_name(&place.to_string()).to_owned());
            Some(Save::new(Role::Bad, [format!("✗ {what}"), "✗ broken".to_owned()]))
        }
        BuildState::Built { .. } => None,
    }
}

/// The program that runs while a build is broken.
pub fn goes_on(program: &Program) -> String {
    match program.run.as_ref().map(|run| &run.state) {
        Some(ProcessState::Running { .. }) => "The last working program keeps running.".to_owned(),
        Some(_) | None => "No program runs until then.".to_owned(),
    }
}

/// The level of trace of the programs that run, where not everything is seen.
pub fn traced(state: &State) -> Option<String> {
    let running = state.programs.runs().filter(|run| matches!(run.state, ProcessState::Running { .. }));
    let mut levels: Vec<_> = running.map(|run| run.traced).collect();
    levels.dedup();
    if levels.iter().all(|level| *level == Some(TraceLevel::Full)) {
        return None;
    }
    let levels: Vec<&str> = levels.into_iter().map(words::traced).collect();
    Some(format!("traced: {}", levels.join(", ")))
}
