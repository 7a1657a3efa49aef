//! Validation of volumes that are made of Secrets, ConfigMaps, fields of the pod, tokens and certificates:
//! which file holds what, and that no two are one. Other sources are checked in `pod`.

use super::certificates::{SHORTEST_LIFE, bundle_name, longest_life, signer};
use super::checks::{absent, entries, identity, items, selector};
use opdev_apimachinery::error::Cause;
use opdev_apimachinery::resource::names;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kinds of keys of a pod's certificate.
const KEYS: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

/// Checks the insides of a volume, whose kind of source is `kind`.
pub(super) fn inside(kind: &str, source: &Value, place: &str, causes: &mut Vec<Cause>) {
    match kind {
        "secret" | "configMap" => {
            identity(&format!("{place}.defaultUser"), &source["defaultUser"], causes);
            keys(source, place, causes);
        }
        "downwardAPI" => {
            identity(&format!("{place}.defaultUser"), &source["defaultUser"], causes);
            items(&source["items"]).iter().for_each(|file| pod_field(file, place, causes));
        }
        "projected" => projected(source, place, causes),
        _ => {}
    }
}

/// A path below the volume.
fn local(field: &str, value: &Value, causes: &mut Vec<Cause>) {
    let path = value.as_str().unwrap_or_default();
    let mut wrong = |detail| causes.push(Cause::invalid(field, &json!(path), detail));
    if path.starts_with('/') {
        wrong("must be a relative path");
    }
    if path.split('/').any(|part| part == "..") {
        wrong("must not contain '..'");
    }
    if path.starts_with("..") && !path.starts_with("../") {
        wrong("must not start with '..'");
    }
}

fn file(file: &Value, place: &str, causes: &mut Vec<Cause>) {
    if absent(&file["path"]) {
        causes.push(Cause::required(format!("{place}.path"), ""));
    }
    local(&format!("{place}.path"), &file["path"], causes);
}

fn mode_and_user(file: &Value, place: &str, causes: &mut Vec<Cause>) {
    if let Some(mode) = file["mode"].as_i64().filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        causes.push(Cause::invalid(format!("{place}.mode"), &json!(mode), detail));
    }
    identity(&format!("{place}.user"), &file["user"], causes);
}

/// Keys of a Secret or ConfigMap, and the files they become.
fn keys(source: &Value, place: &str, causes: &mut Vec<Cause>) {
    for (i, key) in items(&source["items"]).iter().enumerate() {
        let place = format!("{place}.items[{i}]");
        if absent(&key["key"]) {
            causes.push(Cause::required(format!("{place}.key"), ""));
        }
        file(key, &place, causes);
        mode_and_user(key, &place, causes);
    }
}

/// A field of the pod as a file. The real server names no item here.
fn pod_field(item: &Value, place: &str, causes: &mut Vec<Cause>) {
    file(item, place, causes);
    match (absent(&item["fieldRef"]), absent(&item["resourceFieldRef"])) {
        (true, true) => {
            causes.push(Cause::required(place, "one of fieldRef and resourceFieldRef is required"));
        }
        (false, false) => {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            causes.push(Cause::invalid(place, &json!("resource"), detail));
        }
        _ => {}
    }
    mode_and_user(item, place, causes);
}

/// The files of a projected volume so far.
struct Paths<'a> {
    seen: BTreeSet<&'a str>,
    place: &'a str,
}

impl<'a> Paths<'a> {
    /// `shown` stands in the error.
    fn add(&mut self, path: &'a str, shown: &str, causes: &mut Vec<Cause>) {
        if !self.seen.insert(path) {
            causes.push(Cause::invalid(self.place, &json!(shown), "conflicting duplicate paths"));
        }
    }
}

fn projected(volume: &Value, place: &str, causes: &mut Vec<Cause>) {
    const SOURCES: [&str; 6] =
        ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"];
    identity(&format!("{place}.defaultUser"), &volume["defaultUser"], causes);
    let mut paths = Paths { seen: BTreeSet::new(), place };
    for (i, source) in items(&volume["sources"]).iter().enumerate() {
        let outer = format!("{place}.sources[{i}]");
        for kind in SOURCES.into_iter().filter(|kind| !source[*kind].is_null()) {
            let (source, inner) = (&source[kind], format!("{outer}.{kind}"));
            match kind {
                "secret" | "configMap" => {
                    if absent(&source["name"]) {
                        causes.push(Cause::required(format!("{inner}.name"), ""));
                    }
                    keys(source, &inner, causes);
                    for key in items(&source["items"]).iter().filter(|key| !absent(&key["path"])) {
                        paths.add(text(key, "path"), text(source, "name"), causes);
                    }
                }
                "downwardAPI" => {
                    for item in items(&source["items"]) {
                        pod_field(item, &inner, causes);
                        if !absent(&item["path"]) {
                            paths.add(text(item, "path"), text(item, "path"), causes);
                        }
                    }
                }
                "serviceAccountToken" => token(source, place, &inner, causes),
                "clusterTrustBundle" => {
                    trust_bundle(source, &inner, causes);
                    paths.add(text(source, "path"), text(source, "path"), causes);
                }
                _ => certificate(source, &inner, &mut paths, causes),
            }
        }
        if SOURCES.into_iter().filter(|kind| !source[*kind].is_null()).count() > 1 {
            causes.push(Cause::forbidden(outer, "may not specify more than 1 volume type per source"));
        }
    }
}

/// A token of the pod's account. Its path is named as if it were the volume's.
fn token(source: &Value, volume: &str, place: &str, causes: &mut Vec<Cause>) {
    let field = format!("{place}.expirationSeconds");
    let wrong = match source["expirationSeconds"].as_i64() {
        None => Some(Cause::required(field, "")),
        Some(..600) => Some("may not specify a duration less than 10 minutes")
            .map(|detail| Cause::invalid(field, &source["expirationSeconds"], detail)),
        Some(seconds) if seconds > 1 << 32 => Some("may not specify a duration larger than 2^32 seconds")
            .map(|detail| Cause::invalid(field, &source["expirationSeconds"], detail)),
        Some(_) => None,
    };
    causes.extend(wrong);
    match absent(&source["path"]) {
        true => causes.push(Cause::required(format!("{volume}.path"), "")),
        false => local(&format!("{volume}.path"), &source["path"], causes),
    }
    identity(&format!("{place}.user"), &source["user"], causes);
}

fn trust_bundle(source: &Value, place: &str, causes: &mut Vec<Cause>) {
    let field = |name: &str| format!("{place}.{name}");
    match (source["name"].as_str(), source["signerName"].as_str()) {
        (Some(_), Some(_)) => {
            causes.push(Cause::invalid(place, source, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            if name.is_empty() {
                causes.push(Cause::required(field("name"), "must be a valid object name"));
            }
            let of = name.rsplit_once(':').map_or_else(String::new, |(prefix, _)| prefix.replace(':', "/"));
            for why in bundle_name(name, &of) {
                let detail = format!("not a valid clustertrustbundlename: {why}");
                causes.push(Cause::invalid(field("name"), &json!(name), &detail));
            }
            if !source["labelSelector"].is_null() {
                let detail = "labelSelector must be unset if name is specified";
                causes.push(Cause::invalid(field("labelSelector"), &source["labelSelector"], detail));
            }
        }
        (None, Some(name)) => {
            if name.is_empty() {
                causes.push(Cause::required(field("signerName"), "must be a valid signer name"));
            }
            signer(&field("signerName"), &source["signerName"], causes);
            selector(&field("labelSelector"), &source["labelSelector"], causes);
        }
        (None, None) => {
            causes.push(Cause::required(place, "either name or signerName must be specified"));
        }
    }
    if absent(&source["path"]) {
        causes.push(Cause::required(field("path"), ""));
    }
    identity(&field("user"), &source["user"], causes);
    local(&field("path"), &source["path"], causes);
}

fn certificate<'a>(source: &'a Value, place: &str, paths: &mut Paths<'a>, causes: &mut Vec<Cause>) {
    let field = |name: &str| format!("{place}.{name}");
    signer(&field("signerName"), &source["signerName"], causes);
    for (key, _) in entries(&source["userAnnotations"]) {
        let (place, key) = (field("userAnnotations"), key.to_lowercase());
        let wrong = names::qualified_name(&key);
        if wrong.is_empty() && !key.contains('/') {
            let detail = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            causes.push(Cause::invalid(place, &json!(key), detail));
            continue;
        }
        causes.extend(wrong.iter().map(|why| Cause::invalid(place.as_str(), &json!(key), why)));
    }
    identity(&field("user"), &source["user"], causes);
    if !KEYS.contains(&text(source, "keyType")) {
        causes.push(Cause::not_supported(field("keyType"), &json!(text(source, "keyType")), &KEYS));
    }
    if let Some(life) = source["maxExpirationSeconds"].as_i64() {
        let (least, most) = (SHORTEST_LIFE, longest_life(text(source, "signerName")));
        let bound = if life < least { Some((">=", least)) } else { (life > most).then_some(("<=", most)) };
        if let Some((than, bound)) = bound {
            let detail = format!("if provided, maxExpirationSeconds must be {than} {bound}");
            causes.push(Cause::invalid(field("maxExpirationSeconds"), &json!(life), &detail));
        }
    }
    let mut some = false;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        if !absent(&source[name]) {
            some = true;
            local(&field(name), &source[name], causes);
            paths.add(text(source, name), text(source, name), causes);
        }
    }
    if !some {
        let detail = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        causes.push(Cause::required(place, detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn told(kind: &str, source: &Value) -> String {
        let mut causes = Vec::new();
        inside(kind, source, "v", &mut causes);
        causes.iter().map(|cause| format!("{cause}\n")).collect()
    }

    #[test]
    fn a_file_lies_below_its_volume() {
        let items = json!({"items": [{"key": "a", "path": "b/c", "mode": 0o400}, {"path": "../a"}, {"key": "a",
            "path": "/a", "mode": 4096}, {"key": "a", "path": "..a"}, {"key": "a"}]});
        expect![[r#"
            v.items[1].key: Required value
            v.items[1].path: Invalid value: "../a": must not contain '..'
            v.items[2].path: Invalid value: "/a": must be a relative path
            v.items[2].mode: Invalid value: 4096: must be a number between 0 and 0777 (octal), both inclusive
            v.items[3].path: Invalid value: "..a": must not start with '..'
            v.items[4].path: Required value
        "#]]
        .assert_eq(&told("secret", &items));
        let fields =
            json!({"items": [{"path": "a"}, {"path": "b", "fieldRef": {"fieldPath": "metadata.name"}}]});
        expect![[r#"
            v: Required value: one of fieldRef and resourceFieldRef is required
        "#]]
        .assert_eq(&told("downwardAPI", &fields));
    }

    #[test]
    fn the_sources_of_a_projected_volume_have_files_of_their_own() {
        let sources = json!({"sources": [
            {"secret": {"name": "s", "items": [{"key": "a", "path": "a"}]}},
            {"configMap": {"name": "m", "items": [{"key": "a", "path": "a"}]}, "secret": {}},
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 60}},
            {"clusterTrustBundle": {"name": "a:b", "signerName": "x.io/y", "path": "ca"}},
            {"clusterTrustBundle": {"signerName": "x.io/y"}},
            {"podCertificate": {"signerName": "x.io/y", "keyType": "ED25519", "maxExpirationSeconds": 60,
                "credentialBundlePath": "a"}},
            {"podCertificate": {"signerName": "kubernetes.io/y", "keyType": "DSA", "maxExpirationSeconds": 90000}},
        ]});
        expect![[r#"
            v.sources[1].secret.name: Required value
            v: Invalid value: "m": conflicting duplicate paths
            v.sources[1]: Forbidden: may not specify more than 1 volume type per source
            v.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes
            v.sources[3].clusterTrustBundle: Invalid value: {"name":"a:b","path":"ca","signerName":"x.io/y"}: only one of name and signerName may be used
            v.sources[4].clusterTrustBundle.path: Required value
            v.sources[5].podCertificate.maxExpirationSeconds: Invalid value: 60: if provided, maxExpirationSeconds must be >= 3600
            v: Invalid value: "a": conflicting duplicate paths
            v.sources[6].podCertificate.keyType: Unsupported value: "DSA": supported values: "RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"
            v.sources[6].podCertificate.maxExpirationSeconds: Invalid value: 90000: if provided, maxExpirationSeconds must be <= 86400
            v.sources[6].podCertificate: Required value: specify at least one of credentialBundlePath, keyPath, and certificateChainPath
        "#]]
        .assert_eq(&told("projected", &sources));
    }
}
