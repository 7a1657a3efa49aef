//! The findings that are open at the end.

use super::found;
use crate::print::summary::Summary;
use expect_test::expect;
use opdev_event::{Event, FindingSeverity, RuleFinding};
use std::sync::Arc;

fn stopping() -> Event {
    Event::Stopping { reason: "SIGTERM".to_owned() }
}

#[test]
fn the_end_names_what_is_open_the_worst_first() {
    let mut summary = Summary::default();
    assert_eq!(summary.see(&stopping()), None);
    let finding = |id, severity, title: &str| {
        let told = RuleFinding { id, severity, title: title.to_owned(), times: id, ..found::finding(None) };
        Arc::new(told)
    };
    assert_eq!(summary.see(&Event::FindingOpened(finding(1, FindingSeverity::Hint, "many calls"))), None);
    summary.see(&Event::FindingOpened(finding(2, FindingSeverity::Warning, "no watch: Service")));
    summary.see(&Event::FindingOpened(finding(3, FindingSeverity::Warning, "same error")));
    // It turned out worse, and another one is over.
    summary.see(&Event::FindingCounted(finding(2, FindingSeverity::Error, "no watch: Service")));
    summary.see(&Event::FindingClosed(finding(3, FindingSeverity::Warning, "same error")));
    let text = summary.see(&stopping()).unwrap();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines[0], "findings   1 error, 1 hint open");
    expect!["✗ no watch: Service Memcached default/web ×2 at web.go:118"].assert_eq(lines[1]);
    assert!(lines[2].starts_with("i many calls ") && !lines[2].contains('×'), "{text}");
    assert_eq!(lines.len(), 3);
}
