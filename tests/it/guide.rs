//! Every command of the pages in `docs/guide`, in the reader's order: each block of `sh` in a shell, `opdev run` in a terminal.

use crate::inner_loop::demo_project;
use crate::oracle::oracle;
use crate::pty::Pty;
use portable_pty::CommandBuilder;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The commands of a page, one text a block.
fn blocks(page: &str) -> Vec<String> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.filter_map(|block| block.strip_prefix("sh\n")).map(str::to_owned).collect()
}

/// A reader: a folder, a PATH with this opdev and kubectl, and what the shell has exported so far.
struct Reader {
    home: tempfile::TempDir,
    folder: PathBuf,
    kubeconfig: Option<String>,
    running: Option<Pty>,
}

impl Reader {
    fn new(folder: Option<&Path>) -> Reader {
        let home = tempfile::tempdir().unwrap();
        let bin = home.path().join("bin");
        fs::create_dir(&bin).unwrap();
        symlink(env!("CARGO_BIN_EXE_opdev"), bin.join("opdev")).unwrap();
        symlink(oracle("kubectl"), bin.join("kubectl")).unwrap();
        let folder = folder.map_or_else(|| home.path().to_owned(), Path::to_owned);
        Reader { home, folder, kubeconfig: None, running: None }
    }

    fn path(&self) -> String {
        format!("{}:{}", self.home.path().join("bin").display(), std::env::var("PATH").unwrap())
    }

    /// Runs a block up to `opdev run`, which goes on in a terminal of its own.
    fn follow(&mut self, page: &str, block: &str) {
        let (shell, run) = match block.find("opdev run") {
            Some(at) => block.split_at(at),
            None => (block, ""),
        };
        let state = self.home.path().join("state");
        let script = format!(
            "set -euo pipefail\n{shell}\nprintf '%s\\n%s\\n' \"$PWD\" \"${{KUBECONFIG:-}}\" > {}",
            state.display()
        );
        let mut command = Command::new("bash");
        command
            .args(["-c", &script])
            .current_dir(&self.folder)
            .env("HOME", self.home.path())
            .env("PATH", self.path());
        command.env_remove("KUBECONFIG");
        if let Some(kubeconfig) = &self.kubeconfig {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().unwrap();
        let screen = || self.running.as_ref().map(Pty::screen).unwrap_or_default();
        assert!(
            output.status.success(),
            "{page}:\n{shell}\n{}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            screen()
        );
        let left = fs::read_to_string(state).unwrap();
        let mut lines = left.lines();
        self.folder = lines.next().unwrap().into();
        self.kubeconfig = lines.next().filter(|path| !path.is_empty()).map(str::to_owned);
        if !run.is_empty() {
            let mut words = run.split_whitespace();
            let mut command = CommandBuilder::new(self.home.path().join("bin").join(words.next().unwrap()));
            command.args(words);
            command.cwd(&self.folder);
            command.env("HOME", self.home.path());
            command.env_remove("KUBECONFIG");
            let pty = Pty::start(command, (160, 48));
            let kubeconfig = self.folder.join(".opdev/kubeconfig");
            pty.wait_until("the kubeconfig is there", |_| kubeconfig.is_file());
            self.running = Some(pty);
        }
    }

    fn leave(mut self) {
        if let Some(mut pty) = self.running.take() {
            pty.keys("q");
            assert!(pty.wait_exit().success());
        }
    }
}

fn read(page: &str, folder: Option<&Path>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide").join(page);
    let blocks = blocks(&fs::read_to_string(path).unwrap());
    assert!(blocks.len() > 2, "{page}: {} blocks", blocks.len());
    let mut reader = Reader::new(folder);
    blocks.iter().for_each(|block| reader.follow(page, block));
    assert!(reader.running.is_some(), "{page} runs nothing");
    reader.leave();
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_of_charts_is_true() {
    read("helm-chart.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_of_the_inner_loop_is_true() {
    read("inner-loop.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_of_charts_and_code_is_true() {
    read("hybrid.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_of_podset_is_true() {
    read("podset.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_of_armada_is_true() {
    let (_folder, root) = demo_project();
    read("armada.md", Some(&root));
}

#[test]
fn every_page_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let mut pages: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    assert_eq!(pages, ["README.md", "armada.md", "helm-chart.md", "hybrid.md", "inner-loop.md", "podset.md"]);
}
