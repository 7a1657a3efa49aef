//! Output that cannot be written: every command says so once, and does not end well.

use crate::inner_loop::demo_project;
use std::fs::OpenOptions;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_by_every_command() {
    let (_folder, project) = demo_project();
    for words in [
        "--help",
        "run --help",
        "version",
        "man --help",
        "completions bash",
        "render x charts/memcached",
        "plan --embedded",
        "explain",
        "trust",
        "image --dry-run",
        "dependency list charts/memcached",
        "run --embedded --json",
        "run --embedded --plain",
        "serve --fidelity",
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_opdev"))
            .args(words.split(' '))
            .current_dir(&project)
            .env("HOME", &project)
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        let told = said.matches("standard output cannot be written: No space left on device").count();
        assert_eq!(told, 1, "{words}: {said}");
    }
}
