//! How long a program has to be quiet to be settled. What undisturbed runs were silent for before they went
//! on says it, for each step by itself: an operator that looks again after five seconds while it deletes
//! does so in no other step. Once it has been disturbed, each of its silences may be any of them.

use std::time::Duration;

/// How long a program has to be quiet in the first run.
pub const FIRST_WINDOW: Duration = Duration::from_millis(1500);
/// The first window of a program that tells nothing of its reconciles. Many look again after five seconds,
/// and go on only then.
const UNTOLD: Duration = Duration::from_millis(6500);
/// The shortest and the longest time for that in all others.
const WINDOWS: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(9));
/// The shortest one of a step, for the same program: its machine may be busy with other runs.
const STEP: Duration = Duration::from_secs(1);
/// The shortest one for a program that tells of its reconciles: while one is under way or comes soon, it is
/// not quiet.
const TOLD: Duration = Duration::from_millis(150);
/// A program is given more time where it ended otherwise: it may have been about to go on.
const PATIENT: (u32, Duration) = (3, Duration::from_secs(2));

/// More than half a minute, by which many programs look at everything again.
const LINGER: Duration = Duration::from_secs(40);

/// The window where something is tried again.
pub fn patient(window: Duration) -> Duration {
    (window * PATIENT.0).clamp(PATIENT.1, WINDOWS.1)
}

/// The window of a first run, at least this one.
pub fn first(window: Duration, tells: bool) -> Duration {
    if tells { window } else { window.max(UNTOLD) }
}

/// The window after a silence.
pub fn after(window: Duration, gap: Duration) -> Duration {
    window.max(gap * 3 / 2).min(WINDOWS.1)
}

/// How long a program has to be quiet, by the longest silences of undisturbed runs.
pub fn learned_window(tells: bool, gaps: impl Iterator<Item = Duration>) -> Duration {
    learned(if tells { TOLD } else { WINDOWS.0 }, gaps)
}

fn learned(least: Duration, gaps: impl Iterator<Item = Duration>) -> Duration {
    (gaps.max().unwrap_or_default() * 3 / 2).clamp(least, WINDOWS.1)
}

/// The windows of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Windows {
    all: Duration,
    /// By the number of the step, while nothing has been disturbed; none where all are alike.
    steps: Vec<Duration>,
    /// How long the end of the last step is given beside that.
    linger: Duration,
}

impl From<Duration> for Windows {
    fn from(all: Duration) -> Windows {
        Windows { all, steps: Vec::new(), linger: Duration::ZERO }
    }
}

impl Windows {
    /// From the silences of undisturbed runs, each by the number of its step.
    pub fn learned(tells: bool, runs: &[&[Duration]]) -> Windows {
        let all = learned_window(tells, runs.iter().copied().flatten().copied());
        let least = if tells { TOLD } else { STEP };
        let count = runs.iter().map(|gaps| gaps.len()).max().unwrap_or_default();
        let of = |step: usize| {
            let gaps = runs.iter().filter_map(|gaps| gaps.get(step).copied());
            learned(least, gaps).min(all)
        };
        Windows { all, steps: (0..count).map(of).collect(), linger: Duration::ZERO }
    }

    /// With time for a program that looks at everything once in half a minute: a late status is not wrong.
    pub fn lingering(self) -> Windows {
        Windows { linger: LINGER, ..self }
    }

    /// How long the end of the last step is given beside its window.
    pub fn linger(&self) -> Duration {
        self.linger
    }

    /// The longest one.
    pub fn longest(&self) -> Duration {
        self.all
    }

    /// The one of a step; before the first step the sample is made for somebody else, which takes as long.
    pub fn at(&self, step: Option<usize>, disturbed: bool) -> Duration {
        let of_step = self.steps.get(step.unwrap_or(0)).filter(|_| !disturbed);
        of_step.copied().unwrap_or(self.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn each_step_has_the_window_of_its_own_silences_until_something_is_disturbed() {
        let (one, other) = ([ms(100), ms(3200), ms(0)], [ms(900), ms(2000), ms(10)]);
        let windows = Windows::learned(false, &[&one, &other]);
        assert_eq!(windows.longest(), ms(4800));
        let at = |step, disturbed| windows.at(step, disturbed);
        assert_eq!([at(None, false), at(Some(0), false)], [ms(1350); 2]);
        assert_eq!([at(Some(1), false), at(Some(2), false)], [ms(4800), STEP]);
        assert_eq!([at(Some(2), true), at(Some(7), false)], [ms(4800); 2]);
        assert_eq!(Windows::from(ms(20)).at(Some(1), false), ms(20));
        assert_eq!([Windows::from(ms(20)).linger(), windows.lingering().linger()], [Duration::ZERO, LINGER]);
    }

    #[test]
    fn a_program_that_tells_is_known_to_be_quiet_sooner() {
        let quiet = [ms(10)];
        assert_eq!(Windows::learned(true, &[&quiet]).at(Some(0), false), TOLD);
        // No step is waited for longer than all of them together say.
        assert_eq!(Windows::learned(false, &[&quiet]).at(Some(0), false), WINDOWS.0);
        assert_eq!((first(ms(10), true), first(ms(10), false)), (ms(10), UNTOLD));
        assert_eq!((after(ms(10), ms(40)), patient(ms(5000))), (ms(60), WINDOWS.1));
    }
}
