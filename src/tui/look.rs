//! Colours, mouse and time zone, as the terminal and the settings ask for them.

use super::following::Following;
use super::theme::Theme;
use jiff::tz::TimeZone;

/// How the screen looks.
pub(super) struct Look {
    pub(super) theme: Theme,
    /// Whether signs and lines are letters, and whether the terminal itself asks for that.
    pub(super) ascii: bool,
    pub(super) ascii_terminal: bool,
    /// Whether the mouse selects and scrolls.
    pub(super) mouse: bool,
    /// Whether the terminal is known to understand links.
    pub(super) knows_links: bool,
    /// Whether places in files are links, where the settings say so.
    pub(super) links: Option<bool>,
    /// For times of day.
    pub(super) zone: TimeZone,
    /// What came of the settings.
    pub(super) following: Following,
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
    pub(super) fn on(terminal: Theme, zone: TimeZone) -> Self {
        Look { theme: terminal, zone, following: Following::on(terminal), ..Look::default() }
    }

    /// Whether places in files are links.
    pub(super) fn shows_links(&self) -> bool {
        self.links.unwrap_or(self.knows_links)
    }
}
