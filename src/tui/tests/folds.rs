//! Rows of reconciles that stand for several.

use super::fixture;
use opdev_event::Failure;
use opdev_event::{Cause, CauseKind, Outcome, Reconcile};
use opdev_panes::folds::reconcile_rows;
use opdev_state::findings::Findings;
use std::sync::Arc;

fn failed(id: u64, name: &str, retry: bool, text: &str) -> Arc<Reconcile> {
    let kind = match retry {
        true => CauseKind::Retry { attempt: 1, error: text.to_owned() },
        false => CauseKind::Period,
    };
    let causes = vec![Cause { at: fixture::now(), kind }];
    let mut reconcile = fixture::reconcile(id, name, "17:00:00", causes, Outcome::Failed, 1);
    reconcile.failure = Some(Failure { chain: vec![text.to_owned()], diagnostic: None, attempt: 1 });
    Arc::new(reconcile)
}

#[test]
fn retries_of_one_failure_are_one_row_until_one_of_them_is_opened() {
    let reconciles = [
        failed(8, "a", true, "no"),
        failed(7, "b", true, "no"),
        failed(6, "a", true, "no"),
        failed(5, "a", true, "other"),
        failed(4, "a", false, "other"),
        failed(3, "a", true, "other"),
    ];
    let rows = |open: &[u64]| {
        let rows = reconcile_rows(&reconciles, &open.iter().copied().collect(), &Findings::default());
        let heads = rows.iter().filter(|row| row.line.is_none());
        heads.map(|row| (reconciles[row.reconcile].id, row.times, row.oldest)).collect::<Vec<_>>()
    };
    assert_eq!(rows(&[]), [(8, 2, 6), (7, 1, 7), (5, 2, 4), (3, 1, 3)]);
    assert_eq!(rows(&[6]), [(8, 1, 8), (7, 1, 7), (6, 1, 6), (5, 2, 4), (3, 1, 3)]);
}
