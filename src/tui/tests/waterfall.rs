//! The time line of a reconcile.

use super::fixture;
use jiff::tz::TimeZone;
use opdev_event::Outcome;
use opdev_event::Step;
use opdev_panes::text::width;
use opdev_panes::waterfall::{FEW, Line, Scale, lines, row};
use std::time::Duration;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

#[test]
fn bars_stand_where_the_time_was() {
    let mut reconcile = fixture::reconcile(1, "a", "17:00:00", vec![], Outcome::Applied, 10);
    reconcile.queued = Duration::ZERO;
    reconcile.steps = vec![Step { name: "plan".to_owned(), start: ms(5), took: ms(5) }];
    let scale = Scale::of(&reconcile);
    assert_eq!(scale.bar((ms(0), ms(5)), '#', 10), "#####     ");
    assert_eq!(scale.bar((ms(5), ms(5)), '#', 10), "     #####");
    assert_eq!(scale.bar((ms(10), ms(0)), '#', 10), "         #", "never outside, never nothing");
    assert_eq!(scale.bar((ms(2), Duration::ZERO), '#', 10), "  #       ");
    // The queue takes its part of the scale, unless it would dwarf the reconcile.
    reconcile.queued = ms(10);
    assert_eq!(Scale::of(&reconcile).bar((ms(0), ms(10)), '#', 10), "     #####");
    reconcile.queued = ms(11);
    assert_eq!(Scale::of(&reconcile).bar((ms(0), ms(10)), '#', 10), "##########");
}

#[test]
fn lines_fit_and_their_number_does_not_depend_on_the_width() {
    let state = fixture::busy();
    for reconcile in state.history.all() {
        for line in lines(reconcile, FEW) {
            for cells in [0, 1, 12, 36, 50, 80, 200] {
                let row = row(line, reconcile, &TimeZone::UTC, cells);
                let timed = matches!(line, Line::Scale | Line::Queue | Line::Step(_));
                let size = width(&row.text());
                assert!(!timed || cells < 36 || size <= cells, "{size} on {cells}: {}", row.text());
            }
        }
    }
}
