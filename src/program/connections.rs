//! Other programs that a process group is connected to, where the system shows that below /proc.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Peers that are named.
const MOST: usize = 3;
/// States of a socket, as the system writes them.
const ESTABLISHED: &str = "01";
const LISTENS: &str = "0A";

/// The addresses that processes in the group of this process have connected to; none where that is not to be
/// seen.
pub(super) fn of_group(pid: u32) -> Vec<String> {
    let proc = Path::new("/proc");
    let Some(group) = group_of(proc, &pid.to_string()) else { return Vec::new() };
    let entries = std::fs::read_dir(proc).into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let inside = pids.filter(|pid| group_of(proc, pid).is_some_and(|other| other == group));
    let sockets: BTreeSet<String> = inside.flat_map(|pid| sockets_of(&proc.join(pid).join("fd"))).collect();
    let tables = ["tcp", "tcp6"].map(|name| {
        std::fs::read_to_string(proc.join(pid.to_string()).join("net").join(name)).unwrap_or_default()
    });
    let mut peers: Vec<String> = peers(&tables, &sockets).iter().map(SocketAddr::to_string).collect();
    peers.truncate(MOST);
    peers
}

/// The process group of a process, from its line of `stat`, in which the name of the program may hold
/// anything.
fn group_of(proc: &Path, pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(proc.join(pid).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// The inodes of the sockets that a process holds open.
fn sockets_of(descriptors: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(descriptors).into_iter().flatten().flatten();
    let links = entries
        .filter_map(|entry| std::fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok());
    links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// The far ends of the connections that some sockets have opened, from the system's tables of sockets.
fn peers(tables: &[String], sockets: &BTreeSet<String>) -> BTreeSet<SocketAddr> {
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let rows: Vec<[&str; 4]> = lines
        .filter_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            Some([*fields.get(1)?, *fields.get(2)?, *fields.get(3)?, *fields.get(9)?])
        })
        .collect();
    let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
    let served: BTreeSet<String> =
        rows.iter().filter(|row| row[2] == LISTENS).filter_map(|row| port(row[0])).collect();
    let opened = rows.iter().filter(|[local, _, state, inode]| {
        *state == ESTABLISHED
            && sockets.contains(*inode)
            && port(local).is_none_or(|port| !served.contains(&port))
    });
    opened.filter_map(|row| address(row[1])).collect()
}

/// An address such as `0100007F:1F90`: each four bytes as a number of this machine, the port as it is read.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let words: Option<Vec<u8>> = (0..host.len() / 8)
        .map(|at| u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok())
        .collect::<Option<Vec<u32>>>()
        .map(|words| words.into_iter().flat_map(u32::to_ne_bytes).collect());
    let bytes = words?;
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn only_what_the_process_itself_has_connected_to_counts() {
        let head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
        let row = |local: &str, remote: &str, state: &str, inode: &str| {
            format!(
                "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  1000        0 {inode} 1 0\n"
            )
        };
        let four = [
            head.to_owned(),
            row("0100007F:24E3", "00000000:0000", "0A", "1"),
            // Somebody calls its webhook.
            row("0100007F:24E3", "0100007F:C001", "01", "2"),
            row("0100007F:C002", "0100000A:192B", "01", "3"),
            // It is not there yet, and another one is not its own.
            row("0100007F:C003", "0200000A:192B", "02", "4"),
            row("0100007F:C004", "0300000A:192B", "01", "9"),
        ]
        .concat();
        let six = format!(
            "{head}{}",
            row("0000000000000000FFFF00000100007F:C005", "0000000000000000FFFF00000400000A:01BB", "01", "5")
        );
        let own = ["1", "2", "3", "4", "5"].map(str::to_owned).into();
        let found: Vec<String> = peers(&[four, six], &own).iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, ["10.0.0.1:6443", "10.0.0.4:443"]);
    }
}
