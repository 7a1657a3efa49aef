//! Text by the cell: cutting, padding, wrapping, and rows of coloured pieces. Control characters never get
//! through.

use super::theme::{Role, Theme};
use opdev_event::words::is_hidden;
use ratatui::buffer::Buffer;
use ratatui::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many cells a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cut to `most` cells, with an ellipsis where something is missing.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut at = 0;
    for c in text.chars() {
        let cells = c.width().unwrap_or(0);
        if at + cells + 1 > most {
            break;
        }
        at += cells;
        out.push(c);
    }
    if most > 0 {
        out.push('…');
    }
    out
}

/// Cut at the end of a word, with an ellipsis; in a word only where that is the first one.
pub fn cut_words(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let hard = cut(text, most);
    match hard.trim_end_matches('…').rfind(' ') {
        // A word alone that is half of the room or more is better cut than left out.
        Some(at) if width(&hard[..at]) * 2 >= most => {
            format!("{}…", hard[..at].trim_end_matches([' ', '·', ':', ',']))
        }
        Some(_) | None => hard,
    }
}

/// Cut in front, so that the end stays.
pub fn cut_front(text: &str, most: usize) -> String {
    let total = width(text);
    if total <= most {
        return text.to_owned();
    }
    let mut drop = total + 1 - most.max(1);
    let rest = text.trim_start_matches(|c: char| {
        let goes = drop > 0;
        drop = drop.saturating_sub(c.width().unwrap_or(0));
        goes
    });
    if most == 0 { String::new() } else { format!("…{rest}") }
}

/// A path cut from the left, by whole folders where that is possible.
pub fn cut_path(path: &str, most: usize) -> String {
    if width(path) <= most {
        return path.to_owned();
    }
    let ends = path.match_indices('/').map(|(at, _)| &path[at..]);
    let whole = ends.map(|end| format!("…{end}")).find(|text| width(text) <= most);
    whole.unwrap_or_else(|| cut_front(path, most))
}

/// Texts cut to `most` cells so that those that differ still do, as far as that is possible: in the middle
/// first, where that is not enough at another place.
pub fn cut_apart(texts: &[&str], most: usize) -> Vec<String> {
    let room = most.saturating_sub(1);
    let heads = [room / 2, room * 3 / 4, room / 4, room, 0];
    let cuts = heads.iter().map(|head| {
        let cut: Vec<String> = texts.iter().map(|text| cut_at(text, *head, most)).collect();
        let alike =
            (0..texts.len()).filter(|i| (0..*i).any(|j| texts[*i] != texts[j] && cut[*i] == cut[j])).count();
        (alike, cut)
    });
    cuts.min_by_key(|(alike, _)| *alike).map(|(_, cut)| cut).unwrap_or_default()
}

/// The first `head` cells, an ellipsis, and as much of the end as fits.
fn cut_at(text: &str, head: usize, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    if head + 1 >= most {
        return cut(text, most);
    }
    let mut front = cut(text, head + 1);
    front.pop();
    let rest = most - width(&front);
    format!("{front}{}", cut_front(text, rest))
}

/// Cut and padded on the right to exactly `cells`.
pub fn left(text: &str, cells: usize) -> String {
    let mut text = cut(text, cells);
    text.push_str(&" ".repeat(cells.saturating_sub(width(&text))));
    text
}

/// Cut and padded on the left to exactly `cells`.
pub fn right(text: &str, cells: usize) -> String {
    let text = cut(text, cells);
    format!("{}{text}", " ".repeat(cells.saturating_sub(width(&text))))
}

/// Broken into lines of at most `cells`, at spaces where there are any.
pub fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = Vec::new();
    for line in text.split('\n') {
        // Counted along: measured anew at each character, a long text without width would hold the screen up.
        let (mut at, mut used) = (String::new(), 0);
        for word in line.split_inclusive(' ') {
            if !at.is_empty() && used + width(word.trim_end()) > cells {
                lines.push(at.trim_end().to_owned());
                (at, used) = (String::new(), 0);
            }
            for c in word.chars() {
                // It makes the character before it wider.
                let more = if c == '\u{fe0f}' { 1 } else { cell(c) };
                if used + more > cells && c != ' ' {
                    lines.push(std::mem::take(&mut at));
                    used = 0;
                }
                at.push(c);
                used += more;
            }
        }
        lines.push(at.trim_end().to_owned());
    }
    lines
}

/// Text that is safe to draw: tabs become spaces, other control characters, and those that turn text around,
/// a dot. Flags become the two letters of their country: terminals do not agree on how wide a flag is.
pub fn clean(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '\t' => [Some(' '), Some(' ')],
            c if is_hidden(c) => [Some('·'), None],
            '\u{1f1e6}'..='\u{1f1ff}' => [char::from_u32(u32::from(c) - 0x1f1e6 + u32::from('A')), None],
            c => [Some(c), None],
        })
        .flatten()
        .collect()
}

/// One row of coloured pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row(pub Vec<(Role, String)>);

impl Row {
    /// A row of one piece.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Row(vec![(role, text.into())])
    }

    /// The row and one more piece.
    #[must_use]
    pub fn and(mut self, role: Role, text: impl Into<String>) -> Self {
        self.0.push((role, text.into()));
        self
    }

    /// Its text without colours.
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, text)| text.as_str()).collect()
    }

    /// The row on as many rows as it needs, broken at spaces where there are any; what follows is indented
    /// like the first word.
    pub fn wrapped(&self, cells: usize) -> Vec<Row> {
        let all: Vec<(Role, char)> =
            self.0.iter().flat_map(|(role, text)| text.chars().map(move |c| (*role, c))).collect();
        let lead = all.iter().take_while(|(_, c)| !c.is_alphanumeric());
        let indent = lead.map(|(_, c)| cell(*c)).sum::<usize>();
        let indent = if indent * 2 > cells { 0 } else { indent };
        let mut rows = Vec::new();
        let mut rest = all.as_slice();
        while !rest.is_empty() || rows.is_empty() {
            let before = if rows.is_empty() { 0 } else { indent };
            let (line, after) = rest.split_at(fitting(rest, cells.saturating_sub(before).max(1), indent));
            let mut row = Row::default();
            if before > 0 {
                row = row.and(Role::Text, " ".repeat(before));
            }
            for (role, c) in line {
                match row.0.last_mut() {
                    Some((last, text)) if last == role => text.push(*c),
                    _ => row = row.and(*role, *c),
                }
            }
            rows.push(row);
            // The space that the line broke at belongs to neither line.
            rest = match after.split_first() {
                Some(((_, ' '), rest)) => rest,
                Some(_) | None => after,
            };
        }
        rows
    }

    /// Draws it, cut with an ellipsis, over `cells` cells; the selected row keeps its pieces but looks
    /// selected.
    pub fn draw(&self, buffer: &mut Buffer, theme: Theme, (x, y): (u16, u16), cells: usize, selected: bool) {
        let total: usize = self.0.iter().map(|(_, text)| width(text)).sum();
        let mut at = 0;
        for (role, text) in &self.0 {
            // Whatever was there before, a border perhaps, leaves no trace.
            let mut style = Style::reset().patch(theme.style(*role));
            if selected {
                style = style.patch(theme.style(Role::Selected));
            }
            let room = cells.saturating_sub(at);
            let text = clean(text);
            let text = if total > cells && width(&text) >= room { cut_hard(&text, room) } else { text };
            buffer.set_stringn(x + at as u16, y, &text, room, style);
            at += width(&text).min(room);
            if at >= cells {
                break;
            }
        }
        if selected && at < cells {
            let rest = " ".repeat(cells - at);
            buffer.set_stringn(x + at as u16, y, rest, cells - at, theme.style(Role::Selected));
        }
    }
}

fn cell(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// How many characters go on one line of `cells`: all, or up to the last space that has a word before it, or
/// as many as fit.
fn fitting(text: &[(Role, char)], cells: usize, indent: usize) -> usize {
    let mut at = 0;
    let mut space = None;
    for (i, (_, c)) in text.iter().enumerate() {
        at += cell(*c);
        if at > cells && i > 0 {
            return if *c == ' ' { i } else { space.unwrap_or(i) };
        }
        if *c == ' ' && at > indent + 1 {
            space = Some(i + 1);
        }
    }
    text.len()
}

/// Cut with an ellipsis even where the text would just fit, because more follows it.
fn cut_hard(text: &str, cells: usize) -> String {
    if width(text) > cells || cells == 0 {
        return cut(text, cells);
    }
    let mut text = text.to_owned();
    text.pop();
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_cells() {
        assert_eq!(cut("memcached", 5), "memc…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(cut_front("charts/memcached/x.yaml", 8), "…/x.yaml".to_owned());
        assert_eq!(cut_apart(&["ArmadaChart", "ArmadaChartGroup"], 9), ["Arma…hart", "Arma…roup"]);
        assert_eq!(cut_apart(&["x-long-name-1", "y-long-name-1"], 6), ["x-…e-1", "y-…e-1"]);
        assert_eq!(cut_apart(&["short", "日本語日本語"], 6), ["short", "日…語"]);
        assert_eq!(right("3/3", 5), "  3/3");
        assert_eq!(left("日本", 5), "日本 ");
    }

    #[test]
    fn wrapping_breaks_at_spaces_and_then_anywhere() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("⚠\u{fe0f}⚠\u{fe0f}⚠\u{fe0f}", 4), ["⚠\u{fe0f}⚠\u{fe0f}", "⚠\u{fe0f}"]);
        // Takes minutes where the line is measured at each character.
        let marks = format!("a{}", "\u{301}".repeat(500_000));
        assert_eq!(wrap(&marks, 4), [marks]);
    }

    #[test]
    fn rows_wrap_below_their_first_word() {
        let row =
            Row::new(Role::Dim, "  ⚑ ").and(Role::Text, "Deployment modified by ").and(Role::Key, "kubectl");
        let texts = |cells| row.wrapped(cells).iter().map(Row::text).collect::<Vec<_>>();
        assert_eq!(texts(24), ["  ⚑ Deployment modified ", "    by kubectl"]);
        assert_eq!(texts(60), ["  ⚑ Deployment modified by kubectl"]);
        assert_eq!(Row::new(Role::Text, "  abcdefgh").wrapped(6).len(), 2);
        assert_eq!(Row::default().wrapped(5), [Row::default()]);
        assert_eq!(row.wrapped(1).len(), 29, "no width is too small: each letter has a line of its own");
    }

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(clean("a\tb\u{1b}[31mc\r\n"), "a  b·[31mc··");
        assert_eq!(clean("🇩🇪 x"), "DE x", "as wide in each terminal");
    }
}
