//! The clipboard inside of tmux. With its defaults tmux takes no clipboard from programs (OSC 52), but from
//! its own command.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long tmux may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// Gives a text to tmux, which passes it on to its terminal. Says whether tmux has taken it; false where
/// there is no tmux.
pub fn to_tmux(text: &str) -> bool {
    let inside = std::env::var_os("TMUX").is_some_and(|socket| !socket.is_empty());
    inside && taken("tmux", text)
}

fn taken(program: &str, text: &str) -> bool {
    let (tell, told) = mpsc::channel();
    let (program, text) = (program.to_owned(), text.to_owned());
    let give = move || {
        // Before tmux 3.2 there is no `-w`: the text stays in tmux.
        let taken = ["-w", "-b"].into_iter().any(|flag| load(&program, flag, &text));
        let _ = tell.send(taken);
    };
    // A tmux that hangs must not hold the screen.
    thread::Builder::new().name("clipboard".to_owned()).spawn(give).is_ok()
        && told.recv_timeout(PATIENCE).unwrap_or(false)
}

fn load(program: &str, flag: &str, text: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("load-buffer").arg(flag);
    if flag == "-b" {
        command.arg("opdev");
    }
    command.arg("-").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let written = child.stdin.take().is_some_and(|mut input| input.write_all(text.as_bytes()).is_ok());
    child.wait().is_ok_and(|status| status.success()) && written
}

#[cfg(test)]
mod tests {
    use super::taken;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn only_what_tmux_takes_is_copied() {
        let folder = std::env::temp_dir().join(format!("opdev-clipboard-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let tmux = |script: &str| {
            let path = folder.join("tmux");
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path.display().to_string()
        };
        let seen = folder.join("seen");
        let new = tmux(&format!("echo \"$@\" > {0}; cat >> {0}", seen.display()));
        assert!(taken(&new, "a text"));
        assert_eq!(fs::read_to_string(&seen).unwrap(), "load-buffer -w -\na text");
        let old = tmux(&format!("[ \"$2\" = -b ] || exit 1; echo \"$@\" > {0}; cat >> {0}", seen.display()));
        assert!(taken(&old, "b"));
        assert_eq!(fs::read_to_string(&seen).unwrap(), "load-buffer -b opdev -\nb");
        assert!(!taken(&tmux("exit 1"), "c"));
        assert!(!taken("/nowhere/at/all", "d"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
