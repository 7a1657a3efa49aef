//! The proxy that the environment names for a server: `HTTPS_PROXY` or `HTTP_PROXY`, unless `NO_PROXY` names
//! the server or it is this machine. The rules are those of Go's clients: kubectl, Helm and Docker.

use std::net::IpAddr;

/// A proxy as the environment names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProxy {
    /// The variable.
    pub variable: String,
    /// Its value, which may hold a password.
    pub address: String,
}

/// The proxy for a server; `None` for the direct way. `var` reads the environment.
pub fn named(
    is_plain: bool,
    host: &str,
    port: Option<u16>,
    var: impl Fn(&str) -> Option<String>,
) -> Option<NamedProxy> {
    let var = |names: [&str; 2]| {
        names.into_iter().find_map(|name| Some((name.to_owned(), var(name).filter(|text| !text.is_empty())?)))
    };
    let names = if is_plain { ["HTTP_PROXY", "http_proxy"] } else { ["HTTPS_PROXY", "https_proxy"] };
    let (variable, address) = var(names)?;
    let host = host.trim_matches(['[', ']']);
    let port = port.unwrap_or(if is_plain { 80 } else { 443 });
    let direct = var(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
    let is_direct = is_here(host) || direct.split(',').any(|entry| covers(entry.trim(), host, port));
    (!is_direct).then_some(NamedProxy { variable, address })
}

/// Returns true if a host is this machine.
pub fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Returns true if one entry of `NO_PROXY` names a host.
fn covers(entry: &str, host: &str, port: u16) -> bool {
    if entry.is_empty() {
        return false;
    }
    if entry == "*" {
        return true;
    }
    let (entry, wanted) = match entry.rsplit_once(':') {
        Some((before, digits)) if !before.contains(':') || before.ends_with(']') => {
            (before, digits.parse::<u16>().ok())
        }
        _ => (entry, None),
    };
    if wanted.is_some_and(|wanted| wanted != port) {
        return false;
    }
    let entry = entry.trim_matches(['[', ']']);
    if let Ok(ip) = host.parse::<IpAddr>() {
        return match entry.split_once('/') {
            Some((network, bits)) => network
                .parse()
                .is_ok_and(|network| bits.parse().is_ok_and(|bits: u32| in_network(ip, network, bits))),
            None => entry.parse::<IpAddr>().is_ok_and(|other| other == ip),
        };
    }
    let (host, entry) = (host.to_ascii_lowercase(), entry.to_ascii_lowercase());
    let domain = entry.strip_prefix('*').unwrap_or(&entry);
    match domain.strip_prefix('.') {
        Some(_) => host.ends_with(domain),
        None => host == domain || host.ends_with(&format!(".{domain}")),
    }
}

fn in_network(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (ip, network, size) = match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (u128::from(ip.to_bits()), u128::from(network.to_bits()), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => (ip.to_bits(), network.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let Some(rest) = u32::checked_sub(size, bits) else { return false };
    ip.checked_shr(rest) == network.checked_shr(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_and_what_no_proxy_names_are_reached_directly() {
        let by = |is_plain: bool, host: &str, list: &str| {
            let var = |name: &str| match name {
                "HTTPS_PROXY" => Some("http://secure:1".to_owned()),
                "http_proxy" => Some("http://plain:1".to_owned()),
                "NO_PROXY" => Some(list.to_owned()),
                _ => None,
            };
            named(is_plain, host, Some(5000), var).map(|found| found.address).unwrap_or_default()
        };
        assert_eq!(by(false, "r.example", ""), "http://secure:1");
        assert_eq!(by(true, "r.example", ""), "http://plain:1");
        for here in ["localhost", "127.0.0.1", "127.8.0.1", "[::1]"] {
            assert_eq!(by(false, here, ""), "", "{here}");
        }
        assert_eq!(by(false, "a.r.example", "other, .r.example"), "");
        assert_eq!(by(false, "r.example", "r.example:5001"), "http://secure:1");
        assert_eq!(by(false, "10.1.2.3", "10.0.0.0/8"), "");
    }
}
