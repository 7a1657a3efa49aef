//! The settings of keys, theme and mouse, brought onto the view. A mistake leaves all as it was and is told
//! until it is fixed or dismissed.

pub(crate) mod appearance;
pub(crate) mod applied;

use super::view::ViewState;
use crate::keys::keymap::Keymap;
use opdev_event::{Diagnostic, ThemeChoice};
use opdev_panes::keys::user_command;
use opdev_panes::theme::Theme;
use opdev_state::State;
use std::sync::Arc;

impl ViewState {
    /// Takes the newest settings in, if they are new.
    pub(super) fn follow_preferences(&mut self, state: &State) {
        let Some(new) = &state.preferences else { return };
        if self.look.following.seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, new)) {
            return;
        }
        // Later ones bring what this very screen has put there.
        if self.look.following.seen.is_none() {
            self.screen.borders = new.borders.unwrap_or(self.screen.borders);
        }
        self.look.following.seen = Some(Arc::clone(new));
        let mut problems = new.problems.clone();
        let keymap = Keymap::with(&new.keys).map_err(|wrong| problems.extend(wrong)).ok();
        let theme = theme(new.theme.as_ref(), self.look.following.terminal)
            .map_err(|wrong| problems.push(*wrong))
            .ok();
        let own = user_command::with_keys(&new.commands).map_err(|wrong| problems.extend(wrong)).ok();
        if let (Some(mut keymap), Some(theme), Some(own), []) = (keymap, theme, own, problems.as_slice()) {
            own.iter().filter_map(|own| own.key.as_ref()).for_each(|key| keymap.give_up(key));
            self.keys.own = own;
            self.keys.map = keymap;
            self.look.theme = theme;
            self.look.ascii = new.ascii.unwrap_or(self.look.ascii_terminal);
            self.look.mouse = new.mouse.unwrap_or(false);
            self.look.links = new.links;
            self.keys.typed.clear();
        }
        self.look.following.problems = problems;
    }
}

/// The theme that is asked for. A terminal without colours outweighs the project's wish, but not the user's
/// own.
fn theme(choice: Option<&ThemeChoice>, terminal: Theme) -> Result<Theme, Box<Diagnostic>> {
    match choice {
        None => Ok(terminal),
        Some(choice) => {
            let theme = Theme::chosen(choice, terminal)?;
            Ok(if terminal == Theme::plain() && !choice.own { terminal } else { theme })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::appearance::Look;
    use expect_test::expect;
    use jiff::tz::TimeZone;
    use opdev_event::{Binding, Event, Place, Preferences};
    use opdev_panes::keys::action::Do;
    use opdev_panes::keys::chord::Key;

    fn place() -> Place {
        Place { file: "config.yaml".to_owned(), line: 2, column: 3 }
    }

    fn settings(key: &str, theme: &str, own: bool) -> Event {
        let keys = vec![Binding { action: "zoom".to_owned(), keys: vec![key.to_owned()], place: place() }];
        let theme = Some(ThemeChoice { name: theme.to_owned(), place: place(), own, file: None });
        Event::PreferencesChanged(Arc::new(Preferences {
            keys,
            theme,
            mouse: Some(true),
            ..Preferences::default()
        }))
    }

    fn after(view: &mut ViewState, event: Event) {
        let mut state = State::default();
        state.reduce(event);
        view.refresh(&state);
    }

    #[test]
    fn the_last_good_settings_stay() {
        let mut view = ViewState::default();
        after(&mut view, settings("F", "light", true));
        let light = Theme::named("light").unwrap();
        assert_eq!(
            (view.keys.map.keys(Do::Zoom)[0].0[0], view.look.theme, view.look.mouse),
            (Key::char('F'), light, true)
        );
        for (key, theme, told) in [
            ("fly", "dark", "config.yaml:2:3: `fly` is no key"),
            ("x", "drak", "config.yaml:2:3: there is no theme `drak`"),
        ] {
            after(&mut view, settings(key, theme, true));
            assert_eq!((view.keys.map.keys(Do::Zoom)[0].0[0], view.look.theme), (Key::char('F'), light));
            let lines = view.look.following.told().unwrap();
            assert!(lines[0].contains(told), "{lines:?}");
            expect!["Keys and colours stay as they were."].assert_eq(lines.last().unwrap());
        }
        after(&mut view, settings("x", "dark", true));
        assert_eq!((view.look.following.told(), view.look.theme), (None, Theme::named("dark").unwrap()));
    }

    #[test]
    fn no_color_outweighs_the_project_but_not_the_user() {
        let blank = || ViewState { look: Look::on(Theme::plain(), TimeZone::UTC), ..ViewState::default() };
        let (mut view, mut users) = (blank(), blank());
        after(&mut view, settings("x", "dark", false));
        after(&mut users, settings("x", "dark", true));
        assert_eq!((view.look.theme, users.look.theme), (Theme::plain(), Theme::named("dark").unwrap()));
    }
}
