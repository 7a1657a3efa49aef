//! `opdev run --build-dependencies`: what charts lack is downloaded once at the start, because the command
//! line asks for it.

use super::{Desk, Shelf, on, repository};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

struct Run {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Run {
    fn start(desk: &Desk, flags: &[&str]) -> Run {
        let mut command = desk.command(std::path::Path::new(env!("CARGO_BIN_EXE_opdev")));
        command.args(["run", "--embedded", "--plain", "--project", "p"]).args(flags);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let (say, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Run { child, lines }
    }

    /// The lines up to the one with these words, and it.
    fn until(&self, words: &str) -> Vec<String> {
        let mut seen: Vec<String> = Vec::new();
        while !seen.last().is_some_and(|line| line.contains(words)) {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) => seen.push(line),
                Err(_) => panic!("no {words:?} in {seen:#?}"),
            }
        }
        seen
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn missing_dependencies_are_downloaded_where_the_command_line_asks() {
    let shelf = Shelf::open();
    let url = repository(&shelf, "/charts", &["1.0.0"]);
    let desk = Desk::new(&on(&url, "1.0.0"));
    desk.done(&["init", "--project", "p", "--helm-chart", "app"]);
    assert!(shelf.asked().is_empty(), "nothing is downloaded unasked");
    let there = || desk.path().join("p/helm-charts/app/charts/web-1.0.0.tgz").is_file();
    let run = Run::start(&desk, &["--build-dependencies"]);
    let seen = run.until("the dependencies of helm-charts/app are there");
    let progress = "helm-charts/app: Downloading web from repo";
    assert!(there() && seen.iter().any(|line| line.contains(progress)), "{seen:#?}");
    run.until("App");
    drop(run);
    // Once they are there, nothing is asked for, and nothing is said.
    assert!(!shelf.asked().is_empty());
    let run = Run::start(&desk, &["--build-dependencies"]);
    let seen = run.until("App");
    assert!(!seen.iter().any(|line| line.contains("dependencies") || line.contains("refused")), "{seen:#?}");
    assert!(shelf.asked().is_empty());
}

#[test]
fn dependencies_that_cannot_be_had_are_a_line_and_the_run_goes_on() {
    let shelf = Shelf::open();
    let desk = Desk::new(&on(&format!("{}/none", shelf.url), "1.0.0"));
    desk.done(&["init", "--project", "p", "--helm-chart", "app"]);
    let run = Run::start(&desk, &["--build-dependencies"]);
    let seen = run.until("refused    download the dependencies of charts");
    let line = seen.last().unwrap();
    assert!(line.contains("the dependencies of helm-charts/app") && line.contains("/none"), "{line}");
}
