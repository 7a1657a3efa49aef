//! Open findings stand in sentences on the first screen, wherever rows are free.

use super::fixture::{events, of};
use super::frames::{screen, text};
use crate::view::ViewState;
use opdev_event::Event;
use opdev_state::State;
use serde_json::json;
use std::sync::Arc;

/// A state with findings, each with a severity and a title.
fn found(told: &[(&str, &str)], why: &str) -> State {
    let told = told.iter().enumerate().map(|(at, (severity, title))| {
        let finding = serde_json::from_value(json!({
            "id": at + 1, "rule": "missing-watch", "severity": severity, "title": title, "why": why,
            "fix": "Own it.", "first": "2026-09-01T00:00:00Z", "last": "2026-09-01T00:00:00Z", "times": 1,
            "object": {
                "group": "cache.example.com", "version": "v1", "kind": "Memcached",
                "namespace": "default", "name": "memcached-sample", "uid": "",
            },
            "place": { "file": "controller.go", "line": 42, "column": 0 },
        }));
        Event::FindingOpened(Arc::new(finding.expect("a finding")))
    });
    of(events().into_iter().chain(told).collect())
}

#[test]
fn a_finding_is_told_with_its_reason_below_the_list() {
    let why = "nothing watches Service default/web, so that a change by others is never put back";
    for size in [(120, 36), (160, 50)] {
        let state = found(&[("warning", "no watch: Service"), ("error", "panic")], why);
        let shown = text(&screen(&state, &mut ViewState::default(), "", size));
        for told in ["✗ panic", "nothing watches Service default/web", "shows the fix"] {
            assert!(shown.contains(told), "{told} is not in\n{shown}");
        }
        let hints = found(&[("hint", "no watch: Service")], why);
        let shown = text(&screen(&hints, &mut ViewState::default(), "", size));
        assert!(!shown.contains("nothing watches"), "a hint does not ask for attention\n{shown}");
    }
}
