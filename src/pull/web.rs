//! HTTP for charts: bounded answers, redirects that leave credentials behind where they leave the server,
//! errors without what may be secret in an address.

use super::Access;
use super::ways::{Way, Ways};
use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use opdev_os::http_proxy;
use opdev_os::read;
use secrecy::{ExposeSecret as _, SecretString};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};
use ureq::config::ConfigBuilder;
use ureq::http::{HeaderMap, Response};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body, Proxy};
use url::Url;

/// The bytes that an index or an archive may have.
pub(super) const LARGEST: u64 = 100 << 20;
/// How long a server may take to be reached, and then to begin its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a body may take.
const LONGEST: Duration = Duration::from_secs(600);
/// Bytes of a body that have to come in each second, on the whole: no server that means well is slower.
const SLOWEST: u64 = 256;
const REDIRECTS: usize = 10;

/// Asks servers that are reached in one way.
pub(super) struct Web {
    ways: Ways,
    pub(super) access: Access,
}

/// The answer of a server.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// The address that was asked at last, for messages.
    pub(super) from: String,
}

/// A request.
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    pub(super) accept: &'a str,
    /// The header `Authorization`, for the server of `url` only.
    pub(super) authorization: Option<&'a SecretString>,
    /// Bytes that the answer may have.
    pub(super) largest: u64,
}

/// A request that changes something, which is never redirected, or one that only asks whether something is
/// there.
pub(super) struct Send<'a> {
    method: &'static str,
    pub(super) url: &'a Url,
    content_type: &'a str,
    body: &'a [u8],
}

impl<'a> Send<'a> {
    pub(super) fn head(url: &'a Url) -> Send<'a> {
        Send { method: "HEAD", url, content_type: "", body: &[] }
    }

    pub(super) fn post(url: &'a Url) -> Send<'a> {
        Send { method: "POST", url, content_type: "", body: &[] }
    }

    pub(super) fn put(url: &'a Url, content_type: &'a str, body: &'a [u8]) -> Send<'a> {
        Send { method: "PUT", url, content_type, body }
    }
}

impl Web {
    /// # Errors
    /// Files of certificates that cannot be read.
    pub(super) fn new(access: &Access) -> Result<Web> {
        let tls = tls(access)?;
        let config = move |proxy: Option<Proxy>| config(tls.clone(), proxy);
        Ok(Web { ways: Ways::new(Box::new(config)), access: access.clone() })
    }

    /// The header of basic authentication, where there is a login and the address is on the server of
    /// `owner`.
    pub(super) fn basic_for(&self, url: &Url, owner: &Url) -> Option<SecretString> {
        let theirs = self.access.pass_to_all_hosts || url.origin() == owner.origin();
        (theirs && self.access.has_login()).then(|| basic(&self.access.username, &self.access.password))
    }

    /// Fetches what an address holds.
    ///
    /// # Errors
    /// `failed to fetch URL : 404 Not Found`, as Helm says it; or why the server cannot be reached.
    pub(super) fn fetch(&self, url: &Url, owner: &Url, accept: &str) -> Result<Vec<u8>> {
        let authorization = self.basic_for(url, owner);
        let ask = Ask { url, accept, authorization: authorization.as_ref(), largest: LARGEST };
        let answer = self.send(&ask)?;
        if answer.status != 200 {
            let reason = ureq::http::StatusCode::from_u16(answer.status)
                .ok()
                .and_then(|status| status.canonical_reason())
                .unwrap_or_default();
            let hint = match answer.status {
                401 | 403 => {
                    "; --username with --password-stdin, or `helm repo add` with a login, says who you are"
                }
                _ => "",
            };
            bail!("failed to fetch {} : {} {reason}{hint}", answer.from, answer.status);
        }
        Ok(answer.body)
    }

    /// Sends a GET and follows redirects.
    ///
    /// # Errors
    /// Why there is no whole answer.
    pub(super) fn send(&self, ask: &Ask<'_>) -> Result<Answer> {
        let mut url = ask.url.clone();
        let mut authorization = ask.authorization.cloned();
        for _ in 0..=REDIRECTS {
            let response = self.once(&url, ask.accept, authorization.as_ref())?;
            let Some(next) = redirect(&url, &response)? else {
                return whole(response, &url, ask.largest);
            };
            if next.origin() != url.origin() {
                authorization = None;
            }
            url = next;
        }
        bail!("{}: stopped after {REDIRECTS} redirects", shown(ask.url))
    }

    /// Sends a form, for a token of a registry.
    ///
    /// # Errors
    /// Why there is no whole answer.
    pub(super) fn post_form(&self, url: &Url, fields: &[(&str, &str)], largest: u64) -> Result<Answer> {
        let way = self.ways.to(url)?;
        let sent = way.agent.post(url.as_str()).send_form(fields.iter().copied());
        whole(sent.map_err(|error| unreachable(url, &way, &error))?, url, largest)
    }

    /// Sends a request. One that changes something follows no redirect.
    ///
    /// # Errors
    /// Why there is no whole answer.
    pub(super) fn exchange(
        &self,
        send: &Send<'_>,
        authorization: Option<&SecretString>,
        largest: u64,
    ) -> Result<Answer> {
        let url = send.url;
        if !matches!(url.scheme(), "http" | "https") {
            bail!("could not find protocol handler for: {}", url.scheme());
        }
        let header = authorization.map(|header| ("Authorization", header.expose_secret()));
        if send.method == "HEAD" {
            return self.head(url, authorization);
        }
        let mut request = ureq::http::Request::builder().method(send.method).uri(url.as_str());
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        if !send.content_type.is_empty() {
            request = request.header("Content-Type", send.content_type);
        }
        let request = request.body(send.body).with_context(|| format!("{} is no address", shown(url)))?;
        // A registry reads and stores all of a layer before it answers.
        let way = self.ways.to(url)?;
        let request = way.agent.configure_request(request).timeout_recv_response(Some(LONGEST)).build();
        whole(way.agent.run(request).map_err(|error| unreachable(url, &way, &error))?, url, largest)
    }

    /// Asks whether something is there. A registry may keep it in a storage that it redirects to.
    fn head(&self, url: &Url, authorization: Option<&SecretString>) -> Result<Answer> {
        let (mut url, first) = (url.clone(), url);
        for _ in 0..=REDIRECTS {
            if !matches!(url.scheme(), "http" | "https") {
                bail!("could not find protocol handler for: {}", url.scheme());
            }
            let way = self.ways.to(&url)?;
            let mut request = way.agent.head(url.as_str());
            if let Some(header) = authorization.filter(|_| url.origin() == first.origin()) {
                request = request.header("Authorization", header.expose_secret());
            }
            let response = request.call().map_err(|error| unreachable(&url, &way, &error))?;
            let Some(next) = redirect(&url, &response)? else {
                let (head, _) = response.into_parts();
                let (status, from) = (head.status.as_u16(), shown(&url));
                return Ok(Answer { status, headers: head.headers, body: Vec::new(), from });
            };
            url = next;
        }
        bail!("{}: stopped after {REDIRECTS} redirects", shown(first))
    }

    /// Returns true if a server has shown that it does not speak TLS: it answered with something else, or
    /// hung up. A certificate that is not trusted is TLS.
    pub(super) fn speaks_no_tls(&self, url: &Url) -> bool {
        let failed = self.ways.to(url).ok().and_then(|way| way.agent.get(url.as_str()).call().err());
        failed.is_some_and(|error| is_no_tls(&error))
    }

    /// A client for a registry of this machine: it mostly has no TLS, and one that does not speak it is asked
    /// without, as container tools do.
    pub(super) fn for_registry(access: &Access, host: &str) -> Result<Web> {
        let web = Web::new(access)?;
        // Whoever says how certificates are judged means TLS.
        let means_tls = access.ca_file.is_some() || access.skip_verification;
        if access.plain_http || means_tls || !is_loopback(host) {
            return Ok(web);
        }
        let plain_http = web.speaks_no_tls(&Url::parse(&format!("https://{host}/v2/"))?);
        if plain_http { Web::new(&Access { plain_http, ..access.clone() }) } else { Ok(web) }
    }

    fn once(&self, url: &Url, accept: &str, authorization: Option<&SecretString>) -> Result<Response<Body>> {
        if !matches!(url.scheme(), "http" | "https") {
            bail!("could not find protocol handler for: {}", url.scheme());
        }
        let mut bare = url.clone();
        let _ = bare.set_username("");
        let _ = bare.set_password(None);
        let way = self.ways.to(url)?;
        let mut request = way.agent.get(bare.as_str()).header("Accept", accept);
        // A user in the address counts where nothing else does, as in Go.
        let of_address = (!url.username().is_empty()).then(|| basic_of_address(url));
        if let Some(header) = authorization.or(of_address.as_ref()) {
            request = request.header("Authorization", header.expose_secret());
        }
        request.call().map_err(|error| unreachable(url, &way, &error))
    }
}

/// The settings that all requests share.
fn config(tls: TlsConfig, proxy: Option<Proxy>) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        // The server's address decides which proxy leads to it.
        .proxy(proxy)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .timeout_connect(Some(PATIENCE))
        .timeout_recv_response(Some(PATIENCE))
        .timeout_send_request(Some(PATIENCE))
        .timeout_send_body(Some(LONGEST))
        .timeout_recv_body(Some(LONGEST))
        .user_agent(concat!("opdev/", env!("CARGO_PKG_VERSION")))
        // An archive comes as it is stored, or its digest would not fit. ureq is built without its feature
        // `gzip`: with it each answer that says `Content-Encoding: gzip` would be unpacked, and the limit
        // would count packed bytes.
        .accept_encoding("")
        .tls_config(tls)
}

/// The error of rustls for bytes that are no message of TLS.
const NO_TLS: &str = "corrupt message";

fn is_no_tls(error: &ureq::Error) -> bool {
    let error = match error {
        ureq::Error::Io(error) => error,
        ureq::Error::Rustls(error) => return error.to_string().contains(NO_TLS),
        _ => return false,
    };
    match error.kind() {
        ErrorKind::UnexpectedEof
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe => true,
        ErrorKind::InvalidData => error.to_string().contains(NO_TLS),
        _ => false,
    }
}

/// The header of basic authentication.
pub(super) fn basic(username: &str, password: &SecretString) -> SecretString {
    let both = SecretString::from(format!("{username}:{}", password.expose_secret()));
    format!("Basic {}", BASE64_STANDARD.encode(both.expose_secret())).into()
}

fn basic_of_address(url: &Url) -> SecretString {
    let plain = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    basic(&plain(url.username()), &plain(url.password().unwrap_or_default()).into())
}

/// An address without user, password, query and fragment: those may be secret.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

/// An address as a user has written it, without its secret parts; left alone where nothing in it may be
/// secret.
pub(super) fn shown_text(text: &str) -> String {
    match Url::parse(text) {
        Ok(url) if url.has_host() || url.scheme() == "file" => {
            let is_plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
            if is_plain { text.to_owned() } else { shown(&url) }
        }
        // A text that is no address may still hold a password; in `ann:PASSWORD@host` the scheme would be
        // `ann`.
        Ok(_) | Err(_) => {
            let text = text.split('?').next().unwrap_or_default();
            text.rsplit_once('@').map_or(text, |(_, rest)| rest).to_owned()
        }
    }
}

/// A server that gave no answer.
#[derive(Debug)]
pub(super) struct NoAnswer {
    message: String,
    /// The user's remedy at a registry.
    pub(super) hint: &'static str,
}

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NoAnswer {}

fn unreachable(url: &Url, way: &Way, error: &ureq::Error) -> anyhow::Error {
    let hint = if is_no_tls(error) {
        " (one without TLS needs --plain-http)"
    } else if is_unknown_issuer(error) {
        " (one with a certificate of an authority of its own needs --ca-file)"
    } else {
        ""
    };
    let by = way.proxy.as_ref().map_or_else(String::new, |proxy| {
        format!(" through the proxy {} of {}", shown_text(&proxy.address), proxy.variable)
    });
    NoAnswer { message: format!("{}{by}: {error}", shown(url)), hint }.into()
}

/// Returns true if a certificate is signed by nobody who is known.
fn is_unknown_issuer(error: &ureq::Error) -> bool {
    let text = error.to_string();
    text.contains("invalid peer certificate")
        && (text.contains("UnknownIssuer") || text.contains("CaUsedAsEndEntity"))
}

/// Returns true if a registry is on this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let url = Url::parse(&format!("http://{host}/")).ok();
    url.as_ref()
        .and_then(Url::host_str)
        .is_some_and(|host| http_proxy::is_here(host.trim_matches(['[', ']'])))
}

fn redirect(from: &Url, response: &Response<Body>) -> Result<Option<Url>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(to) = response.headers().get("location") else { return Ok(None) };
    let next = to.to_str().ok().and_then(|to| from.join(to).ok());
    next.map(Some).with_context(|| format!("{}: the redirect leads to no address", shown(from)))
}

fn whole(mut response: Response<Body>, url: &Url, largest: u64) -> Result<Answer> {
    let from = shown(url);
    let body =
        read_body(response.body_mut().with_config().limit(largest).reader(), PATIENCE).map_err(|error| {
            match ureq::Error::from(error) {
                ureq::Error::BodyExceedsLimit(_) => {
                    anyhow!("{from}: the answer is larger than {largest} bytes")
                }
                error => anyhow!("{from}: the download was cut: {error}"),
            }
        })?;
    // A server may close early and call it the end.
    let wanted =
        response.headers().get("content-length").and_then(|length| length.to_str().ok()?.parse().ok());
    if wanted.is_some_and(|wanted: usize| wanted != body.len()) {
        bail!("{from}: the download was cut after {} bytes", body.len());
    }
    let (head, _) = response.into_parts();
    Ok(Answer { status: head.status.as_u16(), headers: head.headers, body, from })
}

/// Reads a body to its end, within a time: a body that drips would keep a command waiting for as long as it
/// likes.
fn read_body(mut body: impl Read, patience: Duration) -> std::io::Result<Vec<u8>> {
    let (began, mut bytes, mut part) = (Instant::now(), Vec::new(), vec![0; 64 << 10]);
    loop {
        match body.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        let took = began.elapsed();
        if took > patience && (bytes.len() as u64) < took.as_secs() * SLOWEST {
            let message = format!("only {} bytes came in {} s", bytes.len(), took.as_secs());
            return Err(std::io::Error::new(ErrorKind::TimedOut, message));
        }
    }
}

fn tls(access: &Access) -> Result<TlsConfig> {
    let mut tls = TlsConfig::builder().disable_verification(access.skip_verification);
    tls = tls.root_certs(match &access.ca_file {
        Some(file) => RootCerts::from(certificates(file)?),
        None => RootCerts::PlatformVerifier,
    });
    if let (Some(certificate), Some(key)) = (&access.cert_file, &access.key_file) {
        let chain = certificates(certificate)?;
        let key = PrivateKey::from_pem(&read(key)?)
            .map_err(|_| anyhow!("{} holds no private key in PEM", key.display()))?;
        tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
    }
    Ok(tls.build())
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>> {
    let pem = read(file)?;
    let found: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        bail!("{} holds no certificate in PEM", file.display());
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    read::bytes(file).with_context(|| format!("{} cannot be read", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_drips_is_given_up() {
        struct Drip;
        impl Read for Drip {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                std::thread::sleep(Duration::from_millis(10));
                into[0] = b'a';
                Ok(1)
            }
        }
        let why = read_body(Drip, Duration::from_millis(999)).unwrap_err();
        assert!(why.to_string().contains("bytes came in"), "{why}");
        assert_eq!(read_body(&b"abc"[..], Duration::ZERO).unwrap(), b"abc");
    }

    #[test]
    fn what_may_be_secret_in_an_address_is_not_shown() {
        for (text, wanted) in [
            ("https://charts.example.com/a?", "https://charts.example.com/a"),
            ("https://ann:sesame@charts.example.com/a?token=t", "https://charts.example.com/a"),
            ("ann:sesame@charts.example.com/a?token=t", "charts.example.com/a"),
            ("ann@charts.example.com", "charts.example.com"),
            ("oci://ann:sesame@charts.example.com/a", "oci://charts.example.com/a"),
        ] {
            assert_eq!(shown_text(text), wanted);
        }
        for same in ["https://charts.example.com", "oci://r.example:5000/a:1.0.0", "file://../a@b", "stable"]
        {
            assert_eq!(shown_text(same), same);
        }
    }
}
