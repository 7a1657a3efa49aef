//! What the benches of whole programs share: the memory and the processor time of a process, from `/proc`. Linux only.

/// What a process has used so far.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Memory now, in MB.
    pub(crate) resident: f64,
    /// The most memory at any time, in MB.
    pub(crate) peak: f64,
    /// Seconds of processor time.
    pub(crate) processor: f64,
}

/// Of the process with this number.
pub(crate) fn used(id: u32) -> Use {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let megabytes = |field: &str| {
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
    };
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // User and system time in ticks, of which Linux shows a hundred in a second.
    let ticks: f64 = fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum();
    Use { resident: megabytes("VmRSS:"), peak: megabytes("VmHWM:"), processor: ticks / 100.0 }
}
