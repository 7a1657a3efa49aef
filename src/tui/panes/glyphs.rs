//! Signs and lines for terminals that show ASCII alone: each cell gets the letter that stands for its sign.
//! Done once for a whole frame, so that no sign is forgotten.

use ratatui::buffer::Buffer;
use unicode_width::UnicodeWidthStr as _;

/// Returns true if the locale, or the terminal, can show no more than ASCII. Where nothing names a locale,
/// most terminals can.
pub fn ascii_only(var: impl Fn(&str) -> Option<String>) -> bool {
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
pub fn make_ascii(buffer: &mut Buffer) {
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
}
