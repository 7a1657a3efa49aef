//! The TCP ports on which other processes listen, as Linux tells them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

/// The state of a socket that listens, in the tables of Linux.
const LISTENS: &str = "0A";
/// The ports that Linux chooses by itself, unless it is told otherwise.
const CHOSEN: RangeInclusive<u16> = 32_768..=60_999;

/// The TCP ports on which those processes listen that began with this variable in their environment. Ports
/// that the system has chosen are left out. `None` where the system does not tell, which only Linux does.
pub fn fixed_ports(name: &str, value: &str) -> Option<BTreeSet<u16>> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let newer = fs::read_to_string("/proc/net/tcp6").unwrap_or_default();
    let ports: BTreeMap<&str, u16> = table.lines().chain(newer.lines()).filter_map(listener).collect();
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let chosen = range.as_deref().and_then(chosen).unwrap_or(CHOSEN);
    let variable = format!("{name}={value}");
    let mut found = BTreeSet::new();
    for process in fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path()) {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes()) {
            found.extend(sockets(&process).iter().filter_map(|inode| ports.get(inode.as_str())));
        }
    }
    found.retain(|port| !chosen.contains(port));
    Some(found)
}

/// Inode and port of a line, where that socket listens.
fn listener(line: &str) -> Option<(&str, u16)> {
    let mut words = line.split_whitespace().skip(1);
    let (_, port) = words.next()?.rsplit_once(':')?;
    let state = words.nth(1)?;
    let inode = words.nth(5)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    (state == LISTENS).then_some((inode, port))
}

fn chosen(range: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim().parse().ok()?)
}

/// The inodes of the sockets that a process has open. Without the right to look there are none.
fn sockets(process: &Path) -> Vec<String> {
    let Ok(open) = fs::read_dir(process.join("fd")) else { return Vec::new() };
    let links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    let inode = |link: std::path::PathBuf| {
        let inode = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        Some(inode.to_owned())
    };
    links.filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_has_a_port_if_its_socket_listens() {
        let line = |state: &str| {
            format!(
                "   1: 0100007F:1F90 00000000:0000 {state} 00000000:00000000 00:00000000 00000000  0  0 4242 1 f 100 0"
            )
        };
        assert_eq!(listener(&line("0A")), Some(("4242", 8080)));
        assert_eq!(listener(&line("01")), None, "a connection");
        assert_eq!(
            listener("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt"),
            None
        );
        assert_eq!(chosen("32768\t60999\n"), Some(CHOSEN));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_listens_on_fixed_ports_and_on_those_that_were_chosen() {
        use std::net::{Ipv4Addr, TcpListener};
        let of = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let fixed = (20_000..30_000).find_map(|port| of(port).ok()).unwrap();
        let chosen = of(0).unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let path = std::env::var("PATH").unwrap();
        let found = fixed_ports("PATH", &path).unwrap();
        assert_eq!([found.contains(&port(&fixed)), found.contains(&port(&chosen))], [true, false]);
        assert_eq!(fixed_ports("PATH", "/nowhere"), Some(BTreeSet::new()));
    }
}
