//! A program in a terminal of its own: keys in, the screen out. Every wait has a condition and a deadline,
//! and says what was on the screen when it gives up.

use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Long enough for a debug build on a busy machine; nothing waits this long when all is well.
const DEADLINE: Duration = Duration::from_secs(60);

/// The output of the program so far.
struct Output {
    terminal: vt100::Parser,
    raw: Vec<u8>,
    closed: bool,
}

/// A running program and its terminal.
pub(crate) struct Pty {
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    output: Arc<(Mutex<Output>, Condvar)>,
    modes: String,
}

impl Pty {
    /// Starts a program on a terminal of this size.
    pub(crate) fn start(mut command: CommandBuilder, (columns, rows): (u16, u16)) -> Pty {
        let size = PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).unwrap();
        command.env("TERM", "xterm-256color");
        // The developer's permissions are not the test's.
        if command.get_env("XDG_STATE_HOME").is_none()
            || std::env::var_os("XDG_STATE_HOME") == command.get_env("XDG_STATE_HOME").map(Into::into)
        {
            command.env("XDG_STATE_HOME", "/nonexistent");
        }
        command.env_remove("NO_COLOR");
        if std::env::var_os("XDG_CONFIG_HOME") == command.get_env("XDG_CONFIG_HOME").map(Into::into) {
            // Nobody's own settings but those of the test.
            command.env("XDG_CONFIG_HOME", "/nonexistent");
        }
        let modes = modes(pair.master.as_ref());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let terminal = vt100::Parser::new(rows, columns, 0);
        let output =
            Arc::new((Mutex::new(Output { terminal, raw: Vec::new(), closed: false }), Condvar::new()));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shared = Arc::clone(&output);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                // The end of the program reads as an error on Linux.
                let count = reader.read(&mut buffer).unwrap_or(0);
                let mut output = shared.0.lock().unwrap();
                output.terminal.process(&buffer[..count]);
                output.raw.extend_from_slice(&buffer[..count]);
                output.closed = count == 0;
                shared.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        let keys = pair.master.take_writer().unwrap();
        Pty { master: pair.master, keys, child, output, modes }
    }

    /// Types.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Another size.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        self.output.0.lock().unwrap().terminal.screen_mut().set_size(rows, columns);
        self.master.resize(PtySize { rows, cols: columns, pixel_width: 0, pixel_height: 0 }).unwrap();
    }

    /// Waits until a whole frame of this size is drawn: the panes' last corner stands above the footer. A key
    /// that comes together with a change of size may wait for the next one.
    pub(crate) fn wait_for_frame(&self, (columns, rows): (u16, u16)) {
        self.wait_until(&format!("frame of {columns}x{rows}"), |screen| {
            screen.size() == (rows, columns)
                && screen.cell(rows - 2, columns - 1).is_some_and(|cell| cell.contents() == "┘")
        });
    }

    /// The text on the screen.
    pub(crate) fn screen(&self) -> String {
        self.output.0.lock().unwrap().terminal.screen().contents()
    }

    /// Everything written so far, control sequences included.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.output.0.lock().unwrap().raw).into_owned()
    }

    /// Returns true if the screen is so, now or soon.
    pub(crate) fn becomes(&self, soon: Duration, is: impl Fn(&vt100::Screen) -> bool) -> bool {
        let output = self.output.0.lock().unwrap();
        let waits = |output: &mut Output| !is(output.terminal.screen());
        !self.output.1.wait_timeout_while(output, soon, waits).unwrap().1.timed_out()
    }

    /// Waits until the screen is as it should be.
    pub(crate) fn wait_until(&self, what: &str, mut is: impl FnMut(&vt100::Screen) -> bool) {
        let start = Instant::now();
        let mut output = self.output.0.lock().unwrap();
        while !is(output.terminal.screen()) {
            let left = DEADLINE.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "no {what} on:\n{}", output.terminal.screen().contents());
            assert!(!output.closed, "ended without {what}:\n{}", output.terminal.screen().contents());
            output = self.output.1.wait_timeout(output, left).unwrap().0;
        }
    }

    /// Waits until a text was written so many times, whatever has become of it since. What is on the screen
    /// afterwards was drawn later.
    pub(crate) fn wait_for_written(&self, text: &str, times: usize) {
        let start = Instant::now();
        let mut output = self.output.0.lock().unwrap();
        while String::from_utf8_lossy(&output.raw).matches(text).count() < times {
            let left = DEADLINE.saturating_sub(start.elapsed());
            assert!(
                !left.is_zero(),
                "not written {times} times: {text}\n{}",
                output.terminal.screen().contents()
            );
            assert!(!output.closed, "ended before {text}:\n{}", output.terminal.screen().contents());
            output = self.output.1.wait_timeout(output, left).unwrap().0;
        }
    }

    /// Waits for a text on the screen.
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait_until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until a text is gone from the screen.
    pub(crate) fn wait_without(&self, text: &str) {
        self.wait_until(&format!("absence of {text}"), |screen| !screen.contents().contains(text));
    }

    /// The process id.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    /// The modes of a shell, as `reset` in another window gives them to a terminal.
    pub(crate) fn reset_modes(&self) {
        let terminal = self.master.tty_name().unwrap();
        let done = std::process::Command::new("stty").arg("-F").arg(terminal).arg("sane").status().unwrap();
        assert!(done.success());
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Sends a signal to the program and all that it has started.
    pub(crate) fn signal_group(&self, signal: Signal) {
        kill_process_group(Pid::from_raw(self.pid()).unwrap(), signal).unwrap();
    }

    /// Waits for the end of the program and of its output.
    pub(crate) fn wait_exit(&mut self) -> ExitStatus {
        let start = Instant::now();
        let mut output = self.output.0.lock().unwrap();
        while !output.closed {
            let left = DEADLINE.saturating_sub(start.elapsed());
            assert!(!left.is_zero(), "still running:\n{}", output.terminal.screen().contents());
            output = self.output.1.wait_timeout(output, left).unwrap().0;
        }
        drop(output);
        self.child.wait().unwrap()
    }

    /// The terminal is as the shell left it: no alternate screen, a cursor, no bracketed paste, line mode,
    /// echo.
    pub(crate) fn assert_restored(&self) {
        let output = self.output.0.lock().unwrap();
        let screen = output.terminal.screen();
        assert!(!screen.alternate_screen(), "still on the alternate screen");
        assert!(!screen.hide_cursor(), "the cursor is hidden");
        assert!(!screen.bracketed_paste(), "bracketed paste is on");
        assert_eq!(modes(self.master.as_ref()), self.modes, "the modes of the terminal have changed");
        // Given back once, not twice.
        let raw = String::from_utf8_lossy(&output.raw);
        let (entered, left) = (raw.matches("\u{1b}[?1049h").count(), raw.matches("\u{1b}[?1049l").count());
        assert_eq!(entered, left, "entered and left the alternate screen");
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // A failed test leaves nothing running; a process that has ended cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn modes(master: &dyn MasterPty) -> String {
    let modes = master.get_termios().unwrap();
    format!("{:?} {:?} {:?}", modes.input_flags, modes.output_flags, modes.local_flags)
}
