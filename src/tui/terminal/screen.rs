//! The screen that frames are drawn on: as large as the terminal, up to a bound.

use super::frozen::WatchedOutput;
use super::output::ScreenOutput;
use anyhow::Context as _;
use ratatui::backend::Backend as _;
use ratatui::layout::{Rect, Size};
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::io::{self, BufWriter};

/// The terminal as ratatui draws on it.
pub type TerminalScreen = Terminal<ScreenOutput>;

/// The most columns and rows that are drawn. A terminal with a fault may say that it has 65,535 of each: a
/// frame of that size takes 17 GB.
const MOST: (u16, u16) = (1_000, 500);

/// Opens a screen; it shows nothing yet.
///
/// # Errors
/// Where the terminal does not tell its size.
pub fn open() -> anyhow::Result<TerminalScreen> {
    let backend = ScreenOutput::new(BufWriter::with_capacity(1 << 16, WatchedOutput::new()));
    let area = bounded(backend.size().context("cannot draw on this terminal")?);
    let options = TerminalOptions { viewport: Viewport::Fixed(area) };
    Terminal::with_options(backend, options).context("cannot draw on this terminal")
}

/// Makes the screen as large as the terminal is now.
///
/// # Errors
/// Where the terminal does not tell its size, or takes nothing in.
pub fn fit(screen: &mut TerminalScreen) -> io::Result<()> {
    let area = bounded(screen.size()?);
    if area != screen.get_frame().area() {
        screen.resize(area)?;
    }
    Ok(())
}

/// Drops a screen. One that hides the cursor says so on standard error where the cursor cannot be shown,
/// which panics where standard error is the terminal that is gone: the cursor is shown before, or the memory
/// is left to the end of the process.
///
/// # Errors
/// Where the terminal takes nothing in.
pub fn let_go(mut screen: TerminalScreen) -> io::Result<()> {
    let shown = screen.show_cursor();
    if shown.is_err() {
        std::mem::forget(screen);
    }
    shown
}

fn bounded(size: Size) -> Rect {
    Rect::new(0, 0, size.width.min(MOST.0), size.height.min(MOST.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_with_a_fault_does_not_ask_for_more_than_a_screen() {
        assert_eq!(bounded(Size::new(240, 60)), Rect::new(0, 0, 240, 60));
        assert_eq!(bounded(Size::new(65_535, 65_535)), Rect::new(0, 0, 1_000, 500));
        assert_eq!(bounded(Size::new(65_535, 24)), Rect::new(0, 0, 1_000, 24));
    }
}
