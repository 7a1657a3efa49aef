//! The streams of a command. Names of files, and what archives, registries, servers and programs say, may hold characters that do
//! something to the terminal instead of being seen: `out` and `err` show them as escapes, whoever writes. What programs read
//! goes through `machine`, unchanged.

use opdev_event::words::is_hidden;
use std::io::{IsTerminal as _, Result, Stderr, Stdout, Write};

/// A stream on which nothing but text, line ends and tabs gets through.
pub(super) struct Visible<W>(W);

/// Standard output, for people.
pub(super) fn out() -> Visible<Stdout> {
    Visible(std::io::stdout())
}

/// Standard error, for people.
pub(super) fn err() -> Visible<Stderr> {
    Visible(std::io::stderr())
}

/// Standard output, for programs: YAML, JSON, scripts of a shell, and lines that `print` has made visible and coloured.
pub(super) fn machine() -> Stdout {
    std::io::stdout()
}

/// Whether somebody can be asked and answer.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let is_plain = |c: char| matches!(c, '\n' | '\t') || !is_hidden(c);
        if text.chars().all(is_plain) {
            self.0.write_all(text.as_bytes())?;
            return Ok(bytes.len());
        }
        let mut shown = String::with_capacity(text.len() + 16);
        for c in text.chars() {
            if is_plain(c) { shown.push(c) } else { shown.extend(c.escape_unicode()) }
        }
        self.0.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_do_something_to_the_terminal_is_shown() {
        let mut shown = Visible(Vec::new());
        let name = "web/\u{1b}]0;PWN\u{7}\u{202e}.txt";
        writeln!(shown, "created\t{name} für ü\r").unwrap();
        let text = String::from_utf8(shown.0).unwrap();
        assert_eq!(text, "created\tweb/\\u{1b}]0;PWN\\u{7}\\u{202e}.txt für ü\\u{d}\n");
    }
}
