//! The demo's operators from the keyboard: `opdev run` in a terminal, the tutorials' steps in their order.
//! Nothing but keys inside, somebody with a client outside.

use super::outside::Outside;
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use portable_pty::CommandBuilder;
use serde_json::{Value, json};
use std::future::Future;
use std::time::Duration;

const ARMADA_CHART: &str = "armada.airshipit.org/v1alpha1/ArmadaChart";
const PODSET: &str = "app.example.com/v1alpha1/PodSet";
const DEPLOYMENT: &str = "apps/v1/Deployment";

/// opdev on a screen.
struct Screen {
    _folder: tempfile::TempDir,
    pty: Pty,
    outside: Outside,
    runtime: tokio::runtime::Runtime,
}

impl Screen {
    fn start() -> Screen {
        let (folder, project) = demo_project();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(["run", "--embedded"]);
        command.cwd(&project);
        let pty = Pty::start(command, (140, 44));
        pty.wait_for("to apply a sample");
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let outside = runtime.block_on(Outside::new(&project.join(".opdev/kubeconfig")));
        Screen { _folder: folder, pty, outside, runtime }
    }

    /// Does something from outside.
    fn meanwhile<'a, F: Future>(&'a self, does: impl FnOnce(&'a Outside) -> F) -> F::Output {
        self.runtime.block_on(does(&self.outside))
    }

    fn patch(&self, kind: &str, name: &str, patch: &Value) {
        self.meanwhile(|outside| outside.patch(kind, name, patch));
    }

    /// `a`, the sample's words, enter; its row is in the first pane then.
    fn apply(&mut self, words: &str, name: &str) {
        self.pty.keys("a");
        self.pty.wait_for("─ Apply ");
        self.pty.keys(words);
        self.pty.keys("\r");
        self.pty.wait_until(&format!("row of {name}"), |screen| resource(screen, name).is_some());
    }

    /// Narrows the first pane to one custom resource: its selection.
    fn only(&mut self, words: &str) {
        self.pty.keys("1");
        self.pty.wait_for("▸1 Custom resources");
        self.filter(words, "Custom resources");
    }

    /// Narrows the owned pane to what has these words, which selects the first of it.
    fn owned(&mut self, words: &str) {
        self.pty.keys("2");
        self.pty.wait_for("▸2 Owned");
        self.filter(words, "Owned");
    }

    /// `/`, the words, enter. An escape sent on its own: with the next key behind it, it would be alt and
    /// that key.
    fn filter(&mut self, words: &str, pane: &str) {
        self.pty.keys(&format!("/{words}\r"));
        self.pty.wait_until(&format!("a filter on {pane}"), |screen| title(screen, pane).contains(words));
    }

    /// Takes the filter of the focused pane away.
    fn unfilter(&mut self, words: &str, pane: &str) {
        let gone = |screen: &vt100::Screen| !title(screen, pane).contains(words);
        self.pty.keys("\x1b");
        // A warning that has come meanwhile is what the first escape takes away.
        if !self.pty.becomes(Duration::from_secs(3), gone) {
            self.pty.keys("\x1b");
        }
        self.pty.wait_until(&format!("no filter on {pane}"), gone);
    }

    /// `s`, the number, enter.
    fn scale(&mut self, from: usize, to: usize) {
        self.pty.keys("s");
        self.pty.wait_for(&format!("now {from}"));
        self.pty.keys(&format!("{to}\r"));
        self.pty.wait_without(&format!("now {from}"));
    }

    /// `D`, `y`.
    fn delete(&mut self, what: &str) {
        self.pty.keys("D");
        self.pty.wait_for(&format!("Delete {what}"));
        self.pty.wait_for("[y] Delete");
        self.pty.keys("y");
        self.pty.wait_without("[y] Delete");
    }

    /// Waits until exactly so many pods run below the selected resource, none of them `not`; the ends of
    /// their names.
    fn running(&self, count: usize, not: &[String]) -> Vec<String> {
        let mut found = Vec::new();
        self.pty.wait_until(&format!("{count} running pods, none of {not:?}"), |screen| {
            found = pods(screen);
            found.len() == count && found.iter().all(|(name, runs)| *runs && !not.contains(name))
        });
        found.into_iter().map(|(name, _)| name).collect()
    }

    fn quit(mut self) {
        self.pty.keys("q");
        assert!(self.pty.wait_exit().success(), "{}", self.pty.screen());
        self.pty.assert_restored();
    }
}

/// The left panes, line by line: up to the column of their border, for trees are drawn with the same line.
fn left(screen: &vt100::Screen) -> Vec<String> {
    let contents = screen.contents();
    let border = contents.lines().find_map(|line| line.chars().position(|drawn| drawn == '┬')).unwrap_or(0);
    contents.lines().map(|line| line.chars().take(border).skip(1).collect()).collect()
}

/// The row of a custom resource; a sample that could be applied is none.
fn resource(screen: &vt100::Screen, name: &str) -> Option<String> {
    left(screen).into_iter().find(|line| line.contains(&format!(" {name} ")) && !line.contains("samples/"))
}

/// The pods of the owned pane: the last five letters of their names, and whether they run.
fn pods(screen: &vt100::Screen) -> Vec<(String, bool)> {
    let rows = left(screen);
    let rows = rows.iter().filter_map(|line| line.split_once(" Pod ")).map(|(_, pod)| pod);
    rows.map(|pod| {
        let name = pod.split_whitespace().next().unwrap_or_default();
        let end = name.chars().rev().take(5).collect::<Vec<_>>().into_iter().rev().collect();
        (end, pod.contains(" Running ") && pod.contains(" 1/1 "))
    })
    .collect()
}

/// The title line of a pane.
fn title(screen: &vt100::Screen, pane: &str) -> String {
    screen.contents().lines().find(|line| line.contains(pane)).unwrap_or_default().to_owned()
}

#[test]
fn podset() {
    let mut screen = Screen::start();
    screen.apply("podset-sample", "podset-sample");
    let three = screen.running(3, &[]);
    screen.scale(3, 5);
    let five = screen.running(5, &[]);
    assert!(three.iter().all(|pod| five.contains(pod)), "scaling up keeps the pods: {three:?} {five:?}");
    screen.scale(5, 1);
    let one = screen.running(1, &[]);

    screen.pty.keys("2");
    screen.pty.wait_for("▸2 Owned");
    screen.delete("Pod default/podset-sample-");
    screen.running(1, &one);

    screen.patch(PODSET, "podset-sample", &json!({"spec": {"replicas": 2}}));
    screen.running(2, &one);

    screen.pty.keys("1");
    screen.delete("PodSet default/podset-sample");
    screen.pty.wait_for("to apply a sample");
    screen.quit();
}

#[test]
fn memcached_and_its_backup() {
    let mut screen = Screen::start();
    screen.apply("memcachedbackup-sample", "memcachedbackup-sample");
    screen.running(2, &[]);
    screen.scale(2, 4);
    screen.running(4, &[]);
    screen.scale(4, 0);
    screen.running(0, &[]);
    screen.scale(0, 1);
    let one = screen.running(1, &[]);
    // A pod goes: another one comes, and the status follows.
    screen.owned("pod");
    screen.pty.keys("G");
    screen.delete("Pod default/memcachedbackup-sample-");
    screen.running(1, &one);
    screen.unfilter("pod", "Owned");
    screen.patch(DEPLOYMENT, "memcachedbackup-sample", &json!({"spec": {"replicas": 3}}));
    screen.pty.wait_for("repaired");
    screen.running(1, &[]);

    screen.apply("memcached-sample", "memcached-sample");
    screen.only("memcached-sample");
    screen.running(3, &[]);
    screen.scale(3, 5);
    screen.running(5, &[]);
    screen.scale(5, 1);
    let one = screen.running(1, &[]);
    screen.owned("pod");
    screen.pty.keys("G");
    screen.delete("Pod default/memcached-sample-");
    screen.running(1, &one);
    screen.unfilter("pod", "Owned");
    screen.patch(DEPLOYMENT, "memcached-sample", &json!({"spec": {"replicas": 7}}));
    screen.pty.wait_for(".spec.replicas 1→7");
    screen.running(1, &[]);

    screen.pty.keys("1");
    screen.delete("Memcached default/memcached-sample");
    screen.pty.wait_until("no Memcached", |screen| resource(screen, "memcached-sample").is_none());
    screen.unfilter("memcached-sample", "Custom resources");
    screen.pty.wait_until("the backup", |screen| resource(screen, "memcachedbackup-sample").is_some());
    screen.delete("MemcachedBackup default/memcachedbackup-sample");
    screen.pty.wait_for("to apply a sample");
    screen.quit();
}

#[test]
fn hello() {
    let mut screen = Screen::start();
    screen.apply("hello example !ingress", "example");
    screen.running(2, &[]);

    screen.patch(DEPLOYMENT, "example-greeter", &json!({"spec": {"replicas": 5}}));
    screen.pty.wait_for("repaired");
    let two = screen.running(2, &[]);

    // Each child goes by key, and is back with pods of its own.
    for child in ["example-greeter", "example-hello"] {
        screen.owned(&format!("deployment {child}"));
        screen.delete(&format!("Deployment default/{child}"));
        screen.unfilter("deployment", "Owned");
    }
    screen.running(2, &two);
    screen.pty.keys("1");
    screen.delete("Hello default/example");
    screen.pty.wait_for("to apply a sample");
    screen.quit();
}

#[test]
fn armada() {
    let mut screen = Screen::start();
    screen.apply("ArmadaChart blog-2", "blog-2");
    // Disabled: out, until somebody patches the target state, as a workflow would.
    screen.pty.keys("y");
    screen.pty.wait_for("actual_state: uninitialized");
    screen.pty.keys("1");
    screen.patch(ARMADA_CHART, "blog-2", &json!({"spec": {"target_state": "deployed"}}));
    screen.running(1, &[]);
    screen.patch(ARMADA_CHART, "blog-2", &json!({"spec": {"target_state": "uninstalled"}}));
    screen.running(0, &[]);

    screen.apply("ArmadaChart blog-1", "blog-1");
    screen.apply("ArmadaChartGroup blog-group", "blog-group");
    screen.apply("ArmadaManifest simple-armada", "simple-armada");
    screen.only("simple-armada");
    let two = screen.running(2, &[]);
    // The whole tree: the manifest's group, the group's charts, what the charts' releases hold.
    for owned in ["ArmadaChartGroup blog-group", "ArmadaChart blog-1", "Deployment blog-2-testchart"] {
        screen.pty.wait_for(owned);
    }
    screen.owned("deployment blog-1");
    screen.pty.keys("G");
    screen.delete("Deployment default/blog-1-testchart");
    screen.unfilter("deployment", "Owned");
    screen.pty.wait_until("another pod of blog-1, the same of blog-2", |screen| {
        let now = pods(screen);
        let kept = now.iter().filter(|(name, _)| two.contains(name)).count();
        now.len() == 2 && kept == 1 && now.iter().all(|(_, runs)| *runs)
    });
    screen.pty.keys("1");
    screen.delete("ArmadaManifest default/simple-armada");
    screen.pty.wait_until("an empty list", |screen| resource(screen, "simple-armada").is_none());
    screen.unfilter("simple-armada", "Custom resources");
    screen.pty.wait_for("to apply a sample");
    screen.quit();
}
