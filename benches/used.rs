//! Parts that the benches of whole programs share: the memory and the processor time of a process, from
//! `/proc`. Linux only.

/// The use of a process so far.
#[derive(Clone, Copy)]
pub(crate) struct Use {
    /// Memory now, in MB.
    pub(crate) resident: f64,
    /// The most memory at any time, in MB.
    pub(crate) peak: f64,
    /// Seconds of processor time.
    pub(crate) processor: f64,
}

/// Measures the process with this number.
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

/// Measures a process and all below it.
#[allow(dead_code)]
pub(crate) fn used_by_tree(id: u32) -> Use {
    let parent_of = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, parent_of(id)?))).collect();
    let mut tree = vec![id];
    let mut at = 0;
    while let Some(above) = tree.get(at).copied() {
        tree.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(id, _)| *id));
        at += 1;
    }
    tree.into_iter().map(used).fold(Use { resident: 0.0, peak: 0.0, processor: 0.0 }, |sum, one| Use {
        resident: sum.resident + one.resident,
        peak: sum.peak + one.peak,
        processor: sum.processor + one.processor,
    })
}
