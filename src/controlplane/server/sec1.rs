//! Private keys as SEC1 has them (`EC PRIVATE KEY`, RFC 5915), with the curve named in them. Java clients
//! take a key that says only `PRIVATE KEY` for RSA.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTETS: u8 = 0x04;
/// Version 1.
const VERSION: [u8; 3] = [INTEGER, 1, 1];
/// `[0]` with the name of the curve, P-256.
const CURVE: [u8; 12] = [0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
/// Bytes of the secret number.
const SECRET: usize = 32;
/// Characters of a line of PEM.
const LINE: usize = 64;

/// The key as PEM; `None` where it is none on the curve P-256.
pub(super) fn pem(key: &KeyPair) -> Option<String> {
    let der = der(key.serialized_der(), key.public_key_raw())?;
    let text = STANDARD.encode(der);
    let mut pem = String::from("-----BEGIN EC PRIVATE KEY-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(LINE));
        pem.push_str(line);
        pem.push('\n');
        rest = after;
    }
    pem.push_str("-----END EC PRIVATE KEY-----\n");
    Some(pem)
}

/// The key in DER: version, secret, curve, public point.
fn der(pkcs8: &[u8], public: &[u8]) -> Option<Vec<u8>> {
    let (outer, _) = element(pkcs8, SEQUENCE)?;
    let (_, rest) = element(outer, INTEGER)?;
    let (_, rest) = element(rest, SEQUENCE)?;
    let (inner, _) = element(rest, OCTETS)?;
    let (inner, _) = element(inner, SEQUENCE)?;
    let (_, rest) = element(inner, INTEGER)?;
    let (secret, _) = element(rest, OCTETS).filter(|(secret, _)| secret.len() == SECRET)?;
    let mut body = VERSION.to_vec();
    body.extend([OCTETS, u8::try_from(SECRET).ok()?]);
    body.extend_from_slice(secret);
    body.extend(CURVE);
    let bits = u8::try_from(public.len() + 1).ok()?;
    body.extend([0xa1, bits.checked_add(2)?, 0x03, bits, 0]);
    body.extend_from_slice(public);
    let mut out = vec![SEQUENCE, u8::try_from(body.len()).ok().filter(|length| *length < 0x80)?];
    out.extend(body);
    Some(out)
}

/// The content of the first element of DER, where it has this tag, and the bytes behind it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.strip_prefix(&[tag])?.split_first()?;
    let (length, rest) = match length {
        0x81 => rest.split_first().map(|(length, rest)| (usize::from(*length), rest))?,
        short @ ..=0x7f => (usize::from(*short), rest),
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::pki_types::pem::PemObject;

    #[test]
    fn a_key_is_the_same_in_both_forms() {
        let key = KeyPair::generate().unwrap();
        let pem = pem(&key).unwrap();
        let read = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        assert!(matches!(read, PrivateKeyDer::Sec1(_)), "{pem}");
        let signer = rustls::crypto::ring::sign::any_ecdsa_type(&read).unwrap();
        let public = signer.public_key().unwrap();
        assert!(public.ends_with(key.public_key_raw()));
        assert!(pem.lines().all(|line| line.len() <= LINE));
    }

    #[test]
    fn rubbish_is_no_key() {
        let key = KeyPair::generate().unwrap();
        let whole = key.serialized_der();
        for end in 0..whole.len() {
            // A key without its public part is whole for this purpose, one without its secret is not.
            let _ = der(&whole[..end], key.public_key_raw());
        }
        assert_eq!(der(b"rubbish", key.public_key_raw()), None);
        let other = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        assert_eq!(super::pem(&other), None);
    }
}
