//! Sockets of other processes, where Linux shows them below /proc: the programs that they are connected
//! to, and the ports on which they listen.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;

/// Peers that are named.
const MOST: usize = 3;
/// States of a socket, as the system writes them.
const ESTABLISHED: &str = "01";
const LISTENS: &str = "0A";
/// The ports that Linux chooses by itself, unless it is told otherwise.
const CHOSEN: RangeInclusive<u16> = 32_768..=60_999;

/// The addresses that processes in the group of this process have connected to; none where that is not to be
/// seen.
pub fn peers_of_group(pid: u32) -> Vec<String> {
    let proc = Path::new("/proc");
    let Some(group) = group_of(proc, &pid.to_string()) else { return Vec::new() };
    let sockets = sockets_of(proc, |pid| group_of(proc, pid) == Some(group));
    let tables = tables(&proc.join(pid.to_string()).join("net"));
    let mut peers: Vec<String> = peers(&tables, &sockets).iter().map(SocketAddr::to_string).collect();
    peers.truncate(MOST);
    peers
}

/// The TCP ports on which those processes listen that began with this variable in their environment. Ports
/// that the system has chosen are left out. `None` where the system does not tell, which only Linux does.
pub fn fixed_ports(name: &str, value: &str) -> Option<BTreeSet<u16>> {
    let proc = Path::new("/proc");
    let net = proc.join("net");
    if !net.join("tcp").exists() {
        return None;
    }
    let variable = format!("{name}={value}");
    let has_variable = |pid: &str| {
        let environment = std::fs::read(proc.join(pid).join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    let mut ports = listening(&tables(&net), &sockets_of(proc, has_variable));
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let chosen = range.as_deref().and_then(chosen).unwrap_or(CHOSEN);
    ports.retain(|port| !chosen.contains(port));
    Some(ports)
}

/// The ports on which some sockets listen.
fn listening(tables: &[String], sockets: &BTreeSet<String>) -> BTreeSet<u16> {
    let rows = rows(tables).filter(|[_, _, state, inode]| *state == LISTENS && sockets.contains(*inode));
    rows.filter_map(|[local, ..]| Some(address(local)?.port())).collect()
}

fn chosen(range: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = range.trim().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim().parse().ok()?)
}

/// The system's tables of sockets, in the folder `net` of a process.
fn tables(net: &Path) -> [String; 2] {
    ["tcp", "tcp6"].map(|name| std::fs::read_to_string(net.join(name)).unwrap_or_default())
}

/// The lines of such tables: near end, far end, state, inode.
fn rows(tables: &[String]) -> impl Iterator<Item = [&str; 4]> {
    tables.iter().flat_map(|table| table.lines().skip(1)).filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        Some([*fields.get(1)?, *fields.get(2)?, *fields.get(3)?, *fields.get(9)?])
    })
}

/// The process group of a process, from its line of `stat`, in which the name of the program may hold
/// anything.
fn group_of(proc: &Path, pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(proc.join(pid).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(2)?.parse().ok()
}

/// The inodes of the sockets that some processes hold open. Without the right to look there are none.
fn sockets_of(proc: &Path, is_one: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let pids = entries(proc).filter_map(|entry| entry.file_name().into_string().ok());
    let open = pids.filter(|pid| is_one(pid)).flat_map(|pid| entries(&proc.join(pid).join("fd")));
    let links =
        open.filter_map(|entry| std::fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok());
    links.filter_map(|link| Some(link.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())).collect()
}

/// The far ends of the connections that some sockets have opened, from the system's tables of sockets.
fn peers(tables: &[String], sockets: &BTreeSet<String>) -> BTreeSet<SocketAddr> {
    let rows: Vec<[&str; 4]> = rows(tables).collect();
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
        let tables = [four, six];
        assert_eq!(listening(&tables, &own), [0x24E3].into());
        assert_eq!(listening(&tables, &["3".to_owned()].into()), BTreeSet::new(), "a connection");
        let found: Vec<String> = peers(&tables, &own).iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, ["10.0.0.1:6443", "10.0.0.4:443"]);
    }

    #[test]
    fn the_system_says_which_ports_it_chooses() {
        assert_eq!(chosen("32768\t60999\n"), Some(CHOSEN));
        assert_eq!(chosen("no range"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_listens_on_fixed_ports_and_on_those_that_were_chosen() {
        use std::net::{TcpListener, TcpStream};
        let of = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let fixed = (20_000..30_000).find_map(|port| of(port).ok()).unwrap();
        let chosen = of(0).unwrap();
        let connection = TcpStream::connect(chosen.local_addr().unwrap()).unwrap();
        let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
        let path = std::env::var("PATH").unwrap();
        let found = fixed_ports("PATH", &path).unwrap();
        assert_eq!([found.contains(&port(&fixed)), found.contains(&port(&chosen))], [true, false]);
        assert!(!found.contains(&connection.local_addr().unwrap().port()), "a connection listens on nothing");
        assert_eq!(fixed_ports("PATH", "/nowhere"), Some(BTreeSet::new()));
    }
}
