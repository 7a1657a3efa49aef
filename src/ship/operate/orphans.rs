//! Processes that nobody waits for. The first process of a container becomes the parent of all that lose
//! theirs, and has to ask how they ended, or their numbers are never free again. What opdev has started
//! itself is waited for by whoever started it.

use rustix::process::{Pid, WaitOptions, waitpid};
use std::collections::BTreeMap;
use std::time::Duration;

/// How often it is looked. What has ended and is seen twice is waited for by nobody.
const PAUSE: Duration = Duration::from_secs(30);

/// A child that has ended: its number, and when it began, in ticks since the start of the machine.
type Ended = (i32, u64);

/// Looks for ever, where opdev is the first process.
pub(super) async fn reap() {
    if std::process::id() != 1 {
        return;
    }
    let mut seen = BTreeMap::new();
    loop {
        tokio::time::sleep(PAUSE).await;
        let ended = tokio::task::spawn_blocking(|| ended_children(1)).await.unwrap_or_default();
        due(&mut seen, ended).into_iter().for_each(wait_for);
    }
}

/// The processes that were there the last time, too.
fn due(seen: &mut BTreeMap<i32, u64>, ended: Vec<Ended>) -> Vec<i32> {
    let before = std::mem::replace(seen, ended.iter().copied().collect());
    let is_old = |(number, began): &Ended| before.get(number) == Some(began);
    ended.into_iter().filter(is_old).map(|(number, _)| number).collect()
}

fn wait_for(number: i32) {
    if let Some(pid) = Pid::from_raw(number) {
        // Somebody may have waited for it meanwhile.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// The children of a process that have ended, and nobody has waited for; nothing where there is no /proc.
fn ended_children(parent: i32) -> Vec<Ended> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter_map(|number| {
            let text = std::fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
            Some((number, ended_child(&text, parent)?))
        })
        .collect()
}

/// When a process began, where its line in /proc says that it has ended and is the child of this one.
fn ended_child(stat: &str, parent: i32) -> Option<u64> {
    // The name of the program may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let is_ended = fields.first() == Some(&"Z") && fields.get(1)?.parse() == Ok(parent);
    if is_ended { fields.get(19)?.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_ended_is_waited_for_once_it_was_seen_twice() {
        let mut seen = BTreeMap::new();
        assert!(due(&mut seen, vec![(7, 100), (8, 100)]).is_empty());
        // The number 8 is another process's now.
        assert_eq!(due(&mut seen, vec![(7, 100), (8, 200), (9, 300)]), [7]);
        assert_eq!(due(&mut seen, vec![(8, 200)]), [8]);
        assert!(due(&mut seen, Vec::new()).is_empty() && seen.is_empty());
    }

    #[test]
    fn a_line_of_proc_says_who_has_ended() {
        let fields = "0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0";
        let line = |state: &str, parent: i32| format!("12 (a) Z 1 (b) {state} {parent} {fields}");
        assert_eq!(ended_child(&line("Z", 1), 1), Some(4711));
        assert_eq!(ended_child(&line("S", 1), 1), None);
        assert_eq!(ended_child(&line("Z", 5), 1), None);
        assert_eq!(ended_child("", 1), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_that_nobody_waits_for_is_found_and_goes() {
        let own = i32::try_from(std::process::id()).unwrap();
        #[expect(clippy::zombie_processes, reason = "this is one")]
        let child = std::process::Command::new("true").spawn().unwrap();
        let number = i32::try_from(child.id()).unwrap();
        let is_there = || ended_children(own).iter().any(|(one, _)| *one == number);
        while !is_there() {
            std::thread::yield_now();
        }
        wait_for(number);
        assert!(!is_there());
    }
}
