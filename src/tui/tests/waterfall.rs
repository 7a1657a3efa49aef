//! The time line of a reconcile.

use super::fixture;
use jiff::tz::TimeZone;
use opdev_event::Step;
use opdev_event::{Call, Outcome};
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

#[test]
fn calls_name_objects_as_the_rest_of_the_screen_does() {
    let call = |target: &str| Call {
        verb: "get".to_owned(),
        path: String::new(),
        target: target.to_owned(),
        start: Duration::ZERO,
        took: ms(1),
        status: 200,
        reason: None,
        place: None,
    };
    let mut reconcile = fixture::reconcile(1, "example", "17:00:00", vec![], Outcome::Unchanged, 10);
    reconcile.calls = [
        "deployments/example-ingress-greeter",
        "services/example-ingress-greeter",
        "memcacheds/example/status",
        "widgets/example",
        "secrets",
    ]
    .map(call)
    .to_vec();
    let said = |cells| {
        let rows = (0..5).map(|at| row(Line::Call(at), &reconcile, &TimeZone::UTC, cells).text());
        rows.map(|row| row.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    let whole = [
        "Deployment example-ingress-greeter",
        "Service example-ingress-greeter",
        "Memcached example/status",
        "widgets example",
        "secrets",
    ];
    let wide = said(140);
    assert_eq!(wide[..4], whole[..4]);
    assert!(wide[4].starts_with("secrets"));
    // Two objects of one name stay two.
    assert_eq!(said(62)[..2], ["Deployment …greeter", "Service …ss-greeter"]);
}
