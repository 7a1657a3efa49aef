//! Colours by role. Colour is never the only sign: every role that matters has a symbol or a word, too.

use ratatui::style::{Color, Modifier, Style};

/// What a piece of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Role {
    Text,
    Dim,
    Title,
    Border,
    Focus,
    Key,
    Good,
    Busy,
    Bad,
    Added,
    Removed,
    Changed,
    Selected,
    Banner,
}

/// Which colours the terminal has, and which the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// For a dark background.
    Dark,
    /// For a light background.
    Light,
    /// The terminal's own sixteen.
    #[default]
    Sixteen,
    /// None at all.
    Plain,
}

impl Theme {
    /// What the environment asks for: `NO_COLOR`, `COLORTERM`, `COLORFGBG`, `TERM`.
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> Self {
        let full = |name: &str| var(name).filter(|text| !text.is_empty());
        if full("NO_COLOR").is_some() || full("TERM").as_deref() == Some("dumb") {
            return Theme::Plain;
        }
        if !matches!(full("COLORTERM").as_deref(), Some("truecolor" | "24bit")) {
            return Theme::Sixteen;
        }
        let background = full("COLORFGBG").and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        match background {
            Some(7 | 15) => Theme::Light,
            Some(_) => Theme::Dark,
            // An unknown background: only the terminal's own colours are sure to be readable on it.
            None => Theme::Sixteen,
        }
    }

    /// How a role looks.
    pub fn style(self, role: Role) -> Style {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let base = match role {
            Role::Text
            | Role::Border
            | Role::Good
            | Role::Busy
            | Role::Added
            | Role::Removed
            | Role::Changed => plain,
            Role::Dim => plain.add_modifier(Modifier::DIM),
            Role::Title | Role::Focus | Role::Key | Role::Bad | Role::Banner => bold,
            Role::Selected => plain.add_modifier(Modifier::REVERSED),
        };
        match self {
            Theme::Plain => base,
            Theme::Sixteen => match sixteen(role) {
                Some(color) => base.fg(color),
                None => base,
            },
            Theme::Dark => rgb(role, base, DARK),
            Theme::Light => rgb(role, base, LIGHT),
        }
    }
}

fn sixteen(role: Role) -> Option<Color> {
    match role {
        Role::Text | Role::Title | Role::Selected | Role::Border | Role::Dim => None,
        Role::Focus | Role::Key => Some(Color::Cyan),
        Role::Good | Role::Added => Some(Color::Green),
        Role::Busy | Role::Changed => Some(Color::Yellow),
        Role::Bad | Role::Removed | Role::Banner => Some(Color::Red),
    }
}

/// Accent, good, busy, bad, dim, border, background of the selection.
type Palette = [u32; 7];
const DARK: Palette =
    [0x007d_cfff, 0x009e_ce6a, 0x00e0_af68, 0x00f7_768e, 0x008a_91b0, 0x0054_5c7e, 0x0033_3b5c];
const LIGHT: Palette =
    [0x0000_5f87, 0x002e_7d32, 0x008a_5a00, 0x00b7_1c1c, 0x005f_6368, 0x00a0_a4a8, 0x00d0_e2f5];

fn rgb(role: Role, base: Style, palette: Palette) -> Style {
    let [accent, good, busy, bad, dim, border, selected] = palette.map(Color::from_u32);
    match role {
        Role::Text | Role::Title => base,
        Role::Focus | Role::Key => base.fg(accent),
        Role::Good | Role::Added => base.fg(good),
        Role::Busy | Role::Changed => base.fg(busy),
        Role::Bad | Role::Removed | Role::Banner => base.fg(bad),
        Role::Dim => Style::new().fg(dim),
        Role::Border => base.fg(border),
        Role::Selected => Style::new().bg(selected).add_modifier(Modifier::BOLD),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(pairs: &[(&str, &str)]) -> Theme {
        Theme::detect(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_decides() {
        assert_eq!(detect(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), Theme::Plain);
        assert_eq!(detect(&[("NO_COLOR", ""), ("TERM", "xterm")]), Theme::Sixteen);
        assert_eq!(detect(&[("COLORTERM", "truecolor"), ("COLORFGBG", "0;15")]), Theme::Light);
        assert_eq!(detect(&[("COLORTERM", "24bit"), ("COLORFGBG", "15;0")]), Theme::Dark);
        assert_eq!(detect(&[("COLORTERM", "24bit")]), Theme::Sixteen);
    }

    #[test]
    fn without_colours_there_are_none() {
        for role in [Role::Good, Role::Bad, Role::Selected, Role::Focus] {
            let style = Theme::Plain.style(role);
            assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
        }
    }
}
