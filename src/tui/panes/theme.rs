//! How each role looks: eight colours, read from the files in `themes`, which are built in, or from one of
//! the user's own, and a weight that belongs to the role. Colour is never the only sign: every role that
//! matters has a symbol or a word, too.

use opdev_event::{Diagnostic, Place, Severity, ThemeChoice, words};
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Kind};
use ratatui::style::{Color, Modifier, Style};
use std::sync::OnceLock;

/// The role of a piece of text.
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

/// The eight colours that a theme file names, and the roles that each of them paints.
const COLOURS: [(&str, &[Role]); 8] = [
    ("text", &[Role::Text, Role::Title]),
    ("muted", &[Role::Dim]),
    ("line", &[Role::Border]),
    ("accent", &[Role::Focus, Role::Key]),
    ("good", &[Role::Good, Role::Added]),
    ("warn", &[Role::Busy, Role::Changed, Role::Match, Role::BorderConfirmed]),
    ("bad", &[Role::Bad, Role::Removed, Role::Banner, Role::BorderReadOnly]),
    ("selected", &[Role::Selected]),
];

/// The weight of a role, whatever its colour.
fn weight(role: Role) -> Modifier {
    match role {
        Role::Title | Role::Focus | Role::Key | Role::Bad | Role::Banner => Modifier::BOLD,
        Role::Match => Modifier::UNDERLINED.union(Modifier::BOLD),
        Role::Text
        | Role::Dim
        | Role::Border
        | Role::Good
        | Role::Busy
        | Role::Added
        | Role::Removed
        | Role::Changed
        | Role::Selected
        | Role::BorderConfirmed
        | Role::BorderReadOnly => Modifier::empty(),
    }
}

/// The themes that are built in.
const BUILT_IN: [(&str, &str); 7] = [
    ("dark", include_str!("themes/dark.yaml")),
    ("light", include_str!("themes/light.yaml")),
    ("sixteen", include_str!("themes/sixteen.yaml")),
    ("plain", include_str!("themes/plain.yaml")),
    ("sixteen-light", include_str!("themes/sixteen-light.yaml")),
    ("colour-blind-dark", include_str!("themes/colour-blind-dark.yaml")),
    ("colour-blind-light", include_str!("themes/colour-blind-light.yaml")),
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

    /// The wishes of the environment: `NO_COLOR`, `COLORTERM`, `COLORFGBG`, `TERM`.
    pub fn detect(var: impl Fn(&str) -> Option<String>) -> Self {
        let [_, _, _, plain, ..] = *built_in();
        let terminal = Terminal::of(&var);
        match terminal.colours {
            Colours::None => plain,
            // Most are dark; `asks_background` says whether the terminal can be asked.
            colours => Theme::on_background(colours, terminal.light.unwrap_or(false)),
        }
    }

    /// Returns true if only the terminal itself can tell if its background is light.
    pub fn asks_background(var: impl Fn(&str) -> Option<String>) -> bool {
        let terminal = Terminal::of(&var);
        terminal.colours != Colours::None && terminal.light.is_none() && terminal.answers
    }

    /// The theme for a background that the terminal has told of.
    pub fn told(var: impl Fn(&str) -> Option<String>, light: bool) -> Theme {
        Theme::on_background(Terminal::of(&var).colours, light)
    }

    fn on_background(colours: Colours, light: bool) -> Theme {
        let [dark, bright, sixteen, plain, sixteen_bright, ..] = *built_in();
        match (colours, light) {
            (Colours::None, _) => plain,
            (Colours::Sixteen, false) => sixteen,
            (Colours::Sixteen, true) => sixteen_bright,
            (Colours::All, false) => dark,
            (Colours::All, true) => bright,
        }
    }

    /// The theme that the settings name: the user's own file of that name, else a built-in one; `auto` leaves
    /// it to the terminal.
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

/// How many colours a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colours {
    None,
    Sixteen,
    All,
}

/// The environment's facts about a terminal.
struct Terminal {
    colours: Colours,
    /// True if its background is light, where that is known.
    light: Option<bool>,
    /// True if it can be asked: some do not answer, and some show the question.
    answers: bool,
}

impl Terminal {
    fn of(var: &impl Fn(&str) -> Option<String>) -> Terminal {
        let full = |name: &str| var(name).filter(|text| !text.is_empty());
        let term = full("TERM").unwrap_or_default();
        let vt = ["vt1", "vt2", "vt3", "vt5"].iter().any(|begin| term.starts_with(begin));
        // GNU screen understands no 24-bit colours, but whoever starts it in a modern terminal hands the
        // variable on.
        let screen = full("STY").is_some() && term.starts_with("screen");
        let truecolor = matches!(full("COLORTERM").as_deref(), Some("truecolor" | "24bit"));
        let colours = match () {
            () if full("NO_COLOR").is_some() || term == "dumb" || vt => Colours::None,
            () if truecolor && !screen => Colours::All,
            () => Colours::Sixteen,
        };
        let background = full("COLORFGBG").and_then(|text| text.rsplit(';').next()?.parse::<u8>().ok());
        let light = background.map(|colour| matches!(colour, 7 | 15));
        Terminal { colours, light, answers: !screen && term != "linux" }
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
    for (_, role) in ROLES {
        theme.styles[role as usize] = theme.styles[role as usize].add_modifier(weight(role));
    }
    // The eight colours first, whatever their order: what names one role alone is more than they are.
    let is_colour = |name: &str| COLOURS.iter().any(|(known, _)| *known == name);
    let names = pairs.iter().map(|(role, look)| (role.to_text().unwrap_or_default(), role, look));
    let mut named: Vec<_> = names.collect();
    named.sort_by_key(|(name, ..)| !is_colour(name));
    for (name, role, look) in named {
        let colour = COLOURS.iter().find(|(known, _)| *known == name).map(|(_, roles)| *roles);
        let alone =
            ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| std::slice::from_ref(role));
        let Some(roles) = colour.or(alone) else {
            let names: Vec<&str> = COLOURS.iter().map(|(name, _)| *name).collect();
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
        for role in roles {
            let own = if colour.is_some() { weight(*role) } else { Modifier::empty() };
            theme.styles[*role as usize] = style.add_modifier(own);
        }
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
        assert_eq!(detect(&[("TERM", "xterm"), ("COLORFGBG", "0;15")]), named("sixteen-light"));
        assert_eq!(detect(&[("TERM", "vt100")]), named("plain"));
        assert_eq!(detect(&[("COLORTERM", "truecolor"), ("COLORFGBG", "0;15")]), named("light"));
        assert_eq!(detect(&[("COLORTERM", "24bit"), ("COLORFGBG", "15;0")]), named("dark"));
        assert_eq!(detect(&[("COLORTERM", "24bit")]), named("dark"));
        let screen = [("COLORTERM", "truecolor"), ("TERM", "screen-256color"), ("STY", "1.pts-0.host")];
        assert_eq!(detect(&screen), named("sixteen"), "GNU screen shows 24-bit colours wrong");
        assert_eq!(detect(&screen[..2]), named("dark"), "tmux calls itself so, too, and shows them");
        let var = |pairs: &[(&str, &str)], name: &str| {
            pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        let asks = |pairs: &[(&str, &str)]| Theme::asks_background(|name| var(pairs, name));
        assert!(asks(&[("COLORTERM", "24bit")]) && asks(&[("COLORTERM", "truecolor"), ("COLORFGBG", "x")]));
        assert!(asks(&[("TERM", "xterm-256color")]), "ssh hands COLORTERM on to nobody");
        for known in [("COLORFGBG", "0;15"), ("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "linux")] {
            assert!(!asks(&[known, ("COLORTERM", "truecolor")]), "{known:?}");
        }
        assert!(!asks(&screen));
        let told = |pairs: &[(&str, &str)], light| Theme::told(|name| var(pairs, name), light);
        assert_eq!(told(&[("COLORTERM", "24bit")], true), named("light"));
        assert_eq!(told(&[("COLORTERM", "24bit")], false), named("dark"));
        assert_eq!(told(&[("TERM", "xterm")], true), named("sixteen-light"));
    }

    #[test]
    fn the_built_in_files_name_the_eight_colours_and_no_other() {
        for (name, text) in BUILT_IN {
            let theme = read(name, text).unwrap_or_else(|problem| panic!("{name}: {problem:?}"));
            assert_eq!(Some(theme), Theme::named(name));
            for (colour, _) in COLOURS {
                assert!(text.contains(&format!("\n{colour}: ")), "{name} leaves {colour} out");
            }
            assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), COLOURS.len(), "{name}");
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("themes");
            assert!(folder.join(format!("{name}.yaml")).is_file());
        }
        for (i, (_, role)) in ROLES.iter().enumerate() {
            assert_eq!(*role as usize, i);
            let painted = COLOURS.iter().filter(|(_, roles)| roles.contains(role)).count();
            assert_eq!(painted, 1, "{role:?} has one colour");
        }
    }

    /// The red, green and blue of a colour; the sixteen as xterm has them.
    fn rgb(color: Color) -> [u8; 3] {
        match color {
            Color::Rgb(r, g, b) => [r, g, b],
            Color::Black => [0, 0, 0],
            Color::Red => [205, 0, 0],
            Color::Green => [0, 205, 0],
            Color::Yellow => [205, 205, 0],
            Color::Blue => [0, 0, 238],
            Color::Magenta => [205, 0, 205],
            Color::Cyan => [0, 205, 205],
            Color::LightRed => [255, 0, 0],
            Color::White => [255, 255, 255],
            other => panic!("{other:?} is in no theme"),
        }
    }

    fn light_of(color: [u8; 3]) -> f64 {
        let part = |c: u8| {
            let c = f64::from(c) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(color[0]) + 0.7152 * part(color[1]) + 0.0722 * part(color[2])
    }

    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let (a, b) = (light_of(a), light_of(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Text and background that a terminal has on its own, and the foreground of a role between them.
    fn painted(style: Style, text: [u8; 3], back: [u8; 3]) -> [u8; 3] {
        match (style.fg, style.add_modifier.contains(Modifier::DIM)) {
            (Some(color), _) => rgb(color),
            (None, false) => text,
            // xterm and VTE take two thirds of the way from the background to the text.
            (None, true) => [0, 1, 2].map(|i| ((u16::from(text[i]) * 2 + u16::from(back[i])) / 3) as u8),
        }
    }

    #[test]
    fn every_colour_can_be_read_on_its_background_and_on_the_selected_row() {
        type Rgb = [u8; 3];
        let dark: [(Rgb, Rgb); 2] = [([0xc0, 0xca, 0xf5], [0x1a, 0x1b, 0x26]), ([0xe5; 3], [0; 3])];
        let bright: [(Rgb, Rgb); 2] = [([0x1f, 0x23, 0x28], [0xff; 3]), ([0; 3], [0xfa; 3])];
        for (name, grounds) in [
            ("dark", &dark[..]),
            ("light", &bright[..]),
            ("colour-blind-dark", &dark[..]),
            ("colour-blind-light", &bright[..]),
            ("sixteen", &dark[1..]),
            ("sixteen-light", &bright[..1]),
            ("plain", &dark[1..]),
        ] {
            let theme = Theme::named(name).unwrap();
            let selected = theme.style(Role::Selected);
            for (text, back) in grounds {
                for (role_name, role) in ROLES.into_iter().filter(|(_, role)| *role != Role::Selected) {
                    let line = matches!(role, Role::Border | Role::BorderConfirmed | Role::BorderReadOnly);
                    let least = if line { 3.0 } else { 4.5 };
                    let color = painted(theme.style(role), *text, *back);
                    let plain = contrast(color, *back);
                    assert!(plain >= least, "{name}: {role_name} has {plain:.2}:1, wanted {least}:1");
                    if line {
                        continue;
                    }
                    // A reversed row swaps the two, which changes no contrast.
                    let row = selected.bg.map_or(*back, rgb);
                    let chosen = contrast(color, row);
                    assert!(chosen >= least, "{name}: {role_name} has {chosen:.2}:1 on the selected row");
                }
            }
        }
    }

    #[test]
    fn what_must_be_told_apart_differs_in_every_theme_with_colours() {
        for name in Theme::names().filter(|name| *name != "plain") {
            // On a light background good is the text itself: no green of the sixteen can be read on white.
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
    fn a_file_may_name_a_role_alone_and_old_files_are_read_as_ever() {
        let style = |text: &str, role| read("mine", text).unwrap().style(role);
        let both = "removed: light-red\nbad: red\n";
        assert_eq!(style(both, Role::Removed).fg, Some(Color::LightRed));
        assert_eq!(style(both, Role::Banner), Style::new().fg(Color::Red).add_modifier(Modifier::BOLD));
        assert_eq!(
            style("title: underlined\n", Role::Title),
            Style::new().add_modifier(Modifier::UNDERLINED)
        );
        assert_eq!(style("muted: blue\n", Role::Title), Style::new().add_modifier(Modifier::BOLD));
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
