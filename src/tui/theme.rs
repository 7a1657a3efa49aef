//! How each role looks, read from the files in `assets/themes`, which are built in, or from one of the user's own.
//! Colour is never the only sign: every role that matters has a symbol or a word, too.

use crate::event::{Diagnostic, Place, Severity, ThemeChoice, words};
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Kind};
use ratatui::style::{Color, Modifier, Style};
use std::sync::OnceLock;

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
    Match,
    /// The border on a cluster that is not clearly local and that the user has confirmed.
    BorderConfirmed,
    /// The border on a cluster that is only read.
    BorderReadOnly,
}

/// The roles by the names that theme files give them.
const ROLES: [(&str, Role); 17] = [
    ("text", Role::Text),
    ("dim", Role::Dim),
    ("title", Role::Title),
    ("border", Role::Border),
    ("focus", Role::Focus),
    ("key", Role::Key),
    ("good", Role::Good),
    ("busy", Role::Busy),
    ("bad", Role::Bad),
    ("added", Role::Added),
    ("removed", Role::Removed),
    ("changed", Role::Changed),
    ("selected", Role::Selected),
    ("banner", Role::Banner),
    ("match", Role::Match),
    ("border-confirmed", Role::BorderConfirmed),
    ("border-read-only", Role::BorderReadOnly),
];

/// The themes that are built in.
const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../assets/themes/dark.yaml")),
    ("light", include_str!("../../assets/themes/light.yaml")),
    ("sixteen", include_str!("../../assets/themes/sixteen.yaml")),
    ("plain", include_str!("../../assets/themes/plain.yaml")),
    ("colour-blind-dark", include_str!("../../assets/themes/colour-blind-dark.yaml")),
    ("colour-blind-light", include_str!("../../assets/themes/colour-blind-light.yaml")),
];

/// How each role looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    styles: [Style; ROLES.len()],
}

impl Default for Theme {
    fn default() -> Self {
        built_in()[2]
    }
}

/// All built-in themes, in the order of `BUILT_IN`.
fn built_in() -> &'static [Theme; BUILT_IN.len()] {
    static THEMES: OnceLock<[Theme; BUILT_IN.len()]> = OnceLock::new();
    // A file with a mistake in it would leave its theme without colours; a test reads them all.
    THEMES.get_or_init(|| {
        BUILT_IN.map(|(name, text)| read(name, text).unwrap_or(Theme { styles: [Style::new(); ROLES.len()] }))
    })
}

impl Theme {
    /// A built-in theme.
    pub fn named(name: &str) -> Option<Theme> {
        BUILT_IN.iter().position(|(known, _)| *known == name).map(|at| built_in()[at])
    }

    /// The names of the built-in themes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The one without colours.
    pub fn plain() -> Theme {
        built_in()[3]
    }

    /// What the environment asks for: `NO_COLOR`, `COLORTERM`, `COLORFGBG`, `TERM`.
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> Self {
        let [dark, light, sixteen, plain, ..] = *built_in();
        let full = |name: &str| var(name).filter(|text| !text.is_empty());
        if full("NO_COLOR").is_some() || full("TERM").as_deref() == Some("dumb") {
            return plain;
        }
        if !matches!(full("COLORTERM").as_deref(), Some("truecolor" | "24bit")) {
            return sixteen;
        }
        let background = full("COLORFGBG").and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        match background {
            Some(7 | 15) => light,
            Some(_) => dark,
            // Most are dark; `asks_background` says whether the terminal can be asked.
            None => dark,
        }
    }

    /// Whether only the terminal itself can tell if its background is light.
    pub fn asks_background(var: impl Fn(&str) -> Option<String>) -> bool {
        let full = |name: &str| var(name).filter(|text| !text.is_empty());
        let known = full("COLORFGBG").and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        let colours = matches!(full("COLORTERM").as_deref(), Some("truecolor" | "24bit"));
        colours && known.is_none() && full("NO_COLOR").is_none() && full("TERM").as_deref() != Some("dumb")
    }

    /// The theme for a background.
    pub fn on_background(light: bool) -> Theme {
        if light { built_in()[1] } else { built_in()[0] }
    }

    /// The theme that the settings name: the user's own file of that name, else a built-in one; `auto` leaves it to
    /// the terminal.
    ///
    /// # Errors
    /// Where there is none of that name, or its file has a mistake in it.
    pub fn chosen(choice: &ThemeChoice, terminal: Theme) -> Result<Theme, Box<Diagnostic>> {
        if let Some((file, text)) = &choice.file {
            return read(file, text);
        }
        if choice.name == "auto" {
            return Ok(terminal);
        }
        Theme::named(&choice.name).ok_or_else(|| {
            let names: Vec<&str> = Theme::names().collect();
            let near =
                nearest(&choice.name, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let hint = near.unwrap_or_else(|| format!("there are {}, and auto", names.join(", ")));
            problem(choice.place.clone(), format!("there is no theme `{}`", choice.name), Some(hint))
        })
    }

    /// How a role looks.
    pub fn style(self, role: Role) -> Style {
        self.styles[role as usize]
    }
}

/// Reads a theme file.
fn read(file: &str, text: &str) -> Result<Theme, Box<Diagnostic>> {
    let at = |line, column| Place { file: file.to_owned(), line, column };
    let node =
        yaml::parse(text).map_err(|e| problem(at(e.line, e.column), words::one_line(&e.message), None))?;
    let Kind::Mapping(pairs) = &node.kind else {
        let message = "a theme is a map from roles to looks, such as `good: green`".to_owned();
        return Err(problem(at(node.line, node.column), message, None));
    };
    let mut theme = Theme { styles: [Style::new(); ROLES.len()] };
    theme.styles[Role::Selected as usize] = Style::new().add_modifier(Modifier::REVERSED);
    for (role, look) in pairs {
        let name = role.to_text().unwrap_or_default();
        let Some((_, known)) = ROLES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = ROLES.iter().map(|(name, _)| *name).collect();
            let hint = nearest(&name, names.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let hint = hint.unwrap_or_else(|| format!("there are {}", names.join(", ")));
            return Err(problem(
                at(role.line, role.column),
                format!("there is no role `{name}`"),
                Some(hint),
            ));
        };
        let text = look.to_text().unwrap_or_default();
        let style = style(&text).ok_or_else(|| {
            let hint = "a look is like `#7dcfff bold`, `green`, or `on blue underlined`".to_owned();
            problem(at(look.line, look.column), format!("`{text}` is no look"), Some(hint))
        })?;
        theme.styles[*known as usize] = style;
    }
    Ok(theme)
}

/// `#7dcfff on black bold`
fn style(text: &str) -> Option<Style> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underlined" => style.add_modifier(Modifier::UNDERLINED),
            "reversed" => style.add_modifier(Modifier::REVERSED),
            "on" => style.bg(words.next()?.parse::<Color>().ok()?),
            color => style.fg(color.parse::<Color>().ok()?),
        };
    }
    Some(style)
}

fn problem(place: Place, message: String, hint: Option<String>) -> Box<Diagnostic> {
    let place = Some(place);
    Box::new(Diagnostic { severity: Severity::Error, message, place, excerpt: None, hint, kind: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detect(pairs: &[(&str, &str)]) -> Theme {
        Theme::detect(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_environment_decides() {
        let named = |name| Theme::named(name).unwrap();
        assert_eq!(detect(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), named("plain"));
        assert_eq!(detect(&[("NO_COLOR", ""), ("TERM", "xterm")]), named("sixteen"));
        assert_eq!(detect(&[("COLORTERM", "truecolor"), ("COLORFGBG", "0;15")]), named("light"));
        assert_eq!(detect(&[("COLORTERM", "24bit"), ("COLORFGBG", "15;0")]), named("dark"));
        assert_eq!(detect(&[("COLORTERM", "24bit")]), named("dark"));
        let asks = |pairs: &[(&str, &str)]| {
            let var =
                |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            Theme::asks_background(var)
        };
        assert!(asks(&[("COLORTERM", "24bit")]) && asks(&[("COLORTERM", "truecolor"), ("COLORFGBG", "x")]));
        for known in [("COLORFGBG", "0;15"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("COLORTERM", "8bit")] {
            assert!(!asks(&[known, ("COLORTERM", "truecolor")]), "{known:?}");
        }
        assert_eq!(
            (Theme::on_background(true), Theme::on_background(false)),
            (named("light"), named("dark"))
        );
    }

    #[test]
    fn the_built_in_files_name_every_role_and_no_other() {
        for (name, text) in BUILT_IN {
            let theme = read(name, text).unwrap_or_else(|problem| panic!("{name}: {problem:?}"));
            assert_eq!(Some(theme), Theme::named(name));
            for (role, _) in ROLES {
                assert!(text.contains(&format!("\n{role}: ")), "{name} leaves {role} out");
            }
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/themes");
            assert!(folder.join(format!("{name}.yaml")).is_file());
        }
        for (i, (_, role)) in ROLES.iter().enumerate() {
            assert_eq!(*role as usize, i);
        }
    }

    #[test]
    fn what_must_be_told_apart_differs_in_every_theme_with_colours() {
        for name in Theme::names().filter(|name| *name != "plain") {
            let theme = Theme::named(name).unwrap();
            let colors = [Role::Good, Role::Busy, Role::Bad].map(|role| theme.style(role).fg);
            assert!(colors[0] != colors[1] && colors[1] != colors[2] && colors[0] != colors[2], "{name}");
        }
        for (_, role) in ROLES {
            let style = Theme::plain().style(role);
            assert_eq!((style.fg, style.bg), (None, None), "{role:?}");
        }
    }

    #[test]
    fn a_theme_of_ones_own_is_read_and_its_mistakes_have_a_place() {
        let place = || Place { file: "config.yaml".to_owned(), line: 1, column: 8 };
        let own = |text: &str| {
            let file = Some(("themes/mine.yaml".to_owned(), text.to_owned()));
            let choice = ThemeChoice { name: "mine".to_owned(), place: place(), own: true, file };
            Theme::chosen(&choice, Theme::plain()).map_err(|p| {
                format!("{}: {} {}", p.place.as_ref().unwrap(), p.message, p.hint.clone().unwrap_or_default())
            })
        };
        let theme = own("good: \"#0060a8 on white italic\"\nbad: light-red\n").unwrap();
        let good = Style::new().fg(Color::Rgb(0, 0x60, 0xa8)).bg(Color::White).add_modifier(Modifier::ITALIC);
        assert_eq!((theme.style(Role::Good), theme.style(Role::Bad).fg), (good, Some(Color::LightRed)));
        assert_eq!(
            own("goood: red\n").unwrap_err(),
            "themes/mine.yaml:1:1: there is no role `goood` did you mean `good`?"
        );
        assert!(
            own("good: reddish\n").unwrap_err().starts_with("themes/mine.yaml:1:7: `reddish` is no look")
        );
        assert!(own("good: [\n").unwrap_err().starts_with("themes/mine.yaml:"));
        let none = ThemeChoice { name: "drak".to_owned(), place: place(), own: true, file: None };
        assert_eq!(
            Theme::chosen(&none, Theme::plain()).unwrap_err().hint.as_deref(),
            Some("did you mean `dark`?")
        );
        let auto = ThemeChoice { name: "auto".to_owned(), ..none };
        assert_eq!(Theme::chosen(&auto, Theme::plain()).unwrap(), Theme::plain());
    }
}
