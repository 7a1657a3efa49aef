//! A run beside the screen, as an event.

use super::at;
use opdev_event::{
    BackgroundCommand, BackgroundEnd, BackgroundFinding, BackgroundRow, BackgroundRun, Event,
    FindingSeverity, Place,
};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn ended() -> Event {
    let line = |text: &str| vec![text.to_owned()];
    let finding = BackgroundFinding {
        severity: FindingSeverity::Error,
        title: "ConfigMap a is missing".to_owned(),
        times: "3 of 3".to_owned(),
        about: vec![("Disturbed".to_owned(), "killed after create b".to_owned())],
        place: Some(Place { file: "main.go".to_owned(), line: 7, column: 0 }),
        writes: (line("create a"), line("· killed after create b")),
        replay: "opdev torture --replay .opdev/torture/1.yaml".to_owned(),
    };
    let row = BackgroundRow { over: true, worst: Some(FindingSeverity::Error), cells: line("recreate") };
    Event::BackgroundChanged(Arc::new(BackgroundRun {
        command: BackgroundCommand::Torture { sample: Some("a.yaml".to_owned()) },
        request: 3,
        began: at(),
        about: "a.yaml".to_owned(),
        done: 1000,
        now: "1 finding in 4 plans".to_owned(),
        columns: line("SCENARIO"),
        rows: vec![row],
        findings: vec![finding],
        notes: line("left out"),
        end: Some(BackgroundEnd { took: Duration::from_secs(4), problem: None }),
    }))
}
