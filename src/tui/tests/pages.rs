//! Pages on small screens, the operator log, the list of notices, signs as ASCII, and the mouse in dialogs.

use super::acting::commands;
use super::fixture::{at, broken, busy, events, finished, now, of};
use super::frames::{check, check_view, screen, text};
use crate::command::{Command, Input, Mouse};
use crate::dialog::Delete;
use crate::update;
use crate::view::ViewState;
use expect_test::expect;
use opdev_event::{Event, Level, Notice, ObjectTask, Propagation, Request, RequestOutcome};
use opdev_panes::layout::Shape;
use opdev_panes::pane::{Pane, Tab};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SMALL: (u16, u16) = (80, 24);

#[test]
fn a_page_has_the_whole_body_and_esc_goes_back_where_one_came_from() {
    let state = busy();
    for (keys, from, tab) in [
        ("j enter", Pane::Resources, Tab::STATUS),
        ("j y", Pane::Resources, Tab::YAML),
        ("j 2 j enter", Pane::Owned, Tab::YAML),
        ("j 3 j enter", Pane::Reconciles, Tab::STATUS),
        ("j enter y d", Pane::Resources, Tab::DESCRIBE),
    ] {
        let mut view = ViewState::default();
        screen(&state, &mut view, keys, SMALL);
        assert_eq!((view.screen.shape, view.focus, view.detail.tab), (Shape::Stacked, Pane::Detail, tab));
        let shown = Pane::ALL.into_iter().filter(|pane| view.screen.shows(*pane)).count();
        assert_eq!(shown, 1, "{keys}: the page has the whole body");
        screen(&state, &mut view, "esc", SMALL);
        assert_eq!((view.focus, view.zoom), (from, false), "{keys}");
        let shown = Pane::ALL.into_iter().filter(|pane| view.screen.shows(*pane)).count();
        assert_eq!(shown, 2, "{keys}: both panes are back");
    }
    // Where all panes are in sight nothing covers them.
    let mut view = ViewState::default();
    screen(&state, &mut view, "j y", (120, 36));
    assert!(!view.zoom && view.screen.shows(Pane::Resources));
    check("page-80x24", &state, "j 3 j enter", SMALL);
}

#[test]
fn the_operator_log_is_a_key_away_and_a_pane_where_there_is_room() {
    let state = busy();
    for size in [(40, 10), SMALL, (120, 36), (160, 45), (200, 50)] {
        let mut view = ViewState::default();
        let shown = text(&screen(&state, &mut view, "l", size));
        assert_eq!(view.focus, Pane::Log);
        assert!(shown.contains("release upgraded"), "{size:?}\n{shown}");
        screen(&state, &mut view, "esc", size);
        assert_ne!(view.focus, Pane::Log, "{size:?}");
    }
    check("operator-log-80x24", &state, "5", SMALL);
}

fn told(level: Level, time: &str, message: &str) -> Event {
    let hint = Some("the hint of it".to_owned());
    Event::Noticed(Notice { at: at(time), level, message: message.to_owned(), hint, object: None })
}

#[test]
fn notices_leave_the_border_and_stay_in_the_list() {
    let mut all = events();
    all.push(told(Level::Warn, "17:02:12", "cannot watch Shop: dev has no right to list it"));
    all.push(told(Level::Error, "17:02:13", "the program stopped"));
    let state = of(all.clone());
    let area = Rect::new(0, 0, SMALL.0, SMALL.1);
    for (time, there) in [(now(), true), (at("17:02:20"), false)] {
        let mut buffer = Buffer::empty(area);
        crate::draw::paint(&state, &mut ViewState::default(), &mut buffer, area, time);
        assert_eq!(text(&buffer).contains("the program stopped"), there, "{time}");
    }
    all.push(broken());
    let refused = RequestOutcome::Failed {
        message: "spec.size must be 1 or more".to_owned(),
        hint: Some("fix it".to_owned()),
    };
    all.push(finished(3, "apply hello.yaml", refused));
    let state = of(all);
    check("notices-80x24", &state, "@ j", SMALL);
    let shown = text(&screen(&state, &mut ViewState::default(), "@", (160, 45)));
    for text in ["Shop: dev has no right", "the program stopped", "spec.size must be 1", "nil pointer"] {
        assert!(shown.contains(text), "{text} is not in\n{shown}");
    }
    let opened = commands(&mut ViewState::default(), &state, "@ enter");
    assert!(
        matches!(opened.as_slice(), [Command::OpenFile { .. }]),
        "the first one is about a file: {opened:?}"
    );
}

#[test]
fn what_is_wrong_with_the_files_is_hidden_by_esc_until_something_else_is() {
    let mut all = events();
    all.push(broken());
    let state = of(all.clone());
    let mut view = ViewState::default();
    assert!(text(&screen(&state, &mut view, "", SMALL)).contains("✗ deployment.yaml:14:20 ─"));
    let hidden = text(&screen(&state, &mut view, "esc", SMALL));
    assert!(!hidden.contains("✗ deployment.yaml:14:20 ─"), "{hidden}");
    // The header still says it.
    expect![" memcached-operator · embedded 1.36 · ns default        ✗ deployment.yaml:14:20"]
        .assert_eq(hidden.lines().next().unwrap());
}

#[test]
fn signs_are_letters_where_the_terminal_has_no_others() {
    let mut view = ViewState::default();
    view.look.ascii = true;
    check_view("ascii-80x24", &busy(), &mut view, "j", SMALL);
}

/// Where a text stands on the screen.
fn place(shown: &str, what: &str) -> (u16, u16) {
    let row = shown.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("{what}\n{shown}"));
    let line = shown.lines().nth(row).unwrap();
    (line[..line.find(what).unwrap()].chars().count() as u16 + 1, row as u16)
}

#[test]
fn the_mouse_answers_questions_chooses_rows_and_closes_what_it_is_beside() {
    let state = busy();
    let click = |view: &mut ViewState, (x, y): (u16, u16)| -> Vec<Command> {
        let asked = update(view, Input::Mouse(Mouse::Click(x, y)), &state);
        screen(&state, view, "", SMALL);
        asked
    };
    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, "j D", SMALL));
    assert_eq!(click(&mut view, place(&shown, "With it goes")), []);
    assert!(view.top::<Delete>().is_some(), "a click on the text answers nothing");
    assert_eq!(click(&mut view, place(&shown, "[n] Keep it")), []);
    assert!(view.layers.is_empty());
    screen(&state, &mut view, "D", SMALL);
    assert_eq!(click(&mut view, (1, 1)), []);
    assert!(view.layers.is_empty(), "a click beside a dialog closes it");
    let shown = text(&screen(&state, &mut view, "D", SMALL));
    let asked = click(&mut view, place(&shown, "[y] Delete"));
    let object = super::fixture::reference("Memcached", "memcached-sample");
    let delete =
        Request::from(ObjectTask::Delete { object, propagation: Propagation::Background, grace: None });
    assert!(matches!(asked.as_slice(), [Command::Request(_, request)] if *request == delete), "{asked:?}");

    let mut view = ViewState::default();
    let shown = text(&screen(&state, &mut view, ": z o", SMALL));
    let zoom = place(&shown, "zoom  Give");
    click(&mut view, zoom);
    if !view.layers.is_empty() {
        click(&mut view, zoom);
    }
    assert!(view.zoom && view.layers.is_empty(), "a row that is chosen is opened");
    assert_eq!(commands(&mut view, &state, "z"), []);
}
