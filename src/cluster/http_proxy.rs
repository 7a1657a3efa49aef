//! Which proxy leads to an API server: `proxy-url` of the kubeconfig, else `HTTPS_PROXY` or `HTTP_PROXY`, unless
//! `NO_PROXY` names the server or it is this machine. The rules are those of Go's client, which kubectl uses.

use anyhow::{Result, bail};
use http::Uri;
use std::net::IpAddr;

/// The proxy for `server`; `None` for the direct way. `var` reads the environment.
///
/// # Errors
/// Where the address of the proxy is none, or its protocol is not spoken.
pub(super) fn proxy(
    in_kubeconfig: Option<&str>,
    server: &Uri,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>> {
    let var = |names: [&str; 2]| {
        names.into_iter().find_map(|name| Some((name.to_owned(), var(name).filter(|text| !text.is_empty())?)))
    };
    if let Some(text) = in_kubeconfig.filter(|text| !text.is_empty()) {
        return parse("proxy-url", text).map(Some);
    }
    let names = match server.scheme_str() {
        Some("http") => ["HTTP_PROXY", "http_proxy"],
        _ => ["HTTPS_PROXY", "https_proxy"],
    };
    let Some((name, text)) = var(names) else { return Ok(None) };
    let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = server.port_u16().unwrap_or(if server.scheme_str() == Some("http") { 80 } else { 443 });
    let direct = var(["NO_PROXY", "no_proxy"]).map(|(_, list)| list).unwrap_or_default();
    if is_here(host) || direct.split(',').any(|entry| covers(entry.trim(), host, port)) {
        return Ok(None);
    }
    parse(&name, &text).map(Some)
}

fn parse(from: &str, text: &str) -> Result<Uri> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    // With socks5h the proxy resolves names; it is asked to either way.
    let text = text.replacen("socks5h://", "socks5://", 1);
    let shown = super::unreachable::bare(&text);
    let uri: Uri = match text.parse() {
        Ok(uri) => uri,
        Err(error) => bail!("{from}: {shown} is no address of a proxy: {error}"),
    };
    match uri.scheme_str() {
        Some("http" | "https" | "socks5") if uri.host().is_some() => Ok(uri),
        _ => {
            bail!("{from}: {shown} is no proxy that opdev can use; it takes http://, https:// and socks5://")
        }
    }
}

fn is_here(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Whether one entry of `NO_PROXY` names a host.
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

    fn chosen(in_kubeconfig: Option<&str>, server: &str, env: &[(&str, &str)]) -> Option<String> {
        let var = |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        proxy(in_kubeconfig, &server.parse().unwrap(), var).unwrap().map(|uri| uri.to_string())
    }

    #[test]
    fn the_kubeconfig_wins_and_no_proxy_is_about_the_server() {
        let https = ("HTTPS_PROXY", "http://proxy:3128");
        assert_eq!(chosen(None, "https://api.example.com", &[https]).unwrap(), "http://proxy:3128/");
        assert_eq!(
            chosen(Some("socks5://s:1"), "https://api.example.com", &[https]).unwrap(),
            "socks5://s:1/"
        );
        assert_eq!(chosen(None, "https://127.0.0.1:6443", &[https]), None, "this machine needs no proxy");
        assert_eq!(chosen(None, "http://api.example.com", &[https]), None, "plain HTTP has its own");
        for list in ["example.com", ".example.com", "*.example.com", "other, api.example.com:443", "*"] {
            assert_eq!(chosen(None, "https://api.example.com", &[https, ("NO_PROXY", list)]), None, "{list}");
        }
        for list in ["other.com", "api.example.com:6443", "ple.com"] {
            assert!(
                chosen(None, "https://api.example.com", &[https, ("no_proxy", list)]).is_some(),
                "{list}"
            );
        }
        for list in ["10.0.0.0/8", "10.1.2.3", "0.0.0.0/0"] {
            assert_eq!(chosen(None, "https://10.1.2.3:6443", &[https, ("NO_PROXY", list)]), None, "{list}");
        }
        assert!(chosen(None, "https://10.1.2.3:6443", &[https, ("NO_PROXY", "11.0.0.0/8")]).is_some());
    }

    #[test]
    fn what_is_no_proxy_is_said_without_its_password() {
        let server = "https://api.example.com".parse().unwrap();
        let error = proxy(Some("ftp://me:hidden@host"), &server, |_| None).unwrap_err().to_string();
        assert!(error.contains("ftp://host") && !error.contains("hidden"), "{error}");
    }
}
