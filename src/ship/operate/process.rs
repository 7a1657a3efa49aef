//! Metrics that Prometheus' clients tell of their process, read from /proc. Where that is not there, nothing
//! is told.

use super::text::{Exposition, Kind};
use jiff::Timestamp;
use std::fs;

/// Ticks a second in /proc: the same on every machine that Linux runs on today.
const TICKS: f64 = 100.0;

/// Adds the families `process_*`.
pub(super) fn families(out: &mut Exposition, started: Timestamp) {
    let mut tell = |name: &str, kind, help: &str, value: Option<f64>| {
        if let Some(value) = value {
            out.family(name, kind, help);
            out.sample(name, &[], value);
        }
    };
    let started = started.as_duration().as_secs_f64();
    let (received, sent) = network().unzip();
    tell(
        "process_cpu_seconds_total",
        Kind::Counter,
        "Time of the processor that was used, in seconds.",
        cpu(),
    );
    tell("process_max_fds", Kind::Gauge, "How many file descriptors may be open.", limit("Max open files"));
    tell("process_network_receive_bytes_total", Kind::Counter, "Bytes received over the network.", received);
    tell("process_network_transmit_bytes_total", Kind::Counter, "Bytes sent over the network.", sent);
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| whole(entries.count() as u64));
    tell("process_open_fds", Kind::Gauge, "Open file descriptors.", open);
    tell("process_resident_memory_bytes", Kind::Gauge, "Resident memory in bytes.", status("VmRSS:"));
    tell(
        "process_start_time_seconds",
        Kind::Gauge,
        "When the process began, in seconds since 1970.",
        Some(started),
    );
    tell("process_virtual_memory_bytes", Kind::Gauge, "Virtual memory in bytes.", status("VmSize:"));
    let most = limit("Max address space").or(Some(whole(u64::MAX)));
    tell(
        "process_virtual_memory_max_bytes",
        Kind::Gauge,
        "How much virtual memory there may be, in bytes.",
        most,
    );
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
fn whole(number: u64) -> f64 {
    number as f64
}

/// User and system time.
fn cpu() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may hold anything.
    let (_, rest) = text.rsplit_once(')')?;
    let field = |at: usize| rest.split_whitespace().nth(at)?.parse::<u64>().ok();
    let ticks = field(11)? + field(12)?;
    Some(whole(ticks) / TICKS)
}

/// A line of `/proc/self/status` in bytes.
fn status(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(whole(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024))
}

/// A soft limit.
fn limit(name: &str) -> Option<f64> {
    let text = fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(whole)
}

/// Bytes received and sent by all interfaces.
fn network() -> Option<(f64, f64)> {
    let text = fs::read_to_string("/proc/self/net/dev").ok()?;
    let mut sums = (0, 0);
    for (_, counts) in text.lines().filter_map(|line| line.split_once(':')) {
        let field = |at: usize| counts.split_whitespace().nth(at)?.parse::<u64>().ok();
        sums = (sums.0 + field(0)?, sums.1 + field(8)?);
    }
    Some((whole(sums.0), whole(sums.1)))
}
