//! The place of a template that wrote a place of its output: the template runs once more and notes where its
//! output comes from.

use super::ahead::Ahead;
use super::input::RenderInput;
use super::places::file_of;
use super::run::Run;
use crate::chart::{Chart, Place};
use opdev_template::{Mark, on_deep_stack, without_no_value};
use serde_json::Value;
use std::sync::Arc;

/// A render that gave some output.
pub(super) struct Made<'r> {
    pub(super) chart: &'r Chart,
    pub(super) values: &'r Arc<Value>,
    pub(super) input: &'r RenderInput<'r>,
    pub(super) ahead: &'r Ahead,
}

impl Made<'_> {
    /// The place in a template that wrote a line and column (both from 1; column 0 stands for the first
    /// character) of the output of the template at `path`. `None` where it does not give the same `text`
    /// again.
    pub(super) fn origin(&self, path: &str, text: &str, line: u32, column: u32) -> Option<Place> {
        on_deep_stack(|| {
            let run = Run::new(self.chart, self.values, self.input, self.ahead).ok()?;
            let (output, marks) = run.traced(path)?;
            let at = offset(&output, line, column)?;
            if without_no_value(output) != text.as_bytes() {
                return None;
            }
            let (file, source) = source(&marks, at)?;
            let text = run.templates.get(file)?.text();
            Some(place(file, &text, source))
        })
    }
}

/// The byte at a line and column.
fn offset(output: &[u8], line: u32, column: u32) -> Option<usize> {
    let mut start = 0;
    for _ in 1..line.max(1) {
        start += memchr::memchr(b'\n', output.get(start..)?)? + 1;
    }
    let rest = output.get(start..)?;
    let rest =
        String::from_utf8_lossy(&rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())]).into_owned();
    let skipped = match column {
        0 => rest.len() - rest.trim_start().len(),
        column => rest.chars().take(column as usize - 1).map(char::len_utf8).sum(),
    };
    // A token that is missing at the end of a text is missing behind its last character.
    let last = output.iter().rposition(|byte| !byte.is_ascii_whitespace())?;
    Some((start + skipped).min(last))
}

/// The template's file and byte that a byte of the output comes from.
fn source(marks: &[Mark], at: usize) -> Option<(&str, usize)> {
    let mark = marks.iter().rev().find(|mark| mark.output <= at)?;
    let inside = if mark.verbatim { at - mark.output } else { 0 };
    Some((&mark.file, mark.source + inside))
}

fn place(file: &str, text: &str, at: usize) -> Place {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    Place { file: file_of(file), line: number(line), column: number(column) }
}
