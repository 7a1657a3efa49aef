//! Events about the terminal: its settings, and what it asks for.

use super::{at, problem};
use opdev_event::{Binding, Event, Place, Preferences, ThemeChoice, UserCommand};
use std::sync::Arc;

/// What comes where the screen is used.
pub(super) fn of_the_terminal() -> Vec<Event> {
    vec![
        Event::PreferencesChanged(Arc::new(preferences())),
        Event::FilesListed { files: Arc::from(["charts/a/Chart.yaml".to_owned()]) },
    ]
}

fn preferences() -> Preferences {
    let place = Place { file: "opdev.yaml".to_owned(), line: 3, column: 1 };
    let keys = vec![Binding { action: "zoom".to_owned(), keys: vec!["f".to_owned()], place: place.clone() }];
    let file = Some(("themes/mine.yaml".to_owned(), "text: red".to_owned()));
    let theme = Some(ThemeChoice { name: "mine".to_owned(), place, own: true, file });
    let command = UserCommand {
        name: "top".to_owned(),
        key: Some("g e".to_owned()),
        run: vec!["kubectl top pods".to_owned()],
        shell: true,
        kinds: vec!["Pod".to_owned()],
        confirm: true,
        background: false,
        writes: false,
        place: Place { file: "config.yaml".to_owned(), line: 3, column: 1 },
    };
    Preferences {
        at: at(),
        keys,
        theme,
        ascii: Some(true),
        mouse: Some(true),
        links: Some(true),
        borders: None,
        commands: vec![command],
        problems: vec![problem()],
    }
}
