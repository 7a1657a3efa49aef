//! Signs and lines for terminals that show ASCII alone: each cell gets the letter that stands for its sign. Done once
//! for a whole frame, so that no sign is forgotten.

use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthStr as _;

/// Whether the locale, or the terminal, can show no more than ASCII. Where nothing names a locale, most terminals can.
pub(crate) fn ascii_only(var: impl Fn(&str) -> Option<String>) -> bool {
    let locale =
        ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| var(name).filter(|text| !text.is_empty()));
    let utf8 = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("utf-8") || text.contains("utf8")
    };
    let term = var("TERM").unwrap_or_default();
    // The console of Linux has a few hundred characters, and a VT terminal fewer.
    let few = term == "linux" || ["vt1", "vt2", "vt3", "vt5"].iter().any(|begin| term.starts_with(begin));
    few || locale.is_some_and(|text| !utf8(&text))
}

/// The letter for a sign; `?` for what has none.
fn letter(sign: char) -> char {
    match sign {
        '✗' | '×' => 'x',
        '⚠' => '!',
        '◐' => 'o',
        '●' | '•' | '*' | '⚑' => '*',
        '○' | '·' | '░' => '.',
        '✓' | '▾' | '↓' | '▼' => 'v',
        '▸' | '→' | '›' | '»' => '>',
        '◂' | '←' | '‹' => '<',
        '≠' | '█' | '▐' | '▌' | '▓' | '▒' => '#',
        '↻' => '@',
        '…' => '~',
        '↑' => '^',
        '▏' | '│' | '┃' | '║' => '|',
        '─' | '━' | '═' | '–' | '—' | '−' => '-',
        '┌' | '┐' | '└' | '┘' | '├' | '┤' | '┬' | '┴' | '┼' => '+',
        '‘' | '’' => '\'',
        '“' | '”' => '"',
        'µ' => 'u',
        _ => '?',
    }
}

/// Makes a frame of ASCII alone.
pub(crate) fn make_ascii(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if cell.symbol().is_ascii() {
            continue;
        }
        let wide = cell.symbol().width() > 1;
        let letter = cell.symbol().chars().next().map_or(' ', letter);
        cell.set_char(letter);
        // The cell behind a wide character is empty and gets drawn now.
        debug_assert!(!wide || letter == '?');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::tests::fixture::busy;
    use crate::tui::tests::frames::{screen, text};
    use crate::tui::view::ViewState;

    fn asks(pairs: &[(&str, &str)]) -> bool {
        ascii_only(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_locale_and_the_terminal_decide() {
        for (pairs, ascii) in [
            (&[("LANG", "C")][..], true),
            (&[("LANG", "en_US.ISO-8859-1")], true),
            (&[("LC_ALL", "POSIX"), ("LANG", "de_DE.UTF-8")], true),
            (&[("LC_ALL", ""), ("LC_CTYPE", "C.utf8"), ("LANG", "C")], false),
            (&[("LANG", "en_US.UTF-8")], false),
            (&[("LANG", "en_US.UTF-8"), ("TERM", "linux")], true),
            (&[("TERM", "vt100")], true),
            (&[("TERM", "xterm")], false),
        ] {
            assert_eq!(asks(pairs), ascii, "{pairs:?}");
        }
    }

    #[test]
    fn a_frame_of_ascii_says_the_same_at_the_same_places() {
        let state = busy();
        for size in [(40, 10), (80, 24), (120, 36), (200, 50)] {
            for keys in ["", "?", "a", "4", "j D"] {
                let full = text(&screen(&state, &mut ViewState::default(), keys, size));
                let mut view = ViewState::default();
                view.look.ascii = true;
                let plain = text(&screen(&state, &mut view, keys, size));
                assert!(plain.is_ascii(), "{keys} {size:?}\n{plain}");
                assert!(!plain.contains('?') || full.contains('?'), "a sign has no letter:\n{plain}");
                for (full, plain) in full.lines().zip(plain.lines()) {
                    assert_eq!(full.chars().count(), plain.chars().count(), "{plain}");
                }
            }
        }
    }
}
