//! The user's editor, in the terminal that the screen gives up for it. The operator goes on meanwhile; keys
//! and signals are the editor's until it ends.

use opdev_event::ProgramRun;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Until when `ctrl-c` belongs to an editor: for ever while it has the terminal.
static EDITORS: Mutex<Until> = Mutex::new(Until::Past);

/// Rings when that changes.
static ENDED: Condvar = Condvar::new();

/// One `ctrl-c` reaches the editor and opdev. The editor may have ended of it before opdev looks at it.
const ECHO: Duration = Duration::from_secs(2);

/// How long an editor that was asked to end is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

enum Until {
    Past,
    Open,
    Echo(Instant),
}

/// Returns true if an interrupt that is looked at now was an editor's.
pub fn interrupt_is_the_editors() -> bool {
    match &*EDITORS.lock().unwrap_or_else(PoisonError::into_inner) {
        Until::Past => false,
        Until::Open => true,
        Until::Echo(end) => Instant::now() < *end,
    }
}

fn set(until: Until) {
    *EDITORS.lock().unwrap_or_else(PoisonError::into_inner) = until;
    ENDED.notify_all();
}

/// Waits until no editor has the terminal, but not for long: opdev has been asked to end, and what the editor
/// writes down as it ends is to be kept.
pub fn wait_for_the_end() {
    let editors = EDITORS.lock().unwrap_or_else(PoisonError::into_inner);
    let _ended = ENDED.wait_timeout_while(editors, LAST_WORDS, |until| matches!(until, Until::Open));
}

/// The editor that the user wants, as a shell would run it.
pub(crate) fn chosen(var: impl Fn(&str) -> Option<String>) -> String {
    let set = ["KUBE_EDITOR", "VISUAL", "EDITOR"];
    let found = set.into_iter().find_map(|name| var(name).filter(|text| !text.trim().is_empty()));
    found.unwrap_or_else(|| "vi".to_owned())
}

/// The name of an editor's program.
fn program(editor: &str) -> &str {
    let program = editor.split_whitespace().next().unwrap_or_default();
    program.rsplit('/').next().unwrap_or_default()
}

/// The editor as it waits until its user closes the file: those with a window of their own return at once
/// without a flag.
fn waiting(editor: &str) -> String {
    let flags: &[&str] = match program(editor) {
        "code" | "code-insiders" | "codium" | "cursor" | "windsurf" | "subl" | "atom" | "zed" | "mate"
        | "gedit" => &["--wait", "-w"],
        "gvim" | "mvim" => &["--nofork", "-f"],
        "kate" => &["--block", "-b"],
        _ => &[],
    };
    let is_told = editor.split_whitespace().skip(1).any(|word| flags.contains(&word));
    match flags.first() {
        Some(flag) if !is_told => format!("{editor} {flag}"),
        Some(_) | None => editor.to_owned(),
    }
}

/// What has the shell become the editor, where it is one command: a signal to the one is for the other, too,
/// and both end at the same time.
fn in_place(editor: &str) -> &'static str {
    let sets_variables = editor.split_whitespace().next().is_some_and(|word| word.contains('='));
    if sets_variables || editor.contains([';', '&', '|', '(', '\n']) { "" } else { "exec " }
}

/// A file and a place in it, as an editor takes them.
fn place(editor: &str, file: &Path, line: u32, column: u32) -> Vec<OsString> {
    let plain = vec![file.as_os_str().to_owned()];
    if line == 0 {
        return plain;
    }
    let program = program(editor);
    let with_place = || {
        let mut text = file.as_os_str().to_owned();
        text.push(format!(":{line}:{}", column.max(1)));
        text
    };
    match program {
        "code" | "code-insiders" | "codium" | "cursor" => vec!["--goto".into(), with_place()],
        "hx" | "helix" | "subl" | "zed" => vec![with_place()],
        "vi" | "vim" | "nvim" | "view" | "nano" | "emacs" | "emacsclient" | "micro" | "kak" | "joe"
        | "mg" | "ne" => {
            vec![format!("+{line}").into(), file.as_os_str().to_owned()]
        }
        // Nobody knows how an unknown editor takes a line.
        _ => plain,
    }
}

/// Runs a program in the foreground. It gets its own interrupts, and this shell goes on after them.
const IN_FRONT: &str = "trap : INT; waits=$1; shift; \"$@\"; code=$?; if [ $code -ne 0 ] || [ $waits = 1 ]; then \
    printf '\\n[ended with %s; enter goes back to opdev] ' $code; read -r _; fi; exit $code";

/// An editor that runs, or another program that has the terminal meanwhile.
pub struct Editor {
    /// Its name, in words.
    name: String,
    /// True if what it says with its end is the user's to hear.
    is_editor: bool,
    pid: u32,
    ended: oneshot::Receiver<io::Result<ExitStatus>>,
}

impl Editor {
    /// Starts it on a file whose text is waited for. The terminal must have been given up before.
    pub fn start(file: &Path) -> io::Result<Editor> {
        let name = chosen(|name| std::env::var(name).ok());
        Self::open(waiting(&name), file, 0, 0)
    }

    /// Starts it on a line and a column of a file, as far as the editor takes them; 0 where they are unknown.
    pub fn start_at(file: &Path, line: u32, column: u32) -> io::Result<Editor> {
        Self::open(chosen(|name| std::env::var(name).ok()), file, line, column)
    }

    fn open(name: String, file: &Path, line: u32, column: u32) -> io::Result<Editor> {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", &format!("{}{name} \"$@\"", in_place(&name)), "opdev"])
            .args(place(&name, file, line, column));
        Self::lend_to(command, name, true)
    }

    /// Starts a program, in a folder. After a failure, or where it is to, it waits for enter before opdev
    /// comes back.
    pub fn program(program: &ProgramRun, folder: &Path) -> io::Result<Editor> {
        let waits = if program.pause { "1" } else { "0" };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", IN_FRONT, "opdev", waits]).args(&program.command).current_dir(folder);
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        Self::lend_to(command, program.title.clone(), false)
    }

    fn lend_to(mut command: Command, name: String, is_editor: bool) -> io::Result<Editor> {
        command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        // It may be interrupted before this thread runs on.
        set(Until::Open);
        let mut child: Child = command.spawn().inspect_err(|_| set(Until::Past))?;
        let pid = child.id();
        let (tell, ended) = oneshot::channel();
        // It ends by itself with the editor.
        let wait = move || {
            let _ = tell.send(child.wait());
        };
        let waiter = std::thread::Builder::new().name("editor".to_owned());
        waiter.spawn(wait).inspect_err(|_| set(Until::Past))?;
        Ok(Editor { name, is_editor, pid, ended })
    }

    /// Waits for its end; the answer is why its text is not to be used.
    pub async fn ended(&mut self) -> Option<String> {
        let status = (&mut self.ended).await;
        let name = &self.name;
        match status {
            Ok(Ok(status)) if status.success() || !self.is_editor => None,
            Ok(Ok(status)) if status.code() == Some(127) => {
                Some(format!("the editor {name} was not found; set KUBE_EDITOR, VISUAL or EDITOR"))
            }
            Ok(Ok(status)) => Some(format!("the editor {name} ended with {status}")),
            Ok(Err(error)) => Some(format!("the editor {name} got lost: {error}")),
            Err(_) => Some(format!("the editor {name} got lost")),
        }
    }

    /// Asks it to end, for opdev has to, and waits a moment: it may write down what was typed.
    pub async fn terminate(&mut self) {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // It may have ended just now.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.ended).await;
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        set(Until::Echo(Instant::now() + ECHO));
    }
}

#[cfg(test)]
mod tests {
    use super::{chosen, place, waiting};
    use std::path::Path;

    #[test]
    fn editors_are_told_the_line_in_their_own_way() {
        let told = |editor: &str| {
            let args = place(editor, Path::new("a.yaml"), 14, 20);
            args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told("/usr/bin/vim -n"), "+14 a.yaml");
        assert_eq!(told("code --wait"), "--goto a.yaml:14:20");
        assert_eq!(told("hx"), "a.yaml:14:20");
        assert_eq!(told("sh my-editor.sh"), "a.yaml");
        assert_eq!(place("vim", Path::new("a.yaml"), 0, 0), ["a.yaml"]);
    }

    #[test]
    fn editors_with_windows_are_told_to_wait() {
        assert_eq!(waiting("/usr/bin/code -n"), "/usr/bin/code -n --wait");
        assert_eq!(waiting("code -w"), "code -w");
        assert_eq!(waiting("gvim"), "gvim --nofork");
        assert_eq!(waiting("vim"), "vim");
        assert_eq!(waiting(""), "");
    }

    #[test]
    fn the_first_one_that_is_set_is_taken() {
        let with = |pairs: &'static [(&str, &str)]| {
            chosen(|name| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(with(&[]), "vi");
        assert_eq!(with(&[("EDITOR", "nano"), ("VISUAL", "code --wait")]), "code --wait");
        assert_eq!(with(&[("EDITOR", "nano"), ("KUBE_EDITOR", " "), ("VISUAL", "")]), "nano");
        assert_eq!(with(&[("EDITOR", "nano"), ("KUBE_EDITOR", "hx")]), "hx");
    }
}
