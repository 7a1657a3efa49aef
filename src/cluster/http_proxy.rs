//! The proxy that leads to an API server: `proxy-url` of the kubeconfig, else `HTTPS_PROXY` or `HTTP_PROXY`,
//! unless
//! `NO_PROXY` names the server or it is this machine. The rules are those of Go's client, which kubectl uses.

use anyhow::{Result, bail};
use http::Uri;
use opdev_os::http_proxy::named;

/// The proxy for `server`; `None` for the direct way. `var` reads the environment.
///
/// # Errors
/// Where the address of the proxy is none, or its protocol is not spoken.
pub(super) fn proxy(
    in_kubeconfig: Option<&str>,
    server: &Uri,
    var: impl Fn(&str) -> Option<String>,
) -> Result<Option<Uri>> {
    if let Some(text) = in_kubeconfig.filter(|text| !text.is_empty()) {
        return parse("proxy-url", text).map(Some);
    }
    let is_plain = server.scheme_str() == Some("http");
    let named = named(is_plain, server.host().unwrap_or_default(), server.port_u16(), var);
    named.map(|proxy| parse(&proxy.variable, &proxy.address)).transpose()
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

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

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
        expect![
            "proxy-url: ftp://host is no proxy that opdev can use; it takes http://, https:// and socks5://"
        ]
        .assert_eq(&error);
    }
}
