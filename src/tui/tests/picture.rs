//! The pictures of the README: frames as SVG, one that stands still and some that follow each other.
//! `UPDATE_GOLDEN=1 cargo test -p opdev-tui` draws them anew, so that what the README shows is what the
//! program shows.

use super::fixture::{broken, busy, events, in_theme, of, sources, started};
use super::frames::screen;
use super::storm::panicked;
use opdev_panes::theme::Theme;
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

/// The size of a picture of so many cells.
fn size(buffer: &Buffer) -> (f32, f32) {
    (f32::from(buffer.area.width) * CELL.0 + 24.0, f32::from(buffer.area.height) * CELL.1 + 24.0)
}

/// The sequence that begins a picture.
fn head((width, height): (f32, f32), label: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{label}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" \
         font-size=\"{:.0}\" xml:space=\"preserve\">\n",
        CELL.2
    )
}

fn svg(buffer: &Buffer) -> String {
    let label = "opdev in a terminal of 120 columns and 36 rows";
    format!("{}{}</g>\n</svg>\n", head(size(buffer), label), drawn(buffer))
}

/// Frames that follow each other, each for some seconds, again and again. Who shows no motion sees the first
/// one.
fn moving(frames: &[Buffer], seconds: usize) -> String {
    let all = frames.len() * seconds;
    let mut out = head(
        size(&frames[0]),
        "opdev in a terminal: samples, custom resources, a broken template, a failed reconcile",
    );
    let share = 100.0 / frames.len() as f32;
    writeln!(
        out,
        "<style>.f{{visibility:hidden;animation:show {all}s step-end infinite}}.f:first-of-type{{visibility:visible}}\
         @keyframes show{{0%{{visibility:visible}}{share:.2}%{{visibility:hidden}}}}</style>"
    )
    .unwrap();
    for (i, frame) in frames.iter().enumerate() {
        let begins = i * seconds;
        writeln!(out, "<g class=\"f\" style=\"animation-delay:{begins}s\">\n{}</g>", drawn(frame)).unwrap();
    }
    out.push_str("</g>\n</svg>\n");
    out
}

fn drawn(buffer: &Buffer) -> String {
    let mut out = String::new();
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
    out
}

/// Compares a picture with the one in `assets`, or draws it anew.
fn is(name: &str, got: &str) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, got).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(known == got, "assets/{name} is not the screen; UPDATE_GOLDEN=1 cargo test draws it anew");
}

#[test]
fn the_pictures_in_the_readme_are_the_screen() {
    let size = (120, 36);
    let dark = || in_theme(Theme::named("dark").unwrap());
    is("failed.svg", &svg(&screen(&panicked(), &mut dark(), "1 j 4", size)));
    let mut broken_too = events();
    broken_too.push(broken());
    let frames = [
        screen(&of(vec![started(), sources(1, &[])]), &mut dark(), "", size),
        screen(&busy(), &mut dark(), "j", size),
        screen(&of(broken_too), &mut dark(), "j", size),
        screen(&busy(), &mut dark(), "4", size),
    ];
    is("tour.svg", &moving(&frames, 4));
}
