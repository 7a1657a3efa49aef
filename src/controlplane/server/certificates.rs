//! The certificate authority of one plane: made at its first start and kept by its store.
//! Signs the serving certificate and client certificates, and reads who a client certificate is for.
//! Never writes a key anywhere but there; `kubeconfig` puts the admin's into its text.

use super::client_certificates::ClientAuthorities;
use super::listener::{Listen, Serving};
use super::sec1;
use super::x509::{Subject, subject};
use opdev_apimachinery::identity::{CREDENTIAL, User};
use opdev_storage::Store;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;

/// A failure to make or use keys; the text names the step.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One authority and everything it signed at start.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// PEM.
    certificate: String,
    valid: (i32, i32),
}

/// A key of another sort than those that are made here.
const NO_P256: &str = "the key is none on the curve P-256";

/// Under which name the store keeps the authority.
const KEPT: &str = "authority";

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").field("valid", &self.valid).finish_non_exhaustive()
    }
}

/// A client certificate and its key, both PEM.
pub(crate) struct ClientCertificate {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// The authority that the store keeps, so that kubeconfigs outlive a restart; a fresh one where there is
    /// none, or where it has ended. `year` is the current one.
    pub(crate) fn kept_by(store: &Store, year: i16) -> Result<Self, Failure> {
        if let Some(bytes) = store.kept(KEPT)
            && let Some(kept) = Self::restored(&bytes)?
            && i32::from(year) < kept.valid.1
        {
            return Ok(kept);
        }
        let authority = Authority::new(year)?;
        let kept = json!({"certificate": authority.certificate, "key": authority.issuer.key().serialize_pem(),
            "from": authority.valid.0, "until": authority.valid.1});
        store.keep(KEPT, kept.to_string().into_bytes());
        Ok(authority)
    }

    fn restored(bytes: &[u8]) -> Result<Option<Self>, Failure> {
        let kept: serde_json::Value = serde_json::from_slice(bytes)?;
        let year = |name: &str| i32::try_from(kept[name].as_i64()?).ok();
        let (Some(certificate), Some(key), Some(from), Some(until)) =
            (kept["certificate"].as_str(), kept["key"].as_str(), year("from"), year("until"))
        else {
            return Ok(None);
        };
        let issuer = Issuer::new(params((from, until)), KeyPair::from_pem(key)?);
        Ok(Some(Authority { issuer, certificate: certificate.to_owned(), valid: (from, until) }))
    }

    /// A fresh authority, valid from last year to the end of the next; `year` is the current one.
    pub(crate) fn new(year: i16) -> Result<Self, Failure> {
        let valid = (i32::from(year) - 1, i32::from(year) + 2);
        let key = KeyPair::generate()?;
        let certificate = params(valid).self_signed(&key)?.pem();
        Ok(Authority { issuer: Issuer::new(params(valid), key), certificate, valid })
    }

    /// The authority's certificate, PEM.
    pub(crate) fn certificate(&self) -> String {
        self.certificate.clone()
    }

    /// A client certificate: the user's name as common name, the group as organization.
    pub(crate) fn client(&self, name: &str, group: &str) -> Result<ClientCertificate, Failure> {
        let mut params = dated(CertificateParams::default(), self.valid);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(ClientCertificate { certificate: certificate.pem(), key: sec1::pem(&key).ok_or(NO_P256)? })
    }

    /// TLS for a server at this address: the certificate it was given or one of this authority, clients'
    /// certificates welcome but not required. Whom they are for, the second part tells.
    pub(crate) fn server_config(
        &self,
        address: IpAddr,
        listen: &Listen,
    ) -> Result<(ServerConfig, ClientAuthorities), Failure> {
        let (chain, key) = match &listen.serving {
            Some(serving) => given(serving)?,
            None => self.serving(address)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.certificate.as_bytes())?)?;
        if let Some(text) = &listen.client_authorities {
            for certificate in certificates(text).map_err(|why| format!("the client authorities: {why}"))? {
                roots.add(certificate).map_err(|why| format!("the client authorities: {why}"))?;
            }
        }
        let clients = ClientAuthorities::new(roots, provider.clone())?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(clients.clone()))
            .with_single_cert(chain, key)
            .map_err(|why| format!("the serving certificate does not go with its key: {why}"))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok((config, clients))
    }

    /// A serving certificate, with its key, for a webhook server on this machine.
    pub(crate) fn webhook_server(&self) -> Result<Serving, Failure> {
        let names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
        let mut params = dated(CertificateParams::new(names)?, self.valid);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "webhook-server");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Serving { certificate, key: sec1::pem(&key).ok_or(NO_P256)? })
    }

    /// A serving certificate for this address and for the names of the API server inside a cluster.
    fn serving(&self, address: IpAddr) -> Result<(Chain, PrivateKeyDer<'static>), Failure> {
        let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
        names.push(address.to_string());
        let mut params = dated(CertificateParams::new(names)?, self.valid);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;

        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok((vec![certificate.der().clone()], key))
    }
}

/// A certificate and those that lead up to its authority.
type Chain = Vec<CertificateDer<'static>>;

/// TLS with this certificate, for clients that show none.
pub(super) fn server_only(serving: &Serving) -> Result<ServerConfig, Failure> {
    let (chain, key) = given(serving)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|why| format!("the serving certificate does not go with its key: {why}"))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Certificate and key from outside.
fn given(serving: &Serving) -> Result<(Chain, PrivateKeyDer<'static>), Failure> {
    let chain =
        certificates(&serving.certificate).map_err(|why| format!("the serving certificate: {why}"))?;
    // The form of a broken key is private, so the reason stays general.
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes())
        .map_err(|_| "the serving certificate's key: no private key in PEM")?;
    Ok((chain, key))
}

/// All certificates of a PEM text; there has to be one.
fn certificates(text: &str) -> Result<Chain, Failure> {
    let chain: Result<Chain, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("no certificate in PEM".into()),
        Ok(chain) => Ok(chain),
        Err(why) => Err(format!("no valid PEM: {why}").into()),
    }
}

/// The fields of an authority's certificate.
fn params(valid: (i32, i32)) -> CertificateParams {
    let mut params = dated(CertificateParams::default(), valid);
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "opdev-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn dated(mut params: CertificateParams, (from, to): (i32, i32)) -> CertificateParams {
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(to, 1, 1);
    params
}

/// The user a (verified) client certificate is for; `None` where it has no common name.
pub(crate) fn user_of(certificate: &CertificateDer<'_>) -> Option<User> {
    let Subject { common_names, organizations } = subject(certificate)?;
    let mut user = User::authenticated(common_names.into_iter().next()?, organizations);
    let digest: String = Sha256::digest(certificate).iter().map(|byte| format!("{byte:02x}")).collect();
    user.extra.insert(CREDENTIAL.to_owned(), vec![format!("X509SHA256={digest}")]);
    Some(user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_certificate_names_its_user() {
        let authority = Authority::new(2026).unwrap();
        let client = authority.client("jane", "system:masters").unwrap();
        let der = CertificateDer::from_pem_slice(client.certificate.as_bytes()).unwrap();
        let user = user_of(&der).unwrap();
        assert_eq!(user.name, "jane");
        assert_eq!(user.groups, ["system:masters", "system:authenticated"]);
    }

    #[test]
    fn the_store_keeps_the_authority_until_it_is_about_to_end() {
        let store = Store::new(opdev_registry::indexing);
        let first = Authority::kept_by(&store, 2026).unwrap();
        let again = Authority::kept_by(&store, 2027).unwrap();
        assert_eq!(first.certificate(), again.certificate());
        assert_eq!(first.issuer.key().serialize_pem(), again.issuer.key().serialize_pem());
        let later = Authority::kept_by(&store, 2028).unwrap();
        assert_ne!(first.certificate(), later.certificate());
    }

    #[test]
    fn rubbish_is_nobody() {
        assert_eq!(user_of(&CertificateDer::from(vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 1])), None);
        assert_eq!(user_of(&CertificateDer::from(Vec::new())), None);
    }

    #[test]
    fn a_server_config_speaks_both_protocols() {
        let authority = Authority::new(2026).unwrap();
        let (config, _) = authority.server_config([127, 0, 0, 1].into(), &Listen::default()).unwrap();
        assert_eq!(config.alpn_protocols, [b"h2".to_vec(), b"http/1.1".to_vec()]);
    }

    #[test]
    fn certificates_from_outside_are_used_or_refused_with_a_reason() {
        let authority = Authority::new(2026).unwrap();
        let other = Authority::new(2026).unwrap();
        let pair = other.client("localhost", "servers").unwrap();
        let strange = other.client("localhost", "servers").unwrap();
        let config = |certificate: &str, key: &str, clients: &str| {
            let serving = Serving { certificate: certificate.to_owned(), key: key.to_owned() };
            let listen = Listen {
                serving: Some(serving),
                client_authorities: Some(clients.to_owned()),
                ..Listen::default()
            };
            authority.server_config([127, 0, 0, 1].into(), &listen).map(drop).map_err(|why| why.to_string())
        };
        let root = other.certificate();
        assert_eq!(config(&pair.certificate, &pair.key, &root), Ok(()));
        let refused = |result: Result<(), String>, word: &str| {
            let why = result.unwrap_err();
            assert!(why.contains(word) && !why.contains(&pair.key), "{why}");
        };
        refused(config(&pair.certificate, &strange.key, &root), "does not go with its key");
        refused(config(&pair.certificate, "rubbish", &root), "no private key");
        refused(config("rubbish", &pair.key, &root), "the serving certificate: no certificate");
        refused(config(&pair.certificate, &pair.key, "rubbish"), "the client authorities: no certificate");
    }
}
