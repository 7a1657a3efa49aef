//! Tokens of ServiceAccounts: JSON Web Tokens signed (ES256) with a key that is made at the plane's first
//! start and kept by its store. Never opens a socket; who asks hands in what there is to see.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jiff::Timestamp;
use opdev_apimachinery::contract::View;
use opdev_apimachinery::identity::{CREDENTIAL, User, service_account_name};
use opdev_storage::Store;
use rcgen::{KeyPair, PublicKeyData, SigningKey};
use rustls::pki_types::{SignatureVerificationAlgorithm, alg_id};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::OnceLock;

/// The issuer of the tokens, and the audience of those that this server takes.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";
/// The issuer of tokens that lie in Secrets, as since Kubernetes 1.0.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
const LEGACY_CLAIM: &str = "kubernetes.io/serviceaccount";
const INVALID: &str = "invalid bearer token";

/// Why a token is for nobody. Its text is what a TokenReview says.
#[derive(Debug)]
pub enum TokenError {
    /// It is none of ours.
    Unreadable,
    Expired,
    NotValidYet,
    /// It is for others than those that were asked for.
    Audiences {
        held: Vec<String>,
        wanted: Vec<String>,
    },
    /// Its ServiceAccount, or what it is bound to, is gone.
    Invalidated,
}

impl std::error::Error for TokenError {}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let why = match self {
            TokenError::Unreadable => return f.write_str(INVALID),
            TokenError::Expired => "service account token has expired".to_owned(),
            TokenError::NotValidYet => "service account token is not valid yet".to_owned(),
            TokenError::Audiences { held, wanted } => format!(
                "token audiences {} is invalid for the target audiences {}",
                listed(held.iter().map(String::as_str)),
                listed(wanted.iter().map(String::as_str))
            ),
            TokenError::Invalidated => "service account token has been invalidated".to_owned(),
        };
        write!(f, "[{INVALID}, {why}]")
    }
}
/// Clocks may differ by so many seconds.
const LEEWAY: i64 = 10;
/// Bytes of each of the two numbers of a signature.
const HALF: usize = 32;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The key of one plane.
pub struct Tokens {
    key: KeyPair,
    id: String,
    algorithm: &'static dyn SignatureVerificationAlgorithm,
    known: OnceLock<KnownTokens>,
}

/// Says whose a token is that is of no ServiceAccount.
pub type KnownTokens = Box<dyn Fn(&str) -> Option<User> + Send + Sync>;

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A token that is asked for.
pub(crate) struct Wanted<'a> {
    /// The ServiceAccount it is for.
    pub(crate) account: &'a Value,
    /// The audiences that are to take it.
    pub(crate) audiences: &'a [String],
    /// Seconds it is good for.
    pub(crate) seconds: i64,
    /// The Pod, Secret or Node it ends with: the name of its claim, and the object.
    pub(crate) bound: Option<(&'static str, &'a Value)>,
}

impl Tokens {
    /// The key that the store keeps, so that tokens outlive a restart; a fresh one where there is none.
    pub fn kept_by(store: &Store) -> Result<Self, Failure> {
        const KEPT: &str = "service-account-key";
        if let Some(kept) = store.kept(KEPT) {
            return Self::with_key(KeyPair::from_pem(std::str::from_utf8(&kept)?)?);
        }
        let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        store.keep(KEPT, key.serialize_pem().into_bytes());
        Self::with_key(key)
    }

    /// A fresh key.
    #[cfg(test)]
    pub fn new() -> Result<Self, Failure> {
        Self::kept_by(&Store::new(opdev_registry::indexing))
    }

    fn with_key(key: KeyPair) -> Result<Self, Failure> {
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(key.subject_public_key_info()));
        let known = rustls::crypto::ring::default_provider().signature_verification_algorithms.all;
        let fits = |algorithm: &&dyn SignatureVerificationAlgorithm| {
            algorithm.public_key_alg_id() == alg_id::ECDSA_P256
                && algorithm.signature_alg_id() == alg_id::ECDSA_SHA256
        };
        let algorithm = known.iter().copied().find(fits).ok_or("no algorithm checks ES256 signatures")?;
        Ok(Tokens { key, id, algorithm, known: OnceLock::new() })
    }

    /// Tells of the tokens that the server takes beside those of ServiceAccounts. Said once.
    pub fn also_known(&self, known: KnownTokens) {
        let _ = self.known.set(known);
    }

    /// Signs a token.
    pub(crate) fn issue(&self, now: Timestamp, wanted: &Wanted<'_>) -> Result<String, Failure> {
        let meta = &wanted.account["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default();
        let (namespace, name) = (text("namespace"), text("name"));
        let mut own = json!({"namespace": namespace, "serviceaccount": {"name": name, "uid": meta["uid"]}});
        if let Some((claim, object)) = wanted.bound {
            own[claim] = json!({"name": object["metadata"]["name"], "uid": object["metadata"]["uid"]});
        }
        let claims = json!({
            "aud": wanted.audiences, "exp": now.as_second() + wanted.seconds, "iat": now.as_second(),
            "iss": ISSUER, "jti": opdev_apimachinery::random::uuid(), "kubernetes.io": own,
            "nbf": now.as_second(), "sub": service_account_name(namespace, name),
        });
        self.signed(&claims)
    }

    /// Signs the token of a Secret. It has no end: it is good while the Secret and its account are there.
    pub fn issue_legacy(&self, account: &Value, secret: &Value) -> Result<String, Failure> {
        let text =
            |object: &Value, field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (namespace, name) = (text(account, "namespace"), text(account, "name"));
        let mut claims = json!({"iss": LEGACY_ISSUER, "sub": service_account_name(&namespace, &name)});
        for (claim, value) in [
            ("namespace", namespace),
            ("secret.name", text(secret, "name")),
            ("service-account.name", name),
            ("service-account.uid", text(account, "uid")),
        ] {
            claims[format!("{LEGACY_CLAIM}/{claim}")] = Value::from(value);
        }
        self.signed(&claims)
    }

    fn signed(&self, claims: &Value) -> Result<String, Failure> {
        let head = json!({"alg": "ES256", "kid": self.id});
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(claims));
        let signature = self.key.sign(signed.as_bytes())?;
        let signature = plain(&signature).ok_or("the signature could not be read")?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The user that a token is for, and the audiences it has in common with those asked for (none: this
    /// server's own).
    pub fn user(
        &self,
        view: &dyn View,
        now: Timestamp,
        token: &str,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), TokenError> {
        let own = [ISSUER.to_owned()];
        let targets = if audiences.is_empty() { &own } else { audiences };
        if let Some(user) = self.known.get().and_then(|known| known(token)) {
            // Such a token says nothing of audiences: it is for this server.
            let common: Vec<String> = targets.iter().filter(|target| *target == ISSUER).cloned().collect();
            return if common.is_empty() { Err(TokenError::Unreadable) } else { Ok((user, common)) };
        }
        let claims = self.claims(token).ok_or(TokenError::Unreadable)?;
        if claims["iss"] == LEGACY_ISSUER {
            return legacy_owner(view, &claims, token).map(|user| (user, targets.to_vec()));
        }
        let second = |field: &str| claims[field].as_i64().unwrap_or_default();
        if second("exp") + LEEWAY < now.as_second() {
            return Err(TokenError::Expired);
        }
        if second("nbf") - LEEWAY > now.as_second() {
            return Err(TokenError::NotValidYet);
        }
        let held: Vec<&str> =
            claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let common: Vec<String> =
            targets.iter().filter(|target| held.contains(&target.as_str())).cloned().collect();
        if common.is_empty() {
            return Err(TokenError::Audiences {
                held: held.into_iter().map(str::to_owned).collect(),
                wanted: targets.to_vec(),
            });
        }
        let user = owner(view, &claims)?;
        Ok((user, common))
    }

    /// The claims of a token with our signature.
    fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, claims) = signed.split_once('.')?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let head: Value = serde_json::from_slice(&decode(head)?).ok()?;
        if head["alg"] != "ES256" {
            return None;
        }
        let signature = der(&decode(signature)?)?;
        self.algorithm.verify_signature(self.key.der_bytes(), signed.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&decode(claims)?)
            .ok()
            .filter(|claims: &Value| claims["iss"] == ISSUER || claims["iss"] == LEGACY_ISSUER)
    }

    /// The public key as a JSON Web Key Set, for who checks tokens himself.
    pub fn keys(&self) -> Value {
        let point = self.key.der_bytes();
        let (x, y) = point.split_at(point.len().min(1 + HALF));
        let number = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({"keys": [{"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": number(x.get(1..).unwrap_or_default()), "y": number(y)}]})
    }
}

/// The discovery document of the issuer.
pub fn issuer() -> Value {
    json!({"issuer": ISSUER, "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"]})
}

/// The user of a token, while its ServiceAccount and what it is bound to are there.
fn owner(view: &dyn View, claims: &Value) -> Result<User, TokenError> {
    let own = &claims["kubernetes.io"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let namespace = text(&own["namespace"]);
    let name = text(&own["serviceaccount"]["name"]);
    let there = |resource: &str, space: Option<&str>, claim: &Value| {
        let found = view.get(resource, space, claim["name"].as_str().unwrap_or_default());
        found.is_some_and(|found| found["metadata"]["uid"] == claim["uid"])
    };
    if !there("serviceaccounts", Some(&namespace), &own["serviceaccount"]) {
        return Err(TokenError::Invalidated);
    }
    let mut user = User::service_account(&namespace, &name);
    user.uid = text(&own["serviceaccount"]["uid"]);
    user.extra.insert(CREDENTIAL.to_owned(), vec![format!("JTI={}", text(&claims["jti"]))]);
    for (claim, resource) in [("pod", "pods"), ("secret", "secrets"), ("node", "nodes")] {
        let bound = &own[claim];
        if bound.is_null() {
            continue;
        }
        let space = (claim != "node").then_some(namespace.as_str());
        if !there(resource, space, bound) {
            return Err(TokenError::Invalidated);
        }
        if claim != "secret" {
            for field in ["name", "uid"] {
                let key = format!("authentication.kubernetes.io/{claim}-{field}");
                user.extra.insert(key, vec![text(&bound[field])]);
            }
        }
    }
    Ok(user)
}

/// The user of a token that lies in a Secret, while both are there and the Secret holds it.
fn legacy_owner(view: &dyn View, claims: &Value, token: &str) -> Result<User, TokenError> {
    let claim = |name: &str| claims[format!("{LEGACY_CLAIM}/{name}")].as_str().unwrap_or_default();
    let (namespace, name) = (claim("namespace"), claim("service-account.name"));
    let secret = view.get("secrets", Some(namespace), claim("secret.name"));
    let held = secret.filter(|secret| secret["metadata"].get("deletionTimestamp").is_none());
    let held = held.and_then(|secret| STANDARD.decode(secret["data"]["token"].as_str()?).ok());
    let account = view.get("serviceaccounts", Some(namespace), name);
    let uid = claim("service-account.uid");
    if held.as_deref() != Some(token.as_bytes())
        || account.is_none_or(|account| account["metadata"]["uid"] != uid)
    {
        return Err(TokenError::Invalidated);
    }
    let mut user = User::service_account(namespace, name);
    uid.clone_into(&mut user.uid);
    Ok(user)
}

/// `["a" "b"]`.
fn listed<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    format!("[{}]", texts.join(" "))
}

/// A signature in DER (two integers) as tokens have it: two numbers of 32 bytes.
fn plain(der: &[u8]) -> Option<Vec<u8>> {
    let mut rest = der.strip_prefix(&[0x30])?.get(1..)?;
    let mut out = Vec::with_capacity(2 * HALF);
    for _ in 0..2 {
        let (length, after) = rest.strip_prefix(&[0x02])?.split_first()?;
        let (number, after) = after.split_at_checked(usize::from(*length))?;
        rest = after;
        let number = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        out.resize(out.len() + HALF.checked_sub(number.len())?, 0);
        out.extend_from_slice(number);
    }
    Some(out)
}

/// A signature of a token in DER.
fn der(plain: &[u8]) -> Option<Vec<u8>> {
    if plain.len() != 2 * HALF {
        return None;
    }
    let mut numbers = Vec::new();
    for number in plain.chunks(HALF) {
        let number = &number[number.iter().take_while(|byte| **byte == 0).count().min(HALF - 1)..];
        let sign = number.first().is_some_and(|first| first & 0x80 != 0);
        numbers.extend([0x02, u8::try_from(number.len() + usize::from(sign)).ok()?]);
        numbers.extend(sign.then_some(0));
        numbers.extend_from_slice(number);
    }
    let mut out = vec![0x30, u8::try_from(numbers.len()).ok()?];
    out.extend(numbers);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_go_to_der_and_back() {
        for first in [0u8, 1, 0x7f, 0x80, 0xff] {
            let mut number = vec![first, 0, 3];
            number.resize(2 * HALF, 9);
            number[HALF] = first;
            assert_eq!(plain(&der(&number).unwrap()).unwrap(), number);
        }
        assert_eq!(der(&[1; 63]), None);
        assert_eq!(plain(&[0x30, 2, 2, 9]), None);
    }

    #[test]
    fn only_our_own_signature_counts() {
        let (tokens, other) = (Tokens::new().unwrap(), Tokens::new().unwrap());
        let account = json!({"metadata": {"namespace": "a", "name": "b", "uid": "1"}});
        let wanted = Wanted { account: &account, audiences: &["x".to_owned()], seconds: 600, bound: None };
        for _ in 0..50 {
            let token = tokens.issue(Timestamp::UNIX_EPOCH, &wanted).unwrap();
            assert_eq!(tokens.claims(&token).unwrap()["sub"], "system:serviceaccount:a:b");
            assert_eq!(other.claims(&token), None);
            let (signed, signature) = token.rsplit_once('.').unwrap();
            let (head, _) = signed.split_once('.').unwrap();
            let forged = URL_SAFE_NO_PAD.encode(json!({"iss": ISSUER, "sub": "root"}).to_string());
            assert_eq!(tokens.claims(&format!("{head}.{forged}.{signature}")), None);
        }
        assert_eq!(tokens.claims("abc"), None);
    }

    #[test]
    fn the_store_keeps_the_key() {
        let store = Store::new(opdev_registry::indexing);
        let (first, again) = (Tokens::kept_by(&store).unwrap(), Tokens::kept_by(&store).unwrap());
        assert_eq!(first.id, again.id);
        assert_ne!(first.id, Tokens::new().unwrap().id);
    }
}
