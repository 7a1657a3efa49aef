//! The way of frames to the terminal. A frame in which no cell differs writes nothing: over ssh each byte
//! counts, and a clock that shows minutes changes no cell in most seconds.

use super::frozen::WatchedOutput;
use crossterm::terminal::{BeginSynchronizedUpdate, EndSynchronizedUpdate};
use crossterm::{execute, queue};
use ratatui::backend::{Backend, ClearType, CrosstermBackend, WindowSize};
use ratatui::buffer::Cell;
use ratatui::layout::{Position, Size};
use std::io::{self, BufWriter, Write};
use std::mem::take;

/// The terminal, as ratatui and links write to it. What it is asked to write is one update for the terminal,
/// from the first byte to [`ScreenOutput::end`].
pub struct ScreenOutput<W: Write = BufWriter<WatchedOutput>> {
    inner: CrosstermBackend<W>,
    /// True while an update has begun.
    begun: bool,
    /// True if the cursor was hidden, and nobody else has written since.
    hidden: bool,
}

impl<W: Write> ScreenOutput<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        ScreenOutput { inner: CrosstermBackend::new(out), begun: false, hidden: false }
    }

    /// Ends the update, where one has begun, and hands all of it to the terminal.
    ///
    /// # Errors
    /// Where the terminal takes nothing in.
    pub fn end(&mut self) -> io::Result<()> {
        if take(&mut self.begun) { execute!(self.inner, EndSynchronizedUpdate) } else { Ok(()) }
    }

    fn begin(&mut self) -> io::Result<()> {
        if self.begun {
            return Ok(());
        }
        self.begun = true;
        queue!(self.inner, BeginSynchronizedUpdate)
    }
}

impl<W: Write> Write for ScreenOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.inner)
    }
}

impl<W: Write> Backend for ScreenOutput<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut content = content.peekable();
        if content.peek().is_none() {
            return Ok(());
        }
        self.begin()?;
        self.inner.draw(content)
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if self.hidden {
            return Ok(());
        }
        self.begin()?;
        self.hidden = true;
        self.inner.hide_cursor()
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        self.hidden = false;
        self.inner.show_cursor()
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        self.inner.get_cursor_position()
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.begin()?;
        self.inner.set_cursor_position(position)
    }

    fn clear(&mut self) -> io::Result<()> {
        self.begin()?;
        self.inner.clear()
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        self.begin()?;
        self.inner.clear_region(region)
    }

    fn size(&self) -> io::Result<Size> {
        self.inner.size()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        self.inner.window_size()
    }

    fn flush(&mut self) -> io::Result<()> {
        Backend::flush(&mut self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Written(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_frame_in_which_no_cell_differs_writes_nothing() {
        let written = Written::default();
        let mut out = ScreenOutput::new(written.clone());
        let cell = Cell::new("a");
        let mut frame = |cells: &[(u16, u16, &Cell)]| {
            let before = written.0.borrow().len();
            out.draw(cells.iter().copied()).unwrap();
            out.hide_cursor().unwrap();
            out.end().unwrap();
            String::from_utf8(written.0.borrow()[before..].to_vec()).unwrap()
        };
        let first = frame(&[(0, 0, &cell)]);
        assert!(first.starts_with("\u{1b}[?2026h") && first.ends_with("\u{1b}[?2026l"), "{first:?}");
        assert!(first.contains("\u{1b}[?25l"), "{first:?}");
        assert_eq!(frame(&[]), "");
        let third = frame(&[(1, 0, &cell)]);
        assert!(third.contains('a') && !third.contains("\u{1b}[?25l"), "hidden already: {third:?}");
    }
}
