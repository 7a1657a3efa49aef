//! Runs beside the screen: the question before one, its page while it runs and after it, the first line.

use super::fixture::{events, now, of};
use super::frames::{check, screen, text};
use crate::view::ViewState;
use crate::{Input, update};
use expect_test::expect;
use opdev_event::{
    BackgroundCommand, BackgroundEnd, BackgroundFinding, BackgroundRow, BackgroundRun, Event,
    FindingSeverity, Place, ProjectTask, Request, Task,
};
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use std::sync::Arc;
use std::time::Duration;

const SAMPLE: &str = "config/samples/memcached.yaml";

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

fn row(over: bool, worst: Option<FindingSeverity>, cells: &[&str]) -> BackgroundRow {
    BackgroundRow { over, worst, cells: texts(cells) }
}

fn named(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn torture(end: Option<BackgroundEnd>) -> BackgroundRun {
    let writes = (
        texts(&[
            "get statefulsets default/cache",
            "delete statefulsets default/cache  memcached_controller.go:231",
            "patch persistentvolumeclaims default/cache-0 (.spec.resources.requests.storage 10Gi → 15Gi)",
            "create statefulsets default/cache  memcached_controller.go:240",
        ]),
        texts(&[
            "get statefulsets default/cache",
            "delete statefulsets default/cache  memcached_controller.go:231",
            "· killed after delete statefulsets default/cache",
            "create statefulsets default/cache  memcached_controller.go:240",
        ]),
    );
    let found = BackgroundFinding {
        severity: FindingSeverity::Error,
        title: "PersistentVolumeClaim default/cache-0 stays at .spec.resources.requests.storage 10Gi, undisturbed it is 15Gi"
            .to_owned(),
        times: "3 of 3".to_owned(),
        about: named(&[
            ("Disturbed", "killed after delete statefulsets default/cache, at internal/controller/memcached_controller.go:231"),
            ("Scenario", "grow of config/samples/memcached.yaml"),
            ("Code", "internal/controller/memcached_controller.go:240  the last create of StatefulSet default/cache"),
        ]),
        place: Some(Place { file: "internal/controller/memcached_controller.go".to_owned(), line: 240, column: 0 }),
        writes,
        replay: "opdev torture --replay .opdev/torture/1.yaml".to_owned(),
    };
    BackgroundRun {
        command: BackgroundCommand::Torture { sample: Some(SAMPLE.to_owned()) },
        request: 7,
        began: now() - Duration::from_secs(17),
        about: SAMPLE.to_owned(),
        done: 410,
        now: format!("grow of {SAMPLE}, 12 of 20 plans"),
        columns: texts(&["SCENARIO", "RESTART", "DOWN", "CRASH", "PAST", "BLIND", "SLOW", "LOST", "FOUND"]),
        rows: vec![
            row(true, None, &["recreate", "3", "2", "14", "4", "6", "3", "3", ""]),
            row(true, None, &["up-down", "3", "2", "12", "", "14", "3", "3", ""]),
            row(end.is_some(), Some(FindingSeverity::Error), &["grow", "3", "2", "7", "", "", "", "", "1"]),
        ],
        findings: vec![found],
        notes: texts(&["not run: toggle tls of config/samples/memcached.yaml: it has no such field"]),
        end,
    }
}

fn upgrade(over: bool) -> BackgroundRun {
    let finding = |severity, title: &str, object: &str, lines: &[(&str, &str)]| BackgroundFinding {
        severity,
        title: title.to_owned(),
        times: String::new(),
        about: named(&[&[("Object", object)], lines, &[("Seen in", "plain, crd-left-old")]].concat()),
        place: None,
        writes: (Vec::new(), Vec::new()),
        replay: "opdev upgrade --from v1.3.0 --only plain".to_owned(),
    };
    let refused = finding(
        FindingSeverity::Error,
        "the new operator may not update what the old one made",
        "Deployment default/memcached-sample",
        &[
            ("Field", ".spec.selector"),
            ("", "update deployments answered 422: spec.selector: field is immutable"),
            ("Fix", "keep the old selector, or delete the Deployment with its pods kept and make it again"),
        ],
    );
    let rolls = finding(
        FindingSeverity::Warning,
        "6 pods are made anew",
        "StatefulSet default/cache",
        &[("Field", ".spec.template.spec.containers[0].image")],
    );
    let what = [
        ("plain", "CRDs and operator are swapped"),
        ("crd-left-old", "the operator alone, as helm upgrade does"),
        ("roles-left-old", "CRDs and operator, without the new roles"),
        ("back", "the old version after the new one"),
        ("same", "the old version again: the baseline"),
    ];
    let error = Some(FindingSeverity::Error);
    let results: [(Option<FindingSeverity>, &str); 5] = match over {
        true => [
            (error, "1 error, 1 warning"),
            (error, "1 error, 1 warning"),
            (None, "nothing is wrong"),
            (None, "nothing is wrong"),
            (None, "changes nothing"),
        ],
        false => [(None, "done; judged at the end"), (None, "under way"), (None, ""), (None, ""), (None, "")],
    };
    let rows = what
        .iter()
        .zip(results)
        .enumerate()
        .map(|(at, ((name, what), (worst, result)))| row(over || at == 0, worst, &[name, what, result]));
    let took = Duration::from_secs(38);
    BackgroundRun {
        command: BackgroundCommand::Upgrade { from: Some("v1.3.0".to_owned()) },
        request: 8,
        began: now() - Duration::from_secs(9),
        about: "v1.3.0 → your working tree".to_owned(),
        done: if over { 1000 } else { 200 },
        now: match over {
            true => "rehearsed in 38 s with 4 objects of samples, 61 objects of v1.3.0".to_owned(),
            false => "1 of 5 variants; now: the operator alone, as helm upgrade does".to_owned(),
        },
        columns: texts(&["VARIANT", "WHAT HAPPENS", "RESULT"]),
        rows: rows.collect(),
        findings: if over { vec![refused, rolls] } else { Vec::new() },
        notes: Vec::new(),
        end: over.then_some(BackgroundEnd { took, problem: None }),
    }
}

fn with(runs: Vec<BackgroundRun>) -> State {
    let runs = runs.into_iter().map(|run| Event::BackgroundChanged(Arc::new(run)));
    of(events().into_iter().chain(runs).collect())
}

#[test]
fn pages_of_runs() {
    let runs = with(vec![torture(None), upgrade(false)]);
    let took = Duration::from_secs(41);
    let ended = with(vec![torture(Some(BackgroundEnd { took, problem: None })), upgrade(true)]);
    for size in [(80, 24), (120, 36), (160, 45)] {
        let name = |what: &str| format!("{what}-{}x{}", size.0, size.1);
        check(&name("torture-runs"), &runs, "g t", size);
        check(&name("torture-finding"), &ended, "g t enter", size);
        check(&name("upgrade-runs"), &runs, "g v", size);
        check(&name("upgrade"), &ended, "g v", size);
    }
    let none = of(events());
    check("torture-asks-80x24", &none, "g t", (80, 24));
    check("upgrade-asks-80x24", &none, "g v v 1", (80, 24));
}

#[test]
fn any_size_holds_a_page() {
    let took = Duration::from_secs(41);
    let problem = Some("a line of an error that is as long as errors are\n".repeat(8));
    let failed = torture(Some(BackgroundEnd { took, problem }));
    let all = [with(vec![torture(None), upgrade(true)]), with(vec![failed, upgrade(false)])];
    for state in &all {
        for size in [(30, 8), (40, 10), (60, 9), (100, 12), (120, 14), (240, 8), (240, 60)] {
            for keys in ["g t", "g t enter pgdn pgdn", "g v j", "g v j enter"] {
                screen(state, &mut ViewState::default(), keys, size);
            }
        }
    }
}

/// The requests of some keys, after those before.
fn asked(state: &State, view: &mut ViewState, keys: &str) -> Vec<Request> {
    let commands = keys.split_whitespace().flat_map(|name| {
        let key = Key::parse(name).unwrap_or_else(|| panic!("{name} is no key"));
        update(view, Input::Key(key), state)
    });
    let requests = commands.filter_map(|command| match command {
        crate::Command::Request(_, request) => Some(request),
        _ => None,
    });
    requests.collect()
}

fn run(command: BackgroundCommand) -> Request {
    ProjectTask::Background { command }.into()
}

#[test]
fn a_run_begins_with_what_was_chosen_and_can_be_stopped() {
    let none = of(events());
    let torture_it =
        |sample: Option<&str>| run(BackgroundCommand::Torture { sample: sample.map(str::to_owned) });
    let first = none.samples()[0].path.clone();
    let all = asked(&none, &mut ViewState::default(), "g t up up up enter");
    assert_eq!(all, [torture_it(None)]);
    let one = asked(&none, &mut ViewState::default(), "g t up up up down enter");
    assert_eq!(one, [torture_it(Some(&first))]);
    let from = |from: Option<&str>| run(BackgroundCommand::Upgrade { from: from.map(str::to_owned) });
    assert_eq!(asked(&none, &mut ViewState::default(), "g v enter"), [from(None)]);
    assert_eq!(asked(&none, &mut ViewState::default(), "g v v 2 enter"), [from(Some("v2"))]);
    assert_eq!(
        asked(&none, &mut ViewState::default(), ": u p g r a d e space v 2 enter"),
        [from(Some("v2"))]
    );
    let runs = with(vec![torture(None)]);
    assert_eq!(asked(&runs, &mut ViewState::default(), "g t R"), [], "it is not begun a second time");
    assert_eq!(asked(&runs, &mut ViewState::default(), "g t x"), [Task::Cancel { id: 7 }.into()]);
    let took = Duration::from_secs(1);
    let ended = with(vec![torture(Some(BackgroundEnd { took, problem: None }))]);
    assert_eq!(asked(&ended, &mut ViewState::default(), "g t x"), [], "nothing is to be stopped");
    assert_eq!(asked(&ended, &mut ViewState::default(), "g t R"), [torture_it(Some(SAMPLE))]);
    let mut view = ViewState::default();
    let pasted = "v3\n--trust".to_owned();
    asked(&none, &mut view, "g v");
    update(&mut view, Input::Paste(pasted), &none);
    assert_eq!(
        asked(&none, &mut view, "enter"),
        [from(Some("v3--trust"))],
        "one argument, whatever it holds"
    );
}

#[test]
fn the_first_line_tells_how_far_a_run_is() {
    let mut view = ViewState::default();
    let shown = text(&screen(&with(vec![torture(None)]), &mut view, "", (120, 36)));
    expect![" opdev · memcached-operator · embedded 1.36 · ns default · ↻ torture 41 %    ✓ deployment.yaml live in 38 ms"]
    .assert_eq(shown.lines().next().unwrap());
    let took = Duration::from_secs(1);
    let problem = Some("no tag leads to HEAD\n  to do: name a version with --from".to_owned());
    let failed =
        BackgroundRun { end: Some(BackgroundEnd { took, problem }), findings: Vec::new(), ..upgrade(false) };
    let shown = text(&screen(&with(vec![failed]), &mut view, "g v", (80, 24)));
    assert!(!shown.contains("↻ upgrade"), "{shown}");
    assert!(shown.contains("no tag leads to HEAD") && shown.contains("to do: name a version"), "{shown}");
}
