//! Beside the real Helm: the whole process, and in one process cold, warm, after one edit of a template or of
//! a value. `OPDEV_CORPUS=DIR OPDEV_ORACLES=DIR cargo bench --bench helm`: DIR/charts/NAME are charts,
//! DIR/helm3 and DIR/helm4 the binaries. Runs alternate; medians and ratios are printed. What is not at hand
//! is left out.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use opdev_helm::chart::{Chart, FileSet, read_dir};
use opdev_helm::engine::{
    Capabilities, Compat, Environment, FuncError, Memory, ParseCache, ReleaseInfo, RenderInput, Rendered,
    render,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The charts, a value to edit in each (a path that templates read), by their folder in the corpus.
const CHARTS: [(&str, &str); 6] = [
    ("stefanprodan-podinfo", "/replicaCount"),
    ("kubernetes-ingress-nginx", "/controller/replicaCount"),
    ("cert-manager-cert-manager", "/replicaCount"),
    ("hashicorp-consul", "/server/replicas"),
    ("bitnami-kube-prometheus", "/prometheus/replicaCount"),
    ("istio-base", "/defaultRevision"),
];

fn main() {
    let Some(corpus) = std::env::var_os("OPDEV_CORPUS").map(PathBuf::from) else {
        println!("OPDEV_CORPUS is not set: nothing to measure");
        return;
    };
    let runs = std::env::var("OPDEV_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(15);
    let charts = CHARTS.map(|(name, path)| (corpus.join("charts").join(name), path));
    let charts: Vec<_> = charts.into_iter().filter(|(path, _)| path.is_dir()).collect();
    if let Some(oracles) = std::env::var_os("OPDEV_ORACLES").map(PathBuf::from) {
        println!("whole process, medians of {runs}; memory is the peak resident set\n");
        println!(
            "{:<28} {:>9} {:>9} {:>7} {:>9} {:>7} {:>8} {:>8}",
            "", "opdev", "helm3", "ratio", "helm4", "ratio", "opdev", "helm3"
        );
        for (path, _) in &charts {
            processes(&oracles, path, runs);
        }
    }
    println!("\nin one process, medians of {runs}, ms\n");
    println!(
        "{:<28} {:>9} {:>9} {:>9} {:>9} {:>9}  templates run after the edits",
        "", "bytes", "cold", "warm", "template", "value"
    );
    for (path, value) in &charts {
        one_process(path, value, runs);
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn opdev(chart: &Path, helm: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["render", "rel"]).arg(chart).args(["--helm-compat", helm]);
    command
}

fn helm(oracles: &Path, which: &str, chart: &Path) -> Command {
    let mut command = Command::new(oracles.join(which));
    command.args(["template", "rel"]).arg(chart);
    command
}

fn timed(mut command: Command) -> Duration {
    let began = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}");
    began.elapsed()
}

/// Runs a command under `time` for the most memory it had, in MB.
fn memory(command: &Command) -> Option<f64> {
    let mut time = Command::new("/usr/bin/time");
    time.args(["-f", "%M"]).arg(command.get_program()).args(command.get_args());
    let output = time.stdout(Stdio::null()).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    said.lines().last()?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes / 1024.0)
}

fn processes(oracles: &Path, chart: &Path, runs: usize) {
    let (mut own, mut own4, mut three, mut four) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        own.push(timed(opdev(chart, "3")));
        three.push(timed(helm(oracles, "helm3", chart)));
        own4.push(timed(opdev(chart, "4")));
        four.push(timed(helm(oracles, "helm4", chart)));
    }
    let (own, own4, three, four) =
        (median(&mut own), median(&mut own4), median(&mut three), median(&mut four));
    let used = |command: &Command| memory(command).map_or_else(|| "?".to_owned(), |mb| format!("{mb:.0} MB"));
    println!(
        "{:<28} {own:>6.1} ms {three:>6.0} ms {:>6.1}x {four:>6.0} ms {:>6.1}x {:>8} {:>8}",
        name(chart),
        three / own,
        four / own4,
        used(&opdev(chart, "3")),
        used(&helm(oracles, "helm3", chart)),
    );
}

struct Still;

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = u8::try_from((i * 197 + 31) % 251).unwrap_or(0);
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<Value, FuncError> {
        Ok(json!({}))
    }
}

/// One chart and what is kept between its renders.
struct Bench {
    capabilities: Capabilities,
    cache: Arc<ParseCache>,
    memory: Memory,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            capabilities: Capabilities::default_for(Compat::V3),
            cache: Arc::default(),
            memory: Memory::default(),
        }
    }

    fn render(&self, chart: &Chart, values: &Value) -> Rendered {
        let input = RenderInput {
            cache: Some(Arc::clone(&self.cache)),
            memory: Some(&self.memory),
            ..RenderInput::new(values, ReleaseInfo::install("rel", "default"), &self.capabilities, &Still)
        };
        render(chart, &input).unwrap()
    }
}

/// The chart's files with a comment at the end of the largest template that gives a document.
fn edited(files: &FileSet, turn: usize) -> FileSet {
    let largest = files
        .iter()
        .filter(|(path, _)| path.starts_with("templates/") && path.ends_with(".yaml"))
        .max_by_key(|(_, data)| data.len())
        .map(|(path, data)| (path.to_owned(), data.to_vec()));
    let (path, mut data) = largest.unwrap();
    data.extend_from_slice(format!("\n# {turn}\n").as_bytes());
    let mut files = files.clone();
    files.insert(path, data);
    files
}

fn value_at(path: &str, turn: usize) -> Value {
    let new = if path == "/defaultRevision" { json!(format!("r{turn}")) } else { json!(turn as f64 + 2.0) };
    path.split('/').skip(1).collect::<Vec<_>>().into_iter().rev().fold(new, |inner, key| json!({key: inner}))
}

fn one_process(path: &Path, value: &str, runs: usize) {
    let files = read_dir(path).unwrap();
    let chart = Chart::load(&files).unwrap();
    let plain = json!({});
    let (mut cold, mut warm, mut template, mut values) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut ran = (0, 0);
    let time = |times: &mut Vec<Duration>, work: &mut dyn FnMut() -> usize| {
        let began = Instant::now();
        let executed = work();
        times.push(began.elapsed());
        executed
    };
    let kept = Bench::new();
    let bytes = kept.render(&chart, &plain).manifest.len();
    for turn in 0..runs {
        time(&mut cold, &mut || {
            let chart = Chart::load(&read_dir(path).unwrap()).unwrap();
            Bench::new().render(&chart, &plain).executed
        });
        let all = Bench::new();
        all.render(&chart, &plain);
        time(&mut warm, &mut || kept.render(&chart, &plain).executed);
        let changed = Chart::load(&edited(&files, turn)).unwrap();
        ran.0 = time(&mut template, &mut || all.render(&changed, &plain).executed);
        let new = value_at(value, turn);
        ran.1 = time(&mut values, &mut || all.render(&changed, &new).executed);
    }
    println!(
        "{:<28} {bytes:>9} {:>9.2} {:>9.2} {:>9.2} {:>9.2}  {} and {}",
        name(path),
        median(&mut cold),
        median(&mut warm),
        median(&mut template),
        median(&mut values),
        ran.0,
        ran.1
    );
}
