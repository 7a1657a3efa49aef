//! Places in files as links of the terminal (OSC 8). A frame is drawn as ever; then the cells of each place
//! on it are written once more as a link. So the cells hold no control characters, and their width is what it
//! was. Off where it is not known that the terminal understands links, unless the user's settings turn them
//! on.

use super::act::open_file;
use super::view::ViewState;
use opdev_event::{Place, words};
use opdev_state::State;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use ratatui::buffer::{Buffer, Cell};
use std::path::Path;

/// The bytes that stay as they are in the path of a link.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The end of a link.
pub(super) const END: &str = "\x1b]8;;\x1b\\";

/// Returns true if the terminal is one of those that are known to understand links. In `screen` and `tmux` it
/// is theirs to say, and they do not tell.
pub(super) fn are_known(var: impl Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, values: &[&str]| var(name).is_some_and(|value| values.contains(&value.as_str()));
    let term = var("TERM").unwrap_or_default();
    if term.starts_with("screen") || term.starts_with("tmux") || var("TMUX").is_some() {
        return false;
    }
    let vte = var("VTE_VERSION").and_then(|version| version.parse::<u32>().ok());
    is("TERM_PROGRAM", &["iTerm.app", "WezTerm", "vscode", "ghostty"])
        || ["kitty", "ghostty", "foot", "wezterm", "alacritty"].iter().any(|name| term.contains(name))
        || vte.is_some_and(|version| version >= 5000)
        || ["KONSOLE_VERSION", "WT_SESSION"]
            .iter()
            .any(|name| var(name).is_some_and(|value| !value.is_empty()))
}

/// Cells of a frame that lead to a place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Link {
    /// The sequence that begins it.
    pub(super) begin: String,
    /// The cells, each with its column and row.
    pub(super) cells: Vec<(u16, u16, Cell)>,
}

/// The links of a frame.
pub(super) fn of_frame(buffer: &Buffer, view: &ViewState, state: &State) -> Vec<Link> {
    let Some(started) = state.started.as_ref().filter(|_| view.look.shows_links()) else { return Vec::new() };
    let mut places: Vec<Place> = state.problems().into_iter().filter_map(|problem| problem.place).collect();
    places.extend(open_file::place(view, state));
    places
        .extend(state.impact.held.iter().flat_map(|held| &held.findings).filter_map(|one| one.place.clone()));
    places.dedup();
    if places.is_empty() { Vec::new() } else { find(buffer, &places, Path::new(&started.root)) }
}

/// Where the places stand in a frame.
fn find(buffer: &Buffer, places: &[Place], root: &Path) -> Vec<Link> {
    let mut found: Vec<Link> = Vec::new();
    let area = buffer.area;
    for y in area.top()..area.bottom() {
        let mut text = String::new();
        let mut starts = Vec::new();
        for x in area.left()..area.right() {
            starts.push((text.len(), x));
            text.push_str(buffer[(x, y)].symbol());
        }
        for place in places {
            let full = place.to_string();
            // With its path, or by the name of the file alone.
            let short = words::file_name(&full).to_owned();
            let all = text.match_indices(&full).map(|(at, _)| (at, full.len()));
            let all = all.chain(text.match_indices(&short).map(|(at, _)| (at, short.len())));
            for (at, size) in all {
                let inside = |(start, _): &&(usize, u16)| (at..at + size).contains(start);
                let cells: Vec<(u16, u16, Cell)> =
                    starts.iter().filter(inside).map(|(_, x)| (*x, y, buffer[(*x, y)].clone())).collect();
                let taken = |x: u16| cells.iter().any(|(known, ..)| *known == x);
                let known = |link: &Link| link.cells.iter().any(|(x, row, _)| *row == y && taken(*x));
                if !cells.is_empty() && !found.iter().any(known) {
                    found.push(Link { begin: begin(&root.join(&place.file), place.line), cells });
                }
            }
        }
    }
    found
}

/// The sequence that begins a link. The line is the fragment, as iTerm2 and kitty take it.
fn begin(path: &Path, line: u32) -> String {
    let path = utf8_percent_encode(&path.display().to_string(), PLAIN).to_string();
    let line = if line > 0 { format!("#{line}") } else { String::new() };
    format!("\x1b]8;;file://{path}{line}\x1b\\")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

    fn vars<'a>(set: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn only_terminals_that_are_known_get_links() {
        for known in [
            &[("TERM_PROGRAM", "WezTerm")][..],
            &[("TERM", "xterm-kitty")],
            &[("VTE_VERSION", "7600"), ("TERM", "xterm-256color")],
            &[("WT_SESSION", "1")],
        ] {
            assert!(are_known(vars(known)), "{known:?}");
        }
        for unknown in [
            &[("TERM", "xterm-256color")][..],
            &[("TERM_PROGRAM", "Apple_Terminal")],
            &[("VTE_VERSION", "4200")],
            &[("TERM", "tmux-256color"), ("TERM_PROGRAM", "iTerm.app")],
            &[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux")],
            &[],
        ] {
            assert!(!are_known(vars(unknown)), "{unknown:?}");
        }
    }

    #[test]
    fn a_place_leads_to_its_file_and_line_wherever_it_stands() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 40, 3));
        buffer.set_string(0, 0, " ✗ charts/a b.yaml:4:3 (1 of 2)", ratatui::style::Style::default());
        buffer.set_string(5, 2, "x.ts:9 and x.ts:91", ratatui::style::Style::default());
        let place = |file: &str, line, column| Place { file: file.to_owned(), line, column };
        let places = [place("charts/a b.yaml", 4, 3), place("x.ts", 9, 0), place("gone.ts", 1, 1)];
        let links = find(&buffer, &places, Path::new("/p"));
        assert_eq!(links[0].begin, "\x1b]8;;file:///p/charts/a%20b.yaml#4\x1b\\");
        assert_eq!((links[0].cells[0].0, links[0].cells[0].1, links[0].cells.len()), (3, 0, 19));
        assert_eq!((links[1].cells[0].0, links[1].cells.len()), (5, 6));
        let hostile = begin(Path::new("/p/\x1b]8;;x\x07"), 1);
        assert_eq!(hostile.matches('\x1b').count(), 2, "{hostile:?}");
    }
}
