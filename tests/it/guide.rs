//! Every command of the pages in `docs/guide`, in the reader's order: each block of `sh` in a shell, `opdev
//! run` in a terminal.

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

/// The lines that the screen shows after each block of `sh`: those of the blocks of `text` behind it.
fn shown_after(page: &str) -> Vec<Vec<String>> {
    let mut shown: Vec<Vec<String>> = Vec::new();
    for block in page.split("```").skip(1).step_by(2) {
        match (block.strip_prefix("text\n"), shown.last_mut()) {
            (Some(lines), Some(last)) => last.extend(lines.lines().map(str::to_owned)),
            (None, _) if block.starts_with("sh\n") => shown.push(Vec::new()),
            (Some(_) | None, _) => {}
        }
    }
    shown
}

/// The arguments of `opdev run`, without the comment behind them.
fn without_comment(line: &str) -> &str {
    line.split(" #").next().unwrap_or_default()
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
        symlink(oracle("helm3"), bin.join("helm")).unwrap();
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
            .env("PATH", self.path())
            .envs(go_folders());
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
            let mut words = without_comment(run).split_whitespace();
            let mut command = CommandBuilder::new(self.home.path().join("bin").join(words.next().unwrap()));
            command.args(words);
            command.cwd(&self.folder);
            command.env("HOME", self.home.path());
            command.env_remove("KUBECONFIG");
            go_folders().into_iter().for_each(|(name, folder)| command.env(name, folder));
            let mut pty = Pty::start(command, (160, 48));
            let kubeconfig = self.folder.join(".opdev/kubeconfig");
            pty.wait_until("the kubeconfig is there", |_| kubeconfig.is_file());
            if self.folder.join("go.mod").is_file() {
                pty.wait_for("May opdev run this project?");
                pty.keys("H");
                pty.wait_for("[t] Trust");
                pty.keys("t");
            }
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

/// The user's caches of Go, which a reader with a home of its own would fill anew.
fn go_folders() -> Vec<(&'static str, String)> {
    let ask = |name: &str| Command::new("go").args(["env", name]).output().ok();
    ["GOMODCACHE", "GOCACHE"]
        .into_iter()
        .filter_map(|name| Some((name, String::from_utf8(ask(name)?.stdout).ok()?.trim().to_owned())))
        .collect()
}

fn read(page: &str, folder: Option<&Path>) {
    let text = page_of_guide(page);
    let blocks = blocks(&text);
    assert!(blocks.len() > 2, "{page}: {} blocks", blocks.len());
    let mut reader = Reader::new(folder);
    for (block, shown) in blocks.iter().zip(shown_after(&text)) {
        reader.follow(page, block);
        for line in shown {
            reader.running.as_ref().expect("opdev runs").wait_for(&line);
        }
    }
    assert_eq!(reader.running.is_some(), text.contains("\nopdev run"), "{page}");
    reader.leave();
}

fn page_of_guide(page: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide").join(page)).unwrap()
}

#[test]
#[cfg_attr(not(all(go, oracles)), ignore = "needs Go and OPDEV_ORACLES")]
fn the_page_for_go_is_true() {
    read("go-operator.md", None);
}

#[test]
#[cfg_attr(not(all(go, oracles)), ignore = "needs Go and OPDEV_ORACLES")]
fn the_page_of_two_bugs_is_true() {
    read("two-bugs.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_for_a_chart_is_true() {
    read("my-chart.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_for_a_release_is_true() {
    read("release.md", None);
}

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_page_for_ci_is_true() {
    read("ci.md", None);
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

/// The blocks of the README that no test runs, by how they begin, and why.
const NOT_RUN: [(&str, &str); 2] = [
    ("cargo install --path .", "builds opdev itself, and puts it on this machine's PATH"),
    ("cargo run -- run", "builds opdev itself, and runs all tests, this one among them"),
];

#[test]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
fn the_blocks_of_the_readme_are_true() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let blocks = blocks(&text);
    let (left, run): (Vec<&String>, Vec<&String>) =
        blocks.iter().partition(|block| NOT_RUN.iter().any(|(start, _)| block.starts_with(start)));
    assert_eq!((left.len(), run.len()), (NOT_RUN.len(), 2), "{blocks:?}");
    for block in run {
        let mut reader = Reader::new(None);
        let work = reader.home.path().join("work");
        fs::create_dir_all(work.join("my-chart/templates")).unwrap();
        fs::write(work.join("my-chart/Chart.yaml"), "apiVersion: v2\nname: web\nversion: 0.1.0\n").unwrap();
        let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\n";
        fs::write(work.join("my-chart/templates/map.yaml"), map).unwrap();
        reader.folder = work;
        reader.follow("README.md", block);
        assert!(reader.running.is_some(), "{block}");
        reader.leave();
    }
}

/// A picture for each page, and none that no page shows; what they show is nobody's own machine.
#[test]
fn every_page_shows_its_picture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let names = |folder: &str, end: &str| {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter_map(|name| name.strip_suffix(end).map(str::to_owned)).collect();
        names.sort();
        names
    };
    let mut pages = names("docs/guide", ".md");
    pages.retain(|page| page != "README");
    assert_eq!(names("assets/guide", ".svg"), pages);
    for page in pages {
        let text = fs::read_to_string(root.join(format!("docs/guide/{page}.md"))).unwrap();
        let shown =
            text.lines().find(|line| line.starts_with("![") && line.contains("](../../assets/guide/"));
        let shown = shown.unwrap_or_else(|| panic!("{page}.md shows no picture"));
        assert!(shown.ends_with(&format!("](../../assets/guide/{page}.svg)")) && shown.len() > 60, "{shown}");
        let picture = fs::read_to_string(root.join(format!("assets/guide/{page}.svg"))).unwrap();
        let shown = if text.contains("\nopdev run") { "embedded<" } else { "$ opdev " };
        assert!(picture.starts_with("<svg ") && picture.contains(shown), "{page}.svg");
        for own in ["/tmp/", "/home/", "/root/", "/Users/"] {
            assert!(!picture.contains(own), "{page}.svg shows a path below {own}");
        }
    }
}

#[test]
fn every_page_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide");
    let mut pages: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    let known = [
        "README.md",
        "armada.md",
        "ci.md",
        "go-operator.md",
        "helm-chart.md",
        "hybrid.md",
        "inner-loop.md",
        "my-chart.md",
        "podset.md",
        "release.md",
        "two-bugs.md",
    ];
    assert_eq!(pages, known);
    for page in pages.iter().filter(|page| *page != "README.md") {
        let lines = page_of_guide(page).lines().count();
        assert!(lines <= 80, "{page} has {lines} lines: a page of the guide is two screens");
    }
}
