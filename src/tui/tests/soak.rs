//! Random keys, clicks, pastes, sizes and events, without a panic and without a control character on the
//! screen. A few seconds in every test run; `OPDEV_SOAK=600 cargo test -p opdev-tui tui::soak` goes on for
//! ten minutes.

use super::fixture::{busy, events, held_type, logged, now, object, reference, released, seen};
use super::held::shadow_run;
use crate::view::ViewState;
use crate::{Input, Mouse, update};
use crossterm::event::KeyCode;
use opdev_event::{
    Binding, Event, Level, ObjectGone, ObjectTask, Place, Preferences, QueueChanged, Request, Task,
    ThemeChoice,
};
use opdev_panes::keys::chord::Key;
use opdev_state::State;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % sides as u64).unwrap()
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

fn key(dice: &mut Dice) -> Key {
    let named = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Backspace,
        KeyCode::Delete,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::F(5),
        KeyCode::Insert,
        KeyCode::Null,
    ];
    let code = match dice.roll(8) {
        0 | 1 => *dice.of(&named),
        2 => KeyCode::Char(*dice.of(&['日', 'é', '\u{7f}', '\u{200b}', '🦀', ' '])),
        _ => KeyCode::Char(char::from(33 + u8::try_from(dice.roll(94)).unwrap())),
    };
    Key { code, ctrl: dice.roll(12) == 0, alt: dice.roll(20) == 0 }
}

fn settings(dice: &mut Dice) -> Event {
    let place = Place { file: "config.yaml".to_owned(), line: 1, column: 1 };
    let action = dice.of(&crate::keys::registry::ACTIONS).id.to_owned();
    let keys = vec![(*dice.of(&["x", "g q", "fly", "ctrl-d", "f2", ""])).to_owned()];
    let name = (*dice.of(&["dark", "light", "none", "plain"])).to_owned();
    let theme = Some(ThemeChoice { name, place: place.clone(), own: true, file: None });
    let keys = vec![Binding { action, keys, place }];
    Event::PreferencesChanged(Arc::new(Preferences {
        keys,
        theme,
        mouse: Some(true),
        ..Preferences::default()
    }))
}

fn event(dice: &mut Dice, known: &[Event]) -> Event {
    let names = ["big", "memcached-sample", "nightly", "a", "日本-\u{1b}[31m", "z"];
    let kinds = ["Memcached", "MemcachedBackup", "Pod", "Deployment", "Secret", "Odd"];
    let (kind, name) = (*dice.of(&kinds), *dice.of(&names));
    match dice.roll(8) {
        0 | 1 => dice.of(known).clone(),
        2 => Event::ObjectGone(ObjectGone { at: now(), object_ref: reference(kind, name) }),
        3 => logged(
            *dice.of(&[Level::Error, Level::Info, Level::Trace]),
            &"l\u{7}og ".repeat(dice.roll(60)),
            Some(4),
        ),
        4 => settings(dice),
        5 => {
            let n = u32::try_from(dice.roll(5)).unwrap();
            Event::QueueChanged(QueueChanged { waiting: n, running: n, backing_off: n })
        }
        _ => {
            let owner = (dice.roll(2) == 0).then(|| (*dice.of(&kinds), *dice.of(&names)));
            let odd =
                [json!(null), json!([]), json!("x"), json!({"conditions": [1, {"type": 3}]}), json!(-1)];
            let rest = json!({"spec": dice.of(&odd), "status": dice.of(&odd)});
            seen(object(kind, name, owner, "17:00:00", &rest))
        }
    }
}

fn input(dice: &mut Dice, size: (u16, u16)) -> Input {
    let at = (dice.roll(size.0.into()) as u16, dice.roll(size.1.into()) as u16);
    match dice.roll(12) {
        0 => Input::Mouse(Mouse::Click(at.0, at.1)),
        1 => Input::Mouse(Mouse::Wheel { up: dice.roll(2) == 0, at }),
        2 => Input::Paste("a\u{1b}日本\r\n/(".repeat(dice.roll(40))),
        _ => Input::Key(key(dice)),
    }
}

fn run(seed: u64, steps: usize) {
    let mut dice = Dice(seed);
    let mut known = events();
    known.extend(shadow_run().into_iter().chain([held_type(), released()]));
    let (mut state, mut view): (State, ViewState) = (busy(), ViewState::default());
    let mut size = (120, 36);
    let mut clock = now();
    for _ in 0..steps {
        match dice.roll(10) {
            0 => size = (1 + dice.roll(220) as u16, 1 + dice.roll(70) as u16),
            1..=3 => state.reduce(event(&mut dice, &known)),
            _ => {
                let asked = !view.layers.is_empty();
                let commands = update(&mut view, input(&mut dice, size), &state);
                let deletes = commands.iter().any(|command| {
                    matches!(
                        command,
                        crate::Command::Request(_, Request::Task(Task::Object(ObjectTask::Delete { .. })))
                    )
                });
                assert!(asked || !deletes, "deleted without a question, seed {seed}");
                // A user who leaves comes back: the screen is to go on.
                view.leaving = false;
            }
        }
        clock += Duration::from_millis(dice.roll(400) as u64);
        let area = Rect::new(0, 0, size.0, size.1);
        let mut buffer = Buffer::empty(area);
        crate::draw::paint(&state, &mut view, &mut buffer, area, clock);
        let steers = |cell: &ratatui::buffer::Cell| cell.symbol().chars().any(char::is_control);
        assert!(!buffer.content().iter().any(steers), "a control character on the screen, seed {seed}");
    }
}

#[test]
fn random_keys_and_events_end_well() {
    let seconds: u64 = std::env::var("OPDEV_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let (begun, mut seed) = (Instant::now(), 0);
    while seed < 12 || begun.elapsed() < Duration::from_secs(seconds) {
        run(seed, 300);
        seed += 1;
    }
}
