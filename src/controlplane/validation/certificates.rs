//! Validation of trust bundles and of the certificate requests of pods. No signature is checked: nobody here
//! asks if a request's key is its own.

use super::checks::{absent, entries, immutable};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use x509_cert::der::asn1::{AnyRef, BitStringRef, ContextSpecific, IntRef};
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{self, Decode as _, Reader as _, Tag, TagNumber, Tagged as _};
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::BasicConstraints;
use x509_cert::name::Name;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};

/// The longest trust bundle, in bytes.
const LONGEST_BUNDLE: usize = 1024 * 1024;
/// The shortest life of a pod's certificate, in seconds.
pub(super) const SHORTEST_LIFE: i64 = 3_600;
const OMITTED: &str = "<value omitted>";

/// The name of a signer: `example.com/name`.
pub fn signer(field: &str, signer: &Value, causes: &mut Vec<Cause>) {
    if absent(signer) {
        causes.push(Cause::required(field, ""));
        return;
    }
    let name = signer.as_str().unwrap_or_default();
    let parts: Vec<&str> = name.split('/').collect();
    let [domain, path] = parts[..] else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.push(Cause::invalid(field, signer, detail));
        return;
    };
    labels(field, domain, names::label, causes);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(field, &json!(domain), detail));
    }
    labels(field, path, names::subdomain, causes);
}

/// The first label that breaks a rule is told.
fn labels(field: &str, text: &str, rule: fn(&str) -> Vec<String>, causes: &mut Vec<Cause>) {
    let wrong = text.split('.').find(|label| !rule(label).is_empty());
    for why in wrong.map(rule).unwrap_or_default() {
        let label = wrong.unwrap_or_default();
        causes.push(Cause::invalid(field, &json!(text), &format!("validating label {label:?}: {why}")));
    }
}

/// A trust bundle, which may replace another one.
pub fn trust_bundle(object: &Value, old: Option<&Value>, causes: &mut Vec<Cause>) {
    let (name, spec) = (object["metadata"]["name"].as_str().unwrap_or_default(), &object["spec"]);
    for why in bundle_name(name, spec["signerName"].as_str().unwrap_or_default()) {
        causes.push(Cause::invalid("metadata.name", &json!(name), &why));
    }
    if !absent(&spec["signerName"]) {
        signer("spec.signerName", &spec["signerName"], causes);
    }
    if old.is_none_or(|old| old["spec"]["trustBundle"] != spec["trustBundle"]) {
        anchors(spec["trustBundle"].as_str().unwrap_or_default(), causes);
    }
    if let Some(old) = old {
        let signer = |of: &Value| json!(of["spec"]["signerName"].as_str().unwrap_or_default());
        immutable("spec.signerName", &signer(object), &signer(old), causes);
    }
}

/// A bundle of a signer has a name that begins with the signer's.
pub(super) fn bundle_name(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        return match name.contains(':') {
            true => vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()],
            false => names::subdomain(name),
        };
    }
    let prefix = signer.replace('/', ":") + ":";
    match name.strip_prefix(&prefix) {
        Some(rest) => names::subdomain(rest),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

/// Each block of a bundle is the certificate of an authority, and there once.
fn anchors(bundle: &str, causes: &mut Vec<Cause>) {
    const FIELD: &str = "spec.trustBundle";
    if bundle.len() > LONGEST_BUNDLE {
        causes.push(Cause::too_long(FIELD, LONGEST_BUNDLE));
        return;
    }
    let mut refused = Vec::new();
    let mut seen: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (at, block) in blocks(bundle).enumerate() {
        match anchor(&block) {
            Ok(()) => seen.entry(block.bytes).or_default().push(at),
            Err(why) => refused.push(format!("entry {at} {why}")),
        }
    }
    if refused.is_empty() {
        if seen.is_empty() {
            refused.push("at least one trust anchor must be provided".to_owned());
        }
        for places in seen.values().filter(|places| places.len() > 1) {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            refused.push(format!("duplicate trust anchor (indices [{}])", places.join(" ")));
        }
    }
    causes.extend(refused.iter().map(|why| Cause::invalid(FIELD, &json!(OMITTED), why)));
}

/// Why a certificate and its key are no pair of PEM texts. What is inside their blocks is not looked at: a
/// real server also says that a key belongs to another certificate.
pub fn unusable_pair(certificate: &str, key: &str) -> Option<String> {
    const KEY: &str = "PRIVATE KEY";
    let labels =
        |text: &'_ str| -> Vec<String> { blocks(text).map(|block| block.label.to_owned()).collect() };
    let (certificates, keys) = (labels(certificate), labels(key));
    let skipped = |labels: &[String]| {
        format!("after skipping PEM blocks of the following types: [{}]", labels.join(" "))
    };
    if !certificates.iter().any(|label| label == "CERTIFICATE") {
        return Some(match certificates.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [one] if one.ends_with(KEY) => {
                "tls: failed to find certificate PEM data in certificate input, but did \
                                            find a private key; PEM inputs may have been switched"
                    .to_owned()
            }
            all => {
                format!("tls: failed to find \"CERTIFICATE\" PEM block in certificate input {}", skipped(all))
            }
        });
    }
    if keys.iter().any(|label| label.ends_with(KEY)) {
        return None;
    }
    Some(match keys.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        all => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input {}",
            skipped(all)
        ),
    })
}

fn anchor(block: &Block<'_>) -> Result<(), String> {
    if block.label != "CERTIFICATE" {
        return Err(format!("has bad block type: {}", block.label));
    }
    if block.headers {
        return Err("has PEM block headers".to_owned());
    }
    match is_authority(&block.bytes) {
        Ok(true) => Ok(()),
        Ok(false) => Err("does not have the CA bit set".to_owned()),
        Err(_) => Err("does not parse as X.509".to_owned()),
    }
}

/// Returns true if a certificate is an authority's. It is read piece by piece: as in Go, its number may be
/// any that is not negative, and its times may lie before 1970, which the crate's own type refuses.
fn is_authority(bytes: &[u8]) -> der::Result<bool> {
    AnyRef::from_der(bytes)?.sequence(|outer| {
        let signed: AnyRef<'_> = outer.decode()?;
        AlgorithmIdentifierOwned::decode(outer)?;
        BitStringRef::decode(outer)?;
        signed.sequence(|inner| {
            ContextSpecific::<u8>::decode_explicit(inner, TagNumber(0))?;
            let number = IntRef::decode(inner)?;
            if number.as_bytes().first().is_some_and(|byte| byte & 0x80 != 0) {
                return Err(Tag::Integer.value_error().into());
            }
            AlgorithmIdentifierOwned::decode(inner)?;
            Name::decode(inner)?;
            AnyRef::decode(inner)?.sequence(|times| {
                let times: [AnyRef<'_>; 2] = [times.decode()?, times.decode()?];
                match times.iter().find(|time| ![Tag::UtcTime, Tag::GeneralizedTime].contains(&time.tag())) {
                    None => Ok::<(), der::Error>(()),
                    Some(other) => Err(other.tag().unexpected_error(Some(Tag::GeneralizedTime)).into()),
                }
            })?;
            Name::decode(inner)?;
            SubjectPublicKeyInfoOwned::decode(inner)?;
            for unique in [TagNumber(1), TagNumber(2)] {
                ContextSpecific::<BitStringRef<'_>>::decode_implicit(inner, unique)?;
            }
            let extensions = ContextSpecific::<Extensions>::decode_explicit(inner, TagNumber(3))?;
            let extensions = extensions.map(|found| found.value).unwrap_or_default();
            let limits = extensions.iter().find(|found| found.extn_id == BasicConstraints::OID);
            let limits =
                limits.map(|found| BasicConstraints::from_der(found.extn_value.as_bytes())).transpose()?;
            Ok(limits.is_some_and(|limits| limits.ca))
        })
    })
}

/// One block of PEM.
struct Block<'a> {
    label: &'a str,
    headers: bool,
    bytes: Vec<u8>,
}

/// The blocks of a text. What stands around them and what is no base64 is passed over, as Go does it.
fn blocks(text: &str) -> impl Iterator<Item = Block<'_>> {
    text.split("-----BEGIN ").skip(1).filter_map(|part| {
        let (label, rest) = part.split_once("-----")?;
        let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
        let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty());
        let code: String = lines().filter(|line| !line.contains(':')).collect();
        let headers = lines().any(|line| line.contains(':'));
        Some(Block { label, headers, bytes: STANDARD.decode(code).ok()? })
    })
}

/// The longest life of a pod's certificate, in seconds; a day with Kubernetes' signers.
pub(super) fn longest_life(signer: &str) -> i64 {
    let domain = signer.split('/').next().unwrap_or_default();
    let of_kubernetes = domain == "kubernetes.io" || domain.ends_with(".kubernetes.io");
    if of_kubernetes { 86_400 } else { 91 * 86_400 }
}

/// The request of a pod for a certificate.
pub fn pod_request(spec: &Value, causes: &mut Vec<Cause>) {
    signer("spec.signerName", &spec["signerName"], causes);
    for (key, _) in entries(&spec["unverifiedUserAnnotations"]) {
        for why in names::qualified_name(&key.to_lowercase()) {
            causes.push(Cause::invalid("spec.unverifiedUserAnnotations", &json!(key), &why));
        }
    }
    for (name, uid) in
        [("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID")]
    {
        let text = |field: &str| json!(spec[field].as_str().unwrap_or_default());
        for why in names::subdomain(text(name).as_str().unwrap_or_default()) {
            causes.push(Cause::invalid(format!("spec.{name}"), &text(name), &why));
        }
        let field = format!("spec.{uid}");
        match text(uid).as_str().unwrap_or_default().len() {
            0 => causes.push(Cause::invalid(field, &text(uid), "must not be empty")),
            1..=128 => {}
            _ => causes.push(Cause::too_long(field, 128)),
        }
    }
    let Some(life) = spec["maxExpirationSeconds"].as_i64() else {
        causes.push(Cause::required("spec.maxExpirationSeconds", "must be set"));
        return;
    };
    let (least, most) = (SHORTEST_LIFE, longest_life(spec["signerName"].as_str().unwrap_or_default()));
    if !(least..=most).contains(&life) {
        let detail = format!("must be in the range [{least}, {most}]");
        causes.push(Cause::invalid("spec.maxExpirationSeconds", &json!(life), &detail));
    }
    let has = |field: &str| !absent(&spec[field]);
    let keys = (has("stubPKCS10Request"), has("pkixPublicKey"), has("proofOfPossession"));
    if !matches!(keys, (true, false, false) | (false, true, true)) {
        let detail = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
        causes.push(Cause::text("FieldValueInvalid", "spec", format!("Invalid value: {detail}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

    fn pem(ca: bool) -> String {
        let mut params = CertificateParams::default();
        if ca {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    /// Tests and tools make authorities without times, whose number is zero: Go writes the year 1.
    #[test]
    fn an_authority_needs_no_times_and_no_number() {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = rcgen::date_time_ymd(1, 1, 1);
        params.not_after = params.not_before;
        params.serial_number = Some(rcgen::SerialNumber::from(0u64));
        let anchor = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
        assert!(refused("a", &json!({"trustBundle": anchor})).is_empty());
        let torn = anchor.replacen("MII", "MIE", 1);
        assert!(refused("a", &json!({"trustBundle": torn})).join("").ends_with("does not parse as X.509"));
    }

    fn refused(name: &str, spec: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        let object = json!({"metadata": {"name": name}, "spec": spec});
        trust_bundle(&object, None, &mut causes);
        causes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_bundle_holds_authorities_each_of_them_once() {
        let (anchor, leaf) = (pem(true), pem(false));
        assert!(refused("a", &json!({"trustBundle": anchor})).is_empty());
        let told = |bundle: String| refused("a", &json!({"trustBundle": bundle})).join("\n");
        expect![[
            r#"spec.trustBundle: Invalid value: "<value omitted>": entry 0 does not have the CA bit set"#
        ]]
        .assert_eq(&told(leaf));
        expect![[r#"spec.trustBundle: Invalid value: "<value omitted>": at least one trust anchor must be provided"#]]
        .assert_eq(&told(String::new()));
        expect![[
            r#"spec.trustBundle: Invalid value: "<value omitted>": duplicate trust anchor (indices [0 1])"#
        ]]
        .assert_eq(&told(format!("{anchor}{anchor}")));
        expect![[r#"spec.trustBundle: Invalid value: "<value omitted>": entry 0 has bad block type: KEY"#]]
            .assert_eq(&told(anchor.replace("CERTIFICATE", "KEY")));
        expect![[r#"spec.trustBundle: Invalid value: "<value omitted>": entry 0 has PEM block headers"#]]
            .assert_eq(&told(anchor.replacen('\n', "\na: b\n", 1)));
    }

    #[test]
    fn a_bundle_of_a_signer_is_named_after_it() {
        let spec = json!({"signerName": "example.com/mine", "trustBundle": pem(true)});
        assert!(refused("example.com:mine:a", &spec).is_empty());
        let prefix = "must be named with prefix example.com:mine:";
        assert!(refused("a", &spec).join("").contains(prefix));
        expect![[r#"metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its name"#]]
        .assert_eq(&refused("a:b", &json!({"trustBundle": pem(true)})).join(""));
    }

    #[test]
    fn a_pod_asks_for_a_certificate_of_some_hours_with_one_kind_of_key() {
        let told = |spec: Value| {
            let mut causes = Vec::new();
            pod_request(&spec, &mut causes);
            causes.iter().map(|cause| cause.field.clone()).collect::<Vec<_>>()
        };
        let mut spec = json!({"signerName": "example.com/a", "podName": "p", "podUID": "1", "nodeName": "n",
            "nodeUID": "2", "serviceAccountName": "s", "serviceAccountUID": "3", "maxExpirationSeconds": 3600,
            "stubPKCS10Request": "YQ=="});
        assert!(told(spec.clone()).is_empty());
        spec["maxExpirationSeconds"] = json!(172_800);
        assert!(told(spec.clone()).is_empty());
        spec["signerName"] = json!("kubernetes.io/a");
        assert_eq!(told(spec.clone()), ["spec.maxExpirationSeconds"]);
        spec["pkixPublicKey"] = json!("YQ==");
        spec["podUID"] = json!("");
        assert_eq!(told(spec), ["spec.podUID", "spec.maxExpirationSeconds", "spec"]);
    }
}
