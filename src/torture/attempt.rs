//! One plan: run once, and where it ends otherwise than undisturbed, twice more with more patience. Plans are
//! tried beside one another, their further runs, too.

use super::campaign::{Known, once};
use super::input::TortureInput;
use super::judge::Difference;
use super::plan::{Class, Disturbance};
use super::run::Ran;
use super::scenario::Scenario;
use super::subject::Prepared;
use anyhow::Result;
use std::sync::Arc;

/// Runs of a plan whose first one ended otherwise.
const AGAIN: u32 = 2;

/// The end of a plan.
pub(super) struct Attempt {
    pub(super) ran: Ran,
    pub(super) differences: Vec<Difference>,
    /// The runs with one of the differences, of all.
    pub(super) times: (u32, u32),
}

impl Attempt {
    /// Returns true if it ended as undisturbed runs do, or was not disturbed at all.
    pub(super) fn is_quiet(&self) -> bool {
        self.differences.is_empty() || !self.ran.met
    }

    /// Returns true if what was different never came again.
    pub(super) fn is_flaky(&self) -> bool {
        self.times == (1, 1 + AGAIN)
    }
}

/// The undisturbed runs that a plan is compared with.
pub(super) struct Bench<'a> {
    pub(super) input: &'a TortureInput,
    pub(super) prepared: &'a Arc<Prepared>,
    pub(super) scenario: &'a Arc<Scenario>,
    pub(super) known: &'a Known,
    pub(super) steps: &'a [String],
}

impl Bench<'_> {
    /// Tries a plan.
    ///
    /// # Errors
    /// Where its first run cannot be made.
    pub(super) async fn attempt(&self, disturbance: &Disturbance) -> Result<Attempt> {
        let Bench { input, known, .. } = self;
        let once = |window| {
            let wanted = Some(disturbance.clone());
            once(input, self.prepared, self.scenario, wanted, (input.seed, window))
        };
        let ran = once(known.window).await?;
        let differences = self.judge(&ran, disturbance);
        let mut attempt = Attempt { ran, differences, times: (1, 1) };
        for _ in 0..AGAIN {
            if attempt.is_quiet() || input.shutdown.is_cancelled() {
                break;
            }
            // It may have been about to go on.
            let again = once(known.patient()).await;
            attempt.times.1 += 1;
            let same = again.is_ok_and(|ran| {
                let again = self.judge(&ran, disturbance);
                ran.met && attempt.differences.iter().any(|one| again.contains(one))
            });
            attempt.times.0 += u32::from(same);
        }
        Ok(attempt)
    }

    fn judge(&self, ran: &Ran, disturbance: &Disturbance) -> Vec<Difference> {
        let (class, from): (Class, usize) = (disturbance.class(), disturbance.effective_from());
        self.known.learned.judge(&ran.outcome, class, (self.steps, from), &self.input.ignored)
    }
}
