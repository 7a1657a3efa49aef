//! How long the first commands of a new project take, process start to exit: `opdev init`, `opdev create
//! api`, and both for a chart in a folder. Nothing is downloaded. `cargo bench --bench begin`; OPDEV_PROGRAM
//! names another program to measure.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const RUNS: usize = 50;
const NAMES: [&str; 6] = ["--group", "cache", "--version", "v1alpha1", "--kind", "Store"];

fn main() {
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("charts/memcached").display().to_string();
    let init = ["init", "--domain", "my.domain", "--project-name", "memcached"];
    let api = [&["create", "api"][..], &NAMES].concat();
    let of_chart = ["create", "api", "--helm-chart", &chart];
    let (mut inits, mut apis, mut charts, mut both) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (timed(folder.path(), &init), timed(folder.path(), &api));
        charts.push(timed(folder.path(), &of_chart));
        both.push(first + second);
        inits.push(first);
        apis.push(second);
    }
    print("opdev init", inits);
    print("opdev create api", apis);
    print("opdev create api --helm-chart FOLDER", charts);
    print("init and create api together", both);
    println!("goal: init and create api under 50 ms");
}

fn timed(folder: &Path, args: &[&str]) -> Duration {
    let program = std::env::var_os("OPDEV_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_opdev").into());
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("HOME", folder).env_remove("KUBECONFIG");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begun = Instant::now();
    let output = command.output().unwrap();
    let took = begun.elapsed();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    took
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let ms = |part: usize| times[(times.len() - 1) * part / 100].as_secs_f64() * 1e3;
    println!("{what:<40} p50 {:7.2} ms   p95 {:7.2} ms   max {:7.2} ms", ms(50), ms(95), ms(100));
}
