//! Runs beside the screen: the newest of each command, also where opdev goes to another cluster.

use super::State;
use expect_test::expect;
use jiff::Timestamp;
use opdev_event::{BackgroundCommand, BackgroundRun, Event, Started};
use std::sync::Arc;
use std::time::Duration;

fn run(command: BackgroundCommand, now: &str) -> Event {
    Event::BackgroundChanged(Arc::new(BackgroundRun {
        command,
        request: 1,
        began: Timestamp::UNIX_EPOCH,
        about: String::new(),
        done: 0,
        now: now.to_owned(),
        columns: Vec::new(),
        rows: Vec::new(),
        findings: Vec::new(),
        notes: Vec::new(),
        end: None,
    }))
}

fn started(seconds: u64) -> Event {
    let at = Timestamp::UNIX_EPOCH + Duration::from_secs(seconds);
    Event::Started(Arc::new(Started { at, ..Started::default() }))
}

#[test]
fn the_newest_run_of_a_command_stays_where_opdev_goes_to_another_cluster() {
    let torture = |sample: &str| BackgroundCommand::Torture { sample: Some(sample.to_owned()) };
    let upgrade = BackgroundCommand::Upgrade { from: None };
    let mut state = State::default();
    let first = [started(0), run(torture("a"), "old"), run(upgrade.clone(), "up"), run(torture("b"), "new")];
    first.into_iter().for_each(|event| state.reduce(event));
    assert_eq!(state.requests.background.len(), 2);
    assert_eq!(state.requests.run_like(&torture("c")).unwrap().now, "new");
    state.reduce(started(60));
    let kept = state.requests.run_like(&upgrade).unwrap();
    let end = kept.end.as_ref().unwrap();
    assert_eq!((kept.now.as_str(), end.took), ("up", Duration::from_secs(60)));
    expect!["stopped, for opdev went to another cluster"].assert_eq(end.problem.as_ref().unwrap());
}
