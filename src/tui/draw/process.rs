//! The operator's own programs in the header: the newest save, from the build to the start, and the level of trace.

use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{BuildState, ProcessState, TraceLevel, words};
use crate::state::{Program, State};
use jiff::Timestamp;
use std::time::Duration;

/// How far the newest save of the programs' own files is; `None` where other files are what matters now. Of several programs
/// the one that needs the user most is told of.
pub(super) fn newest_save(state: &State, view: &mut ViewState, now: Timestamp) -> Option<(Role, String)> {
    if state.reload.failed.is_some() {
        return None;
    }
    let program =
        state.programs.iter().filter(|program| program.run.is_some()).max_by_key(|program| need(program))?;
    line(program, state, view, now)
}

/// How much a program needs the user, and since when.
fn need(program: &Program) -> (u8, Option<Timestamp>) {
    let build = program.build.as_ref();
    let run = program.run.as_ref();
    let rank = match (build.map(|build| &build.state), run.map(|run| &run.state)) {
        (Some(BuildState::Broken { .. }), _) => 5,
        (_, Some(ProcessState::Failed { .. } | ProcessState::Restarting { .. })) => 4,
        (Some(BuildState::Building), _) => 3,
        (_, Some(ProcessState::Waiting { .. })) => 2,
        (_, Some(ProcessState::Running { files, .. })) if !files.is_empty() => 1,
        (_, Some(ProcessState::Running { .. } | ProcessState::Ended { .. }) | None) => 0,
    };
    (rank, run.map(|run| run.at).max(build.map(|build| build.at)))
}

fn line(program: &Program, state: &State, view: &mut ViewState, now: Timestamp) -> Option<(Role, String)> {
    let run = program.run.as_ref()?;
    if let Some(build) = &program.build {
        let files = if build.files.is_empty() {
            String::new()
        } else {
            format!("{} saved → ", words::files(&build.files))
        };
        match &build.state {
            BuildState::Building => {
                view.wake_in(Duration::from_secs(1));
                let since = Duration::try_from(now.duration_since(build.at)).unwrap_or_default();
                return Some((Role::Busy, format!("{files}{} {} s", build.build, since.as_secs())));
            }
            BuildState::Broken { .. } => {
                let failed = program.build_failed.as_ref();
                let place =
                    failed.and_then(|failed| failed.diagnostics.iter().find_map(|one| one.place.as_ref()));
                let what = place.map_or_else(
                    || build.build.clone(),
                    |place| words::file_name(&place.to_string()).to_owned(),
                );
                return Some((Role::Bad, format!("✗ {what} · {}", goes_on(program))));
            }
            BuildState::Built { .. } => {}
        }
    }
    let starts = match run.starts {
        0 | 1 => String::new(),
        starts => format!(" · start {starts}"),
    };
    Some(match &run.state {
        ProcessState::Waiting { why } => (Role::Busy, format!("{} waits for {why}", run.program)),
        ProcessState::Running { files, .. } if files.is_empty() => {
            // What was saved since belongs to charts and types.
            let saved = state.reload.live.as_ref().is_some_and(|live| !live.files.is_empty());
            if saved {
                return None;
            }
            (Role::Dim, format!("{} runs{starts}", run.program))
        }
        ProcessState::Running { files, since_save, .. } => {
            let newer =
                state.reload.live.as_ref().is_some_and(|live| live.at > run.at && !live.files.is_empty());
            if newer {
                return None;
            }
            let built = match program.build.as_ref().map(|build| &build.state) {
                Some(BuildState::Built { took }) => format!("build {} ◂ ", words::took(*took)),
                Some(BuildState::Building | BuildState::Broken { .. }) | None => String::new(),
            };
            let files = words::files(files);
            (Role::Good, format!("{built}{files} saved → started in {}{starts}", words::took(*since_save)))
        }
        ProcessState::Restarting { exit, .. } => {
            view.wake_in(Duration::from_secs(1));
            let past = Duration::try_from(now.duration_since(run.at)).unwrap_or_default();
            let left = match &run.state {
                ProcessState::Restarting { after, .. } => after.saturating_sub(past).as_secs_f32().ceil(),
                ProcessState::Waiting { .. }
                | ProcessState::Running { .. }
                | ProcessState::Failed { .. }
                | ProcessState::Ended { .. } => 0.0,
            };
            (Role::Bad, format!("✗ {} stopped ({}), starts in {left} s{starts}", run.program, exit.status))
        }
        ProcessState::Failed { exit } => {
            (Role::Bad, format!("✗ {} does not run ({})", run.program, exit.status))
        }
        ProcessState::Ended { .. } => (Role::Changed, format!("{} has ended", run.program)),
    })
}

/// What runs while a build is broken.
pub(super) fn goes_on(program: &Program) -> String {
    match program.run.as_ref().map(|run| &run.state) {
        Some(ProcessState::Running { .. }) => "the last good program runs".to_owned(),
        Some(_) | None => "no program runs".to_owned(),
    }
}

/// How much is seen of the reconciles of the programs that run, where that is not everything.
pub(super) fn traced(state: &State) -> String {
    let running = state.programs.runs().filter(|run| matches!(run.state, ProcessState::Running { .. }));
    let mut levels: Vec<_> = running.map(|run| run.traced).collect();
    levels.dedup();
    if levels.iter().all(|level| *level == Some(TraceLevel::Full)) {
        return String::new();
    }
    let levels: Vec<&str> = levels.into_iter().map(words::traced).collect();
    format!(" · traced: {}", levels.join(", "))
}
