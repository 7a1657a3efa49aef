//! The web servers of the operator: probes, and metrics with TLS and authorization where that is asked for.

use super::authorization::{Authorization, Verdict};
use super::health::{Health, plain};
use super::metrics::Metrics;
use anyhow::{Context as _, Result, anyhow};
use futures::FutureExt as _;
use jiff::Timestamp;
use kube::Client;
use opdev_controlplane::{
    EndpointHandler, EndpointRequest, EndpointResponse, Serving, check_serving, self_signed, serve_endpoint,
};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How often the files of a certificate are read again, as controller-runtime's certificate watcher does.
const CERTIFICATE_AGE: Duration = Duration::from_secs(10);
/// How long the API server may take to say who may read the metrics.
const VERDICT: Duration = Duration::from_secs(10);

/// Where to serve what. An address is `HOST:PORT` or `:PORT`; none where nothing is served.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where metrics are.
    metrics: Option<String>,
    /// Their certificate; plain HTTP where there is none.
    tls: Option<MetricsTls>,
    /// True if metrics are only for those that may get `/metrics`.
    authorized: bool,
    /// Where probes are.
    probes: Option<String>,
}

/// The certificate of the metrics.
#[derive(Clone, Debug)]
pub enum MetricsTls {
    /// Made for this process.
    SelfSigned,
    /// From files.
    Files {
        /// The certificate, PEM.
        certificate: PathBuf,
        /// Its key, PEM.
        key: PathBuf,
    },
}

impl ServerSettings {
    /// From what the command line says; the address `0`, or an empty one, serves nothing.
    ///
    /// # Errors
    /// Where authorization is asked for without TLS: the tokens would cross the network in plain text.
    pub fn of(
        metrics: &str,
        probes: &str,
        tls: Option<MetricsTls>,
        authorized: bool,
    ) -> Result<ServerSettings> {
        if authorized && tls.is_none() {
            return Err(anyhow!("--metrics-secure flag is required when --metrics-require-rbac is present"));
        }
        let address = |text: &str| (!matches!(text, "" | "0")).then(|| text.to_owned());
        Ok(ServerSettings { metrics: address(metrics), probes: address(probes), tls, authorized })
    }
}

/// The contents that are served.
pub(super) struct Served {
    pub(super) metrics: Arc<Metrics>,
    pub(super) health: Arc<Health>,
    /// Asks who may read the metrics.
    pub(super) client: Client,
}

/// Starts the servers; the answer is what to tell about them.
///
/// # Errors
/// Where an address is taken, or a certificate cannot be read.
pub(super) async fn start(
    settings: &ServerSettings,
    served: &Served,
    stop: &CancellationToken,
) -> Result<Vec<String>> {
    let mut told = Vec::new();
    if let Some(address) = &settings.probes {
        let listener = bind(address).await?;
        told.push(format!("serving health probes at {}", listener.local_addr()?));
        let health = Arc::clone(&served.health);
        let handler: EndpointHandler = Arc::new(move |request| {
            let answer = health.probe(&request, Instant::now());
            async move { answer }.boxed()
        });
        serve(listener, None, handler, stop);
    }
    if let Some(address) = &settings.metrics {
        let certificate =
            settings.tls.as_ref().map(|tls| certificate(tls, &served.metrics, stop)).transpose()?;
        let listener = bind(address).await?;
        let how = if certificate.is_some() { " with TLS" } else { "" };
        told.push(format!("serving metrics at {}{how}", listener.local_addr()?));
        let metrics = Arc::clone(&served.metrics);
        let authorization = settings.authorized.then(|| Arc::new(Authorization::new(served.client.clone())));
        let handler: EndpointHandler = Arc::new(move |request| {
            let (metrics, authorization) = (Arc::clone(&metrics), authorization.clone());
            async move { scrape(&metrics, authorization.as_deref(), &request).await }.boxed()
        });
        serve(listener, certificate, handler, stop);
    }
    Ok(told)
}

/// `:8080` means every address of the machine, as Go has it.
async fn bind(address: &str) -> Result<TcpListener> {
    let whole = if address.starts_with(':') { format!("[::]{address}") } else { address.to_owned() };
    let bound = match TcpListener::bind(&whole).await {
        // A machine without IPv6.
        Err(_) if address.starts_with(':') => TcpListener::bind(format!("0.0.0.0{address}")).await,
        bound => bound,
    };
    bound.with_context(|| format!("the address {address} cannot be listened on"))
}

fn serve(
    listener: TcpListener,
    certificate: Option<watch::Receiver<Serving>>,
    handler: EndpointHandler,
    stop: &CancellationToken,
) {
    let stop = stop.clone();
    tokio::spawn(async move {
        if let Err(error) = serve_endpoint(listener, certificate, handler, stop).await {
            tracing::error!("a web server does not start: {error}");
        }
    });
}

/// The certificate; one of files is read again while opdev runs.
fn certificate(
    tls: &MetricsTls,
    metrics: &Arc<Metrics>,
    stop: &CancellationToken,
) -> Result<watch::Receiver<Serving>> {
    match tls {
        MetricsTls::SelfSigned => {
            let year = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).year();
            let serving =
                self_signed(year).map_err(|error| anyhow!("no certificate can be made: {error}"))?;
            Ok(watch::channel(serving).1)
        }
        MetricsTls::Files { certificate, key } => {
            let files = (certificate.clone(), key.clone());
            let first = read_certificate(&files);
            metrics.read_certificate(first.is_ok());
            let (newer, newest) = watch::channel(first?);
            let metrics = Arc::clone(metrics);
            tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
                renew_certificate(&files, &newer, &metrics).await;
            }));
            Ok(newest)
        }
    }
}

/// Reads the files again and again.
async fn renew_certificate(files: &(PathBuf, PathBuf), newer: &watch::Sender<Serving>, metrics: &Metrics) {
    let mut troubled = false;
    loop {
        tokio::time::sleep(CERTIFICATE_AGE).await;
        match read_again(files, newer, metrics) {
            Ok(()) => troubled = false,
            Err(error) if !std::mem::replace(&mut troubled, true) => {
                tracing::error!("the older certificate of the metrics goes on: {error:#}");
            }
            Err(_) => {}
        }
    }
}

/// Reads the files once; what cannot be used changes nothing.
fn read_again(files: &(PathBuf, PathBuf), newer: &watch::Sender<Serving>, metrics: &Metrics) -> Result<()> {
    let serving = read_certificate(files);
    metrics.read_certificate(serving.is_ok());
    let serving = serving?;
    newer.send_if_modified(|known| {
        let same = (&known.certificate, &known.key) == (&serving.certificate, &serving.key);
        if !same {
            *known = serving;
        }
        !same
    });
    Ok(())
}

fn read_certificate((certificate, key): &(PathBuf, PathBuf)) -> Result<Serving> {
    let read = |path: &PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
    };
    let serving = Serving { certificate: read(certificate)?, key: read(key)? };
    check_serving(&serving).map_err(|error| anyhow!("{} cannot be used: {error}", certificate.display()))?;
    Ok(serving)
}

async fn scrape(
    metrics: &Metrics,
    authorization: Option<&Authorization>,
    request: &EndpointRequest,
) -> EndpointResponse {
    // The API server is not asked about a path that is not served.
    if request.path != "/metrics" {
        return plain(404, "404 page not found\n");
    }
    if let Some(authorization) = authorization {
        let Some(token) = &request.token else { return plain(401, "Unauthorized\n") };
        match tokio::time::timeout(VERDICT, authorization.verdict(token, &request.path)).await {
            Ok(Ok(Verdict::Allowed)) => {}
            Ok(Ok(Verdict::Unknown)) => return plain(401, "Unauthorized\n"),
            Ok(Ok(Verdict::Forbidden)) => return plain(403, "Forbidden\n"),
            Ok(Err(error)) => {
                tracing::error!("the API server does not say who may read the metrics: {error:#}");
                return plain(500, "Authentication failed\n");
            }
            Err(_) => return plain(500, "Authentication failed\n"),
        }
    }
    EndpointResponse {
        status: 200,
        content_type: "text/plain; version=0.0.4; charset=utf-8",
        text: metrics.text(Timestamp::now()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorization_needs_tls() {
        assert!(ServerSettings::of(":8443", ":8081", None, true).is_err());
        let settings = ServerSettings::of("0", ":8081", None, false).unwrap();
        assert_eq!((settings.metrics, settings.probes.as_deref()), (None, Some(":8081")));
    }

    #[test]
    fn a_certificate_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let files = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
        let write = |serving: &Serving| {
            std::fs::write(&files.0, &serving.certificate).unwrap();
            std::fs::write(&files.1, &serving.key).unwrap();
        };
        let (first, second) = (self_signed(2026).unwrap(), self_signed(2026).unwrap());
        write(&first);
        let metrics = Metrics::for_tests();
        let (newer, mut newest) = watch::channel(read_certificate(&files).unwrap());
        read_again(&files, &newer, &metrics).unwrap();
        assert!(!newest.has_changed().unwrap());
        // Half a renewal: the key is not that of the certificate yet.
        std::fs::write(&files.0, &second.certificate).unwrap();
        assert!(read_again(&files, &newer, &metrics).is_err() && !newest.has_changed().unwrap());
        write(&second);
        read_again(&files, &newer, &metrics).unwrap();
        assert_eq!(newest.borrow_and_update().certificate, second.certificate);
        let text = metrics.text(Timestamp::now());
        assert!(text.contains("certwatcher_read_certificate_total 3\n"), "{text}");
        assert!(text.contains("certwatcher_read_certificate_errors_total 1\n"), "{text}");
    }
}
