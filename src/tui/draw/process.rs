//! The operator's own program in the header: the newest save, from the build to the start, and the level of trace.

use super::super::theme::Role;
use super::super::view::ViewState;
use crate::event::{BuildState, ProcessState, TraceLevel, words};
use crate::state::State;
use jiff::Timestamp;
use std::time::Duration;

/// How far the newest save of the program's own files is; `None` where other files are what matters now.
pub(super) fn newest_save(state: &State, view: &mut ViewState, now: Timestamp) -> Option<(Role, String)> {
    if state.reload.failed.is_some() {
        return None;
    }
    let run = state.process.run.as_ref()?;
    if let Some(build) = &state.process.build {
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
                let failed = state.reload.build_failed.as_ref();
                let place =
                    failed.and_then(|failed| failed.diagnostics.iter().find_map(|one| one.place.as_ref()));
                let what = place.map_or_else(
                    || build.build.clone(),
                    |place| words::file_name(&place.to_string()).to_owned(),
                );
                return Some((Role::Bad, format!("✗ {what} · {}", goes_on(state))));
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
            let built = match state.process.build.as_ref().map(|build| &build.state) {
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
pub(super) fn goes_on(state: &State) -> String {
    let run = state.process.run.as_ref();
    match run.map(|run| (&run.state, run.at)) {
        Some((ProcessState::Running { .. }, _)) => "the last good program runs".to_owned(),
        Some(_) | None => "no program runs".to_owned(),
    }
}

/// How much is seen of the program's reconciles, where that is not everything.
pub(super) fn traced(state: &State) -> String {
    match state.process.run.as_ref() {
        Some(run) if matches!(run.state, ProcessState::Running { .. }) => match run.traced {
            Some(TraceLevel::Full) => String::new(),
            level @ (Some(TraceLevel::Log | TraceLevel::Wire) | None) => {
                format!(" · traced: {}", words::traced(level))
            }
        },
        Some(_) | None => String::new(),
    }
}
