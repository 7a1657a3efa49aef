//! Colours, mouse and time zone, as the terminal and the settings ask for them.

use super::applied::Following;
use jiff::tz::TimeZone;
use opdev_panes::theme::Theme;

/// How the screen looks.
pub(crate) struct Look {
    pub(crate) theme: Theme,
    /// The form of signs and lines: letters or not, and whether the terminal itself asks for letters.
    pub(crate) ascii: bool,
    pub(crate) ascii_terminal: bool,
    /// True if the mouse selects and scrolls.
    pub(crate) mouse: bool,
    /// True if the terminal is known to understand links.
    pub(crate) knows_links: bool,
    /// True if places in files are links, where the settings say so.
    pub(crate) links: Option<bool>,
    /// For times of day.
    pub(crate) zone: TimeZone,
    /// The outcome of the settings.
    pub(crate) following: Following,
}

impl Default for Look {
    fn default() -> Self {
        Look {
            theme: Theme::default(),
            ascii: false,
            ascii_terminal: false,
            mouse: false,
            knows_links: false,
            links: None,
            zone: TimeZone::UTC,
            following: Following::default(),
        }
    }
}

impl Look {
    /// As a terminal asks for it.
    pub(crate) fn on(terminal: Theme, zone: TimeZone) -> Self {
        Look { theme: terminal, zone, following: Following::on(terminal), ..Look::default() }
    }

    /// Returns true if places in files are links.
    pub(crate) fn shows_links(&self) -> bool {
        self.links.unwrap_or(self.knows_links)
    }
}
