//! The picture in the README: a frame of a busy state as SVG. `UPDATE_GOLDEN=1 cargo test -p opdev --lib` draws it
//! anew, so that what the README shows is what the program shows.

use super::fixture::{busy, in_theme};
use super::frames::screen;
use crate::tui::theme::Theme;
use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use std::fmt::Write as _;
use unicode_width::UnicodeWidthStr as _;

/// Width and height of a cell, and the height of the letters.
const CELL: (f32, f32, f32) = (8.4, 18.0, 14.0);
const BACKGROUND: &str = "#1a1b26";
const TEXT: &str = "#c0caf5";

fn color(color: Color, default: &str) -> String {
    match color {
        Color::Rgb(r, g, b) => format!("#{r:02x}{g:02x}{b:02x}"),
        _ => default.to_owned(),
    }
}

/// Neighbouring cells that look the same.
fn runs(row: &[Cell]) -> Vec<(usize, usize, String, &Cell)> {
    let mut out: Vec<(usize, usize, String, &Cell)> = Vec::new();
    for (x, cell) in row.iter().enumerate() {
        match out.last_mut() {
            Some((_, cells, text, before)) if before.style() == cell.style() => {
                *cells += 1;
                text.push_str(cell.symbol());
            }
            _ => out.push((x, 1, cell.symbol().to_owned(), cell)),
        }
    }
    out
}

/// The words of a text with the column of each: not every browser keeps two spaces, or one at an end.
fn without_gaps(text: &str) -> Vec<(usize, &str)> {
    let mut out = Vec::new();
    let mut from = 0;
    for part in text.split("  ") {
        let words = part.trim_matches(' ');
        if !words.is_empty() {
            let lead = part.len() - part.trim_start_matches(' ').len();
            out.push((text[..from + lead].width(), words));
        }
        from += part.len() + 2;
    }
    out
}

fn svg(buffer: &Buffer) -> String {
    let (columns, rows) = (f32::from(buffer.area.width), f32::from(buffer.area.height));
    let (width, height) = (columns * CELL.0 + 24.0, rows * CELL.1 + 24.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"opdev in a terminal of 120 columns and 36 rows\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"{:.0}\" xml:space=\"preserve\">\n",
        CELL.2
    );
    for (y, row) in buffer.content().chunks(buffer.area.width.into()).enumerate() {
        let top = 12.0 + y as f32 * CELL.1;
        for (x, cells, text, cell) in runs(row) {
            let (left, wide) = (12.0 + x as f32 * CELL.0, cells as f32 * CELL.0);
            if let Color::Rgb(..) = cell.bg {
                let fill = color(cell.bg, BACKGROUND);
                writeln!(out, "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" fill=\"{fill}\"/>", CELL.1)
                    .unwrap();
            }
            let bold = if cell.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
            for (at, words) in without_gaps(&text) {
                let (left, wide) = (left + at as f32 * CELL.0, words.width() as f32 * CELL.0);
                let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                writeln!(
                    out,
                    "<text x=\"{left:.1}\" y=\"{:.1}\" textLength=\"{wide:.1}\" fill=\"{}\"{bold}>{words}</text>",
                    top + CELL.1 * 0.76,
                    color(cell.fg, TEXT)
                )
                .unwrap();
            }
        }
    }
    out.push_str("</g>\n</svg>\n");
    out
}

#[test]
fn the_picture_in_the_readme_is_the_screen() {
    let mut view = in_theme(Theme::named("dark").unwrap());
    let got = svg(&screen(&busy(), &mut view, "j", (120, 36)));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/screen.svg");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &got).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(known == got, "assets/screen.svg is not the screen; UPDATE_GOLDEN=1 cargo test draws it anew");
}
