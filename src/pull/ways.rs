//! The way to a server: directly, or by the proxy that the environment names for it. Through a proxy, TLS
//! goes in a tunnel (CONNECT) and plain HTTP as an absolute address, as in Go: many proxies refuse tunnels to
//! ports other than 443.

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opdev_os::http_proxy::{self, NamedProxy};
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::PoisonError;
use ureq::config::{Config, ConfigBuilder};
use ureq::http::Uri;
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, NextTimeout, TcpConnector, Transport,
};
use ureq::{Agent, Proxy, ProxyProtocol};
use url::Url;

/// How servers are reached.
pub(super) struct Ways {
    config: Box<MakeConfig>,
    direct: Agent,
    /// The ways through proxies that were taken already.
    by_proxy: Mutex<Vec<(bool, NamedProxy, Agent)>>,
}

/// Makes the settings of an agent that goes through a proxy, or directly.
pub(super) type MakeConfig = dyn Fn(Option<Proxy>) -> ConfigBuilder<AgentScope> + Send + Sync;

/// A way to one server.
pub(super) struct Way {
    pub(super) agent: Agent,
    /// The proxy on it.
    pub(super) proxy: Option<NamedProxy>,
}

impl Ways {
    pub(super) fn new(config: Box<MakeConfig>) -> Ways {
        let direct = Agent::new_with_config(config(None).build());
        Ways { config, direct, by_proxy: Mutex::new(Vec::new()) }
    }

    /// The way to a server.
    ///
    /// # Errors
    /// A variable that names no proxy.
    pub(super) fn to(&self, url: &Url) -> Result<Way> {
        let is_plain = url.scheme() == "http";
        let var = |name: &str| std::env::var(name).ok();
        let host = url.host_str().unwrap_or_default();
        let Some(proxy) = http_proxy::named(is_plain, host, url.port(), var) else {
            return Ok(Way { agent: self.direct.clone(), proxy: None });
        };
        let mut known = self.by_proxy.lock().unwrap_or_else(PoisonError::into_inner);
        let agent = match known.iter().find(|(plain, named, _)| (*plain, named) == (is_plain, &proxy)) {
            Some((_, _, agent)) => agent.clone(),
            None => {
                let agent = through(&self.config, is_plain, &proxy)?;
                known.push((is_plain, proxy.clone(), agent.clone()));
                agent
            }
        };
        Ok(Way { agent, proxy: Some(proxy) })
    }
}

/// An agent that goes through a proxy.
fn through(config: &MakeConfig, is_plain: bool, named: &NamedProxy) -> Result<Agent> {
    let Ok(proxy) = Proxy::new(&named.address) else {
        bail!("{}: {} is no address of a proxy", named.variable, super::web::shown_text(&named.address));
    };
    if is_plain && proxy.protocol() == ProxyProtocol::Http {
        // One request for each connection: the address is put into the first line of it.
        let config = config(None).max_idle_connections(0);
        let login = match (proxy.username(), proxy.password()) {
            (None, None) => None,
            (user, password) => {
                let both = format!("{}:{}", user.unwrap_or_default(), password.unwrap_or_default());
                Some(format!("Basic {}", BASE64_STANDARD.encode(both)))
            }
        };
        let connector = <TcpConnector as Connector<()>>::chain(TcpConnector::default(), Absolute { login });
        return Ok(Agent::with_parts(config.build(), connector, ToProxy(proxy)));
    }
    Ok(Agent::new_with_config(config(Some(proxy)).build()))
}

/// Finds the proxy, whatever server is asked for.
#[derive(Debug)]
struct ToProxy(Proxy);

impl Resolver for ToProxy {
    fn resolve(
        &self,
        _: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let place = format!("http://{}:{}/", self.0.host(), self.0.port());
        let place: Uri = place.parse().map_err(|_| ureq::Error::InvalidProxyUrl)?;
        DefaultResolver::default().resolve(&place, config, timeout)
    }
}

/// Has requests name the whole address in their first line, as proxies want it.
struct Absolute {
    /// The login of the user at the proxy.
    login: Option<String>,
}

impl std::fmt::Debug for Absolute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Absolute")
    }
}

impl<In: Transport> Connector<In> for Absolute {
    type Out = ByProxy<In>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<ByProxy<In>>, ureq::Error> {
        let authority = details.uri.authority().map(|authority| {
            // A user in the address is for the server, and goes there as a header.
            authority.as_str().rsplit('@').next().unwrap_or_default().to_owned()
        });
        let before = format!("http://{}", authority.unwrap_or_default());
        Ok(chained.map(|inner| ByProxy { inner, unsent: Some((before, self.login.clone())) }))
    }
}

/// A connection to a proxy, for one request.
struct ByProxy<In> {
    inner: In,
    /// The text before the path, and the login, until the first bytes are sent.
    unsent: Option<(String, Option<String>)>,
}

impl<In> std::fmt::Debug for ByProxy<In> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ByProxy")
    }
}

impl<In: Transport> Transport for ByProxy<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.inner.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        let mut amount = amount;
        if let Some((before, login)) = self.unsent.take() {
            let out = self.inner.buffers().output();
            let whole = absolute(&out[..amount], &before, login.as_deref());
            if whole.len() > out.len() {
                return Err(ureq::Error::Other("the head of the request is too large for a proxy".into()));
            }
            out[..whole.len()].copy_from_slice(&whole);
            amount = whole.len();
        }
        self.inner.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.inner.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }
}

/// The head of a request with the whole address in its first line.
fn absolute(head: &[u8], before: &str, login: Option<&str>) -> Vec<u8> {
    let path = head.iter().position(|byte| *byte == b' ').map_or(0, |at| at + 1);
    let line = head.windows(2).position(|two| two == b"\r\n").map_or(head.len(), |at| at + 2);
    let mut whole = Vec::with_capacity(head.len() + before.len() + 256);
    whole.extend_from_slice(&head[..path]);
    whole.extend_from_slice(before.as_bytes());
    whole.extend_from_slice(&head[path..line]);
    if let Some(login) = login {
        // A write to memory.
        let _ = write!(whole, "Proxy-Authorization: {login}\r\n");
    }
    whole.extend_from_slice(&head[line..]);
    whole
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn a_proxy_is_told_the_whole_address() {
        let head = b"GET /v2/a b HTTP/1.1\r\nHost: r:80\r\n\r\n";
        let told = String::from_utf8(absolute(head, "http://r:80", Some("Basic eDp5"))).unwrap();
        assert_eq!(
            told,
            "GET http://r:80/v2/a b HTTP/1.1\r\nProxy-Authorization: Basic eDp5\r\nHost: r:80\r\n\r\n"
        );
    }
}
