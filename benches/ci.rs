//! How long `opdev ci` takes for the memcached sample, process start to exit: a control plane, the chart
//! installed, its pods ready, a second reconcile, all of it deleted, nothing left. `cargo bench --bench ci`;
//! OPDEV_PROGRAM names another program to measure.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 50;

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let home = tempfile::tempdir().unwrap();
    let report = home.path().join("junit.xml");
    let mut all = Vec::new();
    let mut steps: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for _ in 0..RUNS {
        all.push(run(root, home.path(), &report));
        for (step, took) in cases(&std::fs::read_to_string(&report).unwrap()) {
            steps.entry(step).or_default().push(took);
        }
    }
    print("opdev ci samples/memcached.yaml, process", all);
    for (step, times) in steps {
        print(&format!("  {step}"), times);
    }
    println!("goal: p95 under 500 ms on two idle cores");
}

fn run(root: &Path, home: &Path, report: &Path) -> Duration {
    let program = std::env::var_os("OPDEV_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_opdev").into());
    let mut command = Command::new(program);
    command
        .args(["ci", "samples/memcached.yaml", "--no-disturb", "--junit"])
        .arg(report)
        .current_dir(root)
        .env("HOME", home);
    command.env_remove("KUBECONFIG").env_remove("GITHUB_ACTIONS");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.output().unwrap();
    let took = begun.elapsed();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    took
}

/// The steps of a report, in its own seconds. `scenario` is the whole of it; the rest of the process is its
/// start and end.
fn cases(report: &str) -> Vec<(String, Duration)> {
    let attribute = |line: &str, name: &str| {
        let (_, value) = line.split_once(&format!(" {name}=\""))?;
        Some(value.split_once('"')?.0.to_owned())
    };
    let timed = |line: &str| {
        let name = match line.trim_start() {
            line if line.starts_with("<testcase ") => attribute(line, "name")?,
            line if line.starts_with("<testsuite ") => "scenario".to_owned(),
            _ => return None,
        };
        Some((name, Duration::try_from_secs_f64(attribute(line, "time")?.parse().ok()?).ok()?))
    };
    report.lines().filter_map(timed).collect()
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!("{what:<42} p50 {:7.2} ms   p95 {:7.2} ms   max {:7.2} ms", ms(50), ms(95), ms(100));
}
