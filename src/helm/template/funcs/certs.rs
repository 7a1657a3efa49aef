//! `genCA`, `genSignedCert` and their kin: X.509 certificates as Go's crypto/x509 makes them for Sprig.

use std::any::Any;
use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use num_bigint::BigUint;
use sha1::Digest as _;

use super::super::der::{self, Reader};
use super::super::error::FuncError;
use super::super::host::{Host, Signature, Ty};
use super::super::keys::{self, RsaKey};
use super::super::value::Value;
use super::{Call, Function, Outcome, fixed, int, string};

const CERTIFICATE: &str = "sprig.certificate";
const NAMES: [Ty; 4] = [Ty::Str, Ty::List, Ty::List, Ty::Int];

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("genPrivateKey", &[Ty::Str], private_key),
    fixed("genCA", &[Ty::Str, Ty::Int], |call, args| {
        let key = new_key(call)?;
        authority(call, args, &key)
    }),
    fixed("genCAWithKey", &[Ty::Str, Ty::Int, Ty::Str], |call, args| {
        let key = given_key(args, 2)?;
        authority(call, args, &key)
    }),
    fixed("genSelfSignedCert", &NAMES, |call, args| {
        alternative_names(args)?;
        let key = new_key(call)?;
        leaf(call, args, &key, None)
    }),
    fixed("genSelfSignedCertWithKey", &[Ty::Str, Ty::List, Ty::List, Ty::Int, Ty::Str], |call, args| {
        let key = given_key(args, 4)?;
        leaf(call, args, &key, None)
    }),
    fixed("genSignedCert", &[Ty::Str, Ty::List, Ty::List, Ty::Int, Ty::Host(CERTIFICATE)], |call, args| {
        let issuer = issuer(args)?;
        alternative_names(args)?;
        let key = new_key(call)?;
        leaf(call, args, &key, Some(&issuer))
    }),
    fixed(
        "genSignedCertWithKey",
        &[Ty::Str, Ty::List, Ty::List, Ty::Int, Ty::Host(CERTIFICATE), Ty::Str],
        |call, args| {
            let issuer = issuer(args)?;
            let key = given_key(args, 5)?;
            leaf(call, args, &key, Some(&issuer))
        },
    ),
    fixed("buildCustomCert", &[Ty::Str, Ty::Str], |_, args| {
        use base64::Engine as _;
        let decode = |i: usize, what: &str| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(string(args, i));
            let bytes = bytes.map_err(|_| FuncError::new(format!("unable to decode base64 {what}")))?;
            Ok::<_, FuncError>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let (cert, key) = (decode(0, "certificate")?, decode(1, "private key")?);
        let (_, bytes) = der::read_pem(&cert).ok_or("unable to decode certificate")?;
        Subject::read(&bytes)
            .ok_or("error parsing certificate: decodedCert.Bytes: x509: malformed certificate")?;
        let known = |kind: &str| {
            matches!(kind, "PRIVATE KEY" | "RSA PRIVATE KEY" | "EC PRIVATE KEY" | "DSA PRIVATE KEY")
        };
        if !der::read_pem(&key).is_some_and(|(kind, _)| known(&kind)) {
            return Err("error parsing private key: no PEM data in input".into());
        }
        Ok(Value::host(Certificate { cert, key }))
    }),
];

/// A certificate and its key, both PEM.
struct Certificate {
    cert: String,
    key: String,
}

impl Host for Certificate {
    fn type_name(&self) -> Cow<'static, str> {
        CERTIFICATE.into()
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(self.cert.as_str().into()),
            "Key" => Some(self.key.as_str().into()),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        vec![("Cert", self.cert.as_str().into()), ("Key", self.key.as_str().into())]
    }

    fn method(&self, _: &str) -> Option<Signature> {
        None
    }

    fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "Cert": self.cert, "Key": self.key })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn private_key(call: &mut Call<'_, '_>, args: &[Value]) -> Outcome {
    let env = call.context.outside();
    let mut random = |buffer: &mut [u8]| env.random(buffer);
    Ok(match string(args, 0).as_str() {
        "" | "rsa" => {
            let key = RsaKey::generate(4096, &mut random, &|| call.go_on())?;
            der::pem("RSA PRIVATE KEY", &key.to_der()).into()
        }
        "ecdsa" => der::pem("EC PRIVATE KEY", &keys::p256_key(&mut random)).into(),
        "ed25519" => der::pem("PRIVATE KEY", &keys::ed25519_key(&mut random)).into(),
        "dsa" => return Err("genPrivateKey: opdev does not make DSA keys; use rsa, ecdsa or ed25519".into()),
        other => format!("Unknown type {other}").into(),
    })
}

fn new_key(call: &mut Call<'_, '_>) -> Result<RsaKey, FuncError> {
    let env = call.context.outside();
    RsaKey::generate(2048, &mut |buffer: &mut [u8]| env.random(buffer), &|| call.go_on())
}

fn given_key(args: &[Value], i: usize) -> Result<RsaKey, FuncError> {
    RsaKey::from_pem(&string(args, i)).map_err(|e| FuncError::new(format!("parsing private key: {e}")))
}

/// An issuer that signs.
struct Issuer {
    subject: Subject,
    key: RsaKey,
}

/// The owner's names in a certificate.
struct Subject {
    name: Vec<u8>,
    key_id: Vec<u8>,
}

impl Subject {
    /// Reads the subject and its key identifier from a certificate.
    fn read(bytes: &[u8]) -> Option<Subject> {
        let mut certificate = Reader(Reader(bytes).expect(der::SEQUENCE)?);
        let mut body = Reader(certificate.expect(der::SEQUENCE)?);
        if body.0.first() == Some(&0xa0) {
            body.next()?;
        }
        for _ in 0..4 {
            body.next()?; // serial, algorithm, issuer, validity
        }
        let (_, _, name) = body.next()?;
        body.next()?;
        let mut key_id = Vec::new();
        while let Some((tag, content, _)) = body.next() {
            if tag == 0xa3 {
                let mut extensions = Reader(Reader(content).expect(der::SEQUENCE)?);
                while let Some(extension) = extensions.expect(der::SEQUENCE) {
                    let mut extension = Reader(extension);
                    if extension.expect(0x06)? == [0x55, 0x1d, 0x0e] {
                        key_id = Reader(extension.expect(der::OCTETS)?).expect(der::OCTETS)?.to_vec();
                    }
                }
            }
        }
        Some(Subject { name: name.to_vec(), key_id })
    }
}

fn issuer(args: &[Value]) -> Result<Issuer, FuncError> {
    let Some(Value::Host(host)) = args.get(4) else { return Err("unable to decode certificate".into()) };
    let ca = host.as_any().downcast_ref::<Certificate>().ok_or("unable to decode certificate")?;
    let (_, bytes) = der::read_pem(&ca.cert).ok_or("unable to decode certificate")?;
    let subject = Subject::read(&bytes)
        .ok_or("error parsing certificate: decodedSignerCert.Bytes: x509: malformed certificate")?;
    let key = RsaKey::from_pem(&ca.key).map_err(|e| format!("error parsing private key: {e}"))?;
    Ok(Issuer { subject, key })
}

fn authority(call: &mut Call<'_, '_>, args: &[Value], key: &RsaKey) -> Outcome {
    let wanted = Wanted { name: string(args, 0), days: int(args, 1), names: Vec::new(), authority: true };
    certify(call, &wanted, key, None)
}

fn leaf(call: &mut Call<'_, '_>, args: &[Value], key: &RsaKey, issuer: Option<&Issuer>) -> Outcome {
    let wanted = Wanted {
        name: string(args, 0),
        days: int(args, 3),
        names: alternative_names(args)?,
        authority: false,
    };
    certify(call, &wanted, key, issuer)
}

/// DNS names, then addresses, as general names.
fn alternative_names(args: &[Value]) -> Result<Vec<u8>, FuncError> {
    let items = |i: usize| args[i].as_list().map_or(Vec::new(), |list| list.items().to_vec());
    let shown = |v: &Value| String::from_utf8_lossy(&super::super::print::sprint(v)).into_owned();
    let mut names = Vec::new();
    for name in items(2) {
        let text = name.as_str().ok_or_else(|| {
            FuncError::new(format!("error processing alternate dns name: {} is not a string", shown(&name)))
        })?;
        names.extend(der::value(0x82, text));
    }
    for address in items(1) {
        let text = address.as_str().ok_or_else(|| {
            FuncError::new(format!("error parsing ip: {} is not a string", shown(&address)))
        })?;
        match text.text().parse() {
            Ok(std::net::IpAddr::V4(ip)) => names.extend(der::value(0x87, &ip.octets())),
            Ok(std::net::IpAddr::V6(ip)) => names.extend(der::value(0x87, &ip.octets())),
            Err(_) => return Err(FuncError::new(format!("error parsing ip: {text}"))),
        }
    }
    Ok(names)
}

/// The content of a certificate to make.
struct Wanted {
    name: String,
    days: i64,
    names: Vec<u8>,
    authority: bool,
}

fn common_name(name: &str) -> Vec<u8> {
    if name.is_empty() {
        return der::sequence(&[]);
    }
    let printable = |b: u8| b.is_ascii_alphanumeric() || b" '()+,-./:=?".contains(&b);
    let tag = if name.bytes().all(printable) { 0x13 } else { 0x0c };
    let attribute = der::sequence(&[der::oid(&[0x55, 0x04, 0x03]), der::value(tag, name.as_bytes())]);
    der::sequence(&[der::value(0x31, &attribute)])
}

fn time(at: Timestamp) -> Vec<u8> {
    let zoned = at.to_zoned(jiff::tz::TimeZone::UTC);
    let digits = super::super::layout::format(&zoned, "20060102150405Z");
    if (1950..2050).contains(&zoned.year()) {
        der::value(0x17, &digits.as_bytes()[2..])
    } else {
        der::value(0x18, digits.as_bytes())
    }
}

fn extension(id: u8, critical: bool, content: &[u8]) -> Vec<u8> {
    let mut parts = vec![der::oid(&[0x55, 0x1d, id])];
    if critical {
        parts.push(der::value(0x01, &[0xff]));
    }
    parts.push(der::value(der::OCTETS, content));
    der::sequence(&parts)
}

fn extensions(wanted: &Wanted, key: &RsaKey, issuer: Option<&Issuer>) -> Vec<u8> {
    const SERVER: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
    const CLIENT: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];
    // Digital signature and key encipherment; an authority also signs certificates.
    let usage: &[u8] = if wanted.authority { &[2, 0xa4] } else { &[5, 0xa0] };
    let truth = der::value(0x01, &[0xff]);
    let constraints = der::sequence(if wanted.authority { std::slice::from_ref(&truth) } else { &[] });
    let mut list = vec![
        extension(0x0f, true, &der::value(der::BIT_STRING, usage)),
        extension(0x25, false, &der::sequence(&[der::oid(SERVER), der::oid(CLIENT)])),
        extension(0x13, true, &constraints),
    ];
    if wanted.authority {
        let id = sha1::Sha1::digest(key.public_der());
        list.push(extension(0x0e, false, &der::value(der::OCTETS, &id)));
    }
    if let Some(issuer) = issuer.filter(|i| !i.subject.key_id.is_empty()) {
        let id = der::sequence(&[der::value(0x80, &issuer.subject.key_id)]);
        list.push(extension(0x23, false, &id));
    }
    if !wanted.names.is_empty() {
        let names = der::value(der::SEQUENCE, &wanted.names);
        list.push(extension(0x11, wanted.name.is_empty(), &names));
    }
    der::value(0xa3, &der::sequence(&list))
}

fn certify(call: &mut Call<'_, '_>, wanted: &Wanted, key: &RsaKey, issuer: Option<&Issuer>) -> Outcome {
    let env = call.context.outside();
    let mut serial = [0; 16];
    env.random(&mut serial);
    let now = env.now();
    // As in Go, a duration too long for 64 bits wraps around.
    let valid = SignedDuration::from_nanos(wanted.days.wrapping_mul(86_400_000_000_000));
    let end = now.checked_add(valid);
    let end = end.map_err(|e| format!("error creating certificate: {e}"))?;
    let subject = common_name(&wanted.name);
    let version = der::value(0xa0, &der::integer(&BigUint::from(2u32)));
    let body = der::sequence(&[
        version,
        der::integer(&BigUint::from_bytes_be(&serial)),
        keys::signature_algorithm(),
        issuer.map_or_else(|| subject.clone(), |i| i.subject.name.clone()),
        der::sequence(&[time(now), time(end)]),
        subject,
        key.public_info(),
        extensions(wanted, key, issuer),
    ]);
    let signature = issuer.map_or(key, |i| &i.key).sign(&body);
    let certificate = der::sequence(&[body, keys::signature_algorithm(), der::bits(&signature)]);
    Ok(Value::host(Certificate {
        cert: der::pem("CERTIFICATE", &certificate),
        key: der::pem("RSA PRIVATE KEY", &key.to_der()),
    }))
}
