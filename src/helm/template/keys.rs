//! RSA and P-256 keys for `genCA` and its kin: made from handed-in randomness, written as Go writes them.
//! For certificates of a chart under development; nothing here hides what it does from a clock.

use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};
use std::fmt;

use super::der::{self, Reader};

/// A source of random bytes.
pub(super) type Random<'a> = dyn FnMut(&mut [u8]) + 'a;

/// Why a private key cannot be read from PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyError {
    /// The text has no PEM block.
    NoPem,
    /// The block is not an RSA key in the form of PKCS #1.
    Pkcs1,
    /// The block is not an RSA key in the form of PKCS #8.
    Pkcs8,
    /// The block is a key of another kind, which Helm can use.
    NotRsa {
        /// The name of the block.
        block: String,
    },
    /// The block is a key of a kind that Helm cannot use either.
    UnknownKey {
        /// The name of the block.
        block: String,
    },
    /// The block is not a private key.
    NoKey {
        /// The name of the block.
        block: String,
    },
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NoPem => f.write_str("no PEM data in input"),
            KeyError::Pkcs1 => f.write_str("parsing RSA private key from PEM: asn1: structure error"),
            KeyError::Pkcs8 => {
                f.write_str("decoding PEM as PKCS#8: not an RSA key, the only kind opdev can use")
            }
            KeyError::NotRsa { block } => write!(f, "{block}: opdev makes certificates with RSA keys only"),
            KeyError::UnknownKey { block } => {
                write!(f, "invalid private key type {}", block.trim_end_matches(" PRIVATE KEY"))
            }
            KeyError::NoKey { block } => write!(f, "no private key data in PEM block of type {block}"),
        }
    }
}

/// An RSA key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RsaKey {
    n: BigUint,
    e: BigUint,
    d: BigUint,
    p: BigUint,
    q: BigUint,
}

const RSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const SHA256_RSA_OID: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
const NULL: [u8; 2] = [0x05, 0x00];

/// The algorithm of every signature made here.
pub(super) fn signature_algorithm() -> Vec<u8> {
    der::sequence(&[der::oid(SHA256_RSA_OID), NULL.to_vec()])
}

impl RsaKey {
    /// A new key with a modulus of so many bits.
    ///
    /// # Errors
    /// Those of `go_on`, which is asked between the tests of two candidates.
    pub(super) fn generate<E>(
        bits: u32,
        random: &mut Random<'_>,
        go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<RsaKey, E> {
        let e = BigUint::from(65537u32);
        let one = BigUint::from(1u32);
        let p = prime(bits / 2, &e, None, (random, go_on))?;
        let q = prime(bits - bits / 2, &e, Some(&p), (random, go_on))?;
        let phi = (&p - &one) * (&q - &one);
        let d = e.modinv(&phi).unwrap_or_default();
        Ok(RsaKey { n: &p * &q, e, d, p, q })
    }

    /// PKCS #1, as in `RSA PRIVATE KEY`.
    pub(super) fn to_der(&self) -> Vec<u8> {
        let one = BigUint::from(1u32);
        let inverse = self.q.modinv(&self.p).unwrap_or_default();
        let parts = [
            &BigUint::default(),
            &self.n,
            &self.e,
            &self.d,
            &self.p,
            &self.q,
            &(&self.d % (&self.p - &one)),
            &(&self.d % (&self.q - &one)),
            &inverse,
        ];
        der::sequence(&parts.map(der::integer))
    }

    fn from_pkcs1(bytes: &[u8]) -> Option<RsaKey> {
        let mut reader = Reader(Reader(bytes).expect(der::SEQUENCE)?);
        reader.expect(der::INTEGER)?;
        let mut number = || reader.expect(der::INTEGER).map(BigUint::from_bytes_be);
        let key = RsaKey { n: number()?, e: number()?, d: number()?, p: number()?, q: number()? };
        (&key.p * &key.q == key.n).then_some(key)
    }

    /// A key from PEM: `RSA PRIVATE KEY` or `PRIVATE KEY`.
    pub(super) fn from_pem(text: &str) -> Result<RsaKey, KeyError> {
        let (kind, bytes) = der::read_pem(text).ok_or(KeyError::NoPem)?;
        match kind.as_str() {
            "RSA PRIVATE KEY" => RsaKey::from_pkcs1(&bytes).ok_or(KeyError::Pkcs1),
            "PRIVATE KEY" => from_pkcs8(&bytes).ok_or(KeyError::Pkcs8),
            "EC PRIVATE KEY" | "DSA PRIVATE KEY" => Err(KeyError::NotRsa { block: kind }),
            other => match other.strip_suffix(" PRIVATE KEY") {
                Some(_) => Err(KeyError::UnknownKey { block: kind }),
                None => Err(KeyError::NoKey { block: kind }),
            },
        }
    }

    /// PKCS #1 public key.
    pub(super) fn public_der(&self) -> Vec<u8> {
        der::sequence(&[der::integer(&self.n), der::integer(&self.e)])
    }

    /// SubjectPublicKeyInfo.
    pub(super) fn public_info(&self) -> Vec<u8> {
        let algorithm = der::sequence(&[der::oid(RSA_OID), NULL.to_vec()]);
        der::sequence(&[algorithm, der::bits(&self.public_der())])
    }

    /// PKCS #1 v1.5 over SHA-256.
    pub(super) fn sign(&self, message: &[u8]) -> Vec<u8> {
        const DIGEST_INFO: &[u8] = &[
            0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
            0, 4, 0x20,
        ];
        let size = usize::try_from(self.n.bits().div_ceil(8)).unwrap_or(0);
        let digest = [DIGEST_INFO, &Sha256::digest(message)[..]].concat();
        let padding = vec![0xff; size.saturating_sub(digest.len() + 3)];
        let block = [&[0, 1], &padding[..], &[0], &digest[..]].concat();
        let signed = BigUint::from_bytes_be(&block).modpow(&self.d, &self.n).to_bytes_be();
        [vec![0; size.saturating_sub(signed.len())], signed].concat()
    }
}

fn from_pkcs8(bytes: &[u8]) -> Option<RsaKey> {
    let mut reader = Reader(Reader(bytes).expect(der::SEQUENCE)?);
    reader.expect(der::INTEGER)?;
    let mut algorithm = Reader(reader.expect(der::SEQUENCE)?);
    if algorithm.expect(0x06)? != RSA_OID {
        return None;
    }
    RsaKey::from_pkcs1(reader.expect(der::OCTETS)?)
}

/// A prime of so many bits, its top two bits set, other than `not`, with no factor of `e` in `p - 1`.
fn prime<E>(
    bits: u32,
    e: &BigUint,
    not: Option<&BigUint>,
    (random, go_on): (&mut Random<'_>, &dyn Fn() -> Result<(), E>),
) -> Result<BigUint, E> {
    let small = small_primes();
    let size = bits.div_ceil(8) as usize;
    let mut bytes = vec![0; size];
    loop {
        random(&mut bytes);
        let mut start = BigUint::from_bytes_be(&bytes);
        for bit in u64::from(bits)..(size as u64 * 8) {
            start.set_bit(bit, false);
        }
        for bit in [0, u64::from(bits) - 1, u64::from(bits) - 2] {
            start.set_bit(bit, true);
        }
        let rests: Vec<u32> = small.iter().map(|p| u32::try_from(&start % p).unwrap_or(0)).collect();
        for step in (0..200_000u32).step_by(2) {
            if rests.iter().zip(&small).any(|(rest, p)| (rest + step % p) % p == 0) {
                continue;
            }
            go_on()?;
            let candidate = &start + step;
            let usable = candidate.bits() == u64::from(bits)
                && not != Some(&candidate)
                && &candidate % e != BigUint::from(1u32);
            if usable && is_prime(&candidate, random) {
                return Ok(candidate);
            }
        }
    }
}

fn small_primes() -> Vec<u32> {
    let mut sieve = vec![true; 8000];
    let mut primes = Vec::new();
    for n in 3..sieve.len() {
        if n % 2 == 1 && sieve[n] {
            primes.push(u32::try_from(n).unwrap_or(3));
            for multiple in (n * n..sieve.len()).step_by(n) {
                sieve[multiple] = false;
            }
        }
    }
    primes
}

/// Miller and Rabin's test with base 2 and eight random bases.
fn is_prime(n: &BigUint, random: &mut Random<'_>) -> bool {
    let one = BigUint::from(1u32);
    let top = n - &one;
    let twos = top.trailing_zeros().unwrap_or(0);
    let odd = &top >> twos;
    let passes = |base: &BigUint| {
        let mut x = base.modpow(&odd, n);
        if x == one || x == top {
            return true;
        }
        for _ in 1..twos {
            x = &x * &x % n;
            if x == top {
                return true;
            }
        }
        false
    };
    if !passes(&BigUint::from(2u32)) {
        return false;
    }
    let mut bytes = vec![0; usize::try_from(n.bits() / 8).unwrap_or(1)];
    (0..8).all(|_| {
        random(&mut bytes);
        passes(&(BigUint::from_bytes_be(&bytes) % (n - 3u32) + 2u32))
    })
}

/// A P-256 private key as SEC 1 writes it, `EC PRIVATE KEY`.
pub(super) fn p256_key(random: &mut Random<'_>) -> Vec<u8> {
    const P: &str = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
    const N: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    const X: &str = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296";
    const Y: &str = "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
    let hex = |text: &str| BigUint::parse_bytes(text.as_bytes(), 16).unwrap_or_default();
    let (p, order, base) = (hex(P), hex(N), (hex(X), hex(Y)));
    let mut bytes = [0; 40];
    random(&mut bytes);
    let secret = BigUint::from_bytes_be(&bytes) % (&order - 1u32) + 1u32;
    let (x, y) = multiply(&secret, &base, &p);
    let fixed = |n: &BigUint| {
        let bytes = n.to_bytes_be();
        [vec![0; 32 - bytes.len().min(32)], bytes].concat()
    };
    let point = [vec![4], fixed(&x), fixed(&y)].concat();
    let curve = der::oid(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07]);
    der::sequence(&[
        der::integer(&BigUint::from(1u32)),
        der::value(der::OCTETS, &fixed(&secret)),
        der::value(0xa0, &curve),
        der::value(0xa1, &der::bits(&point)),
    ])
}

type Point = (BigUint, BigUint);

/// A multiple of a point of the curve with a = -3.
fn multiply(times: &BigUint, base: &Point, p: &BigUint) -> Point {
    let mut sum: Option<Point> = None;
    for bit in (0..times.bits()).rev() {
        sum = sum.map(|s| add(&s, &s, p));
        if times.bit(bit) {
            sum = Some(match sum {
                None => base.clone(),
                Some(s) => add(&s, base, p),
            });
        }
    }
    sum.unwrap_or_else(|| base.clone())
}

fn add(a: &Point, b: &Point, p: &BigUint) -> Point {
    let minus = |x: &BigUint, y: &BigUint| (x + p - y) % p;
    let (top, bottom) = if a == b {
        ((&a.0 * &a.0 * 3u32 + p - 3u32) % p, (&a.1 * 2u32) % p)
    } else {
        (minus(&b.1, &a.1), minus(&b.0, &a.0))
    };
    let slope = top * bottom.modinv(p).unwrap_or_default() % p;
    let x = minus(&minus(&(&slope * &slope % p), &a.0), &b.0);
    let y = minus(&(&slope * minus(&a.0, &x) % p), &a.1);
    (x, y)
}

/// An Ed25519 key in PKCS #8, `PRIVATE KEY`: its seed is all it holds.
pub(super) fn ed25519_key(random: &mut Random<'_>) -> Vec<u8> {
    let mut seed = [0; 32];
    random(&mut seed);
    der::sequence(&[
        der::integer(&BigUint::default()),
        der::sequence(&[der::oid(&[0x2b, 0x65, 0x70])]),
        der::value(der::OCTETS, &der::value(der::OCTETS, &seed)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repeatable stream for tests.
    fn stream(seed: u64) -> impl FnMut(&mut [u8]) {
        let mut state = seed;
        move |buffer: &mut [u8]| {
            for byte in buffer {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 56) as u8;
            }
        }
    }

    #[test]
    fn a_key_signs_and_survives_being_written() {
        let key = RsaKey::generate(768, &mut stream(7), &|| Ok::<(), ()>(())).unwrap();
        assert_eq!(key.n.bits(), 768);
        let again = RsaKey::from_pem(&der::pem("RSA PRIVATE KEY", &key.to_der())).unwrap();
        assert_eq!(again, key);
        let signature = BigUint::from_bytes_be(&key.sign(b"text"));
        let opened = signature.modpow(&key.e, &key.n).to_bytes_be();
        assert!(opened.ends_with(&Sha256::digest(b"text")));
    }

    #[test]
    fn a_p256_key_holds_a_point_of_the_curve() {
        let key = p256_key(&mut stream(3));
        let point = &key[key.len() - 64..];
        let p = BigUint::parse_bytes(b"ffffffff00000001000000000000000000000000ffffffffffffffffffffffff", 16)
            .unwrap();
        let b = BigUint::parse_bytes(b"5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604b", 16)
            .unwrap();
        let (x, y) = (BigUint::from_bytes_be(&point[..32]), BigUint::from_bytes_be(&point[32..]));
        let right = (&x * &x * &x + (&p - 3u32) * &x + b) % &p;
        assert_eq!(&y * &y % &p, right);
    }
}
