//! The streams of a command. Names of files, and what archives, registries, servers and programs say, may
//! hold characters that do something to the terminal instead of being seen: `out` and `err` show them as
//! escapes, whoever writes. What programs read goes through `machine`, unchanged.

use opdev_event::words::is_hidden;
use std::io::{Error, ErrorKind, IsTerminal as _, Result, Stderr, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A stream on which nothing but text, line ends and tabs gets through.
pub(super) struct Visible<W>(W);

/// Standard output. Its errors say what could not be written.
pub(super) struct StandardOutput(Stdout);

/// Standard output, for people.
pub(super) fn out() -> Visible<StandardOutput> {
    Visible(machine())
}

/// Standard error, for people.
pub(super) fn err() -> Visible<Stderr> {
    Visible(std::io::stderr())
}

/// Standard error as a terminal whose last line can be written anew, with its columns. The writer makes the
/// text visible. `None` where it is no such terminal.
pub(super) fn live_err() -> Option<(Stderr, usize)> {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name == "dumb");
    let err = std::io::stderr();
    let size = rustix::termios::tcgetwinsize(&err).ok().filter(|_| err.is_terminal() && !is_dumb)?;
    // A terminal that does not say how wide it is says 0.
    Some((err, if size.ws_col == 0 { 80 } else { size.ws_col.into() }))
}

/// Standard output, for programs: YAML, JSON, scripts of a shell, and lines that `print` has made visible and
/// coloured.
pub(super) fn machine() -> StandardOutput {
    StandardOutput(std::io::stdout())
}

/// Why standard output could not be written, until somebody has told it: not each command looks at each
/// write.
static LOST: Mutex<Option<String>> = Mutex::new(None);

fn lost() -> MutexGuard<'static, Option<String>> {
    LOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What became of a write to standard output, in words. A reader that has gone away wants no more, and is no
/// loss.
fn noted<T>(written: Result<T>) -> Result<T> {
    written.map_err(|error| {
        let text = format!("standard output cannot be written: {error}");
        if error.kind() != ErrorKind::BrokenPipe {
            lost().get_or_insert_with(|| text.clone());
        }
        Error::new(error.kind(), text)
    })
}

/// What a command says goes to its end: why not all of it could be written, unless an error that was told
/// says so already. What standard output still holds is written first; after the end of the process nobody
/// would hear of it.
pub(super) fn unwritten() -> Option<String> {
    if !GIVEN_UP.load(Ordering::Relaxed) {
        let _ = machine().flush();
    }
    lost().take()
}

/// Standard output is a terminal that takes nothing in: whoever writes to it, or waits for those who do,
/// waits for ever.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// Nothing more is written to standard output.
pub(super) fn give_up() {
    GIVEN_UP.store(true, Ordering::Relaxed);
}

/// An error is told: what it says of standard output needs no second line.
fn is_told(error: &str) {
    lost().take_if(|lost| error.contains(lost.as_str()));
}

impl Write for StandardOutput {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        noted(self.0.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        noted(self.0.flush())
    }
}

/// Returns true if somebody can be asked and answer.
pub(super) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        // Most is plain. Pieces have no early end, so that the compiler compares many bytes at once.
        let is_seen = |byte: u8| (b' '..0x7f).contains(&byte) | (byte == b'\n') | (byte == b'\t');
        let is_ascii = |piece: &[u8]| piece.iter().fold(true, |seen, byte| seen & is_seen(*byte));
        if bytes.chunks(128).all(is_ascii) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
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

/// Tells the user what failed, on standard error.
pub(super) fn complain(error: &anyhow::Error) {
    let told = opdev_client::error_words::told(error);
    is_told(&told);
    let _ = writeln!(err(), "error: {}", opdev_event::words::visible(&told));
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

    #[test]
    fn long_plain_text_goes_through_and_hides_nothing() {
        let long = "{\"a\":\t1}\n".repeat(40);
        for place in [0, 127, 128, 300] {
            let (before, after) = long.split_at(place);
            for (hidden, escape) in [("", ""), ("\u{7f}", "\\u{7f}"), ("\u{202e}", "\\u{202e}")] {
                let mut shown = Visible(Vec::new());
                shown.write_all(format!("{before}{hidden}{after}").as_bytes()).unwrap();
                assert_eq!(String::from_utf8(shown.0).unwrap(), format!("{before}{escape}{after}"));
            }
        }
    }
}
