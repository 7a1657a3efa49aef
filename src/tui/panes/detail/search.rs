//! Searching in the lines of the detail pane: what matches stands out, and one goes from match to match.

use super::super::text::Row;
use super::super::theme::Role;
use crate::lists::filter::Filter;

/// The search in the detail pane.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// As typed; words, or a regular expression between slashes.
    pub text: String,
    pub filter: Filter,
    /// The line of the match that was gone to last.
    pub line: Option<usize>,
    /// The lines that match, until the lines change.
    found: Option<Vec<usize>>,
}

impl Search {
    /// Searches for something else.
    pub fn set(&mut self, text: String) {
        *self = Search { filter: Filter::new(&text), text, line: None, found: None };
    }

    /// Searches for more.
    pub fn type_text(&mut self, more: &str) {
        if self.text.len() + more.len() < 200 {
            self.set(format!("{}{more}", self.text));
        }
    }

    /// The lines are other ones.
    pub fn forget_lines(&mut self) {
        self.found = None;
    }

    /// How many lines match, and which of them was gone to last, counted from 1.
    pub fn count(&mut self, rows: &[Row]) -> (usize, usize) {
        let line = self.line;
        let found = self.lines(rows);
        let at = line.and_then(|line| found.iter().position(|known| *known == line));
        (at.map_or(0, |at| at + 1), found.len())
    }

    pub fn lines(&mut self, rows: &[Row]) -> &[usize] {
        let filter = &self.filter;
        self.found.get_or_insert_with(|| {
            if filter.is_empty() {
                return Vec::new();
            }
            let matching = rows.iter().enumerate().filter(|(_, row)| filter.text(&row.text()));
            matching.map(|(at, _)| at).collect()
        })
    }
}

/// The row with what matches made to stand out.
pub fn highlight(row: &Row, filter: &Filter) -> Row {
    let ranges = filter.ranges(&row.text());
    if ranges.is_empty() {
        return row.clone();
    }
    let inside = |at: usize| ranges.iter().any(|range| range.contains(&at));
    let mut out = Row::default();
    let mut start = 0;
    for (role, text) in &row.0 {
        let mut piece = String::new();
        let mut hit = false;
        for (at, c) in text.char_indices() {
            if inside(start + at) != hit && !piece.is_empty() {
                out = out.and(if hit { Role::Match } else { *role }, std::mem::take(&mut piece));
            }
            hit = inside(start + at);
            piece.push(c);
        }
        if !piece.is_empty() {
            out = out.and(if hit { Role::Match } else { *role }, piece);
        }
        start += text.len();
    }
    out
}
