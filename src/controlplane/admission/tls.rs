//! TLS with webhooks: whom to believe, and what a failed handshake is called.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

/// Believes the configured authorities for the name that was called, and the plane's own for `localhost`.
#[derive(Debug)]
struct Verifier {
    configured: Option<Arc<WebPkiServerVerifier>>,
    own: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that are configured in place of an authority: envtest hands out its serving certificate.
    pinned: Vec<CertificateDer<'static>>,
    schemes: Vec<SignatureScheme>,
    provider: Arc<rustls::crypto::CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.pinned.iter().any(|known| known == end_entity) {
            verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            return Ok(ServerCertVerified::assertion());
        }
        let unknown = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let verify = |verifier: &Option<Arc<WebPkiServerVerifier>>, name: &ServerName<'_>| {
            let verifier = verifier.as_ref().ok_or_else(|| unknown.clone())?;
            verifier.verify_server_cert(end_entity, intermediates, name, ocsp, now)
        };
        verify(&self.configured, server_name).or_else(|error| {
            let local = ServerName::try_from("localhost").map_err(|_| error.clone())?;
            verify(&self.own, &local).map_err(|_| error)
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Why there is no TLS with a webhook.
#[derive(Debug)]
pub(super) enum TlsError {
    /// An authority is not PEM.
    Pem(rustls::pki_types::pem::Error),
    /// An authority cannot be used, or the library offers no version of TLS.
    Rustls(rustls::Error),
    /// The authorities cannot be used together.
    Verifier(VerifierBuilderError),
}

impl std::error::Error for TlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TlsError::Pem(error) => Some(error),
            TlsError::Rustls(error) => Some(error),
            TlsError::Verifier(error) => Some(error),
        }
    }
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TlsError::Pem(_) => f.write_str("unable to load root certificates"),
            TlsError::Rustls(error) => error.fmt(f),
            TlsError::Verifier(error) => error.fmt(f),
        }
    }
}

/// A client that believes these authorities, PEM each.
pub(super) fn config(configured: Option<&[u8]>, own: Option<&str>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = |text: &[u8]| -> Result<Option<Arc<WebPkiServerVerifier>>, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(text) {
            let certificate = certificate.map_err(TlsError::Pem)?;
            roots.add(certificate).map_err(TlsError::Rustls)?;
        }
        if roots.is_empty() {
            return Ok(None);
        }
        let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        built.map(Some).map_err(TlsError::Verifier)
    };
    let verifier = Verifier {
        configured: configured.map(verifier).transpose()?.flatten(),
        pinned: CertificateDer::pem_slice_iter(configured.unwrap_or_default()).flatten().collect(),
        own: own.map(|text| verifier(text.as_bytes())).transpose()?.flatten(),
        schemes: provider.signature_verification_algorithms.supported_schemes(),
        provider: provider.clone(),
    };
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(TlsError::Rustls)?;
    let mut config =
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// A failed handshake in the words of the real server.
pub(super) fn words(error: &std::io::Error, server_name: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let certificate = |why: String| format!("tls: failed to verify certificate: x509: {why}");
    match inner {
        Some(rustls::Error::InvalidCertificate(wrong)) => certificate(match wrong {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "certificate signed by unknown authority".to_owned()
            }
            CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
                let names: Vec<String> = presented.iter().map(|name| san(name)).collect();
                format!("certificate is valid for {}, not {server_name}", names.join(", "))
            }
            CertificateError::NotValidForNameContext { .. } | CertificateError::NotValidForName => {
                format!("certificate is not valid for any names, but wanted to match {server_name}")
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => {
                "certificate has expired or is not yet valid".to_owned()
            }
            other => other.to_string(),
        }),
        Some(rustls::Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(other) => format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => error.to_string(),
    }
}

/// A name of a certificate, bare.
fn san(name: &str) -> String {
    let inside = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inside.trim_matches('"').to_owned()
}
